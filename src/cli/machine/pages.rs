//! The directories of crawls and pages in the archive: `DAY/HOST/s345`, `DAY/HOST/c12`, and
//! `DAY/HOST/s345-1f0c9a3e` for a page whose first directory was taken.

use crate::client::exit::Failure;
use crate::client::paging::Paging;
use crate::client::server::Server;
use archivist_config::Scope;
use archivist_core::model::{IdMarks, Lifecycle, Owner};
use archivist_shared::bus::documents::report::{Filter, Snapshot, Status};
use archivist_shared::id_marks::each_entry;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

/// Directories of pages up to which each is compared with the rows.
const COMPARED_MAX: usize = 20_000;

pub struct Disk {
    /// Paths below the archive of the directories whose row was not seen yet.
    directories: BTreeSet<PathBuf>,
    /// The highest ids in their names.
    pub highest: IdMarks,
}

impl Disk {
    /// Lists the directories of an archive. Hooks cannot write to those above them.
    ///
    /// # Errors
    /// If a directory cannot be read; a missing archive has none.
    pub fn read(archive: &Path) -> io::Result<Disk> {
        let mut disk = Disk { directories: BTreeSet::new(), highest: IdMarks::default() };
        let see = |host: &Path, name: &str| {
            if let Some(owner) = Owner::of_directory(name) {
                disk.highest = disk.highest.or_higher(IdMarks::of_owner(owner));
                disk.directories.insert(host.join(name));
            }
        };
        each_entry(archive, see, || ())?;
        Ok(disk)
    }

    /// Notes that a row has this directory.
    pub fn has_row(&mut self, archive: &Path, directory: &Path) {
        if let Ok(path) = directory.strip_prefix(archive) {
            self.directories.remove(path);
        }
    }

    /// Returns the paths below the archive of the directories of pages without a row.
    pub fn pages_without_row(&self) -> impl Iterator<Item = &PathBuf> {
        let is_page = |path: &&PathBuf| {
            let name = path.file_name().and_then(OsStr::to_str);
            matches!(name.and_then(Owner::of_directory), Some(Owner::Snapshot(_)))
        };
        self.directories.iter().filter(is_page)
    }

    /// Returns the paths below the archive of the directories without a row.
    pub fn without_row(&self) -> impl Iterator<Item = &PathBuf> {
        self.directories.iter()
    }
}

/// Returns the directories of pages that no row has. Returns none if this user cannot read the archive or
/// while deleted files are removed, and of a large archive only if it has more directories than pages were
/// visited.
pub async fn unknown_pages(
    server: &Server,
    status: &Status,
    scope: &Scope,
) -> Result<Vec<PathBuf>, Failure> {
    let archive = scope.data_dir().join("archive");
    let Ok(mut disk) = Disk::read(&archive) else {
        return Ok(Vec::new());
    };
    let visited = [Lifecycle::Sealed, Lifecycle::Started, Lifecycle::Paused];
    let visited = visited.iter().filter_map(|state| status.snapshots.get(state.as_str()));
    let visited: u64 = visited.sum();
    let count = disk.pages_without_row().count();
    if status.deleting > 0 || count > COMPARED_MAX && count as u64 <= visited {
        return Ok(Vec::new());
    }
    let mut paging = Paging::new(server, Filter::default());
    loop {
        let pages = paging.next::<Snapshot>().await?.rows;
        if pages.is_empty() {
            break;
        }
        let directories = pages.iter().filter_map(|page| page.directory.as_deref());
        directories.for_each(|directory| disk.has_row(&archive, Path::new(directory)));
    }
    let unknown = disk.pages_without_row().map(|path| archive.join(path));
    Ok(unknown.filter(|path| path.exists()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_core::model::{CrawlId, SnapshotId};
    use std::fs;

    #[test]
    fn directories_without_a_row_are_left() {
        let top = tempfile::tempdir().unwrap();
        let archive = top.path();
        for path in [
            "20261124/a.test/s7",
            "20261124/a.test/c3",
            "20261124/a.test/s12-0a1b2c3d",
            "20261124/a.test/.new-00",
            "20261124/a.test/notes",
            ".index/c9",
        ] {
            fs::create_dir_all(archive.join(path)).unwrap();
        }
        let mut disk = Disk::read(archive).unwrap();
        disk.has_row(archive, &archive.join("20261124/a.test/c3"));
        disk.has_row(archive, &archive.join("20261124/a.test/s12-0a1b2c3d"));
        disk.has_row(archive, Path::new("/elsewhere/s7"));
        let left: Vec<_> = disk.without_row().collect();
        assert_eq!(left, [Path::new("20261124/a.test/s7")]);
        assert_eq!(disk.pages_without_row().collect::<Vec<_>>(), left);
        let again = Disk::read(archive).unwrap();
        assert_eq!(again.pages_without_row().count(), 2, "without the crawl");
        assert_eq!(disk.highest.crawl, CrawlId(3));
        assert_eq!(disk.highest.snapshot, SnapshotId(12));
        let none = Disk::read(&archive.join("missing")).unwrap();
        assert_eq!(none.without_row().count(), 0);
    }
}
