//! Compares copies on other hosts with their rows. The program of transfers does it, in a unit with the
//! keys of the store.

use super::copies::page_of;
use super::finding::{Checked, Finding, Kind};
use crate::client::exit::Failure;
use crate::client::transfer::{self, Transfer};
use archivist_config::Scope;
use archivist_core::model::{Owner, SnapshotId};
use archivist_core::store::{Compared, Comparison, Found, Location, StoredObject};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc;

/// The copies of rows in the stores that are on other hosts.
#[derive(Default)]
pub struct Remote {
    stores: BTreeMap<String, BTreeMap<String, (SnapshotId, StoredObject)>>,
}

/// A copy that differs, or one that no row has.
pub enum Difference {
    Of(SnapshotId, StoredObject, Finding),
    /// A file with the path of this page, below the archive.
    Unknown(PathBuf, Finding),
    /// Something about the store as a whole.
    Store(Finding),
}

impl Remote {
    pub fn add(&mut self, id: SnapshotId, object: &StoredObject) {
        let store = self.stores.entry(object.store.clone()).or_default();
        store.insert(object.name.clone(), (id, object.clone()));
    }

    /// Compares the copies, of which at most `read_max` bytes are read.
    ///
    /// # Errors
    /// If a unit cannot be started, or gives an answer that is none.
    pub async fn compare(
        &self,
        scope: &Scope,
        mut read_max: u64,
        checked: &mut Checked,
    ) -> Result<Vec<Difference>, Failure> {
        let mut all = Vec::new();
        for (name, rows) in &self.stores {
            let Some(store) = Location::parse(name).filter(|_| transfer::is_allowed(scope)) else {
                checked.elsewhere += rows.len() as u64;
                continue;
            };
            let comparison = Comparison {
                store: name.clone(),
                // In the order of their names, and so of their directories.
                objects: rows.values().map(|(_, object)| object.clone()).collect(),
                read_max,
            };
            let transfer = Transfer { task: "compare", store: &store, directory: None };
            let (to, from) = mpsc::channel();
            let see = move |line: &str| {
                let compared: Compared = serde_json::from_str(line).map_err(|error| {
                    Failure::failed(format!(
                        "failed to read the answer of archivist-store: {error}"
                    ))
                })?;
                let _ = to.send(compared);
                Ok(())
            };
            let failed = transfer::run(&transfer, scope, &comparison, see).await?;
            let mut left = rows.len() as u64;
            for compared in from.try_iter() {
                let row = rows.get(&compared.name);
                left -= u64::from(row.is_some()).min(left);
                read_max -= count(&compared, row.map(|(_, object)| object), checked).min(read_max);
                all.extend(difference(name, compared, row));
            }
            if let Some(why) = failed {
                checked.elsewhere += left;
                let finding =
                    Finding::new(Kind::Copy, name, format!("the store cannot be read: {why}"));
                all.push(Difference::Store(finding));
            }
        }
        Ok(all)
    }
}

/// Counts what was compared. Returns the bytes that were read.
fn count(compared: &Compared, object: Option<&StoredObject>, checked: &mut Checked) -> u64 {
    let Some(object) = object else {
        return 0;
    };
    checked.copies += 1;
    match compared.found {
        Found::Intact => {
            checked.digests += 1;
            checked.bytes += object.size;
            object.size
        }
        Found::Sized => {
            checked.unread += 1;
            checked.unread_bytes += object.size;
            0
        }
        Found::Differs(_) | Found::Extra => 0,
    }
}

fn difference(
    store: &str,
    compared: Compared,
    row: Option<&(SnapshotId, StoredObject)>,
) -> Option<Difference> {
    let Compared { name, found } = compared;
    let path = format!("{name} in {store}");
    match (found, row) {
        (Found::Differs(what), Some((id, object))) => {
            let finding =
                Finding { id: Some(Owner::Snapshot(*id)), ..Finding::new(Kind::Copy, path, what) };
            Some(Difference::Of(*id, object.clone(), finding))
        }
        (Found::Extra, None) => {
            let (host, file) = name.rsplit_once('/')?;
            let page = PathBuf::from(host).join(page_of(file)?);
            let what = "no row has the page of this copy";
            Some(Difference::Unknown(page, Finding::new(Kind::Copy, path, what)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_become_findings_and_counts() {
        let object = StoredObject {
            store: "ssh://me@nas/srv".to_owned(),
            name: "d/h/s7-00.tar".to_owned(),
            sha256: "00".to_owned(),
            size: 10,
        };
        let row = (SnapshotId(7), object.clone());
        let compared = |name: &str, found| Compared { name: name.to_owned(), found };
        let mut checked = Checked::default();
        for (found, read) in [(Found::Intact, 10), (Found::Sized, 0)] {
            let answer = compared(&object.name, found);
            assert_eq!(count(&answer, Some(&object), &mut checked), read);
            assert!(difference(&object.store, answer, Some(&row)).is_none());
        }
        assert_eq!((checked.copies, checked.digests, checked.bytes), (2, 1, 10));
        assert_eq!((checked.unread, checked.unread_bytes), (1, 10));
        let answer = compared(&object.name, Found::Differs("it is short".to_owned()));
        match difference(&object.store, answer, Some(&row)) {
            Some(Difference::Of(id, _, finding)) => {
                assert_eq!((id, finding.what.as_str()), (SnapshotId(7), "it is short"));
                assert_eq!(finding.path, "d/h/s7-00.tar in ssh://me@nas/srv");
            }
            _ => panic!("it is of s7"),
        }
        let extra = |name: &str| match difference("s", compared(name, Found::Extra), None) {
            Some(Difference::Unknown(page, _)) => Some(page),
            _ => None,
        };
        assert_eq!(extra("d/h/s8-00.tar"), Some(PathBuf::from("d/h/s8")));
        assert_eq!(extra("d/h/.s8-00.tar.x.part"), None, "a running transfer");
        assert_eq!(extra("d/h/notes"), None);
    }
}
