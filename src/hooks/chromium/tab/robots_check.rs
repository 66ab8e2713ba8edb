//! Checks for robots that a server shows in place of a page, by marks that their documents have. Such a
//! document is not the page, whatever its HTTP status says.

use crate::chromium::cdp::Session;
use crate::chromium::cdp::isolated_world;
use serde_json::json;
use std::time::Duration;
use tokio::time::timeout;

/// Names of checks, with a CSS selector for what only the document of a check has, and titles that only
/// such a document has. Protected pages load scripts of some of them, too, so a mark is the form or frame
/// that the visitor sees, or the script that solves the check.
const MARKS: [(&str, &str, &[&str]); 12] = [
    (
        "Cloudflare",
        "#challenge-form, #challenge-error-text, #cf-error-details, script[src*='/cdn-cgi/challenge-platform/'][src*='/orchestrate/']",
        &["Just a moment...", "Attention Required! | Cloudflare"],
    ),
    ("Anubis", "#anubis_challenge, #anubis_version", &[]),
    ("DataDome", "iframe[src*='captcha-delivery.com/'], script[src*='captcha-delivery.com/']", &[]),
    ("HUMAN", "#px-captcha", &["Access to this page has been denied"]),
    (
        "Imperva",
        "iframe[src*='_Incapsula_Resource'], iframe#main-iframe[src*='Incapsula']",
        &["Pardon Our Interruption"],
    ),
    (
        "AWS WAF",
        "#challenge-container + script[src*='awswaf.com'], script[src*='awswaf.com'] + #challenge-container, #captcha-container + script[src*='awswaf.com'], script[src*='awswaf.com'] + #captcha-container",
        &["Human Verification"],
    ),
    ("Akamai", "#sec-if-cpt-container, #sec-cpt-if", &[]),
    ("Kasada", "script[src*='/149e9513-01fa-4fb0-aad4-566afd725d1b/']", &[]),
    ("Vercel", "#vercel-challenge", &["Vercel Security Checkpoint"]),
    ("Sucuri", "#sucuri-captcha", &["Sucuri WebSite Firewall - Access Denied"]),
    ("Google", "form#captcha-form", &[]),
    ("DDoS-Guard", "#link-ddg", &["DDoS-Guard"]),
];
/// Widgets of checks that also protect forms of pages.
const WIDGETS: [(&str, &str); 3] = [
    ("reCAPTCHA", ".g-recaptcha, iframe[src*='/recaptcha/']"),
    ("hCaptcha", ".h-captcha, iframe[src*='hcaptcha.com/']"),
    ("Turnstile", ".cf-turnstile, iframe[src*='challenges.cloudflare.com/']"),
];
/// Characters of text above which a document with a widget is a page.
const WIDGET_TEXT_MAX_CHARS: u32 = 500;
/// Characters of text above which a document is a page with the widget of a check.
const TEXT_MAX_CHARS: u32 = 3_000;
/// A busy page is no check.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// A widget is a check if there is hardly anything else: neither text nor a field of a form.
const FIND: &str = r#"(marks, most, widgets, mostOfWidget) => {
  const text = document.documentElement ? document.documentElement.innerText || "" : "";
  if (text.length > most) return null;
  const title = String(document.title).trim();
  const mark = marks.find(([, selector, titles]) => titles.includes(title) || document.querySelector(selector));
  if (mark) return mark[0];
  const fields = "textarea:not([name$=-response]), select, input:not([type=hidden], [type=submit], [type=button], [type=checkbox])";
  if (text.length > mostOfWidget || document.querySelector(fields)) return null;
  const widget = widgets.find(([, selector]) => document.querySelector(selector));
  return widget ? widget[0] : null;
}"#;

/// Returns why the document of a tab is not the page, if it is a check for robots. `page`: the target id
/// of the tab.
pub async fn found(session: &Session, page: &str) -> Option<String> {
    let arguments =
        [json!(MARKS), TEXT_MAX_CHARS.into(), json!(WIDGETS), WIDGET_TEXT_MAX_CHARS.into()];
    let answer = isolated_world::evaluate(session, page, FIND, &arguments);
    let answer = timeout(ANSWER_TIMEOUT, answer).await.ok()?.ok()?;
    let name = answer.as_str()?;
    Some(format!("the server shows a check for robots ({name}) instead of the page"))
}
