//! Measures an index: `measure ENTRIES INDEX` reads lines of entries (`SearchEntry` as JSON), builds an
//! index of their texts, and asks it for words, phrases, beginnings, Chinese, Japanese and Korean words,
//! and titles. Prints size, pages in a second, times of answers, recall and first places.

use archivist_core::model::search::{
    SearchBuild, SearchChange, SearchEntry, SearchQuestion, SearchWork,
};
use archivist_search::{answer, perform};
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Pages of one unit of the indexer.
const UNIT: usize = 2_000;
/// Questions of each kind.
const QUESTIONS: usize = 200;
/// Times that each is asked; the first answer is not counted.
const ROUNDS: usize = 3;

struct Page {
    entry: SearchEntry,
    title: String,
    text: String,
}

#[derive(Deserialize)]
struct Description {
    title: Option<String>,
}

fn main() {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [entries, index] = arguments.as_slice() else {
        eprintln!("usage: measure ENTRIES INDEX");
        std::process::exit(2);
    };
    let pages = read(entries);
    let bytes: u64 = pages.iter().map(|page| page.text.len() as u64).sum();
    println!("{} pages, {:.1} MB of text", pages.len(), bytes as f64 / 1e6);
    build(&pages, index, bytes);
    for (kind, questions) in questions(&pages) {
        time(index, kind, &questions);
    }
    recall(&pages, index);
    titles(&pages, index);
    change(&pages, index);
}

fn read(entries: &Path) -> Vec<Page> {
    let lines = fs::read_to_string(entries).expect("entries");
    let page = |line: &str| {
        let entry: SearchEntry = serde_json::from_str(line).expect("an entry");
        let file = |name: &str| fs::read_to_string(entry.directory.join("text").join(name));
        let about: Description =
            serde_json::from_str(&file("text.json").expect("text.json")).expect("JSON");
        Page {
            title: about.title.unwrap_or_default(),
            text: file("text.txt").expect("text.txt"),
            entry,
        }
    };
    lines.lines().map(page).collect()
}

fn build(pages: &[Page], index: &Path, bytes: u64) {
    let start = Instant::now();
    let units: Vec<&[Page]> = pages.chunks(UNIT).collect();
    for (at, unit) in units.iter().enumerate() {
        let changes = unit.iter().map(|page| SearchChange::Put(page.entry.clone()));
        let work = SearchWork {
            index: index.to_owned(),
            build: Some(SearchBuild {
                number: 1,
                is_first: at == 0,
                is_last: at + 1 == units.len(),
            }),
            changes: changes.collect(),
        };
        perform(&work).expect("an index");
    }
    let took = start.elapsed();
    println!(
        "built in {took:.1?}: {:.0} pages/s; index {:.1} MB, {:.1} % of the text",
        pages.len() as f64 / took.as_secs_f64(),
        size(index) as f64 / 1e6,
        100.0 * size(index) as f64 / bytes as f64
    );
}

fn size(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).expect("a directory").flatten();
    let size = |path: PathBuf| match path.symlink_metadata() {
        Ok(data) if data.is_dir() => size(&path),
        Ok(data) => data.len(),
        Err(_) => 0,
    };
    entries.map(|entry| size(entry.path())).sum()
}

fn ask(index: &Path, words: &str, limit: u32) -> (Duration, Vec<i64>, u64) {
    let question = SearchQuestion { words: words.to_owned(), limit, ..SearchQuestion::default() };
    let start = Instant::now();
    let found = answer(index, &question).expect("an answer");
    let took = start.elapsed();
    let ids = found.hits.iter().map(|hit| hit.id.0).collect();
    (took, ids, found.total)
}

/// Every n-th of a list, as many as there are questions.
fn some<T: Clone>(all: &[T]) -> Vec<T> {
    let step = (all.len() / QUESTIONS).max(1);
    all.iter().step_by(step).take(QUESTIONS).cloned().collect()
}

fn is_dense(c: char) -> bool {
    matches!(u32::from(c), 0x3041..=0x30FA | 0x4E00..=0x9FFF | 0xAC00..=0xD7A3)
}

fn questions(pages: &[Page]) -> Vec<(&'static str, Vec<String>)> {
    let mut counts: HashMap<&str, u32> = HashMap::new();
    let mut pairs = Vec::new();
    let mut phrases = Vec::new();
    for page in pages.iter().step_by(7) {
        let words: Vec<&str> = page
            .text
            .split(|c: char| !c.is_ascii_alphabetic())
            .filter(|word| (4..15).contains(&word.len()))
            .take(400)
            .collect();
        for word in words.iter().copied() {
            *counts.entry(word).or_default() += 1;
        }
        if let Some(two) = words.get(words.len() / 2..words.len() / 2 + 2) {
            pairs.push(format!("{} {}", two[0], two[1]));
        }
        let lines = page.text.lines().filter(|line| line.split_whitespace().count() >= 4);
        let line = lines.map(|line| line.replace('"', " ")).nth(2);
        phrases.extend(line.map(|line| {
            let words: Vec<&str> = line.split_whitespace().take(3).collect();
            format!("\"{}\"", words.join(" "))
        }));
    }
    let mut words: Vec<(&str, u32)> = counts.into_iter().collect();
    words.sort_by_key(|(word, count)| (std::cmp::Reverse(*count), *word));
    let named = |words: &[(&str, u32)]| words.iter().map(|(word, _)| (*word).to_owned()).collect();
    let common: Vec<String> = named(&words[..words.len().min(QUESTIONS)]);
    let rare: Vec<String> = some(&named(&words));
    let begin = |word: &String| format!("{}*", &word[..3]);
    let beginnings = rare.iter().map(begin).collect();
    let all = words.iter().map(|(word, _)| *word).collect::<Vec<_>>();
    let misspelt = some(&all).iter().map(|word| format!("{word}qx")).collect();
    let mut kinds = vec![
        ("common words", common),
        ("words", rare),
        ("two words", some(&pairs)),
        ("phrases", some(&phrases)),
        ("beginnings", beginnings),
        ("misspelt words", misspelt),
    ];
    for length in 1..=4 {
        let name = ["1 character", "2 characters", "3 characters", "4 characters"][length - 1];
        kinds.push((name, runs(pages, length)));
    }
    kinds
}

