//! Words of texts and questions. Case, accents and width do not count. Chinese, Japanese, Korean and
//! other scripts without blanks are indexed as pairs of characters: a run of n characters is n − 1
//! pairs and its last character.

use std::collections::BTreeSet;
use std::ops::Range;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::{canonical_combining_class, compose, is_combining_mark};

/// Longest word in characters; the rest of a longer word is left out.
pub const WORD_MAX: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// Without case, accents and width.
    pub text: String,
    /// In lower case, but with accents: what stemmers expect. Empty for parts of a run.
    pub lower: String,
    /// Number of the word in the text.
    pub position: usize,
    /// Where it begins and ends, in bytes.
    pub range: Range<usize>,
    pub kind: WordKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordKind {
    /// Letters and digits between others.
    Whole,
    /// Two characters of a run.
    Pair,
    /// The last character of a run.
    Last,
}

/// Whether words of the script have no blanks between them, or often have endings attached (Korean).
fn is_dense(c: char) -> bool {
    matches!(u32::from(c),
        0x0E00..=0x0EFF | 0x1000..=0x109F | 0x1780..=0x17FF | 0x3005..=0x3007 | 0x3021..=0x3029
        | 0x3031..=0x3035 | 0x3040..=0x30FA | 0x30FC..=0x30FF | 0x3105..=0x312F | 0x3131..=0x318E
        | 0x31A0..=0x31BF | 0x31F0..=0x31FF | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xA960..=0xA97F
        | 0xAC00..=0xD7FF | 0x1100..=0x11FF | 0xF900..=0xFAFF | 0xFF66..=0xFFDC | 0x1B000..=0x1B16F
        | 0x20000..=0x3FFFF)
}

/// Marks of voice that Japanese writes as characters of their own.
fn is_voice_mark(c: char) -> bool {
    matches!(c, '\u{3099}' | '\u{309a}' | '\u{ff9e}' | '\u{ff9f}')
}

/// Whether the character neither separates words nor counts.
fn is_ignored(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}')
        || archivist_core::text::is_invisible(c)
}

fn is_letter(c: char) -> bool {
    c.is_alphanumeric() || is_combining_mark(c)
}

/// Accents, which are left out, unlike vowels and signs of scripts that have them as marks.
fn is_accent(c: char) -> bool {
    matches!(u32::from(c),
        0x0300..=0x036F | 0x0591..=0x05C7 | 0x064B..=0x065F | 0x0670 | 0x1AB0..=0x1AFF
        | 0x1DC0..=0x1DFF | 0x20D0..=0x20FF)
        && is_combining_mark(c)
}

/// Returns a text in lower case, without accents and width, and only letters and digits of it.
pub fn fold(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let mut folded = String::with_capacity(text.len());
    let plain = text.nfkd().flat_map(char::to_lowercase);
    for c in plain.filter(|c| !is_accent(*c)) {
        match c {
            'ß' => folded.push_str("ss"),
            'æ' => folded.push_str("ae"),
            'œ' => folded.push_str("oe"),
            'þ' => folded.push_str("th"),
            'ø' => folded.push('o'),
            'đ' | 'ð' => folded.push('d'),
            'ł' => folded.push('l'),
            'ı' => folded.push('i'),
            'ς' => folded.push('σ'),
            c => folded.push(c),
        }
    }
    folded.nfc().collect()
}

/// Letters of one kind between others.
pub struct Span {
    /// Where they are in the text, in bytes.
    pub range: Range<usize>,
    /// Whether they are a run of a script without blanks, which is indexed as pairs.
    pub is_dense: bool,
}

/// The [`Span`]s of a text in order.
pub struct Spans<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Spans<'a> {
    pub fn of(text: &'a str) -> Spans<'a> {
        Spans { text, at: 0 }
    }

    /// Where the rest of the text begins, in bytes.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Continues at a character further on, which is not within a word.
    pub fn skip_to(&mut self, at: usize) {
        self.at = at;
    }

    fn char_at(&self, at: usize) -> Option<char> {
        self.text.get(at..)?.chars().next()
    }

    /// The first byte from `at` on for which `holds` is false.
    fn skip_from(&self, at: usize, holds: impl Fn(&u8) -> bool) -> usize {
        let rest = self.text.as_bytes().iter().skip(at);
        at + rest.take_while(|byte| holds(byte)).count()
    }
}

