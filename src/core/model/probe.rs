//! How a status check asks a site, and which answers are good.

use serde::{Deserialize, Serialize};

/// Methods that a check may use.
const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
/// Days before the end of a certificate from which on a check warns.
const CERTIFICATE_WARN_DAYS: u32 = 14;

/// Request and expectations of a status check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Probe {
    /// The method; by default GET, or POST if there is data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Headers in addition to those of the client, or in their place.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    /// Body of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// First and last status of each range that is good; empty means 200 to 299.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub expect: Vec<(u16, u16)>,
    /// Texts that the body must contain.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keywords: Vec<String>,
    /// Texts that the body must not contain.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_keywords: Vec<String>,
    /// How much of the body must arrive.
    pub body: ProbeBody,
    /// Days before the end of a certificate from which on the check warns; 0 means never.
    pub certificate_warn_days: u32,
}

/// How much of a body must arrive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProbeBody {
    /// Nothing: the headers are enough.
    No,
    /// The first bytes.
    #[default]
    Start,
    /// All of it.
    Whole,
}

impl Default for Probe {
    fn default() -> Probe {
        Probe {
            method: None,
            headers: Vec::new(),
            data: None,
            expect: Vec::new(),
            keywords: Vec::new(),
            not_keywords: Vec::new(),
            body: ProbeBody::default(),
            certificate_warn_days: CERTIFICATE_WARN_DAYS,
        }
    }
}

impl Probe {
    /// Returns the method.
    pub fn method(&self) -> &str {
        let usual = if self.data.is_some() { "POST" } else { "GET" };
        self.method.as_deref().unwrap_or(usual)
    }

    /// Returns whether the file names this status, so that a redirect is an answer.
    pub fn names(&self, status: u16) -> bool {
        let mut ranges = self.expect.iter();
        ranges.any(|(first, last)| (*first..=*last).contains(&status))
    }

    /// Returns whether this status is good.
    pub fn expects(&self, status: u16) -> bool {
        if self.expect.is_empty() {
            (200..300).contains(&status)
        } else {
            self.names(status)
        }
    }

    /// Returns why a body is not the expected one, if it is not.
    pub fn complaint(&self, body: &str) -> Option<String> {
        let missing = self.keywords.iter().find(|text| !body.contains(*text));
        let found = self.not_keywords.iter().find(|text| body.contains(*text));
        let missing = missing.map(|text| format!("the page does not contain '{text}'"));
        missing.or_else(|| found.map(|text| format!("the page contains '{text}'")))
    }

    /// Returns whether the check reads the body for keywords.
    pub fn has_keywords(&self) -> bool {
        !self.keywords.is_empty() || !self.not_keywords.is_empty()
    }
}

/// Parses a list of status numbers and ranges such as `200-299,401`.
///
/// # Errors
/// If an element is neither, or not between 100 and 599.
pub fn parse_expect(text: &str) -> Result<Vec<(u16, u16)>, String> {
    let words = text.split([',', ' ', '\t']).filter(|word| !word.is_empty());
    words
        .map(|word| {
            let (first, last) = word.split_once('-').unwrap_or((word, word));
            let number = |text: &str| {
                let number = text.parse::<u16>().ok();
                number.filter(|status| (100..600).contains(status))
            };
            match (number(first), number(last)) {
                (Some(first), Some(last)) if first <= last => Ok((first, last)),
                _ => Err(format!(
                    "'{word}' is neither a status from 100 to 599 nor a range such as 200-299"
                )),
            }
        })
        .collect()
}

/// Parses the name of a method.
///
/// # Errors
/// If a check cannot use the method.
pub fn parse_method(text: &str) -> Result<String, String> {
    if METHODS.contains(&text) {
        Ok(text.to_owned())
    } else {
        let known = METHODS.join(", ");
        Err(format!("'{text}' is not a method of a check: {known}"))
    }
}

/// Parses a header, `Name: value`.
///
/// # Errors
/// If the name is not one (RFC 9110), or if the client must set this header itself.
pub fn parse_header(text: &str) -> Result<(String, String), String> {
    let is_name_byte = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    let (name, value) = text.split_once(':').unwrap_or((text, ""));
    let (name, value) = (name.trim(), value.trim());
    let is_name = !name.is_empty() && name.chars().all(is_name_byte);
    if !is_name || !text.contains(':') || value.chars().any(char::is_control) {
        return Err(format!("'{text}' is not a header such as 'X-Name: value'"));
    }
    let own = ["content-length", "transfer-encoding", "connection"];
    if own.contains(&name.to_ascii_lowercase().as_str()) {
        return Err(format!("the check sets the header '{name}' itself"));
    }
    Ok((name.to_owned(), value.to_owned()))
}

/// Parses how much of a body must arrive.
///
/// # Errors
/// If the word is unknown.
pub fn parse_body(text: &str) -> Result<ProbeBody, String> {
    match text {
        "no" => Ok(ProbeBody::No),
        "start" => Ok(ProbeBody::Start),
        "whole" => Ok(ProbeBody::Whole),
        _ => Err(format!("'{text}' is none of 'no', 'start' and 'whole'")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_expected_answers_are_good() {
        let usual = Probe::default();
        assert!(usual.expects(204) && !usual.expects(301) && !usual.names(200));
        let own = Probe {
            expect: parse_expect("200-299, 401").unwrap(),
            ..Probe::default()
        };
        assert!(own.expects(200) && own.expects(401) && !own.expects(403));
        for bad in ["2xx", "299-200", "99", "600", "200-", "-"] {
            assert!(parse_expect(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn keywords_are_looked_for() {
        let probe = Probe {
            keywords: vec!["Welcome".into(), "shop".into()],
            not_keywords: vec!["Fatal error".into()],
            ..Probe::default()
        };
        assert_eq!(probe.complaint("Welcome to the shop"), None);
        let missing = probe.complaint("Welcome").unwrap();
        assert_eq!(missing, "the page does not contain 'shop'");
        let found = probe.complaint("Welcome to the shop. Fatal error").unwrap();
        assert_eq!(found, "the page contains 'Fatal error'");
    }

    #[test]
    fn headers_cannot_become_requests() {
        let header = parse_header("X-Key : a: b ").unwrap();
        assert_eq!(header, ("X-Key".to_owned(), "a: b".to_owned()));
        for bad in [
            "",
            "X-Key",
            ": a",
            "X Key: a",
            "A: b\nC: d",
            "Content-Length: 5",
        ] {
            assert!(parse_header(bad).is_err(), "{bad}");
        }
        assert!(parse_method("GET").is_ok() && parse_method("get x").is_err());
    }

    #[test]
    fn what_a_request_leaves_out_has_a_default() {
        assert_eq!(
            serde_json::from_str::<Probe>("{}").unwrap(),
            Probe::default()
        );
        let data = Probe {
            data: Some("a=1".into()),
            ..Probe::default()
        };
        assert_eq!((data.method(), Probe::default().method()), ("POST", "GET"));
    }
}
