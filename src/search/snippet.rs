//! The part of a text that is shown of a hit.
//!
//! Not by tantivy: its snippets mark whole terms, not the beginning of a word, count a word that repeats
//! for several, begin at a mark, are empty without one, and read all words of a text.

use crate::query::{Parsed, Place};
use crate::stem::Stems;
use crate::words::{Span, Spans, WORD_MAX, Word, WordKind, words_of};
use aho_corasick::AhoCorasick;
use archivist_core::model::search::SnippetPart;
use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::Range;

/// Words of the text that are searched for those of the question.
const SEARCHED: usize = 200_000;
/// Length of a snippet in words, and of what stands before its first marked word.
const WORDS: usize = 30;
const BEFORE: usize = 6;
/// Longest snippet in bytes: words can be long, and far apart.
const BYTES_MAX: usize = 400;

/// Bytes of a text in which the words are looked for in one step; a part without any is skipped.
const BLOCK: usize = 4096;
/// Bytes before a part with a word that are read, too, because the snippet may begin there.
const BACK: usize = BYTES_MAX;
/// Fewest first letters by which the forms of a word are found. All forms begin as their stem does, but its
/// last letter can differ: `study` and `studies` have the stem `studi`.
const LETTERS_MIN: usize = 3;

pub struct Marker<'a> {
    /// Words as they are written, with their number.
    written: HashMap<&'a str, usize>,
    /// Beginnings of words, with their number.
    prefixes: Vec<(&'a str, usize)>,
    /// Stems, with the number of their word.
    forms: HashMap<String, usize>,
    /// First letters of words with stems.
    initials: HashSet<char>,
    /// First bytes of all words above: other words of a text are not looked up.
    first_bytes: [bool; 256],
    /// Finds where a part of ASCII can have one of the words; `None` if a word begins with other letters.
    starts: Option<AhoCorasick>,
    /// How many numbers there are.
    count: usize,
}

impl<'a> Marker<'a> {
    pub fn new(parsed: &'a Parsed, stems: &[Stems]) -> Marker<'a> {
        let mut marker = Marker {
            written: HashMap::new(),
            prefixes: Vec::new(),
            forms: HashMap::new(),
            initials: HashSet::new(),
            first_bytes: [false; 256],
            starts: None,
            count: 0,
        };
        let mut number = 0;
        let mut starts = Vec::new();
        for part in parsed.parts().filter(|part| part.place != Place::Url) {
            for (at, word) in part.words.iter().enumerate() {
                number += 1;
                if part.is_prefix && at + 1 == part.words.len() {
                    marker.prefixes.push((&word.text, number));
                    starts.push(word.text.as_str());
                    continue;
                }
                marker.written.insert(&word.text, number);
                let mut letters = word.text.len();
                if part.has_forms && part.words.len() == 1 {
                    for term in stems.iter().filter_map(|stems| stems.term(word)) {
                        let stem = term.split_once(':').map_or(0, |(_, stem)| stem.len());
                        letters = letters.min(stem.saturating_sub(1).max(LETTERS_MIN));
                        marker.forms.insert(term, number);
                    }
                    marker.initials.extend(word.lower.chars().next());
                }
                starts.push(&word.text[..word.text.floor_char_boundary(letters)]);
            }
        }
        let texts = marker.written.keys();
        let texts = texts.chain(marker.prefixes.iter().map(|(text, _)| text));
        if starts.iter().all(|start| start.is_ascii()) {
            let finder = AhoCorasick::builder().ascii_case_insensitive(true).build(starts);
            marker.starts = finder.ok();
        }
        let initials = marker.initials.iter().filter_map(|c| u8::try_from(*c).ok());
        let bytes = texts.filter_map(|text| text.bytes().next());
        for byte in bytes.chain(initials) {
            marker.first_bytes[usize::from(byte)] = true;
        }
        let numbers = marker.written.values().chain(marker.forms.values());
        let numbers = numbers.chain(marker.prefixes.iter().map(|(_, number)| number));
        marker.count = numbers.collect::<HashSet<_>>().len();
        marker
    }

    /// Returns the part of a text that has most of the words, with these marked; its beginning if it has
    /// none.
    pub fn snippet(&self, text: &str, language: Option<&str>) -> Vec<SnippetPart> {
        let mut finder =
            Finder { marker: self, stems: language.and_then(Stems::of), forms: HashMap::new() };
        let mut windows = Windows::of(self.count);
        let mut spans = Spans::of(text);
        let mut looked_to = 0;
        while windows.is_open() && windows.left() > 0 {
            if spans.at() >= looked_to && windows.may_skip() {
                let from = spans.at();
                looked_to = self.next_start(text.as_bytes(), from);
                if looked_to - from > 2 * BACK {
                    let back = text.as_bytes()[looked_to - BACK..looked_to].iter();
                    let blank = back.clone().position(u8::is_ascii_whitespace);
                    spans.skip_to(looked_to - BACK + blank.unwrap_or(0));
                    windows.skip();
                }
                looked_to += BLOCK;
            }
            let Some(span) = spans.next() else {
                break;
            };
            finder.read(text, span, &mut windows);
        }
        windows.best().shown(text)
    }

    /// Returns where the next part of a text is that may have one of the words, or is not ASCII.
    fn next_start(&self, text: &[u8], from: usize) -> usize {
        let Some(starts) = &self.starts else {
            return from;
        };
        let mut at = from;
        while at < text.len() {
            // A word may begin at the end of the part.
            let part = &text[at..text.len().min(at + BLOCK + WORD_MAX)];
            if !part.is_ascii() || starts.is_match(part) {
                return at;
            }
            at += BLOCK;
        }
        text.len()
    }
}

/// Compares the words of one text with those of a question.
struct Finder<'a> {
    marker: &'a Marker<'a>,
    /// Stems of the language of the text.
    stems: Option<Stems>,
    /// The numbers of words of the text that were compared by their stems.
    forms: HashMap<String, Option<usize>>,
}

