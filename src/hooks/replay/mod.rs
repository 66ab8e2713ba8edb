//! Replays recordings: a browser with an empty profile and without a network gets all its answers
//! from a recording.
//!
//! Every request of its pages, frames and workers is stopped before it is sent and answered over the
//! pipe that controls the browser. What is not recorded fails, and is counted. Since the browser has
//! no network (see [`Namespace`]), a request that chromium does not stop, such as that of a WebSocket,
//! fails, too.
//!
//! # When a page is replayed
//!
//! `archivist replay` and `verify` are the command line alone: it opens the recording with the rights
//! of its caller, which a reader reads (`cli/replay/reader.rs`), starts Chromium in a network
//! namespace without a network (`cli/replay/namespace.rs` chooses a unit or a user namespace,
//! `hooks/chromium/browser/namespace.sh` checks it from inside), and answers every request over the pipe
//! of the browser (`hooks/replay/interception.rs`), those that chromium stops for a page or frame
//! there, and the others, such as the script of a worker within a worker, for the browser.
//! `warc/lookup/range.rs` chooses the records of parts of files, `answer.rs` translates them to what
//! the browser gets, `tally.rs` counts, `proof/` compares. The page is loaded by the code that loads
//! pages for the archive (`chromium/tab/load.rs`), so that a difference is one of the recording.
//!
//! `archivist doctor` has a unit record and replay a page (`cli/verb/doctor/trial.rs`,
//! `hooks/trial.rs`): the hooks of pages, as a worker runs them, and a page that the unit serves on the
//! loopback of its own network namespace.
//!
//! The index of the archive is in two places: the database has the snapshots of each URL, and each
//! recording the index of what its page requested. `cli/recording/archive.rs` opens the recordings
//! that a page asks for.
//!
//! An index of more than 2 MiB that is sorted is not read before the first answer
//! (`warc/wacz/indexed.rs`): a look-up finds a key by halving the list of the parts of `index.cdx.gz`,
//! or the bytes of a stored `index.cdxj`, and reads the lines near it (`sorted.rs`). Lines near a key
//! prove that a record is there, but not that one is missing. Before the first answer by a rule, or the
//! first one of a record that is missing, all lines are read once, and nothing of them is kept but
//! those whose key another program made by other rules. An index that contradicts its list, its digests
//! or its order is read as a whole, as small and DEFLATEd ones are, and the replay names the reason.
//!
//! `archivist export --html` writes pages as files (`hooks/standalone/`): `document.rs` parses a
//! document as browsers do and writes it again, so that what it does not write is not there, and asks
//! for the file of each address, which `mod.rs` looks up as a replay does, by exact rules only. Files
//! have the digest of their content in their names, so that pages share them, and a page has the HTML
//! that `dom` saved: what was seen needs no scripts. The plugin `standalone` does the same for its page
//! alone, after the recording, which is the only thing that it needs. It costs some 50 ms and 0.2 MB.
//!
//! Recordings share bodies as hard links (`WACZ_DEDUPE`, `cli/verb/share_bodies.rs`,
//! `warc/wacz/share.rs`). A revisit that named the recording of another snapshot would make deletion,
//! the store, restoration and every copy of the archive responsible for a body that is elsewhere, and a
//! mistake in one of them would lose it. With a link in the directory of each snapshot that needs the
//! body, the file system counts, no program has to know who else has a body, and a process that is
//! killed loses nothing: the links are durable before the recording without the body replaces the whole
//! one. When the recording is complete, the worker starts a separate program for this
//! (`worker/share.rs`), because root runs the program of the worker, which must not decompress files of
//! hooks. Hooks have no access to `.bodies`, and each set of users and persona has a directory of its
//! own in it, so no page can find out what others have. The program computes each digest itself, so a
//! hook cannot store a body under the digest of another one. It is off by default, because programs of
//! others expect a recording in one file. Files in `.bodies` that no snapshot links are removed after
//! deletions (`worker/delete.rs`).
//!
//! An imported file stays one file, in `.imported` of the archive: its snapshots are pages of a crawl
//! with the plugin `import` alone, whose result names the file (`cli/recording/recordings.rs` follows
//! it). `archivist import` runs itself as a reader without rights (`cli/survey/mod.rs`) to read the
//! list of pages, and texts and pictures of these (`warc/wacz/survey.rs`; of an HTML document, with the
//! code of the plugin `text`), which their snapshots get as staged files, because no hook may read the
//! recording. In the same way it reads bookmark files and reading lists: their formats are in
//! `core/model/web/list`, which `archivist add --file` uses, too. A reader (`cli/client/reader.rs`) is
//! a transient unit with a user and drop-ins of its own, gets the file as its standard input, opened
//! for reading alone, and is known by the lines that it prints: no file, socket or terminal is common
//! to both. Users without a service manager get namespaces without a network instead. Each reader gives
//! up its terminal, later privileges and most of its memory itself, too (`shared/reader.rs`). The unit
//! costs 0.1 s for each file.
//!
//! `archivist import` of a data directory of ArchiveBox (`cli/verb/import/archivebox`) sends its
//! database to `archivist-orchestrator archivebox` (`orchestrator/archivebox.rs`), because only that
//! program links SQLite: a reader, too, which has a copy in its own `/var/tmp`. The command copies the
//! files of each snapshot to `.importing` of the archive, with a record of its results
//! (`shared/staged.rs`), and queues the snapshots. The worker of a snapshot moves the files into its
//! directory and reports the results with their own times (`worker/staged.rs`), so that rows, lists and
//! pages are made as those of any other snapshot. Pages that other programs saved as files take the
//! same way (`cli/verb/import/saved.rs`, `cli/staging/`): the process without rights finds
//! address, title, time and document (`hooks/page/saved`), and the plugin `text` reads that document.
//! Entries that `--keep-only` records have no files: the plugin `import` is their only one, and its
//! result is noresults, so that the archive does not count the page as archived. No hook has to run for
//! them, so they have no workers: the table `entry` has them until a unit has written the directories
//! of 200 (`worker/entries.rs`), and one transaction then seals these pages
//! (`orchestrator/work/entries.rs`). Until then they are queued, and keep directory and identity, so a
//! unit that is killed loses nothing, and the next one writes nothing twice. After three failures, or
//! if a directory belongs to another page, each of them gets a worker. In a fleet, they are pages like
//! all others.
//!
//! Directories that hooks or foreign archives shaped may have any depth. One walk
//! (`plugin/files/walk.rs`) descends into them for sealing, copies, backups and the store, and one
//! removal (`plugin/files/remove.rs`) removes them: both open one name at a time, keep at most some 64
//! directories open and return to deeper ones through `..`, so that neither descriptors nor the length
//! of paths limit them. Sealing removes what has more than 256 directories above it or a path of more
//! than 3,072 bytes, so that all other programs can use paths. Of archives of older versions, copies
//! and backups leave that out and name it. `clippy.toml` forbids `remove_dir_all` of the standard
//! library, which fails at some 1,000 levels.
//!
//! Whole files are written by one module (`plugin/files/whole.rs`): under another name, which is
//! private from the start if the file is, and with their own when they are complete. The caller says
//! whether a file must survive a power cut (`Survives`). A test (`tests/structure.rs`) lists the files
//! that rename something else.
//!
//! Whole files are copied by one function (`plugin/files/copy.rs`), for imports, backups, restorations,
//! retries and `archivist run --output`: copies share the blocks of files on the same file system, if
//! that can do it. It refuses files that were opened for appending, because the kernel then copies
//! every byte. A test (`tests/structure.rs`) keeps other ways to copy out of these rooms.

