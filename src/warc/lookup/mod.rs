//! Finds the record that answers a request.
//!
//! A page that is opened again asks for other URLs than those that were recorded: with the time, a
//! random number, or the name of a function. An exact answer precedes all others; what the other
//! rules find says which rule it was.

mod rules;

use crate::posted;
use crate::record::safe_url;
use crate::surt;
use crate::wacz::{Entry, FOUND_MAX, Reach, Wacz, url_of};
use jiff::Timestamp;
use rules::RULES;
use std::borrow::{Borrow, Cow};
use std::collections::BTreeSet;
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
}

/// A candidate with the arguments that it has.
type Compared<'c, 'a> = (&'c Candidate<'a>, Vec<(String, String)>);

/// An entry, with the number of its recording.
type Candidate<'a> = (usize, Cow<'a, Entry>);

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
    /// The key that its index line has.
    indexed: String,
    arguments: Vec<(String, String)>,
    near: Timestamp,
}

impl Index {
    /// Returns an index without recordings.
    #[must_use]
    pub fn new() -> Index {
        Index::default()
    }

    /// Adds a recording. Its index is read when something is looked up.
    pub fn add(&mut self, wacz: Arc<Wacz>) {
        self.waczs.push(wacz);
    }

    /// Finds the record that answers a request.
    #[must_use]
    pub fn find(&self, wanted: &Wanted<'_>) -> Option<Found> {
        let request = Request::of(wanted);
        let is_exact = |entry: &Entry| {
            entry.method == request.method
                && url_of(&entry.url) == request.url
                && is_posted(&request.posted, entry)
        };
        for reach in [Reach::Key, Reach::Place, Reach::All] {
            let exact = self.candidates(&request, reach, &is_exact);
            if let Some(found) = nearest(exact, &request) {
                return Some(self.found(found, Match::Exact));
            }
            if !self.waczs.iter().any(|wacz| wacz.is_sorted()) {
                break;
            }
        }
        let (found, rule) = self.fuzzy(&request)?;
        Some(self.found(found, Match::Fuzzy(rule)))
    }

    /// Finds a record by the rules in their order.
    fn fuzzy(&self, request: &Request<'_>) -> Option<(Candidate<'_>, &'static str)> {
        let find = |wanted: &dyn Fn(&Entry) -> bool| self.candidates(request, Reach::All, wanted);
        let has_key = find(&|entry| {
            entry.method == request.method
                && is_posted(&request.posted, entry)
                && surt::key(&entry.url) == request.key
        });
        if let Some(found) = nearest(has_key, request) {
            return Some((found, SAME_KEY));
        }
        if request.method == "HEAD" {
            let gets = find(&|entry| entry.method == "GET" && url_of(&entry.url) == request.url);
            if let Some(found) = nearest(gets, request) {
                return Some((found, HEAD));
            }
        }
        let same = find(&|entry| entry.method == request.method);
        let compared: Vec<_> = same
            .iter()
            .take(COMPARED_MAX)
            .map(|candidate| (candidate, arguments(&candidate.1)))
            .collect();
        without_arguments(&compared, request)
            .or_else(|| static_file(&same, request))
            .or_else(|| most_arguments(&compared, request))
    }

    /// The entries of all recordings that a look-up finds and that are wanted.
    fn candidates(
        &self,
        request: &Request<'_>,
        reach: Reach,
        wanted: &dyn Fn(&Entry) -> bool,
    ) -> Vec<Candidate<'_>> {
        let all = self.waczs.iter().enumerate();
        all.flat_map(|(number, wacz)| {
            let key = &request.indexed;
            let found = wacz.find(&request.url, key, reach, wanted);
            found.into_iter().map(move |entry| (number, entry))
        })
        .collect()
    }

    fn found(&self, (number, entry): Candidate<'_>, fit: Match) -> Found {
        Found { entry: entry.into_owned(), wacz: Arc::clone(&self.waczs[number]), fit }
    }
}

/// Leaves out what the first rules cover, one rule after another.
fn without_arguments<'a>(
    compared: &[Compared<'_, 'a>],
    request: &Request<'_>,
) -> Option<(Candidate<'a>, &'static str)> {
    for (last, rule) in RULES.rules.iter().enumerate() {
        let rules = &RULES.rules[..=last];
        let kept = |arguments: &[(String, String)]| -> BTreeSet<(String, String)> {
            let kept = arguments
                .iter()
                .filter(|(name, value)| !rules.iter().any(|rule| rule.covers(name, value)));
            kept.cloned().collect()
        };
        let wanted = kept(&request.arguments);
        let same = compared.iter().filter(|(_, arguments)| kept(arguments) == wanted);
        if let Some(found) = nearest(same.map(|(one, _)| *one), request) {
            return Some((found.clone(), &rule.name));
        }
    }
    None
}

