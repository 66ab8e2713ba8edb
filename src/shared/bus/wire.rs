//! Names on the bus and the two interfaces as clients see them.

use zbus::{Fd, OwnedFd, proxy};

/// Path of the one object.
pub const PATH: &str = "/org/archivist1";

/// The interface for people: root and members of group `archivist`. Documents are JSON, in the
/// shapes of [`crate::bus::documents::report`]; `urls` is a descriptor open for reading, one URL a line.
#[proxy(
    interface = "org.archivist1.Manager",
    default_service = "org.archivist1",
    default_path = "/org/archivist1"
)]
pub trait Manager {
    /// Queues a crawl; answers [`crate::bus::documents::report::Added`].
    fn add(&self, urls: Fd<'_>, options: &str) -> zbus::Result<String>;
    /// Queues the installation of the programs that plugins of these names need, or of programs of
    /// these names; answers [`crate::bus::documents::report::Added`], with the number of programs that are missing.
    fn install(&self, names: &[String]) -> zbus::Result<String>;
    /// Gives up a crawl (`c12`) or a snapshot (`s345`) and ends what runs of it.
    fn cancel(&self, id: &str) -> zbus::Result<()>;
    /// Gives up the pages of a crawl that are not done and ends what runs of them; the crawl's last
    /// hooks run before it is cancelled. A crawl that has not come to its pages is given up at once.
    fn abort(&self, crawl: &str) -> zbus::Result<()>;
    /// Starts nothing more of a crawl or a snapshot, and freezes the hooks that run of it.
    fn pause(&self, id: &str) -> zbus::Result<()>;
    /// Lets what is paused go on.
    fn resume(&self, id: &str) -> zbus::Result<()>;
    /// Lays settings, a JSON object of texts, over those of a crawl.
    fn amend(&self, crawl: &str, config: &str) -> zbus::Result<()>;
    /// Queues failed and skipped results once more; `hook` empty means all of them, `id` empty every
    /// page with a failed result that was not cancelled. Answers how many results were queued.
    fn retry(&self, id: &str, hook: &str) -> zbus::Result<u32>;
    /// Answers [`crate::bus::documents::report::Status`].
    fn status(&self) -> zbus::Result<String>;
    /// `what` is crawls, snapshots, results, runs, timeline or binaries; `filter` a [`crate::bus::documents::report::Filter`].
    fn list(&self, what: &str, filter: &str) -> zbus::Result<String>;
    /// Answers [`crate::bus::documents::report::Details`].
    fn show(&self, id: &str) -> zbus::Result<String>;
    /// Why something is not done, or not as it should be; answers [`crate::bus::documents::report::Why`], of the name
    /// of a watch [`crate::bus::documents::report::WhyWatch`].
    fn why(&self, id: &str) -> zbus::Result<String>;
    /// Answers [`crate::bus::documents::report::Plugins`].
    fn plugins(&self) -> zbus::Result<String>;
    /// A stream of [`crate::bus::documents::report::Event`], one JSON document a line; it ends with the crawl.
    fn watch(&self, crawl: &str) -> zbus::Result<OwnedFd>;
    /// Queues a crawl for a command in the foreground: `add` and [`Manager::hold`] in one.
    fn run(&self, urls: Fd<'_>, options: &str) -> zbus::Result<(String, OwnedFd)>;
    /// Answers a descriptor that is closed once the crawl is over and nothing of it runs any
    /// more. When the caller closes it before that, hooks that were interrupted are skipped and,
    /// if `cancel`, the crawl is given up.
    fn hold(&self, crawl: &str, cancel: bool) -> zbus::Result<OwnedFd>;
    /// Ends the hooks that a held crawl, or a snapshot of it, waits for now; what follows waits for `proceed`. Answers
    /// [`crate::bus::documents::report::Interrupted`].
    fn interrupt(&self, id: &str) -> zbus::Result<String>;
    /// Says of the hooks that were interrupted whether they are run again or skipped. Answers how
    /// many there were.
    fn proceed(&self, crawl: &str, again: bool) -> zbus::Result<u32>;
    /// What `add` with these options would do; nothing is queued. Answers
    /// [`crate::bus::documents::report::Draft`].
    fn draft(&self, options: &str) -> zbus::Result<String>;
    /// Queues checks of a watch, of these kinds or, without any, of all that it has; answers
    /// [`crate::bus::documents::watches::Queued`].
    fn check(&self, watch: &str, kinds: &[String]) -> zbus::Result<String>;
    /// Answers when a check (`r12`) is over, with a [`crate::bus::documents::work::Ended`].
    fn await_check(&self, id: &str) -> zbus::Result<String>;
    /// Answers a list of [`crate::bus::documents::watches::Watch`]; `name` empty means all.
    fn watches(&self, name: &str) -> zbus::Result<String>;
    /// Answers a list of [`crate::bus::documents::watches::Check`], the newest first; `filter` is a
    /// [`crate::bus::documents::watches::HistoryFilter`].
    fn history(&self, watch: &str, filter: &str) -> zbus::Result<String>;
    /// Reads the configuration and the plugins once more.
    fn reload(&self) -> zbus::Result<()>;
}

/// The interface for workers. `token` is what the worker found in its assignment.
#[proxy(
    interface = "org.archivist1.Worker",
    default_service = "org.archivist1",
    default_path = "/org/archivist1"
)]
pub trait Worker {
    /// Takes up the work; answers the runs there are already (a [`crate::bus::documents::work::Standing`]).
    fn attach(&self, token: &str) -> zbus::Result<String>;
    /// Runs a hook of the assignment with `stdout` as its standard output and answers when it
    /// has ended (a [`crate::bus::documents::work::Ended`]). Asking twice for one hook joins the same run.
    fn run(&self, token: &str, hook: &str, stdout: Fd<'_>) -> zbus::Result<String>;
    /// Asks a running hook to end (SIGTERM by its unit's KillMode=), or ends it by force.
    fn stop(&self, token: &str, hook: &str, force: bool) -> zbus::Result<()>;
    /// Records a result with what the hook found ([`crate::bus::documents::work::Report`]); answers after the
    /// commit, with the verdict that is on record then ([`archivist_core::model::Verdict`]).
    fn report(&self, token: &str, report: &str) -> zbus::Result<String>;
    /// Returns the InvocationID of the newest run of a hook, so that the worker can read in the journal what a
    /// hook wrote that failed without a reason; an empty text if the run has not ended. Answers when journald has
    /// written everything that the run logged.
    fn invocation(&self, token: &str, hook: &str) -> zbus::Result<String>;
    /// For a crawl's worker, after its setup: answers when no snapshot is open any more.
    fn snapshots_done(&self, token: &str) -> zbus::Result<()>;
}
