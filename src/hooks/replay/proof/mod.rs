//! Proves that a recording shows its page: replays the page and compares it with what was seen when
//! it was recorded.

mod text;

use super::{Listed, Loaded, Requests};
use crate::picture::{Picture, PictureFormat, similarity};
use crate::visit::recording::Row;
use archivist_warc::verify::Report;
use archivist_warc::wacz::{Entry, Wacz};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io::Read;

/// Largest text or picture in bytes that is read from a recording.
const EVIDENCE_MAX_BYTES: u64 = 256 << 20;
/// Type of the requests by which chromium loads pages that a reader may open next.
const GUESSED: &str = "prefetch";

/// What a recording says about its page, in addition to what servers answered.
#[derive(Debug, Default)]
pub struct Evidence {
    /// Requests that the recorder says it kept.
    listed: Vec<Row>,
    /// Requests of which the file has an answer.
    kept: BTreeSet<(String, String)>,
    /// Requests of the page before it was ready, if they are known. Later ones are caused by hooks, which print the page or
    /// make it taller.
    own: BTreeSet<(String, String)>,
    text: Option<String>,
    /// Picture of the viewport.
    picture: Option<Vec<u8>>,
    /// Errors of the page's scripts until it was ready; `None` if the recorder did not look for them.
    errors: Option<Vec<String>>,
    /// What cannot be read of these.
    flaws: Vec<String>,
}

/// What is compared of the record `urn:pageinfo:URL`. Other recorders leave parts of it out.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PageInfo {
    requests: Vec<Row>,
    /// Errors of the page's scripts until it was ready.
    errors: Option<Vec<String>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Proof {
    pub requests: Requests,
    /// URLs that the recorded page asked for before it was ready, and the replayed page did not.
    pub not_requested: Vec<String>,
    /// Share of the requests, recorded and replayed, that were answered.
    pub resources: f64,
    /// Similarity of the text; `None` if the recording has none.
    pub text: Option<f64>,
    /// Similarity of the picture; `None` if the recording has none.
    pub picture: Option<f64>,
    /// Errors of scripts during the replay, without those that the recording had, too, if it has a list
    /// of its own.
    pub errors: Vec<String>,
    pub flaws: Vec<String>,
    /// Set if the page did not finish loading.
    pub note: Option<String>,
}

impl Evidence {
    /// Reads what a recording says about its page.
    pub fn read(file: &Wacz, url: &str) -> Evidence {
        let mut evidence = Evidence::default();
        // The text is read when the page is ready.
        let ready = newest(file, "text", url).map(|entry| entry.time);
        for entry in file.entries().iter().filter(|it| it.status.is_some()) {
            let request = (entry.method.clone(), entry.url.clone());
            if ready.is_none_or(|ready| entry.time <= ready) {
                evidence.own.insert(request.clone());
            }
            evidence.kept.insert(request);
        }
        let info = evidence.resource(file, "pageinfo", url);
        match info.map(|info| serde_json::from_slice::<PageInfo>(&info)) {
            Some(Ok(info)) => (evidence.listed, evidence.errors) = (info.requests, info.errors),
            Some(Err(error)) => evidence.flaws.push(format!("urn:pageinfo:{url}: {error}")),
            None => {}
        }
        for row in evidence.listed.iter().filter(|row| row.kind == GUESSED) {
            evidence.own.remove(&(row.method.clone(), row.url.clone()));
        }
        // Of several pages in one file, each asked for its own part of the records, if the file says for which.
        if file.pages().len() != 1 {
            let listed = evidence.listed.iter().map(|row| (row.method.clone(), row.url.clone()));
            let listed: BTreeSet<_> = listed.collect();
            evidence.own.retain(|request| listed.contains(request));
        }
        let text = evidence.resource(file, "text", url);
        evidence.text = text.map(|text| String::from_utf8_lossy(&text).into_owned());
        evidence.picture = evidence.resource(file, "view", url);
        evidence
    }

