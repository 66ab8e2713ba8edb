//! What a page needs: the addresses of its documents, and which of them were not saved.

use super::address::{Base, address};
use super::copy::{PageCopy, is_success};
use super::markup::{self, Use};
use super::warc::Response;
use crate::page::html::one_line;
use crate::page::style::{self, StyleUse};
use std::collections::{HashSet, VecDeque};
use url::Url;

/// Documents of a page whose addresses are read, and levels of documents within documents.
const DOCUMENTS_MAX: usize = 500;
const LEVELS_MAX: usize = 8;
/// Missing files that a remark names, and characters of each URL in it.
const NAMED_MAX: usize = 3;
const URL_MAX_CHARS: usize = 120;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syntax {
    /// HTML, SVG and XML.
    Markup,
    Style,
}

#[derive(Debug, Default)]
pub struct Needs {
    /// Number of its requisites.
    pub total: usize,
    /// Requisites that no request was made for, or whose response was not kept.
    pub absent: Vec<Url>,
    /// Requisites that the server did not have, as URL and status.
    pub refused: Vec<(String, u16)>,
}

/// Answers of a server that is overloaded or limits requests (RFC 6585, RFC 9110): a later request may
/// get the file. Every other answer is what the page has on the web, too.
const LATER: [u16; 2] = [429, 503];

impl Needs {
    /// How many parts of the page the copy lacks: what the server does not have is no part of it.
    pub fn lacking(&self) -> usize {
        let refused = self.refused.iter().filter(|(_, status)| LATER.contains(status));
        self.absent.len() + refused.count()
    }

    /// Which requisites are missing, as a remark. `is_over`: whether the transfer was stopped, so that
    /// requests were not made.
    pub fn missing(&self, is_over: bool) -> Option<String> {
        let count = self.absent.len() + self.refused.len();
        let of_server = self.refused.iter().map(|(url, status)| (url.as_str(), status.to_string()));
        let no_answer = if is_over { "not requested" } else { "no answer" };
        let others = self.absent.iter().map(|url| (url.as_str(), no_answer.to_owned()));
        let named: Vec<_> = of_server
            .chain(others)
            .take(NAMED_MAX)
            .map(|(url, why)| format!("{} ({why})", one_line(url, URL_MAX_CHARS)))
            .collect();
        let more = if count > named.len() { ", …" } else { "" };
        let total = self.total;
        let verb = if count == 1 { "is" } else { "are" };
        (count > 0).then(|| {
            format!(
                "{count} of {total} files of the page {verb} missing: {}{more}",
                named.join(", ")
            )
        })
    }
}

/// What the page at `url` needs, also for its style sheets, frames and drawings.
pub fn of_page(copy: &PageCopy, url: &Url) -> Needs {
    let mut needs = Needs::default();
    let mut seen = HashSet::new();
    let mut queue = VecDeque::from_iter(copy.last_response(url).map(|index| (index, 0)));
    let mut read = HashSet::new();
    while let Some((index, level)) = queue.pop_front() {
        if !read.insert(index) || read.len() > DOCUMENTS_MAX || level > LEVELS_MAX {
            continue;
        }
        let response = &copy.warc.responses[index];
        let (Some(syntax), Some(text)) = (syntax(response), copy.text(response)) else {
            continue;
        };
        each_address(&text, syntax, response, &mut |url, usage| {
            if !matches!(usage, Use::Requisite | Use::Document) {
                return;
            }
            let mut url = url.clone();
            url.set_fragment(None);
            let is_new = address(url.as_str()).is_some_and(|address| seen.insert(address));
            if !is_new {
                return;
            }
            needs.total += 1;
            match copy.last_response(&url) {
                Some(found) if is_success(&copy.warc.responses[found]) => {
                    // A frame with the page itself would have its requisites again.
                    queue.push_back((found, level + 1));
                }
                Some(found) => {
                    let response = &copy.warc.responses[found];
                    needs.refused.push((response.url.clone(), response.status));
                }
                None => needs.absent.push(url),
            }
        });
    }
    needs
}

/// Calls `take` for each web address of a document.
fn each_address(text: &[u8], syntax: Syntax, response: &Response, take: &mut dyn FnMut(&Url, Use)) {
    let Some(mut base) = Base::of(response, syntax, text) else { return };
    let mut read = |value: &[u8], usage: Use| {
        if usage == Use::Base {
            base.set(value);
            return None;
        }
        let target = base.join(value)?;
        if matches!(target.scheme(), "http" | "https") {
            take(&target, usage);
        }
        None
    };
    match syntax {
        Syntax::Markup => markup::rewrite(text, &mut read),
        Syntax::Style => style::rewrite(text, &mut |value, usage| read(value, of_style(usage))),
    };
}

/// The use of an address in a style sheet, in the terms of documents.
pub fn of_style(usage: StyleUse) -> Use {
    match usage {
        StyleUse::Import => Use::Document,
        StyleUse::Picture => Use::Requisite,
    }
}

/// How the addresses of a response are written; `None` if it has none.
pub fn syntax(response: &Response) -> Option<Syntax> {
    match response.media_type().as_str() {
        "text/css" => Some(Syntax::Style),
        "text/html" | "application/xml" | "text/xml" | "text/xsl" => Some(Syntax::Markup),
        other if other.ends_with("+xml") => Some(Syntax::Markup),
        "" if response.status == 200 => Some(Syntax::Markup),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_files_are_named_with_their_reason() {
        let url = |path: &str| Url::parse("http://a.test/").unwrap().join(path).unwrap();
        let mut needs = Needs { total: 31, ..Needs::default() };
        assert_eq!(needs.missing(false), None);
        needs.refused.push((url("x.png").into(), 404));
        assert_eq!(
            needs.missing(false).unwrap(),
            "1 of 31 files of the page is missing: http://a.test/x.png (404)"
        );
        assert_eq!(needs.lacking(), 0, "the page has no such file on the web, either");
        needs.absent = vec![url("y"), url("z"), url("last")];
        assert_eq!(
            needs.missing(false).unwrap(),
            "4 of 31 files of the page are missing: http://a.test/x.png (404), http://a.test/y \
             (no answer), http://a.test/z (no answer), …"
        );
        needs.refused.push((url("busy.png").into(), 503));
        assert_eq!(needs.lacking(), 4);
        assert!(needs.missing(true).unwrap().contains("/y (not requested)"));
    }
}
