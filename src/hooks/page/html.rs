//! Reads the title, links and icons of a page's HTML. All of it is untrusted text.

use encoding_rs::{Encoding, UTF_8};
use scraper::{ElementRef, Html, Selector};
use std::borrow::Cow;
use url::Url;

const XHTML: &str = "http://www.w3.org/1999/xhtml";
/// Longest URL in bytes that is taken from a page.
const URL_MAX_BYTES: usize = 8192;
/// Depth of `srcdoc` frames whose links are read.
const SRCDOC_DEPTH_MAX: usize = 3;

/// Converts text to one line of at most `most` characters: runs of white space and control
/// characters become one blank.
pub fn one_line(text: &str, most: usize) -> String {
    let plain = text.replace(|c: char| c.is_control(), " ");
    let words: Vec<_> = plain.split_whitespace().collect();
    words.join(" ").chars().take(most).collect()
}

/// The page's title, else its `og:title`. `None` if both are empty.
pub fn title(page: &Html) -> Option<String> {
    let mut elements = matching(page, "title", Shadow::Outside);
    let element = elements.find(|element| &*element.value().name.ns == XHTML);
    let own = element.map(|element| one_line(&element.text().collect::<String>(), 1024));
    let open_graph =
        || select(page, "meta[property='og:title']").find_map(|element| element.attr("content"));
    own.filter(|text| !text.is_empty()).or_else(|| {
        open_graph()
            .map(|text| one_line(text, 1024))
            .filter(|text| !text.is_empty())
    })
}

/// A link of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Target: an absolute http or https URL without fragment.
    pub url: Url,
    /// Fragment of the target, if it has the form of a route.
    pub route: Option<String>,
    /// Text of the link on one line, often empty.
    pub text: String,
}

/// Resolves the URLs of a page.
#[derive(Debug, Clone)]
pub struct Resolver {
    base: Url,
    encoding: &'static Encoding,
}

impl Resolver {
    /// The resolver of a page from this address and in this encoding. Its base is the URL of the
    /// first `base` element.
    pub fn new(page: &Html, address: &Url, encoding: &'static Encoding) -> Resolver {
        let mut bases = matching(page, "base[href]", Shadow::Outside);
        let href = bases.find_map(|element| element.attr("href"));
        let joined = href.and_then(|href| address.join(href.trim()).ok());
        let base = joined
            .filter(|url| matches!(url.scheme(), "http" | "https"))
            .unwrap_or_else(|| address.clone());
        Resolver { base, encoding }
    }

    /// Resolves the value of an attribute to an http or https URL without fragment. `None` for
    /// other schemes, fragments, and URLs above the length limit.
    pub fn web_url(&self, target: &str) -> Option<Url> {
        let target = target.trim();
        if target.starts_with('#') {
            return None;
        }
        let mut url = self.join(target)?;
        url.set_fragment(None);
        Some(url)
    }

    /// Like `web_url`, but returns routes of this page, too, with their fragment.
    fn link(&self, target: &str) -> Option<(Url, Option<String>)> {
        let target = target.trim();
        let mut url = self.join(target)?;
        let route = url
            .fragment()
            .filter(|text| is_route(text))
            .map(str::to_owned);
        if target.starts_with('#') && route.is_none() {
            return None;
        }
        url.set_fragment(None);
        Some((url, route))
    }

    /// Encodes the query in the encoding of the page and the path in UTF-8, as browsers do (URL
    /// standard, "URL parser").
    fn join(&self, target: &str) -> Option<Url> {
        if target.is_empty() || target.len() > URL_MAX_BYTES {
            return None;
        }
        let in_encoding = encoder(self.encoding);
        let options = Url::options().base_url(Some(&self.base));
        let options = options.encoding_override(Some(&in_encoding));
        let url = options.parse(target).ok()?;
        let fits = matches!(url.scheme(), "http" | "https") && url.as_str().len() <= URL_MAX_BYTES;
        fits.then_some(url)
    }
}

/// Resolves the text of a document whose URLs are always UTF-8, such as a feed. Routes keep their
/// fragment.
pub fn resolve(base: &Url, target: &str) -> Option<Url> {
    let resolver = Resolver {
        base: base.clone(),
        encoding: UTF_8,
    };
    let (mut url, route) = resolver.link(target)?;
    url.set_fragment(route.as_deref());
    Some(url)
}

