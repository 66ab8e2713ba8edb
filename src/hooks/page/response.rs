//! The head of a response.

use archivist_core::model::is_web;
use serde::{Deserialize, Serialize};
use url::Url;

/// Names (in lower case) and values of a response's headers in their order.
pub type Headers = Vec<(String, String)>;

/// One response: a redirect, or the last response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResponseHead {
    pub url: Url,
    pub status: u16,
    /// The reason phrase, which is often empty.
    pub reason: String,
    /// The headers. Names are in lower case.
    pub headers: Headers,
}

impl ResponseHead {
    pub fn is_redirect(&self) -> bool {
        (300..400).contains(&self.status) && self.header("location").is_some()
    }

    /// URL to which the response redirects, if it is of http or https.
    pub fn target(&self) -> Option<Url> {
        let target = self.url.join(self.header("location")?).ok()?;
        is_web(target.as_str()).then_some(target)
    }

    /// Value of the first header with this name, which must be in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }
}
