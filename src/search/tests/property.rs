//! Random pages and questions: what the engine finds is what a plain comparison of words finds.

use crate::sample::Sample;
use archivist_core::model::search::SearchChange;
use archivist_search::change;
use proptest::prelude::*;

/// Letters of which words and texts are made, so that they often have each other's.
const LETTERS: [&str; 7] = ["a", "b", "ab", "abc", "日", "本", "語"];

#[derive(Clone, Debug)]
struct Page {
    title: Vec<&'static str>,
    text: Vec<&'static str>,
}

fn words(most: usize) -> impl Strategy<Value = Vec<&'static str>> {
    proptest::collection::vec(proptest::sample::select(&LETTERS[..]), 0..most)
}

fn page() -> impl Strategy<Value = Page> {
    (words(3), words(8)).prop_map(|(title, text)| Page { title, text })
}

#[derive(Clone, Debug)]
enum Part {
    Word(&'static str),
    Phrase(Vec<&'static str>),
    Beginning(&'static str),
}

fn part() -> impl Strategy<Value = (bool, Part)> {
    let letter = || proptest::sample::select(&LETTERS[..]);
    let part = prop_oneof![
        letter().prop_map(Part::Word),
        proptest::collection::vec(letter(), 1..4).prop_map(Part::Phrase),
        letter().prop_map(Part::Beginning),
    ];
    (proptest::bool::weighted(0.25), part)
}

fn written((is_without, part): &(bool, Part)) -> String {
    let part = match part {
        Part::Word(word) => (*word).to_owned(),
        Part::Phrase(words) => format!("\"{}\"", words.join(" ")),
        Part::Beginning(word) => format!("{word}*"),
    };
    format!("{}{part}", if *is_without { "-" } else { "" })
}

/// Whether words follow each other in a text.
fn follows(text: &[&str], words: &[&str]) -> bool {
    text.windows(words.len()).any(|window| window == words)
}

fn has(page: &Page, part: &Part) -> bool {
    [&page.title, &page.text].iter().any(|text| match part {
        Part::Word(word) => text.contains(word),
        Part::Phrase(words) => follows(text, words),
        Part::Beginning(word) => text.iter().any(|other| other.starts_with(word)),
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn questions_find_what_is_there(
        pages in proptest::collection::vec(page(), 1..12),
        questions in proptest::collection::vec(proptest::collection::vec(part(), 1..4), 8),
        deleted in 0..12_usize,
    ) {
        let mut sample = Sample::new();
        // Other languages would have forms.
        let entries: Vec<_> = pages
            .iter()
            .enumerate()
            .map(|(at, page)| {
                let text = page.text.join(" ");
                sample.page(&format!("https://x.test/{at}"), &page.title.join(" "), "zz", text.as_bytes())
            })
            .collect();
        let (one, other) = entries.split_at(entries.len() / 2);
        for entries in [one, other, other] {
            let puts: Vec<_> = entries.iter().cloned().map(SearchChange::Put).collect();
            change(&sample.index(), &puts).unwrap();
        }
        let gone = entries.get(deleted).map(|entry| entry.id);
        if let Some(id) = gone {
            change(&sample.index(), &[SearchChange::Delete(id)]).unwrap();
        }
        for question in &questions {
            let text: Vec<String> = question.iter().map(written).collect();
            let text = text.join(" ");
            let fits = |page: &Page| question.iter().all(|(is_without, part)| has(page, part) != *is_without);
            let there = pages.iter().zip(&entries).filter(|(_, entry)| Some(entry.id) != gone);
            let expected: Vec<i64> = there.filter(|(page, _)| fits(page)).map(|(_, entry)| entry.id.0).collect();
            let mut found = sample.found(&text);
            found.sort_unstable();
            prop_assert_eq!(found, expected, "{}", text);
        }
    }
}
