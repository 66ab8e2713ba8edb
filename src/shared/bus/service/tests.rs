use super::worker::Worker;
use super::*;
use crate::bus::signals::Signal;
use crate::bus::wire::PATH;
use crate::bus::wire::{ManagerProxy, WorkerProxy};
use archivist_core::model::{CrawlId, SnapshotId};
use archivist_core::plan::Notice;
use futures_util::StreamExt;
use proptest::prelude::*;
use std::os::unix::net::UnixStream;
use std::time::Duration;
use zbus::connection::Builder;
use zbus::message::Flags;
use zbus::names::BusName;
use zbus::{Fd, Guid, MessageStream};

#[tokio::test]
async fn a_disconnect_by_the_bus_is_detected() {
    let (theirs, ours) = UnixStream::pair().unwrap();
    let bus = Builder::unix_stream(theirs).server(Guid::generate()).p2p();
    let us = Builder::unix_stream(ours).p2p();
    let (bus, us) = tokio::join!(bus.build(), us.build());
    let heard = tokio::spawn(hung_up(us.unwrap()));
    assert!(!heard.is_finished());
    bus.unwrap().close().await.unwrap();
    let limit = Duration::from_secs(10);
    tokio::time::timeout(limit, heard).await.unwrap().unwrap();
}

/// Every signal arrives under a name that the interface declares, each notice under its own.
#[tokio::test]
async fn signals_are_those_of_the_interface() {
    let (theirs, ours) = UnixStream::pair().unwrap();
    let service = Builder::unix_stream(theirs).server(Guid::generate()).p2p();
    let us = Builder::unix_stream(ours).p2p();
    let (service, us) = tokio::join!(service.build(), us.build());
    let (service, us) = (service.unwrap(), us.unwrap());
    let mut arriving = MessageStream::from(&us);
    let document = "{}".to_owned();
    let mut signals = vec![Signal::Idle, Signal::Stopping];
    signals.push(Signal::Pages { crawl: CrawlId(1), document: document.clone() });
    for notice in Notice::ALL {
        let document = document.clone();
        signals.push(Signal::Crawl { notice, id: CrawlId(1), document: document.clone() });
        signals.push(Signal::Snapshot { notice, id: SnapshotId(1), document });
    }
    let description = description();
    let mut names = std::collections::BTreeSet::new();
    for signal in &signals {
        emit(&service, signal).await.unwrap();
        let next = tokio::time::timeout(Duration::from_secs(10), arriving.next());
        let message = next.await.unwrap().unwrap().unwrap();
        let name = message.header().member().unwrap().to_string();
        assert!(description.contains(&format!("<signal name=\"{name}\"")), "{name}");
        names.insert(name);
    }
    let declared = description.matches("<signal ").count();
    assert_eq!(names.len(), declared, "{names:?}");
}

/// A call of either interface: which one, and with what.
#[derive(Debug, Clone)]
struct Wild {
    method: usize,
    texts: [String; 2],
    flag: bool,
}

const METHODS: usize = 42;

/// What is nearly right more often than it is noise.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[csr]?[0-9]{1,20}",
        "\\PC{0,40}",
        "(crawls|snapshots|results|runs|hosts|timeline|binaries|page|http|)",
        "\\{\"(depth|tags|plugins|config|limit|before|owner|status|state)\":(-?[0-9]{1,21}|\\[\\]|\\{\\}|\"\\PC{0,9}\"|null|1e99)\\}",
        Just("[".repeat(10_000)),
        Just(
            r#"{"key":"a/b","verdict":{"status":"succeeded"},"output":null,"files":[],"size":0}"#
                .into()
        ),
    ]
}

fn wild() -> impl Strategy<Value = Wild> {
    (0..METHODS, [text(), text()], any::<bool>()).prop_map(|(method, texts, flag)| Wild {
        method,
        texts,
        flag,
    })
}

