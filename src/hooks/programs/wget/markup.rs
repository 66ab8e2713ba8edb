//! Addresses in HTML, SVG and XML: finds and replaces them in a pass over the bytes, so that
//! everything else stays as it is, also markup that is wrong, in any encoding that contains ASCII.

use super::attributes::{escaped, resolved};
use super::departure::refresh_target;
use crate::page::srcset;
use crate::page::style::{self, StyleUse};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// A file that the page shows or executes.
    Requisite,
    /// A style sheet, or another document within the page, which has requisites itself.
    Document,
    Link,
    /// `<base href>`, on which all other addresses depend.
    Base,
    /// The whole value of `<meta http-equiv=refresh>`, which is never replaced.
    RefreshValue,
    /// A page to which this one goes by itself (`<meta http-equiv=refresh>`).
    Refresh,
}

/// Calls `replace` for each address of a document: the address with entities resolved, and its use.
/// An address for which it returns a text is replaced by that, which must contain neither quotes,
/// blanks nor parentheses.
pub fn rewrite(source: &[u8], replace: &mut dyn FnMut(&[u8], Use) -> Option<String>) -> Vec<u8> {
    let mut out = Vec::with_capacity(source.len());
    let mut at = 0;
    let mut is_without_scripts = false;
    while at < source.len() {
        let rest = &source[at..];
        let Some(skip) = rest.iter().position(|byte| *byte == b'<') else {
            out.extend(rest);
            break;
        };
        out.extend(&rest[..skip]);
        at += skip;
        let rest = &rest[skip..];
        if rest.starts_with(b"<!--") {
            let end = find(&rest[4..], b"-->").map_or(rest.len(), |end| end + 7);
            out.extend(&rest[..end]);
            at += end;
        } else if starts(rest, b"<?xml-stylesheet") {
            let end = find(rest, b"?>").unwrap_or(rest.len());
            instruction(&rest[..end], &mut out, replace);
            at += end;
        } else if rest.get(1).is_some_and(u8::is_ascii_alphabetic) {
            let mut tag = Tag::parse(rest);
            is_without_scripts |= tag.name == "noscript";
            tag.is_without_scripts = is_without_scripts;
            tag.rewrite(rest, &mut out, replace);
            at += tag.length;
            let raw: &[u8] = match tag.name.as_str() {
                "script" => b"</script",
                "style" => b"</style",
                "textarea" => b"</textarea",
                "title" => b"</title",
                "xmp" => b"</xmp",
                _ => continue,
            };
            let rest = &source[at..];
            if tag.is_closed && !matches!(tag.name.as_str(), "textarea" | "xmp") {
                continue;
            }
            let end = find_ignoring_case(rest, raw).unwrap_or(rest.len());
            if tag.name == "style" {
                out.extend(style_sheet(&rest[..end], replace));
            } else {
                out.extend(&rest[..end]);
            }
            at += end;
        } else {
            is_without_scripts &= !starts(rest, b"</noscript");
            out.push(b'<');
            at += 1;
        }
    }
    out
}

fn style_sheet(css: &[u8], replace: &mut dyn FnMut(&[u8], Use) -> Option<String>) -> Vec<u8> {
    style::rewrite(css, &mut |url, usage| {
        replace(
            url,
            match usage {
                StyleUse::Import => Use::Document,
                StyleUse::Picture => Use::Requisite,
            },
        )
    })
}

/// `<?xml-stylesheet href="…"?>`: a style sheet of XML, in CSS or XSLT.
fn instruction(
    text: &[u8],
    out: &mut Vec<u8>,
    replace: &mut dyn FnMut(&[u8], Use) -> Option<String>,
) {
    let found = find(text, b"href").and_then(|at| {
        let quote = at + text[at..].iter().position(|byte| matches!(byte, b'"' | b'\''))?;
        let end = quote + 1 + text[quote + 1..].iter().position(|byte| *byte == text[quote])?;
        Some((quote + 1, end))
    });
    match found.and_then(|(start, end)| {
        let new = replace(&resolved(&text[start..end]), Use::Document)?;
        Some((start, new, end))
    }) {
        Some((start, new, end)) => {
            out.extend(&text[..start]);
            out.extend(escaped(new.as_bytes()));
            out.extend(&text[end..]);
        }
        None => out.extend(text),
    }
}

