//! The declarations of watches, with their lists of URLs. They are read outside the transaction, on a
//! thread.

use crate::bus::call::Refusal;
use archivist_config::Scope;
use archivist_config::declare::files;
use archivist_config::declare::watch::{Watch, is_name};
use archivist_config::declare::{Declaration, Kind, url_file};
use archivist_core::text::Problem;
use std::collections::BTreeSet;
use std::path::PathBuf;

const URLS_MAX: usize = 10_000;

/// One watch as its files declare it now.
#[derive(Clone, Debug)]
pub struct WatchFile {
    pub path: PathBuf,
    pub watch: Watch,
    /// Lines of the declaration that make no sense, and what its URLFile= has that is no URL.
    pub problems: Vec<String>,
    /// The URLs of the declaration and of its URLFile=, or why there are none.
    pub urls: Result<Vec<String>, String>,
}

/// Reads all declarations.
pub fn read_all(scope: &Scope) -> Vec<WatchFile> {
    let (declarations, _) = files::read(scope);
    declarations
        .iter()
        .filter(|declaration| declaration.kind == Kind::Watch)
        .map(WatchFile::of)
        .collect()
}

pub fn read_named(scope: &Scope, name: &str) -> Result<WatchFile, Refusal> {
    let missing = || {
        Refusal::NoSuch(format!(
            "there is no watch '{name}' (a file {name}.watch, see archivist.watch(5))"
        ))
    };
    if !is_name(name) {
        return Err(missing());
    }
    let declaration = files::read_named(scope, Kind::Watch, name)
        .map_err(|problem| Refusal::Invalid(problem.text()))?
        .ok_or_else(missing)?;
    Ok(WatchFile::of(&declaration))
}

/// Whether no file declares this watch any more.
pub fn is_removed(scope: &Scope, name: &str) -> bool {
    !is_name(name) || files::is_removed(scope, Kind::Watch, name)
}

impl WatchFile {
    fn of(declaration: &Declaration) -> WatchFile {
        let (watch, problems) = Watch::of(declaration);
        let mut problems = problems.iter().map(Problem::text).collect();
        WatchFile {
            path: declaration.path.clone(),
            urls: urls(&watch, &mut problems),
            problems,
            watch,
        }
    }
}

/// Returns the URLs of a watch. What its URLFile= has that is not one is added to `problems`.
fn urls(watch: &Watch, problems: &mut Vec<String>) -> Result<Vec<String>, String> {
    let mut urls = watch.urls.clone();
    if let Some(path) = &watch.url_file {
        let found = url_file::read(path)?;
        problems.extend(found.refused.iter().map(Problem::text));
        urls.extend(found.urls);
    }
    let mut seen = BTreeSet::new();
    urls.retain(|url| seen.insert(url.clone()));
    match urls.len() {
        0 => Err(format!("watch '{}' has no URL", watch.name)),
        n if n > URLS_MAX => {
            Err(format!("watch '{}' has {n} URLs, more than {URLS_MAX}", watch.name))
        }
        _ => Ok(urls),
    }
}
