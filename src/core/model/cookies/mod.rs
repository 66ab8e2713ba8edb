//! Files of cookies as browsers, their extensions and programs export them. All are read into the
//! same [`Cookie`]s, and written in Netscape's format, which curl and wget read.

mod header;
mod json;
mod netscape;

use crate::model::Place;
use crate::text::{to_lines, trim_blanks};
use std::collections::BTreeSet;
use std::fmt::{self, Write as _};
use url::Url;

/// Prefix of cookies that scripts cannot read, in Netscape's format as curl writes it.
pub const HTTP_ONLY: &str = "#HttpOnly_";
/// The last second of the year 9999; cookies cannot expire later.
const LAST_SECOND: i64 = 253_402_300_799;
/// Largest number that counts seconds; a larger one counts milliseconds, as `Date.now()` does.
const SECONDS_MAX: f64 = 1e11;

#[derive(Clone, PartialEq, Eq)]
pub struct Cookie {
    /// Host without a leading dot.
    pub host: String,
    pub subdomains: bool,
    /// First part of the path of all pages that get it.
    pub path: String,
    /// Whether it is sent over HTTPS only.
    pub secure: bool,
    pub http_only: bool,
    /// Seconds since 1970; `None` for a cookie of the session.
    pub expires: Option<i64>,
    pub name: String,
    /// Its value, a secret.
    pub value: String,
}

/// Shows no value: it may be a login.
impl fmt::Debug for Cookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}{}", self.name, self.host, self.path)
    }
}

/// A part of a file that is not a cookie. Its text may be a secret, so only its position is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedCookie {
    pub place: Place,
    pub why: String,
}

impl fmt::Display for RefusedCookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} refused: {}", self.place, self.why)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CookieFile {
    /// In their order. Of two with the same name, host and path the later one counts.
    pub cookies: Vec<Cookie>,
    /// What could not be read.
    pub refused: Vec<RefusedCookie>,
}

impl CookieFile {
    /// Reads a file in Netscape's format, in the JSON of extensions (EditThisCookie, Cookie-Editor),
    /// Playwright, Puppeteer or Selenium, or with a `Cookie:` header. A header has no host, so it
    /// needs `host`, unless the file has the `Host:` header, too.
    ///
    /// # Errors
    /// Why the whole file cannot be read.
    pub fn read(bytes: &[u8], host: Option<&str>) -> Result<CookieFile, String> {
        if bytes.starts_with(b"SQLite format 3\0") {
            let what = "it is the database of a browser; import its profile with --profile, or \
                        export the cookies";
            return Err(what.to_owned());
        }
        let text = to_lines(bytes);
        let text = String::from_utf8_lossy(&text);
        let start = trim_blanks(&text);
        if start.starts_with('<') {
            return Err("it is an HTML or XML document, not a file of cookies".to_owned());
        }
        if start.starts_with(['[', '{']) {
            return json::read(start);
        }
        match header::read(&text, host) {
            Some(found) => found,
            None => Ok(netscape::read(&text)),
        }
    }

    /// Adds a cookie, or that it is refused.
    fn push(&mut self, place: Place, found: Result<Cookie, String>) {
        match found.and_then(checked) {
            Err(why) => self.refused.push(RefusedCookie { place, why }),
            Ok(cookie) => self.cookies.push(cookie),
        }
    }

    /// Leaves the last of all cookies with the same name, host and path.
    fn without_repetition(mut self) -> CookieFile {
        let mut known = BTreeSet::new();
        self.cookies.reverse();
        self.cookies.retain(|cookie| {
            let Cookie { host, path, name, .. } = cookie;
            known.insert((host.clone(), path.clone(), name.clone()))
        });
        self.cookies.reverse();
        self
    }

    /// Returns the number of cookies and hosts, and how many have expired at `now` (seconds since
    /// 1970): `3 cookies for 2 hosts, 1 has expired`.
    pub fn summary(&self, now: i64) -> String {
        let count = |count: usize, what: &str| match count {
            1 => format!("1 {what}"),
            count => format!("{count} {what}s"),
        };
        let hosts: BTreeSet<_> = self.cookies.iter().map(|cookie| &cookie.host).collect();
        let is_over = |cookie: &&Cookie| cookie.expires.is_some_and(|end| end <= now);
        let expired = match self.cookies.iter().filter(is_over).count() {
            1 => "1 has expired".to_owned(),
            0 => "none has expired".to_owned(),
            expired => format!("{expired} have expired"),
        };
        let cookies = count(self.cookies.len(), "cookie");
        format!("{cookies} for {}, {expired}", count(hosts.len(), "host"))
    }

    /// Returns the cookies in Netscape's format.
    pub fn to_netscape(&self) -> String {
        let mut text = "# Netscape HTTP Cookie File\n".to_owned();
        for cookie in &self.cookies {
            let flag = |is_set| if is_set { "TRUE" } else { "FALSE" };
            let _ = writeln!(
                text,
                "{}{}{}\t{}\t{}\t{}\t{}\t{}\t{}",
                if cookie.http_only { HTTP_ONLY } else { "" },
                if cookie.subdomains { "." } else { "" },
                cookie.host,
                flag(cookie.subdomains),
                cookie.path,
                flag(cookie.secure),
                cookie.expires.unwrap_or(0),
                cookie.name,
                cookie.value,
            );
        }
        text
    }
}

/// Refuses what no browser would send or what Netscape's format cannot hold.
fn checked(cookie: Cookie) -> Result<Cookie, String> {
    let host = host(&cookie.host)?;
    if cookie.name.is_empty() {
        return Err("the cookie has no name".to_owned());
    }
    let is_bad = |c: char| c.is_control() || c == char::REPLACEMENT_CHARACTER;
    if cookie.name.contains(|c: char| is_bad(c) || c == ';' || c == '=') {
        return Err("its name has a character that no name can have".to_owned());
    }
    if cookie.value.contains(|c: char| is_bad(c) && c != '\t') {
        return Err("its value contains a control character or is not UTF-8".to_owned());
    }
    if !cookie.path.starts_with('/') || cookie.path.contains(is_bad) {
        return Err("its path does not begin with '/'".to_owned());
    }
    Ok(Cookie { host, ..cookie })
}

/// Returns a host as URLs have it, without its leading dot.
fn host(text: &str) -> Result<String, String> {
    let bare = text.strip_prefix('.').unwrap_or(text);
    let refused = || format!("'{text}' is not the name of a host");
    if bare.is_empty() || bare.contains(|c: char| "/?#@\\".contains(c) || c.is_whitespace()) {
        return Err(refused());
    }
    let url = Url::parse(&format!("http://{bare}/")).map_err(|_| refused())?;
    match (url.host_str(), url.port()) {
        (Some(host), None) => Ok(host.to_owned()),
        _ => Err(refused()),
    }
}

/// Returns the end of a cookie from a number of seconds or milliseconds; `None` if it is not
/// positive, which means the session.
fn expiry(number: f64) -> Option<i64> {
    let seconds = if number > SECONDS_MAX { number / 1000.0 } else { number };
    // A fraction of a second has not passed at its beginning.
    (seconds > 0.0).then(|| (seconds.ceil() as i64).min(LAST_SECOND))
}

#[cfg(test)]
mod tests;
