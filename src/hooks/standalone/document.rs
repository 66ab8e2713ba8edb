//! Writes a document again: without scripts, and with addresses that lead to the files of the copy.
//!
//! The document is parsed as browsers parse it, so that nothing which a browser would take for a script is
//! text here. What of its markup could act or lead away is left out.

use super::{CONTENT_POLICY, Leads, Led, Usage};
use crate::page::html::{PARSING_TIMEOUT, Resolver, parse_for};
use crate::page::srcset::candidates;
use crate::page::style::{self, StyleUse, quotable};
use archivist_core::text::escape_markup;
use encoding_rs::Encoding;
use scraper::Node;
use scraper::node::Element;
use std::borrow::Cow;
use url::Url;

/// Levels of documents in the attribute `srcdoc`.
const LEVELS_MAX: usize = 8;
/// Elements that are left out with all that is in them.
const DROPPED: [&str; 8] =
    ["script", "base", "applet", "portal", "noembed", "noframes", "handler", "listener"];
/// Attributes that are left out: conditions that files do not meet, and what acts by itself.
const DROPPED_ATTRIBUTES: [&str; 12] = [
    "attributionsrc",
    "integrity",
    "crossorigin",
    "nonce",
    "ping",
    "loading",
    "manifest",
    "csp",
    "codebase",
    "classid",
    "archive",
    "autofocus",
];
/// Relations of `<link>` whose file is shown, and those that only prepare for others.
const SHOWN: [&str; 4] = ["icon", "apple-touch-icon", "apple-touch-icon-precomposed", "mask-icon"];
const PREPARING: [&str; 8] = [
    "preload",
    "modulepreload",
    "prefetch",
    "preconnect",
    "dns-prefetch",
    "prerender",
    "manifest",
    "import",
];
/// Schemes of addresses that stay as they are: what opens another program.
const KEPT_SCHEMES: [&str; 9] =
    ["mailto", "tel", "sms", "geo", "xmpp", "irc", "ircs", "magnet", "ftp"];
/// Instead of an address in a style sheet that is none of the web.
const NO_ADDRESS: &str = "about:invalid";
/// Attributes with values of style sheets.
pub(super) const STYLES: [&str; 11] = [
    "style",
    "fill",
    "stroke",
    "filter",
    "mask",
    "clip-path",
    "marker",
    "marker-start",
    "marker-mid",
    "marker-end",
    "cursor",
];
/// Attributes with an address.
pub(super) const ADDRESSES: [&str; 9] =
    ["href", "src", "action", "formaction", "data", "poster", "background", "cite", "longdesc"];
/// Elements without an end tag.
const VOID: [&str; 15] = [
    "area", "br", "col", "embed", "frame", "hr", "img", "input", "keygen", "link", "meta", "param",
    "source", "track", "wbr",
];
const HTML: &str = "http://www.w3.org/1999/xhtml";

/// A document to convert.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub text: &'a str,
    pub address: &'a Url,
    /// The encoding of the queries in it.
    pub encoding: &'static Encoding,
    /// Whether its scripts have run, so that what it shows without them does not count.
    pub is_seen: bool,
}

/// Writes a document as HTML in UTF-8.
pub(super) fn converted(source: Source<'_>, leads: &mut dyn Leads) -> String {
    Conversion::of(source, leads, 0, None)
}

struct Conversion<'a> {
    source: Source<'a>,
    resolver: Resolver,
    leads: &'a mut dyn Leads,
    level: usize,
    out: String,
}

