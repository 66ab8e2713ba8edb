//! Parts of resources (RFC 9110, section 14), and which records have the bytes that a request asks for.

use super::{Candidate, Request, VISIT, distance};
use crate::head;
use crate::wacz::{Entry, StoredAnswer, Wacz};
use archivist_core::lock;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io::{self, Read};
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// What a `Range` header asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Asked {
    /// The resource, also if the header has several ranges or another unit: a server may ignore it.
    #[default]
    All,
    From(u64),
    /// The first and the last byte.
    Between(u64, u64),
    /// This number of bytes at the end.
    Last(u64),
}

impl Asked {
    /// Reads the value of a `Range` header.
    #[must_use]
    pub fn of(header: Option<&str>) -> Asked {
        let parse = || {
            let (unit, range) = header?.trim().split_once('=')?;
            let (first, last) = range.split_once('-').filter(|_| is_bytes(unit))?;
            let number = |text: &str| match text.trim() {
                "" => Some(None),
                text => text.parse().ok().map(Some),
            };
            match (number(first)?, number(last)?) {
                (Some(first), Some(last)) if first <= last => Some(Asked::Between(first, last)),
                (Some(first), None) => Some(Asked::From(first)),
                (None, Some(count)) => Some(Asked::Last(count)),
                _ => None,
            }
        };
        parse().unwrap_or_default()
    }

    /// The wanted bytes of a resource of `total` bytes; empty if it has none of them.
    #[must_use]
    pub fn within(self, total: u64) -> Range<u64> {
        match self {
            Asked::All => 0..total,
            Asked::From(first) => first..total.max(first),
            Asked::Between(first, last) => first..last.saturating_add(1).min(total).max(first),
            Asked::Last(count) => total.saturating_sub(count)..total,
        }
    }
}

/// What a `Content-Range` header says that an answer has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    pub first: u64,
    pub last: u64,
    /// Bytes of the whole resource, if they are known.
    pub total: Option<u64>,
}

impl Sent {
    /// Reads the value of a `Content-Range` header. `None` if it names no bytes.
    #[must_use]
    pub fn of(header: &str) -> Option<Sent> {
        let (unit, range) = header.trim().split_once(' ')?;
        let (range, total) = range.split_once('/').filter(|_| is_bytes(unit))?;
        let (first, last) = range.split_once('-')?;
        let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        let total = total.trim().parse().ok();
        let is_valid = first <= last && last < total.unwrap_or(u64::MAX);
        is_valid.then_some(Sent { first, last, total })
    }

    /// Number of the bytes.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.last - self.first + 1
    }
}

fn is_bytes(unit: &str) -> bool {
    unit.trim().eq_ignore_ascii_case("bytes")
}

/// The bytes of a resource that a record has.
#[derive(Debug)]
struct Part {
    bytes: Range<u64>,
    /// Bytes of the resource, if they are known.
    total: Option<u64>,
    /// What distinguishes this state of the resource from others of the same length.
    version: String,
}

impl Part {
    /// `None` if the record has no bytes that can be told by their place.
    fn of(answer: &StoredAnswer) -> Option<Part> {
        let value = |name| head::value(&answer.headers, name);
        let version = value("etag").or_else(|| value("last-modified")).unwrap_or_default();
        let version = version.to_owned();
        match answer.status {
            206 => {
                let sent = Sent::of(value("content-range")?)?;
                let count = answer.length.unwrap_or(sent.count());
                let bytes = sent.first..sent.first.saturating_add(count);
                (count <= sent.count()).then_some(Part { bytes, total: sent.total, version })
            }
            200 => {
                let bytes = 0..answer.length.unwrap_or(u64::MAX);
                Some(Part { bytes, total: answer.length, version })
            }
            _ => None,
        }
    }
}

/// Numbers of a recording and of a file in it, and the offset of a record.
type Place = (usize, usize, u64);

