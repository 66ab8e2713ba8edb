//! Plain English: the ten worst words of the list in CONTRIBUTING.md must not occur in documents,
//! and their number in doc comments must not rise. Every hit is printed with file and line.

use regex::Regex;
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// The ten words, each with its common forms.
const WORST: &[&str] = &[
    "somebody",
    "nobody",
    "whoever",
    "(?:is|are) told",
    "once more",
    "anew",
    "(?:is|are) to be",
    "under way",
    "lets? go",
    "beside",
];

/// Documents and texts that users and administrators read, relative to the root.
const DOCUMENTS: &[&str] = &["man", "units", "packaging", "plugins"];

/// Documents that still have such words, and how many at most. Lower a number when it falls, and
/// remove its line at 0.
const DOCUMENT_CEILINGS: &[(&str, usize)] = &[];

/// Folders of `src` whose doc comments still have such words, and how many at most. All other
/// folders have none.
const CEILINGS: &[(&str, usize)] = &[
    ("src/checks", 10),
    ("src/cli", 44),
    ("src/core", 43),
    ("src/generator", 10),
    ("src/orchestrator", 95),
    ("src/shared", 26),
];

/// The heading of the word list in CONTRIBUTING.md, the only table that may contain the words.
const WORD_LIST: &str = "| instead of | write |";

struct Hit {
    line: usize,
    words: String,
}

/// Consecutive lines of prose, joined by blanks, with the offset at which each line begins.
#[derive(Default)]
struct Block {
    text: String,
    /// Offset in `text` and number (from 1) of each line.
    lines: Vec<(usize, usize)>,
}

impl Block {
    fn push(&mut self, number: usize, line: &str) {
        self.lines.push((self.text.len(), number));
        self.text.push_str(line);
        self.text.push(' ');
    }

    fn line_at(&self, offset: usize) -> usize {
        let before = self.lines.iter().take_while(|(start, _)| *start <= offset);
        before.last().map_or(0, |(_, number)| *number)
    }

    fn hits(&self, pattern: &Regex) -> Vec<Hit> {
        let found = pattern.find_iter(&self.text);
        found
            .map(|found| Hit {
                line: self.line_at(found.start()),
                words: found.as_str().to_owned(),
            })
            .collect()
    }
}

fn pattern() -> Regex {
    Regex::new(&format!(r"(?i-u)\b(?:{})\b", WORST.join("|"))).unwrap()
}

/// The prose of a document: one block without markers of comments, lists and manual page requests,
/// so that a phrase is found across a line break.
fn document(text: &str) -> Block {
    let mut block = Block::default();
    let mut in_word_list = false;
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim_start();
        in_word_list = line.starts_with(WORD_LIST) || in_word_list && line.starts_with('|');
        if !in_word_list {
            block.push(number, without_markers(line));
        }
    }
    block
}

fn without_markers(line: &str) -> &str {
    let request = line
        .strip_prefix('.')
        .and_then(|rest| rest.split_once(' '))
        .filter(|(name, _)| name.len() <= 2);
    match request {
        Some((_, rest)) => rest,
        None => line.trim_start_matches(['#', '*', '-', '/', ' ']),
    }
}

/// The doc comments of a Rust file: one block for each run of adjacent lines.
fn doc_comments(text: &str) -> Vec<Block> {
    let mut blocks = vec![Block::default()];
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim_start();
        let doc = line
            .strip_prefix("///")
            .or_else(|| line.strip_prefix("//!"));
        match (doc, blocks.last_mut()) {
            (Some(prose), Some(block)) => block.push(number, prose.trim()),
            _ => blocks.push(Block::default()),
        }
    }
    blocks
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All files below a directory, links left out.
fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    let mut paths: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    for path in paths {
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

/// Markdown files of the root, the texts of the package, and everything below `DOCUMENTS`.
fn documents() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for directory in ["", "debian"] {
        let entries = fs::read_dir(root().join(directory)).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        let wanted = |path: &PathBuf| {
            let is_markdown = path.extension().is_some_and(|extension| extension == "md");
            path.is_file() && (directory == "debian" || is_markdown)
        };
        found.extend(paths.filter(wanted));
    }
    for directory in DOCUMENTS {
        files(&root().join(directory), &mut found);
    }
    found
}

/// Hits by place, each as `file:line: words`.
#[derive(Default)]
struct Count(BTreeMap<String, Vec<String>>);

impl Count {
    fn add(&mut self, place: &str, file: &str, hits: impl IntoIterator<Item = Hit>) {
        let lines = hits
            .into_iter()
            .map(|hit| format!("{file}:{}: {}", hit.line, hit.words));
        self.0.entry(place.to_owned()).or_default().extend(lines);
    }

    /// The places with more hits than their ceiling, which is 0 for places that are not listed.
    fn above(&self, ceilings: &[(&str, usize)]) -> String {
        let mut text = String::new();
        for (place, hits) in &self.0 {
            let listed = ceilings.iter().find(|(name, _)| name == place);
            let most = listed.map_or(0, |(_, most)| *most);
            if hits.len() > most {
                let lines = hits.join("\n");
                text += &format!("{place}: {} words, at most {most}\n{lines}\n", hits.len());
            } else if hits.len() < most {
                eprintln!("{place}: {} words; lower its ceiling of {most}", hits.len());
            }
        }
        text
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total: usize = self.0.values().map(Vec::len).sum();
        write!(f, "{total} words of the list")
    }
}

fn relative(path: &Path) -> String {
    let path = path.strip_prefix(root()).unwrap();
    path.to_string_lossy().into_owned()
}

#[test]
fn documents_have_none_of_the_worst_words() {
    let pattern = pattern();
    let mut count = Count::default();
    for path in documents() {
        // Pictures are no text.
        let Ok(text) = fs::read_to_string(&path) else {
            continue;
        };
        let file = relative(&path);
        count.add(&file, &file, document(&text).hits(&pattern));
    }
    eprintln!("documents: {count}");
    let above = count.above(DOCUMENT_CEILINGS);
    assert!(above.is_empty(), "\n{above}see CONTRIBUTING.md, Language");
}

#[test]
fn doc_comments_stay_below_the_ceiling_of_their_folder() {
    let pattern = pattern();
    let mut count = Count::default();
    let mut paths = Vec::new();
    files(&root().join("src"), &mut paths);
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
    for path in &paths {
        let file = relative(path);
        let folders: Vec<_> = file.split('/').collect();
        let place = folders[..folders.len().min(3) - 1].join("/");
        let text = fs::read_to_string(path).unwrap();
        for block in doc_comments(&text) {
            count.add(&place, &file, block.hits(&pattern));
        }
    }
    eprintln!("doc comments: {count}");
    let above = count.above(CEILINGS);
    assert!(above.is_empty(), "\n{above}see CONTRIBUTING.md, Language");
}

#[test]
fn finds_a_phrase_across_a_line_break_and_in_capitals() {
    let lines = |block: &Block| {
        let hits = block.hits(&pattern());
        hits.iter().map(|hit| hit.line).collect::<Vec<_>>()
    };
    let manual = "A page is\n.B told\nNobody knows.\nbesides\n";
    assert_eq!(lines(&document(manual)), [1, 3]);
    let table = "| instead of | write |\n|---|---|\n| anew | again |\n\nanew\n";
    assert_eq!(lines(&document(table)), [5]);
    let code = "/// Runs it once\n/// more.\nfn anew() {} // anew\n//! beside\n";
    let hits: Vec<_> = doc_comments(code).iter().flat_map(lines).collect();
    assert_eq!(hits, [1, 4]);
}
