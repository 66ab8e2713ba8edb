//! Finds the record that answers a request.
//!
//! A page that is opened again asks for other URLs than those that were recorded: with the time, a
//! random number, or the name of a function. An exact answer precedes all others; what the other
//! rules find says which rule it was.

mod ids;
mod range;
mod rules;

use crate::WarcError;
use crate::head;
use crate::posted;
use crate::record::safe_url;
use crate::surt;
use crate::wacz::{Entry, FOUND_MAX, Reach, StoredAnswer, Wacz, url_of};
use ids::Shape;
use jiff::{SignedDuration, Timestamp};
use range::{Chosen, Parts};
use rules::RULES;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

pub use range::{Asked, Sent};

/// Entries of one path that are compared argument by argument.
const COMPARED_MAX: usize = 10_000;
/// Longest time in which a visit gets several answers to one request.
const VISIT: SignedDuration = SignedDuration::from_secs(60);
/// Rule for URLs that index keys do not distinguish: case, `www.`, order of arguments, scheme.
const SAME_KEY: &str = "key";
/// Rule for a HEAD request, which the answer to GET has all of.
const HEAD: &str = "head";
/// Rule for the query of a static file.
const STATIC: &str = "static";
/// Rule for parts that look like an id.
pub const ID: &str = "id";
/// Rule for the arguments that are left.
const ARGUMENTS: &str = "arguments";

/// The index of one or more recordings.
#[derive(Default)]
pub struct Index {
    waczs: Vec<Arc<Wacz>>,
    parts: Parts,
}

/// A candidate with the arguments that it has.
type Compared<'c, 'a> = (&'c Candidate<'a>, Vec<(String, String)>);

/// An entry, with the number of its recording.
type Candidate<'a> = (usize, Cow<'a, Entry>);

#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    pub url: &'a str,
    /// Method of the request in upper case.
    pub method: &'a str,
    pub posted: Option<&'a [u8]>,
    /// Value of the `Range` header.
    pub range: Option<&'a str>,
    /// The time of the page. Of several records, the nearest one answers.
    pub near: Timestamp,
    /// The time of the redirect that led to this request: no redirect up to then is an answer.
    pub redirected: Option<Timestamp>,
    /// How often the same request was answered before. The answers of one visit are given in their order, and
    /// then the last one.
    pub given: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    /// Same URL, method and posted body.
    Exact,
    /// Same after the rule with this name: `key`, `head`, `tracking`, `cache-breaking`, `callback`,
    /// `static`, `id` or `arguments`.
    Fuzzy(&'static str),
}

#[derive(Clone)]
pub struct Found {
    pub entry: Entry,
    pub wacz: Arc<Wacz>,
    pub fit: Match,
    /// Records whose parts of the resource follow that of the entry, with the bytes that each adds.
    rest: Vec<(Entry, Range<u64>)>,
}

