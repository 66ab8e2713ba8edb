//! A copy of recorded pages as files that any browser opens from disk, without this program and without a
//! network: a record becomes a file, and addresses in documents and style sheets lead to it.
//!
//! Nothing in a copy acts. Scripts are left out, and a policy in each document forbids those that would be
//! overlooked, and every file from elsewhere: what the recording lacks stays an address of the web, which a
//! user may follow, and which no browser loads by itself.

mod document;
mod names;
mod xml;

use crate::page::charset;
use crate::page::content_type::essence;
use crate::page::declaration::served;
use crate::page::html::Resolver;
use archivist_core::text::escape_markup;
use archivist_warc::lookup::{Found, Index, Match, Sent, Wanted};
use archivist_warc::wacz::{StoredAnswer, Wacz};
use document::Source;
use encoding_rs::UTF_8;
use jiff::Timestamp;
use sha2::{Digest, Sha256};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::Arc;
use url::Url;

/// What a browser may load for a document of the copy: files next to it, wherever they are, and no scripts.
const CONTENT_POLICY: &str = "default-src 'self' file: data: 'unsafe-inline'; script-src 'none'; \
    base-uri 'none'";
/// Largest document or style sheet in bytes that is converted, and largest file that is held in memory.
const DOCUMENT_MAX_BYTES: u64 = 32 << 20;
/// Most files of a copy.
pub const FILES_MAX: usize = 200_000;
/// Redirects that are followed, and documents within documents.
const REDIRECTS_MAX: usize = 20;
const LEVELS_MAX: usize = 8;
/// Rule of the look-up that takes another resource for the wanted one if most arguments are the same.
const GUESS: &str = "arguments";
/// Records of a page that are named because they cannot be read.
const FAULTS_MAX: usize = 10;
/// The first file of the copy.
pub const FIRST: &str = "index.html";

/// What an address is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Usage {
    Link,
    Style,
    /// A document within the document.
    Frame,
    /// Pictures, fonts, sounds.
    Other,
}

/// What the copy has for an address.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Led {
    /// The link to a file.
    File(String),
    /// Nothing, because what was recorded is no such file, or the address is a link.
    Live,
    /// Nothing, and the recording has no answer either.
    Absent,
}

trait Leads {
    /// What the copy has for an address.
    fn lead(&mut self, url: &Url, usage: Usage) -> Led;

    /// Counts an address that the document refers to, and that was not recorded.
    fn absent(&mut self, url: &Url);
}

/// A page of a recording.
pub struct Page<'a> {
    /// Id of its snapshot, which is a part of the name of its file.
    pub id: &'a str,
    pub title: &'a str,
    pub url: &'a str,
    pub time: Timestamp,
    pub recording: &'a Arc<Wacz>,
    /// The HTML that the browser saved after the scripts of the page had run, in UTF-8.
    pub dom: Option<&'a str>,
}

/// How a page is written.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Name of its file.
    name: String,
    /// URL after redirects.
    address: Url,
    /// Whether the file is a document with addresses, not a picture or a PDF.
    is_document: bool,
}

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub pages: usize,
    /// Files that are no pages.
    pub files: usize,
    /// Addresses of files that pages refer to and the recordings do not have.
    pub absent: usize,
    /// Recorded files that are left out, because the copy would be too large with them.
    pub left_out: usize,
}

/// The copy of some pages, whose files `create` makes: it gets a name relative to the directory of the copy.
pub struct Site<'a> {
    create: &'a dyn Fn(&str) -> io::Result<File>,
    /// Whether the only page is the first file.
    is_single: bool,
    /// Names of pages by their addresses.
    pages: HashMap<String, String>,
    files: HashSet<String>,
    absent: HashSet<String>,
    left_out: HashSet<String>,
    /// Bytes that its files may have in addition.
    room: u64,
    /// Lines of the list of pages.
    list: Vec<String>,
    failure: Option<io::Error>,
}

impl Plan {
    /// Whether the page is the first file, which leads to all others.
    pub fn is_first(&self) -> bool {
        self.name == FIRST
    }
}