impl Iterator for Spans<'_> {
    type Item = Span;

    fn next(&mut self) -> Option<Span> {
        let (start, first) = loop {
            // Most bytes of most texts are ASCII, for which no table is read.
            self.at = self.skip_from(self.at, |b| b.is_ascii() && !b.is_ascii_alphanumeric());
            let c = self.char_at(self.at)?;
            if is_letter(c) && !is_accent(c) {
                break (self.at, c);
            }
            self.at += c.len_utf8();
        };
        let is_dense_span = is_dense(first);
        let mut end = start + first.len_utf8();
        loop {
            if !is_dense_span {
                end = self.skip_from(end, u8::is_ascii_alphanumeric);
            }
            let belongs = |next: &char| {
                is_ignored(*next)
                    || is_accent(*next)
                    || if is_dense_span {
                        is_dense(*next) || is_voice_mark(*next) || is_combining_mark(*next)
                    } else {
                        is_letter(*next) && !is_dense(*next)
                    }
            };
            let Some(next) = self.char_at(end).filter(belongs) else {
                break;
            };
            end += next.len_utf8();
        }
        self.at = end;
        Some(Span { range: start..end, is_dense: is_dense_span })
    }
}

/// Returns the words of a text in order, at most `most` of them.
pub fn words(text: &str, most: usize) -> Vec<Word> {
    let mut reader = Reader::new(most);
    for span in Spans::of(text) {
        if reader.found.len() >= most {
            break;
        }
        reader.span(text, span);
    }
    reader.found.truncate(most);
    reader.found
}

/// Returns the words of one span of a text, at most `most` of them.
pub fn words_of(text: &str, span: Span, most: usize) -> Vec<Word> {
    let mut reader = Reader::new(most);
    reader.span(text, span);
    reader.found.truncate(most);
    reader.found
}

/// Returns the first letters of the words between blanks, without those of scripts that have none.
pub fn initials(text: &str) -> BTreeSet<char> {
    let mut found = BTreeSet::new();
    for span in Spans::of(text).filter(|span| !span.is_dense) {
        let word = &text[span.range];
        if word.starts_with(|c: char| c.is_ascii_alphanumeric()) {
            // Marks that follow an ASCII letter are accents.
            found.insert(char::from(word.as_bytes()[0].to_ascii_lowercase()));
        } else {
            let word = words(word, 1).into_iter().next();
            found.extend(word.and_then(|word| word.text.chars().next()));
        }
    }
    found
}

struct Reader {
    found: Vec<Word>,
    most: usize,
}

impl Reader {
    fn new(most: usize) -> Reader {
        Reader { found: Vec::new(), most }
    }

    fn span(&mut self, text: &str, span: Span) {
        let start = span.range.start;
        let letters = &text[span.range];
        if span.is_dense {
            self.run(letters, start);
        } else {
            self.whole(letters, start);
        }
    }

    fn push(&mut self, text: String, lower: String, range: Range<usize>, kind: WordKind) {
        let position = self.found.len();
        self.found.push(Word { text, lower, position, range, kind });
    }

    fn whole(&mut self, word: &str, start: usize) {
        let end = start + word.len();
        if word.len() <= WORD_MAX && word.is_ascii() {
            let lower = word.to_ascii_lowercase();
            return self.push(lower.clone(), lower, start..end, WordKind::Whole);
        }
        let letters = word.chars().filter(|c| !is_ignored(*c));
        let word: String = letters.take(WORD_MAX).collect();
        let folded: String = fold(&word).chars().filter(|c| is_letter(*c)).collect();
        let folded: String = folded.chars().take(WORD_MAX).collect();
        if folded.is_empty() {
            return;
        }
        let lower: String = word.nfkc().flat_map(char::to_lowercase).collect();
        self.push(folded, lower, start..end, WordKind::Whole);
    }