/// A start tag: positions are relative to its `<`.
struct Tag {
    name: String,
    attributes: Vec<Attribute>,
    length: usize,
    /// Whether it ends with `/>`.
    is_closed: bool,
    /// Whether it is in a `noscript` element, which counts only for browsers without scripts.
    is_without_scripts: bool,
}

struct Attribute {
    name: String,
    name_start: usize,
    start: usize,
    end: usize,
    is_quoted: bool,
}

impl Tag {
    fn parse(text: &[u8]) -> Tag {
        let is_end = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>');
        let mut at = 1 + text[1..].iter().position(is_end).unwrap_or(text.len() - 1);
        let lower = |bytes: &[u8]| String::from_utf8_lossy(bytes).to_ascii_lowercase();
        let mut tag = Tag {
            name: lower(&text[1..at]),
            attributes: Vec::new(),
            length: text.len(),
            is_closed: false,
            is_without_scripts: false,
        };
        while at < text.len() {
            let byte = text[at];
            if byte == b'>' {
                tag.is_closed = text[at - 1] == b'/';
                tag.length = at + 1;
                break;
            }
            if byte.is_ascii_whitespace() || byte == b'/' {
                at += 1;
                continue;
            }
            let name_start = at;
            // An equals sign at the start belongs to the name.
            at += 1;
            while at < text.len() && text[at] != b'=' && !is_end(&text[at]) {
                at += 1;
            }
            let name = lower(&text[name_start..at]);
            let blank =
                |at: usize| at + text[at..].iter().take_while(|b| b.is_ascii_whitespace()).count();
            let equals = blank(at);
            let (mut start, mut end, mut is_quoted) = (at, at, false);
            if text.get(equals) == Some(&b'=') {
                start = blank(equals + 1);
                match text.get(start) {
                    Some(quote @ (b'"' | b'\'')) => {
                        start += 1;
                        is_quoted = true;
                        let length = text[start..].iter().position(|byte| byte == quote);
                        end = length.map_or(text.len(), |length| start + length);
                        at = (end + 1).min(text.len());
                    }
                    _ => {
                        let stop = |byte: &u8| byte.is_ascii_whitespace() || *byte == b'>';
                        let length = text[start..].iter().position(stop);
                        end = length.map_or(text.len(), |length| start + length);
                        at = end;
                    }
                }
            }
            tag.attributes.push(Attribute { name, name_start, start, end, is_quoted });
        }
        tag
    }

    fn value(&self, text: &[u8], name: &str) -> Option<Vec<u8>> {
        let found = self.attributes.iter().find(|own| own.name == name)?;
        Some(resolved(&text[found.start..found.end]))
    }

    fn has_word(&self, text: &[u8], name: &str, words: &[&str]) -> bool {
        let value = self.value(text, name).unwrap_or_default();
        let value = String::from_utf8_lossy(&value).to_ascii_lowercase();
        value.split_ascii_whitespace().any(|word| words.contains(&word))
    }

    fn rewrite(
        &self,
        text: &[u8],
        out: &mut Vec<u8>,
        replace: &mut dyn FnMut(&[u8], Use) -> Option<String>,
    ) {
        let mut at = 0;
        for attribute in &self.attributes {
            let value = resolved(&text[attribute.start..attribute.end]);
            let new = self.new_value(text, attribute, &value, replace);
            if self.is_dropped(text, &attribute.name) && replace(b"", Use::Base).is_some() {
                out.extend(&text[at..attribute.name_start]);
                out.extend(b"data-");
                at = attribute.name_start;
            }
            if let Some(new) = new {
                out.extend(&text[at..attribute.start]);
                if attribute.is_quoted {
                    out.extend(new);
                } else {
                    out.push(b'"');
                    out.extend(new);
                    out.push(b'"');
                }
                at = attribute.end;
            }
        }
        out.extend(&text[at..self.length]);
    }

