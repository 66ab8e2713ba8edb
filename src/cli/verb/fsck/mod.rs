//! `archivist fsck`: compares the rows of the orchestrator with the files of the archive. Pages may be
//! archived meanwhile. Without `--repair` it changes nothing, and with it nothing that it does not print.
//!
//! The directories of the archive are listed before the rows are, so a directory without a row is no
//! page that was added in between; it may be one that was deleted. A page with a problem is read again,
//! so that a page that changed meanwhile has none.

mod copies;
mod digests;
mod finding;
mod imported;
mod index;
mod page;
mod remote;
mod repair;

use crate::client::exit::{Exit, Failure};
use crate::client::paging::Paging;
use crate::client::server::Server;
use crate::display::style::{self, Style};
use crate::machine::pages::Disk;
use archivist_config::{Scope, Settings, load};
use archivist_core::model::{IdMarks, Lifecycle, Owner, SnapshotId, Time};
use archivist_core::store::{Location, StoredObject};
use archivist_core::text::parse_size;
use archivist_shared::archive;
use archivist_shared::bus::documents::report::{Crawl, Filter, Snapshot, Status};
use archivist_shared::deleted::{self, DeletedIds};
use archivist_worker::lists::{Lists, PAGE, flaw_of_snapshot};
use clap::Args;
use copies::Copies;
use finding::{Finding, Kind, Report};
use imported::Imported;
use page::Page;
use remote::{Difference, Remote};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Pages that are read again because the rows that were read before do not agree with the index or a
/// store.
const READ_AGAIN_MAX: usize = 1000;

/// Compare the rows of crawls and pages with the files of the archive
///
/// The orchestrator may run meanwhile. Without --repair, nothing is changed. The command prints
/// each problem with its path, and a last line with the number of crawls, pages, files and digests
/// that it compared.
#[derive(Args)]
pub struct FsckArgs {
    /// After everything was printed, do what is printed after an arrow, and nothing else
    ///
    /// Queue all hooks of a page again whose directory is missing or is that of another page,
    /// unless the store has it, rebuild lists and pages about snapshots from the rows and from what
    /// is readable of them, build the search index again, continue with higher ids, and import the recording of
    /// each page that no row has: its directory stays, and can be removed then. No other file is changed, moved or
    /// removed. A damaged file is never replaced, because the page may be another one today: to
    /// archive it again, use archivist retry --all.
    #[arg(long)]
    repair: bool,
    /// Compare names and sizes only
    ///
    /// Otherwise it reads every file, as often as the disk allows.
    #[arg(long)]
    quick: bool,
    /// Also read copies in a store on another host, and compare their SHA-256
    ///
    /// All of them are read, or the first ones in the order of their names that have at most SIZE
    /// together, such as '2G'.
    #[arg(long, value_name = "SIZE", value_parser = size, num_args = 0..=1, require_equals = true,
          default_missing_value = "infinity", conflicts_with = "quick")]
    download: Option<u64>,
    /// Print one object
    ///
    /// It has 'checked' with the counts, and 'findings' with 'kind' ('directory', 'file', 'size',
    /// 'digest', 'unknown', 'deleted', 'ids', 'list', 'index' or 'copy'), 'id', 'path', 'what', 'repair' and
    /// 'repaired'. With --repair, it imports no recording.
    #[arg(long)]
    json: bool,
}

fn size(text: &str) -> Result<u64, String> {
    match text {
        "infinity" => Ok(u64::MAX),
        text => parse_size(text).ok_or_else(|| "a size such as 500M or 2G".to_owned()),
    }
}

