//! The properties of every unit shape, as they go over the bus. `UPDATE_GOLDEN=1` rewrites the
//! files, so that the diff shows what changed.

use archivist_core::model::{CheckKind, ClientIdentity, CrawlId, Owner, Reach, RunId, SnapshotId};
use archivist_core::store::{Location, Task};
use archivist_core::unit::{
    AddressFilter, CheckSpec, HookSpec, Names, Network, Property, StoreSpec, Subject, UnitKind,
    UnitSpec, WorkerSpec, properties,
};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

const URL: &str = "https://bob:hunter2@example.org/a%n${HOME}$(id)?q=secret";
const LAUNCHER: &str = "/usr/lib/archivist/archivist-hook-exec";

fn names() -> Names {
    Names::new("archivist")
}

fn worker(names: &Names, owner: Owner, user_scope: bool) -> UnitSpec {
    worker_in(names, owner, user_scope, None)
}

fn worker_in(names: &Names, owner: Owner, user_scope: bool, network: Option<Network>) -> UnitSpec {
    let worker = WorkerSpec {
        owner,
        crawl: CrawlId(12),
        url: URL,
        program: "/usr/lib/archivist/archivist-orchestrator",
        user_scope,
        archive: "/var/lib/archivist/archive".into(),
        limit: matches!(owner, Owner::Snapshot(_)).then_some(Duration::from_secs(12 * 3600)),
        network,
    };
    UnitSpec::worker(names, worker)
}

/// The filter of hooks and checks that reach the Internet and a name server.
fn public() -> AddressFilter {
    AddressFilter {
        refused: Reach::default().refused(&[]),
        allowed: vec!["192.168.1.1".parse().unwrap()],
    }
}

fn snapshot() -> Owner {
    Owner::Snapshot(SnapshotId(345))
}

/// One hook; `background` hooks differ in nothing but their limit.
fn hook(owner: Owner, plugin: &str, hook: &str, part: &str, limit: u64) -> UnitSpec {
    let own = match owner {
        Owner::Crawl(_) => "/var/lib/archivist/archive/20260101/example.org/c12",
        Owner::Snapshot(_) => "/var/lib/archivist/archive/20260101/example.org/s345",
    };
    let mut bind: Vec<PathBuf> = vec![own.into()];
    if matches!(owner, Owner::Snapshot(_)) {
        bind.push("/var/lib/archivist/archive/20260101/example.org/c12".into());
    }
    let program = format!("/usr/share/archivist/plugins/{plugin}/{hook}.py");
    let spec = HookSpec {
        owner,
        crawl: CrawlId(12),
        snapshot: match owner {
            Owner::Snapshot(id) => Some(id),
            Owner::Crawl(_) => None,
        },
        url: URL,
        plugin,
        hook,
        unit_part: part,
        argv: vec![program, format!("--url={URL}")],
        environment: vec![
            ("EXTRA_CONTEXT".into(), "{\"snapshot_id\":\"s345\"}".into()),
            ("PATH".into(), "/usr/bin:/bin".into()),
            ("WGET_API_KEY".into(), "secret".into()),
        ],
        launcher: Some(LAUNCHER.into()),
        not_after: None,
        working_directory: Path::new(own).join(plugin),
        limit: Duration::from_secs(limit),
        bind,
        bind_read_only: Vec::new(),
        tmp: None,
        network: None,
        addresses: public(),
        user: Some("archivist-hook-12".into()),
    };
    UnitSpec::hook(&names(), spec)
}

fn check(kind: CheckKind, argv: &[&str], wants: &[&str]) -> UnitSpec {
    let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
    let check = CheckSpec {
        id: RunId(678),
        kind,
        subject: Subject::Watch("example"),
        url: URL,
        argv: texts(argv),
        credentials: Vec::new(),
        environment: match kind {
            CheckKind::Alert => vec![("ARCHIVIST_URL".into(), URL.into())],
            _ => Vec::new(),
        },
        launcher: (kind == CheckKind::Alert).then(|| LAUNCHER.into()),
        bind_read_only: Vec::new(),
        network: None,
        addresses: match kind {
            CheckKind::Alert => AddressFilter::default(),
            _ => public(),
        },
        wants: texts(wants),
    };
    UnitSpec::check(&names(), check)
}

