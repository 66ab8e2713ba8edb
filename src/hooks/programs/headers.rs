//! `headers`: writes the response headers of the URL and of every redirect to `headers.json`.

use crate::crawl::robots;
use crate::page::fetch;
use crate::page::fetch::Hop;
use crate::process::finding::{Finding, progress};
use crate::process::invocation::Invocation;
use crate::process::program::ProgramRunner;
use crate::{Outcome, page};
use serde_json::{Map, Value, json};

/// Fetches the URL up to the first byte of its body.
pub fn run(invocation: &Invocation) -> Outcome {
    let url = invocation.web_url()?;
    let mut runner = ProgramRunner::new(invocation.budget())?;
    progress("requesting the headers");
    let within = runner.remaining();
    let fetched = fetch::get(&mut runner, invocation, &url, 0, within)?;
    let last = fetched.last();
    page::write(
        "headers.json",
        format!("{:#}\n", document(invocation, &fetched.hops)).as_bytes(),
    )?;
    let mut found = Finding::succeeded("headers.json")
        .with("final_url", last.url.as_str())
        .with("http_status", u64::from(last.status))
        .with("redirect_count", fetched.hops.len() as u64 - 1)
        .with(
            "content_type",
            last.header("content-type").unwrap_or_default(),
        );
    if let Some(seconds) = retry_after(last, jiff::Timestamp::now()) {
        found = found.with("retry_after", seconds);
    }
    if let Some(delay) = robots::crawl_delay(&mut runner, invocation, &url) {
        found = found.with("crawl_delay_ms", delay.as_millis() as u64);
    }
    Ok(found)
}

/// Seconds after which an overloaded server wants to be asked again (Retry-After with status 429 or
/// 503; RFC 9110, section 10.2.3): a number or a date.
fn retry_after(last: &Hop, now: jiff::Timestamp) -> Option<u64> {
    if !matches!(last.status, 429 | 503) {
        return None;
    }
    let text = last.header("retry-after")?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(seconds);
    }
    let date = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
    u64::try_from(date.as_second() - now.as_second()).ok()
}

/// Content of `headers.json`: the keys that other plugins of this contract read, and the redirects.
fn document(invocation: &Invocation, hops: &[Hop]) -> Value {
    let last = &hops[hops.len() - 1];
    let redirects: Vec<_> = hops[..hops.len() - 1]
        .iter()
        .map(|hop| {
            json!({"url": hop.url.as_str(), "status": hop.status,
                   "location": hop.header("location"), "headers": headers(hop)})
        })
        .collect();
    json!({
        "url": invocation.url,
        "final_url": last.url.as_str(),
        "status": last.status,
        "statusText": last.reason,
        "content_type": last.header("content-type"),
        "response_headers": headers(last),
        "redirects": redirects,
    })
}

/// Headers as a JSON object. The values of a repeated header are separated by line feeds.
fn headers(hop: &Hop) -> Map<String, Value> {
    let mut map = Map::new();
    for (name, value) in &hop.headers {
        match map.get_mut(name) {
            Some(Value::String(text)) => {
                text.push('\n');
                text.push_str(value);
            }
            _ => {
                map.insert(name.clone(), value.as_str().into());
            }
        }
    }
    map
}

#[cfg(test)]
mod tests {
    use super::*;
    use url::Url;

    #[test]
    fn retry_after_is_read_from_overloaded_servers() {
        let after = |status: u16, text: &str| {
            let dump = format!("HTTP/1.1 {status} X\r\nRetry-After: {text}\r\n\r\n");
            let hops = fetch::parse_hops(&dump, &Url::parse("http://a.test/").unwrap());
            retry_after(&hops[0], "2026-11-21T12:00:00Z".parse().unwrap())
        };
        assert_eq!(after(429, "120"), Some(120));
        assert_eq!(after(503, "Sat, 21 Nov 2026 12:01:30 GMT"), Some(90));
        assert_eq!(after(503, "Sat, 21 Nov 2026 11:00:00 GMT"), None);
        assert_eq!(after(200, "120"), None);
        assert_eq!(after(503, "-5"), None);
        assert_eq!(after(503, "soon"), None);
    }

    #[test]
    fn document_has_final_response_and_redirects() {
        let dump = "HTTP/1.1 302 Found\r\nLocation: /$(reboot)\r\n\r\nHTTP/1.1 404 Not \"Found\"\r\nA: 1\r\nA: 2\r\n\r\n";
        let hops = fetch::parse_hops(dump, &Url::parse("http://a.test/").unwrap());
        let schema = include_str!("../../../plugins/headers/config.json");
        let invocation = Invocation::read("headers", schema, &["--url=http://a.test/".into()], []);
        let document = document(&invocation, &hops);
        assert_eq!(document["final_url"], "http://a.test/$(reboot)");
        assert_eq!(document["status"], 404);
        assert_eq!(document["redirects"][0]["location"], "/$(reboot)");
        assert_eq!(document["response_headers"]["a"], "1\n2");
        assert_eq!(document["content_type"], Value::Null);
    }

    proptest::proptest! {
        #[test]
        fn any_response_is_parsed(text in r"(?s).{0,200}", value in "[-+0-9A-Za-z,: ]{0,40}", status in 100u16..600) {
            let url = Url::parse("http://a.test/").unwrap();
            let near = format!("HTTP/1.1 {status} X\r\nRetry-After: {value}\r\n\r\n");
            for dump in [text, near] {
                for hop in fetch::parse_hops(&dump, &url) {
                    let asked = retry_after(&hop, jiff::Timestamp::UNIX_EPOCH);
                    assert!(asked.is_none() || matches!(hop.status, 429 | 503));
                }
            }
        }
    }
}
