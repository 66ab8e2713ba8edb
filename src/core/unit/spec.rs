//! Specification of a transient unit: only what differs from run to run. Sandbox, limits, kill
//! modes and all users except those of hooks are drop-ins of the package.

use super::{Names, UnitKind};
use crate::model::{CheckKind, CrawlId, Owner, RunId, SnapshotId, Subnet, public_url};
use crate::text::clean_to;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

/// Target of a standard stream of the unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stdio {
    /// /dev/null.
    Null,
    /// The journal.
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
    /// Networks in IPAddressDeny=.
    pub refused: Vec<Subnet>,
    /// Exceptions in IPAddressAllow=, which take precedence.
    pub allowed: Vec<Subnet>,
}

/// A unit to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitSpec {
    /// Name of the unit with its suffix.
    pub name: String,
    /// Kind of the unit, which determines properties and drop-ins.
    pub kind: UnitKind,
    /// Name of the slice.
    pub slice: String,
    /// Description for `systemctl status`.
    pub description: String,
    /// Program and arguments, without expansion.
    pub argv: Vec<String>,
    /// `Type=notify` instead of `Type=exec`.
    pub notify: bool,
    /// Variables with their values, without expansion.
    pub environment: Vec<(String, String)>,
    /// Program that gets `argv`, `environment` and `working_directory` and executes them. Without
    /// it they are properties of the unit, which every local user can read.
    pub launcher: Option<String>,
    /// Working directory; the default of systemd is `/`.
    pub working_directory: Option<PathBuf>,
    /// Standard input.
    pub stdin: Stdio,
    /// Standard output and standard error.
    pub stdout: Stdio,
    /// Time limit that systemd enforces, even without the orchestrator.
    pub limit: Option<Duration>,
    /// Directories of the archive that the unit may write to, at the same path.
    pub bind: Vec<PathBuf>,
    /// Same, read-only. A path after `-` may be missing (systemd.exec(5)).
    pub bind_read_only: Vec<PathBuf>,
    /// Directory that the unit sees as /tmp.
    pub tmp: Option<PathBuf>,
    /// Private network of the unit, which stops with it, instead of the machine's.
    pub network: Option<Network>,
    /// Networks that its sockets cannot reach.
    pub addresses: AddressFilter,
    /// Units to start with it.
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
    /// Whether the service manager is that of a user.
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
    /// Name of its plugin.
    pub plugin: &'a str,
    /// Name of the hook within its plugin.
    pub hook: &'a str,
    /// Part of the unit name for the hook.
    pub unit_part: &'a str,
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Variables with their values.
    pub environment: Vec<(String, String)>,
    /// [`UnitSpec::launcher`].
    pub launcher: Option<String>,
    /// Directory that the hook writes to.
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
    /// The end of a crawl.
    Crawl(CrawlId),
    /// The end of all crawls.
    Idle,
}

/// Facts about a check before its start.
pub struct CheckSpec<'a> {
    /// Run of the check.
    pub id: RunId,
    /// What is checked.
    pub kind: CheckKind,
    /// What it is about.
    pub subject: Subject<'a>,
    /// URL of the site or crawl.
    pub url: &'a str,
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Variables with their values.
    pub environment: Vec<(String, String)>,
    /// [`UnitSpec::launcher`].
    pub launcher: Option<String>,
    /// [`UnitSpec::bind_read_only`].
    pub bind_read_only: Vec<PathBuf>,
    /// [`UnitSpec::network`].
    pub network: Option<Network>,
    /// [`UnitSpec::addresses`].
    pub addresses: AddressFilter,
    /// Units to start with it.
    pub wants: Vec<String>,
}

/// Longest URL in a description or journal field, in characters.
const URL_SHOWN: usize = 200;

/// Returns `url` for the properties of a unit, which every local user can read: without user name,
/// password, query and fragment, in one line of at most [`URL_SHOWN`] characters.
fn shown(url: &str) -> String {
    clean_to(&public_url(url), URL_SHOWN)
}

fn log_fields(crawl: CrawlId, owner: Owner, url: &str) -> Vec<(&'static str, String)> {
    let mut fields = vec![("ARCHIVIST_CRAWL_ID", crawl.0.to_string())];
    if let Owner::Snapshot(id) = owner {
        fields.push(("ARCHIVIST_SNAPSHOT_ID", id.0.to_string()));
    }
    fields.push(("ARCHIVIST_URL", shown(url)));
    fields
}

/// Standard input of a program that reads nothing: the launcher reads it, and leaves /dev/null in
/// its place.
fn stdin_of(launcher: Option<&String>) -> Stdio {
    match launcher {
        Some(_) => Stdio::Descriptor,
        None => Stdio::Null,
    }
}

