//! The index of a recording, in which a few lines are looked up or all of them are read.
//!
//! A look-up in a sorted index reads only the lines near the key. They can show that a record exists, but
//! not that it is missing: a line may be out of order, or have a key that another program made by other
//! rules. So the first look-up that needs more than an exact record reads all lines once, checks their
//! order, and keeps those with other keys. An index that contradicts its list, digests or order is read as a whole.

use super::contents::{Contents, FAULTS_MAX, Keeps, index_kind};
use super::entry::Entry;
use super::places::Places;
use super::read::Warc;
use super::sorted::{LineRange, SortedIndex};
use crate::zip::Member;
use crate::{Flaw, cdxj, surt};
use archivist_core::lock;
use std::borrow::Cow;
use std::sync::{Arc, Mutex, OnceLock};

/// Smallest index in bytes of the file of which a look-up reads only a part.
pub(super) const SORTED_MIN_BYTES: u64 = 2 << 20;
/// Bytes of lines with keys that were made by other rules, at most.
const STRAYS_MAX_BYTES: usize = 32 << 20;

pub(super) struct Indexed {
    members: Vec<Member>,
    warcs: Arc<[Warc]>,
    is_complete: bool,
    /// Empty if the index is not sorted.
    sorted: Vec<SortedIndex>,
    /// Why the sorted indexes are not used any more.
    refuted: OnceLock<Flaw>,
    /// Lines that cannot be found by their keys.
    strays: OnceLock<Listed>,
    all: OnceLock<Listed>,
    /// Lines that cannot be used.
    noticed: Mutex<Vec<Flaw>>,
}

#[derive(Default)]
struct Listed {
    contents: Contents,
    places: OnceLock<Places>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reach {
    Key,
    /// Lines with the place of the key.
    Place,
    /// All entries that have the place of the key, whatever their lines say.
    All,
}

/// A URL without fragment that is looked up.
#[derive(Clone, Copy)]
pub(crate) struct Sought<'a> {
    pub(crate) url: &'a str,
    /// The key that its line has, with method and posted body.
    pub(crate) key: &'a str,
}

impl Listed {
    fn of(contents: Contents) -> Listed {
        Listed { contents, places: OnceLock::new() }
    }

    fn places(&self) -> &Places {
        self.places.get_or_init(|| Places::of(&self.contents.entries))
    }
}

impl Indexed {
    /// The index of a file. Look-ups read a part of indexes with at least so many bytes in the file.
    pub(super) fn new(
        members: Vec<Member>,
        warcs: Arc<[Warc]>,
        is_complete: bool,
        least: u64,
    ) -> Indexed {
        Indexed {
            sorted: SortedIndex::of(&members, least).unwrap_or_default(),
            members,
            warcs,
            is_complete,
            refuted: OnceLock::new(),
            strays: OnceLock::new(),
            all: OnceLock::new(),
            noticed: Mutex::new(Vec::new()),
        }
    }

    pub(super) fn exists(&self) -> bool {
        self.members.iter().any(|one| index_kind(one).is_some())
    }

    /// Reads all lines. Without an index, all records.
    pub(super) fn read(&self, keeps: Keeps<'_>) -> Contents {
        if self.exists() {
            Contents::of_indexes(&self.members, &self.warcs, keeps)
        } else {
            Contents::of_records(&self.warcs, self.is_complete, keeps)
        }
    }

    /// All lines, which are read once.
    pub(super) fn all(&self) -> &Contents {
        &self.listed().contents
    }

    fn listed(&self) -> &Listed {
        self.all.get_or_init(|| Listed::of(self.read(Keeps::All)))
    }

    /// What look-ups found that cannot be used.
    pub(super) fn noticed(&self) -> Vec<Flaw> {
        let noticed = lock(&self.noticed);
        let refuted = self.refuted.get().into_iter().cloned();
        let all = self.all.get().into_iter();
        let all = all.flat_map(|all| all.contents.faults.clone());
        let mut flaws: Vec<Flaw> = refuted.chain(noticed.iter().cloned()).collect();
        let new: Vec<Flaw> = all.filter(|flaw| !flaws.contains(flaw)).collect();
        flaws.extend(new);
        flaws
    }