/// What was read of records.
#[derive(Debug, Default)]
pub(super) struct Parts(Mutex<HashMap<Place, Option<Arc<Part>>>>);

/// The records that answer a request: one, or several whose parts follow one another.
pub(super) struct Chosen<C> {
    pub(super) first: C,
    /// With the bytes of the resource that each adds.
    pub(super) rest: Vec<(C, Range<u64>)>,
}

impl<C> Chosen<C> {
    fn one(first: C) -> Chosen<C> {
        Chosen { first, rest: Vec::new() }
    }
}

impl Parts {
    fn of(&self, waczs: &[Arc<Wacz>], (number, entry): &Candidate<'_>) -> Option<Arc<Part>> {
        let place = (*number, entry.warc, entry.offset);
        let read = || Part::of(&waczs[*number].read(entry).ok()?).map(Arc::new);
        lock(&self.0).entry(place).or_insert_with(read).clone()
    }

    /// Chooses by the bytes that are wanted, and then by time.
    pub(super) fn choose<'a>(
        &self,
        waczs: &[Arc<Wacz>],
        mut candidates: Vec<Candidate<'a>>,
        request: &Request<'_>,
    ) -> Option<Chosen<Candidate<'a>>> {
        let has_status = |(_, entry): &Candidate<'_>, status| entry.status == Some(status);
        let is_part = |candidate: &Candidate<'_>| has_status(candidate, 206);
        // A server refuses a range, never the resource.
        if candidates.iter().any(|candidate| !has_status(candidate, 416)) {
            candidates.retain(|candidate| !has_status(candidate, 416));
        }
        let wants_all = request.asked == Asked::All;
        if wants_all && !candidates.iter().all(is_part) {
            candidates.retain(|candidate| !is_part(candidate));
        }
        let has_parts = candidates.iter().any(is_part);
        candidates.sort_by_cached_key(|candidate| distance(candidate, request));
        if !has_parts {
            return in_turn(candidates, request.given).map(Chosen::one);
        }
        let mut other = None;
        let mut states = BTreeMap::<_, Vec<_>>::new();
        for candidate in candidates {
            let (number, entry) = &candidate;
            let may_have_bytes = is_part(&candidate) || has_status(&candidate, 200);
            let part = may_have_bytes.then(|| self.of(waczs, &candidate)).flatten();
            if let Some(part) = part {
                let state = (*number, entry.url.clone(), part.total, part.version.clone());
                states.entry(state).or_default().push((part, candidate));
            } else {
                other.get_or_insert(candidate);
            }
        }
        let covers = states.into_values().filter_map(|state| cover(state, request.asked));
        let best = covers.min_by_key(|(lacks, chosen)| (*lacks, distance(&chosen.first, request)));
        match (best, other) {
            (Some((Lacks::All, _)), Some(other)) => Some(Chosen::one(other)),
            (Some((_, best)), _) => Some(best),
            (None, other) => other.map(Chosen::one),
        }
    }
}

/// The candidate whose turn it is, of candidates of which the nearest is the first.
fn in_turn(mut candidates: Vec<Candidate<'_>>, given: usize) -> Option<Candidate<'_>> {
    let (number, first) = candidates.first().map(|(number, entry)| (*number, entry.time))?;
    candidates.retain(|(own, entry)| {
        let later = entry.time.duration_since(first);
        *own == number && !later.is_negative() && later <= VISIT
    });
    let turn = given.min(candidates.len() - 1);
    Some(candidates.swap_remove(turn))
}

/// What a state of a resource lacks of the wanted bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Lacks {
    Nothing,
    /// Those at the end.
    End,
    All,
}

