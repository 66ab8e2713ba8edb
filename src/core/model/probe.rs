//! How a status check asks a site, and which answers are good.

use super::check::CheckKind;
use super::web::shown::{HIDDEN, shown_setting};
use serde::{Deserialize, Serialize};

const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
/// Days before the end of a certificate from which on a check warns.
const CERTIFICATE_WARN_DAYS: u32 = 14;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Probe {
    /// The method; by default GET, or POST if there is data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Headers in addition to those of the client, or in their place.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// First and last status of each range that is good; empty means 200 to 299.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub expect: Vec<(u16, u16)>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keywords: Vec<String>,
    /// Texts that the body must not contain.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_keywords: Vec<String>,
    pub body: ProbeBody,
    /// Days before the end of a certificate from which on the check warns; 0 means never.
    pub certificate_warn_days: u32,
    /// Certificate of the client, for the host of the URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<ClientIdentity>,
    /// Names of the headers, in lower case, that the watch calls secret.
    #[serde(skip)]
    pub secret: Vec<String>,
}

/// Where the certificate of a client and its key are: absolute paths of files in PEM, or names of
/// credentials of the machine (systemd.exec(5), `LoadCredential=`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientIdentity {
    /// The certificate and what leads to its authority.
    pub certificate: String,
    /// The key, which may be in the same file.
    pub key: String,
}

impl ClientIdentity {
    /// Names under which the unit of a check has certificate and key.
    pub const CREDENTIALS: [&str; 2] = ["client.certificate", "client.key"];

    /// Returns the credentials of the unit of a check: name and source.
    pub fn credentials(&self) -> Vec<(String, String)> {
        let sources = [&self.certificate, &self.key];
        let pairs = ClientIdentity::CREDENTIALS.iter().zip(sources);
        pairs.map(|(name, source)| ((*name).to_owned(), source.clone())).collect()
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProbeBody {
    /// Nothing: the headers are enough.
    No,
    /// The first bytes.
    #[default]
    Start,
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
            identity: None,
            secret: Vec::new(),
        }
    }
}

impl Probe {
    pub fn method(&self) -> &str {
        let usual = if self.data.is_some() { "POST" } else { "GET" };
        self.method.as_deref().unwrap_or(usual)
    }

    /// Returns whether the file names this status, so that a redirect is an answer.
    pub fn names(&self, status: u16) -> bool {
        let mut ranges = self.expect.iter();
        ranges.any(|(first, last)| (*first..=*last).contains(&status))
    }

    /// Returns what checks of this kind use: headers and certificate of the client are for all
    /// kinds, the rest is about the one answer that a status check judges.
    pub fn for_kind(&self, kind: CheckKind) -> Probe {
        if kind == CheckKind::Status {
            return self.clone();
        }
        Probe { headers: self.headers.clone(), identity: self.identity.clone(), ..Probe::default() }
    }

    /// Returns the keys of archivist.watch(5) that are set and that only status checks use.
    pub fn keys_of_status(&self) -> Vec<&'static str> {
        let usual = Probe::default();
        let keys = [
            ("Expect=", self.expect != usual.expect),
            ("Keyword=", !self.keywords.is_empty()),
            ("NotKeyword=", !self.not_keywords.is_empty()),
            ("Method=", self.method.is_some()),
            ("Data=", self.data.is_some()),
            ("Body=", self.body != usual.body),
            ("CertificateWarnDays=", self.certificate_warn_days != usual.certificate_warn_days),
        ];
        keys.into_iter().filter(|(_, is_set)| *is_set).map(|(key, _)| key).collect()
    }

    /// Returns why lighthouse, whose browser sends headers to all sites that a page loads from and
    /// has no certificate, cannot measure the site, if it cannot.
    pub fn closed_to_lighthouse(&self) -> Option<&'static str> {
        let is_own = |(name, _): &(String, String)| !is_harmless_header(name);
        if self.identity.is_some() {
            Some("lighthouse has no ClientCertificate=")
        } else if self.headers.iter().any(is_own) {
            Some("lighthouse would send Header= to all sites that the page loads from")
        } else {
            None
        }
    }

    /// Returns the headers as users see them, without secrets.
    pub fn shown_headers(&self) -> Vec<String> {
        let shown = |(name, value): &(String, String)| {
            let is_marked = self.secret.contains(&name.to_ascii_lowercase());
            let value = if is_marked { HIDDEN.to_owned() } else { shown_header(name, value) };
            format!("{name}: {value}")
        };
        self.headers.iter().map(shown).collect()
    }

    /// Returns whether request or headers have a secret: some header, or a body, which may be that
    /// of a form with a password.
    pub fn has_secret(&self) -> bool {
        let is_secret = |(name, value): &(String, String)| {
            shown_header(name, value) != *value || self.secret.contains(&name.to_ascii_lowercase())
        };
        self.data.is_some() || self.headers.iter().any(is_secret)
    }

    pub fn expects(&self, status: u16) -> bool {
        if self.expect.is_empty() { (200..300).contains(&status) } else { self.names(status) }
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
        // Without the text, which may be a secret.
        return Err("this is not a header such as 'X-Name: value'".to_owned());
    }
    let own = ["content-length", "transfer-encoding", "connection"];
    if own.contains(&name.to_ascii_lowercase().as_str()) {
        return Err(format!("the check sets the header '{name}' itself"));
    }
    Ok((name.to_owned(), value.to_owned()))
}

