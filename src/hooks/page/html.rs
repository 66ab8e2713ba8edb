//! Reads the title, links and icons of a page's HTML. All of it is untrusted text.

use super::framed::KEPT_SRC;
use base64::Engine;
use encoding_rs::{Encoding, UTF_8};
use html5ever::driver::{self, ParseOpts};
use html5ever::tendril::{StrTendril, TendrilSink};
use scraper::{ElementRef, Html, HtmlTreeSink, Selector};
use std::borrow::Cow;
use std::time::{Duration, Instant};
use url::Url;

const XHTML: &str = "http://www.w3.org/1999/xhtml";
/// Longest URL in bytes that is taken from a page.
const URL_MAX_BYTES: usize = 8192;
/// Depth of `srcdoc` frames whose links are read.
const SRCDOC_DEPTH_MAX: usize = 3;
pub const PARSING_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for parsing all `srcdoc` frames of a page.
const SRCDOC_TIMEOUT: Duration = Duration::from_secs(2);
/// Bytes of a page that are parsed between two looks at the clock.
const PIECE_BYTES: usize = 4096;

/// Converts text to one line of at most `most` characters: runs of white space and control
/// characters become one blank.
pub fn one_line(text: &str, most: usize) -> String {
    let plain = text.replace(|c: char| c.is_control(), " ");
    let words: Vec<_> = plain.split_whitespace().collect();
    words.join(" ").chars().take(most).collect()
}

/// Parses as much of a page as the time limit allows: one that is nested a hundred thousand deep
/// takes hours, and unclosed tags fill the memory.
pub fn parse(text: &str, within: Duration) -> Html {
    parse_for(text, within, true)
}

/// Like [`parse`]. Without scripts, the content of `noscript` is elements.
pub fn parse_for(text: &str, within: Duration, has_scripts: bool) -> Html {
    let begun = Instant::now();
    let sink = HtmlTreeSink::new(Html::new_document());
    let mut options = ParseOpts::default();
    options.tree_builder.scripting_enabled = has_scripts;
    let mut parser = driver::parse_document(sink, options);
    let mut rest = text;
    while !rest.is_empty() && begun.elapsed() < within {
        let end = (PIECE_BYTES..rest.len()).find(|at| rest.is_char_boundary(*at));
        let (piece, more) = rest.split_at(end.unwrap_or(rest.len()));
        parser.process(StrTendril::from_slice(piece));
        rest = more;
    }
    parser.finish()
}

/// The root element of XML that is no XHTML and was parsed as HTML, or that chromium shows.
fn root_of_data(page: &Html) -> Option<ElementRef<'_>> {
    if let Some(source) = select(page, "#webkit-xml-viewer-source-xml").next() {
        return source.child_elements().next();
    }
    // The declaration is a comment for the parser, which also makes up `html`, `head` and `body`.
    let first = page.tree.root().first_child()?;
    let is_declared = first.value().as_comment()?.starts_with("?xml");
    let html = page.root_element();
    let [head, body] = ["head", "body"].map(|name| select(page, name).next());
    let is_made_up = html.value().attrs().next().is_none() && !head?.has_children();
    body?.child_elements().next().filter(|_| is_declared && is_made_up)
}

/// The page's title, else its `og:title`. `None` if both are empty. A title of XML that is no XHTML is
/// that of its root: elements of this name are also data.
pub fn title(page: &Html) -> Option<String> {
    let root = root_of_data(page).map(|root| root.id());
    let mut elements = matching(page, "title", Shadow::Outside);
    let element = elements.find(|element| {
        let is_of_page = root.is_none() || element.parent().map(|parent| parent.id()) == root;
        &*element.value().name.ns == XHTML && is_of_page
    });
    let own = element.map(|element| one_line(&element.text().collect::<String>(), 1024));
    let open_graph =
        || select(page, "meta[property='og:title']").find_map(|element| element.attr("content"));
    own.filter(|text| !text.is_empty())
        .or_else(|| open_graph().map(|text| one_line(text, 1024)).filter(|text| !text.is_empty()))
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Target: an absolute http or https URL without fragment.
    pub url: Url,
    /// Fragment of the target, if it has the form of a route.
    pub route: Option<String>,
    /// Text of the link on one line, often empty.
    pub text: String,
}

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

    /// What relative addresses are relative to.
    pub fn base(&self) -> &Url {
        &self.base
    }

    /// The resolver of a document without markup, such as a style sheet.
    pub fn of(base: Url, encoding: &'static Encoding) -> Resolver {
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
        let route = url.fragment().filter(|text| is_route(text)).map(str::to_owned);
        if target.starts_with('#') && route.is_none() {
            return None;
        }
        url.set_fragment(None);
        Some((url, route))
    }

    /// Encodes the query in the encoding of the page and the path in UTF-8, as browsers do (URL
    /// standard, "URL parser").
    pub fn join(&self, target: &str) -> Option<Url> {
        if target.is_empty() || target.len() > URL_MAX_BYTES {
            return None;
        }
        let in_encoding = query_encoder(self.encoding);
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
    let resolver = Resolver::of(base.clone(), UTF_8);
    let (mut url, route) = resolver.link(target)?;
    url.set_fragment(route.as_deref());
    Some(url)
}