    /// Whether a look-up reads a small part of an index, or all of a small one.
    pub(super) fn is_cheap(&self) -> bool {
        let indexes = self.members.iter().filter(|member| index_kind(member).is_some());
        let bytes: u64 = indexes.map(|member| member.data.len()).sum();
        self.is_sorted() || (1..SORTED_MIN_BYTES).contains(&bytes)
    }

    /// Whether look-ups are in a sorted index.
    pub(super) fn is_sorted(&self) -> bool {
        !self.sorted.is_empty() && self.refuted.get().is_none()
    }

    /// Returns entries that a look-up finds and that are `wanted`. Of those that are not in memory
    /// yet, at most `most`.
    pub(super) fn find(
        &self,
        sought: Sought<'_>,
        reach: Reach,
        most: usize,
        wanted: &dyn Fn(&Entry) -> bool,
    ) -> Vec<Cow<'_, Entry>> {
        if self.is_sorted() {
            match self.find_sorted(sought, reach, most, wanted) {
                Ok(found) => return found,
                Err(flaw) => drop(self.refuted.set(flaw)),
            }
        }
        let listed = self.listed();
        let entries = &listed.contents.entries;
        if reach == Reach::Key {
            let found = listed.places().of_url(entries, sought.url);
            found.filter(|entry| wanted(entry)).map(Cow::Borrowed).collect()
        } else {
            let found = listed.places().of_place(entries, surt::place(sought.key));
            found.filter(|entry| wanted(entry)).map(Cow::Borrowed).collect()
        }
    }

    fn find_sorted(
        &self,
        sought: Sought<'_>,
        reach: Reach,
        most: usize,
        wanted: &dyn Fn(&Entry) -> bool,
    ) -> Result<Vec<Cow<'_, Entry>>, Flaw> {
        let mut found = Vec::new();
        if reach == Reach::Key {
            self.each(&LineRange::of_key(sought.key), &mut |entry| {
                if found.len() < most && wanted(&entry) {
                    found.push(Cow::Owned(entry));
                }
            })?;
            return Ok(found);
        }
        let place = surt::place(sought.key);
        for form in forms(place) {
            for range in [LineRange::of_key(&form), LineRange::of_queries(&form)] {
                self.each(&range, &mut |entry| {
                    let is_wanted = found.len() < most && wanted(&entry);
                    if is_wanted && surt::place(&surt::key(&entry.url)) == place {
                        found.push(Cow::Owned(entry));
                    }
                })?;
            }
        }
        if reach == Reach::All {
            let strays = self.strays()?;
            let entries = &strays.contents.entries;
            let own = strays.places().of_place(entries, place);
            let own = own.filter(|entry| wanted(entry)).map(Cow::Borrowed);
            found.extend(own);
        }
        Ok(found)
    }

    /// Returns entries that are `wanted`, of those whose key begins with `place`, and of others that are in
    /// memory. Of those that are not, at most `most`.
    pub(super) fn find_below(
        &self,
        place: &str,
        most: usize,
        wanted: &dyn Fn(&Entry) -> bool,
    ) -> Vec<Cow<'_, Entry>> {
        if self.is_sorted() {
            let mut found = Vec::new();
            let read = self.each(&LineRange::below(place), &mut |entry| {
                if found.len() < most && wanted(&entry) {
                    found.push(Cow::Owned(entry));
                }
            });
            match read.and_then(|()| self.strays()) {
                Ok(strays) => {
                    let strays = strays.contents.entries.iter();
                    found.extend(strays.filter(|entry| wanted(entry)).map(Cow::Borrowed));
                    return found;
                }
                Err(flaw) => drop(self.refuted.set(flaw)),
            }
        }
        let all = self.all().entries.iter();
        all.filter(|entry| wanted(entry)).map(Cow::Borrowed).collect()
    }

    /// Calls `each` with the entries of a range of lines. A line without an entry is noticed.
    fn each(&self, range: &LineRange, each: &mut dyn FnMut(Entry)) -> Result<(), Flaw> {
        self.each_of(range, &|_| true, each)
    }

    /// As [`Indexed::each`], but for the lines that `may_fit` alone, which is called before they are parsed.
    fn each_of(
        &self,
        range: &LineRange,
        may_fit: &dyn Fn(&[u8]) -> bool,
        each: &mut dyn FnMut(Entry),
    ) -> Result<(), Flaw> {
        for index in &self.sorted {
            let read = index.read(range, &mut |at, line| {
                if !may_fit(line) {
                    return;
                }
                match self.entry(line) {
                    Ok(entry) => entry.into_iter().for_each(&mut *each),
                    Err(reason) => self.notice(Flaw::new(index.part(at), reason)),
                }
            });
            read.map_err(|reason| Flaw::new(&index.name, reason))?;
        }
        Ok(())
    }

    /// The entry of a line. `None` if it has none.
    fn entry(&self, line: &[u8]) -> Result<Option<Entry>, String> {
        let text = String::from_utf8_lossy(line);
        let text = text.trim_end();
        if text.is_empty() || text.starts_with('!') {
            return Ok(None);
        }
        Entry::of(cdxj::parse(text)?, &self.warcs, None)
    }

    /// Finds an entry by a text that its line has.
    pub(super) fn with_text(
        &self,
        text: &str,
        wanted: &dyn Fn(&Entry) -> bool,
    ) -> Option<Cow<'_, Entry>> {
        if self.is_sorted() {
            let mut found = None;
            let has_text = |line: &[u8]| {
                let line = std::str::from_utf8(line);
                line.is_ok_and(|line| line.contains(text))
            };
            let read = self.each_of(&LineRange::all(), &has_text, &mut |entry| {
                if found.is_none() && wanted(&entry) {
                    found = Some(entry);
                }
            });
            match read {
                Ok(()) => return found.map(Cow::Owned),
                Err(flaw) => drop(self.refuted.set(flaw)),
            }
        }
        let all = self.all().entries.iter();
        let mut all = all.filter(|entry| wanted(entry));
        all.next().map(Cow::Borrowed)
    }

    /// Reads all lines, and returns the entries that are not found by their keys.
    fn strays(&self) -> Result<&Listed, Flaw> {
        if let Some(strays) = self.strays.get() {
            return Ok(strays);
        }
        let mut strays = Contents::default();
        let mut bytes = 0;
        for index in &self.sorted {
            let read = index.read(&LineRange::all(), &mut |at, line| {
                if bytes > STRAYS_MAX_BYTES || is_found_by_key(line) {
                    return;
                }
                match self.entry(line) {
                    Ok(Some(entry)) => {
                        bytes += line.len();
                        strays.entries.push(entry);
                    }
                    Ok(None) => {}
                    Err(reason) => self.notice(Flaw::new(index.part(at), reason)),
                }
            });
            let read = read.and_then(|()| match bytes {
                0..=STRAYS_MAX_BYTES => Ok(()),
                _ => Err("its keys were made by other rules".to_owned()),
            });
            read.map_err(|reason| Flaw::new(&index.name, reason))?;
        }
        Ok(self.strays.get_or_init(|| Listed::of(strays)))
    }

    fn notice(&self, flaw: Flaw) {
        let mut noticed = lock(&self.noticed);
        if noticed.len() < FAULTS_MAX && !noticed.contains(&flaw) {
            noticed.push(flaw);
        }
    }
}

/// The forms in which programs write the place of a key: some keep a slash at the end.
fn forms(place: &str) -> Vec<String> {
    let mut forms = vec![place.to_owned()];
    if !place.ends_with('/') {
        forms.push(format!("{place}/"));
    }
    forms
}

/// Whether the place of a line's key is one of the [`forms`] that the URL of the line has.
fn is_found_by_key(line: &[u8]) -> bool {
    let Some((key, url)) = std::str::from_utf8(line).ok().and_then(cdxj::key_and_url) else {
        return false;
    };
    let own = surt::place(key);
    if own.ends_with("//") {
        return false;
    }
    if surt::is_plain_place(own, &url) {
        return true;
    }
    let expected = surt::key(&url);
    let expected = surt::place(&expected);
    own == expected || own.strip_suffix('/') == Some(expected)
}
