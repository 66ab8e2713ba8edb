//! Specification of a transient unit: only what differs from run to run. Sandbox, limits, kill
//! modes and all users except those of hooks are drop-ins of the package.

use super::{Names, UnitKind};
use crate::model::{CheckKind, CrawlId, Owner, RunId, SnapshotId, Subnet, public_url};
use crate::store::{Location, Task};
use crate::text::clean_to;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stdio {
    Journal,
    /// A descriptor passed with the call.
    Descriptor,
}

/// A private network that exists as long as a unit needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// Unit that creates it and connects it to the machine's network.
    pub unit: String,
    /// Its namespace (ip-netns(8)).
    pub path: PathBuf,
}

/// Networks that sockets of a unit cannot reach, and exceptions (IPAddressDeny=, IPAddressAllow=).
/// Drop-ins add the networks that are never reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressFilter {
    pub refused: Vec<Subnet>,
    /// Exceptions in IPAddressAllow=, which take precedence.
    pub allowed: Vec<Subnet>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitSpec {
    pub name: String,
    /// Kind of the unit, which determines properties and drop-ins.
    pub kind: UnitKind,
    pub slice: String,
    /// Description for `systemctl status`.
    pub description: String,
    /// Program and arguments, without expansion.
    pub argv: Vec<String>,
    /// `Type=notify` instead of `Type=simple`.
    pub notify: bool,
    /// Variables with their values, without expansion.
    pub environment: Vec<(String, String)>,
    /// Program that gets `argv`, `environment` and `working_directory` and executes them. Without
    /// it they are properties of the unit, which every local user can read.
    pub launcher: Option<String>,
    /// The launcher executes nothing from this time on (milliseconds on CLOCK_BOOTTIME): the
    /// orchestrator may have been stopped between its decision and the start.
    pub not_after: Option<u64>,
    /// Working directory; the default of systemd is `/`.
    pub working_directory: Option<PathBuf>,
    /// File that systemd opens as standard input before it changes the user; `None` is /dev/null. A
    /// descriptor would cost PID 1 a process to close it.
    pub stdin: Option<PathBuf>,
    /// Standard output. Standard error is the journal.
    pub stdout: Stdio,
    /// Time limit that systemd enforces, even without the orchestrator.
    pub limit: Option<Duration>,
    /// Directories of the archive that the unit may write to, at the same path.
    pub bind: Vec<PathBuf>,
    /// Same, read-only. A path after `-` may be missing (systemd.exec(5)).
    pub bind_read_only: Vec<PathBuf>,
    /// Credentials that it gets (systemd.exec(5)): the name, and a path or the name of a credential of
    /// the machine.
    pub credentials: Vec<(String, String)>,
    /// Directory that the unit sees as /tmp.
    pub tmp: Option<PathBuf>,
    /// Private network of the unit, which stops with it, instead of the machine's.
    pub network: Option<Network>,
    pub addresses: AddressFilter,
    pub wants: Vec<String>,
    /// User, unless its drop-ins decide.
    pub user: Option<String>,
    /// Fields of every journal line of the unit.
    pub log_fields: Vec<(&'static str, String)>,
}

/// Facts about a worker before its start.
pub struct WorkerSpec<'a> {
    /// Crawl or snapshot that it works on.
    pub owner: Owner,
    /// The crawl, or the crawl of the snapshot.
    pub crawl: CrawlId,
    /// URL of the snapshot, or the first URL of the crawl.
    pub url: &'a str,
    /// Path of the worker's program.
    pub program: &'a str,
    pub user_scope: bool,
    /// The archive, which the worker may write to.
    pub archive: PathBuf,
    /// Time limit, if any.
    pub limit: Option<Duration>,
    /// Private network of its hooks, which the worker keeps up between them.
    pub network: Option<Network>,
}

