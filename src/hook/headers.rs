//! `headers`: the response headers of the URL and of every redirect before it, in `headers.json`.

use super::fetch::{self, Hop};
use super::invocation::Invocation;
use super::program::Runner;
use super::record::{Finding, progress};
use super::{Outcome, page};
use serde_json::{Map, Value, json};

/// Fetches the URL up to the first byte of its body.
pub fn run(it: &Invocation) -> Outcome {
    let url = it.web_url()?;
    let mut runner = Runner::new(it.budget())?;
    progress("asking for the headers");
    let within = runner.left();
    let fetched = fetch::get(&mut runner, it, &url, 0, within)?;
    let last = fetched.last();
    page::write(
        "headers.json",
        format!("{:#}\n", document(it, &fetched.hops)).as_bytes(),
    )?;
    Ok(Finding::succeeded("headers.json")
        .with("final_url", last.url.as_str())
        .with("redirect_count", fetched.hops.len() as u64 - 1)
        .with(
            "content_type",
            last.header("content-type").unwrap_or_default(),
        ))
}

/// `headers.json`: keys as other plugins of this contract know them, and the redirects.
fn document(it: &Invocation, hops: &[Hop]) -> Value {
    let last = &hops[hops.len() - 1];
    let redirects: Vec<_> = hops[..hops.len() - 1]
        .iter()
        .map(|hop| {
            json!({"url": hop.url.as_str(), "status": hop.status,
                   "location": hop.header("location"), "headers": headers(hop)})
        })
        .collect();
    json!({
        "url": it.url,
        "final_url": last.url.as_str(),
        "status": last.status,
        "statusText": last.reason,
        "content_type": last.header("content-type"),
        "response_headers": headers(last),
        "redirects": redirects,
    })
}

/// Headers as an object; one that came more than once has its values on lines of their own.
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
    fn the_document_names_the_end_and_the_way_to_it() {
        let dump = "HTTP/1.1 302 Found\r\nLocation: /$(reboot)\r\n\r\nHTTP/1.1 404 Not \"Found\"\r\nA: 1\r\nA: 2\r\n\r\n";
        let hops = fetch::parse_hops(dump, &Url::parse("http://a.test/").unwrap());
        let schema = include_str!("../../plugins/headers/config.json");
        let it = Invocation::read("headers", schema, &["--url=http://a.test/".into()], []);
        let document = document(&it, &hops);
        assert_eq!(document["final_url"], "http://a.test/$(reboot)");
        assert_eq!(document["status"], 404);
        assert_eq!(document["redirects"][0]["location"], "/$(reboot)");
        assert_eq!(document["response_headers"]["a"], "1\n2");
        assert_eq!(document["content_type"], Value::Null);
    }
}
