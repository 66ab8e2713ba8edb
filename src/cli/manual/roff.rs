//! Plain text to roff, the language of manual pages (groff_man(7)).
//!
//! The text is that of `--help`, so its only marks are those that a reader of plain text expects:
//!
//! | text | in the page |
//! |---|---|
//! | `--flag`, `KEY_OF_PLUGIN=30`, `archivist VERB --flag`, `'any words'` | bold |
//! | `Key=`, `/path`, `name.service`, a name of a value such as `DIR` | italic |
//! | `page(5)` | bold, except for the section |
//! | `"words"` | quotation marks |

use std::collections::BTreeSet;

/// Ends of file and unit names.
const ENDS: [&str; 15] = [
    ".conf",
    ".html",
    ".json",
    ".jsonl",
    ".path",
    ".pool",
    ".scope",
    ".service",
    ".slice",
    ".socket",
    ".target",
    ".timer",
    ".txt",
    ".watch",
    ".password",
];

/// Words of a text that have a meaning.
#[derive(Default)]
pub struct Words {
    /// Names of values, such as `DIR`.
    pub values: BTreeSet<String>,
    /// Names of verbs, and of the verbs below them.
    pub verbs: BTreeSet<String>,
}

enum Font {
    Plain,
    Bold,
    Italic,
}

/// Returns text in bold.
pub fn bold(text: &str) -> String {
    format!("\\fB{}\\fR", literal(text))
}

/// Returns text in italics.
pub fn italic(text: &str) -> String {
    format!("\\fI{}\\fR", literal(text))
}

/// Returns text that roff prints as it is.
fn literal(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\e"),
            '-' => out.push_str("\\-"),
            '\'' => out.push_str("\\(aq"),
            '~' => out.push_str("\\(ti"),
            '^' => out.push_str("\\(ha"),
            '`' => out.push_str("\\(ga"),
            _ => out.push(c),
        }
    }
    out
}

/// Returns one paragraph as one line.
pub fn paragraph(text: &str, words: &Words) -> String {
    let mut out = Vec::new();
    // Whether the words before belong to a call of archivist.
    let mut in_call = false;
    let mut rest = text.split_whitespace().peekable();
    while let Some(word) = rest.next() {
        let lead = word.len() - word.trim_start_matches(['(', '[', '"']).len();
        let (before, word) = word.split_at(lead);
        let mut shown = before.replace('"', "\\(lq");
        if word.starts_with('\'') && word.len() > 1 {
            let mut quoted = word.to_owned();
            while !ends_quote(&quoted)
                && let Some(next) = rest.next()
            {
                quoted = format!("{quoted} {next}");
            }
            let (inner, after) = quoted[1..].rsplit_once('\'').unwrap_or((&quoted[1..], ""));
            shown.push_str(&bold(inner));
            shown.push_str(&tail(after));
            in_call = false;
        } else {
            let core = core(word);
            let after = &word[core.len()..];
            let starts = core == "archivist"
                && after.is_empty()
                && rest.peek().is_some_and(|next| words.verbs.contains(self::core(next)));
            let continues = in_call && (words.verbs.contains(core) || is_flag(core));
            if starts || continues {
                shown.push_str(&bold(core));
            } else {
                shown.push_str(&of_word(core, words));
            }
            shown.push_str(&tail(after));
            in_call = (starts || continues) && after.is_empty();
        }
        out.push(shown);
    }
    let line = out.join(" ");
    if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line }
}

fn ends_quote(text: &str) -> bool {
    text.len() > 1 && text.trim_end_matches(['.', ',', ';', ':', ')', '"']).ends_with('\'')
}

/// What follows a word: punctuation.
fn tail(text: &str) -> String {
    literal(text).replace('"', "\\(rq")
}

/// The word without the punctuation behind it.
fn core(word: &str) -> &str {
    let end = word.trim_end_matches(['.', ',', ';', ':', '?', '!', '"']);
    match end.strip_suffix(')') {
        Some(inner) if !inner.contains('(') => core(inner),
        _ => end.trim_end_matches("..."),
    }
}

fn is_flag(word: &str) -> bool {
    let letter = |text: &str| text.starts_with(|c: char| c.is_ascii_alphabetic());
    match word.strip_prefix("--") {
        Some(long) => letter(long),
        None => word.len() == 2 && word.strip_prefix('-').is_some_and(letter),
    }
}

