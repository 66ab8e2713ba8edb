//! One browser for the pages of a crawl, and a tab of it for each.
//!
//! `chromium_launch` runs the browser in a unit of its own and serves it at a socket;
//! `chromium_tab` loads a snapshot's page once; the hooks that save the page attach to that tab.

mod browser;
mod cdp;
mod frames;
pub mod launch;
mod load;
mod relay;
mod routes;
mod session;
pub mod tab;
mod view;

use crate::process::invocation::Invocation;
use crate::process::record::Finding;
pub use load::window;
use std::path::PathBuf;
pub use view::{MOST, navigation, of_page};

/// `CHROMIUM_ISOLATION=`: whose the browser is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Isolation {
    /// All snapshots of a crawl share one.
    Crawl,
    /// Every snapshot has its own.
    Snapshot,
}

impl Isolation {
    fn of(it: &Invocation) -> Isolation {
        match it.settings.text("CHROMIUM_ISOLATION").trim() {
            "snapshot" => Isolation::Snapshot,
            _ => Isolation::Crawl,
        }
    }
}

/// The working directory, which other hooks know by the same name.
fn here() -> Result<PathBuf, Finding> {
    std::env::current_dir()
        .map_err(|error| Finding::failed(format!("no working directory: {error}")))
}