/// A transfer. With a directory as the store it has no network, with another host it has credentials.
fn transfer(task: Task, store: &str) -> UnitSpec {
    let spec = StoreSpec {
        task,
        program: "/usr/lib/archivist/archivist-store",
        id: Some(SnapshotId(345)),
        page: Some((CrawlId(12), URL)),
        directory: Some("/var/lib/archivist/archive/20260101/example.org/s345".into()),
        store: Location::parse(store).unwrap(),
        limit: Duration::from_secs(6 * 3600),
    };
    UnitSpec::store(&names(), spec)
}

/// Every shape by the name of its file.
fn shapes() -> Vec<(&'static str, UnitSpec)> {
    let crawl = Owner::Crawl(CrawlId(12));
    let hidden = UnitSpec {
        bind_read_only: vec!["/home/me/plugins".into()],
        tmp: None,
        ..hook(snapshot(), "mine", "on_Snapshot__50_mine", "mine", 60)
    };
    let network = || Some(names().network(CrawlId(12), false));
    let in_own_network = UnitSpec {
        network: network(),
        ..hook(snapshot(), "title", "on_Snapshot__54_title", "title", 60)
    };
    let of_user = UnitSpec {
        launcher: None,
        ..hook(snapshot(), "title", "on_Snapshot__54_title", "title", 60)
    };
    let with_network = worker_in(&names(), snapshot(), false, network());
    let shapes = vec![
        ("check-status", check(CheckKind::Status, &["/usr/bin/archivist", "check", "status"], &[])),
        (
            "check-crawl-certificate",
            UnitSpec {
                credentials: ClientIdentity {
                    certificate: "/etc/archivist/client.pem".into(),
                    key: "archivist.client".into(),
                }
                .credentials(),
                ..check(CheckKind::Crawl, &["/usr/bin/archivist", "check", "crawl"], &[])
            },
        ),
        ("alert-unit", check(CheckKind::Alert, &["/bin/true"], &["notify@example.service"])),
        ("crawl-worker", worker(&names(), crawl, false)),
        ("snapshot-worker", worker(&names(), snapshot(), false)),
        ("user-snapshot-worker", worker(&names(), snapshot(), true)),
        ("instance-snapshot-worker", worker(&Names::new("archivist-second"), snapshot(), false)),
        ("hook-foreground", hook(snapshot(), "title", "on_Snapshot__54_title", "title", 60)),
        ("hook-finite", hook(snapshot(), "wget", "on_Snapshot__06_wget.finite.bg", "wget", 120)),
        (
            "hook-daemon",
            hook(
                crawl,
                "chrome",
                "on_CrawlSetup__90_chrome_launch.daemon.bg",
                "chrome_launch",
                12 * 3600,
            ),
        ),
        ("hook-crawl-end", hook(crawl, "index", "on_CrawlCleanup__90_index", "index", 60)),
        ("hook-of-hidden-plugin", hidden),
        ("user-hook", of_user),
        ("hook-in-own-network", in_own_network),
        ("networked-snapshot-worker", with_network),
        ("store-put", transfer(Task::Put, "/srv/store")),
        ("store-drop", transfer(Task::Drop, "/srv/store")),
        (
            "index-pages",
            UnitSpec::index(
                &names(),
                "/usr/lib/archivist/archivist-search",
                ("/var/lib/archivist/index/search".into(), "/var/lib/archivist/archive".into()),
                3,
                Duration::from_secs(3600),
            ),
        ),
        (
            "search",
            UnitSpec::search(
                &names(),
                RunId(5),
                "/usr/lib/archivist/archivist-search",
                ("/var/lib/archivist/index/search".into(), "/var/lib/archivist/archive".into()),
                Duration::from_secs(60),
            ),
        ),
        ("store-put-ssh", transfer(Task::Put, "ssh://me@nas.example/pages")),
    ];
    shapes.into_iter().map(|(name, spec)| (name, with_input(spec))).collect()
}

/// A unit as the orchestrator starts it. Hooks of a user read nothing.
fn with_input(spec: UnitSpec) -> UnitSpec {
    let reads = spec.kind != UnitKind::Hook || spec.launcher.is_some();
    let input = PathBuf::from(format!("/run/archivist/input/{}.7", spec.name));
    UnitSpec { stdin: reads.then_some(input), ..spec }
}

fn document(spec: &UnitSpec) -> Value {
    let pairs = properties(spec).into_iter();
    let pairs = pairs.map(|(name, value)| (name.to_owned(), json!(value)));
    json!({ "name": spec.name, "properties": pairs.collect::<Map<_, _>>() })
}

