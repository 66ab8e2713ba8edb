//! Results of the hooks that ran before, from their output.

use super::read_start;
use crate::chromium;
use crate::process::invocation::Invocation;
use serde_json::Value;
use std::path::PathBuf;

/// Field of a result: id of the visit of the page from which its files are.
pub const VISIT: &str = "visit";

/// The HTML that `dom` saved of the visit that chromium has reported last, if it did. That of an
/// earlier visit may be of another state of the page.
pub fn saved_dom(invocation: &Invocation) -> Option<PathBuf> {
    let visit = chromium::navigation(invocation)?.target;
    let record = last_success(invocation, "dom")?;
    let is_own = !visit.is_empty() && record[VISIT] == visit.as_str();
    is_own.then(|| invocation.sibling("dom", "output.html"))
}

/// The last result of a plugin that succeeded, in the output of its last run.
pub fn last_success(invocation: &Invocation, plugin: &str) -> Option<Value> {
    let output = read_start(&invocation.sibling(plugin, "stdout.log"), 1 << 20)?;
    let text = String::from_utf8_lossy(&output);
    let mut records =
        text.lines().rev().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    records.find(|record| record["type"] == "ArchiveResult" && record["status"] == "succeeded")
}
