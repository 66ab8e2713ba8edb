//! Who asks: wget and curl send the same user agent and languages as the browser, so that all
//! copies of a snapshot are of one page.

use super::browser;
use crate::process::invocation::Invocation;

/// User agent when neither a setting nor a browser of the crawl has one: that of Chromium on Linux.
const DEFAULT_USER_AGENT: &str = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 \
    (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36";

/// User agent of a program: its setting, else that of the crawl's browser.
pub fn user_agent(invocation: &Invocation, key: &str) -> String {
    let own = invocation.settings.text(key);
    if !own.is_empty() {
        return own;
    }
    browser::crawl_user_agent(invocation).unwrap_or_else(|| DEFAULT_USER_AGENT.to_owned())
}

/// Value of the header `Accept-Language`, as the browser sends it for ACCEPT_LANGUAGE.
pub fn accept_language(invocation: &Invocation) -> String {
    let languages = languages(invocation);
    let weighted = languages.split(',').enumerate().map(|(place, language)| match place {
        0 => language.to_owned(),
        _ => format!("{language};q=0.{}", 10_usize.saturating_sub(place).max(1)),
    });
    weighted.collect::<Vec<_>>().join(",")
}

/// The languages of ACCEPT_LANGUAGE, separated by commas, without weights.
pub fn languages(invocation: &Invocation) -> String {
    let text = invocation.settings.text("ACCEPT_LANGUAGE");
    let languages = text
        .split(',')
        .map(|text| text.split(';').next().unwrap_or_default().trim())
        .filter(|text| is_language(text));
    languages.collect::<Vec<_>>().join(",")
}

fn is_language(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '*');
    !text.is_empty() && text.chars().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_have_descending_weights() {
        let header = |languages: &str| {
            let schema = include_str!("../../../plugins/headers/config.json");
            let environment = [("ACCEPT_LANGUAGE".into(), languages.into())];
            accept_language(&Invocation::read("headers", schema, &[], environment))
        };
        assert_eq!(header("en-US,en"), "en-US,en;q=0.9");
        assert_eq!(header(" de-AT, de;q=0.3 ,en\r\nX: y"), "de-AT,de;q=0.9");
        assert_eq!(header(""), "");
    }
}
