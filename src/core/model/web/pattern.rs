//! Pages that a user names by URL: one page, those below a prefix, or those of a host.

use crate::model::web::surt::page_key;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// One page, all pages below a prefix, or all of a host and its subdomains.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct UrlPattern {
    text: String,
    /// Half-open ranges of page keys.
    ranges: Vec<(String, String)>,
}

impl UrlPattern {
    pub fn of_page(url: &str) -> UrlPattern {
        UrlPattern {
            text: url.to_owned(),
            ranges: vec![from_to(&page_key(&with_scheme(url)), '\0')],
        }
    }

    /// Half-open ranges that have the keys of all pages of the pattern, and no others.
    pub fn ranges(&self) -> &[(String, String)] {
        &self.ranges
    }
}

/// The range of keys from `start` to before `start` with `end` behind it.
fn from_to(start: &str, end: char) -> (String, String) {
    (start.to_owned(), format!("{start}{end}"))
}

/// The range of keys that begin with a text, whose end is the next text of the same length. Keys are
/// ASCII.
fn beginning_with(start: &str) -> (String, String) {
    from_to(start, '\u{7f}')
}

fn with_scheme(url: &str) -> String {
    if url.contains("://") { url.to_owned() } else { format!("http://{url}") }
}

/// The key of a prefix, and whether the prefix ends in a whole segment of a path: then the page of
/// that path belongs to it, too, whose key has no slash at its end.
fn of_prefix(prefix: &str) -> Vec<(String, String)> {
    // A last character keeps what would be removed from the end of a URL.
    const LAST: char = '~';
    let key = page_key(&format!("{prefix}{LAST}"));
    let Some(start) = key.strip_suffix(LAST) else {
        // The prefix ends in the name of a host.
        let root = page_key(prefix);
        return vec![beginning_with(root.trim_end_matches('/'))];
    };
    let mut ranges = vec![beginning_with(start)];
    let segment = start.strip_suffix('/').filter(|path| !path.ends_with(')'));
    if let Some(path) = segment.filter(|path| !path.contains('?')) {
        ranges.push(from_to(path, '\0'));
        ranges.push(beginning_with(&format!("{path}?")));
    }
    ranges
}

/// Keys of a host, its ports and its subdomains.
fn of_host(host: &str) -> Vec<(String, String)> {
    let root = page_key(&format!("http://{host}/"));
    let name = root.trim_end_matches('/').trim_end_matches(')');
    [")", ",", ":"].map(|next| beginning_with(&format!("{name}{next}"))).to_vec()
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadUrlPattern(String);

impl fmt::Display for BadUrlPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = &self.0;
        write!(
            f,
            "'{text}' names no pages: expected a URL, a prefix like https://example.com/docs/*, or a host like *.example.com"
        )
    }
}

impl std::error::Error for BadUrlPattern {}

impl FromStr for UrlPattern {
    type Err = BadUrlPattern;

    fn from_str(text: &str) -> Result<UrlPattern, BadUrlPattern> {
        let bad = || BadUrlPattern(text.chars().take(200).collect());
        let name = text.trim();
        let has_host = |url: &str| !with_scheme(url).ends_with("://");
        let is_host = |host: &str| !host.is_empty() && !host.contains(['/', '*', '?', ' ']);
        let ranges = if let Some(host) = name.strip_prefix("*.") {
            is_host(host).then(|| of_host(host))
        } else if let Some(prefix) = name.strip_suffix('*') {
            has_host(prefix).then(|| of_prefix(&with_scheme(prefix)))
        } else {
            has_host(name).then(|| UrlPattern::of_page(name).ranges)
        };
        Ok(UrlPattern { text: name.to_owned(), ranges: ranges.ok_or_else(bad)? })
    }
}

impl TryFrom<String> for UrlPattern {
    type Error = BadUrlPattern;

    fn try_from(text: String) -> Result<UrlPattern, BadUrlPattern> {
        text.parse()
    }
}