/// Facts about a hook before its start.
pub struct HookSpec<'a> {
    /// Crawl or snapshot that it works on.
    pub owner: Owner,
    /// The crawl, or the crawl of the snapshot.
    pub crawl: CrawlId,
    /// The snapshot; `None` for a hook of a crawl.
    pub snapshot: Option<SnapshotId>,
    /// URL of the snapshot, or the first URL of the crawl.
    pub url: &'a str,
    pub plugin: &'a str,
    pub hook: &'a str,
    pub unit_part: &'a str,
    pub argv: Vec<String>,
    pub environment: Vec<(String, String)>,
    /// [`UnitSpec::launcher`].
    pub launcher: Option<String>,
    /// [`UnitSpec::not_after`].
    pub not_after: Option<u64>,
    pub working_directory: PathBuf,
    /// Time limit that systemd enforces.
    pub limit: Duration,
    /// [`UnitSpec::bind`].
    pub bind: Vec<PathBuf>,
    /// [`UnitSpec::bind_read_only`].
    pub bind_read_only: Vec<PathBuf>,
    /// [`UnitSpec::tmp`].
    pub tmp: Option<PathBuf>,
    /// [`UnitSpec::network`].
    pub network: Option<Network>,
    /// [`UnitSpec::addresses`].
    pub addresses: AddressFilter,
    /// User, if not that of the service manager.
    pub user: Option<String>,
}

/// What a check or an alert is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject<'a> {
    /// A site of the watch of this name.
    Watch(&'a str),
    Crawl(CrawlId),
    Idle,
}

/// Facts about a check before its start.
pub struct CheckSpec<'a> {
    pub id: RunId,
    pub kind: CheckKind,
    pub subject: Subject<'a>,
    /// URL of the site or crawl.
    pub url: &'a str,
    pub argv: Vec<String>,
    pub environment: Vec<(String, String)>,
    /// [`UnitSpec::launcher`].
    pub launcher: Option<String>,
    /// [`UnitSpec::bind_read_only`].
    pub bind_read_only: Vec<PathBuf>,
    /// [`UnitSpec::credentials`].
    pub credentials: Vec<(String, String)>,
    /// [`UnitSpec::network`].
    pub network: Option<Network>,
    /// [`UnitSpec::addresses`].
    pub addresses: AddressFilter,
    pub wants: Vec<String>,
}

/// Facts about a transfer before its start.
pub struct StoreSpec<'a> {
    pub task: Task,
    /// Path of its program.
    pub program: &'a str,
    /// The snapshot; `None` for the test of the store.
    pub id: Option<SnapshotId>,
    /// Its crawl and its URL; `None` if it was deleted.
    pub page: Option<(CrawlId, &'a str)>,
    pub directory: Option<PathBuf>,
    /// Where the store is. With a directory of this machine, the unit has no network.
    pub store: Location,
    /// Time limit that systemd enforces.
    pub limit: Duration,
}

/// Longest URL in a description or journal field, in characters.
const URL_SHOWN: usize = 200;

/// Returns `url` for the properties of a unit, which every local user can read: without user name,
/// password, query and fragment, in one line of at most [`URL_SHOWN`] characters.
fn shown(url: &str) -> String {
    clean_to(&public_url(url), URL_SHOWN)
}

fn log_fields(
    names: &Names,
    crawl: CrawlId,
    owner: Owner,
    url: &str,
) -> Vec<(&'static str, String)> {
    let mut fields = vec![("ARCHIVIST_CRAWL_ID", crawl.0.to_string())];
    if let Owner::Snapshot(id) = owner {
        fields.push(("ARCHIVIST_SNAPSHOT_ID", id.0.to_string()));
    }
    if let Some(instance) = names.instance() {
        fields.push(("ARCHIVIST_INSTANCE", instance.to_owned()));
    }
    fields.push(("ARCHIVIST_URL", shown(url)));
    fields
}

impl UnitSpec {
    /// Returns a unit that runs `argv`, logs to the journal, and has what its drop-ins say.
    pub fn new(
        kind: UnitKind,
        name: String,
        slice: String,
        description: String,
        argv: Vec<String>,
    ) -> UnitSpec {
        UnitSpec {
            name,
            kind,
            slice,
            description,
            argv,
            notify: false,
            environment: Vec::new(),
            launcher: None,
            not_after: None,
            working_directory: None,
            stdin: None,
            stdout: Stdio::Journal,
            limit: None,
            bind: Vec::new(),
            bind_read_only: Vec::new(),
            credentials: Vec::new(),
            tmp: None,
            network: None,
            addresses: AddressFilter::default(),
            wants: Vec::new(),
            user: None,
            log_fields: Vec::new(),
        }
    }

    /// Returns the unit of one of many runs in a row.
    pub fn of_run(
        kind: UnitKind,
        names: &Names,
        run: RunId,
        description: String,
        argv: Vec<String>,
    ) -> UnitSpec {
        UnitSpec::new(kind, names.of_run(kind, run), names.top_slice(), description, argv)
    }

