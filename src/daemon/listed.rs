//! A list of pages as somebody handed it over, read line by line: it may be a million lines long.

use crate::bus::report::Refused;
use crate::model::{Entry, parse_line};
use crate::plugin::UrlFilter;

/// Refused lines that are answered one by one.
const REFUSED_SHOWN: usize = 1000;
/// Of the text of each, in characters.
const SHOWN_TEXT: usize = 120;

type Lines<'a> = std::slice::Split<'a, u8, fn(&u8) -> bool>;

/// The pages of a list, as an iterator; the lines that are none are kept meanwhile.
pub struct Listed<'a> {
    lines: std::iter::Enumerate<Lines<'a>>,
    depth: u32,
    filter: &'a UrlFilter,
    /// The first of them.
    pub refused: Vec<Refused>,
}

impl<'a> Listed<'a> {
    /// Those of a crawl that goes as deep as `depth`, as far as `filter` lets them through.
    pub fn new(list: &'a [u8], depth: u32, filter: &'a UrlFilter) -> Listed<'a> {
        let is_end: fn(&u8) -> bool = |byte| *byte == b'\n';
        Listed {
            lines: list.split(is_end).enumerate(),
            depth,
            filter,
            refused: Vec::new(),
        }
    }

    fn why_not(&self, entry: &Entry) -> Option<String> {
        if entry.depth > self.depth {
            let (depth, most) = (entry.depth, self.depth);
            return Some(format!(
                "its depth {depth} is more than the crawl's, {most}"
            ));
        }
        let why = "left out by UrlAllowList= or UrlDenyList=, see: archivist config";
        (!self.filter.allows(entry.url.as_str())).then(|| why.to_owned())
    }

    fn refuse(&mut self, place: usize, line: &[u8], why: String) {
        if self.refused.len() == REFUSED_SHOWN {
            return;
        }
        let text = String::from_utf8_lossy(line);
        let text = text.chars().take(SHOWN_TEXT).collect::<String>();
        self.refused.push(Refused {
            line: place as u64 + 1,
            text: text.escape_debug().to_string(),
            why,
        });
    }
}

impl Iterator for Listed<'_> {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        loop {
            let (place, line) = self.lines.next()?;
            match parse_line(line) {
                None => {}
                Some(Ok(entry)) => match self.why_not(&entry) {
                    None => return Some(entry),
                    Some(why) => self.refuse(place, line, why),
                },
                Some(Err(error)) => self.refuse(place, line, error.to_string()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_and_what_is_none() {
        let mut list = "# a list\nhttp://a.test/\n\nmailto:b\nhttp://c.test/".to_owned();
        list.push_str(&"\nnonsense".repeat(REFUSED_SHOWN));
        list.push_str("\nhttp://d.test/");
        let all = UrlFilter::default();
        let mut listed = Listed::new(list.as_bytes(), 0, &all);
        let urls = listed.by_ref().map(|entry| entry.url.to_string());
        let urls = urls.collect::<Vec<_>>();
        assert_eq!(urls, ["http://a.test/", "http://c.test/", "http://d.test/"]);
        assert_eq!(listed.refused.len(), REFUSED_SHOWN);
        let (first, last) = (&listed.refused[0], listed.refused.last().unwrap());
        assert_eq!((first.line, first.text.as_str()), (4, "mailto:b"));
        assert_eq!(last.line, REFUSED_SHOWN as u64 + 4);
    }

    #[test]
    fn what_is_too_deep_or_left_out_is_told() {
        let list = "http://a.test/\n{\"url\":\"http://b.test/\",\"depth\":2}\nhttp://c.test/";
        let filter = UrlFilter::new("", "a.test").unwrap();
        let mut listed = Listed::new(list.as_bytes(), 1, &filter);
        let urls = listed.by_ref().map(|entry| entry.url.to_string());
        assert_eq!(urls.collect::<Vec<_>>(), ["http://c.test/"]);
        let told = listed.refused.iter().map(|it| (it.line, it.why.as_str()));
        let told = told.collect::<Vec<_>>();
        assert!(
            told[0].0 == 1 && told[0].1.contains("UrlDenyList="),
            "{told:?}"
        );
        assert_eq!(told[1], (2, "its depth 2 is more than the crawl's, 1"));
    }
}
