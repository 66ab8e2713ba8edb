//! Sitemaps (sitemaps.org): XML, compressed or not, indexes, or one URL per line.

use flate2::read::MultiGzDecoder;
use quick_xml::Reader;
use quick_xml::events::Event;
use std::io::Read;
use url::Url;

/// Content of one sitemap file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Sitemap {
    /// Further sitemap files.
    pub files: Vec<Url>,
    /// Pages.
    pub pages: Vec<Url>,
    /// Problem of the file; what came before it counts.
    pub problem: Option<String>,
}

/// Limits for one file.
#[derive(Clone, Copy)]
struct Bounds {
    unpacked: u64,
    urls: usize,
}

/// As many URLs as the format allows, but fewer bytes: four files are read at a time.
const BOUNDS: Bounds = Bounds {
    unpacked: 16 << 20,
    urls: 50_000,
};
/// Longest URL, in bytes.
const URL: usize = 2048;

/// Parses a file from `address`.
pub fn read(body: &[u8], address: &Url) -> Sitemap {
    read_some(body, address, BOUNDS)
}

fn read_some(body: &[u8], address: &Url, bounds: Bounds) -> Sitemap {
    if body.starts_with(&[0x1f, 0x8b]) {
        let mut text = Vec::new();
        let unpacked = MultiGzDecoder::new(body)
            .take(bounds.unpacked)
            .read_to_end(&mut text);
        let mut sitemap = parse(&text, address, bounds.urls);
        if let Err(error) = unpacked {
            sitemap.problem = Some(format!("failed to decompress it: {error}"));
        }
        return sitemap;
    }
    parse(body, address, bounds.urls)
}

fn parse(text: &[u8], address: &Url, most: usize) -> Sitemap {
    let decoded = String::from_utf8_lossy(text);
    let text = decoded.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']);
    if text.starts_with('<') {
        xml(text, address, most)
    } else {
        lines(text, address, most)
    }
}

/// Parses XML with any namespace prefix: `loc` in `url` is a page, in `sitemap` a file. Entities
/// defined in the file are never expanded.
fn xml(text: &str, address: &Url, most: usize) -> Sitemap {
    let mut reader = Reader::from_str(text);
    let config = reader.config_mut();
    config.check_end_names = false;
    config.allow_unmatched_ends = true;
    let mut sitemap = Sitemap::default();
    let (mut in_file, mut known) = (false, false);
    let mut loc: Option<String> = None;
    loop {
        match reader.read_event() {
            Ok(Event::Start(tag)) => match tag.local_name().as_ref() {
                "loc" => loc = Some(String::new()),
                "sitemap" => in_file = true,
                "url" => in_file = false,
                "urlset" | "sitemapindex" => known = true,
                _ => {}
            },
            Ok(Event::Text(piece)) => append(&mut loc, &piece),
            Ok(Event::CData(piece)) => append(&mut loc, &piece),
            Ok(Event::GeneralRef(name)) => {
                let own = name.resolve_char_ref().ok().flatten();
                let named = || quick_xml::escape::resolve_predefined_entity(&name);
                match own {
                    Some(c) => append(&mut loc, c.encode_utf8(&mut [0; 4])),
                    None => append(&mut loc, named().unwrap_or_default()),
                }
            }
            Ok(Event::End(tag)) if tag.local_name().as_ref() == "loc" => {
                let list = if in_file {
                    &mut sitemap.files
                } else {
                    &mut sitemap.pages
                };
                if list.len() < most {
                    keep(list, loc.take().unwrap_or_default(), address);
                }
            }
            Ok(Event::Eof) => break,
            Ok(_) => {}
            Err(error) => {
                let at = reader.error_position();
                sitemap.problem = Some(format!("it is broken at byte {at}: {error}"));
                break;
            }
        }
    }
    if !known && sitemap.problem.is_none() {
        sitemap.problem = Some("it is not a sitemap".to_owned());
    }
    sitemap
}

fn append(loc: &mut Option<String>, piece: &str) {
    if let Some(text) = loc.as_mut().filter(|text| text.len() <= URL) {
        text.push_str(piece);
    }
}

fn lines(text: &str, address: &Url, most: usize) -> Sitemap {
    let mut sitemap = Sitemap::default();
    for line in text.lines().take(most) {
        keep(&mut sitemap.pages, line.to_owned(), address);
    }
    if sitemap.pages.is_empty() {
        sitemap.problem = Some("it is not a sitemap".to_owned());
    }
    sitemap
}

