//! Filters for archived pages, both given and found: `URL_ALLOWLIST`, `URL_DENYLIST` and `CRAWL_SAME_HOST`.

use regex::{Regex, RegexBuilder};
use std::sync::OnceLock;
use url::Url;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{list}: '{entry}' is not a regular expression: {why}")]
pub struct FilterError {
    pub list: &'static str,
    /// The entry as written.
    pub entry: String,
    pub why: String,
}

/// Both lists, compiled, and whether found pages must be on the host of the page that names them.
#[derive(Debug, Clone, Default)]
pub struct UrlFilter {
    allow: Vec<FilterEntry>,
    deny: Vec<FilterEntry>,
    same_host: bool,
}

#[derive(Debug, Clone)]
enum FilterEntry {
    /// The host, its subdomains if `below` is set, and the port if given.
    Domain {
        host: Regex,
        port: Option<u16>,
    },
    Pattern(Regex),
}

/// Files that browsers load with a page: styles, scripts, fonts.
const PARTS_OF_PAGES: &str = r"
    \.(css|js|mjs|eot|otf|ttf|woff2?)($|[?#])
    gstatic.com
    fonts.googleapis.com";
static PARTS: OnceLock<Vec<FilterEntry>> = OnceLock::new();

/// Memory limit of one compiled regular expression, in bytes.
const MAX_REGEX: usize = 1 << 20;

impl UrlFilter {
    /// Compiles two lists with one entry per line, or separated by commas if there is only one line
    /// (a comma within brackets belongs to the entry). An entry of letters, digits and `.*:-` only
    /// is a domain with its subdomains, or after `*.` the subdomains alone; any other entry is a
    /// regular expression that is searched in the URL. Case is ignored.
    pub fn new(allow: &str, deny: &str) -> Result<UrlFilter, FilterError> {
        Ok(UrlFilter {
            allow: entries("URL_ALLOWLIST", allow)?,
            deny: entries("URL_DENYLIST", deny)?,
            same_host: false,
        })
    }

    /// Returns this filter, which also leaves out found pages of other hosts if `same_host` is set.
    pub fn on_host(self, same_host: bool) -> UrlFilter {
        UrlFilter { same_host, ..self }
    }

    /// Returns whether to archive a page that a hook found on the page `from`; on none before the first
    /// page. Page resources are left out, unless a user set the deny list.
    pub fn follows(&self, url: &str, from: Option<&str>) -> bool {
        if let Some(from) = from.filter(|_| self.same_host)
            && host(from) != host(url)
        {
            return false;
        }
        let parts =
            PARTS.get_or_init(|| entries("URL_DENYLIST", PARTS_OF_PAGES).unwrap_or_default());
        let is_part = || {
            let parsed = Url::parse(url.trim()).ok();
            parts.iter().any(|part| part.matches(url, parsed.as_ref()))
        };
        self.allows(url) && !(self.deny.is_empty() && is_part())
    }

    /// Returns whether both lists allow the URL: no match in the deny list, and a match in the
    /// allow list if there is one.
    pub fn allows(&self, url: &str) -> bool {
        if self.allow.is_empty() && self.deny.is_empty() {
            return true;
        }
        let parsed = Url::parse(url.trim()).ok();
        let hit = |entries: &[FilterEntry]| {
            entries.iter().any(|entry| entry.matches(url, parsed.as_ref()))
        };
        !hit(&self.deny) && (self.allow.is_empty() || hit(&self.allow))
    }
}

/// The host of a URL without `www.`, on any port and over http or https.
fn host(url: &str) -> Option<String> {
    let url = Url::parse(url.trim()).ok()?;
    let host = url.host_str()?.trim_end_matches('.');
    Some(host.strip_prefix("www.").unwrap_or(host).to_owned())
}

impl FilterEntry {
    fn matches(&self, url: &str, parsed: Option<&Url>) -> bool {
        match self {
            FilterEntry::Pattern(regex) => regex.is_match(url),
            FilterEntry::Domain { host, port } => parsed.is_some_and(|parsed| {
                let name = parsed.host_str().unwrap_or_default();
                let same = |port: u16| parsed.port_or_known_default() == Some(port);
                host.is_match(name) && port.is_none_or(same)
            }),
        }
    }
}

fn entries(list: &'static str, text: &str) -> Result<Vec<FilterEntry>, FilterError> {
    let parts: Vec<&str> =
        if text.trim().contains('\n') { text.lines().collect() } else { split_commas(text) };
    parts
        .into_iter()
        .map(str::trim)
        .filter(|piece| !piece.is_empty())
        .map(|piece| entry(list, piece))
        .collect()
}

fn entry(list: &'static str, piece: &str) -> Result<FilterEntry, FilterError> {
    let compile = |pattern: &str| {
        let built = RegexBuilder::new(pattern).case_insensitive(true).size_limit(MAX_REGEX).build();
        built.map_err(|error| FilterError {
            list,
            entry: piece.to_owned(),
            why: error.to_string().lines().last().unwrap_or_default().trim().to_owned(),
        })
    };
    let plain = |c: char| c.is_alphanumeric() || "_.*:-".contains(c);
    if !piece.chars().all(plain) {
        return Ok(FilterEntry::Pattern(compile(piece)?));
    }
    let (name, port) = match piece.rsplit_once(':') {
        Some((name, port)) => match port.parse() {
            Ok(port) => (name, Some(port)),
            Err(_) => return Ok(FilterEntry::Pattern(compile(&regex::escape(piece))?)),
        },
        None => (piece, None),
    };
    let (name, before) = match name.strip_prefix("*.") {
        Some(rest) => (rest, r"^.+\."),
        None => (name, r"^(.+\.)?"),
    };
    let pattern = regex::escape(&ascii_host(name)).replace(r"\*", ".*");
    Ok(FilterEntry::Domain { host: compile(&format!(r"{before}{pattern}\.?$"))?, port })
}

/// Returns the host as in a parsed URL: `xn--bcher-kva.de` for `bücher.de`.
fn ascii_host(name: &str) -> String {
    if name.is_ascii() {
        return name.to_owned();
    }
    let url = Url::parse(&format!("http://{name}/")).ok();
    let host = url.as_ref().and_then(Url::host_str);
    host.map_or_else(|| name.to_owned(), str::to_owned)
}

/// Splits at commas outside brackets that are not escaped.
pub fn split_commas(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let (mut start, mut depth, mut escaped) = (0, 0u32, false);
    for (at, letter) in text.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                pieces.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    pieces.push(&text[start..]);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn allows(allow: &str, deny: &str, url: &str) -> bool {
        UrlFilter::new(allow, deny).unwrap().allows(url)
    }

    #[test]
    fn page_resources_are_not_followed() {
        let filter = |deny: &str| UrlFilter::new("", deny).unwrap();
        let parts = [
            "http://a/x.CSS?v=1",
            "http://a/x.js",
            "http://a/f.woff2#i",
            "https://fonts.gstatic.com/s/x",
        ];
        let pages = [
            "http://a/",
            "http://a/x.json",
            "http://js.org/",
            "http://a/css",
            "http://a/x.js/page",
            "https://www.googleapis.com/x",
        ];
        for url in parts {
            assert!(!filter("").follows(url, None), "{url}");
            assert!(filter("").allows(url) && filter("b.test").follows(url, None), "{url}");
        }
        for url in pages {
            assert!(filter("").follows(url, None), "{url}");
        }
        assert!(!filter("a.test").follows("http://a.test/", None));
    }

    #[test]
    fn pages_of_other_hosts_are_left_out_if_asked() {
        let all = UrlFilter::default();
        let own = UrlFilter::new("", "b.test/denied").unwrap().on_host(true);
        let page = Some("https://www.b.test/feed.xml");
        for (url, follows) in [
            ("https://www.b.test/a", true),
            ("http://b.test:8080/a", true),
            ("https://B.test./a", true),
            ("https://docs.b.test/a", false),
            ("https://a.test/?b.test", false),
            ("https://b.test.a.test/", false),
            ("https://b.test/denied", false),
        ] {
            assert_eq!(own.follows(url, page), follows, "{url}");
            assert!(all.follows(url, page), "{url}");
        }
        assert!(own.follows("https://a.test/", None), "a page that a hook of the crawl names");
        assert!(own.allows("https://a.test/"), "a given page");
    }

    #[test]
    fn domains() {
        for (pattern, url, wanted) in [
            ("example.com", "https://example.com/a", true),
            ("example.com", "https://www.EXAMPLE.com./a", true),
            ("example.com", "https://badexample.com/", false),
            ("example.com", "https://evil.net/?u=example.com", false),
            ("example.com", "https://example.com.evil.net/", false),
            ("example.com", "https://user@example.com:8443/", true),
            ("*.example.com", "https://a.b.example.com/", true),
            ("*.example.com", "https://example.com/", false),
            ("ex*le.com", "https://example.com/", true),
            ("*", "https://example.com/", true),
            ("localhost:8000", "http://localhost:8000/", true),
            ("localhost:8000", "http://localhost:9000/", false),
            ("example.com:443", "https://example.com/", true),
            ("127.0.0.1", "http://127.0.0.1:8000/x", true),
            ("bücher.de", "https://www.bücher.de/", true),
            ("example.com", "not a url", false),
        ] {
            assert_eq!(allows(pattern, "", url), wanted, "{pattern} {url}");
        }
    }

    #[test]
    fn lists() {
        assert!(allows("", "", "https://anything/"));
        assert!(allows("a.com,b.com", "", "https://b.com/"));
        assert!(!allows("a.com\nb.com", "", "https://c.com/"));
        assert!(!allows("a.com", "a.com", "https://a.com/"), "deny comes first");
        assert!(!allows("", r"\.(css|js|woff2?)(\?.*)?$", "https://a.com/x.JS?v=1"));
        assert!(allows("", r"\.(css|js)$", "https://a.com/js"));
        let commas = r"^https?://x\.\d{1,3}/,b.com";
        assert!(allows(commas, "", "https://x.12/") && allows(commas, "", "http://b.com/"));
        assert!(!allows(commas, "", "https://x.1234/"));
        assert!(allows("^https?://a,b/\na.com", "", "https://a,b/"), "lines may hold commas");
    }

    #[test]
    fn errors_name_the_entry() {
        let error = UrlFilter::new("a.com", "b.com,(unclosed").unwrap_err();
        let text = error.to_string();
        assert!(
            text.starts_with("URL_DENYLIST: '(unclosed' is not a regular expression: "),
            "{text}"
        );
        assert!(!text.contains('\n'));
        assert!(UrlFilter::new("(?=ahead)", "").is_err());
        assert!(UrlFilter::new("(a{1000}){1000}", "").is_err());
    }

    proptest! {
        #[test]
        fn never_panics(allow in "\\PC{0,30}", deny in "[a-z*.:,(){}\\[\\]\\\\^$0-9]{0,30}", url in "\\PC{0,40}") {
            if let Ok(filter) = UrlFilter::new(&allow, &deny) {
                filter.allows(&url);
            }
        }

        #[test]
        fn a_domain_matches_itself(host in "[a-z][a-z0-9]{0,8}(\\.[a-z][a-z0-9]{0,8}){1,3}") {
            let url = format!("https://{host}/x");
            prop_assert!(allows(&host, "", &url));
            prop_assert!(!allows("", &host, &url));
        }
    }
}