impl Found {
    /// Reads the records as one answer.
    ///
    /// # Errors
    /// If the first record is not where the index says, or cannot be read.
    pub fn read(&self) -> Result<StoredAnswer, WarcError> {
        Ok(range::joined(&self.wacz, self.wacz.read(&self.entry)?, &self.rest))
    }
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
    shape: Shape,
    asked: Asked,
    near: Timestamp,
    redirected: Option<Timestamp>,
    given: usize,
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
            if let Some(found) = self.choose(exact, &request) {
                return Some(self.found(found, Match::Exact));
            }
            if !self.waczs.iter().any(|wacz| wacz.is_sorted()) {
                break;
            }
        }
        let (found, rule) = self.fuzzy(&request)?;
        Some(self.found(found, Match::Fuzzy(rule)))
    }

    fn fuzzy(&self, request: &Request<'_>) -> Option<(Chosen<Candidate<'_>>, &'static str)> {
        let find = |wanted: &dyn Fn(&Entry) -> bool| self.candidates(request, Reach::All, wanted);
        let has_key = find(&|entry| {
            entry.method == request.method
                && is_posted(&request.posted, entry)
                && surt::key(&entry.url) == request.key
        });
        if let Some(found) = self.choose(has_key, request) {
            return Some((found, SAME_KEY));
        }
        if request.method == "HEAD" {
            let gets = find(&|entry| entry.method == "GET" && url_of(&entry.url) == request.url);
            if let Some(found) = self.choose(gets, request) {
                return Some((found, HEAD));
            }
        }
        let same = find(&|entry| entry.method == request.method);
        let compared: Vec<_> = same
            .iter()
            .take(COMPARED_MAX)
            .map(|candidate| (candidate, arguments(&candidate.1)))
            .collect();
        let of_rule = |(found, rule)| Some((self.choose(nearest(found, request), request)?, rule));
        if let Some(found) = without_arguments(&compared, request) {
            return of_rule(found);
        }
        let (found, rule) = static_file(&same, request)
            .or_else(|| self.same_shape(request))
            .or_else(|| most_arguments(&compared, request))?;
        let found = nearest(found, request);
        is_one_answer(&found).then(|| of_rule((found, rule))).flatten()
    }

    /// Entries that differ in what looks like an id.
    fn same_shape(&self, request: &Request<'_>) -> Option<Ruled<'_>> {
        let beginning = request.shape.beginning()?;
        // What is compared is a part of all entries.
        let (url, posted) = beginning.split_once('\n').unwrap_or((beginning, ""));
        let may_fit = |entry: &Entry| {
            let rest = entry.url.split_once("://").map_or(entry.url.as_str(), |(_, rest)| rest);
            entry.method == request.method
                && rest.starts_with(url)
                && entry.posted.as_deref().unwrap_or_default().starts_with(posted)
                && request.distance(entry).is_some()
        };
        let scheme = request.url.find("://").map_or(0, |at| at + 3);
        let folder = &request.url[..scheme + url.rfind('/').unwrap_or(url.len())];
        let folder = surt::key(folder);
        let folder = surt::place(&folder);
        let waczs = self.waczs.iter().enumerate();
        let found: Vec<_> = waczs
            .flat_map(|(number, wacz)| {
                let mut found = wacz.find_below(folder, &may_fit);
                if !found.is_empty() {
                    // Another page is no answer to a link. In a file without a list, any document is one.
                    let pages: BTreeSet<_> = wacz.pages().iter().map(|page| &page.url).collect();
                    found.retain(|entry| {
                        if pages.is_empty() {
                            entry.media_type != "text/html"
                        } else {
                            !pages.contains(&entry.url)
                        }
                    });
                }
                found.into_iter().map(move |entry| (number, entry))
            })
            .collect();
        // If the list is cut, others may be nearer.
        let is_whole = !found.is_empty() && found.len() < FOUND_MAX;
        is_whole.then_some((found, ID))
    }

    fn choose<'a>(
        &self,
        mut candidates: Vec<Candidate<'a>>,
        request: &Request<'_>,
    ) -> Option<Chosen<Candidate<'a>>> {
        candidates.retain(|(_, entry)| {
            !is_redirect(entry) || request.redirected.is_none_or(|time| entry.time > time)
        });
        self.parts.choose(&self.waczs, candidates, request)
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

    fn found(&self, chosen: Chosen<Candidate<'_>>, fit: Match) -> Found {
        let (number, entry) = chosen.first;
        let rest = chosen.rest.into_iter();
        let rest = rest.map(|((_, entry), bytes)| (entry.into_owned(), bytes)).collect();
        Found { entry: entry.into_owned(), wacz: Arc::clone(&self.waczs[number]), fit, rest }
    }
}

/// Entries that a rule finds, and its name.
type Ruled<'a> = (Vec<Candidate<'a>>, &'static str);