fn encoder(encoding: &'static Encoding) -> impl Fn(&str) -> Cow<'_, [u8]> {
    move |query| encoded(query, encoding)
}

/// A query in the encoding of its page. Characters that the encoding lacks become percent-encoded
/// references to them.
fn encoded<'a>(query: &'a str, encoding: &'static Encoding) -> Cow<'a, [u8]> {
    let encoding = encoding.output_encoding();
    let (bytes, _, is_lossy) = encoding.encode(query);
    if !is_lossy {
        return bytes;
    }
    let each = query.chars().map(|c| {
        let mut buffer = [0; 4];
        let text = &*c.encode_utf8(&mut buffer);
        match encoding.encode(text) {
            (_, _, true) => format!("%26%23{}%3B", u32::from(c)).into_bytes(),
            (bytes, ..) => bytes.into_owned(),
        }
    });
    Cow::Owned(each.flatten().collect())
}

/// Whether a fragment is that of a page which a script shows: `#/about`, `#!about`. `#!` alone is a
/// link to nothing.
fn is_route(fragment: &str) -> bool {
    fragment.starts_with('/') || fragment.len() > 1 && fragment.starts_with('!')
}

/// All links of the page in their order, including duplicates: those in shadow roots and in the
/// documents of `srcdoc` frames, too.
pub fn links(page: &Html, resolver: &Resolver) -> Vec<Link> {
    let mut links = Vec::new();
    collect_links(page, resolver, SRCDOC_DEPTH_MAX, &mut links);
    links
}

fn collect_links(page: &Html, resolver: &Resolver, depth: usize, links: &mut Vec<Link>) {
    let linking = "a, area[href], iframe[src], iframe[srcdoc], frame[src], link[rel][href], \
        meta[http-equiv][content]";
    for element in select(page, linking) {
        let target = match element.value().name() {
            "a" | "area" => element.attr("href").or_else(|| drawn_target(&element)),
            "link" => neighbour(&element),
            "meta" => refresh_target(&element),
            _ => {
                if let Some(inner) = element.attr("srcdoc").filter(|_| depth > 0) {
                    let inner = Html::parse_document(inner);
                    // The base of the frame is that of its page.
                    let resolver = Resolver::new(&inner, &resolver.base, resolver.encoding);
                    collect_links(&inner, &resolver, depth - 1, links);
                    continue;
                }
                element.attr("src")
            }
        };
        if let Some((url, route)) = target.and_then(|target| resolver.link(target)) {
            links.push(Link {
                url,
                route,
                text: one_line(&element.text().collect::<String>(), 300),
            });
        }
    }
}

/// Target of a link in a drawing (SVG 1.1).
fn drawn_target<'a>(element: &ElementRef<'a>) -> Option<&'a str> {
    let mut attributes = element.value().attrs.iter();
    let found = attributes.find(|(name, _)| &*name.local == "href");
    found.map(|(_, value)| &**value)
}

/// Target of `<link rel=next>` and `<link rel=prev>`.
fn neighbour<'a>(element: &ElementRef<'a>) -> Option<&'a str> {
    let mut words = element.attr("rel")?.split_ascii_whitespace();
    let is_neighbour = words.any(|word| {
        ["next", "prev"]
            .iter()
            .any(|own| word.eq_ignore_ascii_case(own))
    });
    element.attr("href").filter(|_| is_neighbour)
}

/// The icons that the page names: those for browsers before those for home screens.
pub fn icons(page: &Html, resolver: &Resolver) -> Vec<Url> {
    let named = |wanted: &str| {
        let elements = select(page, "link[rel][href]").filter(|element| {
            let mut words = element
                .attr("rel")
                .unwrap_or_default()
                .split_ascii_whitespace();
            words.any(|word| word.eq_ignore_ascii_case(wanted))
        });
        elements
            .filter_map(|element| resolver.web_url(element.attr("href")?))
            .collect::<Vec<_>>()
    };
    [named("icon"), named("apple-touch-icon")].concat()
}

/// The target of `<meta http-equiv=refresh content="5; url=…">`.
fn refresh_target<'a>(element: &ElementRef<'a>) -> Option<&'a str> {
    if !element.attr("http-equiv")?.eq_ignore_ascii_case("refresh") {
        return None;
    }
    let (_, rest) = element.attr("content")?.split_once([';', ','])?;
    let rest = rest.trim_start();
    let (key, target) = rest.split_once('=')?;
    let target = target.trim().trim_matches(['"', '\'']);
    key.trim().eq_ignore_ascii_case("url").then_some(target)
}

