//! The files next to a saved page that it shows.

use crate::page::charset;
use crate::page::html::{self, PARSING_TIMEOUT, Resolver};
use percent_encoding::percent_decode_str;
use std::collections::BTreeSet;
use url::Url;

/// Files that are named.
const FILES_MAX: usize = 2000;
/// Address that stands for the folder in which the page is.
const FOLDER: &str = "http://folder.invalid/folder/";
const WITH_SRC: &str = "img[src], script[src], source[src], video[src], audio[src], embed[src], iframe[src], input[src]";
const LINKS: &str = "link[href]";
/// Relations of links to what the page shows.
const SHOWN: [&str; 2] = ["stylesheet", "icon"];

/// Returns the paths of the files, relative to the page and without `..`; of a path that leads elsewhere, what
/// the page has.
pub fn of(document: &[u8]) -> Vec<String> {
    let decoded = charset::decode(document, "text/html", None);
    let page = html::parse(&decoded.text, PARSING_TIMEOUT);
    let Ok(folder) = Url::parse(FOLDER) else {
        return Vec::new();
    };
    let resolver = Resolver::new(&page, &folder, decoded.encoding);
    let is_shown = |relation: &str| {
        relation
            .split_ascii_whitespace()
            .any(|own| SHOWN.contains(&own.to_ascii_lowercase().as_str()))
    };
    let links = html::select(&page, LINKS).filter(|link| link.attr("rel").is_some_and(is_shown));
    let named = html::select(&page, WITH_SRC).filter_map(|element| element.attr("src"));
    let named = named.chain(links.filter_map(|link| link.attr("href")));
    let files: BTreeSet<String> = named
        .filter_map(|target| {
            let url = resolver.web_url(target).filter(|url| url.host() == folder.host())?;
            let Some(path) = url.path().strip_prefix(folder.path()) else {
                return Some(target.trim().to_owned());
            };
            let path = percent_decode_str(path).decode_utf8().ok()?.into_owned();
            (!path.is_empty()).then_some(path)
        })
        .take(FILES_MAX)
        .collect();
    files.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_those_that_the_page_shows() {
        let page = "<!DOCTYPE html><meta charset=utf-8><link rel=stylesheet href=\"./Zeitung-Dateien/stil.css\">\
            <link rel=canonical href=other.html><a href=link.html></a>\
            <img src=\"./Artikel%20%E2%80%93%20Zeitung-Dateien/b.png?x#y\"><img src=http://a.test/c.png>\
            <img src=data:image/png,x><img src=/root.png><img src=../up.png><iframe src=\"in%2Fner.html\">";
        assert_eq!(
            of(page.as_bytes()),
            [
                "../up.png",
                "/root.png",
                "Artikel – Zeitung-Dateien/b.png",
                "Zeitung-Dateien/stil.css",
                "in/ner.html"
            ]
        );
        let with_base = "<base href=http://a.test/><img src=a.png>";
        assert_eq!(of(with_base.as_bytes()), [""; 0]);
    }
}
