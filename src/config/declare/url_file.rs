//! `URLFile=` of a watch: a list in a file (`archivist_core::model::List`), read at every check.

use archivist_core::model::{List, Place, parse_line, without_userinfo};
use archivist_core::text::{Problem, clean_to};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Longest file of URLs, in bytes.
const FILE_MAX: u64 = 16 << 20;
/// Refused entries that are named individually.
const NAMED_MAX: usize = 20;
/// Longest text of a refused entry, in characters.
const SHOWN_CHARS: usize = 80;

/// URLs of a file, and what in it is not one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UrlFile {
    /// Normalised URLs in their order.
    pub urls: Vec<String>,
    /// Refused entries, each with its line and the reason. Only these are ignored.
    pub refused: Vec<Problem>,
}

/// Reads a file of URLs.
///
/// # Errors
/// If it cannot be read or is not a list.
pub fn read(path: &Path) -> Result<UrlFile, String> {
    let shown = path.display();
    let failed = |error: io::Error| format!("failed to read URLFile '{shown}': {error}");
    let metadata = std::fs::metadata(path).map_err(failed)?;
    if !metadata.is_file() || metadata.len() > FILE_MAX {
        return Err(format!("URLFile '{shown}' is not a file of at most 16M"));
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(FILE_MAX).read_to_end(&mut bytes).map_err(failed)?;
    let list = List::read(&bytes).map_err(|error| format!("URLFile '{shown}': {error}"))?;
    Ok(of(path, &list))
}

fn of(path: &Path, list: &List<'_>) -> UrlFile {
    let mut found = UrlFile::default();
    let mut more = 0;
    for (place, line) in list.lines() {
        match parse_line(line) {
            None => {}
            Some(Ok(entry)) => found.urls.push(entry.url.as_str().to_owned()),
            Some(Err(_)) if found.refused.len() == NAMED_MAX => more += 1,
            Some(Err(error)) => {
                let text = without_userinfo(&String::from_utf8_lossy(line));
                let text = clean_to(&text, SHOWN_CHARS);
                let what = match place {
                    Place::Line(_) => format!("'{text}' refused: {error}"),
                    Place::Element(_) => format!("{place}: '{text}' refused: {error}"),
                };
                let problem = Problem::of(path, what).ignored();
                let line = match place {
                    Place::Line(line) => u32::try_from(line).ok(),
                    Place::Element(_) => None,
                };
                found.refused.push(Problem { line, ..problem });
            }
        }
    }
    if more > 0 {
        let what = format!("{more} more entries refused");
        found.refused.push(Problem::of(path, what).ignored());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_text(text: &[u8]) -> (Vec<String>, Vec<String>) {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("sites.txt");
        std::fs::write(&path, text).unwrap();
        let found = read(&path).unwrap();
        let prefix = format!("{}:", path.display());
        let refused = found.refused.iter().map(|problem| {
            let text = problem.text();
            text.strip_prefix(&prefix).unwrap().to_owned()
        });
        (found.urls, refused.collect())
    }

    #[test]
    fn refused_lines_are_named_and_the_rest_is_watched() {
        let text = "\u{feff}http://a.test/shop\r\nhttp://b.test\n\nc.test/no-scheme\r\n\
                    ftp://u:secret@x/\n# comment\n- http://d.test/ # shop";
        let (urls, refused) = of_text(text.as_bytes());
        assert_eq!(urls, ["http://a.test/shop", "http://b.test/", "http://d.test/"]);
        assert!(refused[0].starts_with("4: 'c.test/no-scheme' refused: it is not a URL"));
        assert!(refused[1].starts_with("5: 'ftp://x/' refused: ftp: URLs"), "{refused:?}");
        assert_eq!(refused.len(), 2);
    }

    #[test]
    fn refused_lines_are_counted_beyond_a_limit() {
        let (urls, refused) = of_text("nonsense\n".repeat(NAMED_MAX + 5).as_bytes());
        assert!(urls.is_empty());
        assert_eq!(refused.len(), NAMED_MAX + 1);
        assert_eq!(refused[NAMED_MAX], " 5 more entries refused");
    }

    #[test]
    fn bookmarks_are_watched_and_other_formats_refused() {
        let file = b"<!DOCTYPE NETSCAPE-Bookmark-file-1>\n<A HREF=\"http://a.test/\">A</A>\n\
            <A HREF=\"javascript:x\">B</A>";
        let (urls, refused) = of_text(file);
        assert_eq!(urls, ["http://a.test/"]);
        assert!(refused[0].starts_with("3: ") && refused[0].contains("javascript:"));
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("page");
        std::fs::write(&path, "<html>").unwrap();
        assert!(read(&path).unwrap_err().contains("an HTML page"));
        assert!(read(top.path()).unwrap_err().contains("is not a file"));
        assert!(read(&top.path().join("none")).unwrap_err().contains("failed to read"));
    }
}
