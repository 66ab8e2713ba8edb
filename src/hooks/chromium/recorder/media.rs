//! Completes audio and video of which the page has not read all, when the recording ends.
//!
//! A media element reads as much as it plays. The page itself then fetches the missing bytes, and no
//! others, so that the server sees the same browser with the same cookies; the browser has no call that
//! loads a part of a file (`Network.loadNetworkResource` knows no ranges). If the server of another site
//! does not share its files with scripts, or a policy of the page (CSP) forbids it to fetch, the medium
//! stays as it was played.

use super::requests::{Expected, Flight, Requests, Step};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Fetches a part of a file. What it returns is recorded on its way.
const FETCH: &str = r#"async (url, range) => {
  const reader = (await fetch(url, { headers: { Range: range }, cache: "no-store" })).body.getReader();
  while (!(await reader.read()).done);
}"#;

/// The media that lack bytes.
#[derive(Debug, Default)]
pub struct Media {
    /// Requests that wait for their turn, the last first.
    unread: Vec<String>,
    /// The world of our own in the page.
    world: Option<u64>,
    part: Option<Part>,
}

/// The part of a file that is being fetched.
#[derive(Debug)]
struct Part {
    /// The request that lacks it.
    of: String,
    url: String,
    first: u64,
    last: u64,
    /// Whether the page has sent the request.
    is_sent: bool,
}

impl Part {
    fn range(&self) -> String {
        format!("bytes={}-{}", self.first, self.last)
    }
}

/// Answer to `Page.createIsolatedWorld`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct World {
    execution_context_id: u64,
}

/// First and last byte of a value of `Content-Range`.
fn range_of(value: &str) -> Option<(u64, u64)> {
    let (range, _) = value.trim().strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    Some((first.parse().ok()?, last.parse().ok()?))
}

impl Flight {
    /// First and last byte of what a medium lacks, if its server sends parts of at most `most` bytes.
    fn missing(&self, most: u64) -> Option<(u64, u64)> {
        let hop = self.hop.as_ref()?;
        let response = hop.response.as_ref()?;
        let is_plain = hop.header("content-encoding").is_none();
        let is_medium = hop.kind == "media" && hop.method == "GET" && is_plain;
        let is_counted = self.calls == 0 && self.body.got == self.body.expected;
        if response.status != 206 || !is_medium || !is_counted {
            return None;
        }
        let (first, last) = range_of(hop.header("content-range")?)?;
        let length = last.checked_sub(first)?.checked_add(1)?;
        let missing = (self.body.got < length && length <= most).then_some(self.body.got);
        missing.map(|got| (first + got, last))
    }
}

impl Requests {
    /// Whether a request waits until its missing bytes are fetched.
    pub fn puts_off(&mut self, request: &str) -> bool {
        let most = self.rules.body_max;
        let flight = self.flights.get_mut(request);
        let Some(flight) = flight.filter(|_| self.rules.completes_media) else {
            return false;
        };
        flight.is_put_off = flight.missing(most).is_some();
        flight.is_put_off
    }

    /// Begins to fetch what media lack, one after the other.
    pub fn complete_media(&mut self) -> Vec<Step> {
        if !self.rules.completes_media {
            return Vec::new();
        }
        let most = self.rules.body_max;
        let lacking = self.flights.iter().filter_map(|(request, flight)| {
            let (first, last) = flight.missing(most)?;
            Some((last - first, request.clone(), flight.hop.as_ref()?.url.clone()))
        });
        let mut lacking: Vec<_> = lacking.collect();
        lacking.sort();
        // A medium that was sought has several requests for one file: the fullest is completed.
        let mut urls = BTreeSet::new();
        lacking.retain(|(.., url)| urls.insert(url.clone()));
        self.media.unread = lacking.into_iter().rev().map(|(_, request, _)| request).collect();
        if !self.media.unread.is_empty() {
            let (session, target) = self.page.clone();
            let world = json!({"frameId": target, "worldName": "archivist"});
            self.call(&session, "Page.createIsolatedWorld", world, Expected::World);
        }
        std::mem::take(&mut self.steps)
    }

    /// Whether media are being completed.
    pub fn completes_media(&self) -> bool {
        self.media.part.is_some() || !self.media.unread.is_empty()
    }

    pub(super) fn entered(&mut self, world: Option<World>) {
        match world {
            Some(world) => self.media.world = Some(world.execution_context_id),
            None => self.media.unread.clear(),
        }
        self.fetch_next();
    }

    fn fetch_next(&mut self) {
        self.media.part = None;
        let (Some(world), Some(request)) = (self.media.world, self.media.unread.pop()) else {
            return;
        };
        let most = self.rules.body_max;
        let flight = self.flights.get_mut(&request);
        let found = flight.and_then(|flight| {
            let (first, last) = flight.missing(most)?;
            // What the medium reads from now on is part of that.
            flight.is_put_off = true;
            Some((flight.hop.as_ref()?.url.clone(), first, last))
        });
        let Some((url, first, last)) = found else {
            return self.fetch_next();
        };
        let part = Part { of: request, url, first, last, is_sent: false };
        let (session, _) = self.page.clone();
        let arguments =
            format!("{}, {}", Value::from(part.url.as_str()), Value::from(part.range()));
        let script = json!({"expression": format!("({FETCH})({arguments})"), "contextId": world,
            "awaitPromise": true});
        self.media.part = Some(part);
        self.call(&session, "Runtime.evaluate", script, Expected::Fetched);
    }

    /// The page has fetched a part, or could not send its request.
    pub(super) fn fetched(&mut self) {
        if self.media.part.as_ref().is_some_and(|part| !part.is_sent) {
            self.fetch_next();
        }
    }

    /// The request that lacks what a new one asks for.
    pub(super) fn completed_by(&mut self, url: &str, range: Option<&str>) -> Option<String> {
        let part = self.media.part.as_mut()?;
        let is_own = part.url == url && range == Some(&part.range()) && !part.is_sent;
        part.is_sent |= is_own;
        is_own.then(|| part.of.clone())
    }

    /// Adds the body of a request to that which lacks it.
    pub(super) fn join(&mut self, from: &str, part_of: &str, flight: &Flight) {
        let hop = flight.hop.as_ref();
        let sent = hop.and_then(|hop| range_of(hop.header("content-range")?));
        let part = self.media.part.as_ref().filter(|part| part.of == part_of);
        let is_all = part.is_some_and(|part| {
            let length = part.last - part.first + 1;
            sent == Some((part.first, part.last)) && flight.body.got == length
        });
        let (from, to) = (from.to_owned(), part_of.to_owned());
        if is_all && let Some(medium) = self.flights.get_mut(part_of) {
            medium.body.got += flight.body.got;
            medium.body.expected = medium.body.got;
            medium.body.is_whole = true;
            self.steps.push(Step::Join { from, to });
        } else {
            self.steps.push(Step::Clear { request: from });
        }
        self.conclude(part_of);
        self.fetch_next();
    }
}