/// Parts of texts without blanks.
fn runs(pages: &[Page], length: usize) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for page in pages {
        let letters: Vec<char> = page.text.chars().take(3000).collect();
        let part = letters.windows(length).skip(97).find(|part| part.iter().all(|c| is_dense(*c)));
        found.extend(part.map(|part| part.iter().collect()));
    }
    found.sort();
    found.dedup();
    some(&found)
}

fn time(index: &Path, kind: &str, questions: &[String]) {
    let mut took = Vec::new();
    for round in 0..ROUNDS {
        for question in questions {
            let (time, _, _) = ask(index, question, 20);
            if round > 0 {
                took.push(time);
            }
        }
    }
    took.sort();
    let at = |share: usize| took.get(took.len() * share / 100).copied().unwrap_or_default();
    println!("{kind}: {} questions, p50 {:.1?}, p99 {:.1?}", questions.len(), at(50), at(99));
}

/// Compares what is found with the texts that have the characters.
fn recall(pages: &[Page], index: &Path) {
    for length in 1..=4 {
        let (mut expected, mut missing, mut wrong) = (0, 0, 0);
        for part in runs(pages, length).iter().step_by(4) {
            let has = |page: &&Page| {
                page.text.contains(part.as_str())
                    || page.title.contains(part.as_str())
                    || page.entry.url.contains(part.as_str())
            };
            let truth: Vec<i64> = pages.iter().filter(has).map(|page| page.entry.id.0).collect();
            let (_, found, _) = ask(index, part, 100_000);
            expected += truth.len();
            let found: std::collections::HashSet<i64> = found.into_iter().collect();
            let truth: std::collections::HashSet<i64> = truth.into_iter().collect();
            missing += truth.difference(&found).count();
            wrong += found.difference(&truth).count();
        }
        println!(
            "{length} characters: {expected} pages have them, {missing} not found, {wrong} found without"
        );
    }
}

/// Share of titles whose page comes first, as written and with other endings, and of pages that four
/// words of their text find first.
fn titles(pages: &[Page], index: &Path) {
    let mut by_title: BTreeMap<&str, u32> = BTreeMap::new();
    for page in pages {
        *by_title.entry(page.title.as_str()).or_default() += 1;
    }
    let is_ascii =
        |page: &&Page| page.title.is_ascii() && page.title.split_whitespace().count() >= 2;
    let unique: Vec<&Page> = pages
        .iter()
        .filter(is_ascii)
        .filter(|page| by_title.get(page.title.as_str()) == Some(&1))
        .collect();
    let step = (unique.len() / 600).max(1);
    let (mut first, mut other, mut remembered, mut asked, mut texts) = (0, 0, 0, 0, 0);
    for page in unique.iter().step_by(step).take(600) {
        let is_first = |words: &str| ask(index, words, 1).1.first() == Some(&page.entry.id.0);
        let plain: String =
            page.title.chars().map(|c| if c.is_alphanumeric() { c } else { ' ' }).collect();
        asked += 1;
        first += u32::from(is_first(&plain));
        let ended: Vec<String> = plain.split_whitespace().map(with_other_ending).collect();
        other += u32::from(is_first(&ended.join(" ")));
        let words: Vec<&str> = page
            .text
            .split(|c: char| !c.is_ascii_alphabetic())
            .filter(|word| word.len() >= 5)
            .collect();
        if words.len() >= 40 {
            let four: Vec<&str> = (1..5).map(|part| words[part * words.len() / 6]).collect();
            texts += 1;
            remembered += u32::from(is_first(&four.join(" ")));
        }
    }
    let share = |count: u32, of: u32| 100.0 * f64::from(count) / f64::from(of.max(1));
    println!(
        "first place: {asked} titles {:.0} %, with other endings {:.0} %; {texts} times four words {:.0} %",
        share(first, asked),
        share(other, asked),
        share(remembered, texts)
    );
}

fn with_other_ending(word: &str) -> String {
    let is_word =
        word.len() >= 5 && word.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_uppercase());
    match (is_word, word.strip_suffix('s')) {
        (false, _) => word.to_owned(),
        (true, Some(single)) => single.to_owned(),
        (true, None) => format!("{word}s"),
    }
}

/// One page that ends, and one that is deleted.
fn change(pages: &[Page], index: &Path) {
    let mut times = [Vec::new(), Vec::new()];
    for page in pages.iter().step_by((pages.len() / 50).max(1)) {
        let changes = [SearchChange::Put(page.entry.clone()), SearchChange::Delete(page.entry.id)];
        for (change, times) in changes.into_iter().zip(&mut times) {
            let start = Instant::now();
            let changed = archivist_search::change(index, &[change]);
            changed.expect("an index");
            times.push(start.elapsed());
        }
    }
    for (what, mut times) in ["a page that ends", "a page that is deleted"].into_iter().zip(times) {
        times.sort();
        println!(
            "{what}: p50 {:.1?}, longest {:.1?}",
            times[times.len() / 2],
            times[times.len() - 1]
        );
    }
}
