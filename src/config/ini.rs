//! Syntax of systemd's configuration files (systemd.syntax(7)): sections, `Key=Value`, comments,
//! continued lines. Every entry keeps the number of its first line.

use archivist_core::text::{Location, Problem};
use std::path::Path;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IniEntry {
    /// Name of the section, without brackets.
    pub section: String,
    /// Name of the key, without blanks.
    pub key: String,
    /// Value, without blanks at both ends; continued lines are joined.
    pub value: String,
    pub location: Location,
}

/// Assignments of a file in their order, and the lines that are neither section, assignment nor
/// comment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parsed {
    pub entries: Vec<IniEntry>,
    /// Fatal; a reader that only warns of them makes them [ignored](Problem::ignored).
    pub malformed: Vec<Problem>,
}

/// Reads `text`, which came from `file`.
pub fn parse(text: &str, file: &Path) -> Parsed {
    let mut parsed = Parsed::default();
    let mut section = None;
    for (line, text) in logical_lines(text) {
        let location = Location { file: file.to_owned(), line };
        match Line::of(&text, section.as_deref()) {
            Ok(Line::Section(name)) => section = Some(name),
            Ok(Line::Assignment { key, value }) => parsed.entries.push(IniEntry {
                section: section.clone().unwrap_or_default(),
                key,
                value,
                location,
            }),
            Err(what) => parsed.malformed.push(Problem::at(&location, what)),
        }
    }
    parsed
}

enum Line {
    Section(String),
    Assignment { key: String, value: String },
}

impl Line {
    fn of(text: &str, section: Option<&str>) -> Result<Line, String> {
        if let Some(rest) = text.strip_prefix('[') {
            return match rest.strip_suffix(']') {
                Some(name) if !name.is_empty() => Ok(Line::Section(name.to_owned())),
                _ => Err(format!("'{text}' is not a section header like [Hooks]")),
            };
        }
        let Some((key, value)) = text.split_once('=') else {
            return Err(format!("'{text}' has no '=' (Key=Value is expected)"));
        };
        let key = key.trim_end();
        if key.is_empty() {
            return Err(format!("'{text}' has nothing before the '='"));
        }
        if section.is_none() {
            return Err(format!("{key}= stands before the first section header like [Hooks]"));
        }
        Ok(Line::Assignment { key: key.to_owned(), value: value.trim_start().to_owned() })
    }
}

/// Returns lines with continuations joined and without comments and empty lines, each with the
/// number of its first physical line. A backslash at the end of a line becomes a space; comments
/// between continued lines are skipped, as in systemd.
fn logical_lines(text: &str) -> Vec<(u32, String)> {
    let mut lines = Vec::new();
    let mut pending: Option<(u32, String)> = None;
    for (number, raw) in (1u32..).zip(text.lines()) {
        let content = raw.trim();
        if content.starts_with(['#', ';']) {
            continue;
        }
        let (first, mut joined) = pending.take().unwrap_or((number, String::new()));
        let slashes = content.len() - content.trim_end_matches('\\').len();
        if slashes % 2 == 1 {
            joined.push_str(&content[..content.len() - 1]);
            joined.push(' ');
            pending = Some((first, joined));
        } else {
            joined.push_str(content);
            lines.push((first, joined));
        }
    }
    lines.extend(pending);
    lines
        .into_iter()
        .map(|(number, line)| (number, line.trim().to_owned()))
        .filter(|(_, line)| !line.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(text: &str) -> Vec<(String, u32)> {
        parse(text, Path::new("f"))
            .entries
            .into_iter()
            .map(|e| (format!("[{}]{}={}", e.section, e.key, e.value), e.location.line))
            .collect()
    }

    #[test]
    fn sections_assignments_comments() {
        let text = "# top\n; also\n\n[A]\nKey = a value # no comment\nKey=\n[B]\n x=1=2\n";
        assert_eq!(
            entries(text),
            [
                ("[A]Key=a value # no comment".to_owned(), 5),
                ("[A]Key=".to_owned(), 6),
                ("[B]x=1=2".to_owned(), 8),
            ]
        );
    }

    #[test]
    fn continued_lines_keep_the_number_of_the_first() {
        let text = "[A]\nList=one \\\n# between\n  two\\\n\nNext=x\\\\\nEnd=\\";
        assert_eq!(
            entries(text),
            [
                ("[A]List=one  two".to_owned(), 2),
                ("[A]Next=x\\\\".to_owned(), 6),
                ("[A]End=".to_owned(), 7),
            ]
        );
    }

    #[test]
    fn malformed_lines_are_reported_and_the_rest_is_read() {
        let parsed = parse("Early=1\n[A\nfoo\n=x\n[A]\nKey=1\n", Path::new("/etc/f"));
        let message: Vec<_> = parsed.malformed.iter().map(Problem::text).collect();
        assert_eq!(
            message,
            [
                "/etc/f:1: Early= stands before the first section header like [Hooks]",
                "/etc/f:2: '[A' is not a section header like [Hooks]",
                "/etc/f:3: 'foo' has no '=' (Key=Value is expected)",
                "/etc/f:4: '=x' has nothing before the '='",
            ]
        );
        assert_eq!(parsed.entries.len(), 1);
    }
}
