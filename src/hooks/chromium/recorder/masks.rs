//! What stands for the values of a persona's cookies in a recording, so that it does not give away the login.
//!
//! It has the same form, so that scripts do the same with it in a replay, and ask for the addresses that the
//! recording has. It follows from the value and all cookies of the persona, also those that no script can read.

use super::events::Headers;
use crate::chromium::browser::cookies::Cookie;
use archivist_warc::exchange::Exchange;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::{BTreeSet, HashMap};
use std::io::{self, Read};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

/// Shortest value in bytes that may be a secret.
const VALUE_MIN_BYTES: usize = 4;
/// From this length on, a value is also replaced within words, and in bodies that are no text.
const LONG_BYTES: usize = 8;
/// Bytes of a body that are searched at once.
const PIECE_BYTES: usize = 64 << 10;
/// Settings of pages, which are no secrets, and words of their style sheets and scripts.
const SETTINGS: [&str; 14] = [
    "true", "false", "none", "null", "auto", "dark", "light", "accepted", "allow", "deny",
    "denied", "granted", "system", "default",
];
/// What `encodeURIComponent` of scripts encodes.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'!')
    .remove(b'~')
    .remove(b'*')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')');

/// The cookies of a persona with which a visit begins, and what stands for their values.
#[derive(Debug, Default)]
pub struct Masks {
    cookies: Vec<Cookie>,
    /// Sums of all values.
    key: Vec<u8>,
    /// URL of the page, which the user knows.
    url: String,
    values: RwLock<Values>,
}

/// A value, and what stands for it.
type Masking = (Vec<u8>, Vec<u8>);

#[derive(Debug, Default)]
struct Values {
    /// Values and what stands for them, longest first, by the begin of the values.
    known: HashMap<[u8; VALUE_MIN_BYTES], Vec<Masking>>,
    /// Bytes of the longest value.
    longest: usize,
}

impl Masks {
    pub fn new(cookies: Vec<Cookie>, url: &str) -> Masks {
        // The browser has them in any order.
        let sums: BTreeSet<_> =
            cookies.iter().map(|cookie| Sha256::digest(&cookie.value).to_vec()).collect();
        let key = sums.into_iter().flatten().collect();
        let masks = Masks { cookies, key, url: url.to_owned(), ..Masks::default() };
        masks.cookies.iter().for_each(|cookie| masks.add(&cookie.value));
        masks
    }

    pub fn are_none(&self) -> bool {
        self.cookies.is_empty()
    }

    /// Learns the values that a server gives to cookies of the persona.
    pub fn learn(&self, headers: &Headers) {
        let set = headers.0.iter().filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie"));
        let pairs = set.filter_map(|(_, value)| value.split(';').next()?.split_once('='));
        let is_own = |name: &str| self.cookies.iter().any(|cookie| cookie.name == name.trim());
        pairs.filter(|(name, _)| is_own(name)).for_each(|(_, value)| self.add(value.trim()));
    }

    fn add(&self, value: &str) {
        let is_locale = matches!(value.as_bytes(), [a, b, b'-' | b'_', c, d]
            if [a, b, c, d].into_iter().all(u8::is_ascii_alphabetic));
        let is_setting = SETTINGS.iter().any(|known| value.eq_ignore_ascii_case(known));
        if value.len() < VALUE_MIN_BYTES || is_locale || is_setting || self.url.contains(value) {
            return;
        }
        let mask = mask(value, &self.key);
        let encoded = |text: &str| utf8_percent_encode(text, ENCODED).to_string().into_bytes();
        let decoded = |text: &str| percent_decode_str(text).collect();
        let mut values = self.values.write().unwrap_or_else(PoisonError::into_inner);
        values.add(value.into(), mask.clone().into());
        values.add(encoded(value), encoded(&mask));
        values.add(decoded(value), decoded(&mask));
    }

