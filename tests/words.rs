//! Plain English: the ten worst words of the list in CONTRIBUTING.md must not occur in documents,
//! comments, and names of functions. Every hit is printed with file and line.

use regex::Regex;
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

/// Folders whose programs and scripts are searched for comments and names of functions.
const CODE: &[&str] = &["src", "tests", "packaging"];

/// This file, which contains the words.
const THIS_FILE: &str = "tests/words.rs";

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

/// How a language marks comments and names functions.
struct Syntax {
    comment: Regex,
    function: Regex,
}

impl Syntax {
    fn rust() -> Syntax {
        Syntax {
            comment: Regex::new(r"(?:^|\s)//[/!]?(?:\s(.*)|$)").unwrap(),
            function: Regex::new(r"\bfn (\w+)").unwrap(),
        }
    }

    /// Bash and Python; a function of Bash begins its line.
    fn script() -> Syntax {
        Syntax {
            comment: Regex::new(r"(?:^|\s)#!?(?:\s(.*)|$)").unwrap(),
            function: Regex::new(r"^(?:\s*def (\w+)|(\w+)\(\))").unwrap(),
        }
    }

    /// The comments of a file, one block for each run of adjacent lines with a comment, and the
    /// names of its functions, one block each, with blanks for underscores.
    fn prose(&self, text: &str) -> Vec<Block> {
        let mut comments = vec![Block::default()];
        let mut names = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            match (self.comment.captures(line), comments.last_mut()) {
                (Some(found), Some(block)) => {
                    block.push(number, found.get(1).map_or("", |prose| prose.as_str().trim()));
                }
                _ => comments.push(Block::default()),
            }
            if let Some(found) = self.function.captures(line) {
                let mut block = Block::default();
                let name = found.iter().skip(1).flatten().next();
                block.push(number, &name.map_or("", |name| name.as_str()).replace('_', " "));
                names.push(block);
            }
        }
        comments.extend(names);
        comments
    }
}

/// The language of a file, by extension; a program without one is a script if its first line names
/// an interpreter.
fn is_script(path: &Path, text: &str) -> Option<bool> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("rs") => Some(false),
        Some("sh" | "py") => Some(true),
        None if text.starts_with("#!") => Some(true),
        _ => None,
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All files below a directory, without links and files of others.
fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    let mut paths: Vec<_> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
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

fn relative(path: &Path) -> String {
    let path = path.strip_prefix(root()).unwrap();
    path.to_string_lossy().into_owned()
}

/// Fails with all hits, each as `file:line: words`.
fn assert_plain(hits: &[String]) {
    let text = hits.join("\n");
    assert!(hits.is_empty(), "\n{text}\nsee CONTRIBUTING.md, Language");
}

fn lines(file: &str, hits: Vec<Hit>) -> Vec<String> {
    let line = |hit: Hit| format!("{file}:{}: {}", hit.line, hit.words);
    hits.into_iter().map(line).collect()
}

#[test]
fn documents_have_none_of_the_worst_words() {
    let pattern = pattern();
    let mut hits = Vec::new();
    for path in documents() {
        // Pictures are no text.
        if let Ok(text) = fs::read_to_string(&path) {
            hits.extend(lines(&relative(&path), document(&text).hits(&pattern)));
        }
    }
    assert_plain(&hits);
}

#[test]
fn comments_and_names_of_functions_have_none_of_the_worst_words() {
    let pattern = pattern();
    let (rust, script) = (Syntax::rust(), Syntax::script());
    let mut paths = Vec::new();
    for folder in CODE {
        files(&root().join(folder), &mut paths);
    }
    let mut hits = Vec::new();
    for path in paths {
        let file = relative(&path);
        let text = fs::read_to_string(&path).unwrap_or_default();
        let syntax = match is_script(&path, &text) {
            Some(true) => &script,
            Some(false) if file != THIS_FILE => &rust,
            _ => continue,
        };
        for block in syntax.prose(&text) {
            hits.extend(lines(&file, block.hits(&pattern)));
        }
    }
    assert_plain(&hits);
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
    let lines = |syntax: Syntax, text: &str| -> Vec<usize> {
        syntax.prose(text).iter().flat_map(lines).collect()
    };
    let code = "/// Runs it once\n/// more.\nlet anew = 1; // anew\n//! beside\nfn let_go() {\n";
    assert_eq!(lines(Syntax::rust(), code), [1, 3, 4, 5]);
    let script = "echo anew # once\n# more\nis_told() {\n    def nobody(it):\n";
    assert_eq!(lines(Syntax::script(), script), [1, 3, 4]);
}
