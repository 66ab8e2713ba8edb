//! A list of pages as somebody handed it over, read line by line: it may be a million lines long.

use crate::bus::report::Refused;
use crate::model::{Entry, parse_line};

/// Refused lines that are answered one by one.
const REFUSED_SHOWN: usize = 1000;
/// Of the text of each, in characters.
const SHOWN_TEXT: usize = 120;

type Lines<'a> = std::slice::Split<'a, u8, fn(&u8) -> bool>;

/// The pages of a list, as an iterator; the lines that are none are kept meanwhile.
pub struct Listed<'a> {
    lines: std::iter::Enumerate<Lines<'a>>,
    /// The first of them.
    pub refused: Vec<Refused>,
}

impl<'a> Listed<'a> {
    pub fn new(list: &'a [u8]) -> Listed<'a> {
        let is_end: fn(&u8) -> bool = |byte| *byte == b'\n';
        Listed {
            lines: list.split(is_end).enumerate(),
            refused: Vec::new(),
        }
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
                Some(Ok(entry)) => return Some(entry),
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
        let mut listed = Listed::new(list.as_bytes());
        let urls = listed.by_ref().map(|entry| entry.url.to_string());
        let urls = urls.collect::<Vec<_>>();
        assert_eq!(urls, ["http://a.test/", "http://c.test/", "http://d.test/"]);
        assert_eq!(listed.refused.len(), REFUSED_SHOWN);
        let (first, last) = (&listed.refused[0], listed.refused.last().unwrap());
        assert_eq!((first.line, first.text.as_str()), (4, "mailto:b"));
        assert_eq!(last.line, REFUSED_SHOWN as u64 + 4);
    }
}