/// A file of a static kind, if all that were recorded with this path are the same.
fn static_file<'a>(
    candidates: &[Candidate<'a>],
    request: &Request<'_>,
) -> Option<(Candidate<'a>, &'static str)> {
    let path = surt::place(&request.key);
    let suffix = path.rsplit('/').next()?.rsplit_once('.')?.1;
    let is_static = RULES.suffixes.iter().any(|known| known == suffix);
    // Others than these may differ.
    let is_cut =
        matches!(candidates.last(), Some((_, Cow::Owned(_)))) && candidates.len() >= FOUND_MAX;
    if !is_static || is_cut || request.method != "GET" {
        return None;
    }
    let answers: BTreeSet<_> =
        candidates.iter().map(|(_, entry)| (entry.status, entry.digest.clone())).collect();
    let is_unambiguous = answers.len() == 1 && (candidates.len() == 1 || has_digest(&answers));
    let found = nearest(candidates, request);
    found.filter(|_| is_unambiguous).map(|found| (found.clone(), STATIC))
}

/// The entry with the same names of arguments and most of their values, at least half of them.
fn most_arguments<'a>(
    compared: &[Compared<'_, 'a>],
    request: &Request<'_>,
) -> Option<(Candidate<'a>, &'static str)> {
    let names = |arguments: &[(String, String)]| -> BTreeSet<String> {
        arguments.iter().map(|(name, _)| name.clone()).collect()
    };
    let wanted: BTreeSet<_> = request.arguments.iter().cloned().collect();
    let wanted_names = names(&request.arguments);
    let score = |arguments: &[(String, String)]| {
        let same = arguments.iter().filter(|argument| wanted.contains(*argument)).count();
        (names(arguments) == wanted_names && same > 0 && 2 * same >= arguments.len())
            .then_some(same)
    };
    let scored: Vec<_> =
        compared.iter().filter_map(|(one, arguments)| Some((*one, score(arguments)?))).collect();
    let best = scored.iter().map(|(_, score)| *score).max()?;
    let best = scored.iter().filter(|(_, score)| *score == best);
    let found = nearest(best.map(|(one, _)| *one), request)?;
    Some((found.clone(), ARGUMENTS))
}

/// The entry whose time is nearest. Of those with the same time, an answer precedes a redirect,
/// which would lead to the same URL again.
fn nearest<'a, C: Borrow<Candidate<'a>>>(
    candidates: impl IntoIterator<Item = C>,
    request: &Request<'_>,
) -> Option<C> {
    candidates.into_iter().min_by_key(|candidate| {
        let (_, entry) = candidate.borrow();
        let distance = entry.time.duration_since(request.near).abs();
        let is_redirect = matches!(entry.status, Some(300..=399));
        (distance.as_secs(), is_redirect, distance)
    })
}

impl<'a> Request<'a> {
    fn of(wanted: &Wanted<'a>) -> Request<'a> {
        let url = safe_url(url_of(wanted.url));
        let has_body = !matches!(wanted.method, "GET" | "HEAD");
        let body = wanted.posted.filter(|_| has_body).unwrap_or_default();
        let posted = posted::text(body);
        let key = surt::key(&url);
        let indexed = match wanted.method {
            "GET" => key.clone(),
            method => surt::key(&posted::url_with(&url, method, Some(&posted))),
        };
        Request {
            key,
            indexed,
            arguments: all_arguments(&url, &posted),
            url,
            method: wanted.method,
            posted,
            near: wanted.near,
        }
    }
}

fn is_posted(ours: &str, entry: &Entry) -> bool {
    posted::is_same(ours, entry.posted.as_deref().unwrap_or_default())
}

fn has_digest(answers: &BTreeSet<(Option<u16>, Option<String>)>) -> bool {
    answers.iter().all(|(_, digest)| digest.is_some())
}

fn arguments(entry: &Entry) -> Vec<(String, String)> {
    all_arguments(url_of(&entry.url), entry.posted.as_deref().unwrap_or_default())
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