impl<'a> Site<'a> {
    /// A copy of `count` pages, whose other files have at most `room` bytes.
    pub fn new(create: &'a dyn Fn(&str) -> io::Result<File>, count: usize, room: u64) -> Site<'a> {
        Site {
            create,
            is_single: count == 1,
            pages: HashMap::new(),
            files: HashSet::new(),
            absent: HashSet::new(),
            left_out: HashSet::new(),
            room,
            list: Vec::new(),
            failure: None,
        }
    }

    /// Gives a page its name, so that links to it lead there. All pages are planned before one is written.
    ///
    /// # Errors
    /// If the recording does not have the page.
    pub fn plan(&mut self, page: &Page<'_>) -> Result<Plan, String> {
        let url = Url::parse(page.url).map_err(|error| format!("its URL is none: {error}"))?;
        let main = follow(&index(page), &url, page.time);
        let (address, suffix) = match &main {
            Answer::Got(got) if is_script(&got.media_type) => (got.url.clone(), "txt".to_owned()),
            Answer::Got(got) if !is_html(&got.media_type) => {
                (got.url.clone(), names::suffix_of(&got.media_type))
            }
            Answer::Got(got) => (got.url.clone(), "html".to_owned()),
            _ if page.dom.is_some() => (url.clone(), "html".to_owned()),
            Answer::Damaged(_, reason) => return Err(format!("cannot be read: {reason}")),
            Answer::Absent => return Err("is not in its recording".to_owned()),
        };
        let is_document = suffix == "html";
        let name = if self.is_single && is_document {
            FIRST.to_owned()
        } else {
            names::of_page(page.id, &url, &suffix)
        };
        for own in [&url, &address] {
            self.pages.insert(key(own), name.clone());
            // A page with a route is found without it, unless another one has none.
            self.pages.entry(key(&without_fragment(own))).or_insert_with(|| name.clone());
        }
        Ok(Plan { name, address, is_document })
    }

    /// Writes a page and the files that it refers to. Returns which records of it cannot be read.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write(&mut self, page: &Page<'_>, plan: &Plan) -> io::Result<Vec<String>> {
        let index = index(page);
        let mut visit = Visit {
            site: self,
            index: &index,
            near: page.time,
            known: HashMap::new(),
            from: plan.name.clone(),
            level: 0,
            faults: Vec::new(),
        };
        let content = match page.dom.filter(|_| plan.is_document) {
            Some(text) => {
                let encoding = served(text.as_bytes()).unwrap_or(UTF_8);
                let text = text.trim_start_matches('\u{feff}');
                let source = Source { text, address: &plan.address, encoding, is_seen: true };
                Some(document::converted(source, &mut visit).into_bytes())
            }
            None => visit.main(plan),
        };
        let faults = visit.faults;
        match content {
            Some(content) => (self.create)(&plan.name)?.write_all(&content)?,
            None => self.copy(&index, plan, page.time)?,
        }
        self.list.push(format!(
            "<li><a href=\"{}\">{}</a><br><small>{} · {}</small>\n",
            plan.name,
            escape_markup(if page.title.is_empty() { page.url } else { page.title }),
            escape_markup(page.url),
            page.time.strftime("%Y-%m-%d %H:%M UTC")
        ));
        self.failure.take().map_or(Ok(faults), Err)
    }

    /// Copies the record of a page that is no document.
    fn copy(&self, index: &Index, plan: &Plan, near: Timestamp) -> io::Result<()> {
        let Answer::Got(mut got) = follow(index, &plan.address, near) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        io::copy(&mut got.answer.body, &mut (self.create)(&plan.name)?).map(drop)
    }

