//! Input of `archivist run`: URLs and records of standard input, read line by line. Decides what
//! each line requests, and how it is passed on.

use crate::client::exit::Failure;
use crate::queue::urls::{Origin, Rejected, Urls, read_input, read_list};
use crate::verb::run::crawl_record::{self, Options, words};
use archivist_core::model::{
    CrawlId, Owner, PageUrl, Place, SnapshotId, parse_line, without_userinfo,
};
use archivist_core::text::trim_blanks;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::io::Read;

const INPUT: &str = "standard input";

#[derive(Clone, Debug, PartialEq)]
pub enum Wish {
    /// Returns a page as the orchestrator reads it. Its depth is 0, whatever depth it was found at.
    Page(String),
    Crawl {
        urls: Vec<String>,
        options: Options,
    },
    /// Queues something of this archive again.
    Requeue {
        id: Owner,
        what: Redo,
    },
    /// Retry of the row that has this URL here. A record of another archive may have an id that is
    /// taken or unknown here; then `otherwise` applies.
    Known {
        id: Owner,
        url: String,
        otherwise: Box<Wish>,
    },
    /// A program that another archive had.
    Program(String),
    /// Not a request.
    Nothing,
}

/// Which hooks of a crawl or page run again.
#[derive(Clone, Debug, PartialEq)]
pub enum Redo {
    /// Those with failed and skipped results; none of a complete page.
    Open,
    /// Those with failed and skipped results; all of a complete page.
    OpenOrAll,
    Hook(String),
}

impl Redo {
    /// Returns the name of the hook, if it is a single one.
    pub fn hook(&self) -> Option<&str> {
        match self {
            Redo::Hook(hook) => Some(hook),
            Redo::Open | Redo::OpenOrAll => None,
        }
    }
}

#[derive(Debug, Default)]
pub struct Input {
    /// Pages of the crawl that the command line describes.
    pub urls: Urls,
    pub crawls: Vec<(Urls, Options)>,
    pub requeues: Vec<(Owner, Redo)>,
    pub programs: BTreeSet<String>,
    /// Requests that refer to an id, by position, until the id is checked.
    pub claims: Vec<(Place, Claim)>,
}

/// Id and URL in a record: see [`Wish::Known`].
#[derive(Debug, PartialEq)]
pub struct Claim {
    pub id: Owner,
    pub url: String,
    otherwise: Wish,
}

impl Input {
    /// Reads records to the end; `echo` gets each record that is passed on.
    pub fn read(
        &mut self,
        source: impl Read,
        echo: &mut dyn FnMut(&str) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let bytes = read_input(source, INPUT)?;
        let list = read_list(&bytes, INPUT)?;
        if let Some(format) = list.description() {
            eprintln!("{format}");
        }
        for (place, line) in list.lines() {
            let decoded = String::from_utf8_lossy(line);
            let text = trim_blanks(&decoded);
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            match judge(text) {
                Ok((wish, passed_on)) => {
                    echo(&passed_on)?;
                    self.take(place, wish);
                }
                Err(why) => self.urls.rejected.push(Rejected {
                    origin: Origin::List(place),
                    text: text.to_owned(),
                    why,
                }),
            }
        }
        Ok(())
    }

    fn take(&mut self, place: Place, wish: Wish) {
        match wish {
            Wish::Page(line) => self.urls.add_line(place, &line),
            Wish::Crawl { urls, options } => {
                let mut of_crawl = Urls::default();
                for url in urls {
                    of_crawl.add_line(place, &url);
                }
                self.crawls.push((of_crawl, options));
            }
            Wish::Requeue { id, what } => {
                let request = (id, what);
                if !self.requeues.contains(&request) {
                    self.requeues.push(request);
                }
            }
            Wish::Known { id, url, otherwise } => {
                let otherwise = *otherwise;
                let claim = Claim { id, url, otherwise };
                self.claims.push((place, claim));
            }
            Wish::Program(name) => drop(self.programs.insert(name)),
            Wish::Nothing => {}
        }
    }

    /// Accepts a claim if it holds, and otherwise what its record describes.
    pub fn settle(&mut self, place: Place, claim: Claim, holds: bool) {
        let wish = if holds { requeue(claim.id, Redo::OpenOrAll) } else { claim.otherwise };
        self.take(place, wish);
    }

    pub fn is_empty(&self) -> bool {
        let nothing_new = self.urls.is_empty() && self.crawls.is_empty();
        let nothing_old = self.requeues.is_empty() && self.claims.is_empty();
        nothing_new && nothing_old && self.programs.is_empty()
    }
}