pub async fn run(args: FsckArgs, scope: &Scope) -> Result<Exit, Failure> {
    let archive = scope.data_dir().join("archive");
    let disk = Disk::read(&archive).map_err(|error| unreadable(&error, scope))?;
    let imported = Imported::read(&archive).map_err(|error| unreadable(&error, scope))?;
    // Before the rows: what is deleted meanwhile has no row, or is not in it.
    let deleted = deleted::read(&scope.data_dir()).map_err(|error| unreadable(&error, scope))?;
    let server = Server::reach(scope).await?;
    need_archive(&archive, &server, scope).await?;
    let mut check = Check {
        server: &server,
        lists: Lists::new(&archive),
        ended: BTreeSet::new(),
        deleted,
        archive,
        disk,
        imported,
        copies: Copies::default(),
        remote: Remote::default(),
        reads_content: !args.quick,
        report: Report::default(),
    };
    check.crawls().await?;
    check.pages(scope).await?;
    check.lists()?;
    check.unknown(scope).await?;
    check.copies(args.download.unwrap_or(0), scope).await?;
    check.ids().await?;
    check.index(scope).await?;
    let (mut report, lists) = (check.report, check.lists);
    if !args.json {
        style::print(&report.listed(&Style::of_stdout(), scope))?;
    }
    if args.repair {
        repair::repair(&mut report, &lists, &server, scope, !args.json).await?;
    }
    if args.json {
        style::print_value(&report)?;
    }
    Ok(if report.is_clean() { Exit::Done } else { Exit::Partly })
}

/// Refuses to compare with an archive whose file system is not mounted: all pages would be missing, and
/// archived again.
async fn need_archive(archive: &Path, server: &Server, scope: &Scope) -> Result<(), Failure> {
    let Some(problem) = archive::problem(scope, archive) else {
        return Ok(());
    };
    let status: Status = server.ask(|| server.proxy().status()).await?;
    let has_pages = status.snapshots.values().any(|count| *count > 0);
    if has_pages || !problem.is_usual_at_first(scope) {
        let fix = problem.fix();
        return Err(Failure::failed(format!("{problem}\n{fix}")));
    }
    Ok(())
}

/// Returns the error for a file of the archive that this user cannot read.
fn unreadable(error: &std::io::Error, scope: &Scope) -> Failure {
    let hint = match error.kind() {
        ErrorKind::PermissionDenied if !scope.user => {
            "\nthe archive is not readable by all users: sudo archivist fsck"
        }
        _ => "",
    };
    Failure::failed(format!("failed to check the archive: {error}{hint}"))
}

/// Returns whether a copy is on another host.
fn is_remote(object: &StoredObject) -> bool {
    let location = Location::parse(&object.store);
    location.is_none_or(|location| location.directory().is_none())
}

struct Check<'a> {
    server: &'a Server,
    archive: PathBuf,
    /// Directories that no row has so far.
    disk: Disk,
    imported: Imported,
    copies: Copies,
    /// Copies on other hosts.
    remote: Remote,
    lists: Lists,
    /// Pages that the search index must have.
    ended: BTreeSet<SnapshotId>,
    deleted: DeletedIds,
    reads_content: bool,
    report: Report,
}

