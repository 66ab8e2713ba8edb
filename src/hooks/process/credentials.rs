//! User name and password in a page's URL: taken out of it once, before anything is written, and
//! sent to the page's server alone.

use percent_encoding::percent_decode_str;
use std::fmt;
use url::{Origin, Url};

#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// User name, decoded.
    pub user: String,
    /// Password, decoded; empty if the URL has none.
    pub password: String,
    /// Host of the server without brackets, and its origin.
    host: String,
    origin: Origin,
}

/// Shows neither user name nor password.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credentials for {}", self.host)
    }
}

impl Credentials {
    /// Takes user name and password out of `url`. A URL that has none stays as it is, to the byte.
    pub fn take(url: &str) -> (String, Option<Credentials>) {
        let Ok(mut parsed) = Url::parse(url) else {
            return (archivist_core::model::without_userinfo(url), None);
        };
        if parsed.username().is_empty() && parsed.password().is_none() {
            return (url.to_owned(), None);
        }
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let credentials = Credentials {
            user: decoded(parsed.username()),
            password: decoded(parsed.password().unwrap_or_default()),
            host: host(&parsed),
            origin: parsed.origin(),
        };
        // These fail only for URLs without a host, which have no user name.
        let _ = parsed.set_password(None);
        let _ = parsed.set_username("");
        (parsed.into(), Some(credentials))
    }

    /// Whether `url` is on the server that they are for: same scheme, host and port.
    pub fn belong_to(&self, url: &Url) -> bool {
        url.origin() == self.origin
    }

    /// The server as an origin, such as `https://a.test:8443`.
    pub fn origin(&self) -> String {
        self.origin.ascii_serialization()
    }

    /// A line of a configuration file of curl (curl(1), `--config`).
    pub fn curl_config(&self) -> String {
        let text = format!("{}:{}", self.user, self.password);
        format!("user = {}\n", quoted(&text))
    }

    /// A `.netrc` file, from which wget sends them to this host alone, and only when it asks.
    pub fn netrc(&self) -> String {
        format!(
            "machine {} login {} password {}\n",
            self.host,
            quoted(&self.user),
            quoted(&self.password)
        )
    }
}

fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    host.trim_matches(['[', ']']).to_owned()
}

/// A text in double quotes, in which a backslash escapes the next character.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars().filter(|c| !c.is_control()) {
        if matches!(c, '"' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_name_and_password_are_taken_out_of_the_url() {
        let (url, taken) = Credentials::take("http://re%40der:s3%22c%5Cret@a.test:81/x?y#z");
        let taken = taken.unwrap();
        assert_eq!(url, "http://a.test:81/x?y#z");
        assert_eq!((taken.user.as_str(), taken.password.as_str()), ("re@der", "s3\"c\\ret"));
        assert_eq!(taken.curl_config(), "user = \"re@der:s3\\\"c\\\\ret\"\n");
        assert_eq!(taken.netrc(), "machine a.test login \"re@der\" password \"s3\\\"c\\\\ret\"\n");
        assert!(!format!("{taken:?}").contains("s3"));
        let belongs = |url: &str| taken.belong_to(&Url::parse(url).unwrap());
        assert!(belongs("http://a.test:81/other"));
        assert!(
            !belongs("http://a.test/x")
                && !belongs("https://a.test:81/")
                && !belongs("http://b.test:81/")
        );
    }

    #[test]
    fn url_without_user_name_is_unchanged() {
        for url in ["http://a.test", "HTTP://A.test/%zz?a@b:c", "nonsense", ""] {
            assert_eq!(Credentials::take(url), (url.to_owned(), None), "{url}");
        }
        assert_eq!(Credentials::take("http://u:secret@[bad/").0, "http://[bad/");
    }
}