impl Conversion<'_> {
    fn of(source: Source<'_>, leads: &mut dyn Leads, level: usize, base: Option<&Url>) -> String {
        let page = parse_for(source.text, PARSING_TIMEOUT, source.is_seen);
        let address = base.unwrap_or(source.address);
        let resolver = Resolver::new(&page, address, source.encoding);
        let out = String::with_capacity(source.text.len());
        let mut conversion = Conversion { source, resolver, leads, level, out };
        let root = page.tree.root();
        let mut next = root.first_child();
        while let Some(node) = next {
            let parent = node.parent().and_then(|parent| parent.value().as_element());
            if conversion.begin(node.value(), parent)
                && let Some(child) = node.first_child()
            {
                next = Some(child);
                continue;
            }
            let mut ended = node;
            loop {
                conversion.end(ended.value());
                next = ended.next_sibling();
                match ended.parent().filter(|parent| next.is_none() && *parent != root) {
                    Some(parent) => ended = parent,
                    None => break,
                }
            }
        }
        conversion.out
    }

    /// Writes the begin of a node, and returns whether what is in it follows.
    fn begin(&mut self, node: &Node, parent: Option<&Element>) -> bool {
        match node {
            Node::Doctype(own) => {
                self.out += "<!DOCTYPE ";
                self.out += own.name();
                if !own.public_id().is_empty() || !own.system_id().is_empty() {
                    let ids = [own.public_id(), own.system_id()].map(|id| id.replace('"', ""));
                    self.out += &format!(" PUBLIC \"{}\" \"{}\"", ids[0], ids[1]);
                }
                self.out += ">\n";
                false
            }
            Node::Text(text) => {
                // In drawings, the content of these is text as any other.
                let is_raw = parent.is_some_and(|parent| &*parent.name.ns == HTML);
                let new = match parent.map(Element::name) {
                    Some("style") => Cow::Owned(self.sheet(text)),
                    _ => Cow::Borrowed(&**text),
                };
                match parent.map(Element::name) {
                    Some("style" | "xmp") if is_raw => self.out += &new,
                    _ => escape(&new, &mut self.out),
                }
                false
            }
            Node::Fragment | Node::Document => true,
            Node::Element(element) => self.element(element, parent),
            Node::Comment(_) | Node::ProcessingInstruction(_) => false,
        }
    }

    fn end(&mut self, node: &Node) {
        if let Node::Element(element) = node
            && self.is_written(element)
            && !is_void(element)
        {
            self.out += "</";
            self.out += element.name();
            self.out.push('>');
        }
    }

    /// Whether the tags of an element are written. Those of `noscript` are not, because a copy has no scripts.
    fn is_written(&self, element: &Element) -> bool {
        !self.is_dropped(element) && element.name() != "noscript"
    }

    fn is_dropped(&self, element: &Element) -> bool {
        let word = |name, words: &[&str]| has_word(element, name, words);
        match element.name() {
            "noscript" => self.source.is_seen,
            "template" => element.attr("shadowrootmode").is_none(),
            "meta" => element.attr("http-equiv").is_some() || element.attr("charset").is_some(),
            "link" => {
                word("rel", &PREPARING) && !word("rel", &SHOWN) && !word("rel", &["stylesheet"])
            }
            "animate" | "set" => {
                element.attr("attributeName").is_some_and(|name| name.ends_with("href"))
            }
            name => DROPPED.iter().any(|own| name.eq_ignore_ascii_case(own)),
        }
    }

    fn element(&mut self, element: &Element, parent: Option<&Element>) -> bool {
        if self.is_dropped(element) {
            return false;
        }
        if element.name() == "noscript" {
            return true;
        }
        let Some(attributes) = self.attributes(element, parent) else {
            // A source of a picture that is not in the recording: another one was shown.
            return false;
        };
        self.out.push('<');
        self.out += element.name();
        for (name, value) in attributes {
            self.out.push(' ');
            self.out += &name;
            self.out += "=\"";
            self.out += &escape_markup(&value);
            self.out.push('"');
        }
        self.out.push('>');
        match element.name() {
            "head" if self.level == 0 => {
                self.out += &format!(
                    "<meta charset=\"utf-8\"><meta http-equiv=\"Content-Security-Policy\" \
                     content=\"{CONTENT_POLICY}\">"
                );
            }
            // The parser takes a line feed after the tag away.
            "pre" | "textarea" | "listing" => self.out.push('\n'),
            _ => {}
        }
        !is_void(element) && element.name() != "iframe"
    }

    /// The attributes that are written; `None` if the element is left out for them.
    fn attributes(
        &mut self,
        element: &Element,
        parent: Option<&Element>,
    ) -> Option<Vec<(String, String)>> {
        // The first candidate of `srcset` that is in the recording.
        let set = ["srcset", "imagesrcset"].into_iter().find_map(|name| element.attr(name));
        let recorded = set.map(|set| self.recorded(set)).unwrap_or_default();
        let is_in_picture = parent.is_some_and(|parent| parent.name() == "picture");
        if element.name() == "source" && is_in_picture && recorded.is_empty() {
            return None;
        }
        let mut out = Vec::new();
        for (name, value) in &element.attrs {
            let local = name.local.to_ascii_lowercase();
            if local.starts_with("on")
                || DROPPED_ATTRIBUTES.contains(&local.as_str())
                || !is_name(&local)
            {
                continue;
            }
            let new = match local.as_str() {
                "srcset" | "imagesrcset" if recorded.is_empty() => None,
                "srcset" | "imagesrcset" => {
                    let all =
                        recorded.iter().map(|(link, descriptor)| format!("{link} {descriptor}"));
                    Some(all.collect::<Vec<_>>().join(", "))
                }
                // The picture that was shown is one of the set.
                "src" if !recorded.is_empty() => {
                    let own = self.recorded(value).into_iter().next();
                    Some(own.unwrap_or_else(|| recorded[0].clone()).0)
                }
                "srcdoc" => self.frame(value),
                // The document of the frame is in `srcdoc`.
                "src" if element.name() == "iframe" && element.attr("srcdoc").is_some() => None,
                name if STYLES.contains(&name) => Some(self.sheet(value)),
                name if ADDRESSES.contains(&name) => {
                    match self.target(value, usage(element, &local)) {
                        Target::AsItIs => Some(value.to_string()),
                        Target::Nowhere => None,
                        Target::To(link) => Some(link),
                    }
                }
                _ => Some(value.to_string()),
            };
            let prefix = name.prefix.as_ref().filter(|prefix| !prefix.is_empty());
            let full = prefix.map_or_else(
                || name.local.to_string(),
                |prefix| format!("{prefix}:{}", name.local),
            );
            out.extend(new.map(|new| (full, new)));
        }
        Some(out)
    }

    /// Candidates of `srcset` that are in the recording, as links with their descriptors.
    fn recorded(&mut self, value: &str) -> Vec<(String, String)> {
        let found = candidates(value.as_bytes()).filter_map(|(url, descriptor)| {
            let url = self.resolver.join(str::from_utf8(url).ok()?.trim())?;
            match self.leads.lead(&url, Usage::Other) {
                Led::File(link) => Some((link, String::from_utf8_lossy(descriptor).into_owned())),
                Led::Live | Led::Absent => None,
            }
        });
        found.collect()
    }

    fn target(&mut self, value: &str, usage: Usage) -> Target {
        let own = (self.level == 0).then_some(self.source.address);
        target(value, usage, own, &self.resolver, self.leads)
    }

    fn sheet(&mut self, css: &str) -> String {
        sheet(css, &self.resolver, self.leads)
    }

    /// A document in the attribute `srcdoc`, which is HTML in an attribute.
    fn frame(&mut self, text: &str) -> Option<String> {
        if self.level >= LEVELS_MAX {
            return None;
        }
        let source = Source { text, ..self.source };
        let base = self.resolver.base().clone();
        Some(Conversion::of(source, &mut *self.leads, self.level + 1, Some(&base)))
    }
}