impl From<UrlPattern> for String {
    fn from(pattern: UrlPattern) -> String {
        pattern.text
    }
}

impl fmt::Display for UrlPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(pattern: &str, url: &str) -> bool {
        let pattern: UrlPattern = pattern.parse().unwrap();
        let key = page_key(url);
        let mut ranges = pattern.ranges().iter();
        ranges.any(|(from, to)| (from..to).contains(&&key))
    }

    #[test]
    fn url_names_one_page() {
        for pattern in ["https://www.example.com/a?utm_source=x", "example.com/a/"] {
            assert!(has(pattern, "http://example.com/a#b"), "{pattern}");
            assert!(!has(pattern, "http://example.com/ab"), "{pattern}");
            assert!(!has(pattern, "http://example.com/a?b"), "{pattern}");
        }
    }

    #[test]
    fn prefix_names_what_begins_with_it_and_the_page_of_its_path() {
        let docs = "https://example.com/docs/*";
        for url in ["/docs/", "/docs", "/docs/a", "/docs/a/b?c", "/docs/?page=2", "/docs/%C3%BC"] {
            assert!(has(docs, &format!("http://www.example.com{url}")), "{url}");
        }
        for url in ["/docs2", "/doc", "/", "/Docs/a"] {
            assert!(!has(docs, &format!("http://example.com{url}")), "{url}");
        }
        assert!(has("https://example.com/doc*", "https://example.com/docs/a"));
        assert!(has("https://example.com/?q=1*", "https://example.com/?q=12"));
        assert!(!has("https://example.com/?q=1*", "https://example.com/?q=2"));
        for all in ["https://example.com/*", "https://example.com*", "example.com*"] {
            assert!(has(all, "https://example.com/"), "{all}");
            assert!(has(all, "https://example.com/a"), "{all}");
            assert!(!has(all, "https://example.computer/"), "{all}");
            assert!(!has(all, "https://a.example.com/"), "{all}");
        }
    }

    #[test]
    fn host_names_its_pages_ports_and_subdomains() {
        for url in [
            "https://example.com/a",
            "http://example.com:8080/",
            "https://a.b.example.com/?x",
            "https://www.example.com/",
        ] {
            assert!(has("*.example.com", url), "{url}");
        }
        for url in ["https://example.community/", "https://badexample.com/", "https://com/"] {
            assert!(!has("*.example.com", url), "{url}");
        }
    }

    #[test]
    fn texts_that_name_no_pages_are_refused() {
        for text in ["", "*", "*.", "https://", "https://*", "*.a/b", "*.*"] {
            let error = text.parse::<UrlPattern>().unwrap_err();
            assert!(error.to_string().starts_with(&format!("'{text}' names no pages")));
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_a_pattern_or_refused_and_survives_the_bus(text in ".*") {
            if let Ok(pattern) = text.parse::<UrlPattern>() {
                let json = serde_json::to_string(&pattern).unwrap();
                proptest::prop_assert_eq!(serde_json::from_str::<UrlPattern>(&json).unwrap(), pattern);
            }
        }

        #[test]
        fn page_is_in_the_patterns_that_name_it(
            host in "[a-z]{1,5}(\\.[a-z]{1,5}){0,2}",
            path in "(/[A-Za-z0-9%.]{0,4}){0,4}",
            cut in 0usize..9,
        ) {
            let url = format!("https://{host}{path}");
            proptest::prop_assert!(has(&url, &url));
            let of_host = format!("*.{host}");
            proptest::prop_assert!(has(&of_host, &url));
            let kept = url.len() - cut.min(path.len());
            // A prefix may end within an escape, which is then no escape.
            if !path.contains(['%', '.']) {
                let prefix = format!("{}*", &url[..kept]);
                proptest::prop_assert!(has(&prefix, &url), "{}", prefix);
            }
        }
    }
}
