//! Cookies that an exchange of requests keeps (RFC 6265): without them, a site that sets a cookie
//! and redirects to itself redirects for ever.
//!
//! Not by the crate cookie: it refuses cookies without a name, which browsers keep, reads only UTF-8, and
//! knows no hosts and paths to compare, so that it would replace the loop over the attributes alone.

use std::time::Duration;
use url::{Host, Url};

/// Most cookies, and longest cookie and longest `Cookie:` header in bytes.
const COOKIES: usize = 200;
const COOKIE: usize = 4096;
const HEADER: usize = 16 << 10;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Cookie {
    name: Vec<u8>,
    value: Vec<u8>,
    host: String,
    /// Whether hosts below `host` get it, too.
    has_domain: bool,
    path: String,
    is_secure: bool,
}

#[derive(Debug, Default)]
pub struct Jar {
    cookies: Vec<Cookie>,
}

impl Jar {
    /// Takes in the value of a `Set-Cookie:` header. A cookie that browsers refuse is left out.
    pub fn set(&mut self, url: &Url, value: &[u8]) {
        let Some((cookie, is_over)) = parse(url, value) else {
            return;
        };
        self.cookies.retain(|old| {
            (&old.name, &old.host, &old.path) != (&cookie.name, &cookie.host, &cookie.path)
        });
        if !is_over && self.cookies.len() < COOKIES {
            self.cookies.push(cookie);
        }
    }

    /// Returns the value of the `Cookie:` header for a URL, if there is one.
    pub fn header(&self, url: &Url) -> Option<Vec<u8>> {
        let mut fitting: Vec<_> = self.cookies.iter().filter(|it| it.is_for(url)).collect();
        fitting.sort_by_key(|cookie| std::cmp::Reverse(cookie.path.len()));
        let mut header = Vec::new();
        for cookie in fitting {
            if header.len() + cookie.name.len() + cookie.value.len() > HEADER {
                break;
            }
            if !header.is_empty() {
                header.extend_from_slice(b"; ");
            }
            if !cookie.name.is_empty() {
                header.extend_from_slice(&cookie.name);
                header.push(b'=');
            }
            header.extend_from_slice(&cookie.value);
        }
        (!header.is_empty()).then_some(header)
    }
}

impl Cookie {
    fn is_for(&self, url: &Url) -> bool {
        let host = url.host_str().unwrap_or_default();
        let is_host = host == self.host || (self.has_domain && is_below(url, &self.host));
        let is_path = url.path().strip_prefix(&self.path).is_some_and(|rest| {
            rest.is_empty() || rest.starts_with('/') || self.path.ends_with('/')
        });
        is_host && is_path && (!self.is_secure || url.scheme() == "https")
    }
}

/// Returns whether the host of a URL is a name below `parent`.
fn is_below(url: &Url, parent: &str) -> bool {
    let Some(Host::Domain(host)) = url.host() else {
        return false;
    };
    host.strip_suffix(parent).is_some_and(|rest| rest.ends_with('.'))
}

/// Returns the cookie, and whether it has expired, which removes one of its name.
fn parse(url: &Url, value: &[u8]) -> Option<(Cookie, bool)> {
    let is_odd = |byte: &u8| byte.is_ascii_control() && *byte != b'\t';
    if value.len() > COOKIE || value.iter().any(is_odd) {
        return None;
    }
    let mut parts = value.split(|byte| *byte == b';');
    let (name, own) = pair(parts.next()?);
    let host = url.host_str()?;
    let directory = url.path().rsplit_once('/').map_or("", |(before, _)| before);
    let mut cookie = Cookie {
        name: name.unwrap_or_default().to_vec(),
        value: own.to_vec(),
        host: host.to_owned(),
        has_domain: false,
        path: if directory.is_empty() { "/" } else { directory }.to_owned(),
        is_secure: false,
    };
    let (mut age, mut expires) = (None, None);
    for part in parts {
        let (key, attribute) = match pair(part) {
            (Some(key), value) => (key, value),
            (None, key) => (key, &b""[..]),
        };
        let text = String::from_utf8_lossy(attribute);
        match key.to_ascii_lowercase().as_slice() {
            b"domain" => {
                let domain = text.trim_start_matches('.').to_ascii_lowercase();
                if domain == host || domain.is_empty() {
                    cookie.has_domain = !domain.is_empty();
                } else if domain.contains('.') && is_below(url, &domain) {
                    (cookie.host, cookie.has_domain) = (domain, true);
                } else {
                    return None;
                }
            }
            b"path" if text.starts_with('/') => cookie.path = text.into_owned(),
            b"secure" => cookie.is_secure = true,
            b"max-age" => age = text.parse::<i64>().ok(),
            b"expires" => expires = year(&text),
            _ => {}
        }
    }
    let is_over = match (age, expires) {
        (Some(age), _) => age <= 0,
        (None, Some(year)) => year < this_year(),
        (None, None) => false,
    };
    (!(cookie.name.is_empty() && cookie.value.is_empty())).then_some((cookie, is_over))
}