impl Check<'_> {
    async fn crawls(&mut self) -> Result<(), Failure> {
        let mut paging = Paging::new(self.server, Filter::default());
        loop {
            let crawls = paging.next::<Crawl>().await?.rows;
            if crawls.is_empty() {
                return Ok(());
            }
            for crawl in crawls {
                self.report.checked.crawls += 1;
                self.imported.add_crawl(&crawl);
                let (Some(directory), id) = (crawl.directory, Owner::Crawl(crawl.id)) else {
                    continue;
                };
                self.disk.has_row(&self.archive, Path::new(&directory));
                self.lists.add_crawl(crawl.id, Path::new(&directory));
                // The worker of a crawl that was given up may have made none.
                let is_due = crawl.status == Lifecycle::Sealed && crawl.reason.is_none();
                if is_due && !Path::new(&directory).exists() {
                    self.report.add(Finding {
                        id: Some(id),
                        ..Finding::new(Kind::Directory, &directory, "its directory is missing")
                    });
                }
            }
        }
    }

    async fn pages(&mut self, scope: &Scope) -> Result<(), Failure> {
        let mut paging = Paging::new(self.server, Filter::default());
        loop {
            let pages = paging.next::<Snapshot>().await?.rows;
            if pages.is_empty() {
                return Ok(());
            }
            for page in pages {
                self.deleted(&page);
                let Some(directory) = &page.directory else {
                    continue;
                };
                self.disk.has_row(&self.archive, Path::new(directory));
                self.copies.has_row(&self.archive, Path::new(directory));
                if page.status.is_final() {
                    self.ended.insert(page.id);
                }
                if page.status == Lifecycle::Sealed {
                    self.page(&page, scope).await?;
                }
            }
        }
    }

    /// Names a page that was deleted and is there again, as in a copy of the database.
    fn deleted(&mut self, page: &Snapshot) {
        let owners = [Owner::Snapshot(page.id), Owner::Crawl(page.crawl)];
        let times = owners.iter().filter_map(|owner| self.deleted.get(owner));
        // A page that was queued later is another one, as after everything was removed by hand.
        let Some(time) = times.max().filter(|time| page.created_at.0 <= **time) else {
            return;
        };
        let path = page.directory.as_deref().unwrap_or_default();
        let what = format!(
            "it was deleted at {}, and the database has it again; to delete it: archivist delete {}",
            Time(*time),
            page.id
        );
        self.report.add(Finding {
            id: Some(Owner::Snapshot(page.id)),
            ..Finding::new(Kind::Deleted, path, what)
        });
    }

    async fn page(&mut self, listed: &Snapshot, scope: &Scope) -> Result<(), Failure> {
        let Some(page) = self.read(listed).await? else {
            return Ok(());
        };
        let checked = page.check(self.reads_content);
        let (mut findings, mut counts) = checked.map_err(|error| unreadable(&error, scope))?;
        let has_directory = findings.iter().all(|finding| finding.kind != Kind::Directory);
        if has_directory {
            let is_stored = counts.stored > 0;
            findings.extend(self.page_about(&page, is_stored, scope)?);
        }
        if let Some(object) = page.settled_object() {
            if is_remote(object) {
                self.remote.add(listed.id, object);
            }
            let compared = self
                .copies
                .compare(object, self.reads_content, &mut counts)
                .map_err(|error| unreadable(&error, scope))?;
            findings.extend(compared.map(|finding| page.own(finding)));
        }
        self.report.checked.add(&counts);
        if findings.is_empty() {
            return Ok(());
        }
        let is_unchanged = match self.read(listed).await? {
            Some(again) => again.snapshot.attempts == page.snapshot.attempts,
            None => false,
        };
        if is_unchanged {
            self.report.extend(findings);
        }
        Ok(())
    }

    /// Compares the HTML page about a page, and notes that lists must have it. A page whose worker was
    /// given up may have none, and that of a page in the store alone says how to restore it.
    fn page_about(
        &mut self,
        page: &Page,
        is_stored: bool,
        scope: &Scope,
    ) -> Result<Option<Finding>, Failure> {
        let directory = Path::new(page.snapshot.directory.as_deref().unwrap_or_default());
        let about = directory.join(PAGE);
        if page.snapshot.reason.is_some() && !about.exists() {
            return Ok(None);
        }
        self.lists.add(&page.snapshot, &page.results);
        if is_stored {
            return Ok(None);
        }
        let problem = flaw_of_snapshot(directory).map_err(|error| unreadable(&error, scope))?;
        Ok(problem.map(|what| Finding {
            repair: Some(finding::Repair::Page(page.snapshot.id)),
            ..page.own(Finding::new(Kind::List, about.to_string_lossy(), what))
        }))
    }

    async fn read(&self, listed: &Snapshot) -> Result<Option<Page>, Failure> {
        Page::read(self.server, listed.id).await
    }

    fn lists(&mut self) -> Result<(), Failure> {
        let problems = self.lists.problems();
        for problem in problems.map_err(|error| Failure::failed(error.to_string()))? {
            self.report.add(Finding {
                repair: Some(finding::Repair::List(problem.list)),
                ..Finding::new(Kind::List, problem.path.to_string_lossy(), problem.what)
            });
        }
        Ok(())
    }

    /// Compares the copies on other hosts, and reports copies that no row has. Of a page that changed
    /// meanwhile, nothing is reported.
    async fn copies(&mut self, read_max: u64, scope: &Scope) -> Result<(), Failure> {
        // Before the stores are listed: what was removed by then is not in them.
        let status: Status = self.server.ask(|| self.server.proxy().status()).await?;
        // Verbs that need the configuration report what is wrong with it.
        let settings = load(scope).ok().map(|(settings, _)| settings);
        // Nodes of a fleet may share a store, and each has the rows of its own pages only.
        let is_in_fleet = settings.as_ref().is_some_and(Settings::is_in_fleet);
        let mut unknown = Vec::new();
        if let Some(settings) = settings.filter(|_| !is_in_fleet) {
            if let Some(store) = &settings.store {
                self.copies.has_store(store);
            }
            let found = self.copies.unknown();
            unknown = found.map_err(|error| unreadable(&error, scope))?;
        }
        let checked = &mut self.report.checked;
        for difference in self.remote.compare(scope, read_max, checked).await? {
            match difference {
                Difference::Of(id, object, finding) => {
                    let page = Page::read(self.server, id).await?;
                    if page.is_some_and(|page| page.settled_object() == Some(&object)) {
                        self.report.add(finding);
                    }
                }
                Difference::Store(finding) => self.report.add(finding),
                Difference::Unknown(page, finding) => {
                    if !is_in_fleet && !self.copies.knows(&page) {
                        unknown.push((page, finding));
                    }
                }
            }
        }
        self.unknown_copies(unknown, status.deleting_copies).await
    }

    /// Reports the copies, with the paths of their pages below the archive, that no row has, unless they
    /// may be those of deleted pages. The rows of at most [`READ_AGAIN_MAX`] are read again.
    async fn unknown_copies(
        &mut self,
        unknown: Vec<(PathBuf, Finding)>,
        deleting: u64,
    ) -> Result<(), Failure> {
        if deleting > 0 {
            eprintln!(
                "copies of {deleting} deleted pages are being removed from the store: copies without rows are not reported"
            );
            return Ok(());
        }
        for (index, (page, finding)) in unknown.into_iter().enumerate() {
            if index >= READ_AGAIN_MAX || !self.has_row(&page).await? {
                self.report.add(finding);
            }
        }
        Ok(())
    }

    /// Returns whether a row has the page at a path below the archive by now.
    async fn has_row(&self, page: &Path) -> Result<bool, Failure> {
        let name = page.file_name().and_then(OsStr::to_str);
        let Some(owner) = name.and_then(Owner::of_directory) else {
            return Ok(false);
        };
        let rows = Paging::new(self.server, Filter::of(owner));
        let rows: Vec<Snapshot> = rows.collect().await?;
        let directory = rows.first().and_then(|row| row.directory.as_deref());
        Ok(directory.is_some_and(|directory| Path::new(directory) == self.archive.join(page)))
    }

    /// Compares imported recordings, and reports the directories that no row has, unless they are those of
    /// deleted pages.
    async fn unknown(&mut self, scope: &Scope) -> Result<(), Failure> {
        let status: Status = self.server.ask(|| self.server.proxy().status()).await?;
        let (is_deleting, checked) = (status.deleting > 0, &mut self.report.checked);
        let found = self.imported.compare(self.reads_content, !is_deleting, checked);
        let found = found.map_err(|error| unreadable(&error, scope))?;
        self.report.extend(found);
        if is_deleting {
            eprintln!(
                "files of {} deleted crawls and pages are being removed: directories without rows are not reported",
                status.deleting
            );
            return Ok(());
        }
        let paths = self.disk.without_row().map(|path| self.archive.join(path));
        for path in paths.filter(|path| path.exists()) {
            let what = match page::identity(&path) {
                Some(own) => format!("no row has this directory of {own}"),
                None => "no row has this directory".to_owned(),
            };
            self.report.add(Finding {
                repair: page::recording(&path).map(finding::Repair::Import),
                ..Finding::new(Kind::Unknown, path.to_string_lossy(), what)
            });
        }
        Ok(())
    }

    /// Compares the highest id of a directory with those that the orchestrator has handed out.
    async fn ids(&mut self) -> Result<(), Failure> {
        let status: Status = self.server.ask(|| self.server.proxy().status()).await?;
        let found = self.disk.highest;
        if status.ids.or_higher(found) == status.ids {
            return Ok(());
        }
        let what = format!(
            "the archive has ids up to {found}, of which the database has handed out those up to {}: they may be handed out again",
            status.ids
        );
        let path = self.archive.join(IdMarks::DIRECTORY);
        self.report.add(Finding {
            repair: Some(finding::Repair::Ids(found)),
            ..Finding::new(Kind::Ids, path.to_string_lossy(), what)
        });
        Ok(())
    }
}