    /// Writes the list of pages, unless the only page is the first file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(self, title: &str) -> io::Result<Counts> {
        let is_first = self.pages.values().any(|name| name == FIRST);
        if !is_first {
            let list = document::listing(title, &self.list.concat());
            (self.create)(FIRST)?.write_all(list.as_bytes())?;
        }
        let (files, absent) = (self.files.len(), self.absent.len());
        Ok(Counts { pages: self.list.len(), files, absent, left_out: self.left_out.len() })
    }

    /// The page at an address.
    fn page(&self, url: &Url) -> Option<&String> {
        let exact = url.fragment().and_then(|_| self.pages.get(&key(url)));
        exact.or_else(|| self.pages.get(&key(&without_fragment(url))))
    }
}

/// The conversion of a page.
struct Visit<'v, 's> {
    site: &'v mut Site<'s>,
    index: &'v Index,
    near: Timestamp,
    known: HashMap<(Url, Usage), Led>,
    /// Name of the file whose addresses are replaced.
    from: String,
    level: usize,
    faults: Vec<String>,
}

impl Leads for Visit<'_, '_> {
    fn lead(&mut self, url: &Url, usage: Usage) -> Led {
        if usage == Usage::Link
            && let Some(name) = self.site.page(url)
        {
            return Led::File(names::relative(&self.from, name));
        }
        let key = (without_fragment(url), usage);
        let found = match self.known.get(&key) {
            Some(found) => found.clone(),
            None => {
                // A style sheet that imports itself.
                self.known.insert(key.clone(), Led::Live);
                let found = self.file(&key.0, usage);
                self.known.insert(key, found.clone());
                found
            }
        };
        match found {
            Led::File(name) => Led::File(names::relative(&self.from, &name)),
            other => other,
        }
    }

    fn absent(&mut self, url: &Url) {
        self.site.absent.insert(without_fragment(url).into());
    }
}

impl Visit<'_, '_> {
    /// The document of a page that was not saved by a browser; `None` if it has no addresses.
    fn main(&mut self, plan: &Plan) -> Option<Vec<u8>> {
        let Answer::Got(got) = follow(self.index, &plan.address, self.near) else {
            return None;
        };
        let kind = if plan.is_document { Kind::Html } else { Kind::of(&got, Usage::Link)? };
        (kind != Kind::Plain).then(|| self.document(*got, kind, &plan.name)).flatten()
    }

    /// The file for an address, by its name.
    fn file(&mut self, url: &Url, usage: Usage) -> Led {
        let got = match follow(self.index, url, self.near) {
            // A link to what was not recorded is nothing that the page lacks.
            Answer::Absent if usage == Usage::Link => return Led::Live,
            Answer::Absent => return Led::Absent,
            Answer::Damaged(url, reason) => {
                self.fault(&url, &reason);
                return Led::Live;
            }
            Answer::Got(got) => got,
        };
        let is_success = (200..300).contains(&got.answer.status) && is_whole(&got.answer);
        let kind = Kind::of(&got, usage).filter(|_| is_success && self.level < LEVELS_MAX);
        let (Some(kind), None) = (kind, &self.site.failure) else {
            return Led::Live;
        };
        let (url, suffix) = (got.url.clone(), kind.suffix(&got.media_type));
        let named = match kind {
            Kind::Plain => self.plain(*got, &suffix),
            _ => match self.document(*got, kind, names::some_file(self.site.is_single)) {
                Some(content) => self.store(&url, &content, &suffix),
                None => Ok(None),
            },
        };
        match named {
            Ok(Some(name)) => Led::File(name),
            Ok(None) => Led::Live,
            Err(error) => {
                self.site.failure = Some(error);
                Led::Live
            }
        }
    }