/// Leaves out what the first rules cover, one rule after another.
fn without_arguments<'a>(
    compared: &[Compared<'_, 'a>],
    request: &Request<'_>,
) -> Option<Ruled<'a>> {
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
        let found: Vec<_> = same.map(|(one, _)| (*one).clone()).collect();
        if !found.is_empty() {
            return Some((found, &rule.name));
        }
    }
    None
}

/// A file of a static kind, if all that were recorded with this path are the same.
fn static_file<'a>(candidates: &[Candidate<'a>], request: &Request<'_>) -> Option<Ruled<'a>> {
    let path = surt::place(&request.key);
    let suffix = path.rsplit('/').next()?.rsplit_once('.')?.1;
    let is_static = RULES.suffixes.iter().any(|known| known == suffix);
    // Others than these may differ.
    let is_cut =
        matches!(candidates.last(), Some((_, Cow::Owned(_)))) && candidates.len() >= FOUND_MAX;
    if !is_static || is_cut || request.method != "GET" {
        return None;
    }
    is_one_answer(candidates).then(|| (candidates.to_vec(), STATIC))
}

/// The candidates whose ids are nearest to those of the request, or all if their ids cannot be compared.
fn nearest<'a>(candidates: Vec<Candidate<'a>>, request: &Request<'_>) -> Vec<Candidate<'a>> {
    let least = candidates.iter().filter_map(|(_, entry)| request.distance(entry)).min();
    let is_nearest = |one: &Candidate<'_>| least.is_none() || request.distance(&one.1) == least;
    candidates.into_iter().filter(is_nearest).collect()
}

/// Whether all candidates are of one request, or have the same content, so that any of them is the answer.
fn is_one_answer(candidates: &[Candidate<'_>]) -> bool {
    let requests: BTreeSet<_> =
        candidates.iter().map(|(_, entry)| (url_of(&entry.url), entry.posted.as_deref())).collect();
    let answers: BTreeSet<_> =
        candidates.iter().map(|(_, entry)| (entry.status, entry.digest.as_deref())).collect();
    requests.len() == 1 || answers.len() == 1 && answers.iter().all(|(_, digest)| digest.is_some())
}

/// The entry with the same names of arguments and most of their values, at least half of them.
fn most_arguments<'a>(compared: &[Compared<'_, 'a>], request: &Request<'_>) -> Option<Ruled<'a>> {
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
    Some((best.map(|(one, _)| (*one).clone()).collect(), ARGUMENTS))
}

/// How far an entry is from the wanted time. Of those with the same time, a redirect precedes the answer that
/// it leads to. Indexes of other programs have whole seconds.
fn distance((_, entry): &Candidate<'_>, request: &Request<'_>) -> (SignedDuration, bool) {
    let near = if entry.time.subsec_nanosecond() == 0 {
        Timestamp::from_second(request.near.as_second()).unwrap_or(request.near)
    } else {
        request.near
    };
    (entry.time.duration_since(near).abs(), !is_redirect(entry))
}

fn is_redirect(entry: &Entry) -> bool {
    entry.status.is_some_and(head::is_redirect)
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
            shape: Shape::of(&url, &posted, wanted.near),
            url,
            method: wanted.method,
            posted,
            asked: if wanted.method == "GET" { Asked::of(wanted.range) } else { Asked::All },
            near: wanted.near,
            redirected: wanted.redirected,
            given: wanted.given,
        }
    }

    /// How far the ids of an entry are from those of the request; `None` if more than its ids differs.
    fn distance(&self, entry: &Entry) -> Option<(usize, u64)> {
        let posted = entry.posted.as_deref().unwrap_or_default();
        self.shape.distance(&Shape::of(url_of(&entry.url), posted, self.near))
    }
}

fn is_posted(ours: &str, entry: &Entry) -> bool {
    posted::is_same(ours, entry.posted.as_deref().unwrap_or_default())
}

fn arguments(entry: &Entry) -> Vec<(String, String)> {
    all_arguments(url_of(&entry.url), entry.posted.as_deref().unwrap_or_default())
}

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