async fn call(people: &ManagerProxy<'_>, workers: &WorkerProxy<'_>, wild: &Wild) -> bool {
    let [a, b] = [wild.texts[0].as_str(), wild.texts[1].as_str()];
    let list = std::fs::File::open("/dev/null").unwrap();
    let fd = || Fd::from(&list);
    let words = wild.texts.to_vec();
    match wild.method {
        0 => people.add(fd(), a).await.is_ok(),
        1 => people.install(&words).await.is_ok(),
        2 => people.cancel(a).await.is_ok(),
        3 => people.abort(a).await.is_ok(),
        4 => people.pause(a).await.is_ok(),
        5 => people.resume(a).await.is_ok(),
        6 => people.amend(a, b).await.is_ok(),
        7 => people.retry(a, b).await.is_ok(),
        8 => people.status().await.is_ok(),
        9 => people.list(a, b).await.is_ok(),
        10 => people.show(a).await.is_ok(),
        11 => people.why(a).await.is_ok(),
        12 => people.plugins().await.is_ok(),
        13 => people.watch(a).await.is_ok(),
        14 => people.run(fd(), a).await.is_ok(),
        15 => people.hold(a, wild.flag).await.is_ok(),
        16 => people.interrupt(a).await.is_ok(),
        17 => people.proceed(a, wild.flag).await.is_ok(),
        18 => people.draft(a).await.is_ok(),
        19 => people.check(a, &words).await.is_ok(),
        20 => people.await_check(a).await.is_ok(),
        21 => people.watches(a).await.is_ok(),
        22 => people.history(a, b).await.is_ok(),
        23 => workers.attach(a).await.is_ok(),
        24 => workers.run(a, b, fd()).await.is_ok(),
        25 => workers.stop(a, b, wild.flag).await.is_ok(),
        26 => workers.report(a, b).await.is_ok(),
        27 => people.retry_all(a).await.is_ok(),
        28 => people.update(a).await.is_ok(),
        29 => people.register(a).await.is_ok(),
        30 => people.watch_status().await.is_ok(),
        // The service itself answers.
        31 => people.subscribe().await.is_err(),
        32 => workers.snapshots_done(a).await.is_ok(),
        33 => people.delete(&words, wild.flag).await.is_ok(),
        34 => people.metrics().await.is_ok(),
        35 => people.rebuild_search().await.is_ok(),
        36 => people.pin(a, wild.flag).await.is_ok(),
        37 => people.unpin(a, wild.flag).await.is_ok(),
        38 => people.expired(&words, 0).await.is_ok(),
        39 => people.search(a).await.is_ok(),
        40 => people.confirm_retention().await.is_ok(),
        _ => people.fetch(a).await.is_ok(),
    }
}

proptest! {
    /// Every call is answered, with an error if the main loop is gone, and so is the next one.
    #[test]
    fn any_call_is_answered(wild in proptest::collection::vec(wild(), 1..20)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (theirs, ours) = UnixStream::pair().unwrap();
            let (calls, mut arriving) = mpsc::unbounded_channel();
            let service = Builder::unix_stream(theirs)
                .server(Guid::generate())
                .p2p()
                .serve_at(PATH, Manager(calls.clone(), Callers::default(), Subscribers::default()))
                .serve_at(PATH, Worker(calls));
            let us = Builder::unix_stream(ours).p2p();
            let (service, us) = tokio::join!(service.build(), us.build());
            let (_service, us) = (service.unwrap(), us.unwrap());
            // No main loop: calls that arrive are dropped.
            let reader = tokio::spawn(async move { while arriving.recv().await.is_some() {} });
            let name = BusName::try_from("org.archivist1").unwrap();
            let people = ManagerProxy::builder(&us).destination(name.clone()).build().await.unwrap();
            let workers = WorkerProxy::builder(&us).destination(name).build().await.unwrap();
            for wild in &wild {
                let answered = tokio::time::timeout(Duration::from_secs(10), call(&people, &workers, wild));
                assert_eq!(answered.await, Ok(false), "{wild:?}");
            }
            reader.abort();
        });
    }
}

/// An administrator who has stopped the orchestrator does not want a worker's call to start it.
#[tokio::test]
async fn calls_of_workers_start_no_orchestrator() {
    let (theirs, ours) = UnixStream::pair().unwrap();
    let service = Builder::unix_stream(theirs).server(Guid::generate()).p2p();
    let us = Builder::unix_stream(ours).p2p();
    let (service, us) = tokio::join!(service.build(), us.build());
    let (service, us) = (service.unwrap(), us.unwrap());
    let mut arriving = MessageStream::from(&service);
    let name = BusName::try_from("org.archivist1").unwrap();
    let people = ManagerProxy::builder(&us).destination(name.clone()).build().await.unwrap();
    let workers = WorkerProxy::builder(&us).destination(name).build().await.unwrap();
    for (method, starts) in
        [(8, true), (23, false), (24, false), (25, false), (26, false), (32, false)]
    {
        let wild = Wild { method, texts: [String::new(), String::new()], flag: false };
        let message = tokio::select! {
            biased;
            message = arriving.next() => message.unwrap().unwrap(),
            answered = call(&people, &workers, &wild) => panic!("{answered}"),
        };
        let flags = message.primary_header().flags();
        assert_eq!(!flags.contains(Flags::NO_AUTO_START), starts, "{message}");
    }
}
