//! Completes what the page has not read of audio and video, and what the browser has not held of other
//! bodies, when the recording ends.
//!
//! A media element reads as much as it plays, and a body that no page reads is held if it is small. The
//! page itself then fetches the missing bytes, and no others, so that the server sees the same browser with
//! the same cookies; the browser has no call that loads a part of a file (`Network.loadNetworkResource`
//! knows no ranges). If the server of another site does not share its files with scripts, or a policy of the
//! page (CSP) forbids it to fetch, the body stays as it is.

use super::calls::{Calls, Expected, Step};
use super::flight::Flight;
use super::rules::Rules;
use archivist_warc::lookup::Sent;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Fetches a part of a file, or all of it, which the browser's cache may have. What it returns is recorded
/// on its way.
const FETCH: &str = r#"async (url, range) => {
  const how = range ? { headers: { Range: range }, cache: "no-store" } : { cache: "force-cache" };
  const reader = (await fetch(url, how)).body.getReader();
  while (!(await reader.read()).done);
}"#;

/// The bodies that lack bytes.
#[derive(Debug, Default)]
pub struct Media {
    /// Session and target of the page.
    page: (String, String),
    /// Requests that wait for their turn, the last first.
    unread: Vec<String>,
    /// The world of our own in the page.
    world: Option<u64>,
    part: Option<Part>,
}

#[derive(Debug)]
struct Part {
    /// The request that lacks it.
    of: String,
    url: String,
    missing: MissingBytes,
    is_sent: bool,
}

/// What a body lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum MissingBytes {
    /// These bytes, with the last.
    Rest { first: u64, last: u64 },
    /// All of its bytes.
    Whole(u64),
}

impl MissingBytes {
    /// What a body lacks that the page can fetch, if its server sends no more than are kept.
    fn of(flight: &Flight, rules: &Rules) -> Option<MissingBytes> {
        let hop = flight.hop.as_ref()?;
        let response = hop.response.as_ref()?;
        if flight.calls > 0 || hop.method != "GET" {
            return None;
        }
        if let Some(length) = flight.held_back(hop) {
            return (response.status == 200 && length <= rules.body_max)
                .then_some(MissingBytes::Whole(length));
        }
        let is_medium = hop.kind == "media" && hop.header("content-encoding").is_none();
        let is_counted = flight.body.got == flight.body.expected;
        if response.status != 206 || !(is_medium && is_counted && rules.completes_media) {
            return None;
        }
        let sent = Sent::of(hop.header("content-range")?)?;
        let (length, first, last) = (sent.count(), sent.first, sent.last);
        let missing =
            (flight.body.got < length && length <= rules.body_max).then_some(flight.body.got);
        missing.map(|got| MissingBytes::Rest { first: first + got, last })
    }

    fn length(self) -> u64 {
        match self {
            MissingBytes::Rest { first, last } => last - first + 1,
            MissingBytes::Whole(length) => length,
        }
    }

    /// Whether an answer has these bytes, and is that of the file of which `body` has others.
    fn is_in(self, answer: &Flight, body: &Flight) -> bool {
        let (Some(own), Some(of)) = (&answer.hop, &body.hop) else {
            return false;
        };
        match self {
            MissingBytes::Rest { first, last } => {
                let sent = own.header("content-range").and_then(Sent::of);
                let is_it = sent.is_some_and(|sent| (sent.first, sent.last) == (first, last));
                is_it && answer.body.got == self.length()
            }
            MissingBytes::Whole(_) => {
                let is_same = |name: &str| own.header(name) == of.header(name);
                let names = ["content-length", "content-encoding", "etag", "last-modified"];
                answer.is_sound(own) && names.into_iter().all(is_same)
            }
        }
    }

    /// Value of `Range`.
    fn range(self) -> Option<String> {
        match self {
            MissingBytes::Rest { first, last } => Some(format!("bytes={first}-{last}")),
            MissingBytes::Whole(_) => None,
        }
    }
}

/// Answer to `Page.createIsolatedWorld`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreatedWorld {
    execution_context_id: u64,
}

type Flights = BTreeMap<String, Flight>;

/// Whether a request waits until its missing bytes are fetched.
pub fn puts_off(flight: &mut Flight, rules: &Rules) -> bool {
    flight.is_put_off = MissingBytes::of(flight, rules).is_some();
    flight.is_put_off
}

