//! What a recording says about itself: the list of its requests in the file, and `recording.json`
//! next to it.

use crate::process::finding::Finding;
use crate::visit;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::Path;

/// Requests that `recording.json` names because they are not kept.
const NAMED_MAX: usize = 100;

/// Reason of a request that was still open when the recording ended.
pub const NO_RESPONSE: &str = "it had no response when the recording ended";

/// A request in the list of a page (`urn:pageinfo:URL`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Row {
    pub url: String,
    pub method: String,
    /// Status code, if there was a response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Type of the resource as the browser has it, in lower case.
    #[serde(rename = "type")]
    pub kind: String,
    /// Media type without parameters.
    pub mime: String,
    /// Bytes of the body that is in the file.
    pub bytes: u64,
    /// Whether the page requested the body, or a part of it, again when the recording ended.
    #[serde(rename = "isRepeated", skip_serializing_if = "std::ops::Not::not")]
    pub is_repeated: bool,
    /// Why it is not in the file, or not as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct PageInfo {
    pub url: String,
    /// Requests in the order in which they ended.
    pub requests: Vec<Row>,
    /// Requests that were not looked at, because there were too many.
    #[serde(rename = "leftOut")]
    pub left_out: usize,
    /// Errors of the page's scripts until it was ready, without those of frames of other sites.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errors: Option<Vec<String>>,
}

/// `recording.json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Description {
    /// Whether the file is complete. Until then, it is being written, or its writer was killed.
    pub is_complete: bool,
    pub url: String,
    /// Name of the file in the same directory.
    pub file: String,
    /// Program that made the recording; empty for the browser.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub recorder: String,
    /// Bytes of the file.
    pub bytes: u64,
    /// Whether the tab was killed, so that the last requests and the figures are missing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_recovered: bool,
    /// Whether all responses were stopped until they were read, because the browser cannot stream them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_stopped: bool,
    pub requests: usize,
    /// Requests that are in the file.
    pub kept: usize,
    /// The first requests that are not in the file, or not as a whole.
    pub missing: Vec<Missing>,
    /// Why text or picture of the page are not in the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_seen: Option<String>,
    /// Why there is no file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    pub url: String,
    pub reason: String,
}

impl Description {
    /// A recording of `url` that has begun.
    pub fn begun(url: &str, file: &str) -> Description {
        Description { url: url.to_owned(), file: file.to_owned(), ..Description::default() }
    }

    /// Reads `recording.json`. `None` if there is none.
    pub fn read(path: &Path) -> Option<Description> {
        visit::read(path)
    }

    /// Waits until the recording is complete, or has failed. The caller sets the deadline.
    pub async fn completed(path: &Path) -> Result<Description, Finding> {
        let is_over = |it: &Description| it.is_complete || it.error.is_some();
        let waiting = visit::becomes(path, is_over).await;
        waiting.map_err(|error| {
            Finding::failed(format!("failed to watch '{}': {error}", path.display()))
        })
    }

    pub fn add(&mut self, row: &Row, is_kept: bool) {
        self.requests += 1;
        self.kept += usize::from(is_kept);
        if let Some(reason) = row.reason.clone()
            && self.missing.len() < NAMED_MAX
        {
            let url = row.url.clone();
            self.missing.push(Missing { url, reason });
        }
    }

    /// Forgets requests without a response whose URL is in the file as a whole: the page has got nothing
    /// that the file lacks.
    pub fn forget_repeated(&mut self, rows: &[Row]) {
        let of_get = rows.iter().filter(|row| row.method == "GET");
        let whole = of_get.clone().filter(|row| row.reason.is_none() && row.status == Some(200));
        let whole: BTreeSet<&str> = whole.map(|row| row.url.as_str()).collect();
        let again = of_get.filter(|row| row.reason.as_deref() == Some(NO_RESPONSE));
        let again: BTreeSet<&str> = again.map(|row| row.url.as_str()).collect();
        self.missing.retain(|one| {
            let url = one.url.as_str();
            one.reason != NO_RESPONSE || !(whole.contains(url) && again.contains(url))
        });
    }

    /// Whether the file may have responses of servers: those of a killed tab are not counted.
    pub fn has_answers(&self) -> bool {
        self.kept > 0 || self.is_recovered
    }

    /// Remarks about what is not in the file.
    pub fn notes(&self) -> [Option<String>; 2] {
        let not_seen = self.not_seen.as_ref();
        let not_seen =
            not_seen.map(|reason| format!("text and picture of the page not recorded ({reason})"));
        [not_seen, self.missing_note()]
    }

    fn missing_note(&self) -> Option<String> {
        if self.is_recovered {
            return Some("the recording was cut off with the tab".to_owned());
        }
        let first = self.missing.first()?;
        let rest = match self.missing.len() - 1 {
            0 => String::new(),
            NAMED_MAX.. => " and many more".to_owned(),
            more => format!(" and {more} more"),
        };
        Some(format!("not recorded as a whole: '{}' ({}){rest}", first.url, first.reason))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_request_for_what_is_in_the_file_is_not_missing() {
        let row = |method: &str, url: &str, reason: Option<&str>| Row {
            method: method.to_owned(),
            url: url.to_owned(),
            status: reason.is_none().then_some(200),
            reason: reason.map(str::to_owned),
            ..Row::default()
        };
        let rows = [
            row("GET", "a", None),
            row("GET", "a", Some(NO_RESPONSE)),
            row("GET", "b", None),
            row("GET", "b", Some("net::ERR_X")),
            row("GET", "c", Some(NO_RESPONSE)),
            row("GET", "d", None),
            row("POST", "d", Some(NO_RESPONSE)),
        ];
        let mut description = Description::default();
        rows.iter().for_each(|row| description.add(row, row.reason.is_none()));
        description.forget_repeated(&rows);
        let missing: Vec<_> = description.missing.iter().map(|one| one.url.as_str()).collect();
        assert_eq!(missing, ["b", "c", "d"]);
    }
}
