//! Replays of recordings: the browser, its network, and the reader that controls it.

pub mod namespace;
pub mod reader;

use crate::client::exit::Failure;
use crate::display::listing;
use crate::machine::browser;
use archivist_config::Scope;
use archivist_core::text::clean;
use archivist_hooks::process::finding::Finding;
use archivist_hooks::replay::{Listed, Namespace};
use archivist_plugin::Values;
use nix::unistd::geteuid;
use std::time::Duration;

/// Time limit for the start of the browser and a page.
pub const LIMIT: Duration = Duration::from_secs(120);

/// Finds the namespace of a replay in the browser of these settings, unless the caller wants none.
pub fn find_namespace(no_namespace: bool, settings: &Values) -> Result<Namespace, Failure> {
    if no_namespace {
        return Ok(Namespace::none());
    }
    namespace::find(settings.get(browser::BROWSER).map_or("chromium", String::as_str))
}

/// The settings of the browser of a replay. Without a namespace, it runs as the caller.
pub fn browser_settings(scope: &Scope, no_namespace: bool) -> Result<Values, Failure> {
    let is_other_user = geteuid().is_root() && !no_namespace;
    browser::settings(scope, is_other_user || scope.user)
}

/// Returns the error of a replay that failed.
pub fn failure(finding: Finding) -> Failure {
    Failure::failed(format!("failed to replay: {}", clean(&finding.output_str)))
}

/// The first `most` requests of a list, one a line, with their reasons.
pub fn lines(head: &str, listed: &[Listed], most: usize) -> String {
    if listed.is_empty() {
        return String::new();
    }
    let lines = listing::lines(listed, most, |one| {
        let (method, kind) = (clean(&one.method), clean(&one.kind));
        let (url, reason) = (clean(&one.url), clean(&one.reason));
        format!("  {method} {url} ({kind}): {reason}")
    });
    format!("{head}:\n{lines}")
}
