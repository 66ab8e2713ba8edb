//! Result of a check: the line of JSON that it prints. All text came from the web; it is cleaned
//! and bounded here.

use archivist_core::model::{HIDDEN, Time, shown_header};
use archivist_hooks::page::html::one_line;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Most findings of one check.
const FINDINGS: usize = 1000;
/// Most bytes of all findings: a record above 1 MiB is refused.
const FINDINGS_SIZE: usize = 512 << 10;
/// Longest URL and text of a finding, in characters.
const URL: usize = 2048;
const TEXT: usize = 500;
/// Most headers, and longest value of a header in characters.
const HEADERS: usize = 100;
const HEADER: usize = 1000;

archivist_core::text::named! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Kind {
        /// Whether the site answers, how, and how fast.
        Status = "status",
        Crawl = "crawl",
        Lighthouse = "lighthouse",
    }
}

/// The record's `type`, always the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Type {
    /// The only value.
    #[default]
    CheckResult,
}

/// Scores from 0 to 100; `None` if not computed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Scores {
    pub performance: Option<f64>,
    pub accessibility: Option<f64>,
    pub best_practices: Option<f64>,
    pub seo: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Kind, such as `broken-link`.
    pub kind: String,
    pub url: String,
    /// Page with the link, if it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
}

impl Finding {
    /// Returns a finding about `url`.
    pub fn new(kind: &str, url: &str, text: &str) -> Finding {
        Finding {
            kind: kind.to_owned(),
            url: one_line(url, URL),
            on: None,
            text: one_line(text, TEXT),
        }
    }

    /// Returns the finding with the page that it was found on.
    pub fn on(mut self, page: &str) -> Finding {
        self.on = Some(one_line(page, URL));
        self
    }

    /// Returns its size as JSON, in bytes.
    fn size(&self) -> usize {
        serde_json::to_string(self).map_or(usize::MAX / FINDINGS, |text| text.len())
    }
}

/// Record of one check. Fields that a kind does not have are left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckResult {
    /// `CheckResult`
    #[serde(rename = "type")]
    pub record: Type,
    pub kind: Kind,
    pub url: String,
    /// URL after redirects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub final_url: Option<String>,
    /// Success: an answer of 2xx, a site that was read, four scores.
    pub ok: bool,
    /// Status of the last answer; 526 for TLS errors, 408 without an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_code: Option<u16>,
    /// Time from the last request to the headers of its answer, in milliseconds; 10000 without an
    /// answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_ms: Option<u64>,
    /// When the first of the certificates of all answers expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate_expires: Option<Time>,
    /// Whole days from now until then; negative after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate_days: Option<i64>,
    /// Days before then from which on the check warns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate_warn_days: Option<u32>,
    /// A problem that will make the check fail, such as a certificate that expires soon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    /// Headers of the last answer, names in lower case; several values of one name on separate
    /// lines.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub headers: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scores: Option<Scores>,
    /// Findings of a crawl, most severe first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// Number of findings beyond the limit.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub findings_left_out: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages: Option<usize>,
    /// Whether it ended early, with the findings so far.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    /// Whether the check cannot run here: a program or a certificate of the client is missing, or the
    /// machine does not reach the Internet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skipped: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Returns a cookie with its name and attributes.
fn without_value(cookie: &str) -> String {
    let (pair, attributes) = match cookie.split_once(';') {
        Some((pair, attributes)) => (pair, format!(";{attributes}")),
        None => (cookie, String::new()),
    };
    match pair.split_once('=') {
        Some((name, _)) => format!("{name}={HIDDEN}{attributes}"),
        None => format!("{HIDDEN}{attributes}"),
    }
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl CheckResult {
    /// Returns an unsuccessful result without findings.
    pub fn new(kind: Kind, url: &str) -> CheckResult {
        CheckResult {
            record: Type::CheckResult,
            kind,
            url: url.to_owned(),
            final_url: None,
            ok: false,
            status_code: None,
            response_ms: None,
            certificate_expires: None,
            certificate_days: None,
            certificate_warn_days: None,
            warning: None,
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

    /// A machine that does not reach the Internet, for this reason, proves nothing about a site.
    pub fn excused(mut self, excuse: Option<String>) -> CheckResult {
        if let Some(why) = excuse {
            self.skipped = true;
            (self.status_code, self.response_ms) = (None, None);
            return self.with_error(&why);
        }
        self
    }

    /// Sets the error message.
    pub fn with_error(mut self, error: &str) -> CheckResult {
        self.error = Some(one_line(error, TEXT));
        self
    }

    /// Keeps findings up to the limits and counts the rest.
    pub fn set_findings(&mut self, findings: Vec<Finding>) {
        let (all, mut size) = (findings.len(), 0);
        let fits = |finding: &Finding| {
            size += finding.size();
            size <= FINDINGS_SIZE
        };
        self.findings = findings.into_iter().take(FINDINGS).take_while(fits).collect();
        self.findings_left_out = all - self.findings.len();
    }

    /// Keeps headers up to the limits, without secrets: those of cookies may be the session of the
    /// user whose name and password the watch has.
    pub fn set_headers(&mut self, headers: &[(String, String)]) {
        for (name, value) in headers.iter().take(HEADERS) {
            let value = match name.as_str() {
                "set-cookie" => without_value(value),
                _ => shown_header(name, value),
            };
            let value = one_line(&value, HEADER);
            match self.headers.get_mut(name) {
                Some(Value::String(text)) => {
                    text.push('\n');
                    text.push_str(&value);
                }
                _ => {
                    self.headers.insert(one_line(name, 100), Value::String(value));
                }
            }
        }
    }

    /// Returns the record as one line, without line feed.
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
            ("set-cookie".into(), "a=1; Path=/".into()),
            ("set-cookie".into(), "b=\u{7}2".into()),
            ("x-auth-token".into(), "1234".into()),
            ("server".into(), "a\u{7}b".into()),
        ]);
        result.set_findings(vec![
            Finding::new("broken-link", "https://a.test/x", "404").on("https://a.test/"),
        ]);
        let line = result.line();
        assert!(line.starts_with(
            r#"{"type":"CheckResult","kind":"status","url":"https://a.test/","ok":false,"#
        ));
        assert!(!line.contains('\n') && !line.contains("\\u001b"), "{line}");
        assert_eq!(result.headers["set-cookie"], "a=(hidden); Path=/\nb=(hidden)");
        assert_eq!(result.headers["x-auth-token"], "(hidden)");
        assert!(!line.contains("\\u0007"), "{line}");
        assert_eq!(serde_json::from_str::<CheckResult>(&line).unwrap(), result);
    }

    #[test]
    fn a_record_never_exceeds_its_limit() {
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
        let scores = Scores { best_practices: Some(96.0), ..Scores::default() };
        let text = serde_json::to_string(&scores).unwrap();
        assert!(text.contains(r#""best-practices":96.0"#), "{text}");
    }
}