/// Whether elements of shadow roots count.
#[derive(Clone, Copy, PartialEq)]
enum Shadow {
    Inside,
    Outside,
}

/// The elements that match a selector in the page's order, also in shadow roots. None if the
/// selector is invalid.
pub fn select<'a>(page: &'a Html, selector: &str) -> impl Iterator<Item = ElementRef<'a>> {
    matching(page, selector, Shadow::Inside)
}

/// The elements that match a selector. A page shows the content of a `template` element only if
/// that is a shadow root.
fn matching<'a>(
    page: &'a Html,
    selector: &str,
    shadow: Shadow,
) -> impl Iterator<Item = ElementRef<'a>> {
    let selector = Selector::parse(selector).ok();
    let mut next = Some(page.tree.root());
    let mut elements = std::iter::from_fn(move || {
        loop {
            let node = next?;
            let element = ElementRef::wrap(node);
            let is_left_out = element.is_some_and(|element| {
                let is_root = element.attr("shadowrootmode").is_some();
                element.value().name() == "template" && !(is_root && shadow == Shadow::Inside)
            });
            next = (!is_left_out).then(|| node.first_child()).flatten();
            let mut above = Some(node);
            while let (None, Some(one)) = (next, above) {
                next = one.next_sibling();
                above = one.parent();
            }
            if element.is_some() {
                return element;
            }
        }
    });
    std::iter::from_fn(move || {
        elements.find(|element| selector.as_ref().is_some_and(|s| s.matches(element)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str) -> Html {
        Html::parse_document(text)
    }

    fn urls(text: &str) -> Vec<String> {
        let address = Url::parse("http://a.test/dir/page?x=1#top").unwrap();
        let page = page(text);
        links(&page, &Resolver::new(&page, &address, UTF_8))
            .into_iter()
            .map(|link| link.url.to_string())
            .collect()
    }

    #[test]
    fn titles_are_text_on_one_line() {
        let read = |text: &str| title(&page(text));
        assert_eq!(
            read("<title> a\n\t b\u{7}c </title>").as_deref(),
            Some("a b c")
        );
        assert_eq!(
            read("<title>$(touch /tmp/pwned) \"<b></title>").as_deref(),
            Some("$(touch /tmp/pwned) \"<b>")
        );
        assert_eq!(
            read("<svg><title>drawing</title></svg><title>page</title>").as_deref(),
            Some("page")
        );
        assert_eq!(
            read("<title> </title><meta property=og:title content='og'>").as_deref(),
            Some("og")
        );
        assert_eq!(read("<p>none").as_deref(), None);
        assert_eq!(
            read(&format!("<title>{}</title>", "é".repeat(5000)))
                .unwrap()
                .chars()
                .count(),
            1024
        );
    }

    #[test]
    fn links_are_resolved_against_base_element_and_url() {
        assert_eq!(
            urls(
                "<a href=b>1</a><a href='/c#f'>2</a><a href='//o.test/'>3</a><area href='?q'><iframe src=i>"
            ),
            [
                "http://a.test/dir/b",
                "http://a.test/c",
                "http://o.test/",
                "http://a.test/dir/page?q",
                "http://a.test/dir/i"
            ]
        );
        assert_eq!(
            urls("<base href='/deep/'><a href=x>"),
            ["http://a.test/deep/x"]
        );
        assert_eq!(
            urls("<base href='file:///etc/'><a href=x>"),
            ["http://a.test/dir/x"]
        );
    }

    #[test]
    fn other_schemes_fragments_and_malformed_urls_are_not_links() {
        let text = "<a href='javascript:alert(1)'><a href='file:///etc/passwd'><a href='#x'><a href=''>\
            <a href='http://[bad/'><a href='data:text/html,x'><a href='mailto:a@b.test'><a href='  '>";
        assert!(urls(text).is_empty());
        assert!(urls(&format!("<a href='/{}'>", "x".repeat(10_000))).is_empty());
    }

    #[test]
    fn hostile_urls_stay_text() {
        assert_eq!(
            urls("<a href='/?q=$(reboot)&n=%n&h=${HOME}&t=`id`'><a href=\"/a\nb'\">"),
            [
                "http://a.test/?q=$(reboot)&n=%n&h=${HOME}&t=`id`",
                "http://a.test/ab'"
            ]
        );
    }

    #[test]
    fn meta_refresh_is_a_link() {
        assert_eq!(
            urls("<meta http-equiv=Refresh content='5; URL=\"/next\"'>"),
            ["http://a.test/next"]
        );
        assert!(
            urls("<meta http-equiv=refresh content=5><meta http-equiv=x content='0;url=/no'>")
                .is_empty()
        );
    }

    #[test]
    fn queries_are_in_the_encoding_of_the_page() {
        let address = Url::parse("http://a.test/").unwrap();
        let link = |target: &str, encoding| {
            let page = page(&format!("<a href='{target}'>x</a>"));
            let resolver = Resolver::new(&page, &address, encoding);
            links(&page, &resolver)[0].url.to_string()
        };
        assert_eq!(
            link("/日?q=日", encoding_rs::SHIFT_JIS),
            "http://a.test/%E6%97%A5?q=%93%FA"
        );
        assert_eq!(
            link("/é?é", encoding_rs::WINDOWS_1252),
            "http://a.test/%C3%A9?%E9"
        );
        assert_eq!(
            link("?a=国é&b=%20#é", encoding_rs::WINDOWS_1252),
            "http://a.test/?a=%26%2322269%3B%E9&b=%20"
        );
        for encoding in [UTF_8, encoding_rs::UTF_16LE, encoding_rs::REPLACEMENT] {
            assert_eq!(link("?é", encoding), "http://a.test/?%C3%A9");
        }
    }

    #[test]
    fn links_of_shadow_roots_count_and_those_of_other_templates_do_not() {
        assert_eq!(
            urls(
                "<base href=/d/><x-a><template shadowrootmode=open><title>no</title><base href=/no/><a href=1>s</a>\
                <x-b><template shadowrootmode=closed><a href=2></a></template></x-b></template></x-a>\
                <template><a href='{{no}}'></a><div><template shadowrootmode=open><a href=no></a></template></div></template><a href=3>"
            ),
            [
                "http://a.test/d/1",
                "http://a.test/d/2",
                "http://a.test/d/3"
            ]
        );
        let text = "<x-a><template shadowrootmode=open><title>no</title></template></x-a>";
        assert_eq!(title(&page(text)), None);
    }

    #[test]
    fn links_of_frames_drawings_and_neighbours_count() {
        assert_eq!(
            urls(
                "<link rel='nofollow Next' href=n><link rel=alternate href=no><a name=no>\
                <iframe src=no srcdoc='<a href=s></a><iframe srcdoc=\"<base href=/b/><a href=t></a>\"></iframe>'></iframe>\
                <svg><a xlink:href=x></a><a href=y></a></svg>"
            ),
            [
                "http://a.test/dir/n",
                "http://a.test/dir/s",
                "http://a.test/b/t",
                "http://a.test/dir/x",
                "http://a.test/dir/y"
            ]
        );
    }

    #[test]
    fn routes_are_named() {
        let address = Url::parse("http://a.test/app?x#/home").unwrap();
        let page = page(
            "<a href='#/a'><a href='#!b'><a href='#c'><a href='#!'><a href='/o#/d'><a href='/p#e'>",
        );
        let links = links(&page, &Resolver::new(&page, &address, UTF_8));
        let routes: Vec<_> = links
            .iter()
            .map(|link| (link.url.as_str(), link.route.as_deref()))
            .collect();
        assert_eq!(
            routes,
            [
                ("http://a.test/app?x", Some("/a")),
                ("http://a.test/app?x", Some("!b")),
                ("http://a.test/o", Some("/d")),
                ("http://a.test/p", None)
            ]
        );
    }

    #[test]
    fn icons_for_browsers_precede_those_for_home_screens() {
        let text = "<link rel=apple-touch-icon href=/t.png><link rel='SHORTCUT Icon' href=f.ico><link rel=mask href=m>";
        let (page, address) = (page(text), Url::parse("http://a.test/d/").unwrap());
        let found = icons(&page, &Resolver::new(&page, &address, UTF_8));
        assert_eq!(
            found.iter().map(Url::as_str).collect::<Vec<_>>(),
            ["http://a.test/d/f.ico", "http://a.test/t.png"]
        );
    }
}
