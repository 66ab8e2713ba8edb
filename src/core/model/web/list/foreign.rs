//! Files that are not lists of addresses, by their names.

use crate::text::trim_blanks;

/// A file in a format that is not a list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is {name}, not a list of addresses; {remedy}")]
pub struct ForeignFormat {
    /// The format, with its article.
    name: &'static str,
    /// What to do instead.
    remedy: &'static str,
}

/// A document that begins as JSON and cannot be read.
pub const BROKEN_JSON: ForeignFormat =
    ForeignFormat { name: "a broken JSON document", remedy: "export it again" };

/// A record of a browser's requests, which names the parts of pages.
pub const HAR: ForeignFormat = ForeignFormat { name: "a HAR file", remedy: AS_TEXT };

/// Bytes from which the format of a text is found.
const START_BYTES: usize = 8 << 10;
const AS_BOOKMARKS: &str = "export the bookmarks as HTML";
const AS_TEXT: &str = "save the addresses as text, one per line";
const BY_ADDRESS: &str = "add its address with --depth=1";

/// First bytes of binary files.
const SIGNATURES: [(&[u8], &str, &str); 16] = [
    (b"SQLite format 3\0", "an SQLite database", AS_BOOKMARKS),
    (b"mozLz40\0", "a backup of Firefox bookmarks", AS_BOOKMARKS),
    (b"bplist0", "a binary property list", AS_BOOKMARKS),
    (b"WARC/", "a WARC file", AS_TEXT),
    (b"PK\x03\x04", "a ZIP archive or office document", AS_TEXT),
    (b"\xd0\xcf\x11\xe0", "an office document", AS_TEXT),
    (b"{\\rtf", "an RTF document", AS_TEXT),
    (b"%PDF-", "a PDF document", AS_TEXT),
    (b"\x1f\x8b", "a gzip file", "unpack it first"),
    (b"BZh", "a bzip2 file", "unpack it first"),
    (b"\xfd7zXZ\0", "an xz file", "unpack it first"),
    (b"\x28\xb5\x2f\xfd", "a zstd file", "unpack it first"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", "unpack it first"),
    (b"\x89PNG", "a picture", AS_TEXT),
    (b"\xff\xd8\xff", "a picture", AS_TEXT),
    (b"GIF8", "a picture", AS_TEXT),
];

/// Markup by its first element, in lower case. The first that is found counts.
const MARKUP: [(&str, &str, &str); 9] = [
    ("<rss", "an RSS feed", BY_ADDRESS),
    ("<rdf:rdf", "an RSS feed", BY_ADDRESS),
    ("<feed", "an Atom feed", BY_ADDRESS),
    ("<urlset", "a sitemap", BY_ADDRESS),
    ("<sitemapindex", "an index of sitemaps", BY_ADDRESS),
    ("<plist", "a property list", AS_BOOKMARKS),
    ("<xbel", "an XBEL file", AS_BOOKMARKS),
    ("<!doctype html", "an HTML page", BY_ADDRESS),
    ("<html", "an HTML page", BY_ADDRESS),
];

/// First words of other texts, in lower case.
const TEXTS: [(&str, &str); 4] = [
    ("mime-version:", "an MHTML page"),
    ("from: <saved by", "an MHTML page"),
    ("[internetshortcut]", "an Internet shortcut"),
    ("[desktop entry]", "a desktop entry"),
];

/// Returns the beginning of a text in lower case without blanks around it.
pub fn start(text: &[u8]) -> String {
    let start = &text[..text.len().min(START_BYTES)];
    let start = String::from_utf8_lossy(start).to_ascii_lowercase();
    trim_blanks(&start).to_owned()
}

pub fn check_bytes(bytes: &[u8]) -> Result<(), ForeignFormat> {
    let known = SIGNATURES.iter().find(|(signature, ..)| bytes.starts_with(signature));
    match known {
        Some((_, name, remedy)) => Err(ForeignFormat { name, remedy }),
        None => Ok(()),
    }
}

/// Refuses markup that begins like this. `<http://a.test/>` is an address in angle brackets.
pub fn check_markup(start: &str) -> Result<(), ForeignFormat> {
    let known = MARKUP.iter().find(|(element, ..)| start.contains(element));
    if let Some((_, name, remedy)) = known {
        return Err(ForeignFormat { name, remedy });
    }
    let inside = start.get(1..).unwrap_or_default();
    let name = inside.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || "!?-/".contains(c));
    let is_element = name.len() < inside.len() && !name.starts_with([':', '.']);
    if !is_element {
        return Ok(());
    }
    Err(ForeignFormat {
        name: if start.starts_with("<?xml") { "an XML document" } else { "an HTML document" },
        remedy: AS_TEXT,
    })
}

/// Refuses other texts that begin like this.
pub fn check_text(start: &str) -> Result<(), ForeignFormat> {
    let known = TEXTS.iter().find(|(begin, _)| start.starts_with(begin));
    match known {
        Some((_, name)) => Err(ForeignFormat { name, remedy: "add its address" }),
        None => Ok(()),
    }
}