/// Returns the request of a line, and how the line is passed on.
fn judge(text: &str) -> Result<(Wish, String), String> {
    if !text.starts_with('{') {
        let Some(entry) = parse_line(text.as_bytes()) else {
            return Ok((Wish::Nothing, text.to_owned()));
        };
        let entry = entry.map_err(|error| error.to_string())?;
        let mut record = json!({ "type": "Snapshot", "url": entry.url.as_str() });
        let Some(title) = entry.title else {
            return Ok((Wish::Page(entry.url.as_str().to_owned()), record.to_string()));
        };
        record["title"] = title.into();
        let line = json!({ "url": record["url"], "title": record["title"] });
        return Ok((Wish::Page(line.to_string()), record.to_string()));
    }
    let wish = match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(record)) => of_record(&record)?,
        _ => Wish::Nothing,
    };
    Ok((wish, text.to_owned()))
}

fn text_of<'a>(record: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    record.get(key).and_then(Value::as_str)
}

fn of_record(record: &Map<String, Value>) -> Result<Wish, String> {
    let id = text_of(record, "id").unwrap_or_default();
    Ok(match text_of(record, "type") {
        Some("Crawl") => match id.parse::<CrawlId>() {
            Ok(id) => known(Owner::Crawl(id), crawl(record)),
            Err(_) => crawl(record),
        },
        Some("Snapshot") => match id.parse::<SnapshotId>() {
            Ok(id) => known(Owner::Snapshot(id), page(record)?),
            Err(_) => page(record)?,
        },
        Some("ArchiveResult") => result(record, id),
        Some("Binary" | "BinaryRequest") => program(record),
        Some(_) => Wish::Nothing,
        None => page(record)?,
    })
}

fn crawl(record: &Map<String, Value>) -> Wish {
    match crawl_record::read(record) {
        Some((urls, options)) => Wish::Crawl { urls, options },
        None => Wish::Nothing,
    }
}

fn program(record: &Map<String, Value>) -> Wish {
    match text_of(record, "name").map(str::trim) {
        Some(name) if !name.is_empty() => Wish::Program(name.to_owned()),
        _ => Wish::Nothing,
    }
}

/// Returns a request for an id of this archive, with `otherwise` as alternative.
fn known(id: Owner, otherwise: Wish) -> Wish {
    let url = match &otherwise {
        Wish::Page(line) => parse_line(line.as_bytes()).and_then(Result::ok).map(|entry| entry.url),
        Wish::Crawl { urls, .. } => urls.first().and_then(|url| PageUrl::parse(url).ok()),
        _ => None,
    };
    match url {
        Some(url) => {
            Wish::Known { id, url: without_userinfo(url.as_str()), otherwise: Box::new(otherwise) }
        }
        None => requeue(id, Redo::OpenOrAll),
    }
}

fn requeue(id: Owner, what: Redo) -> Wish {
    Wish::Requeue { id, what }
}

/// Returns a result of this archive by its id (`s3/PLUGIN/HOOK`), or by the snapshot and the hook
/// that it names.
fn result(record: &Map<String, Value>, id: &str) -> Wish {
    let named = id.split_once('/').and_then(|(owner, rest)| {
        let hook = rest.split_once('/').map_or(rest, |(_, hook)| hook);
        Some((owner.parse().ok()?, hook.to_owned()))
    });
    let described = || {
        let owner = text_of(record, "snapshot_id")?.parse().ok()?;
        let hook = text_of(record, "hook_name").or_else(|| text_of(record, "plugin"))?;
        Some((owner, hook.to_owned()))
    };
    match named.or_else(described) {
        Some((owner @ Owner::Snapshot(_), hook)) => requeue(owner, Redo::Hook(hook)),
        _ => Wish::Nothing,
    }
}

