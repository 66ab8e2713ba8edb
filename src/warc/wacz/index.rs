//! Index lines of a WARC file from its records.

use crate::cdxj::{Line, Record};
use crate::head;
use crate::record::{self, Found};
use crate::{posted, surt};
use jiff::Timestamp;
use std::collections::HashMap;

/// Collects the lines of a file's records, one after another.
#[derive(Default)]
pub(crate) struct Lines {
    lines: Vec<Line>,
    /// The line of each response, by the identifier of its record.
    responses: HashMap<String, usize>,
    /// Method and body of each request, by the identifier of its record.
    requests: HashMap<String, (String, Option<String>)>,
}

impl Lines {
    pub(crate) fn add(&mut self, found: &Found, filename: &str) {
        let id = found.field("warc-record-id").to_owned();
        let other = found.field("warc-concurrent-to").to_owned();
        if found.field("warc-type") == "request" {
            let line = found.http.as_ref().map(|http| http.first.as_str());
            let method = line.and_then(|line| line.split(' ').next());
            let request = (method.unwrap_or("GET").to_ascii_uppercase(), found.posted.clone());
            match self.responses.get(&other) {
                Some(at) => set_request(&mut self.lines[*at], &request),
                None => {
                    self.requests.insert(id, request);
                }
            }
            return;
        }
        let Some(mut line) = line(found, filename) else {
            return;
        };
        if let Some(request) = self.requests.remove(&other) {
            set_request(&mut line, &request);
        }
        self.responses.insert(id, self.lines.len());
        self.lines.push(line);
    }

    pub(crate) fn into_lines(self) -> Vec<Line> {
        self.lines
    }
}

fn set_request(line: &mut Line, request: &(String, Option<String>)) {
    let (method, body) = request;
    if method == "GET" {
        return;
    }
    let body = body.as_deref().filter(|body| !body.is_empty());
    line.key = surt::key(&posted::url_with(&line.record.url, method, body));
    line.record.method = Some(method.clone());
    line.record.posted = body.map(str::to_owned);
}

/// The line of a record that answers requests. `None` for all others.
pub(super) fn line(found: &Found, filename: &str) -> Option<Line> {
    let kind = found.field("warc-type");
    let is_indexed = match kind {
        "response" | "revisit" => true,
        "resource" | "metadata" => found.media_type() != record::FIELDS,
        _ => false,
    };
    if !is_indexed || found.url().is_empty() {
        return None;
    }
    let time: Timestamp = found.field("warc-date").parse().ok()?;
    let http = found.http.as_ref();
    let media_type = match (kind, http) {
        ("revisit", _) => Some("warc/revisit".to_owned()),
        (_, Some(http)) => head::value(&http.fields, "content-type").map(record::essence),
        (_, None) => Some(found.media_type()),
    };
    let digests = ["warc-payload-digest", "warc-block-digest"];
    let digest = digests.iter().map(|name| found.field(name)).find(|digest| !digest.is_empty());
    let status = http.and_then(|http| head::status(&http.first));
    let url = found.url().to_owned();
    Some(Line {
        key: surt::key(&url),
        time,
        record: Record {
            url,
            mime: media_type.filter(|value| !value.is_empty()),
            status: status.map(|(status, _)| status.into()),
            digest: digest.map(str::to_owned),
            length: Some(found.length),
            offset: Some(found.offset),
            filename: filename.to_owned(),
            date: Some(time.to_string()),
            ..Record::default()
        },
    })
}
