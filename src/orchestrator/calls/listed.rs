//! A list of pages, read line by line: it may have a million lines.

use archivist_core::model::web::filter::UrlFilter;
use archivist_core::model::{LineEntry, parse_line};
use archivist_plugin::Values;
use archivist_shared::bus::documents::report::Refused;

/// Refused lines that are answered individually.
const REFUSED_SHOWN: usize = 1000;
/// Longest text of such a line, in characters.
const SHOWN_CHARS: usize = 120;

/// Longest line, in bytes: a URL with a title and tags.
const LINE_MAX: usize = 128 << 10;
/// Lines that one turn reads, and bytes.
const LINES_PER_TURN: usize = 20_000;
const BYTES_PER_TURN: usize = 2 << 20;

type Lines<'a> = std::slice::Split<'a, u8, fn(&u8) -> bool>;

/// Iterator over the pages of a part of a list. It collects the lines that it refuses.
pub struct Listed<'a> {
    lines: Lines<'a>,
    depth: u32,
    filter: &'a UrlFilter,
    /// Returns why a page cannot have these settings.
    settings: &'a dyn Fn(&Values) -> Option<String>,
    /// Lines and bytes that were read, and those before this part.
    place: usize,
    bytes: usize,
    before: (usize, usize),
    length: usize,
    /// The first of them.
    pub refused: Vec<Refused>,
}

impl<'a> Listed<'a> {
    /// The next part of a list, for a crawl with this depth and filter, and a check of settings. `done`: lines and bytes of
    /// the parts before; `refused`: their refused lines.
    pub fn resume(
        list: &'a [u8],
        depth: u32,
        filter: &'a UrlFilter,
        settings: &'a dyn Fn(&Values) -> Option<String>,
        done: (usize, usize),
        refused: Vec<Refused>,
    ) -> Listed<'a> {
        let is_end: fn(&u8) -> bool = |byte| *byte == b'\n';
        let (place, bytes) = done;
        Listed {
            lines: list.get(bytes..).unwrap_or_default().split(is_end),
            depth,
            filter,
            settings,
            place,
            bytes,
            before: done,
            length: list.len(),
            refused,
        }
    }

    /// Lines and bytes that were read.
    pub fn done(&self) -> (usize, usize) {
        (self.place, self.bytes)
    }

    /// Whether the whole list was read.
    pub fn is_over(&self) -> bool {
        self.bytes >= self.length
    }

    fn is_enough(&self) -> bool {
        let (lines, bytes) = self.before;
        self.place - lines >= LINES_PER_TURN || self.bytes - bytes >= BYTES_PER_TURN
    }

    fn why_not(&self, entry: &LineEntry) -> Option<String> {
        if entry.depth > self.depth {
            let (depth, most) = (entry.depth, self.depth);
            return Some(format!("depth {depth} exceeds the depth of the crawl, {most}"));
        }
        if !self.filter.allows(entry.url.as_str()) {
            let why = "left out by UrlAllowList= or UrlDenyList=, see: archivist config";
            return Some(why.to_owned());
        }
        let own = Some(&entry.config).filter(|own| !own.is_empty());
        own.and_then(|own| (self.settings)(own))
    }

    fn refuse(&mut self, place: usize, line: &[u8], why: String) {
        if self.refused.len() == REFUSED_SHOWN {
            return;
        }
        let line = &line[..line.len().min(4 * SHOWN_CHARS)];
        let text = String::from_utf8_lossy(line).chars().take(SHOWN_CHARS).collect::<String>();
        self.refused.push(Refused {
            line: place as u64,
            text: text.escape_debug().to_string(),
            why,
        });
    }
}

