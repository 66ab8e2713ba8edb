//! Facts about one page, read from untrusted HTML.

use archivist_hooks::page::charset::decode;
use archivist_hooks::page::html::{Resolver, links, one_line, parse, select, title};
use scraper::Html;
use std::collections::HashSet;
use std::time::Duration;
use url::Url;

/// Time limit for parsing a page.
const PARSE: Duration = Duration::from_secs(1);

/// Most links of one page.
const LINKS: usize = 2000;
/// Most insecure resources of one page that are named.
const INSECURE: usize = 10;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// Its title on one line.
    pub title: Option<String>,
    pub description: Option<String>,
    pub has_heading: bool,
    pub has_language: bool,
    /// Whether it asks search engines to leave it out.
    pub no_index: bool,
    pub canonical: Option<Url>,
    /// Link targets, each once.
    pub links: Vec<Url>,
    /// Resources that an https page loads over http, which browsers block or warn about.
    pub insecure: Vec<Url>,
    /// Number of pictures without alternative text.
    pub no_alt: usize,
}

/// Parses a page of this address; `tags` is its X-Robots-Tag header.
pub fn read(body: &[u8], content_type: &str, address: &Url, tags: &str) -> Page {
    let decoded = decode(body, content_type, Some(address));
    let page = parse(&decoded.text, PARSE);
    let meta = |name: &str| {
        let found = select(&page, "meta[name][content]").find(|it| {
            let own = it.attr("name").unwrap_or_default();
            own.trim().eq_ignore_ascii_case(name)
        });
        let text = found.and_then(|it| it.attr("content")).map(|text| one_line(text, 1024));
        text.filter(|text| !text.is_empty())
    };
    let says = |selector: &str| select(&page, selector).next().is_some();
    let robots = [meta("robots"), meta("archivist"), Some(tags.to_owned())];
    let resolver = Resolver::new(&page, address, decoded.encoding);
    let mut seen = HashSet::new();
    let mut links: Vec<Url> = links(&page, &resolver).into_iter().map(|link| link.url).collect();
    links.retain(|url| seen.insert(url.clone()));
    links.truncate(LINKS);
    Page {
        title: title(&page),
        description: meta("description"),
        has_heading: says("h1"),
        has_language: select(&page, "html[lang]")
            .any(|it| it.attr("lang").is_some_and(|lang| !lang.trim().is_empty())),
        no_index: robots.iter().flatten().any(|text| forbids_index(text)),
        canonical: select(&page, "link[rel][href]")
            .find(|it| it.attr("rel").is_some_and(|rel| rel.eq_ignore_ascii_case("canonical")))
            .and_then(|it| resolver.web_url(it.attr("href")?)),
        links,
        insecure: insecure(&page, &resolver, address),
        no_alt: select(&page, "img:not([alt])").count(),
    }
}

fn forbids_index(text: &str) -> bool {
    let mut words = text.split([',', ' ', ':']).map(str::trim);
    words.any(|word| word.eq_ignore_ascii_case("noindex") || word.eq_ignore_ascii_case("none"))
}

/// Returns resources that an https page loads over http.
fn insecure(page: &Html, resolver: &Resolver, address: &Url) -> Vec<Url> {
    if address.scheme() != "https" {
        return Vec::new();
    }
    let loaded = "script[src], iframe[src], img[src], audio[src], video[src], source[src], embed[src], link[rel][href]";
    let target = |it: scraper::ElementRef| {
        let attribute = if it.value().name() == "link" { "href" } else { "src" };
        let loads = it.attr("rel").is_none_or(|rel| {
            rel.split_ascii_whitespace().any(|word| {
                ["stylesheet", "icon", "preload", "modulepreload"]
                    .iter()
                    .any(|known| word.eq_ignore_ascii_case(known))
            })
        });
        it.attr(attribute).filter(|_| loads).and_then(|target| resolver.web_url(target))
    };
    select(page, loaded)
        .filter_map(target)
        .filter(|url| url.scheme() == "http")
        .take(INSECURE)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Instant;

    fn of(html: &str) -> Page {
        let address = Url::parse("https://a.test/dir/").unwrap();
        read(html.as_bytes(), "text/html", &address, "")
    }

    #[test]
    fn a_page_with_everything() {
        let page = of(
            "<html lang=en><title> A \n b</title><meta name=Description content=' d '><link rel=Canonical href=/c#x>\
            <h1>h</h1><a href=x>1</a><a href='x#y'>2</a><img src=a.png><img src=b.png alt=''>",
        );
        assert_eq!(page.title.as_deref(), Some("A b"));
        assert_eq!(page.description.as_deref(), Some("d"));
        assert_eq!(page.canonical.unwrap().as_str(), "https://a.test/c");
        assert_eq!(page.links.len(), 1);
        assert_eq!(page.no_alt, 1);
        assert!(page.has_heading && page.has_language && !page.no_index);
    }

    #[test]
    fn an_empty_page_has_nothing() {
        assert_eq!(of(""), Page::default());
        assert_eq!(
            of("<html lang=' '><title></title><meta name=description content=' '>"),
            Page::default()
        );
    }

    #[test]
    fn noindex_is_read_from_tags_and_header() {
        assert!(of("<meta name=robots content='NOFOLLOW, noindex'>").no_index);
        assert!(of("<meta name=robots content=none>").no_index);
        assert!(!of("<meta name=robots content='index,follow'>").no_index);
        let address = Url::parse("https://a.test/").unwrap();
        assert!(read(b"", "", &address, "otherbot: noindex").no_index);
    }

    #[test]
    fn http_on_a_page_of_https() {
        let page = of(
            "<script src=http://b.test/s.js></script><img src=//b.test/i.png><a href=http://b.test/>\
            <link rel='stylesheet' href=http://a.test/s.css><link rel=alternate href=http://a.test/feed>",
        );
        let found: Vec<_> = page.insecure.iter().map(Url::as_str).collect();
        assert_eq!(found, ["http://b.test/s.js", "http://a.test/s.css"]);
    }

    #[test]
    fn deep_and_broken_pages_are_read() {
        of(&"<a href=x><table><b>".repeat(500));
        let deep = "é<div>".repeat(300_000);
        let begun = Instant::now();
        parse(&deep, Duration::from_millis(100));
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
        assert_eq!(
            of(&(0..5000).map(|n| format!("<a href={n}>")).collect::<String>()).links.len(),
            LINKS
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn no_page_is_too_odd(body in proptest::collection::vec(any::<u8>(), 0..500), tags in ".{0,20}") {
            let address = Url::parse("https://a.test/").unwrap();
            read(&body, "text/html", &address, &tags);
        }

        #[test]
        fn nor_one_of_tags(words in proptest::collection::vec("(<(a href|base href|meta name|link rel|img src|html lang|title|/title|svg|table|h1)=?['\"]?|[a-z:/>' ]{0,6})", 0..40)) {
            of(&words.concat());
        }
    }
}
