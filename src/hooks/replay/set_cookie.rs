//! Cookies of recorded answers. Chromium ignores those of a redirect that a client answers.

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use url::Url;

/// A `Set-Cookie` header without an end that is after `then`, the time of the visit: it may be over now.
pub fn lasting(header: &str, then: Timestamp) -> String {
    let lasts = |attribute: &str| {
        let (name, value) = attribute.split_once('=').unwrap_or_default();
        name.trim().eq_ignore_ascii_case("expires") && end(value).is_some_and(|end| end > then)
    };
    let mut parts = header.split(';');
    let cookie = parts.next().into_iter();
    cookie.chain(parts.filter(|attribute| !lasts(attribute))).collect::<Vec<_>>().join(";")
}

/// The time of an `Expires` attribute. Old servers have hyphens in the date.
fn end(value: &str) -> Option<Timestamp> {
    let date = value.split_once(',').map_or(value, |(_, date)| date).trim().replace('-', " ");
    Some(jiff::fmt::rfc2822::parse(&date).ok()?.timestamp())
}

/// Translates a `Set-Cookie` header (RFC 6265, section 5.2) to a cookie of `Storage.setCookies`.
/// `None` if a browser ignores the header. `now` is in seconds since 1970.
pub fn parse(header: &str, url: &Url, now: i64) -> Option<Value> {
    let mut parts = header.split(';');
    let (name, value) = parts.next()?.split_once('=')?;
    let mut cookie = Map::new();
    cookie.insert("name".to_owned(), name.trim().into());
    cookie.insert("value".to_owned(), value.trim().into());
    cookie.insert("url".to_owned(), url.as_str().into());
    let mut has_max_age = false;
    for attribute in parts {
        let (name, value) = attribute.split_once('=').unwrap_or((attribute, ""));
        let value = value.trim();
        let (key, value) = match name.trim().to_ascii_lowercase().as_str() {
            "domain" if !value.is_empty() => ("domain", json!(value)),
            "path" if value.starts_with('/') => ("path", json!(value)),
            "secure" => ("secure", json!(true)),
            "httponly" => ("httpOnly", json!(true)),
            "samesite" => match value.to_ascii_lowercase().as_str() {
                "strict" => ("sameSite", json!("Strict")),
                "lax" => ("sameSite", json!("Lax")),
                "none" => ("sameSite", json!("None")),
                _ => continue,
            },
            "max-age" => match value.parse::<i64>() {
                Ok(seconds) => {
                    has_max_age = true;
                    ("expires", json!(now.saturating_add(seconds)))
                }
                Err(_) => continue,
            },
            "expires" if !has_max_age => match end(value) {
                Some(time) => ("expires", json!(time.as_second())),
                None => continue,
            },
            _ => continue,
        };
        cookie.insert(key.to_owned(), value);
    }
    (!name.trim().is_empty()).then(|| cookie.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_translated() {
        let url = Url::parse("https://a.test/b?c").unwrap();
        let of = |header| parse(header, &url, 1000);
        assert_eq!(
            of("id=a=b; Path=/x; domain=.a.test; Secure; HttpOnly; SameSite=lax"),
            Some(json!({"name": "id", "value": "a=b", "url": "https://a.test/b?c", "path": "/x",
                "domain": ".a.test", "secure": true, "httpOnly": true, "sameSite": "Lax"}))
        );
        let expires = |header| of(header).unwrap()["expires"].clone();
        assert_eq!(expires("a=1; Max-Age=60"), 1060);
        assert_eq!(expires("a=1; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:09 GMT"), 1060);
        assert_eq!(expires("a=1; Expires=Thu, 01 Jan 1970 00:00:09 GMT"), 9);
        assert_eq!(expires("a=1; Expires=soon"), Value::Null);
        assert_eq!(expires("a=1; Expires=Thu, 01-Jan-1970 00:00:09 GMT"), 9);
        assert_eq!(of("=1"), None);
        assert_eq!(of("flag"), None);
    }

    #[test]
    fn cookie_does_not_end_between_visit_and_replay() {
        let then = "2026-11-26T09:53:41Z".parse().unwrap();
        let of = |header| lasting(header, then);
        let cookie = "a=1; Path=/; Expires=Thu, 26 Nov 2026 09:53:42 GMT; Secure";
        assert_eq!(of(cookie), "a=1; Path=/; Secure");
        assert_eq!(of("expires=1; expires=Fri, 27-Nov-2026 00:00:00 GMT"), "expires=1");
        for kept in ["a=; Expires=Thu, 01 Jan 1970 00:00:00 GMT", "a=1; Max-Age=5", "a", ""] {
            assert_eq!(of(kept), kept);
        }
    }
}