    /// The newest resource of a kind.
    fn resource(&mut self, file: &Wacz, kind: &str, url: &str) -> Option<Vec<u8>> {
        let entry = newest(file, kind, url)?;
        match read(file, entry) {
            Ok(bytes) => Some(bytes),
            Err(reason) => {
                self.flaws.push(format!("{}: {reason}", entry.url));
                None
            }
        }
    }

    pub fn viewport(&self) -> Option<(u32, u32)> {
        let picture = Picture::decode(self.picture.as_ref()?).ok()?;
        Some((picture.width.try_into().ok()?, picture.height.try_into().ok()?))
    }

    /// Format of the recorded picture.
    pub fn picture(&self) -> PictureFormat {
        self.picture.as_deref().map_or(PictureFormat::Png, PictureFormat::of)
    }

    /// Counts unanswered requests that had no response in the recording either apart from missing ones.
    fn forgive(&self, requests: &mut Requests) {
        let kept: BTreeSet<&str> = self.kept.iter().map(|(_, url)| url.as_str()).collect();
        let failed: BTreeSet<&str> = (self.listed.iter())
            .filter(|row| row.status.is_none() && row.reason.is_some())
            .map(|row| row.url.as_str())
            .filter(|url| !url.starts_with("ws") && !kept.contains(url))
            .collect();
        let before = requests.not_answered.len();
        requests.not_answered.retain(|one| !failed.contains(one.url.as_str()));
        requests.failed = (before - requests.not_answered.len()) as u64;
        requests.missing -= requests.failed;
    }

    pub fn compare(&self, mut page: Loaded) -> Proof {
        self.forgive(&mut page.requests);
        let mut flaws = self.flaws.clone();
        let listed = self.listed.iter().filter(|row| row.reason.is_none());
        let lost = listed.filter(|row| {
            let request = (row.method.clone(), row.url.clone());
            !self.kept.contains(&request)
        });
        flaws.extend(lost.map(|row| {
            format!("{} {}: listed as recorded, but not in the file", row.method, row.url)
        }));
        let picture = self.picture.as_ref().and_then(|recorded| {
            let both = (Picture::decode(recorded), Picture::decode(&page.picture));
            match both {
                (Ok(recorded), Ok(replayed)) => Some(similarity(&recorded, &replayed)),
                (Err(reason), _) | (_, Err(reason)) => {
                    flaws.push(format!("picture of the page: {reason}"));
                    None
                }
            }
        });
        let not_requested: Vec<String> = (self.own.iter())
            .filter(|(method, url)| method != "OPTIONS" && !page.used.contains(url))
            .map(|(_, url)| url.clone())
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        let answered = (page.requests.exact + page.requests.fuzzy) as f64;
        let all = answered + page.requests.missing as f64 + not_requested.len() as f64;
        let text = self.text.as_ref();
        Proof {
            not_requested,
            resources: if all > 0.0 { answered / all } else { 0.0 },
            text: text.map(|recorded| text::similarity(recorded, &page.text)),
            picture,
            requests: page.requests,
            errors: match &self.errors {
                Some(recorded) => without(page.early_errors, recorded),
                None => page.errors,
            },
            flaws,
            note: page.note,
        }
    }
}

/// The errors that are left when each of `others` has taken away one that is equal to it.
fn without(errors: Vec<String>, others: &[String]) -> Vec<String> {
    let mut others = others.to_vec();
    let is_new = |error: &String| match others.iter().position(|other| other == error) {
        Some(at) => {
            others.swap_remove(at);
            false
        }
        None => true,
    };
    errors.into_iter().filter(is_new).collect()
}

impl Proof {
    /// Whether no figure is below `least`, and the file does not contradict itself.
    pub fn holds(&self, least: f64) -> bool {
        self.flaws.is_empty() && self.fidelity() >= least
    }

