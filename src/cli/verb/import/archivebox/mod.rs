//! The data directory of ArchiveBox. Its snapshots become snapshots of crawls with the plugins `import` and
//! `text`; nothing is requested. This process copies the files of each to a directory in `.importing` of the
//! archive ([`archivist_shared::staged`]), and the worker of the snapshot moves them to that of the snapshot.

mod files;
mod layout;
mod report;
mod survey;

use super::recording::source_name;
use super::{ImportArgs, failed};
use crate::client::exit::{Exit, Failure};
use crate::client::fleet::{Fleet, Local};
use crate::client::owner::as_owner;
use crate::client::paging::Paging;
use crate::client::server::{Server, decode};
use crate::client::wait::{self, Form};
use crate::display::style;
use crate::verb::add::summary;
use crate::verb::backup::need_root;
use crate::verb::urls::Urls;
use archivist_config::Scope;
use archivist_core::model::{Lifecycle, Owner, PageUrl, Place};
use archivist_core::text::clean;
use archivist_plugin::Directory;
use archivist_shared::archive::IMPORT_SOURCE;
use archivist_shared::archivebox::BoxSnapshot;
use archivist_shared::bus::documents::report::{AddOptions, Added, Crawl, Filter, Snapshot};
use archivist_shared::staged::{RECORD, STAGED, STAGED_SETTING, is_name, name_of};
use files::Target;
use nix::sys::stat::{Mode, umask};
use report::Report;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use survey::Places;

/// Snapshots of one crawl. A command that is killed leaves what it had queued, and the next one copies the
/// files of the others.
const ROUND_MAX: usize = 1000;
/// Faults that are printed.
const FAULTS_MAX: usize = 100;
/// File whose lock a command holds that imports a directory.
const LOCK: &str = ".lock";
/// Mode of the directories above those of plugins.
const MODE: u32 = 0o750;

/// Imports a directory.
pub async fn import(path: &Path, args: &ImportArgs, scope: &Scope) -> Result<Exit, Failure> {
    let top = Directory::open(path).map_err(|error| failed("open", path, &error))?;
    let shown = clean(&path.display().to_string());
    if let Err(error) = top.names() {
        return Err(failed("read", path, &error));
    }
    if !survey::is_box(&top) {
        return Err(Failure::usage(format!(
            "'{shown}' is no data directory of ArchiveBox: it has neither index.sqlite3 nor archive/"
        )));
    }
    let (mut found, places) = survey::read(top, scope)?;
    style::print(&format!("'{shown}': {}\n", report::description(&found)))?;
    let faults = std::mem::take(&mut found.faults);
    for fault in faults.iter().take(FAULTS_MAX) {
        eprintln!("'{shown}': {}, ignoring", clean(fault));
    }
    if let Some(more @ 1..) = faults.len().checked_sub(FAULTS_MAX) {
        eprintln!("'{shown}': {more} more faults");
    }
    let mut report = Report::new(shown, !faults.is_empty());
    let snapshots = usable(found.snapshots, &mut report);
    if args.dry_run {
        for snapshot in &snapshots {
            let source = places.open(snapshot);
            let taken = files::take(snapshot, source.as_ref(), None);
            let (tally, _, results) = taken.map_err(|error| failed("read", path, &error))?;
            report.add(snapshot, source.is_some(), &tally, &results);
        }
        return report.print(None);
    }
    need_root(scope, "import into")?;
    if Fleet::reach(scope, Local::default()).await?.is_some() {
        return Err(Failure::failed(
            "a node of a fleet imports nothing: other nodes would not have the files",
        ));
    }
    let server = Server::reach(scope).await?;
    umask(Mode::from_bits_truncate(0o007));
    let stage = Stage::lock(&scope.data_dir().join("archive"))?;
    let crawls: Vec<Crawl> = Paging::new(&server, Filter::default()).collect().await?;
    let crawls: Vec<&Crawl> = crawls
        .iter()
        .filter(|crawl| crawl.config.contains_key(STAGED_SETTING))
        .collect();
    stage.remove_abandoned(&crawls)?;
    let known = imported(&crawls, &server).await?;
    let (rounds, known) = rounds(snapshots, &known);
    let mut exit = Exit::Done;
    for round in rounds {
        let mut queue = stage.begin()?;
        for snapshot in round {
            queue.copy(snapshot, &places, &mut report)?;
        }
        let Some(added) = queue.add(path, args, &server).await? else {
            continue;
        };
        report.queued += added.accepted;
        if args.wait && added.accepted > 0 {
            match wait::wait(&server, None, added.crawl, Form::Lines).await? {
                Exit::Done => {}
                other => exit = other,
            }
        }
    }
    match report.print(Some(known))? {
        Exit::Done => Ok(exit),
        other => Ok(other),
    }
}

