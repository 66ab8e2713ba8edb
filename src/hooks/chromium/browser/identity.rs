//! Who the browser says it is.
//!
//! A headless browser names itself `HeadlessChrome`, which many sites refuse or answer with another
//! page. It is started with the user agent that the same browser has with a window. Where its version
//! is not known before, and in replays, each tab, frame and worker has that identity instead.

use crate::process::invocation::Invocation;
use crate::visit::BrowserInfo;
use crate::visit::browser::{HEADLESS, windowed_user_agent};
use crate::visit::identity::languages;
use serde_json::{Value, json};

/// User agent of a chromium of this version with a window. All platforms and minor versions are alike
/// (user_agent_util.cc of Chromium).
pub fn with_window(version: &str) -> Option<String> {
    let major: u32 = version.trim().split('.').next()?.parse().ok()?;
    Some(format!(
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{major}.0.0.0 Safari/537.36"
    ))
}

/// Parameters of `Emulation.setUserAgentOverride` for a tab. `None` if the browser does not call
/// itself headless.
pub fn of(browser: &BrowserInfo) -> Option<Value> {
    let (_, version) = browser.user_agent.split_once(HEADLESS)?;
    let major = version.split('.').next()?;
    let architecture = if cfg!(target_arch = "aarch64") { "arm" } else { "x86" };
    Some(json!({
        "userAgent": windowed_user_agent(browser),
        "userAgentMetadata": {
            "brands": [{"brand": "Chromium", "version": major},
                {"brand": "Not)A;Brand", "version": "8"}],
            "platform": "Linux",
            "platformVersion": "",
            "architecture": architecture,
            "model": "",
            "mobile": false,
        },
    }))
}

/// Parameters of `Emulation.setUserAgentOverride` for a tab with the languages of ACCEPT_LANGUAGE,
/// to which Chromium adds weights.
pub fn of_tab(browser: &BrowserInfo, invocation: &Invocation) -> Option<Value> {
    with_languages(browser, languages(invocation))
}

/// The same with these languages, separated by commas; none for those of the browser.
pub fn with_languages(browser: &BrowserInfo, languages: String) -> Option<Value> {
    if languages.is_empty() {
        return of(browser);
    }
    // Without a user agent, that of the browser stays, and with it the headers that name its brands.
    let mut identity = of(browser).unwrap_or_else(|| json!({"userAgent": ""}));
    identity["acceptLanguage"] = languages.into();
    Some(identity)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_that_of_the_user_agent() {
        let agent = with_window("156.0.8078.108\n").unwrap();
        assert!(agent.ends_with(" Chrome/156.0.0.0 Safari/537.36"), "{agent}");
        for other in ["", "Chromium 156.0", "unknown option"] {
            assert_eq!(with_window(other), None, "{other}");
        }
    }

    #[test]
    fn headless_browser_is_named_as_one_with_a_window() {
        let mut browser = BrowserInfo {
            user_agent: "Mozilla/5.0 (X11) HeadlessChrome/156.0.0.0 Safari/537.36".to_owned(),
            ..BrowserInfo::default()
        };
        let identity = of(&browser).unwrap();
        assert_eq!(identity["userAgent"], "Mozilla/5.0 (X11) Chrome/156.0.0.0 Safari/537.36");
        let brands = &identity["userAgentMetadata"]["brands"];
        assert_eq!(brands[0]["version"], "156");
        browser.user_agent = "My Browser".to_owned();
        assert_eq!(of(&browser), None);
    }
}