    /// Converts what has addresses itself, for a file of this name. `None` if it is too large or refused.
    fn document(&mut self, mut got: Got, kind: Kind, name: &str) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        let read = got.answer.body.by_ref().take(DOCUMENT_MAX_BYTES + 1).read_to_end(&mut bytes);
        if let Err(error) = read {
            self.fault(&got.url, &error.to_string());
        }
        if bytes.len() as u64 > DOCUMENT_MAX_BYTES {
            return None;
        }
        let content_type = match kind {
            Kind::Style => with_charset(&bytes, &got.content_type),
            _ => got.content_type.clone(),
        };
        let decoded = charset::decode(&bytes, &content_type, Some(&got.url));
        let before = std::mem::replace(&mut self.from, name.to_owned());
        self.level += 1;
        let (text, encoding) = (&*decoded.text, decoded.encoding);
        let new = match kind {
            Kind::Html => {
                let source = Source { text, address: &got.url, encoding, is_seen: false };
                Some(document::converted(source, self))
            }
            Kind::Style => {
                let resolver = Resolver::of(got.url, UTF_8);
                // Decides before the encoding of the document.
                let mark = if text.is_ascii() { "" } else { "\u{feff}" };
                Some(format!("{mark}{}", document::sheet(text, &resolver, self)))
            }
            Kind::Xml => xml::converted(text, &Resolver::of(got.url, encoding), self),
            Kind::Plain => None,
        };
        self.level -= 1;
        self.from = before;
        new.map(String::into_bytes)
    }

    /// Copies what has no addresses. `None` if it cannot be read.
    fn plain(&mut self, mut got: Got, suffix: &str) -> io::Result<Option<String>> {
        let mut start = Vec::new();
        let body = &mut got.answer.body;
        let read = body.by_ref().take(DOCUMENT_MAX_BYTES).read_to_end(&mut start);
        if let Err(error) = read {
            self.fault(&got.url, &error.to_string());
            return Ok(None);
        }
        if (start.len() as u64) < DOCUMENT_MAX_BYTES {
            return self.store(&got.url, &start, suffix);
        }
        // Read twice: the name is that of the content.
        let mut sum = Sha256::new_with_prefix(&start);
        drop(start);
        let copied = io::copy(body, &mut sum)
            .and_then(|rest| Ok((rest, got.found.read().map_err(io::Error::other)?)));
        let (rest, mut again) = match copied {
            Ok(copied) => copied,
            Err(error) => {
                self.fault(&got.url, &error.to_string());
                return Ok(None);
            }
        };
        let name = names::of_file(&got.url, &sum.finalize().into(), suffix, self.site.is_single);
        self.add(&got.url, name, DOCUMENT_MAX_BYTES + rest, |mut file| {
            io::copy(&mut again.body, &mut file).map(drop)
        })
    }

    fn store(&mut self, url: &Url, content: &[u8], suffix: &str) -> io::Result<Option<String>> {
        let name = names::of_file(url, &names::digest(content), suffix, self.site.is_single);
        self.add(url, name, content.len() as u64, |mut file| file.write_all(content))
    }

    /// Writes a file of this size, unless the copy has it. Returns its name; `None` if there is no room for it.
    fn add(
        &mut self,
        url: &Url,
        name: String,
        size: u64,
        fill: impl FnOnce(File) -> io::Result<()>,
    ) -> io::Result<Option<String>> {
        if self.site.files.contains(&name) {
            return Ok(Some(name));
        }
        let Some(room) = self.site.room.checked_sub(size) else {
            self.site.left_out.insert(url.as_str().to_owned());
            return Ok(None);
        };
        if self.site.files.len() >= FILES_MAX {
            return Err(io::Error::other(format!(
                "the copy would have more than {FILES_MAX} files"
            )));
        }
        self.site.room = room;
        self.site.files.insert(name.clone());
        fill((self.site.create)(&name)?)?;
        Ok(Some(name))
    }

    fn fault(&mut self, url: &Url, reason: &str) {
        if self.faults.len() < FAULTS_MAX {
            self.faults.push(format!("the record of '{url}' cannot be read: {reason}"));
        }
    }
}

/// How a record becomes a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Html,
    Style,
    /// Drawings, feeds.
    Xml,
    Plain,
}

