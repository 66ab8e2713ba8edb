//! `archivist survey`, hidden: reads a file that `archivist import` has got, in a process without
//! rights. Prints what it has, one JSON object a line.

use crate::client::exit::{Exit, Failure};
use crate::display::style;
use archivist_core::model::URL_MAX;
use archivist_core::text::clean;
use archivist_warc::wacz::Wacz;
use nix::sys::resource::{Resource, setrlimit};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::os::fd::AsFd;

/// Memory of the process, which the kernel limits.
const MEMORY_MAX_BYTES: u64 = 256 << 20;

/// What a line says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Surveyed {
    /// A page, and when it was recorded.
    Page {
        url: String,
        title: String,
        time: String,
    },
    /// A part of the file that cannot be used, and why.
    Fault(String),
    /// The file cannot be used at all.
    Unusable(String),
}

/// Reads the file that is standard input.
pub fn run() -> Result<Exit, Failure> {
    let failed = |error: &dyn std::fmt::Display| {
        Failure::failed(format!("failed to read the file: {error}"))
    };
    setrlimit(Resource::RLIMIT_AS, MEMORY_MAX_BYTES, MEMORY_MAX_BYTES)
        .map_err(|error| failed(&error))?;
    let input = std::io::stdin().as_fd().try_clone_to_owned();
    let file = File::from(input.map_err(|error| failed(&error))?);
    let survey = match Wacz::survey(file) {
        Ok(survey) => survey,
        Err(error) => {
            print(&Surveyed::Unusable(error.to_string()))?;
            return Ok(Exit::Done);
        }
    };
    for fault in &survey.faults {
        print(&Surveyed::Fault(fault.to_string()))?;
    }
    for page in survey.pages {
        if page.url.len() > URL_MAX {
            let start: String = clean(&page.url).chars().take(80).collect();
            print(&Surveyed::Fault(format!(
                "URL of a page is too long: {start}…"
            )))?;
            continue;
        }
        print(&Surveyed::Page {
            url: page.url,
            title: page.title.chars().take(1000).collect(),
            time: page.time.to_string(),
        })?;
    }
    Ok(Exit::Done)
}

fn print(line: &Surveyed) -> Result<(), Failure> {
    let line = serde_json::to_string(line)
        .map_err(|error| Failure::failed(format!("failed to write JSON: {error}")))?;
    style::print(&format!("{line}\n"))
}