fn of_word(word: &str, words: &Words) -> String {
    if let Some((page, section)) = word.split_once('(')
        && let Some((section, end)) = section.split_once(')')
        && section.len() == 1
        && section.starts_with(|c: char| c.is_ascii_digit())
    {
        return format!("{}({section}){}", bold(page), literal(end));
    }
    if is_flag(word)
        && let Some((flag, value)) = word.split_once('=')
    {
        return format!("{}={}", bold(flag), of_word(value, words));
    }
    match font(word, words) {
        Font::Plain => literal(word),
        Font::Bold => bold(word),
        Font::Italic => italic(word),
    }
}

fn font(word: &str, words: &Words) -> Font {
    let name = word.split(['=', '/', '.', '[']).next().unwrap_or_default();
    let is_upper = |text: &str| {
        text.contains('_') && text.bytes().all(|b| b.is_ascii_uppercase() || b == b'_')
    };
    let is_key =
        || word.strip_suffix('=').is_some_and(|key| key.bytes().all(|b| b.is_ascii_alphanumeric()));
    let is_assignment = || word.split_once('=').is_some_and(|(key, _)| key.len() > 1);
    let is_path = || {
        let inner = word.strip_prefix(['/', '$', '~']).unwrap_or_default();
        inner.starts_with(|c: char| c.is_ascii_alphabetic())
    };
    if words.values.contains(word) || words.values.contains(name) {
        Font::Italic
    } else if is_flag(word) || is_upper(name) {
        Font::Bold
    } else if is_key() || is_path() || ENDS.iter().any(|end| word.ends_with(end)) {
        Font::Italic
    } else if is_assignment() && !word.contains("://") {
        Font::Bold
    } else {
        Font::Plain
    }
}

/// Returns the paragraphs of a help text. The first one is the short help, which continues with the
/// second one in a page.
pub fn paragraphs(text: &str) -> Vec<String> {
    let mut found: Vec<String> = text
        .split("\n\n")
        .map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|text| !text.is_empty())
        .collect();
    if let Some(first) = found.first_mut()
        && !first.ends_with(['.', ':'])
    {
        first.push('.');
    }
    if found.len() > 1 {
        let second = found.remove(1);
        found[0] = format!("{} {second}", found[0]);
    }
    found
}

/// Appends sentences that the program knows to the first paragraph.
pub fn with_facts(mut texts: Vec<String>, facts: impl IntoIterator<Item = String>) -> Vec<String> {
    for fact in facts {
        match texts.first_mut() {
            Some(first) => *first = format!("{first} {fact}"),
            None => texts.push(fact),
        }
    }
    texts
}

/// Returns paragraphs with `separator` before all but the first.
pub fn joined(texts: &[String], words: &Words, separator: &str) -> String {
    let texts = texts.iter().map(|text| format!("{}\n", paragraph(text, words)));
    texts.collect::<Vec<_>>().join(separator)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_plain_text_become_fonts() {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let words = Words {
            values: set(&["DIR", "KEY=VALUE", "KEY", "VALUE", "N"]),
            verbs: set(&["retry", "plugins", "install"]),
        };
        for (text, roff) in [
            ("as with --dry-run, or -f.", "as with \\fB\\-\\-dry\\-run\\fR, or \\fB\\-f\\fR."),
            ("see archivist.conf(5).", "see \\fBarchivist.conf\\fR(5)."),
            (
                "(Network= in archivist.conf(5)),",
                "(\\fINetwork=\\fR in \\fBarchivist.conf\\fR(5)),",
            ),
            ("to DIR/ID or DIR.", "to \\fIDIR/ID\\fR or \\fIDIR\\fR."),
            ("--set KEY=VALUE", "\\fB\\-\\-set\\fR \\fIKEY=VALUE\\fR"),
            (
                "archivist retry --all, and",
                "\\fBarchivist\\fR \\fBretry\\fR \\fB\\-\\-all\\fR, and",
            ),
            ("archivist cannot retry", "archivist cannot retry"),
            ("like WGET_TIMEOUT=30", "like \\fBWGET_TIMEOUT=30\\fR"),
            ("'every 5min', or 'no'.", "\\fBevery 5min\\fR, or \\fBno\\fR."),
            ("the note \"it failed\"", "the note \\(lqit failed\\(rq"),
            ("a user's /etc/pip.conf", "a user\\(aqs \\fI/etc/pip.conf\\fR"),
            (".archivist-partial is left", "\\&.archivist\\-partial is left"),
            ("a\\b", "a\\eb"),
        ] {
            assert_eq!(paragraph(text, &words), roff);
        }
    }

    #[test]
    fn the_short_help_begins_the_first_paragraph() {
        assert_eq!(paragraphs("Draw\n\nAt most N.\n\nMore."), ["Draw. At most N.", "More."]);
    }
}
