//! Log entries of a turn. They are actions: the journal reports a change only after the
//! transaction that made it was committed. The message catalog explains the entries that have a
//! message id, from the fields that are set here.

use archivist_core::model::{
    CheckKind, CrawlId, IdMarks, Outcome, Owner, SnapshotId, Time, Verdict,
};
use archivist_core::store::Task;
use archivist_core::text::human_size;
use archivist_shared::journal::message;
use std::path::PathBuf;

/// One log entry, with everything that its line and its fields need.
#[derive(Clone, Debug, PartialEq)]
pub enum LogEntry {
    Crawl(CrawlId, CrawlLog),
    Snapshot(CrawlId, SnapshotId, SnapshotLog),
    Hook(CrawlId, HookLog),
    /// A unit ended in a way that is not the usual one.
    UnitEnded(Box<UnitEnd>),
    Watch(String, WatchLog),
    Paused(Owner),
    Resumed(Owner),
    HostDelayed {
        id: SnapshotId,
        until: Time,
    },
    Recovered {
        adopted: u32,
        lost: u32,
        released: u32,
    },
    ChecksPruned(usize),
    /// A transfer ended.
    Store(SnapshotId, Task, StoreLog),
    /// The files of deleted crawls and snapshots could not be removed.
    Removal(RemovalLog),
    /// A setting such as `Retention=` or `Quota=` deleted pages.
    Expired {
        cause: String,
        pages: Vec<SnapshotId>,
    },
    /// The file of the database became smaller after a deletion. Its size in bytes.
    Shrunk(u64),
    /// The index of full text search could not be changed.
    Index(IndexLog),
    /// The directories of entries of a list could not be written.
    Entries(EntriesLog),
    Problem(Problem),
}

/// Why the directories of entries were not written.
#[derive(Clone, Debug, PartialEq)]
pub struct EntriesLog {
    pub unit: String,
    pub reason: String,
    /// Whether each page gets a worker instead.
    pub is_last: bool,
}

/// Why deleted files were not removed.
#[derive(Clone, Debug, PartialEq)]
pub struct RemovalLog {
    pub unit: String,
    pub reason: String,
    pub retry_at: Time,
}

/// Why the index was not changed.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexLog {
    pub unit: String,
    pub reason: String,
    /// Whether it is built again.
    pub rebuilds: bool,
    pub retry_at: Time,
}

/// How a transfer to or from the store ended.
#[derive(Clone, Debug, PartialEq)]
pub enum StoreLog {
    Done,
    Failed { unit: String, reason: String, retry_at: Option<Time> },
}

/// What happened to a crawl.
#[derive(Clone, Debug, PartialEq)]
pub enum CrawlLog {
    Added {
        url: String,
        urls: u64,
        depth: u32,
    },
    InstallAdded {
        url: String,
        missing: u64,
    },
    Sealed {
        succeeded: u64,
        failed: u64,
        remark: Option<String>,
    },
    GivenUp {
        succeeded: u64,
        failed: u64,
        reason: String,
    },
    Cancelled(String),
    /// Why pages are left out, and how many.
    PagesLeftOut(String, usize),
    /// How many entries of a list were sealed.
    EntriesKept(usize),
}

/// What the end of its worker means for a snapshot.
#[derive(Clone, Debug, PartialEq)]
pub enum SnapshotLog {
    Sealed {
        url: String,
        failed: usize,
        hooks: usize,
    },
    Quarantined {
        url: String,
        attempts: u32,
        reason: String,
    },
    /// It is queued again, or cancelled.
    WorkerEnded(Option<String>),
}

/// What a hook did, and what it was refused.
#[derive(Clone, Debug, PartialEq)]
pub enum HookLog {
    Result {
        owner: Owner,
        plugin: String,
        hook: String,
        verdict: Verdict,
    },
    /// It is killed because the disk is nearly full and it has written most.
    KilledForDisk {
        unit: String,
        plugin: Option<String>,
        hook: Option<String>,
        shortage: String,
        bytes: u64,
        files: u64,
    },
    SettingRefused {
        key: String,
        name: String,
        why: String,
    },
    ServerRefused {
        key: String,
        why: &'static str,
    },
    ProgramsMissing {
        key: String,
    },
}

/// What happened to a check of a watch, or to a watched site.
#[derive(Clone, Debug, PartialEq)]
pub enum WatchLog {
    CheckFailed { kind: CheckKind, url: String, unit: String, error: Option<String> },
    SiteDown { url: String, status_code: u16, since: Time, error: String },
    SiteUp { url: String, since: Time },
}