/// The records of one state of a resource, nearest first, that have the wanted bytes together. If there are
/// none, the nearest record.
fn cover<C>(state: Vec<(Arc<Part>, C)>, asked: Asked) -> Option<(Lacks, Chosen<C>)> {
    let total = state.first()?.0.total;
    let is_known = total.is_some() || matches!(asked, Asked::From(_) | Asked::Between(..));
    let wanted = asked.within(total.filter(|_| is_known).unwrap_or(u64::MAX));
    let parts: Vec<_> = state.iter().map(|(part, _)| part.bytes.clone()).collect();
    let is_exact = |bytes: &Range<u64>| *bytes == wanted || bytes.end == u64::MAX;
    let (mut at, mut chosen) = (wanted.start, Vec::new());
    if let Some(exact) = parts.iter().position(is_exact) {
        chosen.push((exact, wanted.clone()));
        at = wanted.end;
    }
    while at < wanted.end && is_known {
        let having = parts.iter().enumerate().filter(|(_, bytes)| bytes.contains(&at));
        // Of those that reach as far, the nearest in time.
        let next = having.min_by_key(|(_, bytes)| Reverse(bytes.end.min(wanted.end)));
        let Some((number, bytes)) = next else { break };
        chosen.push((number, at..bytes.end));
        at = bytes.end;
    }
    let lacks = match chosen.is_empty() {
        true => Lacks::All,
        false if at >= wanted.end => Lacks::Nothing,
        false => Lacks::End,
    };
    let mut state: Vec<_> = state.into_iter().map(|(_, candidate)| Some(candidate)).collect();
    let mut chosen = chosen.into_iter();
    let first = chosen.next().map_or(0, |(number, _)| number);
    let first = state[first].take()?;
    let rest = chosen.filter_map(|(number, bytes)| Some((state[number].take()?, bytes))).collect();
    Some((lacks, Chosen { first, rest }))
}

/// The answer of a record of a part, with the bytes that others add.
pub(super) fn joined(
    wacz: &Arc<Wacz>,
    first: StoredAnswer,
    rest: &[(Entry, Range<u64>)],
) -> StoredAnswer {
    let (Some(part), Some((_, last))) = (Part::of(&first), rest.last()) else {
        return first;
    };
    let bytes = part.bytes.start..last.end;
    let total = part.total.map_or("*".to_owned(), |total| total.to_string());
    let range = format!("bytes {}-{}/{total}", bytes.start, bytes.end - 1);
    let mut headers = first.headers;
    headers.retain(|(name, _)| !name.eq_ignore_ascii_case("content-range"));
    headers.push(("Content-Range".to_owned(), range));
    let body = Joined {
        wacz: Arc::clone(wacz),
        body: Box::new(first.body.take(part.bytes.end - bytes.start)),
        rest: rest.iter().cloned().collect(),
    };
    StoredAnswer {
        status: 206,
        headers,
        length: Some(bytes.end - bytes.start),
        blocks: None,
        body: Box::new(body),
        ..first
    }
}

/// Bodies that follow one another, each of which is opened when it is read.
struct Joined {
    wacz: Arc<Wacz>,
    body: Box<dyn Read + Send>,
    rest: VecDeque<(Entry, Range<u64>)>,
}

impl Read for Joined {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.body.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            let Some((entry, bytes)) = self.rest.pop_front() else {
                return Ok(0);
            };
            let answer = self.wacz.read(&entry).map_err(io::Error::other)?;
            let part = Part::of(&answer).filter(|part| part.bytes.contains(&bytes.start));
            let part = part.ok_or(io::ErrorKind::UnexpectedEof)?;
            let mut body = answer.body;
            io::copy(&mut (&mut body).take(bytes.start - part.bytes.start), &mut io::sink())?;
            self.body = Box::new(body.take(bytes.end - bytes.start));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lookup::{Index, Match, Wanted};
    use crate::sample::{add, at, get, noise, recorded};
    use proptest::prelude::*;

    const URL: &str = "https://a.test/video";
    const TOTAL: u64 = 1000;

