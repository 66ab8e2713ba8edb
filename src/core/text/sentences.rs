//! Which sentences of a text are new, as a reader sees it: a date or a counter that changed makes none.

use std::collections::HashMap;

/// Longest sentence that is returned, in characters.
const SENTENCE_MAX_CHARS: usize = 160;

/// How the sentences of two texts differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextChange {
    /// Their order, or nothing.
    Nothing,
    /// Numbers, dates and times.
    Figures,
    /// The first sentence that only the newer text has.
    New(String),
    /// The first sentence that only the older text had.
    Gone(String),
}

/// Compares the lines that one of two texts has and the other has not.
pub fn text_change<'a>(
    removed: impl Iterator<Item = &'a str>,
    added: impl Iterator<Item = &'a str>,
) -> TextChange {
    let old: Vec<&str> = removed.flat_map(sentences).collect();
    let new: Vec<&str> = added.flat_map(sentences).collect();
    let is_same = |sentence: &str| sentence.to_owned();
    if first_beyond(&new, &old, is_same).is_none() && first_beyond(&old, &new, is_same).is_none() {
        return TextChange::Nothing;
    }
    if let Some(sentence) = first_beyond(&new, &old, without_figures) {
        return TextChange::New(shown(sentence));
    }
    match first_beyond(&old, &new, without_figures) {
        Some(sentence) => TextChange::Gone(shown(sentence)),
        None => TextChange::Figures,
    }
}

/// The first of some sentences that is not among others, or more often than there. They are compared by
/// their keys, and one without a key is none.
fn first_beyond<'a>(
    some: &[&'a str],
    others: &[&str],
    key: impl Fn(&str) -> String,
) -> Option<&'a str> {
    let mut known: HashMap<String, usize> = HashMap::new();
    for other in others {
        *known.entry(key(other)).or_default() += 1;
    }
    some.iter().copied().find(|sentence| {
        let key = key(sentence);
        match known.get_mut(&key) {
            Some(count) if *count > 0 => {
                *count -= 1;
                false
            }
            _ => !key.is_empty(),
        }
    })
}

/// The sentences of a line: up to a full stop or the like before a blank.
fn sentences(line: &str) -> Vec<&str> {
    let mut all = Vec::new();
    let mut start = 0;
    let mut letters = line.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        let next_is_blank = letters.peek().is_none_or(|(_, next)| next.is_whitespace());
        let is_end = matches!(letter, '。' | '！' | '？')
            || matches!(letter, '.' | '!' | '?' | '…') && next_is_blank;
        if is_end {
            let end = at + letter.len_utf8();
            all.push(line[start..end].trim());
            start = end;
        }
    }
    all.push(line[start..].trim());
    all.retain(|sentence| !sentence.is_empty());
    all
}

/// The words of a sentence that are no number, date or time, without their signs.
fn without_figures(sentence: &str) -> String {
    let words = sentence.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let words: Vec<String> = words.map(str::to_lowercase).filter(|word| !is_figure(word)).collect();
    words.join(" ")
}

/// Whether a word in lower case has a digit, or is part of a date or of a span of time.
fn is_figure(word: &str) -> bool {
    const MONTHS: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    const DAYS: [&str; 7] =
        ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
    const SPANS: [&str; 7] = ["second", "minute", "hour", "day", "week", "month", "year"];
    const OTHERS: [&str; 9] =
        ["am", "pm", "utc", "gmt", "cet", "cest", "today", "yesterday", "sept"];
    let is_start = |name: &&str| word == *name || word.len() == 3 && name.starts_with(word);
    word.contains(char::is_numeric)
        || MONTHS.iter().chain(&DAYS).any(is_start)
        || SPANS.contains(&word.strip_suffix('s').unwrap_or(word))
        || OTHERS.contains(&word)
}

fn shown(sentence: &str) -> String {
    let mut letters = sentence.chars();
    let shown: String = letters.by_ref().take(SENTENCE_MAX_CHARS).collect();
    if letters.next().is_some() { shown + "…" } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn change(old: &[&str], new: &[&str]) -> TextChange {
        text_change(old.iter().copied(), new.iter().copied())
    }

    #[test]
    fn dates_and_counters_are_no_sentences() {
        for (old, new) in [
            ("Last change: Sat, 28 Nov 2026 16:04", "Last change: Sunday, 29 November 2026 07:41"),
            ("1,024 visitors since May", "1,025 visitors since May"),
            ("Written 5 minutes ago.", "Written 2 hours ago."),
            ("v1.2", "v1.10"),
            ("2026-11-28", "2026-11-29, 9:05 am"),
        ] {
            assert_eq!(change(&[old], &[new]), TextChange::Figures, "{new}");
        }
    }

    #[test]
    fn first_sentence_that_changed_is_named() {
        let new = |text: &str| TextChange::New(text.to_owned());
        let old = "Posted on 1 May 2026. It costs 3 euros! The end.";
        let changed = "Posted on 2 May 2026. It is for free! The end.";
        assert_eq!(change(&[old], &[changed]), new("It is for free!"));
        assert_eq!(
            change(&["a b"], &["a b", "A line without a stop"]),
            new("A line without a stop")
        );
        assert_eq!(change(&["天気。雨。"], &["天気。晴れ。"]), new("晴れ。"));
        assert_eq!(
            change(&["One. Two, e.g. a.b. Three."], &["One. Three."]),
            TextChange::Gone("Two, e.g.".to_owned())
        );
        assert_eq!(change(&["One.", "Two."], &["Two. One."]), TextChange::Nothing);
        assert_eq!(change(&["One."], &["One. One."]), new("One."));
        assert_eq!(change(&[], &["12:30"]), TextChange::Figures);
        let long = "word ".repeat(100);
        let TextChange::New(shown) = change(&[], &[long.as_str()]) else { panic!("nothing new") };
        assert_eq!(shown.chars().count(), SENTENCE_MAX_CHARS + 1);
    }

    proptest! {
        #[test]
        fn sentences_have_all_words(old in ".{0,60}", new in ".{0,60}") {
            prop_assert_eq!(change(&[new.as_str()], &[new.as_str()]), TextChange::Nothing);
            let joined: String = sentences(&new).concat();
            let letters = |text: &str| text.chars().filter(|c| !c.is_whitespace()).count();
            prop_assert_eq!(letters(&joined), letters(&new));
            let _ = change(&[old.as_str()], &[new.as_str()]);
        }
    }
}
