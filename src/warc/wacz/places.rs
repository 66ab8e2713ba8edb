//! Entries by their URLs, and by the place that a URL has without its query.

use super::entry::Entry;
use crate::surt;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

/// Numbers of entries by hashes.
#[derive(Default)]
pub(super) struct Places {
    hasher: RandomState,
    urls: HashMap<u64, Vec<u32>>,
    places: HashMap<u64, Vec<u32>>,
}

impl Places {
    pub(super) fn of(entries: &[Entry]) -> Places {
        let mut found = Places::default();
        for (number, entry) in (0..).zip(entries) {
            let url = found.hasher.hash_one(url_of(&entry.url));
            found.urls.entry(url).or_default().push(number);
            let key = surt::key(&entry.url);
            let place = found.hasher.hash_one(surt::place(&key));
            found.places.entry(place).or_default().push(number);
        }
        found
    }

    /// The entries of a URL, which has no fragment.
    pub(super) fn of_url<'a>(
        &self,
        entries: &'a [Entry],
        url: &str,
    ) -> impl Iterator<Item = &'a Entry> {
        // Other texts may have the same hash.
        self.numbered(&self.urls, entries, url).filter(move |entry| url_of(&entry.url) == url)
    }

    /// The entries whose key is this place, with or without a query.
    pub(super) fn of_place<'a>(
        &self,
        entries: &'a [Entry],
        place: &str,
    ) -> impl Iterator<Item = &'a Entry> {
        self.numbered(&self.places, entries, place)
            .filter(move |entry| surt::place(&surt::key(&entry.url)) == place)
    }

    fn numbered<'a>(
        &self,
        map: &HashMap<u64, Vec<u32>>,
        entries: &'a [Entry],
        text: &str,
    ) -> impl Iterator<Item = &'a Entry> {
        let numbers = map.get(&self.hasher.hash_one(text)).into_iter().flatten();
        numbers.map(|number| &entries[*number as usize])
    }
}

/// A URL without fragment, which no server sees.
pub(crate) fn url_of(url: &str) -> &str {
    url.split('#').next().unwrap_or_default()
}
