//! The client of systemd with a simulated service manager on a socket pair: the order of
//! signals and answers, refusals, descriptors, the end of the connection.

mod storms;
mod systemd;

use archivist_core::model::{CrawlId, Outcome, Owner, Reading, SnapshotId};
use archivist_core::unit::{HookSpec, Names, UnitSpec, WorkerSpec};
use archivist_shared::systemd::{
    ErrorKind, Hint, HintQueue, LoadedUnit, Manager, ManagerError, Release, Whom,
};
use std::io::{Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use systemd::{Fake, Transient, Unit, soon};

const HOOK: &str = "archivist-hook-wget-s3.service";

fn hook() -> UnitSpec {
    let spec = HookSpec {
        owner: Owner::Snapshot(SnapshotId(3)),
        crawl: CrawlId(1),
        snapshot: Some(SnapshotId(3)),
        url: "https://example.org/?a=${HOME}",
        plugin: "wget",
        hook: "on_Snapshot__06_wget",
        unit_part: "wget",
        argv: vec![
            "/usr/share/archivist/plugins/wget/on_Snapshot__06_wget.py".into(),
            "--url=https://example.org/?a=${HOME}&b=%n&c=$(id)`id`".into(),
            "a b\"c'".into(),
        ],
        environment: vec![("PATH".into(), "/usr/bin".into())],
        launcher: None,
        not_after: None,
        working_directory: "/archive/s3/wget".into(),
        limit: Duration::from_secs(60),
        bind: vec!["/archive/s3".into()],
        bind_read_only: Vec::new(),
        tmp: None,
        network: None,
        addresses: Default::default(),
        user: None,
    };
    UnitSpec::hook(&Names::new("archivist"), spec)
}

fn worker() -> UnitSpec {
    let worker = WorkerSpec {
        owner: Owner::Snapshot(SnapshotId(3)),
        crawl: CrawlId(1),
        url: "https://example.org/",
        program: "/usr/bin/archivist",
        user_scope: false,
        archive: "/archive".into(),
        limit: None,
        network: None,
    };
    UnitSpec::worker(&Names::new("archivist"), worker)
}

/// An unnamed file with this content.
fn file(text: &str) -> OwnedFd {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file.rewind().unwrap();
    file.into()
}

/// A start with an empty file for stdout.
async fn begin(manager: &Manager, spec: &UnitSpec) -> Result<(), ManagerError> {
    manager.start(spec, Some(&file(""))).await
}

fn content(descriptor: OwnedFd) -> String {
    let mut text = String::new();
    std::fs::File::from(descriptor).read_to_string(&mut text).unwrap();
    text
}

fn exited(code: i32, status: i32, result: &str) -> Hint {
    let (unit, result) = (HOOK.to_owned(), result.to_owned());
    Hint::Exited { unit, code, status, result }
}

fn job_removed(result: &str) -> Hint {
    let (unit, result) = (HOOK.to_owned(), result.to_owned());
    Hint::JobRemoved { unit, result }
}

async fn next(hints: &HintQueue) -> Hint {
    soon(hints.next()).await
}

/// A connection with a hook that runs.
async fn running() -> (Fake, archivist_shared::systemd::Manager, HintQueue) {
    let (mut fake, manager, hints) = Fake::connect().await;
    let spec = hook();
    let (started, ()) = tokio::join!(begin(&manager, &spec), fake.serve(1));
    started.unwrap();
    (fake, manager, hints)
}

/// Reads the hook. Returns its outcome, if it has ended, and the reading.
async fn read(
    fake: &mut Fake,
    manager: &archivist_shared::systemd::Manager,
) -> (Option<Outcome>, Reading) {
    let (reading, ()) = tokio::join!(manager.read(HOOK), fake.serve(3));
    let reading = reading.unwrap();
    (Outcome::of(&reading), reading)
}

#[tokio::test]
async fn it_subscribes_before_anything_else() {
    let (mut fake, manager, _hints) = Fake::connect().await;
    let (version, ()) = tokio::join!(manager.version(), fake.serve(1));
    assert_eq!(version.unwrap(), "252.39-1~deb12u1");
    assert_eq!(fake.heard, ["Subscribe", "Get"]);
}

#[tokio::test]
async fn the_usual_life_of_a_unit() {
    let (mut fake, manager, hints) = running().await;
    fake.job_removed(HOOK, "done").await;
    assert_eq!(next(&hints).await, job_removed("done"));
    assert_eq!(read(&mut fake, &manager).await.0, None, "it runs");

    fake.exit(HOOK, "active", (1, 0, "success")).await;
    assert_eq!(next(&hints).await, exited(1, 0, "success"));
    fake.units.get_mut(HOOK).unwrap().cpu_nsec = 42_000_999;
    let (outcome, reading) = read(&mut fake, &manager).await;
    assert_eq!(outcome, Some(Outcome::Exit(0)));
    assert_eq!(reading.accounting.cpu_usec, Some(42_000));
    assert_eq!(reading.accounting.memory_peak, None, "it is not counted");
    assert_eq!(reading.invocation, "07".repeat(16));

    let how = Release::for_reading(&reading);
    assert_eq!(how, Release::Stop);
    let (released, ()) = tokio::join!(manager.release(HOOK, how), fake.serve(1));
    released.unwrap();
    fake.unit_removed(HOOK).await;
    let unit = HOOK.to_owned();
    assert_eq!(next(&hints).await, Hint::Removed { unit });
    assert!(fake.units.is_empty());
}

#[tokio::test]
async fn a_failed_unit_is_released_by_a_reset() {
    let (mut fake, manager, _hints) = running().await;
    fake.exit(HOOK, "failed", (2, 15, "timeout")).await;
    let (outcome, reading) = read(&mut fake, &manager).await;
    assert_eq!(outcome, Some(Outcome::TimeLimit));
    let how = Release::for_reading(&reading);
    assert_eq!(how, Release::Reset);
    let (released, ()) = tokio::join!(manager.release(HOOK, how), fake.serve(1));
    released.unwrap();
    assert_eq!(fake.heard.last().unwrap(), "ResetFailedUnit");
    assert!(fake.units.is_empty());
}

/// Two calls read the state and the outcome of a unit. StopUnit, which releases an active unit,
/// would leave a failed one loaded for ever.
#[tokio::test]
async fn a_unit_that_fails_while_it_is_read_is_read_again() {
    let (mut fake, manager, _hints) = running().await;
    let story = async {
        fake.serve(1).await;
        assert_eq!(fake.heard.last().unwrap(), "ListUnitsByNames");
        fake.exit(HOOK, "failed", (1, 7, "exit-code")).await;
        fake.serve(2 + 3).await;
    };
    let (reading, ()) = soon(async { tokio::join!(manager.read(HOOK), story) }).await;
    let reading = reading.unwrap();
    assert_eq!(Outcome::of(&reading), Some(Outcome::Exit(7)));
    assert_eq!(Release::for_reading(&reading), Release::Reset);
}

/// All signals about a unit may arrive before the answer to its start.
#[tokio::test]
async fn signals_arrive_while_the_answer_is_awaited() {
    let (mut fake, manager, hints) = Fake::connect().await;
    let spec = hook();
    let start = begin(&manager, &spec);
    let story = async {
        let call = fake.take().await;
        fake.job_removed(HOOK, "done").await;
        fake.exit(HOOK, "failed", (1, 1, "exit-code")).await;
        assert_eq!(next(&hints).await, job_removed("done"));
        assert_eq!(next(&hints).await, exited(1, 1, "exit-code"));
        fake.answer(&call).await;
    };
    let (started, ()) = tokio::join!(start, story);
    started.unwrap();
}

#[tokio::test]
async fn a_unit_that_is_gone_never_reads_as_success() {
    let (mut fake, manager, hints) = running().await;
    fake.exit(HOOK, "inactive", (2, 15, "success")).await;
    fake.unit_removed(HOOK).await;
    assert_eq!(next(&hints).await, exited(2, 15, "success"), "the evidence");
    let (outcome, reading) = read(&mut fake, &manager).await;
    assert_eq!((reading.load_state.as_str(), reading.result.as_str()), ("not-found", "success"));
    assert_eq!(outcome, Some(Outcome::Lost));
}

#[tokio::test]
async fn start_of_an_existing_unit_is_unit_exists() {
    let (mut fake, manager, _hints) = running().await;
    let spec = hook();
    let (started, ()) = tokio::join!(begin(&manager, &spec), fake.serve(1));
    let error = started.unwrap_err();
    assert_eq!(error.kind, ErrorKind::UnitExists);
    let text = error.to_string();
    assert!(text.starts_with(&format!("failed to start unit '{HOOK}': ")), "{text}");
}

#[tokio::test]
async fn a_refused_start_says_why() {
    let (mut fake, manager, _hints) = Fake::connect().await;
    for name in ["org.freedesktop.DBus.Error.AccessDenied", "org.freedesktop.systemd1.LoadFailed"] {
        fake.refuse = Some((name, "not today"));
        let spec = hook();
        let (started, ()) = tokio::join!(begin(&manager, &spec), fake.serve(1));
        let error = started.unwrap_err();
        assert_eq!((error.kind, error.why.as_str()), (ErrorKind::Refused, "not today"));
    }
}

#[tokio::test]
async fn no_answer_is_not_a_refusal() {
    let (mut fake, manager, _hints) = Fake::connect().await;
    let spec = hook();
    let lost = async {
        let call = fake.take().await;
        fake.lose(&call).await;
        fake.hang_up().await;
    };
    let (started, ()) = soon(async { tokio::join!(begin(&manager, &spec), lost) }).await;
    assert_eq!(started.unwrap_err().kind, ErrorKind::Unreachable);
}

/// systemd accepts the start and fails to execute: a missing program, or no resources.
#[tokio::test]
async fn a_start_that_fails_later_reads_as_not_started() {
    for (evidence, why) in [
        ((1, 203, "exit-code"), "its program cannot be executed"),
        ((0, 0, "resources"), "systemd says resources"),
    ] {
        let (mut fake, manager, hints) = running().await;
        fake.exit(HOOK, "failed", evidence).await;
        fake.job_removed(HOOK, "failed").await;
        let (code, status, result) = evidence;
        assert_eq!(next(&hints).await, exited(code, status, result));
        assert_eq!(next(&hints).await, job_removed("failed"));
        match read(&mut fake, &manager).await.0 {
            Some(Outcome::NotStarted(text)) => assert!(text.starts_with(why), "{text}"),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn the_end_of_the_connection_is_a_hint() {
    let (fake, manager, hints) = running().await;
    fake.hang_up().await;
    assert_eq!(next(&hints).await, Hint::Disconnected);
    let error = soon(manager.read(HOOK)).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unreachable, "{error}");
}

#[tokio::test]
async fn a_pending_call_ends_with_the_connection() {
    let (mut fake, manager, _hints) = Fake::connect().await;
    let spec = hook();
    let story = async {
        fake.take().await;
        fake.hang_up().await;
    };
    let (started, ()) = soon(async { tokio::join!(begin(&manager, &spec), story) }).await;
    assert_eq!(started.unwrap_err().kind, ErrorKind::Unreachable);
}

#[tokio::test]
async fn only_the_end_of_a_reload_is_a_hint() {
    let (fake, _manager, hints) = Fake::connect().await;
    fake.reloading(true).await;
    fake.reloading(false).await;
    assert_eq!(next(&hints).await, Hint::Reloaded);
    assert_eq!(hints.try_next(), None);
}

#[tokio::test]
async fn units_of_others_give_no_hints() {
    let (mut fake, _manager, hints) = Fake::connect().await;
    for other in ["ssh.service", "archivist-orchestrator.service", "archivist-crawl-1.slice"] {
        fake.exit(other, "failed", (1, 1, "exit-code")).await;
        fake.job_removed(other, "done").await;
        fake.unit_removed(other).await;
    }
    // Other signals about a process are not its end.
    fake.exit(HOOK, "active", (0, 0, "success")).await;
    fake.job_removed(HOOK, "done").await;
    assert_eq!(next(&hints).await, job_removed("done"));
    assert_eq!(hints.try_next(), None);
}

#[tokio::test]
async fn standard_input_is_a_path_and_standard_output_a_descriptor() {
    let (mut fake, manager, _hints) = Fake::connect().await;
    let both = UnitSpec {
        stdin: Some("/run/archivist/input/x.1".into()),
        stdout: archivist_core::unit::Stdio::Descriptor,
        ..worker()
    };
    let output = file("output");
    let taking = async {
        let call = fake.take().await;
        let mut transient = Transient::of(&call);
        let stdin: String = transient.take("StandardInputFile");
        let stdout = content(transient.descriptor("StandardOutputFileDescriptor"));
        assert_eq!(stdin, "/run/archivist/input/x.1");
        assert_eq!(stdout, "output");
        fake.answer(&call).await;
    };
    let (started, ()) = tokio::join!(manager.start(&both, Some(&output)), taking);
    started.unwrap();
}

#[tokio::test]
async fn path_after_a_hyphen_may_be_missing() {
    let (mut fake, manager, _hints) = Fake::connect().await;
    let spec =
        UnitSpec { bind_read_only: vec!["/lib".into(), "-/run/resolvconf".into()], ..hook() };
    let taking = async {
        let call = fake.take().await;
        let mut transient = Transient::of(&call);
        let binds: Vec<(String, String, bool, u64)> = transient.take("BindReadOnlyPaths");
        let paths = ["/lib", "/run/resolvconf"];
        for (place, (from, to, may_be_missing, _)) in binds.iter().enumerate() {
            assert_eq!((from.as_str(), to.as_str()), (paths[place], paths[place]));
            assert_eq!(*may_be_missing, place == 1);
        }
        assert_eq!(binds.len(), paths.len());
        fake.answer(&call).await;
    };
    let (started, ()) = tokio::join!(begin(&manager, &spec), taking);
    started.unwrap();
}

#[tokio::test]
async fn what_is_sent_is_never_expanded() {
    let (mut fake, manager, _hints) = Fake::connect().await;
    let spec = hook();
    let taking = async {
        let call = fake.take().await;
        let mut transient = Transient::of(&call);
        assert_eq!((transient.name.as_str(), transient.mode.as_str()), (HOOK, "fail"));
        assert!(!transient.properties.contains_key("ExecStart"));
        let commands: Vec<(String, Vec<String>, Vec<String>)> = transient.take("ExecStartEx");
        let flags = vec!["no-env-expand".to_owned()];
        assert_eq!(commands, [(spec.argv[0].clone(), spec.argv.clone(), flags)]);
        assert_eq!(transient.take::<Vec<String>>("Environment"), ["PATH=/usr/bin"]);
        assert_eq!(transient.take::<u64>("RuntimeMaxUSec"), 60_000_000);
        assert!(transient.take::<bool>("RemainAfterExit"));
        fake.answer(&call).await;
    };
    let (started, ()) = tokio::join!(begin(&manager, &spec), taking);
    started.unwrap();
}

#[tokio::test]
async fn release_of_a_missing_unit_succeeds() {
    let (mut fake, manager, _hints) = Fake::connect().await;
    for how in [Release::Stop, Release::Reset] {
        let (released, ()) = tokio::join!(manager.release(HOOK, how), fake.serve(1));
        released.unwrap();
    }
    let slice = "archivist-crawl-1.slice";
    let (stopped, ()) = tokio::join!(manager.stop_slice(slice), fake.serve(1));
    stopped.unwrap();
    let (killed, ()) = tokio::join!(manager.kill(HOOK, Whom::All, 9), fake.serve(1));
    killed.unwrap();
}

/// A displaced orchestrator makes no call to systemd, whatever the call is.
#[tokio::test]
async fn who_was_displaced_changes_nothing() {
    let (mut fake, manager, _hints) = running().await;
    let may = Arc::new(AtomicBool::new(true));
    let guard = may.clone();
    let manager = manager.guarded_by(Arc::new(move || guard.load(Ordering::SeqCst)));
    let (released, ()) = tokio::join!(manager.kill(HOOK, Whom::All, 15), fake.serve(1));
    released.unwrap();
    may.store(false, Ordering::SeqCst);
    let heard = fake.heard.clone();
    let spec = worker();
    let started = soon(begin(&manager, &spec)).await;
    let error = started.unwrap_err().to_string();
    assert!(error.ends_with("another orchestrator is active on this data directory"), "{error}");
    assert!(soon(manager.kill(HOOK, Whom::All, 9)).await.is_err());
    assert!(soon(manager.release(HOOK, Release::Stop)).await.is_err());
    assert!(soon(manager.release(HOOK, Release::Reset)).await.is_err());
    assert!(soon(manager.stop_slice("archivist-crawl-1.slice")).await.is_err());
    // Reading is still permitted.
    let (outcome, _) = read(&mut fake, &manager).await;
    assert_eq!(outcome, None);
    assert_eq!(fake.heard[heard.len()..], ["ListUnitsByNames", "Get", "GetAll"]);
    assert_eq!(fake.units.len(), 1);
}

#[tokio::test]
async fn kill_of_a_unit_without_processes_succeeds() {
    let (mut fake, manager, _hints) = running().await;
    fake.exit(HOOK, "active", (1, 0, "success")).await;
    let (killed, ()) = tokio::join!(manager.kill(HOOK, Whom::Main, 15), fake.serve(1));
    killed.unwrap();
}

#[tokio::test]
async fn freeze_distinguishes_busy_from_missing_and_unsupported() {
    let (mut fake, manager, _hints) = running().await;
    let (frozen, ()) = tokio::join!(manager.freeze(HOOK), fake.serve(1));
    frozen.unwrap();
    let (thawed, ()) = tokio::join!(manager.thaw(HOOK), fake.serve(1));
    thawed.unwrap();
    for (state, kind) in [("failed", ErrorKind::Busy), ("", ErrorKind::NoSuchUnit)] {
        fake.units.retain(|_, _| !state.is_empty());
        for unit in fake.units.values_mut() {
            unit.active_state = state;
        }
        let (refused, ()) = tokio::join!(manager.freeze(HOOK), fake.serve(1));
        assert_eq!(refused.unwrap_err().kind, kind);
    }
}

#[tokio::test]
async fn only_our_units_are_listed() {
    let (mut fake, manager, _hints) = Fake::connect().await;
    for name in [
        HOOK,
        "archivist-crawl-1.service",
        "archivist-crawl-x.service",
        "archivist-orchestrator.service",
        "archivist-second-crawl-1.service",
        "ssh.service",
    ] {
        fake.units.insert(name.to_owned(), Unit::default());
    }
    let (listed, ()) = tokio::join!(manager.list(), fake.serve(1));
    let listed = listed.unwrap();
    let names: Vec<&str> = listed.iter().map(|LoadedUnit { name, .. }| name.as_str()).collect();
    assert_eq!(names, ["archivist-crawl-1.service", HOOK]);
}

#[tokio::test]
async fn a_system_on_its_way_down_is_seen() {
    let (mut fake, manager, _hints) = Fake::connect().await;
    for (state, stopping) in [("running", false), ("degraded", false), ("stopping", true)] {
        fake.system_state = state;
        let calls = if stopping { 1 } else { 2 };
        let (answer, ()) = tokio::join!(manager.is_stopping(), fake.serve(calls));
        assert_eq!(answer.unwrap(), stopping, "{state}");
    }
}

#[tokio::test]
async fn a_stop_of_the_slice_of_all_units_is_seen() {
    let (mut fake, manager, _hints) = Fake::connect().await;
    for (job, stopping) in [("", false), ("start", false), ("stop", true), ("restart", true)] {
        let slice = Unit { job, ..Unit::default() };
        fake.units.insert("archivist.slice".to_owned(), slice);
        let (answer, ()) = tokio::join!(manager.is_stopping(), fake.serve(2));
        assert_eq!(answer.unwrap(), stopping, "job {job}");
    }
}

/// A stop job ends the active state first, then the process. A process that fails ends first.
#[tokio::test]
async fn a_unit_that_was_stopped_differs_from_one_that_failed() {
    let (mut fake, manager, _hints) = running().await;
    fake.exit(HOOK, "failed", (1, 1, "exit-code")).await;
    for (left_active, exited, was_stopped) in
        [(7, 9, true), (9, 9, false), (9, 7, false), (0, 9, false)]
    {
        let unit = fake.units.get_mut(HOOK).unwrap();
        (unit.left_active, unit.exited) = (left_active, exited);
        let (reading, ()) = tokio::join!(manager.read(HOOK), fake.serve(4));
        assert_eq!(reading.unwrap().was_stopped, was_stopped, "{left_active} {exited}");
    }
}

/// Thousands of signals while no task reads the hints: the connection still answers, and one hint
/// is queued.
#[tokio::test]
async fn a_storm_of_signals_does_not_stop_the_connection() {
    let (mut fake, manager, hints) = running().await;
    for _ in 0..5000 {
        fake.job_removed(HOOK, "done").await;
    }
    let (version, ()) = soon(async { tokio::join!(manager.version(), fake.serve(1)) }).await;
    version.unwrap();
    assert_eq!(next(&hints).await, job_removed("done"));
    assert_eq!(hints.try_next(), None);
}

/// systemd leaves the bus with a signal unsent, as in `systemctl daemon-reexec`.
#[tokio::test]
async fn a_signal_that_got_lost_is_sent_when_systemd_is_back() {
    let (mut fake, manager, hints) = Fake::connect().await;
    let lost = async {
        let call = fake.take().await;
        fake.lose(&call).await;
        // Calls in between would be lost as well.
        fake.reloading(false).await;
        fake.serve(1).await;
        fake
    };
    let unit = "archivist-hook-wget-s9.service";
    let (killed, fake) =
        soon(async { tokio::join!(manager.kill(unit, Whom::All, 15), lost) }).await;
    killed.unwrap();
    assert_eq!(fake.heard, ["Subscribe", "KillUnit", "KillUnit"]);
    assert_eq!(soon(hints.next()).await, Hint::Reloaded);
}

#[tokio::test]
async fn a_signal_is_not_waited_for_without_a_connection() {
    let (mut fake, manager, _hints) = Fake::connect().await;
    let lost = async {
        let call = fake.take().await;
        fake.lose(&call).await;
        fake.hang_up().await;
    };
    let (killed, ()) = soon(async { tokio::join!(manager.kill(HOOK, Whom::All, 15), lost) }).await;
    assert_eq!(killed.unwrap_err().kind, ErrorKind::Unreachable);
}

/// The client calls again; the caller gets the answer of one start.
#[tokio::test]
async fn a_start_that_got_lost_is_made_when_systemd_is_back() {
    let (mut fake, manager, _hints) = Fake::connect().await;
    let spec = hook();
    let lost = async {
        let call = fake.take().await;
        fake.lose(&call).await;
        fake.reloading(false).await;
        fake.serve(1).await;
    };
    let (started, ()) = soon(async { tokio::join!(begin(&manager, &spec), lost) }).await;
    started.unwrap();
    assert!(fake.units.contains_key(HOOK));
}

/// systemd started the unit, but its answer is lost: the caller must read the unit.
#[tokio::test]
async fn a_start_whose_answer_got_lost_is_in_doubt() {
    let (mut fake, manager, _hints) = Fake::connect().await;
    let spec = hook();
    let lost = async {
        let call = fake.take().await;
        fake.lose(&call).await;
        fake.reloading(false).await;
        fake.refuse = Some(("org.freedesktop.systemd1.UnitExists", "it is loaded"));
        fake.serve(1).await;
    };
    let (started, ()) = soon(async { tokio::join!(begin(&manager, &spec), lost) }).await;
    assert_eq!(started.unwrap_err().kind, ErrorKind::Unreachable);
}
