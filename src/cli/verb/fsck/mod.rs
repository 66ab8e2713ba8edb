//! `archivist fsck`: compares the rows of the orchestrator with the files of the archive. Pages may be
//! archived meanwhile. Without `--repair` it changes nothing, and with it nothing that it does not print.
//!
//! The directories of the archive are listed before the rows are: rows are never removed, so a
//! directory without a row is no page that was added in between. A page with a problem is read again,
//! so that a page that changed meanwhile has none.

mod copies;
mod digests;
mod disk;
mod finding;
mod page;
mod repair;

use crate::client::exit::{Exit, Failure};
use crate::client::paging::Paging;
use crate::client::server::Server;
use crate::display::style;
use crate::display::style::Style;
use archivist_core::model::{IdMarks, Lifecycle, Owner};
use archivist_shared::archive;
use archivist_shared::bus::documents::report::{Crawl, Details, Filter, Snapshot, Status};
use archivist_shared::config::{Scope, load};
use clap::Args;
use copies::Copies;
use disk::Disk;
use finding::{Finding, Kind, Report};
use page::Page;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

#[derive(Args)]
pub struct FsckArgs {
    /// Archive pages again whose directory is missing, and reserve the ids of unknown directories
    #[arg(long)]
    repair: bool,
    /// Compare names and sizes only, and read no content
    #[arg(long)]
    quick: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub async fn run(args: FsckArgs, scope: &Scope) -> Result<Exit, Failure> {
    let archive = scope.data_dir().join("archive");
    let disk = Disk::read(&archive).map_err(|error| unreadable(&error, scope))?;
    let server = Server::reach(scope).await?;
    need_archive(&archive, &server, scope).await?;
    let mut check = Check {
        server: &server,
        archive,
        disk,
        copies: Copies::default(),
        reads_content: !args.quick,
        report: Report::default(),
    };
    check.crawls().await?;
    check.pages(scope).await?;
    check.unknown();
    check.unknown_copies(scope)?;
    check.ids().await?;
    let mut report = check.report;
    if !args.json {
        style::print(&report.listed(&Style::of_stdout(), scope))?;
    }
    if args.repair {
        repair::repair(&mut report, &server, scope, !args.json).await?;
    }
    if args.json {
        let json = serde_json::to_string(&report)
            .map_err(|error| Failure::failed(format!("failed to write JSON: {error}")))?;
        style::print_json(&json)?;
    }
    Ok(if report.is_clean() {
        Exit::Done
    } else {
        Exit::Partly
    })
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

/// A check in progress.
struct Check<'a> {
    server: &'a Server,
    archive: PathBuf,
    /// Directories that no row has so far.
    disk: Disk,
    copies: Copies,
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
                let (Some(directory), id) = (crawl.directory, Owner::Crawl(crawl.id)) else {
                    continue;
                };
                self.disk.has_row(&self.archive, Path::new(&directory));
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
                let Some(directory) = &page.directory else {
                    continue;
                };
                self.disk.has_row(&self.archive, Path::new(directory));
                self.copies.has_row(&self.archive, Path::new(directory));
                if page.status == Lifecycle::Sealed {
                    self.page(&page, scope).await?;
                }
            }
        }
    }

    async fn page(&mut self, listed: &Snapshot, scope: &Scope) -> Result<(), Failure> {
        let Some(page) = self.read(listed).await? else {
            return Ok(());
        };
        let checked = page.check(self.reads_content);
        let (mut findings, mut counts) = checked.map_err(|error| unreadable(&error, scope))?;
        if let Some(object) = page.settled_object() {
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

    /// Returns a page with its results; `None` if it is not sealed any more.
    async fn read(&self, listed: &Snapshot) -> Result<Option<Page>, Failure> {
        let id = listed.id.to_string();
        let details: Details = self.server.ask(|| self.server.proxy().show(&id)).await?;
        Ok(match details {
            Details::Snapshot {
                snapshot,
                results,
                copy,
                ..
            } if snapshot.status == Lifecycle::Sealed => Some(Page {
                snapshot,
                results,
                copy,
            }),
            _ => None,
        })
    }

    /// Reports the directories that no row has.
    fn unknown(&mut self) {
        for path in self.disk.without_row() {
            let path = self.archive.join(path);
            let what = match page::identity(&path) {
                Some(own) => format!("no row has this directory of {own}"),
                None => "no row has this directory".to_owned(),
            };
            self.report
                .add(Finding::new(Kind::Unknown, path.to_string_lossy(), what));
        }
    }

    /// Reports the copies in the store that no row has. Nodes of a fleet may share a store, and each
    /// has the rows of its own pages only.
    fn unknown_copies(&mut self, scope: &Scope) -> Result<(), Failure> {
        self.report.checked.elsewhere = self.copies.elsewhere;
        // Verbs that need the configuration report what is wrong with it.
        let Ok((settings, _)) = load(scope) else {
            return Ok(());
        };
        if settings.is_in_fleet() {
            return Ok(());
        }
        if let Some(store) = &settings.store {
            self.copies.has_store(store);
        }
        let unknown = self.copies.unknown();
        self.report
            .extend(unknown.map_err(|error| unreadable(&error, scope))?);
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