impl Finder<'_> {
    fn read(&mut self, text: &str, span: Span, windows: &mut Windows) {
        let letters = &text[span.range.clone()];
        // What words() makes of such a span, without its strings.
        if !span.is_dense && letters.is_ascii() && letters.len() <= WORD_MAX {
            let first = letters.as_bytes().first().map(u8::to_ascii_lowercase);
            let may_be = first.is_some_and(|byte| self.marker.first_bytes[usize::from(byte)]);
            let number = may_be.then(|| letters.to_ascii_lowercase());
            let number = number.and_then(|lower| self.number(&lower, &lower));
            windows.push(span.range, number);
            return;
        }
        for Word { text, lower, range, kind, .. } in words_of(text, span, windows.left()) {
            let lower = if kind == WordKind::Whole { &lower } else { "" };
            let number = self.number(&text, lower);
            windows.push(range, number);
        }
    }

    /// Returns the number of the word of the question that a word of the text is.
    fn number(&mut self, text: &str, lower: &str) -> Option<usize> {
        if let Some(number) = self.marker.written.get(text) {
            return Some(*number);
        }
        let mut prefixes = self.marker.prefixes.iter();
        if let Some((_, number)) = prefixes.find(|(prefix, _)| text.starts_with(prefix)) {
            return Some(*number);
        }
        let stems = self.stems.as_ref()?;
        let first = lower.chars().next()?;
        if !self.marker.initials.contains(&first) {
            return None;
        }
        if let Some(known) = self.forms.get(lower) {
            return *known;
        }
        let term = stems.term_of(lower);
        let number = term.and_then(|term| self.marker.forms.get(&term).copied());
        self.forms.insert(lower.to_owned(), number);
        number
    }
}

/// Reads the words of a text in order, and keeps the part of them that is shown: of those that have most
/// different words of the question, the first.
struct Windows {
    /// The last words, with the number of those that are marked.
    last: VecDeque<(Range<usize>, Option<usize>)>,
    /// Words that were read.
    read: usize,
    /// Whether [`last`](Self::last) has the first words of the text, or the first ones after a part that
    /// was skipped.
    is_begin: bool,
    best: Option<Window>,
    /// How many different words a part can have.
    most: usize,
}

#[derive(Default)]
struct Window {
    /// From its first to the end of its last word, in bytes.
    range: Range<usize>,
    /// Its marked words. The end of a run is in its last pair, and a word of its own.
    marks: Vec<Range<usize>>,
    /// How many different words of the question it has.
    count: usize,
    has_before: bool,
    has_after: bool,
}

impl Windows {
    fn of(most: usize) -> Windows {
        Windows {
            last: VecDeque::with_capacity(WORDS + 1),
            read: 0,
            is_begin: true,
            best: None,
            most,
        }
    }

    /// Words that are read at most.
    fn left(&self) -> usize {
        SEARCHED.saturating_sub(self.read)
    }

    /// Whether a later part could be better, or the end of the best one is not known.
    fn is_open(&self) -> bool {
        let best = self.best.as_ref();
        best.is_none_or(|best| best.count < self.most)
    }

