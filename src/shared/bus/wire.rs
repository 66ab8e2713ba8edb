//! Names on the bus, and the interfaces as clients see them.

use zbus::{Fd, OwnedFd, proxy};

/// Object path.
pub const PATH: &str = "/org/archivist1";

/// Interface for users: root and members of group `archivist`. Documents are JSON in the shapes of
/// [`crate::bus::documents::report`]; `urls` is a descriptor open for reading, with one URL per
/// line. Calls with which a waiting command joins another orchestrator start none: an administrator may
/// have stopped the last one.
#[proxy(
    interface = "org.archivist1.Manager",
    default_service = "org.archivist1",
    default_path = "/org/archivist1"
)]
pub trait Manager {
    /// Queues a crawl; returns [`crate::bus::documents::report::Added`].
    fn add(&self, urls: Fd<'_>, options: &str) -> zbus::Result<String>;
    /// Queues the installation of the programs that these plugins need, or of these programs;
    /// returns [`crate::bus::documents::report::Added`], with the number of missing programs.
    fn install(&self, names: &[String]) -> zbus::Result<String>;
    /// Cancels a crawl (`c12`) or a snapshot (`s345`) and stops its units, or ends the running hook
    /// of a run (`r678`), whose result is skipped then.
    fn cancel(&self, id: &str) -> zbus::Result<()>;
    /// Deletes crawls and snapshots that have ended, or with `dry_run` says what would be deleted; returns
    /// [`crate::bus::documents::report::Deleted`]. Their files are removed afterwards.
    fn delete(&self, ids: &[String], dry_run: bool) -> zbus::Result<String>;
    /// Keeps a crawl with its pages, or a snapshot, from deletion, or with `dry_run` only says whether it can be
    /// pinned. Returns 0 if it is pinned already, otherwise 1.
    fn pin(&self, id: &str, dry_run: bool) -> zbus::Result<u32>;
    /// Allows the deletion of a pinned crawl or snapshot again. Returns 0 if it is not pinned, otherwise 1.
    fn unpin(&self, id: &str, dry_run: bool) -> zbus::Result<u32>;
    /// Gives a crawl or snapshot tags, and takes others away. Returns how many tags that changes.
    fn tag(&self, id: &str, add: &[String], remove: &[String]) -> zbus::Result<u32>;
    /// Gives a tag a name that no page has as a tag. Returns the number of its pages.
    fn rename_tag(&self, old: &str, new: &str) -> zbus::Result<u32>;
    /// Returns those of these settings that no plugin has, as a JSON list.
    fn unknown_settings(&self, names: &[String]) -> zbus::Result<String>;
    /// Returns when a crawl or snapshot has ended and no process of it is left.
    fn await_units(&self, id: &str) -> zbus::Result<()>;
    /// Cancels the open pages of a crawl and stops their units; the last hooks of the crawl run
    /// before it is cancelled. A crawl that has not reached its pages is cancelled at once.
    fn abort(&self, crawl: &str) -> zbus::Result<()>;
    /// Pauses a crawl or a snapshot, and freezes its running hooks.
    fn pause(&self, id: &str) -> zbus::Result<()>;
    /// Resumes a paused crawl or snapshot.
    fn resume(&self, id: &str) -> zbus::Result<()>;
    /// Replaces settings of a crawl by those in a JSON object of strings.
    fn amend(&self, crawl: &str, config: &str) -> zbus::Result<()>;
    /// Queues failed and skipped results again. An empty `hook` means all of them; an empty `id`
    /// means every page with a failed result that was not cancelled. With an `id`, `hook` also runs
    /// on pages that have no result of it. Returns the number of queued results.
    fn retry(&self, id: &str, hook: &str) -> zbus::Result<u32>;
    /// Queues all results of a crawl or snapshot again. Returns their number.
    fn retry_all(&self, id: &str) -> zbus::Result<u32>;
    /// Queues sealed pages again for hooks that they have no result of, of the plugins that their
    /// crawl would use now; an empty `id` means the whole archive. Returns the number of hooks.
    fn update(&self, id: &str) -> zbus::Result<u32>;
    /// Returns [`crate::bus::documents::report::Status`].
    fn status(&self) -> zbus::Result<String>;
    /// Returns [`crate::bus::documents::report::Metrics`].
    fn metrics(&self) -> zbus::Result<String>;
    /// `what` is crawls, snapshots, versions, results, runs, hosts, tags, timeline or binaries; `filter` a
    /// [`crate::bus::documents::report::Filter`].
    fn list(&self, what: &str, filter: &str) -> zbus::Result<String>;
    /// Returns [`crate::bus::documents::report::Details`].
    fn show(&self, id: &str) -> zbus::Result<String>;
    /// Explains why something is not done or has failed; returns
    /// [`crate::bus::documents::report::Why`], or for a run
    /// [`crate::bus::documents::report::WhyRun`].
    fn why(&self, id: &str) -> zbus::Result<String>;
    /// Returns [`crate::bus::documents::report::Plugins`].
    fn plugins(&self) -> zbus::Result<String>;
    /// Returns a stream of [`crate::bus::documents::report::CrawlEvent`], one JSON document per
    /// line, which ends with the crawl.
    #[zbus(no_autostart)]
    fn watch(&self, crawl: &str) -> zbus::Result<OwnedFd>;
    /// Returns a stream with an empty line whenever the answer of `status` may have changed, at most
    /// four in a second.
    fn watch_status(&self) -> zbus::Result<OwnedFd>;
    /// Queues a crawl for a command in the foreground: `add` and [`Manager::hold`] in one. The
    /// descriptor is closed if the archive has all pages, and only new ones are requested.
    fn run(&self, urls: Fd<'_>, options: &str) -> zbus::Result<(String, OwnedFd)>;
    /// Returns a descriptor that closes when the crawl has ended and none of its units runs. If the
    /// caller closes it earlier, interrupted hooks are skipped and, if `cancel`, the crawl is
    /// cancelled.
    #[zbus(no_autostart)]
    fn hold(&self, crawl: &str, cancel: bool) -> zbus::Result<OwnedFd>;
    /// Registers a command in the foreground, a [`crate::bus::documents::report::Registration`],
    /// for `status`, until the returned descriptor is closed.
    #[zbus(no_autostart)]
    fn register(&self, command: &str) -> zbus::Result<OwnedFd>;
    /// Interrupts the hooks that a held crawl, or one of its snapshots, waits for; later hooks wait
    /// for `proceed`. Returns [`crate::bus::documents::report::Interrupted`].
    fn interrupt(&self, id: &str) -> zbus::Result<String>;
    /// Decides whether the interrupted hooks run again or are skipped. Returns their number.
    fn proceed(&self, crawl: &str, again: bool) -> zbus::Result<u32>;
    /// Returns what `add` with these options would do, without queueing
    /// ([`crate::bus::documents::report::Draft`]).
    fn draft(&self, options: &str) -> zbus::Result<String>;
    /// Reads the configuration and the plugins again.
    fn reload(&self) -> zbus::Result<()>;
    /// Requests the signals about pages, until the caller leaves the bus.
    fn subscribe(&self) -> zbus::Result<()>;
    /// Requests no more signals about pages.
    fn unsubscribe(&self) -> zbus::Result<()>;
}

/// Interface for the rules of `Retention=`, for those who may call [`Manager`].
#[proxy(
    interface = "org.archivist1.Retention",
    default_service = "org.archivist1",
    default_path = "/org/archivist1"
)]
pub trait Retention {
    /// Returns pages with ids above `after` that rules of `Retention=` delete now: these, or the configured
    /// ones if the list is empty; see [`crate::bus::documents::report::Expired`].
    fn expired(&self, rules: &[String], after: i64) -> zbus::Result<String>;
    /// Lets the rules of `Retention=` delete what is due although it is much, and believes the clock of the
    /// machine.
    fn confirm(&self) -> zbus::Result<()>;
}

