//! `archivist open`: opens a page of the archive in the browser.

use crate::client::exit::{Exit, Failure};
use crate::client::location;
use crate::client::page::{self, PageName};
use crate::client::server::Server;
use crate::display::style;
use crate::machine::browser::has_desktop;
use archivist_config::Scope;
use archivist_core::model::Owner;
use clap::Args;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Open the page about a crawl, a snapshot or the whole archive in the browser
///
/// Without an id, open the start page in the directory of the archive, which lists the newest
/// snapshots.
#[derive(Args)]
pub struct OpenArgs {
    /// A crawl (c12), a snapshot (s345), or the URL of a page; without it the whole archive
    ///
    /// With a URL, the newest snapshot of the page on this machine is opened, or with @TIME at the end
    /// the nearest one: https://example.com/@2024-05 is about a month, @2024 and @2024-05-17 about a year
    /// and a day, and @2024-05-17T12:00 about a moment.
    #[arg(value_name = "ID|URL[@TIME]")]
    page: Option<PageName>,
    /// Print the path of the page instead of opening it
    ///
    /// This is the default if neither DISPLAY nor WAYLAND_DISPLAY is set.
    #[arg(long)]
    print: bool,
}

pub async fn run(args: OpenArgs, scope: &Scope) -> Result<Exit, Failure> {
    let id = match &args.page {
        Some(PageName::Id(id)) => Some(*id),
        Some(PageName::Url(url, when)) => {
            let server = Server::reach(scope).await?;
            Some(Owner::Snapshot(page::nearest(url, *when, &server).await?.id))
        }
        None => None,
    };
    let place = match id {
        Some(id) => location::place_of(id, scope).await?,
        None => location::of_archive(scope),
    };
    let page = place.directory.join("index.html");
    std::fs::File::open(&page)
        .map_err(|error| location::unreadable(id, &page, &error, &place, scope))?;
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