impl Media {
    /// That of a page with this session and target.
    pub fn of(session: &str, target: &str) -> Media {
        Media { page: (session.to_owned(), target.to_owned()), ..Media::default() }
    }

    /// Begins to fetch what bodies lack, one after the other.
    pub fn begin(&mut self, flights: &Flights, rules: &Rules, calls: &mut Calls) {
        let lacking = flights.iter().filter_map(|(request, flight)| {
            let missing = MissingBytes::of(flight, rules)?;
            Some((missing.length(), request.clone(), flight.hop.as_ref()?.url.clone()))
        });
        let mut lacking: Vec<_> = lacking.collect();
        lacking.sort();
        // A medium that was sought has several requests for one file: the fullest is completed.
        let mut urls = BTreeSet::new();
        lacking.retain(|(.., url)| urls.insert(url.clone()));
        self.unread = lacking.into_iter().rev().map(|(_, request, _)| request).collect();
        if !self.unread.is_empty() {
            let (session, target) = &self.page;
            let world = json!({"frameId": target, "worldName": "archivist"});
            calls.ask(session, "Page.createIsolatedWorld", world, Expected::World);
        }
    }

    pub fn is_completing(&self) -> bool {
        self.part.is_some() || !self.unread.is_empty()
    }

    pub fn entered(
        &mut self,
        world: Option<CreatedWorld>,
        flights: &mut Flights,
        rules: &Rules,
        calls: &mut Calls,
    ) {
        match world {
            Some(world) => self.world = Some(world.execution_context_id),
            None => self.unread.clear(),
        }
        self.fetch_next(flights, rules, calls);
    }

    pub fn fetch_next(&mut self, flights: &mut Flights, rules: &Rules, calls: &mut Calls) {
        self.part = None;
        let Some(world) = self.world else { return };
        while let Some(request) = self.unread.pop() {
            let found = flights.get_mut(&request).and_then(|flight| {
                let missing = MissingBytes::of(flight, rules)?;
                // What the medium reads from now on is part of that.
                flight.is_put_off = true;
                Some((flight.hop.as_ref()?.url.clone(), missing))
            });
            let Some((url, missing)) = found else { continue };
            let arguments =
                format!("{}, {}", Value::from(url.as_str()), Value::from(missing.range()));
            let script = json!({"expression": format!("({FETCH})({arguments})"), "contextId": world,
                "awaitPromise": true});
            self.part = Some(Part { of: request, url, missing, is_sent: false });
            return calls.ask(&self.page.0, "Runtime.evaluate", script, Expected::Fetched);
        }
    }

    /// The page has fetched a part, or could not send its request.
    pub fn fetched(&mut self, flights: &mut Flights, rules: &Rules, calls: &mut Calls) {
        if self.part.as_ref().is_some_and(|part| !part.is_sent) {
            self.fetch_next(flights, rules, calls);
        }
    }

    /// The request that lacks what a new one asks for.
    pub fn completed_by(&mut self, url: &str, range: Option<&str>) -> Option<String> {
        let part = self.part.as_mut()?;
        let is_own = part.url == url && range == part.missing.range().as_deref() && !part.is_sent;
        part.is_sent |= is_own;
        is_own.then(|| part.of.clone())
    }

    /// Adds the body of a request to that which lacks it.
    pub fn join(
        &self,
        from: &str,
        part_of: &str,
        flight: &Flight,
        flights: &mut Flights,
        calls: &mut Calls,
    ) {
        let part = self.part.as_ref().filter(|part| part.of == part_of);
        let lacking = flights.get_mut(part_of);
        let whole = part.zip(lacking).filter(|(part, body)| part.missing.is_in(flight, body));
        let Some((part, lacking)) = whole else {
            return calls.clear(from);
        };
        let is_whole = part.missing.range().is_none();
        if is_whole && std::mem::take(&mut lacking.body.got) > 0 {
            calls.clear(part_of);
        }
        lacking.body.got += flight.body.got;
        lacking.body.expected = lacking.body.got;
        lacking.body.is_whole = true;
        // The browser's cache had it.
        lacking.is_repeated = flight.hop.as_ref().is_some_and(|hop| !hop.is_cached);
        calls.order(Step::Join { from: from.to_owned(), to: part_of.to_owned() });
    }
}