/// Returns the value of a header for display: hidden if the words of its name say that it is a
/// secret, such as Authorization, Cookie and X-Api-Key; otherwise without passwords in URLs.
pub fn shown_header(name: &str, value: &str) -> String {
    shown_setting(name, value)
}

/// Returns whether other sites may get this header: it says nothing about the user.
pub fn is_harmless_header(name: &str) -> bool {
    let harmless = ["accept", "accept-language", "user-agent"];
    harmless.iter().any(|own| name.eq_ignore_ascii_case(own))
}

/// Parses where a certificate or key is: an absolute path, or the name of a credential.
///
/// # Errors
/// If it is neither.
pub fn parse_credential(text: &str) -> Result<String, String> {
    let is_name = !text.is_empty()
        && text.len() < 256
        && !text.starts_with('.')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    let is_path = text.starts_with('/')
        && !text.split('/').any(|part| part == "..")
        && !text.chars().any(char::is_control);
    if is_name || is_path {
        return Ok(text.to_owned());
    }
    Err(format!("'{text}' is neither an absolute path without '..' nor the name of a credential"))
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
        let own = Probe { expect: parse_expect("200-299, 401").unwrap(), ..Probe::default() };
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
        for bad in ["", "X-Key", ": a", "X Key: a", "A: b\nC: d", "Content-Length: 5"] {
            assert!(parse_header(bad).is_err(), "{bad}");
        }
        assert!(parse_method("GET").is_ok() && parse_method("get x").is_err());
    }

    #[test]
    fn what_a_request_leaves_out_has_a_default() {
        assert_eq!(serde_json::from_str::<Probe>("{}").unwrap(), Probe::default());
        let data = Probe { data: Some("a=1".into()), ..Probe::default() };
        assert_eq!((data.method(), Probe::default().method()), ("POST", "GET"));
    }

    #[test]
    fn secrets_are_not_shown() {
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let mut probe = Probe {
            headers: vec![
                header("Accept", "text/html"),
                header("X-Shop", "1234"),
                header("Referer", "https://a:b@c.test/"),
            ],
            ..Probe::default()
        };
        assert!(probe.has_secret(), "a password in a URL");
        probe.headers.pop();
        assert!(!probe.has_secret());
        probe.secret = vec!["x-shop".to_owned()];
        assert!(probe.has_secret());
        let secret =
            ["Authorization", "Proxy-Authorization", "Cookie", "X-Api-Key", "X-Auth-Token"];
        probe.headers.extend(secret.map(|name| header(name, "1234")));
        let shown = probe.shown_headers();
        assert_eq!(shown[..2], ["Accept: text/html", "X-Shop: (hidden)"]);
        assert!(!shown.concat().contains("1234"), "{shown:?}");
        let data = Probe { data: Some("password=1234".into()), ..Probe::default() };
        assert!(data.has_secret() && !Probe::default().has_secret());
        assert!(!parse_header("Bearer 1234").unwrap_err().contains("1234"));
    }

    #[test]
    fn each_kind_of_check_uses_its_part() {
        let identity = ClientIdentity { certificate: "/etc/a.pem".into(), key: "a.key".into() };
        let probe = Probe {
            expect: vec![(401, 401)],
            keywords: vec!["x".into()],
            headers: vec![("Accept-Language".into(), "de".into())],
            ..Probe::default()
        };
        assert_eq!(probe.for_kind(CheckKind::Status), probe);
        let of_crawl = probe.for_kind(CheckKind::Crawl);
        assert_eq!((of_crawl.headers.len(), of_crawl.keys_of_status().len()), (1, 0));
        assert_eq!(probe.keys_of_status(), ["Expect=", "Keyword="]);
        assert_eq!(probe.closed_to_lighthouse(), None);
        let mut own = probe.clone();
        own.headers.push(("X-Key".into(), "1".into()));
        assert!(own.closed_to_lighthouse().unwrap().contains("Header="));
        let of_client = Probe { identity: Some(identity), ..probe };
        assert!(of_client.closed_to_lighthouse().unwrap().contains("ClientCertificate="));
        assert!(of_client.for_kind(CheckKind::Crawl).identity.is_some());
    }

    #[test]
    fn credentials_are_paths_or_names() {
        for good in ["/etc/archivist/client.pem", "archivist.client", "a_b-c"] {
            assert_eq!(parse_credential(good).as_deref(), Ok(good));
        }
        for bad in ["", ".x", "../x", "/etc/../x", "a/b", "a b", "a:b"] {
            assert!(parse_credential(bad).is_err(), "{bad}");
        }
    }
}
