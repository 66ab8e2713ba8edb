//! URLs from arguments, a file or standard input, sent to the orchestrator in a sealed memfd with
//! one URL per line. Files that are not lists, and text that cannot be such a line, are refused
//! here; the orchestrator judges the URLs.

use crate::client::exit::Failure;
use crate::display::text::cut_middle;
use archivist_core::model::{List, Place, parse_line};
use archivist_core::text::clean;
use archivist_shared::bus::documents::bounds::LIST_MAX;
use archivist_shared::bus::documents::report::Refused;
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Counts from 1.
    Argument(u64),
    /// In a file or in standard input.
    List(Place),
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Origin::Argument(n) => write!(f, "argument {n}"),
            Origin::List(place) => place.fmt(f),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    pub origin: Origin,
    pub text: String,
    pub why: String,
}

impl std::fmt::Display for Rejected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = cut_middle(&clean(&self.text), 80);
        write!(f, "{}: '{text}' refused: {}", self.origin, self.why)
    }
}

/// Largest input in bytes: bookmark files have pictures in them, and UTF-16 is longer than UTF-8.
pub const INPUT_MAX_BYTES: u64 = 4 * LIST_MAX as u64;

/// Reads a whole file or standard input, for messages called `name`.
pub fn read_input(source: impl Read, name: &str) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let read = source.take(INPUT_MAX_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| Failure::failed(format!("failed to read {name}: {error}")))?;
    if bytes.len() as u64 > INPUT_MAX_BYTES {
        let what = format!("failed to read {name}: it is longer than {INPUT_MAX_BYTES} bytes");
        return Err(Failure::usage(what));
    }
    Ok(bytes)
}

pub fn read_list<'a>(bytes: &'a [u8], name: &str) -> Result<List<'a>, Failure> {
    List::read(bytes).map_err(|error| Failure::usage(format!("failed to read {name}: {error}")))
}

#[derive(Debug, Default)]
pub struct Urls {
    lines: Vec<u8>,
    /// Origin of each line that is sent, and its begin in `lines`.
    origins: Vec<(Origin, usize)>,
    pub rejected: Vec<Rejected>,
}

impl Urls {
    pub fn add_argument(&mut self, number: u64, argument: &OsStr) {
        self.add(Origin::Argument(number), argument.as_bytes());
    }

    /// Adds the entries of a list. Empty lines and lines that begin with `#` are skipped. Returns
    /// the format and the number of addresses, unless it is a list of lines.
    pub fn add_list(&mut self, source: impl Read, name: &str) -> Result<Option<String>, Failure> {
        let bytes = read_input(source, name)?;
        let list = read_list(&bytes, name)?;
        for (place, line) in list.lines() {
            let line = line.trim_ascii();
            if !line.is_empty() && !line.starts_with(b"#") {
                self.add(Origin::List(place), line);
            }
        }
        Ok(list.description())
    }

    /// Adds the text of a line: a URL, or a JSON object with one.
    pub fn add_line(&mut self, place: Place, text: &str) {
        self.add(Origin::List(place), text.as_bytes());
    }

    fn add(&mut self, origin: Origin, url: &[u8]) {
        let url = url.trim_ascii();
        let why = match std::str::from_utf8(url) {
            Err(_) => "it is not UTF-8 text; write such bytes of a URL as %XX",
            Ok("") => "it is empty",
            // The orchestrator skips comments in a list.
            Ok(text) if matches!(origin, Origin::Argument(_)) && parse_line(url).is_none() => {
                if text.starts_with('#') {
                    "it is not a URL"
                } else {
                    "it is empty"
                }
            }
            Ok(text) if text.contains(['\n', '\r', '\0']) => "it contains a line break",
            Ok(text) if matches!(origin, Origin::Argument(_)) && is_file(text) => {
                "it is a file; to read URLs from it, write: - <FILE"
            }
            Ok(text) => {
                self.origins.push((origin, self.lines.len()));
                self.lines.extend_from_slice(text.as_bytes());
                self.lines.push(b'\n');
                return;
            }
        };
        self.rejected.push(Rejected {
            origin,
            text: String::from_utf8_lossy(url).into_owned(),
            why: why.to_owned(),
        });
    }

    /// Returns the number of lines to send.
    pub fn len(&self) -> usize {
        self.origins.len()
    }

    pub fn is_empty(&self) -> bool {
        self.origins.is_empty()
    }

    /// Returns a refusal of the orchestrator with the origin of its URL.
    pub fn located(&self, refused: Refused) -> Rejected {
        let at = usize::try_from(refused.line.saturating_sub(1)).unwrap_or(usize::MAX);
        match self.origins.get(at) {
            Some((origin, begin)) => Rejected {
                origin: *origin,
                text: address(&self.lines[*begin..]).unwrap_or(refused.text),
                why: refused.why,
            },
            None => Rejected {
                origin: Origin::List(Place::Line(refused.line)),
                text: refused.text,
                why: refused.why,
            },
        }
    }

    /// Returns a sealed memfd with the lines, positioned at its start.
    pub fn to_memfd(&self) -> Result<OwnedFd, Failure> {
        let failed = |error: &dyn std::fmt::Display| {
            Failure::failed(format!("failed to write the URLs into a memfd: {error}"))
        };
        let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
        let fd = memfd_create(c"archivist-urls", flags).map_err(|e| failed(&e))?;
        let mut file = File::from(fd);
        file.write_all(&self.lines).map_err(|e| failed(&e))?;
        file.rewind().map_err(|e| failed(&e))?;
        let seals = SealFlag::F_SEAL_SHRINK
            | SealFlag::F_SEAL_GROW
            | SealFlag::F_SEAL_WRITE
            | SealFlag::F_SEAL_SEAL;
        fcntl(&file, FcntlArg::F_ADD_SEALS(seals)).map_err(|e| failed(&e))?;
        Ok(file.into())
    }
}