    /// Whether words without marks may be skipped now: the last words have no mark, so every part with one
    /// was compared.
    fn may_skip(&self) -> bool {
        let is_full = self.best.is_some() && self.last.len() == WORDS;
        is_full && self.last.iter().all(|(_, number)| number.is_none())
    }

    /// Continues after words that were not read.
    fn skip(&mut self) {
        self.last.clear();
        self.is_begin = true;
    }

    fn push(&mut self, range: Range<usize>, number: Option<usize>) {
        if self.last.len() == WORDS {
            // Everything that a part with its first mark here can have was read.
            let first = if self.is_begin { 0 } else { BEFORE };
            for at in first..=BEFORE {
                self.consider(at, number.map(|_| &range), true);
            }
            self.last.pop_front();
            self.is_begin = false;
        }
        self.last.push_back((range, number));
        self.read += 1;
    }

    /// Compares the best part with that whose first mark is one of the last words. The beginning of the
    /// text is a part without a mark. `next` is the mark after the last words.
    fn consider(&mut self, at: usize, next: Option<&Range<usize>>, has_after: bool) {
        let number = |at: usize| self.last.get(at).and_then(|(_, number)| *number);
        if number(at).is_none() && self.best.is_some() {
            return;
        }
        let marked = at..self.last.len().min(at + WORDS - BEFORE);
        let is_new = |seen: usize| {
            let found = number(seen);
            found.is_some() && !(at..seen).any(|before| number(before) == found)
        };
        let count = match number(at) {
            Some(_) => marked.filter(|seen| is_new(*seen)).count(),
            None => 0,
        };
        if self.best.as_ref().is_none_or(|best| count > best.count) {
            let from = at.saturating_sub(BEFORE);
            let words = self.last.iter().skip(from);
            let start = words.clone().next().map_or(0, |(range, _)| range.start);
            let marks = words.filter(|(_, number)| number.is_some());
            self.best = Some(Window {
                range: start..self.last.back().map_or(start, |(range, _)| range.end),
                marks: marks.map(|(range, _)| range).chain(next).cloned().collect(),
                count,
                has_before: self.read - self.last.len() + from > 0,
                has_after,
            });
        }
    }

    /// The best part of what was read.
    fn best(mut self) -> Window {
        let first = if self.is_begin { 0 } else { BEFORE };
        if self.is_open() {
            for at in first..self.last.len() {
                self.consider(at, None, false);
            }
        }
        self.best.unwrap_or_default()
    }
}

impl Window {
    fn shown(self, text: &str) -> Vec<SnippetPart> {
        let Range { start, end: last } = self.range;
        if start >= last {
            return Vec::new();
        }
        let end = text.floor_char_boundary(last.min(start + BYTES_MAX));
        let marks = self.marks.into_iter();
        let marks = marks.filter(|mark| mark.start >= start && mark.end <= end);
        let mut parts = parts(text, start..end, marks);
        if self.has_before {
            parts.insert(0, plain("… "));
        }
        if self.has_after || end < last {
            parts.push(plain(" …"));
        }
        parts
    }
}

fn plain(text: &str) -> SnippetPart {
    SnippetPart { text: text.to_owned(), marked: false }
}

/// Cuts a text at its marks; pairs of characters that overlap are one mark.
fn parts(
    text: &str,
    range: Range<usize>,
    marks: impl Iterator<Item = Range<usize>>,
) -> Vec<SnippetPart> {
    let mut joined: Vec<Range<usize>> = Vec::new();
    for mark in marks {
        match joined.last_mut() {
            Some(last) if mark.start <= last.end => last.end = last.end.max(mark.end),
            _ => joined.push(mark),
        }
    }
    let mut parts = Vec::new();
    let mut push = |range: Range<usize>, marked: bool| {
        if !range.is_empty() {
            parts.push(SnippetPart { text: one_line(&text[range]), marked });
        }
    };
    let mut at = range.start;
    for mark in joined {
        push(at..mark.start, false);
        at = mark.end;
        push(mark, true);
    }
    push(at..range.end, false);
    parts
}