impl UnitSpec {
    /// Returns what the launcher reads from standard input: the working directory or nothing, the
    /// number of arguments, the arguments, and `NAME=value` for each variable, each terminated by a
    /// NUL. `None` without a launcher. Text with a NUL cannot be passed to any program and is
    /// dropped.
    pub fn launch(&self) -> Option<Vec<u8>> {
        self.launcher.as_ref()?;
        let passable = |text: &&String| !text.contains('\0');
        let argv: Vec<&String> = self.argv.iter().filter(passable).collect();
        let directory = self
            .working_directory
            .iter()
            .map(|directory| directory.as_os_str().as_bytes());
        let mut out: Vec<u8> = directory.flatten().copied().collect();
        out.extend(format!("\0{}\0", argv.len()).bytes());
        for argument in argv {
            out.extend(argument.bytes().chain([0]));
        }
        for (name, value) in self
            .environment
            .iter()
            .filter(|(_, value)| passable(&value))
        {
            out.extend(format!("{name}={value}\0").bytes());
        }
        Some(out)
    }

    /// Returns the unit of a worker of a crawl or snapshot; its assignment is its standard input.
    pub fn worker(names: &Names, worker: WorkerSpec<'_>) -> UnitSpec {
        let (name, kind, noun) = match worker.owner {
            Owner::Crawl(id) => (names.crawl_worker(id), UnitKind::CrawlWorker, "crawl"),
            Owner::Snapshot(id) => (
                names.snapshot_worker(id),
                UnitKind::SnapshotWorker,
                "snapshot",
            ),
        };
        let mut argv = vec![worker.program.to_owned()];
        if worker.user_scope {
            argv.push("--user".to_owned());
        }
        argv.push("worker".to_owned());
        UnitSpec {
            name,
            kind,
            slice: names.crawl_slice(worker.crawl),
            description: format!("Archive {noun} {}: {}", worker.owner, shown(worker.url)),
            argv,
            notify: true,
            environment: Vec::new(),
            launcher: None,
            working_directory: None,
            stdin: Stdio::Descriptor,
            stdout: Stdio::Journal,
            limit: worker.limit,
            bind: vec![worker.archive],
            bind_read_only: Vec::new(),
            tmp: None,
            network: None,
            addresses: AddressFilter::default(),
            wants: worker
                .network
                .map(|network| network.unit)
                .into_iter()
                .collect(),
            user: None,
            log_fields: log_fields(worker.crawl, worker.owner, worker.url),
        }
    }

    /// Returns the unit of a hook.
    pub fn hook(names: &Names, hook: HookSpec<'_>) -> UnitSpec {
        let mut fields = log_fields(hook.crawl, hook.owner, hook.url);
        fields.push(("ARCHIVIST_PLUGIN", hook.plugin.to_owned()));
        fields.push(("ARCHIVIST_HOOK", hook.hook.to_owned()));
        UnitSpec {
            name: names.hook(hook.plugin, hook.unit_part, hook.owner),
            kind: UnitKind::Hook,
            slice: names.crawl_slice(hook.crawl),
            description: format!(
                "Hook {} of {}: {}",
                hook.unit_part,
                hook.owner,
                shown(hook.url)
            ),
            argv: hook.argv,
            notify: false,
            environment: hook.environment,
            stdin: stdin_of(hook.launcher.as_ref()),
            launcher: hook.launcher,
            working_directory: Some(hook.working_directory),
            stdout: Stdio::Descriptor,
            limit: Some(hook.limit),
            bind: hook.bind,
            bind_read_only: hook.bind_read_only,
            tmp: hook.tmp,
            network: hook.network,
            addresses: hook.addresses,
            wants: Vec::new(),
            user: hook.user,
            log_fields: fields,
        }
    }

    /// Returns the unit of a check of a watch. Its request is its standard input; its standard
    /// output is a passed descriptor.
    pub fn check(names: &Names, check: CheckSpec<'_>) -> UnitSpec {
        let kind = check.kind;
        UnitSpec {
            name: names.check(kind, check.id),
            kind: match kind {
                CheckKind::Alert => UnitKind::Alert,
                _ => UnitKind::Check,
            },
            slice: names.check_slice(kind.pool()),
            description: match (kind, check.subject) {
                (CheckKind::Alert, Subject::Watch(watch)) => {
                    format!("Alert of watch {watch}: {}", shown(check.url))
                }
                (kind, Subject::Watch(watch)) => {
                    format!("Check {kind} of watch {watch}: {}", shown(check.url))
                }
                (_, Subject::Crawl(crawl)) => {
                    format!("Alert of crawl {crawl}: {}", shown(check.url))
                }
                (_, Subject::Idle) => "Alert that no crawl is left".to_owned(),
            },
            argv: check.argv,
            notify: false,
            environment: check.environment,
            stdin: match kind {
                CheckKind::Alert => stdin_of(check.launcher.as_ref()),
                _ => Stdio::Descriptor,
            },
            launcher: check.launcher,
            working_directory: None,
            stdout: match kind {
                CheckKind::Alert => Stdio::Journal,
                _ => Stdio::Descriptor,
            },
            limit: Some(kind.limit()),
            bind: Vec::new(),
            bind_read_only: check.bind_read_only,
            tmp: None,
            network: check.network,
            addresses: check.addresses,
            wants: check.wants,
            user: None,
            log_fields: match check.subject {
                Subject::Watch(watch) => vec![
                    ("ARCHIVIST_WATCH", watch.to_owned()),
                    ("ARCHIVIST_URL", shown(check.url)),
                ],
                Subject::Crawl(crawl) => log_fields(crawl, Owner::Crawl(crawl), check.url),
                Subject::Idle => Vec::new(),
            },
        }
    }
}
