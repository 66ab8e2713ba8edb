//! Cookies that a tab gets before its first navigation: those of the profile that the browser was
//! started with, and those of `COOKIES_FILE`. Every tab has a browser context of its own, which is
//! empty at first.

use crate::chromium::cdp::{CdpError, Ignored, Session};
use crate::process::files;
use crate::process::invocation::Invocation;
use archivist_core::model::cookies::{self, CookieFile};
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Largest cookie file in bytes.
const FILE_MAX_BYTES: u64 = 4 << 20;
/// Refused cookies that are reported individually.
const REFUSED_SHOWN: usize = 20;

/// One cookie, under the names of Chromium's protocol.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cookie {
    pub(crate) name: String,
    pub(crate) value: String,
    /// With a leading dot if it is also sent to subdomains.
    domain: String,
    path: String,
    secure: bool,
    pub(crate) http_only: bool,
    /// Seconds since 1970; 0 and less for a cookie of the session.
    expires: f64,
    same_site: Option<String>,
}

impl Cookie {
    fn of(cookie: cookies::Cookie) -> Cookie {
        Cookie {
            name: cookie.name,
            value: cookie.value,
            domain: if cookie.subdomains { format!(".{}", cookie.host) } else { cookie.host },
            path: cookie.path,
            secure: cookie.secure,
            http_only: cookie.http_only,
            expires: cookie.expires.unwrap_or(0) as f64,
            same_site: None,
        }
    }

    /// The cookie with another value and without an end.
    pub(crate) fn with(&self, value: String) -> Cookie {
        Cookie { value, expires: 0.0, ..self.clone() }
    }

    /// Whether it is one of this host.
    pub(crate) fn is_of(&self, host: &str) -> bool {
        let rest = self.domain.strip_prefix('.').and_then(|domain| host.strip_suffix(domain));
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.')) || self.domain == host
    }

    /// Parameters of Storage.setCookies. A cookie of one host is set by its URL: with a domain, it
    /// would also be sent to subdomains.
    pub(crate) fn param(&self) -> Value {
        let mut param = json!({"name": self.name, "value": self.value, "path": self.path,
            "secure": self.secure, "httpOnly": self.http_only});
        if self.domain.starts_with('.') {
            param["domain"] = self.domain.as_str().into();
        } else {
            let scheme = if self.secure { "https" } else { "http" };
            param["url"] = format!("{scheme}://{}{}", self.domain, self.path).into();
        }
        if self.expires > 0.0 {
            param["expires"] = self.expires.into();
        }
        if let Some(same_site) = &self.same_site {
            param["sameSite"] = same_site.as_str().into();
        }
        param
    }
}

#[derive(Deserialize)]
pub(crate) struct Stored {
    pub(crate) cookies: Vec<Cookie>,
}

/// Sets the cookies of the browser's profile and of the cookie file in a browser context; the file
/// wins. A cookie that chromium does not accept is left out.
pub async fn load(
    browser: &Session,
    context: &str,
    invocation: &Invocation,
    has_profile: bool,
) -> Result<(), CdpError> {
    let mut cookies = Vec::new();
    if has_profile {
        let stored: Stored = browser.call("Storage.getCookies", json!({})).await?;
        cookies = stored.cookies;
    }
    cookies.extend(of_file(&invocation.settings.text("COOKIES_FILE")));
    if cookies.is_empty() {
        return Ok(());
    }
    let set = async |cookies: &[Cookie]| {
        let cookies: Vec<Value> = cookies.iter().map(Cookie::param).collect();
        let params = json!({"cookies": cookies, "browserContextId": context});
        browser.call::<Ignored>("Storage.setCookies", params).await
    };
    // Chromium refuses all cookies of a call for one that is invalid.
    if !matches!(set(&cookies).await, Err(CdpError::Refused { .. })) {
        return Ok(());
    }
    for cookie in &cookies {
        match set(std::slice::from_ref(cookie)).await {
            Err(CdpError::Refused { message, .. }) => {
                eprintln!("failed to set a cookie of {}: {message}", cookie.domain);
            }
            other => other.map(drop)?,
        }
    }
    Ok(())
}

/// The cookies of a file. Empty if the file cannot be read.
fn of_file(path: &str) -> Vec<Cookie> {
    if path.is_empty() {
        return Vec::new();
    }
    let bytes = files::read_start(Path::new(path), FILE_MAX_BYTES);
    let bytes = bytes.ok_or_else(|| "it is empty or not a file".to_owned());
    let file = match bytes.and_then(|bytes| CookieFile::read(&bytes, None)) {
        Ok(file) => file,
        Err(why) => {
            eprintln!("failed to read the cookie file '{path}': {why}, ignoring");
            return Vec::new();
        }
    };
    for refused in file.refused.iter().take(REFUSED_SHOWN) {
        eprintln!("cookie file '{path}': {refused}, ignoring");
    }
    file.cookies.into_iter().map(Cookie::of).collect()
}

/// The profile of the persona in use, if it has one.
pub fn profile(invocation: &Invocation) -> Option<PathBuf> {
    let all = invocation.settings.variable("PERSONAS_DIR")?;
    let name = invocation.settings.text("ACTIVE_PERSONA");
    if name.is_empty() || name.contains('/') || name.starts_with('.') {
        return None;
    }
    let profile = Path::new(all).join(name).join(crate::persona::PROFILE);
    profile.is_dir().then_some(profile)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_of_a_file_are_passed_on() {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("cookies.txt");
        let text = "\u{feff}# Netscape HTTP Cookie File\r\n\r\n\
            a.test\tFALSE\t/x\tFALSE\t0\tid\tone\ttwo\r\n\
            #HttpOnly_.b.test TRUE / TRUE 1900000000 key\n\
            c.test\tTRUE\t/\tFALSE\t1900000000\tempty\n\
            broken line\n";
        std::fs::write(&path, text).unwrap();
        let cookies = of_file(path.to_str().unwrap());
        let cookies: Vec<Value> = cookies.iter().map(Cookie::param).collect();
        assert_eq!(
            cookies,
            [
                json!({"name": "id", "value": "one\ttwo", "path": "/x", "secure": false,
                    "httpOnly": false, "url": "http://a.test/x"}),
                json!({"name": "key", "value": "", "path": "/", "secure": true,
                    "httpOnly": true, "domain": ".b.test", "expires": 1_900_000_000.0}),
                json!({"name": "empty", "value": "", "path": "/", "secure": false,
                    "httpOnly": false, "domain": ".c.test", "expires": 1_900_000_000.0}),
            ]
        );
    }

    #[test]
    fn cookies_of_a_profile_are_passed_on() {
        let stored = json!({"name": "id", "value": "x", "domain": "a.test", "path": "/",
            "expires": -1, "size": 3, "httpOnly": true, "secure": true, "session": true,
            "sameSite": "Lax", "priority": "Medium"});
        let cookie: Cookie = serde_json::from_value(stored).unwrap();
        assert_eq!(
            cookie.param(),
            json!({"name": "id", "value": "x", "path": "/", "secure": true, "httpOnly": true,
                "url": "https://a.test/", "sameSite": "Lax"})
        );
    }
}