/// A text with one blank in place of each run of blanks and line ends.
fn one_line(text: &str) -> String {
    let mut line = String::new();
    for c in text.chars() {
        let c = if c.is_whitespace() { ' ' } else { c };
        if c != ' ' || !line.ends_with(' ') {
            line.push(c);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::parse;
    use crate::words::words;

    fn marked_in(question: &str, text: &str) -> String {
        marked(question, text, None)
    }

    fn marked(question: &str, text: &str, language: Option<&str>) -> String {
        let parsed = parse(question);
        let stems: Vec<Stems> = language.and_then(Stems::of).into_iter().collect();
        let parts = Marker::new(&parsed, &stems).snippet(text, language);
        let part = |part: SnippetPart| {
            if part.marked { format!("[{}]", part.text) } else { part.text }
        };
        parts.into_iter().map(part).collect()
    }

    #[test]
    fn words_are_marked_in_any_form() {
        let text = "The Archives were\n archived in an  ARCHIVE.";
        assert_eq!(
            marked("archive", text, Some("en")),
            "The [Archives] were [archived] in an [ARCHIVE]"
        );
        assert_eq!(
            marked("\"archive\"", text, Some("en")),
            "The Archives were archived in an [ARCHIVE]"
        );
        assert_eq!(marked("arch*", text, None), "The [Archives] were [archived] in an [ARCHIVE]");
        assert_eq!(marked("日本語", "これは日本語です", None), "これは[日本語]です");
        assert_eq!(marked("本", "日本語", None), "日[本語]");
    }

    #[test]
    fn part_with_most_words_is_shown() {
        let far = "filler ".repeat(100);
        let text = format!("one {far} one and two {far}");
        let shown = marked("one two", &text, None);
        assert!(shown.contains("[one] and [two]"), "{shown}");
        assert!(shown.starts_with('…') && shown.ends_with('…'), "{shown}");
        assert_eq!(marked("three", "Nothing of it", None), "Nothing of it");
        assert_eq!(marked("x", "", None), "");
        // The last character of a run after the last pair that is shown.
        let text = format!("語 {}日語 x", "x ".repeat(28));
        let shown = marked("語", &text, None);
        assert!(shown.ends_with("日[語] …"), "{shown}");
    }

    proptest::proptest! {
        /// What reading all words first finds: the first of the parts with most different words.
        #[test]
        fn first_of_the_best_parts_is_shown(text in "([a-c]{1,2}[ .]){0,90}", question in "[a-c]{1,2}( [a-c]{1,2}){0,2}") {
            let all = words(&text, 1000);
            let asked: HashSet<&str> = question.split(' ').collect();
            let is_marked = |at: &usize| asked.contains(all[*at].text.as_str());
            let count = |at: &usize| {
                let part = all[*at..all.len().min(at + WORDS - BEFORE)].iter();
                part.map(|word| word.text.as_str()).filter(|word| asked.contains(word)).collect::<HashSet<_>>().len()
            };
            let marked: Vec<usize> = (0..all.len()).filter(is_marked).collect();
            let most = marked.iter().map(count).max().unwrap_or(0);
            let first = marked.iter().find(|at| count(at) == most).copied().unwrap_or(0);
            let from = first.saturating_sub(BEFORE);
            let shown = &all[from..all.len().min(from + WORDS)];
            let mut expected = if from > 0 { "… ".to_owned() } else { String::new() };
            for (at, word) in shown.iter().enumerate() {
                let end = shown.get(at + 1).map_or(word.range.end, |next| next.range.start);
                let after = &text[word.range.end..end];
                let is_mark = asked.contains(word.text.as_str());
                expected += &if is_mark { format!("[{}]{after}", word.text) } else { format!("{}{after}", word.text) };
            }
            if from + shown.len() < all.len() {
                expected += " …";
            }
            proptest::prop_assert_eq!(marked_in(&question, &text), expected);
        }
    }

    proptest::proptest! {
        /// Skipping what has no word changes nothing.
        #[test]
        fn skipped_parts_change_nothing(parts in proptest::collection::vec(("(alpha|beta|Alphabet|gamma|é|日本|x){0,2}", 0_usize..3000), 0..6)) {
            let mut text = String::new();
            for (words, fillers) in parts {
                text.push_str(&words);
                text.push_str(&" some filler\n".repeat(fillers));
            }
            let parsed = parse("alpha beta");
            let mut marker = Marker::new(&parsed, &[]);
            let skipping = marker.snippet(&text, None);
            proptest::prop_assert!(marker.starts.take().is_some());
            proptest::prop_assert_eq!(skipping, marker.snippet(&text, None));
        }
    }

    #[test]
    fn snippets_are_short() {
        let text = "語".repeat(1 << 20);
        assert!(marked("語", &text, None).len() < 2 * BYTES_MAX);
        let text = format!("a{}b", " ".repeat(1 << 20));
        assert!(marked("a", &text, None).len() < 2 * BYTES_MAX);
    }
}