    fn run(&mut self, run: &str, start: usize) {
        let mut letters: Vec<(char, Range<usize>)> = Vec::new();
        for (at, c) in run.char_indices().filter(|(_, c)| !is_ignored(*c)) {
            let range = start + at..start + at + c.len_utf8();
            for c in std::iter::once(c).nfkc().flat_map(char::to_lowercase) {
                let joined = letters.last_mut().and_then(|last| {
                    let mark = match c {
                        '\u{ff9e}' => '\u{3099}',
                        '\u{ff9f}' => '\u{309a}',
                        c => c,
                    };
                    Some((compose(last.0, mark)?, last))
                });
                match joined {
                    Some((composed, last)) => {
                        last.0 = composed;
                        last.1.end = range.end;
                    }
                    None if is_voice_mark(c)
                        || canonical_combining_class(c) != 0 && is_accent(c) =>
                    {
                        if let Some(last) = letters.last_mut() {
                            last.1.end = range.end;
                        }
                    }
                    None => letters.push((c, range.clone())),
                }
            }
            if letters.len() + self.found.len() > self.most {
                break;
            }
        }
        for pair in letters.windows(2) {
            let range = pair[0].1.start..pair[1].1.end;
            self.push(
                String::from_iter([pair[0].0, pair[1].0]),
                String::new(),
                range,
                WordKind::Pair,
            );
        }
        if let Some((last, range)) = letters.pop() {
            self.push(last.to_string(), String::new(), range, WordKind::Last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<String> {
        words(text, 1000).into_iter().map(|word| word.text).collect()
    }

    #[test]
    fn case_accents_and_width_do_not_count() {
        for (text, expected) in [
            ("Café CAFÉ cafe\u{301}", vec!["cafe", "cafe", "cafe"]),
            ("ｆｕｌｌ ＷＩＤＴＨ", vec!["full", "width"]),
            ("Straße ŁÓDŹ smørrebrød", vec!["strasse", "lodz", "smorrebrod"]),
            ("soft\u{ad}hyphen zero\u{200b}width", vec!["softhyphen", "zerowidth"]),
            ("l'archive C++ a_b", vec!["l", "archive", "c", "a", "b"]),
            ("\u{202e}abc\u{202c}", vec!["abc"]),
            ("ё й", vec!["е", "и"]),
            ("हिन्दी", vec!["हिन्दी"]),
        ] {
            assert_eq!(texts(text), expected, "{text}");
        }
    }

    #[test]
    fn runs_are_pairs_and_the_last_character() {
        assert_eq!(texts("日本語"), ["日本", "本語", "語"]);
        assert_eq!(texts("A級"), ["a", "級"]);
        assert_eq!(texts("第3回"), ["第", "3", "回"]);
        assert_eq!(texts("ｶﾞｽ"), texts("ガス"));
        assert_eq!(texts("ガス"), ["ガス", "ス"]);
        assert_eq!(texts("か\u{3099}す"), texts("がす"));
        assert_eq!(texts("한국어"), ["한국", "국어", "어"]);
    }

    #[test]
    fn long_and_strange_texts_are_read() {
        assert_eq!(texts(&"a".repeat(1 << 20)), ["a".repeat(WORD_MAX)]);
        assert_eq!(words(&"語".repeat(1 << 20), 500).len(), 500);
        assert_eq!(texts("a\0b"), ["a", "b"]);
        assert_eq!(texts("\u{301}\u{fe0f}\u{200d}"), Vec::<String>::new());
    }

    proptest::proptest! {
        #[test]
        fn initials_are_those_of_words(text in "([a-cA-Z0-9éŁßæœ日ガक\u{301}\u{338}\u{93c}\u{fe0f}]|\\PC| ){0,40}") {
            let words = words(&text, 1000).into_iter();
            let words = words.filter(|word| word.kind == WordKind::Whole);
            let of_words: BTreeSet<char> = words.filter_map(|word| word.text.chars().next()).collect();
            proptest::prop_assert_eq!(initials(&text), of_words);
        }

        #[test]
        fn any_text_has_words_in_order(text in ".*") {
            let found = words(&text, 1000);
            let mut before = 0;
            for (at, word) in found.iter().enumerate() {
                proptest::prop_assert_eq!(word.position, at);
                proptest::prop_assert!(!word.text.is_empty() && word.text.len() < 1000);
                proptest::prop_assert!(word.range.start >= before && text.get(word.range.clone()).is_some());
                before = word.range.start;
            }
        }
    }
}
