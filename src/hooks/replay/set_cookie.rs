//! Cookies of answers that redirect. Chromium ignores those of a redirect that a client answers.

use serde_json::{Map, Value, json};
use url::Url;

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
            "expires" if !has_max_age => match jiff::fmt::rfc2822::parse(value) {
                Ok(time) => ("expires", json!(time.timestamp().as_second())),
                Err(_) => continue,
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
        assert_eq!(of("=1"), None);
        assert_eq!(of("flag"), None);
    }
}
