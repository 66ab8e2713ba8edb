//! A page that another node of the fleet has archived: its files come from the store, if the node has
//! copied them, and this machine has the same store and its keys.

use crate::client::exit::Failure;
use crate::client::fleet::Fleet;
use crate::client::owner::as_owner;
use crate::client::transfer::{self, Transfer};
use archivist_config::{Scope, load};
use archivist_core::model::Owner;
use archivist_core::store::{Foreign, path_of_page};
use archivist_plugin::files::remove::remove_tree;
use archivist_shared::bus::documents::report::{Details, HookResult, Snapshot};
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Directory below the archive for pages of other nodes. systemd-tmpfiles removes those of days before.
const FETCHED: &str = ".fetched";
/// Mode of it and of the directories in it, as of the archive.
const MODE: u32 = 0o750;
/// Bytes that a copy may have in addition to twice the files of its results: names, lists and pages that
/// the worker writes.
const SIZE_OF_REST: u64 = 64 << 20;

/// Restores the newest copy of a page. Returns its directory; `None` if there is no store, or this user
/// may not use its keys.
///
/// # Errors
/// If the store has no intact copy.
pub async fn fetch(
    fleet: &Fleet,
    page: &Snapshot,
    scope: &Scope,
) -> Result<Option<PathBuf>, Failure> {
    let settings = load(scope).ok().map(|(settings, _)| settings);
    let Some(store) = settings.and_then(|settings| settings.store) else {
        return Ok(None);
    };
    let path = page.directory.as_deref().and_then(path_of_page);
    let Some(path) = path.filter(|_| transfer::is_allowed(scope)) else {
        return Ok(None);
    };
    let results = match fleet.show(Owner::Snapshot(page.id)).await? {
        Details::Snapshot { results, .. } => results,
        _ => Vec::new(),
    };
    let archive = scope.data_dir().join("archive");
    let name = path.rsplit('/').next().unwrap_or_default();
    let directory = archive.join(FETCHED).join(name);
    let failed = |error: io::Error| {
        let directory = directory.display();
        Failure::failed(format!("failed to create '{directory}': {error}"))
    };
    as_owner(&archive, || make(&directory)).map_err(failed)?;
    let foreign = Foreign {
        store: store.to_string(),
        path,
        directory: directory.clone(),
        size_max: size_max(&results),
    };
    let transfer = Transfer { task: "foreign", store: &store, directory: Some(&directory) };
    match transfer::run(&transfer, scope, &foreign, |_| Ok(())).await? {
        None => Ok(Some(directory)),
        Some(why) => {
            let _ = as_owner(&archive, || remove_tree(&directory));
            Err(Failure::failed(why))
        }
    }
}

fn size_max(results: &[HookResult]) -> u64 {
    let size = |sum: u64, result: &HookResult| sum.saturating_add(result.size);
    let files = results.iter().fold(0, size);
    files.saturating_mul(2).saturating_add(SIZE_OF_REST)
}

/// Makes an empty directory. An earlier copy of the page is removed: it may be an older one.
fn make(directory: &Path) -> io::Result<()> {
    remove_tree(directory)?;
    let mut builder = DirBuilder::new();
    builder.mode(MODE).recursive(true).create(directory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use std::fs;

    #[test]
    fn size_of_a_copy_is_bounded_by_the_results() {
        let result = |size| HookResult { size, ..sample::result(3, "wget", "hook") };
        assert_eq!(size_max(&[]), SIZE_OF_REST);
        let most = size_max(&[result(1000), result(24)]);
        assert_eq!(most, 2048 + SIZE_OF_REST);
        assert_eq!(size_max(&[result(u64::MAX), result(1)]), u64::MAX);
    }

    #[test]
    fn an_earlier_copy_is_removed() {
        let top = tempfile::tempdir().unwrap();
        let directory = top.path().join(".fetched/s3");
        make(&directory).unwrap();
        fs::write(directory.join("index.html"), "old").unwrap();
        make(&directory).unwrap();
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
    }
}