/// What the orchestrator itself failed to do, and survives.
#[derive(Clone, Debug, PartialEq)]
pub enum Problem {
    /// A line of a watch that makes no sense.
    Declaration(String),
    UnitNotRead(String),
    UnitsNotListed(String),
    EventRefused(String),
    StartRefused {
        what: String,
        why: String,
    },
    /// The database of the fleet refuses a request of this node.
    FleetRefused(String),
    /// A crawl that comes from the database of the fleet, and why its pages fail.
    FleetCrawlUnreadable(CrawlId, String),
    /// The unit of `OnSealed=` and its siblings.
    AlertFailed {
        occasion: String,
        unit: String,
        why: String,
    },
    /// The disk is nearly full, and no hook has written much.
    DiskShort(String),
    /// The clock of the machine is not believed.
    ClockDoubted(String),
    /// Rules of `Retention=` would delete too much at once.
    RetentionHeld(String),
    /// The archive has higher ids than the database, which continues above them.
    IdsRaised {
        database: IdMarks,
        archive: IdMarks,
    },
    /// The directory of a crawl or snapshot belongs to another one.
    DirectoryTaken {
        owner: Owner,
        taken: PathBuf,
        other: PathBuf,
    },
}

/// How a unit of a run ended.
#[derive(Clone, Debug, PartialEq)]
pub struct UnitEnd {
    pub message: &'static str,
    pub crawl: CrawlId,
    pub owner: Owner,
    pub url: String,
    pub plugin: Option<String>,
    pub hook: Option<String>,
    pub unit: String,
    pub outcome: Outcome,
    pub attempt: u32,
    /// In bytes.
    pub memory_peak: Option<u64>,
}

fn snapshot_of(owner: Owner) -> Option<i64> {
    match owner {
        Owner::Snapshot(id) => Some(id.0),
        Owner::Crawl(_) => None,
    }
}

impl LogEntry {
    /// Writes the entry to the journal.
    pub fn write(&self) {
        match self {
            LogEntry::Crawl(id, log) => log.write(*id),
            LogEntry::Snapshot(crawl, id, log) => log.write(*crawl, *id),
            LogEntry::Hook(crawl, log) => log.write(*crawl),
            LogEntry::UnitEnded(end) => end.write(),
            LogEntry::Watch(watch, log) => log.write(watch),
            LogEntry::Paused(id) => tracing::info!("{id} is paused"),
            LogEntry::Resumed(id) => tracing::info!("{id} is resumed"),
            LogEntry::HostDelayed { id, until } => {
                tracing::info!("{id}: host requested no further page before {until} (Retry-After)");
            }
            LogEntry::Recovered { adopted, lost, released } => tracing::info!(
                message_id = message::RECOVERED,
                archivist_adopted = adopted,
                archivist_lost = lost,
                archivist_stray = released,
                "recovered: adopted {adopted} running units, lost {lost}, released {released} unknown units"
            ),
            LogEntry::ChecksPruned(count) => {
                tracing::info!("deleted {count} expired results of checks");
            }
            LogEntry::Store(id, task, log) => log.write(*id, *task),
            LogEntry::Entries(EntriesLog { unit, reason, is_last }) => tracing::warn!(
                archivist_unit = unit.as_str(),
                "failed to record entries of a list: {reason}; {}",
                if *is_last { "each gets a worker" } else { "trying again" }
            ),
            LogEntry::Removal(RemovalLog { unit, reason, retry_at }) => tracing::warn!(
                archivist_unit = unit.as_str(),
                "failed to remove deleted files: {reason}; next attempt after {retry_at}"
            ),
            LogEntry::Expired { cause, pages } => {
                let ids: Vec<_> = pages.iter().map(SnapshotId::to_string).collect();
                let count = match pages.len() {
                    1 => "1 page".to_owned(),
                    n => format!("{n} pages"),
                };
                tracing::info!("deleted {count} because of {cause}: {}", ids.join(" "));
            }
            LogEntry::Shrunk(bytes) => tracing::info!(
                "returned unused space of the database to the file system; its file has {} now",
                human_size(*bytes)
            ),
            LogEntry::Index(log) => log.write(),
            LogEntry::Problem(problem) => problem.write(),
        }
    }
}

impl IndexLog {
    fn write(&self) {
        let IndexLog { unit, reason, rebuilds, retry_at } = self;
        if *rebuilds {
            tracing::warn!(
                archivist_unit = unit.as_str(),
                "failed to change the search index: {reason}; it is built again"
            );
        } else {
            tracing::warn!(
                archivist_unit = unit.as_str(),
                "failed to change the search index: {reason}; next attempt after {retry_at}"
            );
        }
    }
}