mod answer;
mod interception;
mod jsonp;
mod page;
pub mod proof;
mod set_cookie;
mod tally;

pub use crate::chromium::browser::Browser;
pub use crate::chromium::browser::namespace::{Home, Namespace};
pub use crate::chromium::browser::world::World;
pub use crate::chromium::cdp::Connection;
pub use crate::visit::Seed;
pub use page::{Loaded, begin, connect, load, load_over, show};
pub use tally::{Listed, Requests};

use crate::picture::PictureFormat;
use archivist_core::model::is_web;
use archivist_warc::WarcError;
use archivist_warc::lookup::{Found, Index, Match, Wanted};
use archivist_warc::wacz::StoredAnswer;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::time::Duration;

pub trait Answers: Send + Sync {
    /// Finds the record that answers a request, and opens it.
    fn find(&self, wanted: &Wanted<'_>) -> Option<Answer>;
}

pub struct Answer {
    pub url: String,
    pub time: Timestamp,
    pub fit: Match,
    /// The open record, or why it cannot be read.
    pub stored: Result<StoredAnswer, WarcError>,
}

impl Answers for Index {
    fn find(&self, wanted: &Wanted<'_>) -> Option<Answer> {
        let found = Index::find(self, wanted)?;
        let stored = found.read();
        let Found { entry, fit, .. } = found;
        Some(Answer { stored, fit, time: entry.time, url: entry.url })
    }
}

/// An http or https URL, as a recording has it: nothing else is opened. A recording may name files of this
/// machine, and pages of the browser about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebUrl(String);

impl WebUrl {
    /// Returns the URL if its scheme is http or https. The text is not changed: records are found by it.
    pub fn of(text: &str) -> Option<WebUrl> {
        is_web(text).then(|| WebUrl(text.to_owned()))
    }
}

impl Deref for WebUrl {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

#[derive(Clone, Debug)]
pub struct Replay {
    pub url: WebUrl,
    /// When the page was recorded.
    pub time: Timestamp,
    /// What the recording says of the world of the page.
    pub world: World,
    /// What keeps the browser from the network.
    pub namespace: Namespace,
    /// Width and height of the viewport in pixels; `None` for that of the world, or else of recordings.
    pub viewport: Option<(u32, u32)>,
    /// Format of its picture: that of the recording, with which it is compared.
    pub picture: PictureFormat,
    /// Time limit for the start of the browser and the page; without effect on a window.
    pub limit: Duration,
    /// Settings of the plugin `chromium`, as hooks get them.
    pub settings: BTreeMap<String, String>,
}

#[cfg(test)]
mod tests;