/// Interface for full text search, for root: the texts of pages are for users that may read the archive.
#[proxy(
    interface = "org.archivist1.Search",
    default_service = "org.archivist1",
    default_path = "/org/archivist1"
)]
pub trait Search {
    /// Finds pages by the words of their text. `question` is an object, and so is the answer.
    fn search(&self, question: &str) -> zbus::Result<String>;
    /// Builds the index of full text search again, next to the one that is there, and replaces it. Returns
    /// before the build is complete.
    fn rebuild(&self) -> zbus::Result<()>;
}

/// Interface for the store, for those who may call [`Manager`].
#[proxy(
    interface = "org.archivist1.Store",
    default_service = "org.archivist1",
    default_path = "/org/archivist1"
)]
pub trait Store {
    /// Restores the files of a snapshot (`s345`) that only the store has, and returns when they are
    /// there: [`crate::bus::documents::report::Copy`].
    fn fetch(&self, id: &str) -> zbus::Result<String>;
    /// Writes, reads and removes a small object in the store. Returns the store, or an empty text if
    /// there is none.
    fn test(&self) -> zbus::Result<String>;
}

/// Interface for watches, for those who may call [`Manager`].
#[proxy(
    interface = "org.archivist1.Watches",
    default_service = "org.archivist1",
    default_path = "/org/archivist1"
)]
pub trait Watches {
    /// Queues checks of a watch: these kinds, or without any all that it has; returns
    /// [`crate::bus::documents::watches::Queued`].
    fn check(&self, watch: &str, kinds: &[String]) -> zbus::Result<String>;
    /// Returns when a check (`r12`) has ended, with a [`crate::bus::documents::work::Ended`].
    #[zbus(name = "Await")]
    fn wait(&self, id: &str) -> zbus::Result<String>;
    /// Ends the checks of a watch that wait or run; returns their number.
    fn cancel(&self, watch: &str) -> zbus::Result<u32>;
    /// Returns a list of [`crate::bus::documents::watches::Watch`]; an empty `name` means all.
    fn list(&self, name: &str) -> zbus::Result<String>;
    /// Returns a list of [`crate::bus::documents::watches::Check`], newest first; `filter` is a
    /// [`crate::bus::documents::watches::HistoryFilter`].
    fn history(&self, watch: &str, filter: &str) -> zbus::Result<String>;
    /// Explains why checks wait or fail; returns [`crate::bus::documents::report::WhyWatch`].
    fn why(&self, watch: &str) -> zbus::Result<String>;
}