/// Where an address leads in the copy.
pub(super) enum Target {
    /// It stays, because it is none of the web.
    AsItIs,
    /// It is left out: it would run a script, or read files of the reader.
    Nowhere,
    To(String),
}

/// Where an address of a document leads. `own` is the address of the document itself.
pub(super) fn target(
    value: &str,
    usage: Usage,
    own: Option<&Url>,
    resolver: &Resolver,
    leads: &mut dyn Leads,
) -> Target {
    let value = value.trim();
    if value.is_empty() || value.starts_with('#') && (usage != Usage::Link || own.is_none()) {
        return Target::AsItIs;
    }
    let Some(url) = resolver.join(value) else {
        let url = Url::parse(value).ok();
        let scheme = url.as_ref().map_or("", Url::scheme);
        let is_picture = usage == Usage::Other && scheme == "data";
        let is_kept = is_picture || KEPT_SCHEMES.contains(&scheme);
        return if is_kept { Target::AsItIs } else { Target::Nowhere };
    };
    let is_own = own.is_some_and(|own| without_fragment(&url) == without_fragment(own));
    if usage == Usage::Link && is_own {
        return Target::To(fragment(&url));
    }
    Target::To(led(&url, usage, leads))
}

fn led(url: &Url, usage: Usage, leads: &mut dyn Leads) -> String {
    match leads.lead(url, usage) {
        Led::File(link) => link + &fragment(url),
        Led::Live => url.as_str().to_owned(),
        Led::Absent => {
            leads.absent(url);
            url.as_str().to_owned()
        }
    }
}