    #[test]
    fn wanted_bytes_are_those_of_the_header() {
        let of = |header, total| Asked::of(Some(header)).within(total);
        assert_eq!(of("bytes=0-99", 1000), 0..100);
        assert_eq!(of("Bytes=990-2000", 1000), 990..1000);
        assert_eq!(of("bytes=5-", 1000), 5..1000);
        assert_eq!(of("bytes=-10", 1000), 990..1000);
        assert_eq!(of("bytes=-2000", 1000), 0..1000);
        assert_eq!(of("bytes=0-18446744073709551615", 9), 0..9);
        for outside in ["bytes=1000-", "bytes=1000-1001", "bytes=-0"] {
            assert!(of(outside, 1000).is_empty(), "{outside}");
        }
        for ignored in ["bytes=0-1,5-6", "bytes=9-1", "bytes=-", "lines=0-1", "x"] {
            assert_eq!(Asked::of(Some(ignored)), Asked::All, "{ignored}");
        }
        assert_eq!(Asked::of(None), Asked::All);
    }

    #[test]
    fn sent_bytes_are_those_of_the_header() {
        let sent = |first, last, total| Some(Sent { first, last, total });
        assert_eq!(Sent::of("bytes 5-9/100"), sent(5, 9, Some(100)));
        assert_eq!(Sent::of("bytes 5-5/6"), sent(5, 5, Some(6)));
        assert_eq!(Sent::of("BYTES 5-9/*"), sent(5, 9, None));
        let none = ["bytes */100", "bytes 9-5/100", "bytes 5-100/100", "items 5-9/100", ""];
        for none in none.into_iter().chain(["bytes 0-18446744073709551615/*"]) {
            assert_eq!(Sent::of(none), None, "{none}");
        }
    }

