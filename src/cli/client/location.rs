//! Where the files of a page are: on this machine, or restored from the store, also those of another node.

mod elsewhere;

use crate::client::exit::Failure;
use crate::client::fleet::{Fleet, Local};
use crate::client::paging::Source;
use crate::client::server::Server;
use archivist_config::Scope;
use archivist_core::model::{Lifecycle, Owner, SnapshotId};
use archivist_core::store::STORED_MARKER;
use archivist_core::text::clean;
use archivist_shared::bus::documents::report::{Crawl, Details, Snapshot};
use archivist_shared::bus::wire::StoreProxy;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Directory of a page, and why the page may be missing.
pub struct PageLocation {
    pub directory: PathBuf,
    without: &'static str,
    /// Whether it was archived, so that it had a directory.
    is_done: bool,
}

pub fn of_archive(scope: &Scope) -> PageLocation {
    PageLocation {
        directory: scope.data_dir().join("archive"),
        without: "nothing has been archived yet",
        is_done: false,
    }
}

/// Requests only the row of `id`; `show` returns much more.
pub async fn place_of(id: Owner, scope: &Scope) -> Result<PageLocation, Failure> {
    let server = Server::reach(scope).await?;
    let source = Source::Machine(&server);
    let row = match id {
        Owner::Crawl(_) => {
            let found = source.find::<Crawl>(id).await?;
            found.map(|row| (row.status, row.directory))
        }
        Owner::Snapshot(_) => {
            let found = source.find::<Snapshot>(id).await?;
            found.map(|row| (row.status, row.directory))
        }
    };
    let here = row.as_ref().and_then(|(_, directory)| directory.as_deref());
    if let Some(directory) = copy_elsewhere(id, here, scope).await? {
        return Ok(PageLocation {
            directory,
            without: "its copy in the store has none",
            is_done: true,
        });
    }
    let (status, directory) = row.ok_or_else(|| Failure::failed(format!("there is no {id}")))?;
    if let (Owner::Snapshot(id), Lifecycle::Sealed) = (id, status) {
        fetch(&server, id, directory.as_deref()).await?;
    }
    let without = why_there_is_no_page(id, status);
    let directory = directory.map(PathBuf::from);
    let directory =
        directory.ok_or_else(|| Failure::failed(format!("{id} has no page yet: {without}")))?;
    Ok(PageLocation { directory, without, is_done: status == Lifecycle::Sealed })
}

/// Returns the restored files of a page that another node of the fleet has archived, or archived later
/// than this machine; `None` if the newest copy is on this machine.
///
/// # Errors
/// If the newest copy is elsewhere, and the store does not have it.
async fn copy_elsewhere(
    id: Owner,
    here: Option<&str>,
    scope: &Scope,
) -> Result<Option<PathBuf>, Failure> {
    match asked(id, here, scope).await {
        Err(failure) if here.is_some() && failure.is_unreachable() => {
            eprintln!("the fleet cannot be reached: another node may have a newer copy of {id}");
            Ok(None)
        }
        answer => answer,
    }
}

async fn asked(id: Owner, here: Option<&str>, scope: &Scope) -> Result<Option<PathBuf>, Failure> {
    let Some(fleet) = Fleet::reach(scope, Local::default()).await? else {
        return Ok(None);
    };
    match id {
        Owner::Snapshot(page) => {
            let Some(page) = fleet.page(page).await? else {
                return Ok(None);
            };
            let is_here = fleet.is_here(page.node.as_deref());
            match newest(&page, is_here, here) {
                Ok(note) => {
                    note.iter().for_each(|note| eprintln!("{note}"));
                    Ok(None)
                }
                Err(why) => restored(&page, &why, &fleet, scope).await.map(Some),
            }
        }
        Owner::Crawl(_) if here.is_some() => Ok(None),
        Owner::Crawl(_) => match fleet.show(id).await? {
            Details::Crawl { crawl, .. } if !crawl.nodes.is_empty() => {
                Err(Failure::failed(format!(
                    "no page of {id} is on this machine; its pages are on {}; run there: archivist open {id}",
                    clean(&crawl.nodes.join(", "))
                )))
            }
            _ => Ok(None),
        },
    }
}