    /// Returns what the launcher reads from standard input: the time on CLOCK_BOOTTIME in
    /// milliseconds from which on it executes nothing, or nothing; the working directory or nothing;
    /// the number of arguments, the arguments, and `NAME=value` for each variable. Each is terminated
    /// by a NUL. `None` without a launcher. Text with a NUL cannot be passed to any program and is
    /// dropped.
    pub fn launch(&self) -> Option<Vec<u8>> {
        self.launcher.as_ref()?;
        let passable = |text: &&String| !text.contains('\0');
        let argv: Vec<&String> = self.argv.iter().filter(passable).collect();
        let not_after = self.not_after.map(|time| time.to_string());
        let mut out = format!("{}\0", not_after.unwrap_or_default()).into_bytes();
        let directory =
            self.working_directory.iter().map(|directory| directory.as_os_str().as_bytes());
        out.extend(directory.flatten());
        out.extend(format!("\0{}\0", argv.len()).bytes());
        for argument in argv {
            out.extend(argument.bytes().chain([0]));
        }
        for (name, value) in self.environment.iter().filter(|(_, value)| passable(&value)) {
            out.extend(format!("{name}={value}\0").bytes());
        }
        Some(out)
    }

    /// Returns the unit of a worker of a crawl or snapshot, without its standard input, an
    /// assignment.
    pub fn worker(names: &Names, worker: WorkerSpec<'_>) -> UnitSpec {
        let (name, kind, noun) = match worker.owner {
            Owner::Crawl(id) => (names.crawl_worker(id), UnitKind::CrawlWorker, "crawl"),
            Owner::Snapshot(id) => {
                (names.snapshot_worker(id), UnitKind::SnapshotWorker, "snapshot")
            }
        };
        let mut argv = vec![worker.program.to_owned()];
        if worker.user_scope {
            argv.push("--user".to_owned());
        }
        argv.push("worker".to_owned());
        let description = format!("Archive {noun} {}: {}", worker.owner, shown(worker.url));
        let slice = names.crawl_slice(worker.crawl);
        UnitSpec {
            notify: true,
            limit: worker.limit,
            bind: vec![worker.archive],
            wants: worker.network.map(|network| network.unit).into_iter().collect(),
            log_fields: log_fields(names, worker.crawl, worker.owner, worker.url),
            ..UnitSpec::new(kind, name, slice, description, argv)
        }
    }

    /// Returns the unit of a hook, without its standard input, which the launcher reads.
    pub fn hook(names: &Names, hook: HookSpec<'_>) -> UnitSpec {
        let mut fields = log_fields(names, hook.crawl, hook.owner, hook.url);
        fields.push(("ARCHIVIST_PLUGIN", hook.plugin.to_owned()));
        fields.push(("ARCHIVIST_HOOK", hook.hook.to_owned()));
        let name = names.hook(hook.plugin, hook.unit_part, hook.owner);
        let (part, owner) = (hook.unit_part, hook.owner);
        let description = format!("Hook {part} of {owner}: {}", shown(hook.url));
        let slice = names.crawl_slice(hook.crawl);
        UnitSpec {
            environment: hook.environment,
            launcher: hook.launcher,
            not_after: hook.not_after,
            working_directory: Some(hook.working_directory),
            stdout: Stdio::Descriptor,
            limit: Some(hook.limit),
            bind: hook.bind,
            bind_read_only: hook.bind_read_only,
            tmp: hook.tmp,
            network: hook.network,
            addresses: hook.addresses,
            user: hook.user,
            log_fields: fields,
            ..UnitSpec::new(UnitKind::Hook, name, slice, description, hook.argv)
        }
    }