impl CrawlLog {
    fn write(&self, id: CrawlId) {
        match self {
            CrawlLog::Added { url, urls, depth } => tracing::info!(
                message_id = message::CRAWL_ADDED,
                archivist_crawl_id = id.0,
                archivist_url = url.as_str(),
                archivist_urls = urls,
                "crawl {id} is added: {urls} URLs, depth {depth}"
            ),
            CrawlLog::InstallAdded { url, missing } => tracing::info!(
                message_id = message::CRAWL_ADDED,
                archivist_crawl_id = id.0,
                archivist_url = url.as_str(),
                archivist_urls = 0,
                "crawl {id} is added: it installs {missing} programs"
            ),
            CrawlLog::Sealed { succeeded, failed, remark } => tracing::info!(
                message_id = message::CRAWL_SEALED,
                archivist_crawl_id = id.0,
                archivist_succeeded = succeeded,
                archivist_failed = failed,
                "crawl {id} is complete{}",
                remark.iter().map(|text| format!(", {text}")).collect::<String>()
            ),
            CrawlLog::GivenUp { succeeded, failed, reason } => tracing::error!(
                message_id = message::CRAWL_SEALED,
                archivist_crawl_id = id.0,
                archivist_succeeded = succeeded,
                archivist_failed = failed,
                "crawl {id} is given up: {reason}"
            ),
            CrawlLog::Cancelled(reason) => tracing::info!(
                message_id = message::CRAWL_CANCELLED,
                archivist_crawl_id = id.0,
                "crawl {id} is cancelled: {reason}"
            ),
            CrawlLog::PagesLeftOut(limit, pages) => tracing::info!(
                archivist_crawl_id = id.0,
                "crawl {id}: {limit}, {pages} pages left out"
            ),
            CrawlLog::EntriesKept(pages) => {
                tracing::info!(archivist_crawl_id = id.0, "crawl {id}: {pages} entries are sealed")
            }
        }
    }
}

impl StoreLog {
    fn write(&self, id: SnapshotId, task: Task) {
        let what = match task {
            Task::Put => format!("copy of {id} to the store"),
            Task::Drop => format!("removal of the local files of {id}"),
            Task::Get => format!("restoration of {id} from the store"),
            Task::Delete => format!("removal of {id} from the store"),
            Task::Test => "test of the store".to_owned(),
        };
        match self {
            StoreLog::Done => {
                tracing::info!(archivist_snapshot_id = id.0, "{what} is complete");
            }
            StoreLog::Failed { unit, reason, retry_at } => {
                let next =
                    retry_at.map_or(String::new(), |time| format!("; next attempt after {time}"));
                tracing::warn!(
                    message_id = message::TRANSFER_FAILED,
                    archivist_snapshot_id = id.0,
                    archivist_unit = unit.as_str(),
                    archivist_reason = reason.as_str(),
                    "{what} failed: {reason}{next}"
                );
            }
        }
    }
}

impl SnapshotLog {
    fn write(&self, crawl: CrawlId, id: SnapshotId) {
        match self {
            SnapshotLog::Sealed { failed: 0, .. } => tracing::info!(
                archivist_crawl_id = crawl.0,
                archivist_snapshot_id = id.0,
                "snapshot {id} is sealed"
            ),
            SnapshotLog::Sealed { url, failed, hooks } => tracing::warn!(
                message_id = message::SNAPSHOT_FAILURES,
                archivist_crawl_id = crawl.0,
                archivist_snapshot_id = id.0,
                archivist_url = url.as_str(),
                archivist_failed = failed,
                archivist_hooks = hooks,
                "snapshot {id} is sealed, {failed} of {hooks} hooks failed"
            ),
            SnapshotLog::Quarantined { url, attempts, reason } => tracing::error!(
                message_id = message::SNAPSHOT_QUARANTINED,
                archivist_crawl_id = crawl.0,
                archivist_snapshot_id = id.0,
                archivist_url = url.as_str(),
                archivist_attempt = attempts,
                "snapshot {id} is quarantined: {reason}"
            ),
            SnapshotLog::WorkerEnded(reason) => tracing::warn!(
                archivist_crawl_id = crawl.0,
                archivist_snapshot_id = id.0,
                "snapshot {id}: {}",
                reason.as_deref().unwrap_or("its worker ended")
            ),
        }
    }
}

