//! Compares the copies in a store that is a directory with their rows. The keys for other stores are
//! credentials of units (see [`super::remote`]).

use super::finding::{Checked, Finding, Kind};
use super::page::locate;
use archivist_core::store::{COPY_MISSING, Location, StoredObject};
use archivist_plugin::Directory;
use archivist_plugin::files::beneath::is_file;
use archivist_plugin::files::digest::sha256;
use archivist_shared::id_marks::each_entry;
use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// End of the name of an object.
const ENDING: &str = ".tar";

#[derive(Default)]
pub struct Copies {
    /// Directories of pages, as paths below the archive. Each object has the path of its page.
    pages: BTreeSet<PathBuf>,
    stores: BTreeSet<PathBuf>,
}

impl Copies {
    /// Notes a store, which may have copies that no row has.
    pub fn has_store(&mut self, location: &Location) {
        self.stores.extend(location.directory().map(Path::to_owned));
    }

    /// Notes the directory of a row.
    pub fn has_row(&mut self, archive: &Path, directory: &Path) {
        if let Ok(path) = directory.strip_prefix(archive) {
            self.pages.insert(path.to_owned());
        }
    }

    /// Returns whether a row has the page at a path below the archive.
    pub fn knows(&self, page: &Path) -> bool {
        self.pages.contains(page)
    }

    /// Compares a copy with its row. Returns what differs; nothing of a copy in another kind of store.
    ///
    /// # Errors
    /// If this user has no permission to read the copy.
    pub fn compare(
        &mut self,
        object: &StoredObject,
        reads_content: bool,
        checked: &mut Checked,
    ) -> io::Result<Option<Finding>> {
        let location = Location::parse(&object.store);
        let Some(store) = location.as_ref().and_then(Location::directory) else {
            return Ok(None);
        };
        self.stores.insert(store.to_owned());
        checked.copies += 1;
        let what = match difference(store, object, reads_content, checked) {
            Ok(None) => return Ok(None),
            Ok(Some(what)) => what,
            Err(error) if error.kind() == ErrorKind::PermissionDenied => return Err(error),
            Err(error) if error.kind() == ErrorKind::NotFound => COPY_MISSING.to_owned(),
            Err(error) => format!("the copy cannot be read: {error}"),
        };
        let path = store.join(&object.name);
        Ok(Some(Finding::new(Kind::Copy, path.to_string_lossy(), what)))
    }

    /// Returns the copies in the stores whose page no row has, with the paths of the pages below the
    /// archive.
    ///
    /// # Errors
    /// If a store cannot be read.
    pub fn unknown(&self) -> io::Result<Vec<(PathBuf, Finding)>> {
        let mut findings = Vec::new();
        for store in &self.stores {
            let see = |host: &Path, name: &str| {
                let page = page_of(name).map(|page| host.join(page));
                if let Some(page) = page.filter(|page| !self.knows(page)) {
                    let path = store.join(host).join(name);
                    let what = "no row has the page of this copy";
                    let finding = Finding::new(Kind::Copy, path.to_string_lossy(), what);
                    findings.push((page, finding));
                }
            };
            each_entry(store, see, || ())?;
        }
        Ok(findings)
    }
}

/// Returns the name of the directory of the page of an object; `None` for files of running transfers.
pub fn page_of(name: &str) -> Option<&str> {
    if name.starts_with('.') {
        return None;
    }
    let (page, _) = name.strip_suffix(ENDING)?.rsplit_once('-')?;
    Some(page)
}

fn difference(
    store: &Path,
    object: &StoredObject,
    reads_content: bool,
    checked: &mut Checked,
) -> io::Result<Option<String>> {
    let (parent, name) = locate(&Directory::open(store)?, &object.name)?;
    let found = parent.stat(&name)?;
    if !is_file(&found) {
        return Ok(Some("the copy is no file".to_owned()));
    }
    let size = u64::try_from(found.st_size).unwrap_or(0);
    let difference = object.difference(size, None);
    if difference.is_some() || !reads_content {
        return Ok(difference);
    }
    checked.digests += 1;
    let (sum, length) = sha256(parent.read(&name)?)?;
    checked.bytes += length;
    Ok(object.difference(length, Some(&sum)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn copies_are_compared_with_rows() {
        let top = tempfile::tempdir().unwrap();
        let store = top.path().join("store");
        let host = store.join("20261124/a.test");
        fs::create_dir_all(&host).unwrap();
        fs::write(host.join("s7-00.tar"), "tar").unwrap();
        fs::write(host.join("s8-00.tar"), "tar").unwrap();
        fs::write(host.join("s9-1f0c9a3e-00.tar"), "tar").unwrap();
        fs::write(host.join(".s8-00.tar.x.part"), "ta").unwrap();
        let (digest, _) = sha256(fs::File::open(host.join("s7-00.tar")).unwrap()).unwrap();
        let object = |name: &str, sha256: &str, size| StoredObject {
            store: store.to_string_lossy().into_owned(),
            name: format!("20261124/a.test/{name}"),
            sha256: sha256.to_owned(),
            size,
        };
        let mut copies = Copies::default();
        let mut checked = Checked::default();
        let mut compare = |object: &StoredObject, content| {
            let found = copies.compare(object, content, &mut checked).unwrap();
            found.map(|finding| finding.what)
        };
        assert_eq!(compare(&object("s7-00.tar", &digest, 3), true), None);
        let size = compare(&object("s7-00.tar", &digest, 4), true).unwrap();
        assert_eq!(size, "the copy has 3 bytes, its row says 4");
        let damaged = compare(&object("s7-00.tar", "00", 3), true).unwrap();
        assert!(damaged.contains(&digest), "{damaged}");
        assert_eq!(compare(&object("s7-00.tar", "00", 3), false), None, "quick");
        let missing = compare(&object("s6-00.tar", "00", 3), true).unwrap();
        assert_eq!(missing, "the copy is missing in the store");
        let outside = compare(&object("../../../etc/passwd", "00", 3), true).unwrap();
        assert!(outside.starts_with("the copy cannot be read"), "{outside}");
        let remote =
            StoredObject { store: "ssh://me@nas/srv".into(), ..object("s7-00.tar", "00", 3) };
        assert_eq!(compare(&remote, true), None);
        assert_eq!(checked.copies, 6);
        copies.has_row(Path::new("/a"), Path::new("/a/20261124/a.test/s7"));
        copies.has_row(Path::new("/a"), Path::new("/a/20261124/a.test/s9-1f0c9a3e"));
        let unknown = copies.unknown().unwrap();
        assert_eq!(unknown.len(), 1, "{unknown:?}");
        assert_eq!(unknown[0].0, Path::new("20261124/a.test/s8"));
        assert!(unknown[0].1.path.ends_with("/s8-00.tar"));
    }
}
