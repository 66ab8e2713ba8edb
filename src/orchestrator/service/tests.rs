use super::*;
use crate::main_loop::order::Calls;
use archivist_core::model::{CrawlId, SnapshotId};
use archivist_core::plan::Notice;
use archivist_shared::bus::signals::Signal;
use archivist_shared::bus::wire::{ManagerProxy, RetentionProxy, SearchProxy};
use archivist_shared::bus::wire::{StoreProxy, WatchesProxy, WorkerProxy};
use futures_util::StreamExt;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;
use zbus::connection::Builder;
use zbus::message::Flags;
use zbus::names::BusName;
use zbus::proxy::Defaults;
use zbus::{Fd, Guid, MessageStream, Proxy};

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

/// The installed files describe the interfaces; `UPDATE_GOLDEN=1` writes them again.
#[test]
fn interfaces_are_as_their_files_say() {
    let directory = Path::new("../../packaging/tree/usr/share/dbus-1/interfaces");
    let mut names = BTreeSet::new();
    for (name, description) in descriptions() {
        let head = "<!DOCTYPE node PUBLIC \"-//freedesktop//DTD D-BUS Object Introspection 1.0//EN\"\n \
            \"http://www.freedesktop.org/standards/dbus/1.0/introspect.dtd\">\n";
        let text = format!("{head}<node>\n{description}</node>\n");
        let file = format!("{name}.xml");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(directory.join(&file), &text).unwrap();
        }
        assert_eq!(std::fs::read_to_string(directory.join(&file)).unwrap(), text, "{file}");
        names.insert(file);
    }
    let entries = std::fs::read_dir(directory).unwrap();
    let files = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(files.collect::<BTreeSet<_>>(), names);
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
    let description = descriptions().swap_remove(0).1;
    let mut names = BTreeSet::new();
    for signal in &signals {
        crate::bus::emit(&service, signal).await.unwrap();
        let next = tokio::time::timeout(Duration::from_secs(10), arriving.next());
        let message = next.await.unwrap().unwrap().unwrap();
        let name = message.header().member().unwrap().to_string();
        assert!(description.contains(&format!("<signal name=\"{name}\"")), "{name}");
        names.insert(name);
    }
    let declared = description.matches("<signal ").count();
    assert_eq!(names.len(), declared, "{names:?}");
}

/// A call of an interface: which one, and with what.
#[derive(Debug, Clone)]
struct Wild {
    method: usize,
    texts: [String; 2],
    flag: bool,
}

const METHODS: usize = 47;

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

/// A client of each interface.
struct Clients {
    people: ManagerProxy<'static>,
    workers: WorkerProxy<'static>,
    rules: RetentionProxy<'static>,
    search: SearchProxy<'static>,
    store: StoreProxy<'static>,
    watches: WatchesProxy<'static>,
}

impl Clients {
    async fn of(us: &Connection) -> Clients {
        async fn proxy<T: Defaults + From<Proxy<'static>>>(us: &Connection) -> T {
            let name = BusName::try_from("org.archivist1").unwrap();
            zbus::proxy::Builder::new(us).destination(name).build().await.unwrap()
        }
        Clients {
            people: proxy(us).await,
            workers: proxy(us).await,
            rules: proxy(us).await,
            search: proxy(us).await,
            store: proxy(us).await,
            watches: proxy(us).await,
        }
    }
}

async fn call(clients: &Clients, wild: &Wild) -> bool {
    let Clients { people, workers, rules, search, store, watches } = clients;
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
        19 => watches.check(a, &words).await.is_ok(),
        20 => watches.wait(a).await.is_ok(),
        21 => watches.list(a).await.is_ok(),
        22 => watches.history(a, b).await.is_ok(),
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
        35 => search.rebuild().await.is_ok(),
        36 => people.pin(a, wild.flag).await.is_ok(),
        37 => people.unpin(a, wild.flag).await.is_ok(),
        38 => rules.expired(&words, 0).await.is_ok(),
        39 => search.search(a).await.is_ok(),
        40 => rules.confirm().await.is_ok(),
        41 => watches.cancel(a).await.is_ok(),
        42 => watches.why(a).await.is_ok(),
        43 => store.test().await.is_ok(),
        44 => people.tag(a, &words, &words).await.is_ok(),
        45 => people.rename_tag(a, b).await.is_ok(),
        _ => store.fetch(a).await.is_ok(),
    }
}

proptest! {
    /// Every call is answered, with an error if the main loop is gone, and so is the next one.
    #[test]
    fn any_call_is_answered(wild in proptest::collection::vec(wild(), 1..20)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (theirs, ours) = UnixStream::pair().unwrap();
            let (calls, mut arriving) = Calls::new();
            let service = Builder::unix_stream(theirs)
                .server(Guid::generate())
                .p2p();
            let service = serve(service, calls, Subscribers::default(), false);
            let us = Builder::unix_stream(ours).p2p();
            let (service, us) = tokio::join!(service.build(), us.build());
            let (_service, us) = (service.unwrap(), us.unwrap());
            // No main loop: calls that arrive are dropped.
            let reader = tokio::spawn(async move { while arriving.recv().await.is_some() {} });
            let clients = Clients::of(&us).await;
            for wild in &wild {
                let answered = tokio::time::timeout(Duration::from_secs(10), call(&clients, wild));
                assert_eq!(answered.await, Ok(false), "{wild:?}");
            }
            reader.abort();
        });
    }
}

/// An administrator who has stopped the orchestrator does not want a call of a worker, or of a command that
/// waits for a crawl, to start it.
#[tokio::test]
async fn calls_of_workers_and_waiting_commands_start_no_orchestrator() {
    let (theirs, ours) = UnixStream::pair().unwrap();
    let service = Builder::unix_stream(theirs).server(Guid::generate()).p2p();
    let us = Builder::unix_stream(ours).p2p();
    let (service, us) = tokio::join!(service.build(), us.build());
    let (service, us) = (service.unwrap(), us.unwrap());
    let mut arriving = MessageStream::from(&service);
    let clients = Clients::of(&us).await;
    for (method, starts) in [
        (8, true),
        (13, false),
        (15, false),
        (29, false),
        (23, false),
        (24, false),
        (25, false),
        (26, false),
        (32, false),
    ] {
        let wild = Wild { method, texts: [String::new(), String::new()], flag: false };
        let message = tokio::select! {
            biased;
            message = arriving.next() => message.unwrap().unwrap(),
            answered = call(&clients, &wild) => panic!("{answered}"),
        };
        let flags = message.primary_header().flags();
        assert_eq!(!flags.contains(Flags::NO_AUTO_START), starts, "{message}");
    }
}
