//! Compares copies with what their rows say. Changes nothing.

use crate::backend::{self, Store, split};
use crate::failure::Result;
use crate::task::read_back;
use archivist_core::store::{COPY_MISSING, Compared, Comparison, Found, StoredObject};
use std::collections::BTreeMap;

/// Compares copies, and calls `see` for each. A copy that cannot be read differs.
///
/// # Errors
/// If the store cannot be reached.
pub fn compare(comparison: &Comparison, see: &mut dyn FnMut(Compared)) -> Result<()> {
    let store = backend::open(&comparison.store)?;
    compare_in(store.as_ref(), comparison, see)
}

fn compare_in(
    store: &dyn Store,
    comparison: &Comparison,
    see: &mut dyn FnMut(Compared),
) -> Result<()> {
    let mut left = comparison.read_max;
    let directory = |object: &StoredObject| split(&object.name).0.to_owned();
    for objects in comparison.objects.chunk_by(|a, b| directory(a) == directory(b)) {
        let Some(parent) = objects.first().map(directory) else {
            continue;
        };
        let entries = store.list(&parent)?;
        let mut sizes: BTreeMap<&str, u64> = BTreeMap::new();
        sizes.extend(entries.iter().map(|entry| (entry.name.as_str(), entry.size)));
        for object in objects {
            let found = match sizes.remove(split(&object.name).1) {
                None => Found::Differs(COPY_MISSING.to_owned()),
                Some(size) => one(store, object, size, &mut left),
            };
            let name = object.name.clone();
            see(Compared { name, found });
        }
        for name in sizes.into_keys() {
            see(Compared { name: format!("{parent}/{name}"), found: Found::Extra });
        }
    }
    Ok(())
}

fn one(store: &dyn Store, object: &StoredObject, size: u64, left: &mut u64) -> Found {
    if let Some(difference) = object.difference(size, None) {
        return Found::Differs(difference);
    }
    if object.size > *left {
        return Found::Sized;
    }
    *left -= object.size;
    match read_back(store, &object.name, object.size) {
        Ok(sum) => match object.difference(sum.size, Some(&sum.sha256)) {
            Some(difference) => Found::Differs(difference),
            None => Found::Intact,
        },
        Err(failure) => Found::Differs(format!("the copy cannot be read: {failure}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::sum_of;
    use std::fs;

    #[test]
    fn copies_are_listed_and_read_within_the_bound() {
        let place = tempfile::tempdir().unwrap();
        let store = place.path().to_str().unwrap().to_owned();
        fs::create_dir_all(place.path().join("day/host")).unwrap();
        let object = |name: &str, content: &str| {
            fs::write(place.path().join("day/host").join(name), content).unwrap();
            let sum = sum_of(content.as_bytes()).unwrap();
            StoredObject {
                store: store.clone(),
                name: format!("day/host/{name}"),
                sha256: sum.sha256,
                size: sum.size,
            }
        };
        let intact = object("s1-a.tar", "one");
        let damaged = object("s2-b.tar", "two");
        let short = object("s3-c.tar", "three");
        let missing = object("s4-d.tar", "four");
        let large = object("s5-e.tar", "a larger one");
        object("s6-f.tar", "of no row");
        let at = |name: &str| place.path().join("day/host").join(name);
        fs::write(at("s2-b.tar"), "tvo").unwrap();
        fs::write(at("s3-c.tar"), "thre").unwrap();
        fs::remove_file(at("s4-d.tar")).unwrap();
        let gone = StoredObject { name: "other/host/s9-0.tar".to_owned(), ..missing.clone() };
        let comparison = |read_max| Comparison {
            store: store.clone(),
            objects: vec![
                intact.clone(),
                damaged.clone(),
                short.clone(),
                missing.clone(),
                large.clone(),
                gone.clone(),
            ],
            read_max,
        };
        let found = |read_max| {
            let mut all = Vec::new();
            compare(&comparison(read_max), &mut |compared| all.push(compared)).unwrap();
            let short = |compared: Compared| match compared.found {
                Found::Differs(what) => what.split(':').next().unwrap().to_owned(),
                other => format!("{other:?}"),
            };
            all.into_iter().map(short).collect::<Vec<_>>()
        };
        let sum = sum_of(&b"tvo"[..]).unwrap().sha256;
        let differs = format!("the SHA-256 of the copy is {sum}, its row says {}", damaged.sha256);
        let size = "the copy has 4 bytes, its row says 5";
        let quick = ["Sized", "Sized", size, COPY_MISSING, "Sized", "Extra", COPY_MISSING];
        assert_eq!(found(0), quick);
        let bounded = ["Intact", &differs, size, COPY_MISSING, "Sized", "Extra", COPY_MISSING];
        assert_eq!(found(17), bounded);
        assert_eq!(found(18)[4], "Intact");
    }
}