impl Iterator for Listed<'_> {
    type Item = LineEntry;

    fn next(&mut self) -> Option<LineEntry> {
        loop {
            if self.is_over() || self.is_enough() {
                return None;
            }
            let line = self.lines.next()?;
            self.place += 1;
            self.bytes += line.len() + 1;
            let place = self.place;
            if line.len() > LINE_MAX {
                let why = format!("the line has {} bytes, more than {LINE_MAX}", line.len());
                self.refuse(place, line, why);
                continue;
            }
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
    use proptest::prelude::*;

    proptest! {
        /// Any list, cut into parts in any way, yields each line once.
        #[test]
        fn parts_of_a_list_contain_each_line_once(lines in prop::collection::vec("(http://a/[a-z]{0,4}|[a-z\u{0}]{0,9}|\\{\"url\":\"http://b/\"\\})", 0..60), step in 1usize..9) {
            let list = lines.join("\n");
            let all = UrlFilter::default();
            let whole: Vec<LineEntry> =
                Listed::resume(list.as_bytes(), 0, &all, &|_| None, (0, 0), Vec::new()).collect();
            let (mut done, mut refused, mut found) = ((0, 0), Vec::new(), Vec::new());
            loop {
                let mut part = Listed::resume(list.as_bytes(), 0, &all, &|_| None, done, refused);
                found.extend(part.by_ref().take(step));
                done = part.done();
                refused = part.refused.clone();
                if part.is_over() {
                    break;
                }
            }
            let urls = |entries: &[LineEntry]| entries.iter().map(|e| e.url.to_string()).collect::<Vec<_>>();
            prop_assert_eq!(urls(&found), urls(&whole));
            let bad = lines.iter().filter(|line| matches!(parse_line(line.as_bytes()), Some(Err(_))));
            prop_assert_eq!(refused.len(), bad.count());
        }
    }

    #[test]
    fn one_turn_reads_a_part_of_a_long_list() {
        let all = UrlFilter::default();
        let list = "\n".repeat(3 * LINES_PER_TURN / 2) + &"x".repeat(LINE_MAX + 1) + "\nhttp://a/";
        let mut part = Listed::resume(list.as_bytes(), 0, &all, &|_| None, (0, 0), Vec::new());
        assert!(part.next().is_none() && !part.is_over());
        assert_eq!(part.done(), (LINES_PER_TURN, LINES_PER_TURN));
        let mut rest = Listed::resume(list.as_bytes(), 0, &all, &|_| None, part.done(), Vec::new());
        assert_eq!(rest.next().unwrap().url.as_str(), "http://a/");
        assert!(rest.is_over() && rest.refused[0].why.contains("more than"));
        assert!(rest.refused[0].text.len() <= SHOWN_CHARS);
    }

    #[test]
    fn invalid_lines_are_refused() {
        let mut list = "# a list\nhttp://a.test/\n\nmailto:b\nhttp://c.test/".to_owned();
        list.push_str(&"\nnonsense".repeat(REFUSED_SHOWN));
        list.push_str("\nhttp://d.test/");
        let all = UrlFilter::default();
        let mut listed = Listed::resume(list.as_bytes(), 0, &all, &|_| None, (0, 0), Vec::new());
        let urls = listed.by_ref().map(|entry| entry.url.to_string()).collect::<Vec<_>>();
        assert_eq!(urls, ["http://a.test/", "http://c.test/", "http://d.test/"]);
        assert_eq!(listed.refused.len(), REFUSED_SHOWN);
        let (first, last) = (&listed.refused[0], listed.refused.last().unwrap());
        assert_eq!((first.line, first.text.as_str()), (4, "mailto:b"));
        assert_eq!(last.line, REFUSED_SHOWN as u64 + 4);
    }

    #[test]
    fn lines_too_deep_or_filtered_are_refused() {
        let list = "http://a.test/\n{\"url\":\"http://b.test/\",\"depth\":2}\nhttp://c.test/";
        let filter = UrlFilter::new("", "a.test").unwrap();
        let mut listed = Listed::resume(list.as_bytes(), 1, &filter, &|_| None, (0, 0), Vec::new());
        let urls = listed.by_ref().map(|entry| entry.url.to_string());
        assert_eq!(urls.collect::<Vec<_>>(), ["http://c.test/"]);
        let told = listed.refused.iter().map(|it| (it.line, it.why.as_str())).collect::<Vec<_>>();
        assert!(told[0].0 == 1 && told[0].1.contains("UrlDenyList="), "{told:?}");
        assert_eq!(told[1], (2, "depth 2 exceeds the depth of the crawl, 1"));
    }
}
