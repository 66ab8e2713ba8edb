//! The copy of a page that wget saved: which file has which response, what is missing, and links
//! between the files.
//!
//! wget writes two responses to one file if their names are too long, replaces files by directories
//! of the same name, leaves out suffixes, and converts links only if it is not stopped. The WARC
//! file has every response, so what is wrong is put right from there.

use super::address::{Base, address};
use super::body;
use super::departure;
use super::markup::{self, Use};
use super::names;
use super::needs::{Syntax, of_style, syntax};
use super::warc::{Response, Warc};
use crate::page::coding;
use crate::page::{style, suffix};
use crate::process::files::MODE;
use archivist_plugin::files::whole::{self, Survives, Whole};
use std::collections::HashMap;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use url::Url;

/// Largest document in bytes whose addresses are read.
const DOCUMENT_MAX_BYTES: u64 = 32 << 20;
/// Redirects that are followed.
const REDIRECTS_MAX: usize = 20;

#[derive(Debug)]
pub struct PageCopy {
    /// Responses of the page and its requisites.
    pub warc: Warc,
    /// Best response for each address.
    by_address: HashMap<String, usize>,
    files: HashMap<String, PathBuf>,
    /// File of the page if its response was cut off.
    cut_off: Option<PathBuf>,
    /// Largest document in bytes that is read.
    document_max: u64,
    /// Encodings that cannot be decoded, and other remarks.
    pub notes: Vec<String>,
}

impl PageCopy {
    /// Reads the WARC file and the log of wget. Documents of more than `most` bytes are neither read
    /// nor changed.
    pub fn read(warc: &Path, log: &str, most: u64) -> io::Result<PageCopy> {
        let warc = Warc::read(warc)?;
        let mut by_address = HashMap::new();
        for (index, response) in warc.responses.iter().enumerate() {
            let Some(address) = address(&response.url) else {
                continue;
            };
            let known = by_address.entry(address).or_insert(index);
            let is_worse = is_success(&warc.responses[*known]) && !is_success(response);
            if !is_worse {
                *known = index;
            }
        }
        let mut owners: HashMap<PathBuf, String> = HashMap::new();
        for (url, path) in names::saved(log) {
            if let Some(address) = address(&url) {
                owners.insert(path, address);
            }
        }
        let files = owners.into_iter().map(|(path, address)| (address, path));
        Ok(PageCopy {
            warc,
            by_address,
            files: files.collect(),
            cut_off: None,
            document_max: most.min(DOCUMENT_MAX_BYTES),
            notes: Vec::new(),
        })
    }

    /// Follows redirects to the last response for `url`.
    pub fn last_response(&self, url: &Url) -> Option<usize> {
        let mut url = url.clone();
        for _ in 0..=REDIRECTS_MAX {
            let index = *self.by_address.get(&address(url.as_str())?)?;
            let response = &self.warc.responses[index];
            match response.header("location") {
                Some(location) if (300..400).contains(&response.status) => {
                    url = Url::parse(&response.url).ok()?.join(location).ok()?;
                }
                _ => return Some(index),
            }
        }
        None
    }

    /// The last response for `url` after redirects.
    pub fn response(&self, url: &Url) -> Option<&Response> {
        self.last_response(url).map(|index| &self.warc.responses[index])
    }

    /// The file with the response for `url` after redirects, if it exists; else the start of the
    /// response, if it was cut off.
    pub fn file(&self, url: &Url) -> Option<PathBuf> {
        let whole = self.last_response(url).and_then(|index| self.file_of(index));
        whole.or_else(|| names::existing(self.cut_off.as_ref()?))
    }

    fn file_of(&self, index: usize) -> Option<PathBuf> {
        let address = address(&self.warc.responses[index].url)?;
        let path = self.files.get(&address)?;
        names::existing(path)
    }

    pub fn files(&self) -> impl Iterator<Item = (&String, &PathBuf)> {
        self.files.iter()
    }

    /// Whether wget logged a response for `url` as saved, but wrote no file: it keeps no response with
    /// status 204 in the WARC file either.
    pub fn had_no_content(&self, url: &Url) -> bool {
        let logged = address(url.as_str()).and_then(|address| self.files.get(&address));
        self.response(url).is_none() && logged.is_some_and(|path| names::existing(path).is_none())
    }