    fn values(&self) -> RwLockReadGuard<'_, Values> {
        self.values.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn text(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.bytes(text.as_bytes())).into_owned()
    }

    fn bytes(&self, bytes: &[u8]) -> Vec<u8> {
        let mut masked = bytes.to_vec();
        self.values().replace(&mut masked, None, bytes.len(), true);
        masked
    }

    /// Masks all of a request and its response but the body.
    pub fn exchange(&self, exchange: &mut Exchange) {
        exchange.url = self.text(&exchange.url);
        exchange.posted = exchange.posted.take().map(|posted| self.bytes(&posted));
        let headers = exchange.request.iter_mut().chain(&mut exchange.response);
        headers.for_each(|(_, value)| *value = self.text(value));
    }

    /// Masks a body of this media type, whose length stays.
    pub fn body(
        self: &Arc<Masks>,
        body: Box<dyn Read + Send>,
        media_type: &str,
    ) -> Box<dyn Read + Send> {
        if self.are_none() {
            return body;
        }
        let is_binary = ["image/", "font/", "audio/", "video/"];
        let is_text = media_type.contains("svg")
            || !is_binary.iter().any(|kind| media_type.starts_with(kind));
        let masks = Arc::clone(self);
        let (bytes, at, ready) = (Vec::new(), 0, 0);
        Box::new(Masked { body, masks, is_text, bytes, at, ready, before: None })
    }

    /// The cookies that scripts of these hosts can read, as parameters of `Storage.setCookies`.
    pub fn readable(&self, hosts: &BTreeSet<String>) -> Vec<Value> {
        let own = self
            .cookies
            .iter()
            .filter(|cookie| !cookie.http_only && hosts.iter().any(|host| cookie.is_of(host)));
        own.map(|cookie| cookie.with(self.text(&cookie.value)).param()).collect()
    }
}

/// A text of the same length and kinds of characters.
fn mask(value: &str, key: &[u8]) -> String {
    let bytes = value.as_bytes();
    let seed = Sha256::new().chain_update(key).chain_update(bytes);
    let random = (0_u32..)
        .flat_map(|count| seed.clone().chain_update(count.to_le_bytes()).finalize().to_vec());
    // Digits of an escape would stand for another kind of character.
    let is_escape = |at: usize| (1..=2).any(|back| at >= back && bytes[at - back] == b'%');
    let masked = bytes.iter().enumerate().zip(random).map(|((at, byte), random)| match byte {
        b'0'..=b'9' if !is_escape(at) => b'0' + random % 10,
        b'a'..=b'z' if !is_escape(at) => b'a' + random % 26,
        b'A'..=b'Z' if !is_escape(at) => b'A' + random % 26,
        byte => *byte,
    });
    String::from_utf8_lossy(&masked.collect::<Vec<_>>()).into_owned()
}

impl Values {
    fn add(&mut self, value: Vec<u8>, mask: Vec<u8>) {
        let Some(begin) = value.first_chunk().filter(|_| value.len() == mask.len()) else {
            return;
        };
        self.longest = self.longest.max(value.len());
        let known = self.known.entry(*begin).or_default();
        known.push((value, mask));
        known.sort_by_key(|(value, _)| std::cmp::Reverse(value.len()));
        known.dedup();
    }

    /// Replaces the values that begin before `limit`. Returns the end of what was searched.
    fn replace(&self, bytes: &mut [u8], before: Option<u8>, limit: usize, is_text: bool) -> usize {
        let mut at = 0;
        while at < limit {
            let known = bytes[at..].first_chunk().and_then(|begin| self.known.get(begin));
            let previous = if at > 0 { Some(bytes[at - 1]) } else { before };
            let mut fitting = known.into_iter().flatten().filter(|(value, _)| {
                let next = bytes.get(at + value.len()).copied();
                let is_word =
                    ![previous, next].into_iter().flatten().any(|c| c.is_ascii_alphanumeric());
                bytes[at..].starts_with(value) && (value.len() >= LONG_BYTES || is_text && is_word)
            });
            match fitting.next() {
                Some((value, mask)) => {
                    bytes[at..at + value.len()].copy_from_slice(mask);
                    at += value.len();
                }
                None => at += 1,
            }
        }
        at
    }
}

struct Masked {
    body: Box<dyn Read + Send>,
    masks: Arc<Masks>,
    is_text: bool,
    bytes: Vec<u8>,
    /// Of the bytes, those from `at` up to `ready` can be read.
    at: usize,
    ready: usize,
    /// The byte before them.
    before: Option<u8>,
}

impl Masked {
    fn fill(&mut self) -> io::Result<()> {
        self.before = self.bytes[..self.ready].last().copied().or(self.before);
        self.bytes.drain(..self.ready);
        let values = self.masks.values();
        // A value, and the byte that ends a word.
        let most = PIECE_BYTES + values.longest + 1;
        let wanted = (most - self.bytes.len()) as u64;
        let read = (&mut self.body).take(wanted).read_to_end(&mut self.bytes)?;
        let is_last = (read as u64) < wanted;
        let limit = if is_last { self.bytes.len() } else { PIECE_BYTES };
        self.at = 0;
        self.ready = values.replace(&mut self.bytes, self.before, limit, self.is_text);
        Ok(())
    }
}

