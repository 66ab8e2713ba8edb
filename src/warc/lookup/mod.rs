//! Finds the record that answers a request.
//!
//! A page that is opened again asks for other URLs than those that were recorded: with the time, a
//! random number, or the name of a function. An exact answer precedes all others; what the other
//! rules find says which rule it was.

mod rules;

use crate::posted;
use crate::record::safe_url;
use crate::surt;
use crate::wacz::{Entry, Wacz};
use jiff::Timestamp;
use rules::RULES;
use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

/// Entries of one path that are compared argument by argument.
const COMPARED_MAX: usize = 10_000;
/// Rule for URLs that index keys do not distinguish: case, `www.`, order of arguments, scheme.
const SAME_KEY: &str = "key";
/// Rule for a HEAD request, which the answer to GET has all of.
const HEAD: &str = "head";
/// Rule for the query of a static file.
const STATIC: &str = "static";
/// Rule for the arguments that are left.
const ARGUMENTS: &str = "arguments";

/// The index of one or more recordings.
#[derive(Default)]
pub struct Index {
    waczs: Vec<Arc<Wacz>>,
    hasher: RandomState,
    /// Entries by the hash of their URL.
    urls: HashMap<u64, Vec<Place>>,
    /// Entries by the hash of host and path.
    paths: HashMap<u64, Vec<Place>>,
}

/// Number of a recording, and of an entry in it.
type Place = (u32, u32);

/// A request that a recording should answer.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// URL of the request.
    pub url: &'a str,
    /// Method of the request in upper case.
    pub method: &'a str,
    /// Body of the request.
    pub posted: Option<&'a [u8]>,
    /// The time of the page. Of several records, the nearest one answers.
    pub near: Timestamp,
}

/// How a record fits a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    /// Same URL, method and posted body.
    Exact,
    /// Same after the rule with this name: `key`, `head`, `tracking`, `cache-breaking`, `callback`,
    /// `static` or `arguments`.
    Fuzzy(&'static str),
}

/// A record that answers a request.
#[derive(Clone)]
pub struct Found {
    /// The index line.
    pub entry: Entry,
    /// The recording that has the record.
    pub wacz: Arc<Wacz>,
    /// How it fits.
    pub fit: Match,
}

/// A request in the form in which entries are compared with it.
struct Request<'a> {
    url: String,
    method: &'a str,
    posted: String,
    key: String,
    arguments: Vec<(String, String)>,
    near: Timestamp,
}

impl Index {
    /// Returns an index without recordings.
    #[must_use]
    pub fn new() -> Index {
        Index::default()
    }

    /// Adds all entries of a recording.
    pub fn add(&mut self, wacz: Arc<Wacz>) {
        let recording = self.waczs.len() as u32;
        for (number, entry) in (0..).zip(wacz.entries()) {
            let place = (recording, number);
            let url = self.hasher.hash_one(url_of(&entry.url));
            self.urls.entry(url).or_default().push(place);
            let key = surt::key(&entry.url);
            let path = self.hasher.hash_one(surt::place(&key));
            self.paths.entry(path).or_default().push(place);
        }
        self.waczs.push(wacz);
    }