fn fragment(url: &Url) -> String {
    url.fragment().map_or_else(String::new, |text| format!("#{text}"))
}

/// Replaces the addresses of a style sheet.
pub(super) fn sheet(css: &str, resolver: &Resolver, leads: &mut dyn Leads) -> String {
    let css = style::with_plain_names(css);
    let new = style::rewrite(css.as_bytes(), &mut |value, of| {
        let value = String::from_utf8_lossy(value);
        let value = value.trim();
        let is_data = value.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("data:"));
        if value.is_empty() || value.starts_with('#') || is_data {
            return None;
        }
        // From disk, `//host/x` is a file of another machine.
        let Some(url) = resolver.join(value) else {
            return Some(NO_ADDRESS.to_owned());
        };
        let usage = match of {
            StyleUse::Import => Usage::Style,
            StyleUse::Picture => Usage::Other,
        };
        Some(quotable(&led(&url, usage, leads)))
    });
    // Only ASCII was replaced by ASCII.
    String::from_utf8(new).unwrap_or_default()
}

/// What an address of an element is for.
fn usage(element: &Element, attribute: &str) -> Usage {
    match (element.name(), attribute) {
        ("link", _) if has_word(element, "rel", &["stylesheet"]) => Usage::Style,
        ("link", _) if has_word(element, "rel", &SHOWN) => Usage::Other,
        ("iframe" | "frame" | "embed" | "object", "src" | "data") => Usage::Frame,
        ("image" | "feImage" | "use", "href") => Usage::Other,
        (_, "src" | "poster" | "background") => Usage::Other,
        _ => Usage::Link,
    }
}

fn has_word(element: &Element, name: &str, words: &[&str]) -> bool {
    let value = element.attr(name).unwrap_or_default();
    value
        .split_ascii_whitespace()
        .any(|word| words.iter().any(|own| word.eq_ignore_ascii_case(own)))
}

fn is_void(element: &Element) -> bool {
    VOID.contains(&element.name()) && &*element.name.ns == HTML
}

/// Whether a name of an attribute is one when it is written again.
fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || "\"'<>/=\0".contains(c))
}

fn without_fragment(url: &Url) -> &str {
    url.as_str().split('#').next().unwrap_or_default()
}

fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '&' => *out += "&amp;",
            '<' => *out += "&lt;",
            '>' => *out += "&gt;",
            '\u{a0}' => *out += "&nbsp;",
            c => out.push(c),
        }
    }
}

/// A document without elements of its own that shows a text.
pub(super) fn listing(title: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{CONTENT_POLICY}\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>{}</title>\
         <style>body{{font:16px/1.5 sans-serif;max-width:60em;margin:2em auto;padding:0 1em}}\
         small{{color:#666;overflow-wrap:anywhere}}</style></head>\n<body><h1>{0}</h1>\n<ul>\n{body}\
         </ul></body></html>\n",
        escape_markup(title)
    )
}
