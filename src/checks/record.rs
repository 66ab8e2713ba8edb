//! What a check found, as the one line of JSON that it prints. Everything in it came from the web:
//! cleaned and bounded here, so that whoever keeps it need not be afraid of its size.

use archivist_hooks::page::html::one_line;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The most findings of one check.
const FINDINGS: usize = 1000;
/// The most bytes of them all: a record above 1 MiB is not taken.
const FINDINGS_SIZE: usize = 512 << 10;
/// The longest URL and text of a finding, in characters.
const URL: usize = 2048;
const TEXT: usize = 500;
/// The most headers, and the longest value of one in characters.
const HEADERS: usize = 100;
const HEADER: usize = 1000;

/// What is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Does it answer, how, and how fast.
    Status,
    /// The pages of the site, and what is wrong with them.
    Crawl,
    /// Four scores of the program lighthouse.
    Lighthouse,
}

impl Kind {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Status => "status",
            Kind::Crawl => "crawl",
            Kind::Lighthouse => "lighthouse",
        }
    }
}

/// The record's `type`, always the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Type {
    /// The only one.
    #[default]
    CheckResult,
}

/// Scores of 0 to 100; one that could not be computed is none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Scores {
    /// How fast the page is for who waits for it.
    pub performance: Option<f64>,
    /// Whether everybody can use it.
    pub accessibility: Option<f64>,
    /// Whether it is made as pages are today.
    pub best_practices: Option<f64>,
    /// Whether search engines can read it.
    pub seo: Option<f64>,
}

/// Something to be known about one URL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What it is, such as `broken-link`.
    pub kind: String,
    /// What it is about.
    pub url: String,
    /// The page it was found on, where that is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
    /// In words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
}

impl Finding {
    /// One about `url` itself.
    pub fn new(kind: &str, url: &str, text: &str) -> Finding {
        Finding {
            kind: kind.to_owned(),
            url: one_line(url, URL),
            on: None,
            text: one_line(text, TEXT),
        }
    }

    /// The same, found on a page.
    pub fn on(mut self, page: &str) -> Finding {
        self.on = Some(one_line(page, URL));
        self
    }

    /// As JSON, in bytes.
    fn size(&self) -> usize {
        serde_json::to_string(self).map_or(usize::MAX / FINDINGS, |text| text.len())
    }
}

/// The record of one check. What a kind of check does not have is left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckResult {
    /// `CheckResult`
    #[serde(rename = "type")]
    pub record: Type,
    /// What was checked.
    pub kind: Kind,
    /// The URL that was asked for.
    pub url: String,
    /// Where it led to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub final_url: Option<String>,
    /// Whether all is well: an answer of 2xx, a site that was read, four scores.
    pub ok: bool,
    /// Of the last answer; 526 for TLS errors, 408 where no answer came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_code: Option<u16>,
    /// From the last request to the headers of its answer, in milliseconds; 10000 where none came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_ms: Option<u64>,
    /// Of the last answer, names in lower case; several values of one name on lines of their own.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub headers: Map<String, Value>,
    /// Of lighthouse.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scores: Option<Scores>,
    /// Of a crawl, those that matter most first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// How many more findings there were than fit.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub findings_left_out: usize,
    /// How many pages were read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages: Option<usize>,
    /// Whether it ended before its time, with what it had.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    /// Whether it could not be made here at all: a program is missing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skipped: bool,
    /// What is wrong, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl CheckResult {
    /// A check that has found nothing yet, and is not well.
    pub fn new(kind: Kind, url: &str) -> CheckResult {
        CheckResult {
            record: Type::CheckResult,
            kind,
            url: url.to_owned(),
            final_url: None,
            ok: false,
            status_code: None,
            response_ms: None,
            headers: Map::new(),
            scores: None,
            findings: Vec::new(),
            findings_left_out: 0,
            pages: None,
            partial: false,
            skipped: false,
            error: None,
        }
    }

    /// What went wrong.
    pub fn with_error(mut self, error: &str) -> CheckResult {
        self.error = Some(one_line(error, TEXT));
        self
    }

    /// Keeps as many findings as fit and counts the rest.
    pub fn set_findings(&mut self, findings: Vec<Finding>) {
        let (all, mut size) = (findings.len(), 0);
        let fits = |finding: &Finding| {
            size += finding.size();
            size <= FINDINGS_SIZE
        };
        self.findings = findings
            .into_iter()
            .take(FINDINGS)
            .take_while(fits)
            .collect();
        self.findings_left_out = all - self.findings.len();
    }

    /// Keeps headers, as many and as much of them as is sensible.
    pub fn set_headers(&mut self, headers: &[(String, String)]) {
        for (name, value) in headers.iter().take(HEADERS) {
            let value = one_line(value, HEADER);
            match self.headers.get_mut(name) {
                Some(Value::String(text)) => {
                    text.push('\n');
                    text.push_str(&value);
                }
                _ => {
                    self.headers
                        .insert(one_line(name, 100), Value::String(value));
                }
            }
        }
    }

    /// The whole record on one line, without the line's end.
    pub fn line(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_one_line_and_reads_back() {
        let mut result =
            CheckResult::new(Kind::Status, "https://a.test/").with_error("a\nb\u{1b}[0m");
        result.set_headers(&[
            ("set-cookie".into(), "a=1".into()),
            ("set-cookie".into(), "b=\u{7}2".into()),
        ]);
        result.set_findings(vec![
            Finding::new("broken-link", "https://a.test/x", "404").on("https://a.test/"),
        ]);
        let line = result.line();
        assert!(line.starts_with(
            r#"{"type":"CheckResult","kind":"status","url":"https://a.test/","ok":false,"#
        ));
        assert!(!line.contains('\n') && !line.contains("\\u001b"), "{line}");
        assert!(
            line.contains(r#""set-cookie":"a=1\nb= 2""#)
                || line.contains(r#""set-cookie":"a=1\nb=2""#),
            "{line}"
        );
        assert_eq!(serde_json::from_str::<CheckResult>(&line).unwrap(), result);
    }

    #[test]
    fn nothing_makes_a_record_too_large() {
        let mut result = CheckResult::new(Kind::Crawl, "https://a.test/");
        let long = "\"\\".repeat(2_500);
        result.set_findings(vec![Finding::new("x", &long, &long).on(&long); 5000]);
        assert_eq!(result.findings.len() + result.findings_left_out, 5000);
        let headers: Vec<_> = (0..200).map(|n| (format!("h{n}"), long.clone())).collect();
        result.set_headers(&headers);
        assert!(result.line().len() < 1 << 20, "{}", result.line().len());
    }

    #[test]
    fn scores_have_the_names_that_lighthouse_gives_them() {
        let scores = Scores {
            best_practices: Some(96.0),
            ..Scores::default()
        };
        let text = serde_json::to_string(&scores).unwrap();
        assert!(text.contains(r#""best-practices":96.0"#), "{text}");
    }
}
