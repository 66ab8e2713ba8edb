//! Sitemaps (sitemaps.org): XML, compressed or not, indexes, or one URL per line.

use super::charset;
use super::coding;
use super::listing::{self, ListingEntry};
use super::xml::{self, Piece};
use url::Url;

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Sitemap {
    pub files: Vec<ListingEntry>,
    pub pages: Vec<ListingEntry>,
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
const BOUNDS: Bounds = Bounds { unpacked: 16 << 20, urls: 50_000 };
/// Longest URL, in bytes.
const URL: usize = 2048;

/// Parses a file from `address`.
pub fn read(body: &[u8], address: &Url) -> Sitemap {
    read_some(body, address, BOUNDS)
}

fn read_some(body: &[u8], address: &Url, bounds: Bounds) -> Sitemap {
    if let Some((text, problem)) = coding::unpacked(body, bounds.unpacked) {
        let mut sitemap = parse(&text, address, bounds.urls);
        if let Some(error) = problem {
            sitemap.problem = Some(format!("failed to decompress it: {error}"));
        }
        return sitemap;
    }
    parse(body, address, bounds.urls)
}

fn parse(text: &[u8], address: &Url, most: usize) -> Sitemap {
    let decoded = charset::decode(text, "text/xml", Some(address)).text;
    read_text(&decoded, address, most)
}

/// Parses the decoded text of a file.
pub(super) fn read_text(text: &str, address: &Url, most: usize) -> Sitemap {
    let text = text.trim_start();
    if text.starts_with('<') { xml(text, address, most) } else { lines(text, address, most) }
}

#[derive(Clone, Copy, PartialEq)]
enum Field {
    Loc,
    Date,
    Title,
}

/// Parses XML with any namespace prefix: `loc` of a `url` is a page, of a `sitemap` a file. Those of
/// pictures and videos are neither.
fn xml(text: &str, address: &Url, most: usize) -> Sitemap {
    let mut sitemap = Sitemap::default();
    let mut known = false;
    let mut entry = [const { String::new() }; 3];
    let mut field: Option<Field> = None;
    sitemap.problem = xml::walk(text, |piece, path| {
        let parent = path.len().checked_sub(2).map(|at| path[at].local.as_str());
        match piece {
            Piece::Start(name, _) => {
                field = match (parent, name.local.as_str()) {
                    (_, "urlset" | "sitemapindex") => {
                        known = true;
                        None
                    }
                    (_, "url" | "sitemap") => {
                        entry = Default::default();
                        None
                    }
                    (Some("url" | "sitemap"), "loc") => Some(Field::Loc),
                    (Some("url" | "sitemap"), "lastmod") => Some(Field::Date),
                    (Some("news"), "title") => Some(Field::Title),
                    _ => None,
                };
                if let Some(field) = field {
                    entry[field as usize].clear();
                }
            }
            Piece::Text(text) => {
                if let Some(field) = field
                    && entry[field as usize].len() <= URL
                {
                    entry[field as usize].push_str(&text);
                }
            }
            Piece::End => {
                field = None;
                let list = match path.last().map(|name| name.local.as_str()) {
                    Some("url") => &mut sitemap.pages,
                    Some("sitemap") => &mut sitemap.files,
                    _ => return true,
                };
                let [loc, date, title] = std::mem::take(&mut entry);
                if list.len() < most {
                    keep(list, &loc, &title, &date, address);
                }
            }
        }
        true
    });
    if !known && sitemap.problem.is_none() {
        sitemap.problem = Some("it is not a sitemap".to_owned());
    }
    sitemap
}

fn lines(text: &str, address: &Url, most: usize) -> Sitemap {
    let mut sitemap = Sitemap::default();
    for line in text.lines().take(most) {
        keep(&mut sitemap.pages, line, "", "", address);
    }
    if sitemap.pages.is_empty() {
        sitemap.problem = Some("it is not a sitemap".to_owned());
    }
    sitemap
}

/// Absolute URLs only, as the format requires.
fn keep(list: &mut Vec<ListingEntry>, text: &str, title: &str, date: &str, address: &Url) {
    let text = text.trim();
    if text.is_empty() || text.len() > URL {
        return;
    }
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    if let Some(mut url) = url.filter(|url| url.has_host() && url != address) {
        url.set_fragment(None);
        let (title, date) = (listing::title(title), listing::date(date));
        list.push(ListingEntry { url, title, date, tags: Vec::new() });
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

    fn texts(entries: &[ListingEntry]) -> Vec<&str> {
        entries.iter().map(|entry| entry.url.as_str()).collect()
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
            ["https://a.test/?a=1&b=2", "https://a.test/c", "https://a.test/d"]
        );
        assert_eq!(plain.problem, None);
        assert_eq!(of(&packed(PAGES.as_bytes())), plain);
    }

    #[test]
    fn pages_have_dates_and_titles() {
        let text = "<?xml version='1.0' encoding='windows-1251'?><urlset xmlns:n='x' xmlns:v='y'>
            <url><loc>https://a.test/1</loc><lastmod> 2024-02-03T04:05:06+01:00 </lastmod>
            <v:video><v:title>no</v:title></v:video>
            <n:news><n:title>Новости</n:title></n:news></url>
            <url><lastmod>2024-02-03</lastmod><loc>https://a.test/2</loc></url>
            <url><loc>https://a.test/3</loc><lastmod>yesterday</lastmod></url></urlset>";
        let bytes = encoding_rs::WINDOWS_1251.encode(text).0;
        let pages = of(&bytes).pages;
        let dates: Vec<_> = pages.iter().map(|page| page.date.as_deref()).collect();
        assert_eq!(dates, [Some("2024-02-03T03:05:06Z"), Some("2024-02-03"), None]);
        assert_eq!(pages[0].title.as_deref(), Some("Новости"));
        assert_eq!(pages[1].title, None);
    }

    #[test]
    fn lists_of_sitemaps_and_lines() {
        let index = of(b"<sitemapindex><sitemap><loc>https://a.test/1.xml</loc></sitemap><sitemap><loc>https://a.test/2.xml.gz</loc></sitemap></sitemapindex>");
        assert_eq!(texts(&index.files), ["https://a.test/1.xml", "https://a.test/2.xml.gz"]);
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
        let bounds = Bounds { unpacked: 4000, urls: 5 };
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