    /// Returns the number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waczs.iter().map(|wacz| wacz.entries().len()).sum()
    }

    /// Returns whether no recording has an entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Finds the record that answers a request.
    #[must_use]
    pub fn find(&self, wanted: &Wanted<'_>) -> Option<Found> {
        let request = Request::of(wanted);
        let same_url = self.places(&self.urls, &request.url, |entry| {
            url_of(&entry.url) == request.url
        });
        let is_exact = |place: &Place| {
            let entry = self.entry(*place);
            entry.method == request.method && is_posted(&request.posted, entry)
        };
        if let Some(place) = self.nearest(same_url.iter().copied().filter(is_exact), &request) {
            return Some(self.found(place, Match::Exact));
        }
        let path = surt::place(&request.key);
        let same_path = self.places(&self.paths, path, |entry| {
            surt::place(&surt::key(&entry.url)) == path
        });
        let (place, rule) = self.fuzzy(&same_path, &request)?;
        Some(self.found(place, Match::Fuzzy(rule)))
    }

    /// Finds a record by the rules in their order.
    fn fuzzy(&self, places: &[Place], request: &Request<'_>) -> Option<(Place, &'static str)> {
        let of_method = |method: &str| -> Vec<Place> {
            let same = |place: &&Place| self.entry(**place).method == method;
            places.iter().filter(same).copied().collect()
        };
        let same = of_method(request.method);
        let has_key = |place: &Place| {
            let entry = self.entry(*place);
            surt::key(&entry.url) == request.key && is_posted(&request.posted, entry)
        };
        if let Some(place) = self.nearest(same.iter().copied().filter(has_key), request) {
            return Some((place, SAME_KEY));
        }
        if request.method == "HEAD" {
            let gets = of_method("GET");
            let is_same = |place: &Place| url_of(&self.entry(*place).url) == request.url;
            if let Some(place) = self.nearest(gets.into_iter().filter(is_same), request) {
                return Some((place, HEAD));
            }
        }
        let compared: Vec<_> = same
            .iter()
            .take(COMPARED_MAX)
            .map(|place| (*place, arguments(self.entry(*place))))
            .collect();
        self.without_arguments(&compared, request)
            .or_else(|| self.static_file(&same, request))
            .or_else(|| self.most_arguments(&compared, request))
    }

    /// Leaves out what the first rules cover, one rule after another.
    fn without_arguments(
        &self,
        compared: &[(Place, Vec<(String, String)>)],
        request: &Request<'_>,
    ) -> Option<(Place, &'static str)> {
        for (last, rule) in RULES.rules.iter().enumerate() {
            let rules = &RULES.rules[..=last];
            let kept = |arguments: &[(String, String)]| -> BTreeSet<(String, String)> {
                let kept = arguments
                    .iter()
                    .filter(|(name, value)| !rules.iter().any(|rule| rule.covers(name, value)));
                kept.cloned().collect()
            };
            let wanted = kept(&request.arguments);
            let same = compared
                .iter()
                .filter(|(_, arguments)| kept(arguments) == wanted);
            if let Some(place) = self.nearest(same.map(|(place, _)| *place), request) {
                return Some((place, &rule.name));
            }
        }
        None
    }

    /// A file of a static kind, if all that were recorded with this path are the same.
    fn static_file(
        &self,
        places: &[Place],
        request: &Request<'_>,
    ) -> Option<(Place, &'static str)> {
        let path = surt::place(&request.key);
        let suffix = path.rsplit('/').next()?.rsplit_once('.')?.1;
        let is_static = RULES.suffixes.iter().any(|known| known == suffix);
        if !is_static || request.method != "GET" {
            return None;
        }
        let answers: BTreeSet<_> = places
            .iter()
            .map(|place| self.entry(*place))
            .map(|entry| (entry.status, entry.digest.clone()))
            .collect();
        let is_unambiguous = answers.len() == 1 && (places.len() == 1 || has_digest(&answers));
        let place = self.nearest(places.iter().copied(), request);
        place
            .filter(|_| is_unambiguous)
            .map(|place| (place, STATIC))
    }

    /// The entry with the same names of arguments and most of their values, at least half of them.
    fn most_arguments(
        &self,
        compared: &[(Place, Vec<(String, String)>)],
        request: &Request<'_>,
    ) -> Option<(Place, &'static str)> {
        let names = |arguments: &[(String, String)]| -> BTreeSet<String> {
            arguments.iter().map(|(name, _)| name.clone()).collect()
        };
        let wanted: BTreeSet<_> = request.arguments.iter().cloned().collect();
        let wanted_names = names(&request.arguments);
        let score = |arguments: &[(String, String)]| {
            let same = arguments
                .iter()
                .filter(|argument| wanted.contains(*argument))
                .count();
            (names(arguments) == wanted_names && same > 0 && 2 * same >= arguments.len())
                .then_some(same)
        };
        let scored: Vec<_> = compared
            .iter()
            .filter_map(|(place, arguments)| Some((*place, score(arguments)?)))
            .collect();
        let best = scored.iter().map(|(_, score)| *score).max()?;
        let best = scored.iter().filter(|(_, score)| *score == best);
        let place = self.nearest(best.map(|(place, _)| *place), request)?;
        Some((place, ARGUMENTS))
    }

    /// The entries with a hash, but not those of other texts with the same one.
    fn places(
        &self,
        map: &HashMap<u64, Vec<Place>>,
        text: &str,
        is_same: impl Fn(&Entry) -> bool,
    ) -> Vec<Place> {
        let places = map.get(&self.hasher.hash_one(text)).into_iter().flatten();
        let places = places.filter(|place| is_same(self.entry(**place)));
        places.copied().collect()
    }

    /// The entry whose time is nearest. Of those with the same time, an answer precedes a redirect,
    /// which would lead to the same URL again.
    fn nearest(&self, places: impl Iterator<Item = Place>, request: &Request<'_>) -> Option<Place> {
        places.min_by_key(|place| {
            let entry = self.entry(*place);
            let distance = entry.time.duration_since(request.near).abs();
            let is_redirect = matches!(entry.status, Some(300..=399));
            (distance.as_secs(), is_redirect, distance)
        })
    }

    fn entry(&self, place: Place) -> &Entry {
        &self.waczs[place.0 as usize].entries()[place.1 as usize]
    }

    fn found(&self, place: Place, fit: Match) -> Found {
        Found {
            entry: self.entry(place).clone(),
            wacz: Arc::clone(&self.waczs[place.0 as usize]),
            fit,
        }
    }
}

impl<'a> Request<'a> {
    fn of(wanted: &Wanted<'a>) -> Request<'a> {
        let url = safe_url(url_of(wanted.url));
        let has_body = !matches!(wanted.method, "GET" | "HEAD");
        let body = wanted.posted.filter(|_| has_body).unwrap_or_default();
        let posted = posted::text(body);
        Request {
            key: surt::key(&url),
            arguments: all_arguments(&url, &posted),
            url,
            method: wanted.method,
            posted,
            near: wanted.near,
        }
    }
}

/// A URL without fragment, which no server sees.
fn url_of(url: &str) -> &str {
    url.split('#').next().unwrap_or_default()
}

fn is_posted(ours: &str, entry: &Entry) -> bool {
    posted::is_same(ours, entry.posted.as_deref().unwrap_or_default())
}

fn has_digest(answers: &BTreeSet<(Option<u16>, Option<String>)>) -> bool {
    answers.iter().all(|(_, digest)| digest.is_some())
}

fn arguments(entry: &Entry) -> Vec<(String, String)> {
    all_arguments(
        url_of(&entry.url),
        entry.posted.as_deref().unwrap_or_default(),
    )
}

/// Arguments of the query and of the posted body.
fn all_arguments(url: &str, posted: &str) -> Vec<(String, String)> {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let parts = [query, posted].into_iter().flat_map(|text| text.split('&'));
    let pair = |part: &str| {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        (name.to_owned(), value.to_owned())
    };
    parts.filter(|part| !part.is_empty()).map(pair).collect()
}

#[cfg(test)]
mod tests;