    /// The lowest figure; 0 if the file contradicts itself.
    pub fn fidelity(&self) -> f64 {
        if !self.flaws.is_empty() {
            return 0.0;
        }
        let figures = [Some(self.resources), self.text, self.picture];
        figures.into_iter().flatten().fold(1.0, f64::min)
    }

    /// Requests that were not answered exactly.
    pub fn inexact(&self) -> impl Iterator<Item = &Listed> {
        self.requests.not_answered.iter().chain(&self.requests.by_rule)
    }
}

/// What in a recording contradicts itself, one text for each part.
pub fn flaws(report: Report) -> impl Iterator<Item = String> {
    report.flaws.into_iter().map(|flaw| format!("{}: {}", flaw.part, flaw.reason))
}

/// The newest resource `urn:KIND:URL`.
fn newest<'a>(file: &'a Wacz, kind: &str, url: &str) -> Option<&'a Entry> {
    let name = format!("urn:{kind}:{url}");
    let of_name = file.entries().iter().filter(|entry| entry.url == name);
    of_name.max_by_key(|entry| entry.time)
}

fn read(file: &Wacz, entry: &Entry) -> Result<Vec<u8>, String> {
    let stored = file.read(entry).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    let mut body = stored.body.take(EVIDENCE_MAX_BYTES);
    body.read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_warc::exchange::Exchange;
    use archivist_warc::wacz::{About, Page, Recording};
    use jiff::Timestamp;

    fn request(url: &str) -> (String, String) {
        ("GET".to_owned(), url.to_owned())
    }

    fn page(used: &[&str], missing: u64, text: &str) -> Loaded {
        Loaded {
            final_url: String::new(),
            requests: Requests { exact: used.len() as u64, missing, ..Requests::default() },
            used: used.iter().map(|url| (*url).to_owned()).collect(),
            errors: Vec::new(),
            early_errors: Vec::new(),
            text: text.to_owned(),
            picture: Vec::new(),
            note: None,
        }
    }

    #[test]
    fn missing_and_unwanted_resources_lower_the_share() {
        let evidence = Evidence {
            own: [request("http://a/"), request("http://a/b")].into(),
            text: Some("one two".to_owned()),
            ..Evidence::default()
        };
        let proof = |used: &[&str], missing, text| evidence.compare(page(used, missing, text));
        let whole = proof(&["http://a/", "http://a/b"], 0, "one two");
        assert_eq!((whole.resources, whole.text), (1.0, Some(1.0)));
        assert!(whole.holds(1.0));
        let missing = proof(&["http://a/", "http://a/b"], 2, "one two");
        assert_eq!(missing.resources, 0.5);
        assert!(!missing.holds(0.95));
        let unwanted = proof(&["http://a/"], 0, "one two");
        assert_eq!(unwanted.not_requested, ["http://a/b"]);
        assert_eq!(unwanted.resources, 0.5);
        assert!(!proof(&["http://a/", "http://a/b"], 0, "two one").holds(0.95));
    }

    /// Files of wget have no list of pages, and a file that was joined has those of several.
    #[test]
    fn requests_of_other_pages_are_not_those_of_the_page() {
        let own = |pages: &[&str], listed: &[&str]| {
            let file = tempfile::tempfile().unwrap();
            let about = About {
                software: "test".to_owned(),
                title: String::new(),
                main_url: "http://a/".to_owned(),
                created: Timestamp::UNIX_EPOCH,
            };
            let mut recording = Recording::create(file.try_clone().unwrap(), &about).unwrap();
            for url in ["http://a/", "http://a/s.css", "http://b/"] {
                let exchange = Exchange {
                    url: url.to_owned(),
                    method: "GET".to_owned(),
                    time: Timestamp::UNIX_EPOCH,
                    request: Vec::new(),
                    posted: None,
                    status: 200,
                    reason: String::new(),
                    response: Vec::new(),
                    protocols: Vec::new(),
                    address: None,
                    kind: String::new(),
                    truncated: None,
                };
                recording.add(&exchange, &mut &b""[..], 0).unwrap();
            }
            let requests: Vec<_> = listed
                .iter()
                .map(|url| Row {
                    method: "GET".to_owned(),
                    url: (*url).to_owned(),
                    kind: if *url == "http://b/" { GUESSED } else { "" }.to_owned(),
                    ..Row::default()
                })
                .collect();
            let info = serde_json::json!({"requests": requests}).to_string();
            let time = Timestamp::UNIX_EPOCH;
            recording
                .add_resource("urn:pageinfo:http://a/", "application/json", time, info.as_bytes())
                .unwrap();
            for url in pages {
                let url = (*url).to_owned();
                recording.add_page(Page { url, title: String::new(), time, text: None });
            }
            recording.finish().unwrap();
            let evidence = Evidence::read(&Wacz::open(file).unwrap(), "http://a/");
            evidence.own.into_iter().map(|(_, url)| url).collect::<Vec<_>>()
        };
        let all = ["http://a/", "http://a/s.css", "http://b/"];
        assert_eq!(own(&["http://a/"], &[]), all);
        assert_eq!(own(&["http://a/", "http://b/"], &["http://a/", "http://a/s.css"]), all[..2]);
        assert_eq!(own(&["http://a/"], &["http://b/"]), all[..2], "loaded by chance");
        assert_eq!(own(&["http://a/", "http://b/"], &[]), [""; 0]);
        assert_eq!(own(&[], &[]), [""; 0]);
    }

    #[test]
    fn resource_that_the_recorder_lists_must_be_in_the_file() {
        let row = |url: &str, reason: Option<&str>| Row {
            url: url.to_owned(),
            method: "GET".to_owned(),
            reason: reason.map(str::to_owned),
            ..Row::default()
        };
        let mut evidence = Evidence {
            kept: [request("http://a/")].into(),
            listed: vec![row("http://a/", None), row("ws://a/", Some("WebSocket"))],
            ..Evidence::default()
        };
        assert!(evidence.compare(page(&["http://a/"], 0, "")).holds(1.0));
        evidence.listed.push(row("http://a/gone", None));
        let proof = evidence.compare(page(&["http://a/"], 0, ""));
        assert!(!proof.holds(0.0));
        assert_eq!(proof.flaws, ["GET http://a/gone: listed as recorded, but not in the file"]);
    }

    #[test]
    fn what_failed_in_the_recording_is_not_missing() {
        let row = |url: &str, status| Row {
            url: url.to_owned(),
            method: "GET".to_owned(),
            status,
            reason: Some("net::ERR_FAILED".to_owned()),
            ..Row::default()
        };
        let evidence = Evidence {
            kept: [request("http://a/"), request("http://a/second")].into(),
            listed: vec![
                row("http://a/down", None),
                row("http://a/long", Some(200)),
                row("http://a/second", None),
                row("ws://a/", None),
            ],
            errors: Some(vec!["x".to_owned(), "y".to_owned()]),
            ..Evidence::default()
        };
        let mut replayed = page(&["http://a/"], 4, "");
        let urls = ["http://a/down", "http://a/long", "http://a/second", "ws://a/"];
        replayed.requests.not_answered = urls
            .map(|url| Listed {
                method: "GET".to_owned(),
                url: url.to_owned(),
                kind: "fetch".to_owned(),
                reason: "not recorded".to_owned(),
            })
            .to_vec();
        replayed.early_errors = ["y", "x", "x"].map(str::to_owned).to_vec();
        replayed.errors = ["of a frame of another site"].map(str::to_owned).to_vec();
        let proof = evidence.compare(replayed);
        assert_eq!((proof.requests.failed, proof.requests.missing), (1, 3));
        assert_eq!(proof.requests.not_answered.len(), 3);
        assert_eq!((proof.resources, proof.errors), (0.25, vec!["x".to_owned()]));
    }

    #[test]
    fn page_without_any_request_is_no_proof() {
        let proof = Evidence::default().compare(page(&[], 0, ""));
        assert!(!proof.holds(0.01));
    }
}