impl Read for Masked {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.ready {
            self.fill()?;
        }
        let count = buffer.len().min(self.ready - self.at);
        buffer[..count].copy_from_slice(&self.bytes[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const URL: &str = "https://a.test/users/lisa";

    fn masks(cookies: &[(&str, &str)]) -> Arc<Masks> {
        let cookie = |(name, value): &(&str, &str)| {
            let cookie = json!({"name": name, "value": value, "domain": ".a.test", "path": "/",
                "secure": false, "httpOnly": *name == "key", "expires": 2e9});
            serde_json::from_value(cookie).unwrap()
        };
        Arc::new(Masks::new(cookies.iter().map(cookie).collect(), URL))
    }

    #[test]
    fn mask_has_the_form_of_the_value_and_follows_from_all_cookies() {
        let value = "Anna-77%2Fé/x.Q";
        let mask = masks(&[("id", value)]).text(value);
        assert_ne!(mask, value);
        let kinds = |text: &str| -> Vec<_> {
            let kind =
                |c: char| (c.is_ascii_digit(), c.is_ascii_lowercase(), c.is_ascii_uppercase());
            text.chars().map(kind).collect()
        };
        assert_eq!(kinds(&mask), kinds(value));
        assert!(mask.contains("%2Fé/"), "{mask}");
        let others = [("id", value), ("key", "secret")];
        let reversed = [others[1], others[0]];
        assert_eq!(masks(&others).text(value), masks(&reversed).text(value));
        assert_ne!(masks(&others).text(value), mask);
    }

    #[test]
    fn values_are_masked_where_they_stand_for_themselves() {
        let masks = masks(&[("user", "anna"), ("token", "Zx81/aQ=9"), ("key", "lisa")]);
        let url = "https://a.test/anna/susanna?t=Zx81%2FaQ%3D9&u=x-anna";
        let masked = masks.text(url);
        assert!(!masked.contains("/anna/") && !masked.ends_with("anna"), "{masked}");
        assert!(masked.contains("/susanna?t=") && !masked.contains("Zx81"), "{masked}");
        assert!(masked.contains(&masks.text("Zx81/aQ=9").replace('/', "%2F").replace('=', "%3D")));
        // The address of the page, settings, and what is too short for a secret.
        for kept in [URL, "true", "de-DE", "eu7"] {
            assert_eq!(self::masks(&[("a", "lisa"), ("b", kept)]).text(kept), kept);
        }
        masks.learn(&Headers(vec![("Set-Cookie".to_owned(), "user=anna-2; Path=/".to_owned())]));
        masks.learn(&Headers(vec![("Set-Cookie".to_owned(), "other=region9".to_owned())]));
        assert_ne!(masks.text("anna-2"), "anna-2");
        assert_eq!(masks.text("region9"), "region9");
    }

    #[test]
    fn bodies_are_masked_wherever_they_are_cut() {
        let masks = masks(&[("user", "anna"), ("token", "Zx81/aQ=9")]);
        for begin in (PIECE_BYTES - 12..PIECE_BYTES + 12).chain([0, 3]) {
            let body = ["-".repeat(begin), "anna Zx81/aQ=9 susanna ".repeat(2)].concat();
            let mut read = Vec::new();
            let source = Box::new(io::Cursor::new(body.clone().into_bytes()));
            masks.body(source, "text/html").read_to_end(&mut read).unwrap();
            assert!(read == masks.text(&body).into_bytes(), "{begin}");
            assert_eq!(read.len(), body.len());
            let source = Box::new(io::Cursor::new(body.into_bytes()));
            let mut binary = Vec::new();
            masks.body(source, "image/png").read_to_end(&mut binary).unwrap();
            let text = String::from_utf8(binary).unwrap();
            assert!(text.contains("anna ") && !text.contains("Zx81"), "{begin}");
        }
    }

    #[test]
    fn cookies_for_scripts_of_the_visited_hosts_are_kept_without_their_values() {
        let masks = masks(&[("user", "anna"), ("theme", "dark"), ("key", "secret")]);
        let of = |host: &str| masks.readable(&BTreeSet::from([host.to_owned()]));
        let cookie = |name: &str, value: &str| {
            json!({"name": name, "value": value, "domain": ".a.test", "path": "/", "secure": false,
                "httpOnly": false})
        };
        let expected = [cookie("user", &masks.text("anna")), cookie("theme", "dark")];
        assert_eq!(of("www.a.test"), expected);
        assert_eq!(of("a.test"), expected);
        assert!(of("ba.test").is_empty());
    }
}