/// The snapshots with a URL that can be archived, in the form in which the archive has it.
fn usable(snapshots: Vec<BoxSnapshot>, report: &mut Report) -> Vec<BoxSnapshot> {
    let mut usable = Vec::with_capacity(snapshots.len());
    for mut snapshot in snapshots {
        match PageUrl::parse(&snapshot.url) {
            Ok(url) => {
                snapshot.url = url.as_str().to_owned();
                usable.push(snapshot);
            }
            Err(error) => report.refuse(&snapshot, &error.to_string()),
        }
    }
    usable
}

type Key = (String, Option<String>);

fn key(snapshot: &BoxSnapshot) -> Key {
    (snapshot.url.clone(), snapshot.bookmarked_at.clone())
}

/// URL and time of the snapshots that were imported before.
async fn imported(crawls: &[&Crawl], server: &Server) -> Result<BTreeSet<Key>, Failure> {
    let mut known = BTreeSet::new();
    for crawl in crawls {
        let filter = Filter::of(Owner::Crawl(crawl.id));
        let pages: Vec<Snapshot> = Paging::new(server, filter).collect().await?;
        // The files of a cancelled page are gone.
        let pages = pages
            .into_iter()
            .filter(|page| page.status != Lifecycle::Cancelled);
        known.extend(pages.map(|page| (page.url, page.bookmarked_at)));
    }
    Ok(known)
}

/// The snapshots that are not known, in rounds, and the number of the others. A crawl has a URL once, and a
/// directory may have it at several times.
fn rounds(snapshots: Vec<BoxSnapshot>, known: &BTreeSet<Key>) -> (Vec<Vec<BoxSnapshot>>, u64) {
    let mut rounds: Vec<Vec<BoxSnapshot>> = Vec::new();
    let mut next: BTreeMap<String, usize> = BTreeMap::new();
    let mut seen = known.clone();
    let mut count = 0;
    let mut first_open = 0;
    for snapshot in snapshots {
        if !seen.insert(key(&snapshot)) {
            count += 1;
            continue;
        }
        let round = next.entry(snapshot.url.clone()).or_default();
        *round = (*round).max(first_open);
        while rounds
            .get(*round)
            .is_some_and(|full| full.len() >= ROUND_MAX)
        {
            *round += 1;
        }
        while rounds.len() <= *round {
            rounds.push(Vec::new());
        }
        rounds[*round].push(snapshot);
        *round += 1;
        while rounds
            .get(first_open)
            .is_some_and(|full| full.len() >= ROUND_MAX)
        {
            first_open += 1;
        }
    }
    (rounds, count)
}

/// The directory of staged snapshots, which this command has locked.
struct Stage {
    archive: PathBuf,
    path: PathBuf,
    _lock: File,
}

impl Stage {
    fn lock(archive: &Path) -> Result<Stage, Failure> {
        let path = archive.join(STAGED);
        let locked = as_owner(archive, || {
            let mut builder = DirBuilder::new();
            builder.mode(MODE).recursive(true).create(&path)?;
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(false).mode(0o640);
            let file = options.open(path.join(LOCK))?;
            file.try_lock().map_err(|_| {
                io::Error::other("another command imports a directory of ArchiveBox at the moment")
            })?;
            Ok(file)
        });
        let lock = locked.map_err(|error| failed("lock", &path, &error))?;
        Ok(Stage {
            archive: archive.to_owned(),
            path,
            _lock: lock,
        })
    }

    /// Removes what commands have left that were killed before they queued it.
    fn remove_abandoned(&self, crawls: &[&Crawl]) -> Result<(), Failure> {
        let open: BTreeSet<&str> = crawls
            .iter()
            .filter(|crawl| !crawl.status.is_final())
            .filter_map(|crawl| crawl.config.get(STAGED_SETTING).map(String::as_str))
            .collect();
        let removed = as_owner(&self.archive, || {
            for entry in fs::read_dir(&self.path)? {
                let name = entry?.file_name();
                let name = name.to_string_lossy();
                if is_name(&name) && !open.contains(&*name) {
                    fs::remove_dir_all(self.path.join(&*name))?;
                }
            }
            Ok(())
        });
        removed.map_err(|error| failed("clean", &self.path, &error))
    }

    /// Makes a directory for the snapshots of a crawl.
    fn begin(&self) -> Result<Queue<'_>, Failure> {
        let made = as_owner(&self.archive, || {
            let mut random = [0; 16];
            getrandom::fill(&mut random).map_err(|error| io::Error::other(error.to_string()))?;
            let name: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
            let path = self.path.join(&name);
            DirBuilder::new().mode(MODE).create(&path)?;
            Ok((Directory::open(&path)?, name))
        });
        let (directory, name) = made.map_err(|error| failed("write to", &self.path, &error))?;
        Ok(Queue {
            stage: self,
            directory,
            name,
            snapshots: Vec::new(),
            is_queued: false,
        })
    }
}

/// The snapshots of a crawl. What is not queued is removed.
struct Queue<'a> {
    stage: &'a Stage,
    directory: Directory,
    name: String,
    snapshots: Vec<BoxSnapshot>,
    is_queued: bool,
}

