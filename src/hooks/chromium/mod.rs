//! One browser for the pages of a crawl, with one tab for each page.
//!
//! `chromium_launch` runs the browser in its own unit and serves it on a socket. `chromium_tab`
//! loads the page of a snapshot once. The hooks that save the page attach to that tab. `recorder`
//! keeps what the page requests meanwhile.

mod answers;
mod arrival;
pub mod authorities;
pub(crate) mod browser;
pub(crate) mod cdp;
mod client_certificate;
mod consent;
pub(crate) mod console;
mod cookies;
mod frames;
mod glyphs;
pub(crate) mod identity;
pub mod launch;
pub(crate) mod load;
pub(crate) mod look;
pub(crate) mod posted;
pub mod recorder;
mod relay;
pub(crate) mod reveal;
mod robots_check;
mod routes;
pub(crate) mod seed;
pub(crate) mod session;
pub(crate) mod stream;
mod subframes;
pub mod tab;
mod tab_events;
mod view;
pub(crate) mod wall;

use crate::process::finding::Finding;
use crate::process::invocation::Invocation;
pub use archivist_core::model::cookies::HTTP_ONLY;
pub use consent::consent_managers;
pub use glyphs::missing_fonts;
pub use identity::of_browser as user_agent;
pub use load::window;
use std::path::PathBuf;
pub use view::{
    PAGE_MAX_BYTES, TabView, await_tab, awaited_navigation, document, found_no_page, icon,
    is_recorded, navigation, responses, skip_if_unreachable, unanswered, with_page,
};

/// `CHROMIUM_ISOLATION=`: which pages share a browser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Isolation {
    /// All snapshots of a crawl share one browser.
    Crawl,
    /// Every snapshot has its own browser.
    Snapshot,
}

impl Isolation {
    fn of(invocation: &Invocation) -> Isolation {
        match invocation.settings.text("CHROMIUM_ISOLATION").trim() {
            "snapshot" => Isolation::Snapshot,
            _ => Isolation::Crawl,
        }
    }
}

/// The working directory: the plugin's output directory, in which other hooks look for the socket.
fn working_directory() -> Result<PathBuf, Finding> {
    std::env::current_dir()
        .map_err(|error| Finding::failed(format!("failed to read the working directory: {error}")))
}
