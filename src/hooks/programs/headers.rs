//! `headers`: writes the response headers of the URL and of every redirect to `headers.json`: as the
//! browser got them, else with a request of its own.

use crate::crawl::robots;
use crate::page::response::ResponseHead;
use crate::page::retry_after::retry_after;
use crate::process::files;
use crate::process::finding::Outcome;
use crate::process::finding::{Finding, progress};
use crate::process::invocation::Invocation;
use crate::process::program::ProgramRunner;
use crate::source;
use crate::visit;
use serde_json::{Map, Value, json};
use url::Url;

/// Saves the responses, and the delays that the server asks for.
pub fn run(invocation: &Invocation) -> Outcome {
    let url = invocation.web_url()?;
    let mut runner = ProgramRunner::new(invocation.budget())?;
    let hops = responses(invocation, &mut runner, &url)?;
    let last = &hops[hops.len() - 1];
    files::write("headers.json", format!("{:#}\n", document(invocation, &hops)).as_bytes())?;
    let mut found = Finding::succeeded("headers.json")
        .with("final_url", last.url.as_str())
        .with("http_status", u64::from(last.status))
        .with("redirect_count", hops.len() as u64 - 1)
        .with("content_type", last.header("content-type").unwrap_or_default());
    let (value, date) = (last.header("retry-after"), last.header("date"));
    if let Some(seconds) = retry_after(last.status, value, date, jiff::Timestamp::now()) {
        found = found.with("retry_after", seconds);
    }
    if let Some(delay) = robots::crawl_delay(&mut runner, invocation, &url) {
        found = found.with("crawl_delay_ms", delay.as_millis() as u64);
    }
    Ok(found)
}

/// Every response, redirects first; never empty. They are those of the browser, unless the user has set
/// options for curl, which only a request with curl honours.
fn responses(
    invocation: &Invocation,
    runner: &mut ProgramRunner,
    url: &Url,
) -> Result<Vec<ResponseHead>, Finding> {
    if invocation.settings.list("HEADERS_ARGS_EXTRA").is_empty() {
        let within = runner.remaining() / 2;
        if let Some(hops) = visit::responses(invocation, runner, within)? {
            return Ok(hops);
        }
    }
    progress("requesting the headers");
    let within = runner.remaining();
    Ok(source::request(runner, invocation, url, 0, within)?.hops)
}

/// Content of `headers.json`: the keys that other plugins of this contract read, and the redirects.
fn document(invocation: &Invocation, hops: &[ResponseHead]) -> Value {
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
fn headers(hop: &ResponseHead) -> Map<String, Value> {
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
    use crate::source::fetch;

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
        fn any_response_makes_a_document(text in r"(?s).{0,200}", value in "[-+0-9A-Za-z,: ]{0,40}", status in 100u16..600) {
            let url = Url::parse("http://a.test/").unwrap();
            let schema = include_str!("../../../plugins/headers/config.json");
            let invocation = Invocation::read("headers", schema, &["--url=http://a.test/".into()], []);
            let near = format!("HTTP/1.1 {status} X\r\nRetry-After: {value}\r\n\r\n");
            for dump in [text, near] {
                let hops = fetch::parse_hops(&dump, &url);
                if !hops.is_empty() {
                    proptest::prop_assert!(document(&invocation, &hops)["status"].is_u64());
                }
            }
        }
    }
}