    /// Returns the unit of a transfer between the archive and its store. Its standard input, an
    /// assignment, is set with the start; its record is its standard output.
    pub fn store(names: &Names, transfer: StoreSpec<'_>) -> UnitSpec {
        // The program says more than systemd about a missing directory, of the store or of a page to copy.
        let maybe = |path: &PathBuf| PathBuf::from(format!("-{}", path.display()));
        let store = transfer.store.directory().map(Path::to_owned);
        let mut bind: Vec<PathBuf> = store.iter().map(maybe).collect();
        let mut bind_read_only = Vec::new();
        if transfer.task.writes_locally() {
            bind.extend(transfer.directory);
        } else {
            bind_read_only.extend(transfer.directory.iter().map(maybe));
        }
        let verb = match transfer.task {
            Task::Put => "Copy",
            Task::Drop => "Remove local files of",
            Task::Get => "Restore",
            Task::Delete => "Delete the copy of",
            Task::Test => "Test",
        };
        let everything = || ["0.0.0.0/0", "::/0"].map(str::parse).into_iter().flatten();
        let name = names.store(transfer.id);
        let description = match (transfer.id, transfer.page) {
            (Some(id), Some((_, url))) => format!("{verb} {id} (store): {}", shown(url)),
            (Some(id), None) => format!("{verb} {id} (store)"),
            (None, _) => format!("{verb} the store"),
        };
        let argv = vec![transfer.program.to_owned()];
        UnitSpec {
            stdout: Stdio::Descriptor,
            limit: Some(transfer.limit),
            bind,
            bind_read_only,
            credentials: {
                let names = transfer.store.credentials().iter();
                names.map(|name| ((*name).to_owned(), (*name).to_owned())).collect()
            },
            addresses: AddressFilter {
                refused: store.iter().flat_map(|_| everything()).collect(),
                allowed: Vec::new(),
            },
            log_fields: match (transfer.id, transfer.page) {
                (Some(id), Some((crawl, url))) => {
                    log_fields(names, crawl, Owner::Snapshot(id), url)
                }
                _ => Vec::new(),
            },
            ..UnitSpec::new(UnitKind::Store, name, names.store_slice(), description, argv)
        }
    }

    /// Returns the unit that changes the index of full text search, for a number of snapshots, without its
    /// standard input, the changes. It may write the index, and read the archive.
    pub fn index(
        names: &Names,
        program: &str,
        (index, archive): (PathBuf, PathBuf),
        count: usize,
        limit: Duration,
    ) -> UnitSpec {
        let argv = vec![program.to_owned(), "change".to_owned()];
        let description = format!("Index the text of pages ({count})");
        UnitSpec {
            limit: Some(limit),
            bind: vec![index],
            bind_read_only: vec![archive],
            ..UnitSpec::new(
                UnitKind::Index,
                names.index_pages(),
                names.top_slice(),
                description,
                argv,
            )
        }
    }

    /// Returns the unit that asks the index of full text search, without its standard input, a question.
    /// Its standard output, the answer, is a passed descriptor.
    pub fn search(
        names: &Names,
        id: RunId,
        program: &str,
        (index, archive): (PathBuf, PathBuf),
        limit: Duration,
    ) -> UnitSpec {
        let argv =
            vec![program.to_owned(), "answer".to_owned(), index.to_string_lossy().into_owned()];
        UnitSpec {
            stdout: Stdio::Descriptor,
            limit: Some(limit),
            bind_read_only: vec![index, archive],
            ..UnitSpec::of_run(
                UnitKind::Search,
                names,
                id,
                "Search the text of pages".to_owned(),
                argv,
            )
        }
    }

    /// Returns the unit of a check of a watch, without its standard input, a request. Its standard
    /// output is a passed descriptor.
    pub fn check(names: &Names, check: CheckSpec<'_>) -> UnitSpec {
        let (unit_kind, stdout) = match check.kind {
            CheckKind::Alert => (UnitKind::Alert, Stdio::Journal),
            _ => (UnitKind::Check, Stdio::Descriptor),
        };
        let url = shown(check.url);
        let description = match (check.kind, check.subject) {
            (CheckKind::Alert, Subject::Watch(watch)) => format!("Alert of watch {watch}: {url}"),
            (kind, Subject::Watch(watch)) => format!("Check {kind} of watch {watch}: {url}"),
            (_, Subject::Crawl(crawl)) => format!("Alert of crawl {crawl}: {url}"),
            (_, Subject::Idle) => "Alert that no crawl is left".to_owned(),
        };
        let name = names.check(check.kind, check.id);
        let slice = names.check_slice(check.kind.pool());
        UnitSpec {
            environment: check.environment,
            launcher: check.launcher,
            stdout,
            limit: Some(check.kind.limit()),
            bind_read_only: check.bind_read_only,
            credentials: check.credentials,
            network: check.network,
            addresses: check.addresses,
            wants: check.wants,
            log_fields: match check.subject {
                Subject::Watch(watch) => {
                    vec![("ARCHIVIST_WATCH", watch.to_owned()), ("ARCHIVIST_URL", url)]
                }
                Subject::Crawl(crawl) => log_fields(names, crawl, Owner::Crawl(crawl), check.url),
                Subject::Idle => Vec::new(),
            },
            ..UnitSpec::new(unit_kind, name, slice, description, check.argv)
        }
    }
}
