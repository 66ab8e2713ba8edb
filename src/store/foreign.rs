//! Restores a page that another node of the fleet has copied to the store. This machine has no row of
//! the copy: its digest is the one in its name, and its size is bounded by what the fleet says of the
//! page. So the copy is complete, but that the store did not replace it by another one, whose name has
//! its digest, only the node that made it can tell.

use crate::backend::{self, Store, split};
use crate::failure::{Result, TransferFailure};
use crate::task::get;
use archivist_core::store::{Assignment, Foreign, StoredObject, Task, digest_in_name};

/// Restores the files into a directory, which must be empty. Returns the copy.
///
/// # Errors
/// If the store has no copy of the page, several, or a larger one, or if it is damaged: nothing stays in
/// the directory.
pub fn fetch(foreign: &Foreign) -> Result<StoredObject> {
    let store = backend::open(&foreign.store)?;
    fetch_from(store.as_ref(), foreign)
}

fn fetch_from(store: &dyn Store, foreign: &Foreign) -> Result<StoredObject> {
    let Foreign { store: at, path, .. } = foreign;
    let (parent, page) = split(path);
    let mut found = store.list(parent)?.into_iter().filter_map(|entry| {
        let sha256 = digest_in_name(page, &entry.name)?.to_owned();
        Some(StoredObject {
            store: at.clone(),
            name: format!("{parent}/{}", entry.name),
            sha256,
            size: entry.size,
        })
    });
    let missing = || TransferFailure::differs(format!("store '{at}' has no copy of '{path}'"));
    let object = found.next().ok_or_else(missing)?;
    if found.next().is_some() {
        return Err(TransferFailure::differs(format!(
            "store '{at}' has several copies of '{path}', and the node that made them knows the newest"
        )));
    }
    if object.size > foreign.size_max {
        let (size, most) = (object.size, foreign.size_max);
        return Err(TransferFailure::differs(format!(
            "the copy of '{path}' in store '{at}' has {size} bytes, the page can have at most {most}"
        )));
    }
    let assignment = Assignment {
        task: Task::Get,
        store: at.clone(),
        directory: foreign.directory.clone(),
        path: path.clone(),
        object: Some(object.clone()),
        reread: false,
    };
    get::get(store, &assignment)?;
    Ok(object)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task;
    use archivist_plugin::files::remove::remove_tree;
    use std::fs;
    use std::path::Path;

    fn names(directory: &Path) -> Vec<String> {
        let list = fs::read_dir(directory).unwrap();
        let names = list.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect()
    }

    #[test]
    fn page_of_another_node_is_restored_by_the_digest_in_its_name() {
        let place = tempfile::tempdir().unwrap();
        let page = place.path().join("archive/20261123/a.test/s7");
        fs::create_dir_all(&page).unwrap();
        fs::create_dir(place.path().join("store")).unwrap();
        fs::write(page.join("index.html"), "<p>page").unwrap();
        let store = place.path().join("store").to_str().unwrap().to_owned();
        let put = || {
            let assignment = Assignment {
                task: Task::Put,
                store: store.clone(),
                directory: page.clone(),
                path: "20261123/a.test/s7".to_owned(),
                ..Assignment::default()
            };
            task::perform(&assignment).unwrap().unwrap()
        };
        let object = put();
        let here = place.path().join("fetched");
        fs::create_dir(&here).unwrap();
        let foreign = Foreign {
            store: store.clone(),
            path: "20261123/a.test/s7".to_owned(),
            directory: here.clone(),
            size_max: object.size,
        };
        let fails = |foreign: &Foreign, part: &str| {
            let failure = fetch(foreign).unwrap_err();
            assert!(failure.text.contains(part), "{failure}");
            assert_eq!(names(&here), Vec::<String>::new());
        };
        let small = Foreign { size_max: object.size - 1, ..foreign.clone() };
        fails(&small, "the page can have at most");
        let other = Foreign { path: "20261123/a.test/s8".to_owned(), ..foreign.clone() };
        fails(&other, "has no copy of");
        let file = place.path().join("store").join(&object.name);
        let own = fs::read(&file).unwrap();
        let mut damaged = own.clone();
        damaged[1025] ^= 1;
        fs::write(&file, damaged).unwrap();
        fails(&foreign, "is damaged");
        fs::write(&file, own).unwrap();
        assert_eq!(fetch(&foreign).unwrap(), object);
        assert_eq!(fs::read(here.join("index.html")).unwrap(), b"<p>page");
        // The page was archived again, and the store has both.
        remove_tree(&here).unwrap();
        fs::create_dir(&here).unwrap();
        fs::write(page.join("index.html"), "<p>newer").unwrap();
        put();
        fails(&foreign, "has several copies");
    }
}
