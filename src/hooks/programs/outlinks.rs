//! `outlinks`: prints the links of the page as records, and writes them to `urls.jsonl`.

use crate::page::html;
use crate::page::html::Link;
use crate::process::files;
use crate::process::finding::Finding;
use crate::process::finding::Outcome;
use crate::process::invocation::Invocation;
use crate::process::program::ProgramRunner;
use crate::source;
use crate::source::Document;
use serde_json::{Map, Value};
use std::collections::HashSet;
use url::Url;

/// A page that the document links to or lists.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Child {
    url: Url,
    title: Option<String>,
    date: Option<String>,
    /// Categories of an entry of a feed.
    tags: Vec<String>,
}

/// Finds the page and lists its links, or the entries of a feed, sitemap or list.
pub fn run(invocation: &Invocation) -> Outcome {
    let mut runner = ProgramRunner::new(invocation.budget())?;
    let document = source::find(invocation, &mut runner)?;
    let (children, address, thing) = match document {
        Document::Page(page) => {
            let links = html::links(&page.html, &page.resolver());
            let routes = invocation.settings.text("OUTLINKS_HASH_ROUTES");
            (children(links, &routes), page.address, ("link", "links"))
        }
        Document::Listing(listing, address) => {
            let entries = listing.entries.into_iter().map(|entry| Child {
                url: entry.url,
                title: entry.title,
                date: entry.date,
                tags: entry.tags,
            });
            (entries.collect(), address, ("entry", "entries"))
        }
    };
    let mut own = vec![address];
    own.extend(invocation.web_url());
    let most = invocation.settings.number("OUTLINKS_MAX");
    let (children, left_out) = choose(children, &own, most);
    if children.is_empty() {
        return Ok(Finding::noresults("the page has no links to other pages"));
    }
    let records: Vec<_> = children.iter().map(|child| record(child, invocation)).collect();
    let lines: String = records.iter().map(|record| format!("{record}\n")).collect();
    files::write("urls.jsonl", lines.as_bytes())?;
    let mut text = match children.len() {
        1 => format!("1 {}", thing.0),
        count => format!("{count} {}", thing.1),
    };
    if left_out > 0 {
        text += &format!(", {left_out} more omitted because of OUTLINKS_MAX={most}");
    }
    Ok(Finding::succeeded(text).with_records(records))
}

/// The targets of links. Routes are pages of their own if `routes` is `yes`, or if it is `auto` and
/// the page has at least two.
fn children(links: Vec<Link>, routes: &str) -> Vec<Child> {
    let distinct: HashSet<_> =
        links.iter().filter_map(|link| Some((link.url.as_str(), link.route.as_deref()?))).collect();
    let keeps = match routes {
        "yes" => true,
        "no" => false,
        _ => distinct.len() >= 2,
    };
    let child = |link: Link| {
        let mut url = link.url;
        url.set_fragment(link.route.as_deref().filter(|_| keeps));
        let title = Some(link.text).filter(|text| !text.is_empty());
        Child { url, title, date: None, tags: Vec::new() }
    };
    links.into_iter().map(child).collect()
}

/// Removes duplicates and the page itself, and keeps the first `most` pages in their order; 0 means
/// no limit. Returns the pages and the number of pages above the limit.
fn choose(children: Vec<Child>, own: &[Url], most: u64) -> (Vec<Child>, usize) {
    let mut seen: HashSet<Url> = own.iter().cloned().collect();
    seen.extend(own.iter().cloned().map(|mut url| {
        url.set_fragment(None);
        url
    }));
    let mut chosen: Vec<_> =
        children.into_iter().filter(|child| seen.insert(child.url.clone())).collect();
    let most = if most == 0 { usize::MAX } else { usize::try_from(most).unwrap_or(usize::MAX) };
    let left_out = chosen.len().saturating_sub(most);
    chosen.truncate(most);
    (chosen, left_out)
}

fn record(child: &Child, invocation: &Invocation) -> Value {
    let mut record = Map::new();
    record.insert("type".into(), "Snapshot".into());
    record.insert("url".into(), child.url.as_str().into());
    let texts = [("title", &child.title), ("bookmarked_at", &child.date)];
    for (name, text) in texts {
        if let Some(text) = text {
            record.insert(name.into(), text.as_str().into());
        }
    }
    if !child.tags.is_empty() {
        record.insert("tags".into(), child.tags.clone().into());
    }
    record.insert("depth".into(), (invocation.depth + 1).into());
    record.insert("plugin".into(), invocation.plugin.as_str().into());
    Value::Object(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(url: &str) -> Child {
        Child { url: Url::parse(url).unwrap(), title: None, date: None, tags: Vec::new() }
    }

    #[test]
    fn duplicates_and_the_page_itself_are_removed_in_order() {
        let links = ["http://a.test/2", "http://a.test/", "http://a.test/1", "http://a.test/2"]
            .map(link)
            .into();
        let own = [Url::parse("http://a.test/#top").unwrap()];
        let (chosen, left_out) = choose(links, &own, 0);
        let urls: Vec<_> = chosen.iter().map(|link| link.url.as_str()).collect();
        assert_eq!((urls, left_out), (vec!["http://a.test/2", "http://a.test/1"], 0));
    }

    #[test]
    fn links_above_the_limit_are_counted() {
        let links = (0..10).map(|n| link(&format!("http://a.test/{n}"))).collect();
        let (chosen, left_out) = choose(links, &[], 4);
        assert_eq!((chosen.len(), left_out), (4, 6));
    }

    #[test]
    fn routes_are_pages_if_there_are_two_or_the_setting_says_so() {
        let links = |fragments: &[&str]| {
            let link = |fragment: &&str| Link {
                url: Url::parse("http://a.test/").unwrap(),
                route: Some((*fragment).to_owned()),
                text: String::new(),
            };
            fragments.iter().map(link).collect::<Vec<_>>()
        };
        let urls = |fragments: &[&str], setting: &str| {
            let all = children(links(fragments), setting);
            let own = [Url::parse("http://a.test/").unwrap()];
            let (chosen, _) = choose(all, &own, 0);
            chosen.into_iter().map(|child| child.url.to_string()).collect::<Vec<_>>()
        };
        let two = ["http://a.test/#/a", "http://a.test/#!b"];
        assert_eq!(urls(&["/a", "!b", "/a"], "auto"), two);
        assert_eq!(urls(&["/a", "/a"], "auto"), [""; 0]);
        assert_eq!(urls(&["/a", "/a"], "yes"), ["http://a.test/#/a"]);
        assert_eq!(urls(&["/a", "!b"], "no"), [""; 0]);
    }

    #[test]
    fn links_are_one_level_deeper_than_their_page() {
        let schema = include_str!("../../../plugins/outlinks/config.json");
        let invocation = Invocation::read("outlinks", schema, &["--depth=2".into()], []);
        let link = Child { title: Some("a \"b\"".into()), ..link("http://a.test/?q=%n$(x)") };
        let expected = r#"{"type":"Snapshot","url":"http://a.test/?q=%n$(x)","title":"a \"b\"","depth":3,"plugin":"outlinks"}"#;
        assert_eq!(record(&link, &invocation).to_string(), expected);
    }
}
