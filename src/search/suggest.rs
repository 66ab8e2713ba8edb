//! "Did you mean": the words of the index that resemble those that it does not have.

use crate::query::{Parsed, Part, Place};
use crate::schema::Fields;
use crate::words::WordKind;
use std::collections::HashMap;
use tantivy::query::FuzzyTermQuery;
use tantivy::{Searcher, Term};

/// Words of a question that are compared with those of the index, at most.
const COMPARED: usize = 4;
/// Shortest word in characters that is compared.
const SHORTEST: usize = 3;
/// Longest one, because the automaton of a word grows with its length.
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
        part.words.len() == 1 && part.words[0].kind == WordKind::Whole && part.place != Place::Url
    };
    for part in parsed.parts().filter(single).take(COMPARED) {
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

/// The nearest word of titles and texts; among equally near ones, that of most pages.
fn resembling(searcher: &Searcher, fields: &Fields, word: &str) -> tantivy::Result<Option<String>> {
    let farthest = if word.chars().count() < 5 { 1 } else { 2 };
    for distance in 1..=farthest {
        if let Some(found) = within(searcher, fields, word, distance)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// The word of most pages that differs by at most this many letters, each of which is added, left out,
/// replaced or exchanged with the next.
fn within(
    searcher: &Searcher,
    fields: &Fields,
    word: &str,
    distance: u8,
) -> tantivy::Result<Option<String>> {
    let term = Term::from_field_text(fields.text, word);
    let resembles = FuzzyTermQuery::new(term, distance, true).automaton()?;
    let mut pages: HashMap<String, u64> = HashMap::new();
    for segment in searcher.segment_readers() {
        for field in [fields.text, fields.title] {
            let index = segment.inverted_index(field)?;
            let mut terms = index.terms().search(&resembles).into_stream()?;
            while terms.advance() {
                if let Ok(term) = std::str::from_utf8(terms.key()) {
                    *pages.entry(term.to_owned()).or_default() += u64::from(terms.value().doc_freq);
                }
            }
        }
    }
    let most = |a: &(String, u64), b: &(String, u64)| a.1.cmp(&b.1).then(b.0.cmp(&a.0));
    Ok(pages.into_iter().max_by(most).map(|(term, _)| term))
}