/// Whether a text that cannot be a URL is the name of a file.
fn is_file(text: &str) -> bool {
    !text.contains(':') && Path::new(text).is_file()
}

/// Returns the URL of the JSON object in the first of these lines.
fn address(lines: &[u8]) -> Option<String> {
    let line = lines.split(|byte| *byte == b'\n').next()?;
    let object: serde_json::Value = serde_json::from_slice(line).ok()?;
    Some(object.get("url")?.as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_their_numbers_through_the_orchestrator() {
        let mut urls = Urls::default();
        let list = b"# list\n\nhttps://a/\n  nonsense \r\n\xff\xfe\nhttps://b/";
        assert_eq!(urls.add_list(&list[..], "x").unwrap(), None);
        let mut sent = String::new();
        File::from(urls.to_memfd().unwrap()).read_to_string(&mut sent).unwrap();
        assert_eq!(sent, "https://a/\nnonsense\nhttps://b/\n");
        assert_eq!(urls.rejected[0].origin, Origin::List(Place::Line(5)));
        let refused =
            urls.located(Refused { line: 2, text: "nonsense".into(), why: "not a URL".into() });
        assert_eq!(refused.to_string(), "line 4: 'nonsense' refused: not a URL");
    }

    #[test]
    fn an_argument_is_never_two_urls() {
        let mut urls = Urls::default();
        urls.add_argument(1, OsStr::from_bytes(b"https://a/\nhttps://b/"));
        urls.add_argument(2, OsStr::from_bytes(b"https://c/\xff"));
        urls.add_argument(3, OsStr::new(""));
        urls.add_argument(4, OsStr::new("#x"));
        assert!(urls.is_empty());
        let message: Vec<_> = urls.rejected.iter().map(Rejected::to_string).collect();
        assert_eq!(
            message[0],
            "argument 1: 'https://a/ https://b/' refused: it contains a line break"
        );
        assert!(
            message[1].starts_with("argument 2: 'https://c/\u{fffd}' refused: it is not UTF-8")
        );
        assert_eq!(message[2], "argument 3: '' refused: it is empty");
        assert_eq!(message[3], "argument 4: '#x' refused: it is not a URL");
    }

    #[test]
    fn a_list_that_is_given_as_an_argument_is_named_as_a_file() {
        let mut urls = Urls::default();
        let list = tempfile::NamedTempFile::new().unwrap();
        urls.add_argument(1, list.path().as_os_str());
        urls.add_argument(2, OsStr::new("nosuch/list.txt"));
        assert_eq!((urls.len(), urls.rejected.len()), (1, 1), "the orchestrator refuses the other");
        assert!(urls.rejected[0].to_string().ends_with("write: - <FILE"));
    }

    #[test]
    fn a_bookmark_file_is_named_and_sent_with_titles_and_tags() {
        let mut urls = Urls::default();
        let file = b"<!DOCTYPE NETSCAPE-Bookmark-file-1>\n<DL><p>\n\
            <DT><A HREF=\"http://a.test/\" TAGS=\"x\">A</A>\n<DT><A HREF=\"http://b.test/\">B</A>";
        let named = urls.add_list(&file[..], "x").unwrap();
        assert_eq!(named.as_deref(), Some("Netscape bookmark file: 2 addresses"));
        let first = urls.lines.split(|byte| *byte == b'\n').next().unwrap();
        let entry = parse_line(first).unwrap().unwrap();
        assert_eq!(entry.title.as_deref(), Some("A"));
        assert_eq!(entry.tags, ["x"]);
        let refused = Refused { line: 2, text: "{".into(), why: "no".into() };
        let message = urls.located(refused).to_string();
        assert_eq!(message, "line 4: 'http://b.test/' refused: no");
        let page = urls.add_list(&b"<!doctype html><p>"[..], "'page'");
        assert!(
            page.unwrap_err().message().starts_with("failed to read 'page': it is an HTML page")
        );
    }

    #[test]
    fn the_memfd_is_sealed() {
        let mut file = File::from(Urls::default().to_memfd().unwrap());
        assert!(file.write_all(b"x").is_err());
    }

    proptest::proptest! {
        /// Each line is sent as one line or refused, whatever is in it, and keeps its number.
        #[test]
        fn every_line_is_sent_once_or_refused(file: Vec<u8>, argument: Vec<u8>) {
            let mut urls = Urls::default();
            urls.add_argument(1, OsStr::from_bytes(&argument));
            let file = [&b"x\n"[..], &file].concat();
            urls.add_list(&file[..], "x").unwrap();
            let said = file.split(|byte| matches!(byte, b'\n' | b'\r')).map(<[u8]>::trim_ascii).filter(|line| !line.is_empty() && !line.starts_with(b"#")).count();
            assert_eq!(urls.origins.len() + urls.rejected.len(), said + 1);
            let sent = urls.lines.iter().filter(|byte| **byte == b'\n').count();
            assert_eq!(sent, urls.origins.len());
            assert!(std::str::from_utf8(&urls.lines).is_ok());
        }
    }
}