/// Writes queries in the encoding of their page.
pub fn query_encoder(encoding: &'static Encoding) -> impl Fn(&str) -> Cow<'_, [u8]> {
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
    let mut frames = Frames { depth: SRCDOC_DEPTH_MAX, time: SRCDOC_TIMEOUT };
    collect_links(page, resolver, &mut frames, &mut links);
    links
}

/// What may be spent on the documents of frames.
struct Frames {
    depth: usize,
    time: Duration,
}

fn collect_links(page: &Html, resolver: &Resolver, frames: &mut Frames, links: &mut Vec<Link>) {
    let linking = "a, area[href], iframe[src], iframe[srcdoc], frame[src], link[rel][href], \
        meta[http-equiv][content]";
    for element in select(page, linking) {
        let target = match element.value().name() {
            "a" | "area" => element.attr("href").or_else(|| drawn_target(&element)),
            "link" => neighbour(&element),
            "meta" => refresh_target(&element),
            _ => {
                let may_read = frames.depth > 0 && !frames.time.is_zero();
                if let Some(inner) = element.attr("srcdoc").filter(|_| may_read) {
                    let begun = Instant::now();
                    let inner = parse(inner, frames.time);
                    frames.time = frames.time.saturating_sub(begun.elapsed());
                    // The base of the frame is that of its page.
                    let resolver = Resolver::new(&inner, &resolver.base, resolver.encoding);
                    frames.depth -= 1;
                    collect_links(&inner, &resolver, frames, links);
                    frames.depth += 1;
                    element.attr(KEPT_SRC)
                } else {
                    element.attr("src")
                }
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
    let is_neighbour =
        words.any(|word| ["next", "prev"].iter().any(|own| word.eq_ignore_ascii_case(own)));
    element.attr("href").filter(|_| is_neighbour)
}

/// The icons that the page names: those for browsers before those for home screens.
pub fn icons(page: &Html, resolver: &Resolver) -> Vec<Url> {
    let named = |wanted: &str| {
        let elements = select(page, "link[rel][href]").filter(|element| {
            let mut words = element.attr("rel").unwrap_or_default().split_ascii_whitespace();
            words.any(|word| word.eq_ignore_ascii_case(wanted))
        });
        elements.filter_map(|element| resolver.web_url(element.attr("href")?)).collect::<Vec<_>>()
    };
    [named("icon"), named("apple-touch-icon")].concat()
}

/// The first icon that the page holds itself, as `data:` URL.
pub fn own_icon(page: &Html) -> Option<Vec<u8>> {
    let mut icons = select(page, "link[rel][href]").filter(|element| {
        let rel = element.attr("rel").unwrap_or_default();
        rel.split_ascii_whitespace().any(|word| word.eq_ignore_ascii_case("icon"))
    });
    icons.find_map(|element| data_of(element.attr("href")?.trim()))
}

/// The bytes of a `data:` URL (RFC 2397).
fn data_of(url: &str) -> Option<Vec<u8>> {
    let (scheme, rest) = url.split_once(':')?;
    if !scheme.eq_ignore_ascii_case("data") {
        return None;
    }
    let (kind, data) = rest.split_once(',')?;
    let bytes: Vec<u8> = percent_encoding::percent_decode_str(data).collect();
    if !kind.trim_end().to_ascii_lowercase().ends_with(";base64") {
        return Some(bytes);
    }
    let is_digit = |byte: &u8| !byte.is_ascii_whitespace() && *byte != b'=';
    let digits: Vec<u8> = bytes.into_iter().filter(is_digit).collect();
    base64::engine::general_purpose::STANDARD_NO_PAD.decode(digits).ok()
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
mod tests;
