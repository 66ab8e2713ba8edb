//! Checks for robots that a server shows in place of a page, by marks that their documents have. Such a
//! document is not the page, whatever its HTTP status says.

use super::cdp::Session;
use super::reveal;
use serde_json::json;
use std::time::Duration;
use tokio::time::timeout;

/// Names of checks, with a CSS selector for what only the document of a check has. Protected pages load
/// scripts of some of them, too, so a mark is the form or frame that the visitor sees, or the script that
/// solves the check.
const MARKS: [(&str, &str); 8] = [
    (
        "Cloudflare",
        "#challenge-form, #challenge-error-text, script[src*='/cdn-cgi/challenge-platform/'][src*='/orchestrate/']",
    ),
    ("Anubis", "#anubis_challenge, #anubis_version"),
    ("DataDome", "iframe[src*='captcha-delivery.com/']"),
    ("HUMAN", "#px-captcha"),
    ("Imperva", "iframe[src*='_Incapsula_Resource']"),
    (
        "AWS WAF",
        "#challenge-container + script[src*='awswaf.com'], script[src*='awswaf.com'] + #challenge-container",
    ),
    ("Akamai", "#sec-if-cpt-container, #sec-cpt-if"),
    ("DDoS-Guard", "#link-ddg"),
];
/// Characters of text above which a document is a page with the widget of a check.
const TEXT_MAX_CHARS: u32 = 3_000;
/// A busy page is no check.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

const FIND: &str = r#"(marks, most) => {
  const text = document.documentElement ? document.documentElement.innerText || "" : "";
  if (text.length > most) return null;
  const mark = marks.find(([, selector]) => document.querySelector(selector));
  return mark ? mark[0] : null;
}"#;

/// Returns why the document of a tab is not the page, if it is a check for robots. `page`: the target id
/// of the tab.
pub async fn found(session: &Session, page: &str) -> Option<String> {
    let arguments = [json!(MARKS), TEXT_MAX_CHARS.into()];
    let answer = reveal::evaluate(session, page, FIND, &arguments);
    let answer = timeout(ANSWER_TIMEOUT, answer).await.ok()?.ok()?;
    let name = answer.as_str()?;
    Some(format!("the server shows a check for robots ({name}) instead of the page"))
}
