//! Who the browser says it is.
//!
//! A headless browser names itself `HeadlessChrome`, which many sites refuse or answer with another
//! page. A tab has the identity of the same browser with a window.

use super::session::BrowserInfo;
use serde_json::{Value, json};

const HEADLESS: &str = "HeadlessChrome/";

/// User agent of the browser as it is with a window.
pub fn user_agent(browser: &BrowserInfo) -> String {
    browser.user_agent.replace(HEADLESS, "Chrome/")
}

/// Parameters of `Emulation.setUserAgentOverride` for a tab. `None` if the browser does not call
/// itself headless, such as one that was started with `CHROME_USER_AGENT`.
pub fn of(browser: &BrowserInfo) -> Option<Value> {
    let (_, version) = browser.user_agent.split_once(HEADLESS)?;
    let major = version.split('.').next()?;
    let architecture = if cfg!(target_arch = "aarch64") {
        "arm"
    } else {
        "x86"
    };
    Some(json!({
        "userAgent": user_agent(browser),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headless_browser_is_named_as_one_with_a_window() {
        let mut browser = BrowserInfo {
            user_agent: "Mozilla/5.0 (X11) HeadlessChrome/156.0.0.0 Safari/537.36".to_owned(),
            ..BrowserInfo::default()
        };
        let identity = of(&browser).unwrap();
        assert_eq!(
            identity["userAgent"],
            "Mozilla/5.0 (X11) Chrome/156.0.0.0 Safari/537.36"
        );
        let brands = &identity["userAgentMetadata"]["brands"];
        assert_eq!(brands[0]["version"], "156");
        browser.user_agent = "My Browser".to_owned();
        assert_eq!(of(&browser), None);
    }
}