    /// The decoded body, unless it is too large or in an encoding without ASCII.
    pub fn text(&self, response: &Response) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        let body = self.warc.body(response).ok()?;
        // What was decoded before an error is the part that arrived.
        let _ = body.take(self.document_max + 1).read_to_end(&mut bytes);
        let is_wide = bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff");
        (!is_wide && bytes.len() as u64 <= self.document_max).then_some(bytes)
    }

    /// Whether a response has a body of at least a byte.
    fn has_body(&self, response: &Response) -> bool {
        let body = self.warc.body(response);
        body.is_ok_and(|mut body| body.read(&mut [0]).is_ok_and(|count| count > 0))
    }

    /// Whether the document of `url` was saved, or can be from the WARC file: wget keeps no error
    /// page.
    pub fn has_document(&self, url: &Url) -> bool {
        let is_error = |response: &&Response| response.status >= 400;
        self.file(url).is_some()
            || self.response(url).filter(is_error).is_some_and(|response| self.has_body(response))
    }

    /// The page to which `url` goes by itself, within `most` seconds: by header or meta element.
    pub fn refresh(&self, url: &Url, most: u64) -> Option<Url> {
        let response = self.response(url)?;
        let own = Url::parse(&response.url).ok()?;
        let soon = |value: &[u8]| {
            let text = String::from_utf8_lossy(value);
            let digits = text.trim_start();
            let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
            let seconds = digits[..end].parse::<u64>();
            seconds.map_or(end == 0, |seconds| seconds <= most)
        };
        let mut target = None;
        if let Some(value) = response.header("refresh") {
            let value = value.as_bytes();
            let found = departure::refresh_target(value).filter(|_| soon(value));
            target = found.and_then(|found| own.join(&String::from_utf8_lossy(found)).ok());
        }
        if target.is_none() && response.media_type().contains("html") {
            let text = self.text(response)?;
            let mut base = Base::of(response, Syntax::Markup, &text)?;
            departure::each_refresh(&text, &mut |value, usage| match usage {
                Use::Base => base.set(value),
                _ if target.is_none() && soon(value) => {
                    target = departure::refresh_target(value).and_then(|found| base.join(found));
                }
                _ => {}
            });
        }
        target.filter(|target| matches!(target.scheme(), "http" | "https"))
    }

    /// Remark about a page that goes elsewhere by a script, which wget does not run.
    pub fn departure(&self, url: &Url) -> Option<String> {
        let response = self.response(url)?;
        if !response.media_type().contains("html") {
            return None;
        }
        let text = self.text(response)?;
        departure::leaves_by_script(&text).then(|| {
            "the page goes elsewhere by a script, which wget does not run: this is the page before"
                .to_owned()
        })
    }

    /// Finds the file of a page whose transfer wget did not log as saved, by the name that wget
    /// gives it. Returns whether there is one.
    pub fn adopt(&mut self, url: &Url) -> bool {
        let last = self.response(url).map(|response| response.url.clone());
        let url = last.unwrap_or_else(|| url.to_string());
        let Some(address) = address(&url) else {
            return false;
        };
        if self.files.contains_key(&address) {
            return false;
        }
        let guessed = names::of_wget(&url).into_iter().find_map(|path| names::existing(&path));
        let is_found = guessed.is_some();
        if let Some(path) = guessed {
            self.cut_off = Some(path.clone());
            self.files.insert(address, path);
        }
        is_found
    }

    /// Whether a document has conditions that a copy does not meet: checksums of files, origins, and
    /// what those without scripts see. wget leaves them as they are.
    pub fn has_conditions(&self) -> bool {
        let conditions: [&[u8]; 4] =
            [b"integrity", b"crossorigin", b"content-security-policy", b"<noscript"];
        self.by_address.values().any(|index| {
            let response = &self.warc.responses[*index];
            let is_markup = syntax(response) == Some(Syntax::Markup);
            let text = if is_markup { self.text(response) } else { None };
            text.is_some_and(|text| conditions.iter().any(|own| markup::contains(&text, own)))
        })
    }

    /// Gives every response a file with a suffix that opens, and writes what wget did not: also the
    /// document of `page` if it is an error page. Writes at most `most` bytes in total. Returns
    /// whether links have to be converted again.
    pub fn complete(&mut self, page: &Url, most: u64) -> bool {
        let mut is_changed = false;
        let mut left = most;
        let main = self.last_response(page);
        let mut indices: Vec<_> = self.by_address.values().copied().collect();
        indices.sort_unstable();
        for index in indices {
            let response = self.warc.responses[index].clone();
            let has_body = is_page(&response)
                || Some(index) == main && response.status >= 400 && self.has_body(&response);
            let has_file = self.file_of(index).is_some();
            if !has_body && !has_file {
                continue;
            }
            let Some(address) = address(&response.url) else {
                continue;
            };
            match self.complete_file(index, &response, &mut left) {
                Ok(Some(path)) => {
                    is_changed |= self.files.insert(address, path.clone()) != Some(path);
                }
                Ok(None) => {}
                Err(error) => {
                    self.notes.push(format!("{}: {error}", response.url));
                }
            }
            is_changed |= is_encoded(&response);
        }
        is_changed
    }

    fn complete_file(
        &self,
        index: usize,
        response: &Response,
        left: &mut u64,
    ) -> io::Result<Option<PathBuf>> {
        let suffix = suffix::suffix(&response.media_type(), response.header("content-disposition"));
        let existing = self.file_of(index).or_else(|| self.unlogged(response));
        let wanted = match &existing {
            Some(path) if is_encoded(response) => {
                names::with_suffix(&names::without_encoding(path), suffix.as_deref())
            }
            Some(path) => names::with_suffix(path, suffix.as_deref()),
            None => names::free(&response.url, suffix.as_deref()),
        };
        let is_new = existing.as_ref() != Some(&wanted);
        let wanted = if is_new && wanted.symlink_metadata().is_ok() {
            names::short(&response.url, suffix.as_deref())
        } else {
            wanted
        };
        match existing {
            Some(path) if is_encoded(response) => {
                self.write(response, &wanted, left)?;
                if is_new {
                    fs::remove_file(path)?;
                }
            }
            Some(path) if is_new => fs::rename(path, &wanted)?,
            Some(_) => {}
            None => self.write(response, &wanted, left)?,
        }
        Ok(Some(wanted))
    }

    /// The file of a response by the name that wget gives it, unless the file is that of another
    /// response: only the start of a long log is read.
    fn unlogged(&self, response: &Response) -> Option<PathBuf> {
        let paths = names::of_wget(&response.url).into_iter();
        let mut existing = paths.filter_map(|path| names::existing(&path));
        existing.find(|path| self.files.values().all(|file| file != path))
    }

    /// Writes the decoded body of a response, at most `left` bytes of it. Fails if there are more: a
    /// small body may stand for any number of bytes.
    fn write(&self, response: &Response, path: &Path, left: &mut u64) -> io::Result<()> {
        let mut body = self.warc.body(response)?;
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        let whole = Whole::at(path, MODE)?;
        let copied = io::copy(&mut body.by_ref().take(*left), &mut whole.file());
        let count = whole.file().metadata()?.len();
        let is_more = copied.is_ok() && body.read(&mut [0]).is_ok_and(|count| count > 0);
        let failed = match copied {
            _ if is_more => Some(io::Error::other("more bytes than WGET_MAX_SIZE allows")),
            // What was decoded before an error is the part that arrived.
            Err(error) if count == 0 => Some(error),
            _ => None,
        };
        if let Some(error) = failed {
            return Err(error);
        }
        *left -= count;
        whole.place(Survives::Kill)
    }

    /// Converts the links of all documents: to files of the copy, else to the Web. Keeps the
    /// document of `page` as it came in a file with the suffix `.orig`.
    pub fn convert(&self, page: &Url) -> io::Result<()> {
        let main = self.last_response(page);
        for index in self.by_address.values().copied() {
            let response = &self.warc.responses[index];
            let (Some(syntax), Some(path)) = (syntax(response), self.file_of(index)) else {
                continue;
            };
            let Some(text) = self.text(response) else {
                continue;
            };
            let new = self.converted(&text, syntax, response, &path);
            names::remove_original_of_wget(&path);
            if Some(index) == main {
                fs::write(names::added(&path, ".orig"), &text)?;
            }
            whole::replace(&path, &new, MODE, Survives::Kill)?;
        }
        Ok(())
    }

    fn converted(&self, text: &[u8], syntax: Syntax, response: &Response, path: &Path) -> Vec<u8> {
        let Some(mut base) = Base::of(response, syntax, text) else {
            return text.to_vec();
        };
        let mut replace = |value: &[u8], usage: Use| {
            if usage == Use::RefreshValue {
                return None;
            }
            if usage == Use::Base {
                base.set(value);
                return Some(String::new());
            }
            let target = base.join(value)?;
            if !matches!(target.scheme(), "http" | "https") {
                return None;
            }
            let found = self.last_response(&target);
            let link = match found.and_then(|index| self.file_of(index)) {
                Some(file) => {
                    let link = names::relative(path, &file);
                    match target.fragment() {
                        Some(fragment) => format!("{link}#{fragment}"),
                        None => link,
                    }
                }
                None => target.into(),
            };
            Some(style::quotable(&link))
        };
        match syntax {
            Syntax::Markup => markup::rewrite(text, &mut replace),
            Syntax::Style => {
                style::rewrite(text, &mut |value, usage| replace(value, of_style(usage)))
            }
        }
    }
}

/// Whether the server sent what was requested.
pub fn is_success(response: &Response) -> bool {
    (200..300).contains(&response.status)
}

/// Whether browsers show the body of a response as page or requisite: also that of a redirect
/// without a target.
fn is_page(response: &Response) -> bool {
    match response.status {
        204 | 205 | 304 => false,
        300..400 => response.header("location").is_none(),
        _ => is_success(response),
    }
}

fn is_encoded(response: &Response) -> bool {
    coding::is_encoded(body::encoding(&response.headers))
}