/// Interface for workers. `token` is from the assignment of the worker. A call does not start an
/// orchestrator that an administrator has stopped; systemd starts one that has failed.
#[proxy(
    interface = "org.archivist1.Worker",
    default_service = "org.archivist1",
    default_path = "/org/archivist1"
)]
pub trait Worker {
    /// Starts or continues the work; returns the existing runs
    /// ([`crate::bus::documents::work::Standing`]).
    #[zbus(no_autostart)]
    fn attach(&self, token: &str) -> zbus::Result<String>;
    /// Runs a hook of the assignment with `stdout` as its standard output, and returns when it has
    /// ended ([`crate::bus::documents::work::Ended`]). A second call for the same hook joins the
    /// run.
    #[zbus(no_autostart)]
    fn run(&self, token: &str, hook: &str, stdout: Fd<'_>) -> zbus::Result<String>;
    /// Stops a running hook with SIGTERM by its unit's KillMode=, or kills it.
    #[zbus(no_autostart)]
    fn stop(&self, token: &str, hook: &str, force: bool) -> zbus::Result<()>;
    /// Records a result with what the hook found ([`crate::bus::documents::work::Report`]); returns
    /// after the commit, with the recorded verdict ([`archivist_core::model::Verdict`]).
    #[zbus(no_autostart)]
    fn report(&self, token: &str, report: &str) -> zbus::Result<String>;
    /// Returns the InvocationID of the newest run of a hook, so that the worker can read in the
    /// journal what a hook wrote that failed without a reason; an empty text if the run has not
    /// ended. Answers when journald has written everything that the run logged.
    #[zbus(no_autostart)]
    fn invocation(&self, token: &str, hook: &str) -> zbus::Result<String>;
    /// For the worker of a crawl, after its setup: returns when no snapshot is open any more.
    #[zbus(no_autostart)]
    fn snapshots_done(&self, token: &str) -> zbus::Result<()>;
}

/// Interface for the fleet service of this machine. Documents are JSON in the shapes of
/// [`archivist_core::fleet`].
#[proxy(
    interface = "org.archivist1.Node",
    default_service = "org.archivist1",
    default_path = "/org/archivist1"
)]
pub trait Node {
    /// Returns what the node holds and wants ([`archivist_core::fleet::Holdings`]).
    #[zbus(no_autostart)]
    fn holdings(&self) -> zbus::Result<String>;
    /// Stores a reply of the fleet's database ([`archivist_core::fleet::Delivery`]); returns after
    /// the commit.
    #[zbus(no_autostart)]
    fn deliver(&self, delivery: &str) -> zbus::Result<()>;
    /// Returns when there is something new to send.
    #[zbus(name = "Await", no_autostart)]
    fn wait(&self) -> zbus::Result<()>;
    /// Releases the hosts that have no running page, before the service stops.
    #[zbus(no_autostart)]
    fn stop(&self) -> zbus::Result<()>;
    /// Forgets the fleet; its crawls and pages stay as history of this machine. Refused while the
    /// node holds anything of the fleet.
    #[zbus(no_autostart)]
    fn leave(&self) -> zbus::Result<()>;
}