    /// Whether an attribute is renamed in a copy: it would stop the copy from being shown. A copy on
    /// disk has no origin, its files have other checksums, and those who read it without scripts do
    /// not want to leave it.
    fn is_dropped(&self, text: &[u8], attribute: &str) -> bool {
        let pragma = |word| self.has_word(text, "http-equiv", &[word]);
        match (self.name.as_str(), attribute) {
            ("link" | "script" | "img", "integrity" | "crossorigin") => true,
            ("meta", "content") => pragma("content-security-policy") || self.leads_away(text),
            _ => false,
        }
    }

    /// Whether this is a `<meta http-equiv=refresh>` that browsers with scripts ignore.
    fn leads_away(&self, text: &[u8]) -> bool {
        self.is_without_scripts && self.has_word(text, "http-equiv", &["refresh"])
    }

    /// The new value of an attribute, if it has addresses that are replaced.
    fn new_value(
        &self,
        text: &[u8],
        attribute: &Attribute,
        value: &[u8],
        replace: &mut dyn FnMut(&[u8], Use) -> Option<String>,
    ) -> Option<Vec<u8>> {
        let name = attribute.name.as_str();
        if name == "style" {
            let mut is_new = false;
            let css = style_sheet(value, &mut |url, usage| {
                let new = replace(url, usage);
                is_new |= new.is_some();
                new
            });
            return is_new.then(|| escaped(&css));
        }
        if matches!(name, "srcset" | "imagesrcset") {
            return sources(value, replace);
        }
        if self.name == "meta" && name == "content" {
            let is_refresh = self.has_word(text, "http-equiv", &["refresh"]);
            let is_refresh = is_refresh && !self.leads_away(text);
            return is_refresh.then(|| refresh(value, replace)).flatten();
        }
        let usage = self.use_of(text, name)?;
        let trimmed = value.trim_ascii();
        let is_fragment = trimmed.starts_with(b"#") || trimmed.is_empty();
        if is_fragment && usage != Use::Base {
            return None;
        }
        replace(trimmed, usage).map(|new| escaped(new.as_bytes()))
    }

    fn use_of(&self, text: &[u8], attribute: &str) -> Option<Use> {
        Some(match (self.name.as_str(), attribute) {
            ("base", "href") => Use::Base,
            ("a" | "area", "href" | "xlink:href") | ("form", "action") => Use::Link,
            ("button" | "input", "formaction") => Use::Link,
            ("img" | "source" | "audio" | "video" | "track" | "input" | "script", "src")
            | ("video", "poster")
            | ("script" | "image" | "feimage" | "fill", "href" | "xlink:href")
            | ("body" | "table" | "td" | "th" | "tr" | "tbody" | "thead", "background")
            | ("html", "manifest") => Use::Requisite,
            ("iframe" | "frame" | "embed", "src")
            | ("object", "data")
            | ("use", "href" | "xlink:href")
            | ("xsl:import" | "xsl:include", "href") => Use::Document,
            ("link", "href") if self.has_word(text, "rel", &["stylesheet"]) => Use::Document,
            ("link", "href") if self.has_word(text, "rel", &SHOWN_LINKS) => Use::Requisite,
            ("link", "href") => Use::Link,
            _ => return None,
        })
    }
}

/// Relations of `<link>` whose files belong to the page.
const SHOWN_LINKS: [&str; 8] = [
    "icon",
    "apple-touch-icon",
    "apple-touch-icon-precomposed",
    "mask-icon",
    "preload",
    "modulepreload",
    "prefetch",
    "manifest",
];

/// `srcset`: addresses with descriptors.
fn sources(value: &[u8], replace: &mut dyn FnMut(&[u8], Use) -> Option<String>) -> Option<Vec<u8>> {
    let mut is_new = false;
    let all = srcset::candidates(value).map(|(url, descriptor)| {
        let new = replace(url, Use::Requisite);
        is_new |= new.is_some();
        let mut candidate = escaped(new.as_ref().map_or(url, String::as_bytes));
        if !descriptor.is_empty() {
            candidate.push(b' ');
            candidate.extend(escaped(descriptor));
        }
        candidate
    });
    let all: Vec<_> = all.collect();
    is_new.then(|| all.join(&b", "[..]))
}