/// Absolute URLs only, as the format requires.
fn keep(list: &mut Vec<Url>, text: String, address: &Url) {
    let text = text.trim();
    if text.is_empty() || text.len() > URL {
        return;
    }
    let url = Url::parse(text)
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https"));
    if let Some(mut url) = url.filter(|url| url.has_host() && url != address) {
        url.set_fragment(None);
        list.push(url);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;
    use std::io::Write;

    fn of(text: &[u8]) -> Sitemap {
        read(text, &Url::parse("https://a.test/sitemap.xml").unwrap())
    }

    fn texts(urls: &[Url]) -> Vec<&str> {
        urls.iter().map(Url::as_str).collect()
    }

    fn packed(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    const PAGES: &str = "\u{feff}<?xml version='1.0'?><urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9' xmlns:i='x'>
        <url><loc> https://a.test/?a=1&amp;b=&#x32; </loc><i:image><i:loc>https://a.test/i.png</i:loc></i:image></url>
        <url><loc><![CDATA[https://a.test/c]]></loc></url><url><loc>/relative</loc></url>
        <url><loc>file:///etc/passwd</loc></url><url><loc>https://a.test/&own;d</loc></url></urlset>";

    #[test]
    fn pages_of_a_sitemap() {
        let plain = of(PAGES.as_bytes());
        assert_eq!(
            texts(&plain.pages),
            [
                "https://a.test/?a=1&b=2",
                "https://a.test/i.png",
                "https://a.test/c",
                "https://a.test/d"
            ]
        );
        assert_eq!(plain.problem, None);
        assert_eq!(of(&packed(PAGES.as_bytes())), plain);
    }

    #[test]
    fn lists_of_sitemaps_and_lines() {
        let index = of(b"<sitemapindex><sitemap><loc>https://a.test/1.xml</loc></sitemap><sitemap><loc>https://a.test/2.xml.gz</loc></sitemap></sitemapindex>");
        assert_eq!(
            texts(&index.files),
            ["https://a.test/1.xml", "https://a.test/2.xml.gz"]
        );
        assert!(index.pages.is_empty());
        assert_eq!(
            texts(&of(b"https://a.test/1\r\nhttps://a.test/2\n\n").pages),
            ["https://a.test/1", "https://a.test/2"]
        );
    }

    #[test]
    fn other_files_are_reported_as_no_sitemap() {
        assert!(of(b"<html><body>Not found</body></html>").problem.is_some());
        assert!(of(b"").problem.is_some());
        assert!(of(b"Not found").problem.is_some());
        let cut = of(b"<urlset><url><loc>https://a.test/1</loc></url><url><loc");
        assert_eq!(texts(&cut.pages), ["https://a.test/1"]);
        assert!(cut.problem.is_some());
        let mut packed = packed(PAGES.as_bytes());
        packed.truncate(packed.len() / 2);
        assert!(of(&packed).problem.unwrap().contains("decompress"));
    }

    #[test]
    fn decompression_is_bounded() {
        let address = Url::parse("https://a.test/sitemap.xml").unwrap();
        let bounds = Bounds {
            unpacked: 4000,
            urls: 5,
        };
        let line = "https://a.test/x\n";
        let bomb = packed(line.repeat(100_000).as_bytes());
        assert_eq!(read_some(&bomb, &address, bounds).pages.len(), 5);
        let spaces = packed(&[&[b' '; 5000][..], line.as_bytes()].concat());
        assert!(read_some(&spaces, &address, bounds).pages.is_empty());
        let laughs = b"<!DOCTYPE x [<!ENTITY a 'aaaaaaaa'><!ENTITY b '&a;&a;&a;'>]><urlset><url><loc>https://a.test/&b;</loc></url></urlset>";
        assert_eq!(texts(&of(laughs).pages), ["https://a.test/"]);
        let entries = "<url><loc>https://a.test/x</loc></url>".repeat(20);
        let many = format!("<urlset>{entries}</urlset>");
        assert_eq!(read_some(many.as_bytes(), &address, bounds).pages.len(), 5);
    }

    proptest! {
        #[test]
        fn no_file_is_too_odd(body in proptest::collection::vec(any::<u8>(), 0..300)) {
            of(&body);
            of(&[&[0x1f, 0x8b][..], &body].concat());
        }

        #[test]
        fn nor_one_of_tags(words in proptest::collection::vec("(</?(urlset|url|loc|sitemap)>?|<!\\[CDATA\\[|\\]\\]>|&[a-z#0-9]{0,4};?|[a-z:/]{0,5})", 0..30)) {
            of(words.concat().as_bytes());
        }
    }
}