#[test]
fn unit_shapes_are_as_agreed() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut differing = Vec::new();
    for (name, spec) in shapes() {
        let path = directory.join(format!("{name}.json"));
        let text = serde_json::to_string_pretty(&document(&spec)).unwrap() + "\n";
        if update {
            std::fs::write(&path, &text).unwrap();
        }
        let golden = std::fs::read_to_string(&path).unwrap_or_default();
        if golden != text {
            differing.push(format!("{}:\n{text}", path.display()));
        }
    }
    let hint = "UPDATE_GOLDEN=1 cargo test --test all golden:: writes them anew";
    assert!(differing.is_empty(), "{hint}\n{}", differing.join("\n"));
}

#[test]
fn every_golden_file_has_a_shape() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let known: Vec<String> = shapes().iter().map(|(name, _)| format!("{name}.json")).collect();
    for entry in std::fs::read_dir(directory).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(known.contains(&name), "tests/golden/{name} is nobody's");
    }
}

/// What every local user can read of a unit: `systemctl show`, and its file in /run/systemd/transient.
#[test]
fn no_unit_of_the_machine_shows_a_secret() {
    for (name, spec) in shapes() {
        let text = document(&spec).to_string();
        for secret in ["hunter2", "secret"] {
            assert!(!text.contains(secret) || name == "user-hook", "{name}: {text}");
        }
        let launch = spec.launch().map(|bytes| String::from_utf8(bytes).unwrap());
        assert_eq!(launch.is_some(), spec.launcher.is_some(), "{name}");
        assert!(launch.is_none_or(|text| text.contains("hunter2")), "{name}");
    }
}

/// systemd refuses to start a unit with a property that it does not know; 252 knows these.
const KNOWN_SINCE_252: &str = "After BindPaths BindReadOnlyPaths BindsTo CollectMode Description Environment ExecStart \
    ExecStartEx IPAddressAllow IPAddressDeny LoadCredential LogExtraFields \
    NetworkNamespacePath NotifyAccess RemainAfterExit RuntimeMaxUSec Slice StandardError \
    StandardInput StandardInputFile StandardOutput StandardOutputFileDescriptor \
    SyslogIdentifier Type User Wants WorkingDirectory";

/// A unit with `ExecStartEx=` loses its slice after a `daemon-reload` of systemd 252, so only those
/// have it that need it.
#[test]
fn every_release_starts_every_shape() {
    for (name, spec) in shapes() {
        for (property, value) in properties(&spec) {
            let mut known = KNOWN_SINCE_252.split_whitespace();
            assert!(known.any(|known| known == property), "{name}: {property} is newer than 252");
            if let Property::LiteralCommand(argv) = value {
                assert!(argv.concat().contains('$'), "{name}: {property} for {argv:?}");
            }
        }
    }
}

/// Laws that hold for every shape, whatever the files say.
#[test]
fn every_unit_is_readable_after_its_end_and_expands_nothing() {
    for (name, spec) in shapes() {
        let properties = properties(&spec);
        let get = |key: &str| {
            let mut all = properties.iter();
            all.find(|(name, _)| *name == key).map(|(_, value)| value.clone())
        };
        let text = |text: &str| Some(Property::Text(text.into()));
        assert_eq!(get("RemainAfterExit"), Some(Property::Flag(true)), "{name}");
        assert_eq!(get("CollectMode"), text("inactive"), "{name}");
        assert_ne!(get("Type"), text("oneshot"), "{name}");
        let argv = match (get("ExecStart"), get("ExecStartEx")) {
            (Some(Property::Command(argv)), None) => {
                assert!(!argv.concat().contains('$'), "{name}: {argv:?}");
                argv
            }
            (None, Some(Property::LiteralCommand(argv))) => argv,
            other => panic!("{name}: {other:?}"),
        };
        match &spec.launcher {
            None => assert_eq!(argv, spec.argv, "{name}"),
            Some(launcher) => assert_eq!(argv, [launcher.as_str(), &spec.argv[0]], "{name}"),
        }
        // A crawl is over when its pages are.
        let is_crawl = name == "crawl-worker";
        assert_eq!(get("RuntimeMaxUSec").is_none(), is_crawl, "{name}");
        // No drop-in gives a hook its user: without one here it would be root.
        let user = spec.name.contains("-hook-").then_some("archivist-hook-12");
        assert_eq!(get("User"), user.and_then(text), "{name}");
        for policy in ["ProtectSystem", "MemoryMax", "KillMode"] {
            assert_eq!(get(policy), None, "{name}: policy is in the drop-ins");
        }
    }
}