/// A page as the orchestrator takes it. Whatever depth it was found at, it is a start here.
fn page(record: &Map<String, Value>) -> Result<Wish, String> {
    let Some(text) = text_of(record, "url") else {
        return Ok(Wish::Nothing);
    };
    let url = PageUrl::parse(text).map_err(|error| error.to_string())?;
    let mut line = Map::new();
    line.insert("url".to_owned(), url.as_str().into());
    if let Some(title) = text_of(record, "title") {
        line.insert("title".to_owned(), title.into());
    }
    for key in ["bookmarked_at", "timestamp"] {
        if let Some(time) = record.get(key) {
            line.insert(key.to_owned(), time.clone());
        }
    }
    if let Some(config) = record.get("config") {
        line.insert("config".to_owned(), config.clone());
    }
    let tags = words(record.get("tags").or_else(|| record.get("tags_str")));
    if !tags.is_empty() {
        line.insert("tags".to_owned(), tags.into());
    }
    Ok(Wish::Page(Value::Object(line).to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(text: &str) -> Wish {
        judge(text).unwrap().0
    }

    #[test]
    fn records_are_created_retried_or_passed_on() {
        let page = |line: &str| Wish::Page(line.to_owned());
        assert_eq!(wish("http://X.test"), page("http://x.test/"));
        let foreign = r#"{"type":"Snapshot","id":"0198-uuid","url":"http://x.test/","depth":3,"tags":"a, b","title":"T","timestamp":12,"config":{"TIMEOUT":"9"}}"#;
        let line = r#"{"url":"http://x.test/","title":"T","timestamp":12,"config":{"TIMEOUT":"9"},"tags":["a","b"]}"#;
        assert_eq!(wish(foreign), page(line));
        let of = |id: &str, hook: Option<&str>| Wish::Requeue {
            id: id.parse().unwrap(),
            what: hook.map_or(Redo::OpenOrAll, |hook| Redo::Hook(hook.to_owned())),
        };
        let known = Wish::Known {
            id: "s3".parse().unwrap(),
            url: "http://x/".to_owned(),
            otherwise: Box::new(page(r#"{"url":"http://x/"}"#)),
        };
        assert_eq!(wish(r#"{"type":"Snapshot","id":"s3","url":"http://x/"}"#), known);
        assert_eq!(wish(r#"{"type":"Snapshot","id":"s3"}"#), of("s3", None));
        assert_eq!(wish(r#"{"type":"Crawl","id":"c1"}"#), of("c1", None));
        let result = r#"{"type":"ArchiveResult","id":"s3/wget/on_Snapshot__06_wget"}"#;
        assert_eq!(wish(result), of("s3", Some("on_Snapshot__06_wget")));
        let result = r#"{"type":"ArchiveResult","snapshot_id":"s3","plugin":"wget"}"#;
        assert_eq!(wish(result), of("s3", Some("wget")));
        let program = r#"{"type":"Binary","name":"wget","abspath":"/opt/wget","overrides":{}}"#;
        assert_eq!(wish(program), Wish::Program("wget".to_owned()));
        for strange in [
            r#"{"type":"Binary","abspath":"/opt/wget"}"#,
            r#"{"type":"Process","id":"r1"}"#,
            r#"{"type":"ArchiveResult","id":"0198-uuid"}"#,
            r#"{"type":"Crawl"}"#,
            r#"{"no":"type"}"#,
            "{broken",
        ] {
            let (wish, passed_on) = judge(strange).unwrap();
            assert_eq!((wish, passed_on.as_str()), (Wish::Nothing, strange));
        }
        assert!(judge("nonsense").is_err());
        assert!(judge(r#"{"type":"Snapshot","url":"file:///etc/passwd"}"#).is_err());
    }

    #[test]
    fn everything_is_passed_on_in_order() {
        let text =
            "# c\n\nhttp://a/\n{\"type\":\"Odd\"}\nnonsense\n{\"type\":\"Crawl\",\"id\":\"c1\"}\n";
        let mut echoed = Vec::new();
        let mut input = Input::default();
        let mut echo = |line: &str| {
            echoed.push(line.to_owned());
            Ok(())
        };
        input.read(text.as_bytes(), &mut echo).unwrap();
        let first = r#"{"type":"Snapshot","url":"http://a/"}"#;
        assert_eq!(echoed, [first, r#"{"type":"Odd"}"#, r#"{"type":"Crawl","id":"c1"}"#]);
        assert_eq!(input.urls.rejected[0].origin, Origin::List(Place::Line(5)));
        assert_eq!(input.requeues.len(), 1);
    }

    #[test]
    fn lists_of_other_encodings_and_with_titles_are_read() {
        let text = "\u{feff}http://a/ | A\rhttp://b/ c d e\n<http://c/>";
        let bytes: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let mut echoed = Vec::new();
        let mut input = Input::default();
        let mut echo = |line: &str| {
            echoed.push(line.to_owned());
            Ok(())
        };
        input.read(&bytes[..], &mut echo).unwrap();
        let record = |line: &String| {
            let record: Value = serde_json::from_str(line).unwrap();
            (record["url"].clone(), record["title"].clone())
        };
        let records: Vec<_> = echoed.iter().map(record).collect();
        let right = [(json!("http://a/"), json!("A")), (json!("http://c/"), Value::Null)];
        assert_eq!(records, right);
        assert_eq!(input.urls.len(), 2);
        assert_eq!(input.urls.rejected[0].origin, Origin::List(Place::Line(2)));
    }
}
