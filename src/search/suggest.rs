//! "Did you mean": the words of the index that resemble those that it does not have.

use crate::query::{Parsed, Part};
use crate::schema::Fields;
use crate::words::WordKind;
use strsim::osa_distance;
use tantivy::{Searcher, Term};

/// Words of a question that are compared with those of the index, at most.
const COMPARED: usize = 4;
/// Shortest word in characters that is compared.
const SHORTEST: usize = 3;
/// Longest one, because a comparison takes time in the product of lengths.
const LONGEST: usize = 40;

/// Returns the question with words of the index in place of those that are not in it. `None` if nothing
/// in the index resembles them.
pub fn nearest(
    searcher: &Searcher,
    fields: &Fields,
    parsed: &Parsed,
    question: &str,
) -> tantivy::Result<Option<String>> {
    let mut meant = question.to_owned();
    let single = |part: &&Part| {
        part.words.len() == 1 && part.words[0].kind == WordKind::Whole && !part.is_without
    };
    for part in parsed.parts.iter().filter(single).take(COMPARED) {
        let word = part.words[0].text.as_str();
        let length = word.chars().count();
        if !(SHORTEST..=LONGEST).contains(&length) || is_known(searcher, fields, word)? {
            continue;
        }
        if let Some(other) = resembling(searcher, fields, word)? {
            meant = meant.replacen(&part.written, &other, 1);
        }
    }
    Ok((meant != question).then_some(meant))
}

fn is_known(searcher: &Searcher, fields: &Fields, word: &str) -> tantivy::Result<bool> {
    for field in [fields.text, fields.title, fields.url] {
        if searcher.doc_freq(&Term::from_field_text(field, word))? > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A bit for each letter of a word; some letters share one.
fn letters(word: &str) -> u64 {
    let bits = word.chars().map(|c| 1 << (u32::from(c) % u64::BITS));
    bits.fold(0, |all, bit: u64| all | bit)
}

/// Whether a word of `length` characters with these letters may be within a distance of a term: an edit
/// adds at most one letter and removes at most one. The distance itself takes far longer.
fn may_resemble(of_word: u64, length: usize, term: &str, farthest: usize) -> bool {
    let of_term = letters(term);
    let lacks = (of_word & !of_term).count_ones() as usize;
    let adds = (of_term & !of_word).count_ones() as usize;
    lacks <= farthest && adds <= farthest && term.chars().count().abs_diff(length) <= farthest
}

/// The nearest word of titles and texts; among equally near ones, that of most pages.
fn resembling(searcher: &Searcher, fields: &Fields, word: &str) -> tantivy::Result<Option<String>> {
    let length = word.chars().count();
    let letters = letters(word);
    let mut farthest = if length < 5 { 1 } else { 2 };
    let mut best: Option<(usize, u32, String)> = None;
    for segment in searcher.segment_readers() {
        for field in [fields.text, fields.title] {
            let index = segment.inverted_index(field)?;
            let mut terms = index.terms().stream()?;
            while terms.advance() {
                // Four bytes are the longest character.
                let bytes = terms.key();
                if !(length.saturating_sub(farthest)..=4 * (length + farthest))
                    .contains(&bytes.len())
                {
                    continue;
                }
                let Ok(term) = std::str::from_utf8(bytes) else {
                    continue;
                };
                if !may_resemble(letters, length, term, farthest) {
                    continue;
                }
                let distance = osa_distance(word, term);
                let pages = terms.value().doc_freq;
                let is_better = best.as_ref().is_none_or(|(near, most, _)| {
                    distance < *near || distance == *near && pages > *most
                });
                if distance <= farthest && is_better {
                    farthest = distance;
                    best = Some((distance, pages, term.to_owned()));
                }
            }
        }
    }
    Ok(best.map(|(_, _, term)| term))
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        /// No word is left out that is near enough.
        #[test]
        fn near_words_may_resemble(word in "[a-eéà-å日]{0,8}", term in "[a-eéà-å日]{0,8}") {
            let distance = osa_distance(&word, &term);
            let length = word.chars().count();
            proptest::prop_assert!(may_resemble(letters(&word), length, &term, distance));
        }
    }
}