/// `0; url=…` of a meta element.
fn refresh(value: &[u8], replace: &mut dyn FnMut(&[u8], Use) -> Option<String>) -> Option<Vec<u8>> {
    let _ = replace(value, Use::RefreshValue);
    let address = refresh_target(value)?;
    let new = replace(address, Use::Refresh)?;
    let start = address.as_ptr() as usize - value.as_ptr() as usize;
    let before = value[..start].trim_ascii_end();
    let before = before.strip_suffix(b"'").or(before.strip_suffix(b"\"")).unwrap_or(before);
    Some([escaped(before), escaped(new.as_bytes())].concat())
}

/// Whether the text starts with `start`, in any case.
pub fn starts(text: &[u8], start: &[u8]) -> bool {
    text.len() >= start.len() && text[..start.len()].eq_ignore_ascii_case(start)
}

/// Whether the text contains `what`, in any case.
pub fn contains(text: &[u8], what: &[u8]) -> bool {
    find_ignoring_case(text, what).is_some()
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|part| part == what)
}

fn find_ignoring_case(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|part| part.eq_ignore_ascii_case(what))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(html: &str) -> Vec<(String, Use)> {
        let mut all = Vec::new();
        let same = rewrite(html.as_bytes(), &mut |url, usage| {
            if !url.is_empty() && usage != Use::RefreshValue {
                all.push((String::from_utf8_lossy(url).into_owned(), usage));
            }
            None
        });
        assert_eq!(String::from_utf8_lossy(&same), html);
        all
    }

    #[test]
    fn addresses_of_pages_are_found() {
        let html = "<!doctype html><base href=/b/><!-- <img src=no> --><script>'<img src=no>'</script>\
            <link rel='icon stylesheet' href=\"s.css?a&amp;b\"><IMG\nSRC = i.png srcset='j.png 1x,k.png,, l,m.png 2x'>\
            <a href='x.html#y'>x</a><a href='#z'>z</a><style>@import 't.css';p{background:url(u.png)}</style>\
            <p style=\"background:url(&quot;v.png&quot;)\"><svg><use xlink:href='w.svg#a'/></svg>\
            <meta http-equiv=Refresh content=\"0; URL='next'\"><a title='<img src=no>' download href=d.zip>";
        let urls: Vec<_> = found(html).into_iter().map(|(url, _)| url).collect();
        assert_eq!(
            urls,
            [
                "/b/",
                "s.css?a&b",
                "i.png",
                "j.png",
                "k.png",
                "l,m.png",
                "x.html#y",
                "t.css",
                "u.png",
                "v.png",
                "w.svg#a",
                "next",
                "d.zip"
            ]
        );
    }

    #[test]
    fn addresses_of_xml_are_found() {
        let xml = "<?xml version='1.0'?><?xml-stylesheet type=\"text/xsl\" href=\"a.xsl\"?>\
            <xsl:stylesheet><xsl:import href='b.xsl'/></xsl:stylesheet>";
        let urls: Vec<_> = found(xml).into_iter().map(|(url, _)| url).collect();
        assert_eq!(urls, ["a.xsl", "b.xsl"]);
    }

    #[test]
    fn addresses_are_replaced_and_the_rest_is_unchanged() {
        let html = "<base href='x'><img src=a.png alt=\"<>\" srcset=\"b 2x\"><p style='background:url(c)'>\
            <link rel=stylesheet integrity=sha crossorigin href=d><meta http-equiv=refresh content='1;url=e'>";
        let new = rewrite(html.as_bytes(), &mut |url, usage| {
            Some(if usage == Use::Base {
                String::new()
            } else {
                format!("n/{}", String::from_utf8_lossy(url))
            })
        });
        assert_eq!(
            String::from_utf8(new).unwrap(),
            "<base href=''><img src=\"n/a.png\" alt=\"<>\" srcset=\"n/b 2x\"><p style='background:url(&quot;n/c&quot;)'>\
             <link rel=stylesheet data-integrity=sha data-crossorigin href=\"n/d\"><meta http-equiv=refresh content='1;url=n/e'>"
        );
    }

    proptest::proptest! {
        #[test]
        fn document_without_replacement_is_unchanged(
            html in "(<|>|<img |src=|srcset=|<style>|</style>|<script|style=|<!--|-->|<\\?xml-stylesheet|[\"'= a/&;,é]){0,40}"
        ) {
            found(&html);
        }
    }
}