/// Restores a page from the store that is `elsewhere`, as a sentence says. Returns its directory.
///
/// # Errors
/// The sentence, and why the store is of no use.
async fn restored(
    page: &Snapshot,
    elsewhere: &str,
    fleet: &Fleet,
    scope: &Scope,
) -> Result<PathBuf, Failure> {
    // A page that is being archived is not in the store.
    if !page.status.is_final() {
        return Err(Failure::failed(elsewhere));
    }
    match elsewhere::fetch(fleet, page, scope).await {
        Ok(Some(directory)) => {
            let (id, node) = (page.id, clean(page.node.as_deref().unwrap_or_default()));
            eprintln!("{id} is on node '{node}'; these files are from its copy in the store");
            Ok(directory)
        }
        Ok(None) => Err(Failure::failed(elsewhere)),
        Err(failure) => Err(Failure::failed(format!(
            "{elsewhere}\nthe store does not give it: {}",
            failure.message()
        ))),
    }
}

/// Returns what to say of other copies if the newest copy of a page is that of this machine, in the
/// directory `here`; else where the newest is.
fn newest(page: &Snapshot, is_here: bool, here: Option<&str>) -> Result<Option<String>, String> {
    let id = page.id;
    let node = clean(page.node.as_deref().unwrap_or_default());
    let older = clean(&page.older_copies.join(", "));
    let others = (!older.is_empty()).then(|| format!("older copies of {id} are on: {older}"));
    if is_here {
        return Ok(others);
    }
    match (page.status.is_final() && !node.is_empty(), here) {
        (true, here) => {
            let directory = page.directory.as_deref().map(clean);
            let directory = directory.map_or_else(String::new, |path| format!(", in '{path}'"));
            let mut why =
                format!("{id} is on node '{node}'{directory}; run there: archivist open {id}");
            if let Some(here) = here {
                why.push_str(&format!("\nan older copy is on this machine, in '{here}'"));
            }
            if let Some(others) = others {
                why.push_str(&format!("\n{others}"));
            }
            Err(why)
        }
        (false, Some(_)) => Ok(Some(format!("{id} is being archived again: this copy is older"))),
        (false, None) if node.is_empty() => Ok(None),
        (false, None) => Err(format!(
            "{id} has no page yet: it is on node '{node}', and not done; run there: archivist show {id}"
        )),
    }
}

