//! URLs from arguments, a file or standard input, sent to the orchestrator in a sealed memfd with
//! one URL per line. Text that cannot be such a line is refused here; the orchestrator judges the
//! URLs.

use crate::client::exit::Failure;
use crate::display::text::cut_middle;
use archivist_core::text::clean;
use archivist_shared::bus::documents::report::Refused;
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, Seek, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;

/// Position of a URL in the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Counts from 1.
    Argument(u64),
    Line(u64),
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Origin::Argument(n) => write!(f, "argument {n}"),
            Origin::Line(n) => write!(f, "line {n}"),
        }
    }
}

/// A refused URL.
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

/// Collected URLs.
#[derive(Debug, Default)]
pub struct Urls {
    lines: Vec<u8>,
    /// Origin of each line that is sent.
    origins: Vec<Origin>,
    pub rejected: Vec<Rejected>,
}

impl Urls {
    /// Adds an argument of the command line.
    pub fn add_argument(&mut self, number: u64, argument: &OsStr) {
        self.add(Origin::Argument(number), argument.as_bytes());
    }

    /// Adds a file with one URL a line. Empty lines and lines that begin with `#` are skipped.
    pub fn add_lines(&mut self, mut file: impl BufRead) -> std::io::Result<()> {
        let mut line = Vec::new();
        for number in 1.. {
            line.clear();
            if file.read_until(b'\n', &mut line)? == 0 {
                break;
            }
            let text = line.trim_ascii();
            if !text.is_empty() && !text.starts_with(b"#") {
                self.add(Origin::Line(number), text);
            }
        }
        Ok(())
    }

    /// Adds the text of a line: a URL, or a JSON object with one.
    pub fn add_line(&mut self, number: u64, text: &str) {
        self.add(Origin::Line(number), text.as_bytes());
    }

    fn add(&mut self, origin: Origin, url: &[u8]) {
        let url = url.trim_ascii();
        let why = match std::str::from_utf8(url) {
            Err(_) => "it is not UTF-8 text; write such bytes of a URL as %XX",
            Ok("") => "it is empty",
            Ok(text) if text.contains(['\n', '\r', '\0']) => "it contains a line break",
            Ok(text) => {
                self.lines.extend_from_slice(text.as_bytes());
                self.lines.push(b'\n');
                self.origins.push(origin);
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
        Rejected {
            origin: self
                .origins
                .get(at)
                .copied()
                .unwrap_or(Origin::Line(refused.line)),
            text: refused.text,
            why: refused.why,
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn lines_keep_their_numbers_through_the_orchestrator() {
        let mut urls = Urls::default();
        urls.add_lines(&b"# list\n\nhttps://a/\n  nonsense \r\n\xff\xfe\nhttps://b/"[..])
            .unwrap();
        let mut sent = String::new();
        File::from(urls.to_memfd().unwrap())
            .read_to_string(&mut sent)
            .unwrap();
        assert_eq!(sent, "https://a/\nnonsense\nhttps://b/\n");
        assert_eq!(urls.rejected[0].origin, Origin::Line(5));
        let refused = urls.located(Refused {
            line: 2,
            text: "nonsense".into(),
            why: "not a URL".into(),
        });
        assert_eq!(refused.to_string(), "line 4: 'nonsense' refused: not a URL");
    }

    #[test]
    fn an_argument_is_never_two_urls() {
        let mut urls = Urls::default();
        urls.add_argument(1, OsStr::from_bytes(b"https://a/\nhttps://b/"));
        urls.add_argument(2, OsStr::from_bytes(b"https://c/\xff"));
        urls.add_argument(3, OsStr::new(""));
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
            urls.add_lines(&file[..]).unwrap();
            let said = file.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty() && !line.starts_with(b"#")).count();
            assert_eq!(urls.origins.len() + urls.rejected.len(), said + 1);
            let sent = urls.lines.iter().filter(|byte| **byte == b'\n').count();
            assert_eq!(sent, urls.origins.len());
            assert!(std::str::from_utf8(&urls.lines).is_ok());
        }
    }
}