impl Queue<'_> {
    /// Copies the files of a snapshot.
    fn copy(
        &mut self,
        snapshot: BoxSnapshot,
        places: &Places,
        report: &mut Report,
    ) -> Result<(), Failure> {
        let source = places.open(&snapshot);
        let done = self.copy_files(&snapshot, source.as_ref());
        let (tally, results) =
            done.map_err(|error| failed("write to", self.directory.path(), &error))?;
        report.add(&snapshot, source.is_some(), &tally, &results);
        self.snapshots.push(snapshot);
        Ok(())
    }

    fn copy_files(
        &self,
        snapshot: &BoxSnapshot,
        source: Option<&(Directory, layout::Layout)>,
    ) -> io::Result<(files::Tally, files::Results)> {
        let archive = &self.stage.archive;
        let name = name_of(&snapshot.url);
        let directory = as_owner(archive, || {
            self.directory.make(&name, MODE)?;
            self.directory.enter(&name)
        })?;
        let target = Target {
            archive,
            directory: &directory,
        };
        let (tally, page, results) = files::take(snapshot, source, Some(&target))?;
        let page = serde_json::to_vec(&page)?;
        // Where the page comes from, for a reader of the archive.
        let origin = json!({
            "id": snapshot.id, "timestamp": snapshot.timestamp, "url": snapshot.url,
            "title": snapshot.title, "tags": snapshot.tags, "bookmarked_at": snapshot.bookmarked_at,
            "results": snapshot.results,
        });
        as_owner(archive, || {
            match directory.make(layout::REST, 0o770) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
            let rest = directory.enter(layout::REST)?;
            let mut file = rest.create("archivebox.json", 0o640)?;
            file.write_all(format!("{origin:#}\n").as_bytes())?;
            // The record is written last: without it, no worker takes anything.
            directory.create(RECORD, 0o640)?.write_all(&page)
        })?;
        Ok((tally, results))
    }

    /// Queues the snapshots. `None` if there is none.
    async fn add(
        mut self,
        path: &Path,
        args: &ImportArgs,
        server: &Server,
    ) -> Result<Option<Added>, Failure> {
        if self.snapshots.is_empty() {
            return Ok(None);
        }
        let synced = nix::unistd::syncfs(&self.directory);
        synced.map_err(|error| failed("sync", self.directory.path(), &error.into()))?;
        let mut urls = Urls::default();
        for (number, snapshot) in (1..).zip(&self.snapshots) {
            let line = json!({
                "url": snapshot.url, "title": snapshot.title, "tags": snapshot.tags,
                "bookmarked_at": snapshot.bookmarked_at,
            });
            urls.add_line(Place::Line(number), &line.to_string());
        }
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let options = AddOptions {
            tags: args.tags.clone(),
            plugins: vec!["import".to_owned(), "text".to_owned()],
            config: BTreeMap::from([
                (STAGED_SETTING.to_owned(), self.name.clone()),
                (IMPORT_SOURCE.to_owned(), source_name(&path)),
            ]),
            ..AddOptions::default()
        };
        let failed =
            |error: serde_json::Error| Failure::failed(format!("failed to write: {error}"));
        let options = serde_json::to_string(&options).map_err(failed)?;
        let memfd = urls.to_memfd()?;
        let call = server.proxy().add(memfd.as_fd().into(), &options);
        // From here on a crawl may have them, also if no answer arrives.
        self.is_queued = true;
        let added: Added = decode(&server.call_with_urls(urls.len(), call).await?)?;
        for refused in &added.refused {
            let text = clean(&refused.text);
            eprintln!("'{text}' refused: {}", refused.why);
        }
        style::print(&format!("{}\n", summary(&added)))?;
        Ok(Some(added))
    }
}

impl Drop for Queue<'_> {
    fn drop(&mut self) {
        if !self.is_queued {
            let _ = as_owner(&self.stage.archive, || {
                fs::remove_dir_all(self.stage.path.join(&self.name))
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(url: &str, time: &str) -> BoxSnapshot {
        BoxSnapshot {
            url: url.to_owned(),
            bookmarked_at: Some(time.to_owned()),
            ..BoxSnapshot::default()
        }
    }

    #[test]
    fn a_crawl_has_a_url_once_and_known_snapshots_are_left_out() {
        let mut all = vec![
            snapshot("http://a/", "1"),
            snapshot("http://a/", "2"),
            snapshot("http://a/", "2"),
            snapshot("http://b/", "1"),
        ];
        all.extend((0..2500).map(|n| snapshot(&format!("http://c/{n}"), "1")));
        all.push(snapshot("http://a/", "3"));
        let known = BTreeSet::from([key(&all[0])]);
        let count = all.len();
        let (rounds, known) = rounds(all, &known);
        assert_eq!(known, 2);
        let total: usize = rounds.iter().map(Vec::len).sum();
        assert_eq!(total, count - 2);
        for round in &rounds {
            let urls: BTreeSet<&str> = round.iter().map(|page| &*page.url).collect();
            assert_eq!(urls.len(), round.len());
            assert!(!round.is_empty() && round.len() <= ROUND_MAX);
        }
    }
}