/// Splits `name=value`; a text without '=' is a value.
fn pair(text: &[u8]) -> (Option<&[u8]>, &[u8]) {
    match text.iter().position(|byte| *byte == b'=') {
        Some(at) => (Some(text[..at].trim_ascii()), text[at + 1..].trim_ascii()),
        None => (None, text.trim_ascii()),
    }
}

/// Returns the year of a date. Sites remove a cookie with a date many years ago, and a check is too
/// short for others to expire.
fn year(date: &str) -> Option<u64> {
    let words = date.split(|c: char| !c.is_ascii_digit());
    let four = words.filter(|word| word.len() == 4);
    four.filter_map(|word| word.parse().ok()).next()
}

fn this_year() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    1970 + since.unwrap_or(Duration::ZERO).as_secs() / 31_556_952
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn after(set: &[(&str, &str)], url: &str) -> String {
        let mut jar = Jar::default();
        for (at, value) in set {
            jar.set(&Url::parse(at).unwrap(), value.as_bytes());
        }
        let header = jar.header(&Url::parse(url).unwrap()).unwrap_or_default();
        String::from_utf8(header).unwrap()
    }

    #[test]
    fn cookies_return_to_their_site() {
        let at = "https://www.a.test/x/y";
        for (value, url, want) in [
            ("a=1", "https://www.a.test/x/z", "a=1"),
            ("a=1", "https://www.a.test/", ""),
            ("a=1; Path=/", "http://www.a.test/", "a=1"),
            ("a=1; Path=/x", "http://www.a.test/xy", ""),
            ("a=1; path=/; secure", "http://www.a.test/", ""),
            ("a=1; path=/; HttpOnly; SECURE", "https://www.a.test/", "a=1"),
            ("a=1; path=/; Domain=.a.test", "https://b.a.test/", "a=1"),
            ("a=1; path=/", "https://b.www.a.test/", ""),
            ("a=1; path=/; domain=test", "https://b.test/", ""),
            ("a=1; path=/; domain=b.test", "https://b.test/", ""),
            ("a = b=c ; path=/", "https://www.a.test/", "a=b=c"),
            ("a=1; path=/; max-age=0", "https://www.a.test/", ""),
            ("a=1; path=/; expires=Thu, 01 Jan 1970 00:00:00 GMT", "https://www.a.test/", ""),
            ("a=1; path=/; expires=Thu, 01-Jan-2099 00:00:00 GMT", "https://www.a.test/", "a=1"),
            ("lone; path=/", "https://www.a.test/", "lone"),
            ("a=\u{1}; path=/", "https://www.a.test/", ""),
            ("", "https://www.a.test/", ""),
        ] {
            assert_eq!(after(&[(at, value)], url), want, "{value} {url}");
        }
        let two = [(at, "a=1; path=/"), (at, "b=2"), (at, "a=3; path=/")];
        assert_eq!(after(&two, "https://www.a.test/x/"), "b=2; a=3");
        let ip = "http://127.0.0.1/";
        assert_eq!(after(&[(ip, "a=1; domain=0.0.1")], ip), "");
        assert_eq!(after(&[(ip, "a=1; domain=127.0.0.1")], ip), "a=1");
    }

    proptest! {
        #[test]
        fn no_cookie_is_too_odd(value in proptest::collection::vec(any::<u8>(), 0..100)) {
            let url = Url::parse("http://a.test/").unwrap();
            let mut jar = Jar::default();
            jar.set(&url, &value);
            let header = jar.header(&url).unwrap_or_default();
            prop_assert!(!header.contains(&b'\n') && !header.contains(&b'\r'));
        }
    }
}