impl HookLog {
    fn write(&self, crawl: CrawlId) {
        match self {
            HookLog::Result { owner, plugin, hook, verdict } => tracing::info!(
                archivist_crawl_id = crawl.0,
                archivist_snapshot_id = snapshot_of(*owner),
                archivist_plugin = plugin.as_str(),
                archivist_hook = hook.as_str(),
                "{owner} {plugin}: {}{}",
                verdict.state,
                verdict.error.iter().map(|why| format!(": {why}")).collect::<String>()
            ),
            HookLog::KilledForDisk { unit, plugin, hook, shortage, bytes, files } => {
                tracing::warn!(
                    archivist_crawl_id = crawl.0,
                    archivist_plugin = plugin.as_deref(),
                    archivist_hook = hook.as_deref(),
                    archivist_unit = unit.as_str(),
                    "killed {unit}: {shortage} (MinFreeSpace=), and it has written most: {} MiB in {files} files",
                    bytes >> 20
                )
            }
            HookLog::SettingRefused { key, name, why } => tracing::info!(
                archivist_crawl_id = crawl.0,
                "crawl {crawl} {key}: setting '{name}' is ignored: {why}"
            ),
            HookLog::ServerRefused { key, why } => tracing::warn!(
                archivist_crawl_id = crawl.0,
                "crawl {crawl} {key}: failed to start its server: {why}, ignoring"
            ),
            HookLog::ProgramsMissing { key } => tracing::info!(
                archivist_crawl_id = crawl.0,
                "crawl {crawl} {key}: requested programs are missing; see: archivist why {crawl}"
            ),
        }
    }
}

impl UnitEnd {
    fn write(&self) {
        tracing::warn!(
            message_id = self.message,
            archivist_crawl_id = self.crawl.0,
            archivist_snapshot_id = snapshot_of(self.owner),
            archivist_url = self.url.as_str(),
            archivist_plugin = self.plugin.as_deref(),
            archivist_hook = self.hook.as_deref(),
            archivist_unit = self.unit.as_str(),
            archivist_outcome = %self.outcome,
            archivist_attempt = self.attempt,
            archivist_memory_peak = self.memory_peak,
            "{}: {}",
            self.unit,
            self.outcome
        );
    }
}

impl WatchLog {
    fn write(&self, watch: &str) {
        match self {
            WatchLog::CheckFailed { kind, url, unit, error } => tracing::warn!(
                archivist_watch = watch,
                archivist_url = url.as_str(),
                archivist_unit = unit.as_str(),
                "check {kind} of watch {watch}, {url}: {}",
                error.as_deref().unwrap_or("no reason is known")
            ),
            WatchLog::SiteDown { url, status_code, since, error } => tracing::warn!(
                message_id = message::SITE_DOWN,
                archivist_watch = watch,
                archivist_url = url.as_str(),
                archivist_status_code = status_code,
                "{url} is down since {since}: {status_code} {error}"
            ),
            WatchLog::SiteUp { url, since } => tracing::info!(
                message_id = message::SITE_UP,
                archivist_watch = watch,
                archivist_url = url.as_str(),
                archivist_since = %since,
                "{url} is up again, it was down since {since}"
            ),
        }
    }
}

impl Problem {
    fn write(&self) {
        match self {
            Problem::Declaration(text) | Problem::UnitNotRead(text) => {
                tracing::warn!("{text}, ignoring");
            }
            Problem::UnitsNotListed(text) => tracing::error!("{text}"),
            Problem::EventRefused(why) => {
                tracing::error!("failed to handle an internal event: {why}, ignoring")
            }
            Problem::StartRefused { what, why } => {
                tracing::error!("failed to carry out {what}: {why}");
            }
            Problem::FleetRefused(why) => {
                tracing::error!("the database of the fleet refuses a request: {why}");
            }
            Problem::FleetCrawlUnreadable(crawl, why) => {
                tracing::error!("failed to take crawl {crawl} of the fleet: {why}");
            }
            Problem::AlertFailed { occasion, unit, why } => tracing::warn!(
                archivist_unit = unit.as_str(),
                "failed to run the alert '{occasion}' as unit '{unit}': {why}, ignoring"
            ),
            Problem::DiskShort(shortage) => {
                tracing::debug!("{shortage}, and no hook has written much of it");
            }
            Problem::ClockDoubted(why) => tracing::warn!(
                "{why}: nothing is deleted because of its age until the clock is right, a time server confirms it, or: archivist delete --by-retention"
            ),
            Problem::RetentionHeld(what) => tracing::warn!(
                message_id = message::RETENTION_HELD,
                "{what}: nothing is deleted until an administrator confirms it: archivist delete --by-retention"
            ),
            Problem::IdsRaised { database, archive } => tracing::warn!(
                message_id = message::IDS_RAISED,
                archivist_archive_ids = %archive,
                archivist_database_ids = %database,
                "the archive or its store has ids up to {archive}, {}; new ids are higher",
                if *database == IdMarks::default() {
                    "and the database is new".to_owned()
                } else {
                    format!(
                        "the database only up to {database}: it is older than the archive, or another one uses the archive, too"
                    )
                }
            ),
            Problem::DirectoryTaken { owner, taken, other } => tracing::warn!(
                "directory '{}' belongs to another page than {owner}, which gets '{}'; was the database replaced by an older one?",
                taken.display(),
                other.display()
            ),
        }
    }
}