    /// A recorded answer: seconds after the page, status, bytes of the resource, and its version.
    struct Recorded(i64, u16, Range<u64>, &'static str);

    /// The bytes of a version of the resource.
    fn resource(version: &str) -> Vec<u8> {
        let mut bytes = noise(TOTAL as usize);
        bytes.iter_mut().for_each(|byte| *byte ^= version.len() as u8);
        bytes
    }

    fn index(answers: &[Recorded]) -> Index {
        let file = recorded(|recording| {
            for Recorded(seconds, status, bytes, version) in answers {
                let range = match status {
                    206 => format!("bytes {}-{}/{TOTAL}", bytes.start, bytes.end - 1),
                    _ => format!("bytes */{TOTAL}"),
                };
                let headers = [("Content-Range", range.as_str()), ("ETag", version)];
                let fields = if matches!(status, 206 | 416) { &headers[..] } else { &headers[1..] };
                let mut exchange = get(URL, *status, fields);
                exchange.time =
                    at("2026-11-26T09:00:00Z") + jiff::SignedDuration::from_secs(*seconds);
                let body = &resource(version)[bytes.start as usize..bytes.end as usize];
                add(recording, &exchange, body);
            }
        });
        let mut index = Index::new();
        index.add(Arc::new(Wacz::open(file).unwrap()));
        index
    }

    /// Status, `Content-Range` and body of what a request gets.
    fn answer(index: &Index, range: &str) -> (u16, String, Vec<u8>) {
        let near = at("2026-11-26T09:00:00Z");
        let range = Some(range).filter(|range| !range.is_empty());
        let wanted = Wanted {
            url: URL,
            method: "GET",
            posted: None,
            range,
            near,
            redirected: None,
            given: 0,
        };
        let found = index.find(&wanted).unwrap();
        assert_eq!(found.fit, Match::Exact);
        let StoredAnswer { status, headers, length, mut body, .. } = found.read().unwrap();
        let mut bytes = Vec::new();
        body.read_to_end(&mut bytes).unwrap();
        assert_eq!(length, Some(bytes.len() as u64));
        (status, head::value(&headers, "content-range").unwrap_or_default().to_owned(), bytes)
    }

    fn part(bytes: Range<u64>, version: &str) -> (u16, String, Vec<u8>) {
        let range = format!("bytes {}-{}/{TOTAL}", bytes.start, bytes.end - 1);
        (206, range, resource(version)[bytes.start as usize..bytes.end as usize].to_vec())
    }

    #[test]
    fn record_with_the_wanted_bytes_answers_whatever_its_time() {
        let index = index(&[
            Recorded(1, 416, 0..0, "a"),
            Recorded(2, 206, 0..100, "a"),
            Recorded(3, 206, 100..300, "a"),
            Recorded(4, 206, 600..800, "a"),
            Recorded(5, 206, 900..1000, "a"),
        ]);
        assert_eq!(answer(&index, "bytes=0-99"), part(0..100, "a"));
        assert_eq!(answer(&index, "bytes=100-299"), part(100..300, "a"));
        // One inside of another, the tail, several that have one together, and the end of it alone.
        assert_eq!(answer(&index, "bytes=650-699"), part(600..800, "a"));
        assert_eq!(answer(&index, "bytes=-100"), part(900..1000, "a"));
        assert_eq!(answer(&index, "bytes=-7"), part(900..1000, "a"));
        assert_eq!(answer(&index, "bytes=950-"), part(900..1000, "a"));
        assert_eq!(answer(&index, "bytes=50-249"), part(0..300, "a"));
        assert_eq!(answer(&index, "bytes=50-"), part(0..300, "a"));
    }

    #[test]
    fn resource_is_put_together_from_its_parts() {
        let parts = [0..400, 300..350, 300..800, 800..1000];
        let parts = (10..).zip(parts).map(|(time, bytes)| Recorded(time, 206, bytes, "a"));
        let mut answers: Vec<_> = parts.collect();
        let whole = answer(&index(&answers), "");
        assert_eq!(whole, part(0..1000, "a"));
        assert_eq!(answer(&index(&answers), "bytes=200-"), whole);
        // What a request without a range got precedes.
        answers.push(Recorded(99, 404, 0..3, ""));
        assert_eq!(answer(&index(&answers), "").0, 404);
        assert_eq!(answer(&index(&answers), "bytes=0-999"), whole);
        answers.push(Recorded(99, 200, 0..1000, "a"));
        assert_eq!(answer(&index(&answers), "").0, 200);
    }

    #[test]
    fn parts_of_different_versions_are_not_mixed() {
        let index = index(&[
            Recorded(1, 206, 0..500, "old"),
            Recorded(1, 206, 0..500, "new one"),
            Recorded(9, 206, 500..1000, "new one"),
        ]);
        assert_eq!(answer(&index, "bytes=400-599"), part(0..1000, "new one"));
        assert_eq!(answer(&index, "bytes=500-"), part(500..1000, "new one"));
    }

    proptest! {
        #[test]
        fn any_parts_that_have_the_wanted_bytes_answer(
            parts in proptest::collection::vec((0..TOTAL, 1..TOTAL / 2), 1..12),
            first in 0..TOTAL,
            length in 1..TOTAL,
        ) {
            let parts = parts.into_iter().map(|(first, count)| first..(first + count).min(TOTAL));
            let parts: Vec<_> = parts.collect();
            let wanted = first..(first + length).min(TOTAL);
            let recorded: Vec<_> =
                parts.iter().map(|part| Recorded(1, 206, part.clone(), "a")).collect();
            let range = format!("bytes={}-{}", wanted.start, wanted.end - 1);
            let (_, range, body) = answer(&index(&recorded), &range);
            let sent = Sent::of(&range).unwrap();
            let is_there = |byte: u64| parts.iter().any(|part| part.contains(&byte));
            let expected = wanted.clone().take_while(|byte| is_there(*byte)).count() as u64;
            let got = (sent.first..sent.last + 1).contains(&wanted.start);
            let got = if got { (sent.last + 1).min(wanted.end) - wanted.start } else { 0 };
            prop_assert_eq!(got, expected);
            prop_assert!(body == resource("a")[sent.first as usize..=sent.last as usize]);
        }
    }
}
