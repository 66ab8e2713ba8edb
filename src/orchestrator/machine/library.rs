//! The programs that providers installed, and what is known of others.

use crate::database::{BinaryRow, CrawlWork};
use archivist_core::model::Time;
use archivist_plugin::programs::install;
use std::collections::HashMap;
use std::path::PathBuf;

/// The provider of programs that no provider installed.
pub const HERE: &str = "env";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Brought {
    pub path: PathBuf,
    pub at: Time,
}

/// Programs that providers installed, by requested name.
pub type Library = HashMap<String, Brought>;

pub fn library(rows: Vec<BinaryRow>) -> Library {
    let brought = rows.into_iter().filter(|row| row.provider != HERE);
    let pairs = brought.map(|row| {
        let (path, at) = (PathBuf::from(row.abspath), row.found_at);
        (row.name, Brought { path, at })
    });
    pairs.collect()
}

pub fn versions(rows: &[BinaryRow]) -> HashMap<PathBuf, String> {
    rows.iter()
        .filter_map(|row| Some((PathBuf::from(&row.abspath), row.version.clone()?)))
        .collect()
}

/// The names that this crawl installs, if it is an installation.
pub fn installed_names(crawl: &CrawlWork) -> Option<Vec<String>> {
    let names = crawl.url.strip_prefix(install::URL)?;
    Some(names.split(',').map(str::to_owned).collect())
}
