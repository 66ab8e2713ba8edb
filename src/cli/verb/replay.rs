//! `archivist replay`: shows a recorded page in a browser without a network.

use crate::client::exit::{Exit, Failure};
use crate::client::reader_files::{self, Wanted};
use crate::client::server::Server;
use crate::display::{listing, style};
use crate::machine::browser::has_desktop;
use crate::recording::archive::Archive;
use crate::recording::finder::{LocalFinder, Place};
use crate::recording::recordings::{Located, Recording, Target};
use crate::replay::{LIMIT, browser_settings, failure, find_namespace, lines, reader};
use crate::survey::job::ReaderJob;
use crate::survey::replay::{FLAWS_MAX, Shown};
use archivist_config::Scope;
use archivist_core::text::clean;
use archivist_hooks::picture::PictureFormat;
use archivist_hooks::replay::{self, Answers, Replay};
use archivist_plugin::files::whole::{Survives, replace};
use clap::Args;
use nix::unistd::geteuid;
use std::io::{self, ErrorKind, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Show a recorded page in the browser, without a network
///
/// The page is loaded from its recording, in the browser of hooks with an empty profile. The browser
/// runs in a network namespace without a network, so that nothing reaches the web or this machine: as
/// a unit if root calls, else as a unit of the user's service manager or in a user namespace, and does not see
/// the home directory. Only pages of http and https are shown, and what is not in the recording fails, and
/// is listed when the window is closed.
#[derive(Args)]
pub struct ReplayArgs {
    /// A snapshot (s345), a crawl (c12), a URL of the archive, or a WACZ or WARC file
    ///
    /// A crawl begins with its first page, and of a URL, the newest snapshot with a recording is shown.
    /// Links lead to other pages of the archive: of several snapshots, that nearest in time to the first
    /// page is shown. A file is shown alone.
    #[arg(value_name = "WHAT")]
    target: Target,
    /// Load the page without a window, and print how its requests were answered
    #[arg(long)]
    headless: bool,
    /// Save a picture of the page as PNG in FILE
    #[arg(long, value_name = "FILE", requires = "headless")]
    screenshot: Option<PathBuf>,
    /// Rely on options of chromium if this machine has no network namespaces
    #[arg(long)]
    no_namespace: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub async fn run(args: ReplayArgs, scope: &Scope) -> Result<Exit, Failure> {
    let shown = if args.headless { load(&args, scope).await? } else { show(&args, scope).await? };
    if args.json {
        style::print_value(&shown)?;
    } else {
        style::print(&text(&shown, listing::most(&std::io::stdout())))?;
    }
    Ok(Exit::Done)
}

/// Shows the page in a window, in this process.
async fn show(args: &ReplayArgs, scope: &Scope) -> Result<Shown, Failure> {
    check_display()?;
    let recording = Recording::open(&args.target, scope).await?;
    let settings = browser_settings(scope, args.no_namespace)?;
    let replay = Replay {
        url: recording.url.clone(),
        time: recording.time,
        world: recording.world(),
        namespace: find_namespace(args.no_namespace, &settings)?,
        viewport: None,
        picture: PictureFormat::Png,
        limit: LIMIT,
        settings,
    };
    let file = Arc::clone(&recording.file);
    let answers: Arc<dyn Answers> = match recording.page {
        None => Arc::new(recording.index()),
        Some(page) => {
            let finder = LocalFinder::new(Server::reach(scope).await?, recording.path);
            Arc::new(Archive::new(finder, Place { page, file: 0 }, recording.file))
        }
    };
    let requests = replay::show(&replay, answers).await.map_err(failure)?;
    for flaw in file.noticed().iter().take(FLAWS_MAX) {
        eprintln!("{}, ignoring", clean(&flaw.to_string()));
    }
    let (url, recorded) = ((*replay.url).to_owned(), replay.time.to_string());
    Ok(Shown { url, recorded, requests, page: None })
}

/// Lets a reader load the page.
async fn load(args: &ReplayArgs, scope: &Scope) -> Result<Shown, Failure> {
    let located = Located::find(&args.target, scope).await?;
    let unwritten = |error: io::Error| {
        let path = args.screenshot.as_deref().unwrap_or(Path::new("the picture"));
        Failure::failed(format!("failed to write '{}': {error}", path.display()))
    };
    let mut picture = reader_files::scratch().map_err(unwritten)?;
    let output = picture.try_clone().map_err(unwritten)?;
    let finder = match located.page {
        Some(_) => Some(LocalFinder::new(Server::reach(scope).await?, located.path.clone())),
        None => None,
    };
    let open = move |wanted| match (wanted, &finder) {
        (Wanted::Output, _) => Ok(vec![output.try_clone()?.into()]),
        (wanted, Some(finder)) => reader::of_archive(finder, wanted),
        _ => Err(ErrorKind::NotFound.into()),
    };
    let (target, no_namespace) = (&args.target, args.no_namespace);
    let shown = reader::read(target, located, scope, no_namespace, ReaderJob::Replay, open).await?;
    if let Some(path) = &args.screenshot {
        let mut bytes = Vec::new();
        picture.rewind().and_then(|()| picture.read_to_end(&mut bytes)).map_err(unwritten)?;
        replace(path, &bytes, 0o644, Survives::PowerCut).map_err(unwritten)?;
    }
    Ok(shown)
}

/// A window needs a display, and a user whose display it is.
fn check_display() -> Result<(), Failure> {
    const HINT: &str = "without a window: archivist replay --headless";
    if !has_desktop(|name| std::env::var_os(name)) {
        return Err(Failure::usage(format!(
            "there is no display: neither DISPLAY nor WAYLAND_DISPLAY is set\n{HINT}"
        )));
    }
    if geteuid().is_root() {
        return Err(Failure::usage(format!(
            "chromium opens no window for root: run this as the user of the desktop\n{HINT}"
        )));
    }
    Ok(())
}

fn text(shown: &Shown, most: usize) -> String {
    let requests = &shown.requests;
    let mut text = format!("{}, recorded {}\n", clean(&shown.url), clean(&shown.recorded));
    text.push_str(&format!(
        "requests: {} answered exactly, {} by a rule, {} not recorded\n",
        requests.exact, requests.fuzzy, requests.missing
    ));
    text.push_str(&lines("answered by a rule", &requests.by_rule, most));
    text.push_str(&lines("not answered", &requests.not_answered, most));
    if let Some(note) = shown.page.as_ref().and_then(|page| page.note.as_ref()) {
        text.push_str(&format!("note: {}\n", clean(note)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_hooks::replay::{Listed, Requests};

    #[test]
    fn requests_that_were_not_answered_exactly_are_listed() {
        let listed = |reason: &str| Listed {
            method: "GET".to_owned(),
            url: "http://a.test/\u{1b}[1m".to_owned(),
            kind: "image".to_owned(),
            reason: reason.to_owned(),
        };
        let requests = Requests {
            exact: 5,
            fuzzy: 1,
            missing: 1,
            failed: 0,
            by_rule: vec![listed("query of a static file")],
            not_answered: vec![listed("not recorded")],
        };
        let shown = Shown {
            url: "http://a.test/".to_owned(),
            recorded: "2026-11-26T09:00:00Z".to_owned(),
            requests,
            page: None,
        };
        assert_eq!(
            text(&shown, 1),
            "http://a.test/, recorded 2026-11-26T09:00:00Z\n\
             requests: 5 answered exactly, 1 by a rule, 1 not recorded\n\
             answered by a rule:\n  \
             GET http://a.test/\u{fffd}[1m (image): query of a static file\n\
             not answered:\n  \
             GET http://a.test/\u{fffd}[1m (image): not recorded\n"
        );
    }
}
