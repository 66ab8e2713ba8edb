//! What a recording says about itself: the list of its requests in the file, and `recording.json`
//! next to it.

use super::super::session;
use crate::process::finding::Finding;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Requests that `recording.json` names because they are not kept.
const NAMED_MAX: usize = 100;

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
    /// Why it is not in the file, or not as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The list of a page.
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
    /// URL of the page.
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
    /// Requests of the page.
    pub requests: usize,
    /// Requests that are in the file.
    pub kept: usize,
    /// The first requests that are not in the file, or not as a whole.
    pub missing: Vec<Missing>,
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
        session::read(path)
    }

    /// Waits until the recording is complete, or has failed. The caller sets the deadline.
    pub async fn completed(path: &Path) -> Result<Description, Finding> {
        let is_over = |it: &Description| it.is_complete || it.error.is_some();
        let waiting = session::becomes(path, is_over).await;
        waiting.map_err(|error| {
            Finding::failed(format!("failed to watch '{}': {error}", path.display()))
        })
    }

    /// Adds a request.
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

    /// Whether the file may have responses of servers: those of a killed tab are not counted.
    pub fn has_answers(&self) -> bool {
        self.kept > 0 || self.is_recovered
    }

    /// A remark about what is not in the file.
    pub fn note(&self) -> Option<String> {
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
