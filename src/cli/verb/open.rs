//! `archivist open`: opens a page of the archive in the browser.

use crate::client::exit::{Exit, Failure};
use crate::client::server::Server;
use crate::display::style;
use archivist_core::model::{Lifecycle, Owner, SnapshotId};
use archivist_core::store::STORED_MARKER;
use archivist_shared::bus::documents::report::{Crawl, Filter, Snapshot};
use archivist_shared::config::Scope;
use clap::Args;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Args)]
pub struct OpenArgs {
    /// A crawl (c12) or a snapshot (s345); without it the whole archive
    #[arg(value_name = "ID")]
    id: Option<Owner>,
    /// Print the path of the page instead of opening it (the default without a desktop)
    #[arg(long)]
    print: bool,
}

pub async fn run(args: OpenArgs, scope: &Scope) -> Result<Exit, Failure> {
    let place = match args.id {
        Some(id) => place_of(id, scope).await?,
        None => of_archive(scope),
    };
    let page = place.directory.join("index.html");
    std::fs::File::open(&page)
        .map_err(|error| unreadable(args.id, &page, &error, &place, scope))?;
    if args.print || !has_desktop(|name| std::env::var_os(name)) {
        style::print(&format!("{}\n", page.display()))?;
        return Ok(Exit::Done);
    }
    // Replaces this process: archivist has no children.
    let error = Command::new("xdg-open").arg(&page).exec();
    Err(Failure::failed(format!(
        "failed to run xdg-open: {error}; it is part of the package xdg-utils; the page is {}",
        page.display()
    )))
}

/// Directory of a page, and why the page may be missing.
struct PageLocation {
    directory: PathBuf,
    without: &'static str,
    /// Whether it was archived, so that it had a directory.
    is_done: bool,
}

fn of_archive(scope: &Scope) -> PageLocation {
    PageLocation {
        directory: scope.data_dir().join("archive"),
        without: "nothing has been archived yet",
        is_done: false,
    }
}

/// Requests only the row of `id`; `show` returns much more.
async fn place_of(id: Owner, scope: &Scope) -> Result<PageLocation, Failure> {
    let server = Server::reach(scope).await?;
    let row = Filter {
        owner: Some(id),
        limit: 1,
        ..Filter::default()
    };
    let filter = serde_json::to_string(&row).map_err(|e| Failure::failed(e.to_string()))?;
    let row = match id {
        Owner::Crawl(_) => {
            let rows: Vec<Crawl> = server
                .ask(|| server.proxy().list("crawls", &filter))
                .await?;
            rows.into_iter()
                .next()
                .map(|row| (row.status, row.directory))
        }
        Owner::Snapshot(_) => {
            let rows: Vec<Snapshot> = server
                .ask(|| server.proxy().list("snapshots", &filter))
                .await?;
            rows.into_iter()
                .next()
                .map(|row| (row.status, row.directory))
        }
    };
    let (status, directory) = row.ok_or_else(|| Failure::failed(format!("there is no {id}")))?;
    if let (Owner::Snapshot(id), Lifecycle::Sealed) = (id, status) {
        fetch(&server, id, directory.as_deref()).await?;
    }
    let without = why_there_is_no_page(id, status);
    let directory = directory.map(PathBuf::from);
    let directory =
        directory.ok_or_else(|| Failure::failed(format!("{id} has no page yet: {without}")))?;
    Ok(PageLocation {
        directory,
        without,
        is_done: status == Lifecycle::Sealed,
    })
}

/// Waits until the files of a page are restored that only the store has. The orchestrator notes that
/// a user reads the page, so that its files stay for a while.
async fn fetch(server: &Server, id: SnapshotId, directory: Option<&str>) -> Result<(), Failure> {
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
        .wait_for(|| server.proxy().fetch(&id))
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
fn unreadable(
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
            format!(
                "{what} has no page: {}\nit would be '{page}'",
                place.without
            )
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

/// Returns whether a browser has a display to open on.
fn has_desktop(env: impl Fn(&str) -> Option<OsString>) -> bool {
    let is_set = |name| env(name).is_some_and(|value| !value.is_empty());
    is_set("DISPLAY") || is_set("WAYLAND_DISPLAY")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Error;

    #[test]
    fn a_desktop_is_a_display() {
        let env = |set: &'static str, value: &'static str| {
            move |name: &str| (name == set).then(|| OsString::from(value))
        };
        assert!(has_desktop(env("DISPLAY", ":0")));
        assert!(has_desktop(env("WAYLAND_DISPLAY", "wayland-0")));
        assert!(!has_desktop(env("DISPLAY", "")));
        assert!(!has_desktop(env("TERM", "xterm")));
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
            let scope = Scope {
                user,
                ..Scope::system("/")
            };
            let page = Path::new("/a/index.html");
            let failure = unreadable(id, page, &Error::from(kind), &place, &scope);
            assert_eq!(failure.exit(), Exit::Failed);
            failure.message().to_owned()
        };
        let missing = tell(Some(id), ErrorKind::NotFound, false);
        assert!(
            missing.starts_with("s3 has no page: it is running"),
            "{missing}"
        );
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
        assert!(
            denied.contains("'/a/index.html'") && denied.contains("sudo"),
            "{denied}"
        );
        assert!(!tell(Some(id), ErrorKind::PermissionDenied, true).contains("sudo"));
    }
}