/// Interface of the fleet service about itself, for root and members of group `archivist`.
#[proxy(
    interface = "org.archivist1.FleetNode",
    default_service = "org.archivist1.Fleet",
    default_path = "/org/archivist1"
)]
pub trait FleetNode {
    /// Returns [`crate::bus::documents::fleet::NodeState`].
    fn state(&self) -> zbus::Result<String>;
    /// Same, when the service has connected or knows why it cannot.
    fn settled(&self) -> zbus::Result<String>;
    /// Returns [`crate::bus::documents::fleet::Fleet`].
    fn nodes(&self) -> zbus::Result<String>;
    /// Stops or resumes giving hosts to a node. Returns when the node starts no page any more, or with
    /// `false` if it is not connected, and at once if it does not drain.
    fn drain(&self, node: &str, draining: bool) -> zbus::Result<bool>;
    /// Removes a node that was not seen for the duration of a lease.
    fn remove(&self, node: &str) -> zbus::Result<()>;
    /// Declares that the database was restored from a backup. Returns the milliseconds until hosts are
    /// leased again.
    fn restored(&self) -> zbus::Result<u64>;
    /// Drains this node, and removes it if it holds nothing of the fleet any more; returns whether
    /// it is removed, after a few seconds at most. The service then waits to be stopped.
    fn leave(&self) -> zbus::Result<bool>;
}

/// Interface of the fleet service for users: root and members of group `archivist`. The documents
/// are those of [`Manager`], about the whole fleet.
#[proxy(
    interface = "org.archivist1.Fleet",
    default_service = "org.archivist1.Fleet",
    default_path = "/org/archivist1"
)]
pub trait Fleet {
    /// Returns [`crate::bus::documents::report::Fleet`].
    fn status(&self) -> zbus::Result<String>;
    /// `what` is crawls, snapshots, results, hosts or timeline (snapshots that nodes have or ended,
    /// of an `owner`); `filter` a [`crate::bus::documents::report::Filter`].
    fn list(&self, what: &str, filter: &str) -> zbus::Result<String>;
    /// Returns [`crate::bus::documents::report::Details`] of a crawl or snapshot, without runs.
    fn show(&self, id: &str) -> zbus::Result<String>;
    /// Returns [`crate::bus::documents::report::Why`] of a crawl or snapshot.
    fn why(&self, id: &str) -> zbus::Result<String>;
    /// Returns [`crate::bus::documents::report::Crawl`] when it differs from `known`, and after
    /// 20 s in any case; an empty text while the database does not have the crawl.
    #[zbus(name = "Await")]
    fn wait(&self, crawl: &str, known: &str) -> zbus::Result<String>;
}
