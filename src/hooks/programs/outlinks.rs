//! `outlinks`: prints the links of the page as records, and writes them to `urls.jsonl`.

use crate::page::html;
use crate::page::html::Link;
use crate::process::finding::Finding;
use crate::process::invocation::Invocation;
use crate::process::program::ProgramRunner;
use crate::{Outcome, page};
use serde_json::{Map, Value};
use std::collections::HashSet;
use url::Url;

/// Finds the page and lists its links.
pub fn run(invocation: &Invocation) -> Outcome {
    let mut runner = ProgramRunner::new(invocation.budget())?;
    let page = page::find(invocation, &mut runner)?;
    let mut own = vec![page.address.clone()];
    own.extend(invocation.web_url());
    let most = invocation.settings.number("OUTLINKS_MAX");
    let (links, left_out) = choose(html::links(&page.html, &page.address), &own, most);
    if links.is_empty() {
        return Ok(Finding::noresults("the page has no links to other pages"));
    }
    let records: Vec<_> = links.iter().map(|link| record(link, invocation)).collect();
    let lines: String = records.iter().map(|record| format!("{record}\n")).collect();
    page::write("urls.jsonl", lines.as_bytes())?;
    let mut text = match links.len() {
        1 => "1 link".to_string(),
        count => format!("{count} links"),
    };
    if left_out > 0 {
        text += &format!(", {left_out} more omitted because of OUTLINKS_MAX={most}");
    }
    Ok(Finding::succeeded(text).with_records(records))
}

/// Removes duplicates and the page itself, and keeps the first `most` links in the page's order; 0
/// means no limit. Returns the links and the number of links above the limit.
fn choose(links: Vec<Link>, own: &[Url], most: u64) -> (Vec<Link>, usize) {
    let mut seen: HashSet<Url> = own.iter().cloned().collect();
    seen.extend(own.iter().cloned().map(|mut url| {
        url.set_fragment(None);
        url
    }));
    let mut chosen: Vec<_> = links
        .into_iter()
        .filter(|link| seen.insert(link.url.clone()))
        .collect();
    let most = if most == 0 {
        usize::MAX
    } else {
        usize::try_from(most).unwrap_or(usize::MAX)
    };
    let left_out = chosen.len().saturating_sub(most);
    chosen.truncate(most);
    (chosen, left_out)
}

fn record(link: &Link, invocation: &Invocation) -> Value {
    let mut record = Map::new();
    record.insert("type".into(), "Snapshot".into());
    record.insert("url".into(), link.url.as_str().into());
    if !link.text.is_empty() {
        record.insert("title".into(), link.text.as_str().into());
    }
    record.insert("depth".into(), (invocation.depth + 1).into());
    record.insert("plugin".into(), invocation.plugin.as_str().into());
    Value::Object(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(url: &str) -> Link {
        Link {
            url: Url::parse(url).unwrap(),
            text: String::new(),
        }
    }

    #[test]
    fn duplicates_and_the_page_itself_are_removed_in_order() {
        let links = [
            "http://a.test/2",
            "http://a.test/",
            "http://a.test/1",
            "http://a.test/2",
        ]
        .map(link)
        .into();
        let own = [Url::parse("http://a.test/#top").unwrap()];
        let (chosen, left_out) = choose(links, &own, 0);
        let urls: Vec<_> = chosen.iter().map(|link| link.url.as_str()).collect();
        assert_eq!(
            (urls, left_out),
            (vec!["http://a.test/2", "http://a.test/1"], 0)
        );
    }

    #[test]
    fn links_above_the_limit_are_counted() {
        let links = (0..10)
            .map(|n| link(&format!("http://a.test/{n}")))
            .collect();
        let (chosen, left_out) = choose(links, &[], 4);
        assert_eq!((chosen.len(), left_out), (4, 6));
    }

    #[test]
    fn links_are_one_level_deeper_than_their_page() {
        let schema = include_str!("../../../plugins/outlinks/config.json");
        let invocation = Invocation::read("outlinks", schema, &["--depth=2".into()], []);
        let link = Link {
            text: "a \"b\"".into(),
            ..link("http://a.test/?q=%n$(x)")
        };
        let expected = r#"{"type":"Snapshot","url":"http://a.test/?q=%n$(x)","title":"a \"b\"","depth":3,"plugin":"outlinks"}"#;
        assert_eq!(record(&link, &invocation).to_string(), expected);
    }
}