impl Kind {
    /// `None` for what is not shown for this use: scripts, pages that are no pictures.
    fn of(got: &Got, usage: Usage) -> Option<Kind> {
        let kind = got.media_type.as_str();
        match usage {
            Usage::Style => (!is_html(kind) || kind.is_empty()).then_some(Kind::Style),
            _ if is_script(kind) => None,
            Usage::Frame if is_html(kind) => Some(Kind::Html),
            _ if is_html(kind) && !kind.is_empty() => None,
            _ if kind == "text/css" => Some(Kind::Style),
            _ if kind.ends_with("/xml") || kind.ends_with("+xml") || kind == "text/xsl" => {
                Some(Kind::Xml)
            }
            _ => Some(Kind::Plain),
        }
    }

    fn suffix(self, media_type: &str) -> String {
        match self {
            Kind::Html => "html".to_owned(),
            Kind::Style => "css".to_owned(),
            Kind::Xml | Kind::Plain => names::suffix_of(media_type),
        }
    }
}

enum Answer {
    Absent,
    Damaged(Url, String),
    Got(Box<Got>),
}

/// A recorded answer.
struct Got {
    /// URL after redirects.
    url: Url,
    content_type: String,
    media_type: String,
    found: Found,
    answer: StoredAnswer,
}

fn index(page: &Page<'_>) -> Index {
    let mut index = Index::new();
    index.add(Arc::clone(page.recording));
    index
}

/// The answer to a request and the redirects to which it leads.
fn follow(index: &Index, url: &Url, near: Timestamp) -> Answer {
    let mut url = without_fragment(url);
    let mut redirected = None;
    for _ in 0..=REDIRECTS_MAX {
        let wanted = Wanted {
            url: url.as_str(),
            method: "GET",
            posted: None,
            range: None,
            near,
            redirected,
            given: 0,
        };
        let Some(found) = index.find(&wanted).filter(|found| found.fit != Match::Fuzzy(GUESS))
        else {
            return Answer::Absent;
        };
        let answer = match found.read() {
            Ok(answer) => answer,
            Err(error) => return Answer::Damaged(url, error.to_string()),
        };
        let target = value(&answer, "location").filter(|_| (300..400).contains(&answer.status));
        match target.and_then(|target| url.join(target).ok()) {
            Some(target) => {
                url = without_fragment(&target);
                redirected = Some(found.entry.time);
            }
            None => {
                let content_type = value(&answer, "content-type").unwrap_or_default().to_owned();
                let media_type = essence(&content_type);
                return Answer::Got(Box::new(Got { url, content_type, media_type, found, answer }));
            }
        }
    }
    Answer::Damaged(url, "it redirects too often".to_owned())
}

fn value<'a>(answer: &'a StoredAnswer, name: &str) -> Option<&'a str> {
    let found = answer.headers.iter().find(|(own, _)| own.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.as_str())
}

/// Whether an answer is all of a resource.
fn is_whole(answer: &StoredAnswer) -> bool {
    let sent = value(answer, "content-range").filter(|_| answer.status == 206).and_then(Sent::of);
    answer.status != 206
        || sent.is_some_and(|sent| {
            sent.first == 0 && sent.total.is_some() && sent.total == answer.length
        })
}

fn is_html(media_type: &str) -> bool {
    matches!(media_type, "" | "text/html" | "application/xhtml+xml")
}

fn is_script(media_type: &str) -> bool {
    media_type.ends_with("javascript") || media_type.ends_with("ecmascript")
}

/// The content type of a style sheet, whose first rule may declare its encoding.
fn with_charset(bytes: &[u8], content_type: &str) -> String {
    let declared = bytes.strip_prefix(b"@charset \"").and_then(|rest| {
        let end = rest.iter().take(40).position(|byte| *byte == b'"')?;
        str::from_utf8(&rest[..end]).ok()
    });
    match declared {
        Some(label) if !content_type.contains("charset") => format!("text/css; charset={label}"),
        _ => content_type.to_owned(),
    }
}

fn without_fragment(url: &Url) -> Url {
    let mut url = url.clone();
    url.set_fragment(None);
    url
}

/// The address of a page, which may be asked for with TLS and without it.
fn key(url: &Url) -> String {
    let text = url.as_str();
    text.split_once("://").map_or(text, |(_, rest)| rest).to_owned()
}

#[cfg(test)]
mod tests;
