//! Request of a check: one JSON object, or a URL.

use super::http::{Patience, USER_AGENT};
use archivist_core::model::{PageUrl, Probe, Reach};
use serde::Deserialize;
use std::path::PathBuf;
use std::time::Duration;
use url::Url;

/// Upper bound of every time limit.
const LONGEST: f64 = 86_400.0;

#[derive(Clone, Debug)]
pub struct Request {
    /// An http or https URL.
    pub url: Url,
    pub settings: Settings,
}

/// Settings of a check. Times are in seconds.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Settings {
    pub user_agent: Option<String>,
    /// Limit for a connection.
    pub connect_s: Option<f64>,
    /// Limit for headers, and for a body.
    pub read_s: Option<f64>,
    /// Limit for the whole check.
    pub deadline_s: Option<f64>,
    /// Most URLs of the site that a crawl requests.
    pub pages: Option<usize>,
    /// Concurrent requests of a crawl.
    pub at_once: Option<usize>,
    /// Whether a crawl checks links to other sites.
    pub external: Option<bool>,
    /// How a status check asks, and what it expects.
    #[serde(flatten)]
    pub probe: Probe,
    /// Library of the data directory, where programs are searched.
    pub lib_dir: Option<PathBuf>,
    pub lighthouse: Option<PathBuf>,
    pub chromium: Option<PathBuf>,
    /// What the check may reach in addition to the Internet; never taken from the request.
    #[serde(skip)]
    pub reach: Reach,
}

impl Settings {
    /// Returns the time limits of the settings, or the defaults of a kind of check.
    pub fn patience(&self, usual: Patience) -> Patience {
        Patience {
            connect: seconds(self.connect_s, usual.connect),
            read: seconds(self.read_s, usual.read),
        }
    }

    /// For the whole check.
    pub fn deadline(&self, usual: Duration) -> Duration {
        seconds(self.deadline_s, usual)
    }

    pub fn user_agent(&self) -> &str {
        let own = self.user_agent.as_deref().map(str::trim);
        own.filter(|text| !text.is_empty()).unwrap_or(USER_AGENT)
    }
}

fn seconds(value: Option<f64>, usual: Duration) -> Duration {
    let sensible = value.filter(|s| s.is_finite() && *s > 0.0);
    sensible.map_or(usual, |s| Duration::from_secs_f64(s.clamp(0.001, LONGEST)))
}

#[derive(Deserialize)]
struct Written {
    url: String,
    settings: Option<Settings>,
}

impl Request {
    /// Returns a request with the defaults, or why the URL is invalid.
    pub fn of(url: &str) -> Result<Request, String> {
        let page = PageUrl::parse(url).map_err(|error| error.to_string())?;
        let url = Url::parse(page.as_str()).map_err(|error| error.to_string())?;
        Ok(Request { url, settings: Settings::default() })
    }

    /// Parses `{"url":…, "settings":{…}}`; unknown keys are ignored, so that a newer caller can use
    /// an older program.
    pub fn parse(text: &[u8]) -> Result<Request, String> {
        let written: Written = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        let request = Request::of(&written.url)?;
        Ok(Request { settings: written.settings.unwrap_or_default(), ..request })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn invalid_settings_become_defaults() {
        let text = br#"{"url":"http://a.test/","settings":{"connect_s":-1,"read_s":2.5,"deadline_s":1e300,"more":[]}}"#;
        let request = Request::parse(text).unwrap();
        let patience = request.settings.patience(Patience::of(3, 10));
        assert_eq!(patience.connect, Duration::from_secs(3));
        assert_eq!(patience.read, Duration::from_millis(2500));
        assert_eq!(request.settings.deadline(Duration::ZERO), Duration::from_secs(86_400));
        assert_eq!(request.settings.user_agent(), USER_AGENT);
        assert!(Request::parse(br#"{"url":"http://a.test/","settings":null}"#).is_ok());
    }

    #[test]
    fn only_web_pages_are_checked() {
        for text in
            ["", "{}", "[]", r#"{"url":"file:///etc/passwd"}"#, r#"{"url":"x"}"#, r#"{"url":7}"#]
        {
            assert!(Request::parse(text.as_bytes()).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_request_is_too_odd(text in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Request::parse(&text);
        }
    }
}
