//! The part of a text that is shown of a hit.

use crate::query::Parsed;
use crate::stem::Stems;
use crate::words::{Word, WordKind, words};
use archivist_core::model::search::SnippetPart;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Words of the text that are searched for those of the question.
const SEARCHED: usize = 200_000;
/// Length of a snippet in words, and of what stands before its first marked word.
const WORDS: usize = 30;
const BEFORE: usize = 6;
/// Longest snippet in bytes: words can be long, and far apart.
const BYTES_MAX: usize = 400;

/// Finds the words of a question in texts.
pub struct Marker<'a> {
    /// Words as they are written, with their number.
    written: HashMap<&'a str, usize>,
    /// Beginnings of words, with their number.
    prefixes: Vec<(&'a str, usize)>,
    /// Stems, with the number of their word.
    forms: HashMap<String, usize>,
    /// First letters of words with stems.
    initials: HashSet<char>,
}

impl<'a> Marker<'a> {
    /// Takes a question and the languages of the index.
    pub fn new(parsed: &'a Parsed, stems: &[Stems]) -> Marker<'a> {
        let mut marker = Marker {
            written: HashMap::new(),
            prefixes: Vec::new(),
            forms: HashMap::new(),
            initials: HashSet::new(),
        };
        let mut number = 0;
        for part in parsed.parts.iter().filter(|part| !part.is_without) {
            for (at, word) in part.words.iter().enumerate() {
                number += 1;
                if part.is_prefix && at + 1 == part.words.len() {
                    marker.prefixes.push((&word.text, number));
                    continue;
                }
                marker.written.insert(&word.text, number);
                if part.has_forms && part.words.len() == 1 {
                    let terms = stems.iter().filter_map(|stems| stems.term(word));
                    marker.forms.extend(terms.map(|term| (term, number)));
                    marker.initials.extend(word.lower.chars().next());
                }
            }
        }
        marker
    }

    /// Returns the number of the word of the question that a word of the text is.
    fn find(&self, word: &Word, stems: Option<&Stems>) -> Option<usize> {
        let text = word.text.as_str();
        if let Some(number) = self.written.get(text) {
            return Some(*number);
        }
        let prefix = self
            .prefixes
            .iter()
            .find(|(prefix, _)| text.starts_with(prefix));
        if let Some((_, number)) = prefix {
            return Some(*number);
        }
        let may_be_form = word.kind == WordKind::Whole
            && word
                .lower
                .chars()
                .next()
                .is_some_and(|first| self.initials.contains(&first));
        let stems = stems.filter(|_| may_be_form)?;
        self.forms.get(&stems.term(word)?).copied()
    }

    /// Returns the part of a text that has most of the words, with these marked; its beginning if it has
    /// none.
    pub fn snippet(&self, text: &str, language: Option<&str>) -> Vec<SnippetPart> {
        let stems = language.and_then(Stems::of);
        let words = words(text, SEARCHED);
        let found = words.iter().enumerate();
        let found: Vec<(usize, usize)> = found
            .filter_map(|(at, word)| Some((at, self.find(word, stems.as_ref())?)))
            .collect();
        let from = best_start(&found).saturating_sub(BEFORE);
        let shown = words.get(from..).unwrap_or_default();
        let shown = &shown[..shown.len().min(WORDS)];
        let (Some(first), Some(last)) = (shown.first(), shown.last()) else {
            return Vec::new();
        };
        let start = first.range.start;
        let end = text.floor_char_boundary(last.range.end.min(start + BYTES_MAX));
        let marks = found.iter().map(|(at, _)| words[*at].range.clone());
        let marks = marks.filter(|mark| mark.start >= start && mark.end <= end);
        let mut parts = parts(text, start..end, marks);
        if from > 0 {
            parts.insert(0, plain("… "));
        }
        if from + shown.len() < words.len() || end < last.range.end {
            parts.push(plain(" …"));
        }
        parts
    }
}

fn plain(text: &str) -> SnippetPart {
    SnippetPart {
        text: text.to_owned(),
        marked: false,
    }
}

/// The word at which the part with most different words begins; the first of equally good ones.
fn best_start(found: &[(usize, usize)]) -> usize {
    let mut best = (0, 0);
    let mut counts: HashMap<usize, usize> = HashMap::new();
    let mut end = 0;
    for (start, (at, number)) in found.iter().enumerate() {
        while end < found.len() && found[end].0 < at + WORDS - BEFORE {
            *counts.entry(found[end].1).or_default() += 1;
            end += 1;
        }
        if counts.len() > best.0 {
            best = (counts.len(), found[start].0);
        }
        if let Some(count) = counts.get_mut(number) {
            *count -= 1;
            if *count == 0 {
                counts.remove(number);
            }
        }
    }
    best.1
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
            parts.push(SnippetPart {
                text: one_line(&text[range]),
                marked,
            });
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

    fn marked(question: &str, text: &str, language: Option<&str>) -> String {
        let parsed = parse(question);
        let stems: Vec<Stems> = language.and_then(Stems::of).into_iter().collect();
        let parts = Marker::new(&parsed, &stems).snippet(text, language);
        let part = |part: SnippetPart| {
            if part.marked {
                format!("[{}]", part.text)
            } else {
                part.text
            }
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
        assert_eq!(
            marked("arch*", text, None),
            "The [Archives] were [archived] in an [ARCHIVE]"
        );
        assert_eq!(
            marked("日本語", "これは日本語です", None),
            "これは[日本語]です"
        );
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
    }

    #[test]
    fn snippets_are_short() {
        let text = "語".repeat(1 << 20);
        assert!(marked("語", &text, None).len() < 2 * BYTES_MAX);
        let text = format!("a{}b", " ".repeat(1 << 20));
        assert!(marked("a", &text, None).len() < 2 * BYTES_MAX);
    }
}