/// Waits until the files of a page are restored that only the store has. The orchestrator notes that
/// a user reads the page, so that its files stay for a while.
pub async fn fetch(
    server: &Server,
    id: SnapshotId,
    directory: Option<&str>,
) -> Result<(), Failure> {
    let Some(directory) = directory else {
        return Ok(());
    };
    // Without a marker the files are there; it can be read by those who can read the page.
    if Path::new(directory).join("index.html").exists()
        && !Path::new(directory).join(STORED_MARKER).exists()
    {
        return Ok(());
    }
    let id = id.to_string();
    server
        .wait_for(|| async { server.feature::<StoreProxy<'_>>().await?.fetch(&id).await })
        .await
        .map(drop)
}

fn why_there_is_no_page(id: Owner, status: Lifecycle) -> &'static str {
    match (id, status) {
        (_, Lifecycle::Queued | Lifecycle::Paused) => "it is waiting in the queue",
        (Owner::Snapshot(_), Lifecycle::Started) => {
            "it is running, and its page is written at the end"
        }
        (Owner::Crawl(_), Lifecycle::Started) => "none of its snapshots is done",
        (Owner::Snapshot(_), Lifecycle::Sealed) => "its worker did not finish; see: archivist why",
        (Owner::Crawl(_), Lifecycle::Sealed) => {
            "its worker did not finish, or its directory was removed"
        }
        (_, Lifecycle::Cancelled) => "it was cancelled",
    }
}

/// Returns the error for a page that cannot be read, with a hint.
pub fn unreadable(
    id: Option<Owner>,
    page: &Path,
    error: &std::io::Error,
    place: &PageLocation,
    scope: &Scope,
) -> Failure {
    let page = page.display();
    let what = id.map_or("the archive".to_owned(), |id| id.to_string());
    Failure::failed(match error.kind() {
        ErrorKind::NotFound if was_removed(place) => {
            let directory = place.directory.display();
            match id {
                Some(id @ Owner::Snapshot(_)) => format!(
                    "{what} has no page: its directory '{directory}' was removed\nto archive it again: archivist retry {id}"
                ),
                _ => format!("{what} has no page: its directory '{directory}' was removed"),
            }
        }
        ErrorKind::NotFound => {
            format!("{what} has no page: {}\nit would be '{page}'", place.without)
        }
        ErrorKind::PermissionDenied if !scope.user => format!(
            "cannot read '{page}': {error}\nthe archive is not readable by all users: run this with sudo, or let root copy {what} \
             to a place that you can read; the pages work anywhere"
        ),
        _ => format!("cannot read '{page}': {error}"),
    })
}

/// Returns whether the directory of something that is done does not exist, although the archive
/// does.
fn was_removed(place: &PageLocation) -> bool {
    // DAY/HOST/ID in the archive.
    let archive = place.directory.ancestors().nth(3);
    place.is_done && !place.directory.exists() && archive.is_some_and(Path::exists)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::exit::Exit;
    use crate::sample;
    use std::io::Error;

    #[test]
    fn newest_copy_in_the_fleet_wins() {
        let page = |status, node: &str, older: &[&str]| Snapshot {
            status,
            node: Some(node.to_owned()).filter(|node| !node.is_empty()),
            older_copies: older.iter().map(|node| (*node).to_owned()).collect(),
            directory: Some("/var/lib/archivist/archive/20261125/a.lan/s3".to_owned()),
            ..sample::snapshot(3)
        };
        let sealed = Lifecycle::Sealed;
        assert_eq!(newest(&page(sealed, "n1", &[]), true, Some("/a")), Ok(None));
        let note = newest(&page(sealed, "n1", &["n3"]), true, Some("/a")).unwrap();
        assert_eq!(note.as_deref(), Some("older copies of s3 are on: n3"));
        let elsewhere = newest(&page(sealed, "n2", &["n3"]), false, Some("/a/s3")).unwrap_err();
        for part in [
            "node 'n2', in '/var/lib/archivist/archive/20261125/a.lan/s3'",
            "run there: archivist open s3",
            "an older copy is on this machine, in '/a/s3'",
            "older copies of s3 are on: n3",
        ] {
            assert!(elsewhere.contains(part), "{part}: {elsewhere}");
        }
        let again = newest(&page(Lifecycle::Queued, "", &["n1"]), false, Some("/a")).unwrap();
        assert!(again.unwrap().contains("this copy is older"));
        let running = newest(&page(Lifecycle::Started, "n2", &[]), false, None).unwrap_err();
        assert!(running.contains("node 'n2', and not done"), "{running}");
    }

    #[test]
    fn errors_say_what_to_do() {
        let id = Owner::Snapshot(SnapshotId(3));
        let place = PageLocation {
            directory: "/a".into(),
            without: why_there_is_no_page(id, Lifecycle::Started),
            is_done: false,
        };
        let tell = |id, kind: ErrorKind, user| {
            let scope = Scope { user, ..Scope::system("/") };
            let page = Path::new("/a/index.html");
            let failure = unreadable(id, page, &Error::from(kind), &place, &scope);
            assert_eq!(failure.exit(), Exit::Failed);
            failure.message().to_owned()
        };
        let missing = tell(Some(id), ErrorKind::NotFound, false);
        assert!(missing.starts_with("s3 has no page: it is running"), "{missing}");
        let top = tempfile::tempdir().unwrap();
        let gone = PageLocation {
            directory: top.path().join("s3"),
            without: why_there_is_no_page(id, Lifecycle::Sealed),
            is_done: true,
        };
        let page = gone.directory.join("index.html");
        let missing = Error::from(ErrorKind::NotFound);
        let failure = unreadable(Some(id), &page, &missing, &gone, &Scope::system("/"));
        let said = failure.message();
        assert!(
            said.contains("/s3' was removed\nto archive it again: archivist retry s3"),
            "{said}"
        );
        std::fs::create_dir(&gone.directory).unwrap();
        let failure = unreadable(Some(id), &page, &missing, &gone, &Scope::system("/"));
        assert!(failure.message().contains("did not finish"));
        let denied = tell(None, ErrorKind::PermissionDenied, false);
        assert!(denied.contains("'/a/index.html'") && denied.contains("sudo"), "{denied}");
        assert!(!tell(Some(id), ErrorKind::PermissionDenied, true).contains("sudo"));
    }
}
