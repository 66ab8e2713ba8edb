//! Marks that people write around an address: quotation marks, items of lists, links of Markdown
//! and Org.

use super::spot::{BEHIND, SEVERAL, Spotted, alone, has_address, is_address, is_gap, refuse};
use crate::model::web::url::UrlError;
use crate::text::{is_blank, trim_blanks};

/// Marks that people write around an address, with their ends.
pub const MARKS: [(char, char); 9] = [
    ('<', '>'),
    ('"', '"'),
    ('\'', '\''),
    ('`', '`'),
    ('(', ')'),
    ('[', ']'),
    ('“', '”'),
    ('‘', '’'),
    ('«', '»'),
];
/// Characters at the beginning of a line that make it an element of a list, if a blank follows.
const BULLETS: [&str; 9] = ["-", "*", "+", ">", "•", "–", "[ ]", "[x]", "[X]"];
/// Most digits of the number of such an element.
const DIGITS_MAX: usize = 9;

/// Removes the marks of a list at the beginning: `- `, `1. `, `- [x] `.
pub fn without_bullet(line: &str) -> &str {
    let mut text = line;
    // A list in a quotation: `> - [ ] `.
    for _ in 0..4 {
        let bullet = BULLETS.iter().find_map(|bullet| text.strip_prefix(bullet));
        let Some(rest) = bullet.or_else(|| without_number(text)) else {
            break;
        };
        if !rest.starts_with(is_blank) {
            break;
        }
        text = trim_blanks(rest);
    }
    text
}

fn without_number(text: &str) -> Option<&str> {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = text.len() - rest.len();
    if digits == 0 || digits > DIGITS_MAX {
        return None;
    }
    rest.strip_prefix(['.', ')'])
}

pub fn unmarked(text: &str) -> Option<&str> {
    let text = text.trim_end_matches([',', ';']);
    let inside = |(begin, end): &(char, char)| {
        let inner = text.strip_prefix(*begin)?.strip_suffix(*end)?;
        let inner = trim_blanks(inner);
        // Brackets in pairs may be a part of the address, a quotation mark is its end.
        let is_one = if matches!(begin, '(' | '[') {
            inner.matches(*begin).count() == inner.matches(*end).count()
        } else {
            !inner.contains([*begin, *end])
        };
        (is_one && is_address(inner)).then_some(inner)
    };
    MARKS.iter().find_map(inside)
}

/// Reads a link of Markdown, `[title](address)`. `None` if `text` is not one.
pub fn markdown(text: &str) -> Option<Result<Spotted<'_>, UrlError>> {
    let inside = text.strip_prefix('[')?;
    let (title, target) = inside.split_once("](")?;
    let mut depth = 1;
    let end = target.char_indices().find(|(_, c)| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        depth == 0
    });
    let Some((end, _)) = end else {
        return Some(refuse("the link has no end: ')' is missing"));
    };
    let rest = trim_blanks(&target[end + 1..]);
    if !rest.is_empty() && !rest.starts_with("# ") {
        let several = has_address(rest);
        return Some(refuse(if several { SEVERAL } else { BEHIND }));
    }
    let target = trim_blanks(&target[..end]);
    let marked = target.strip_prefix('<').and_then(|rest| rest.strip_suffix('>'));
    let spotted = match marked {
        Some(address) => alone(address),
        // [title](address "another title")
        None => match target.split_once(is_gap) {
            Some((address, more)) if trim_blanks(more).starts_with(['"', '\'', '(']) => {
                alone(address)
            }
            _ => alone(target),
        },
    };
    Some(spotted.map(|spotted| Spotted { title: Some(title), ..spotted }))
}

/// Reads a link of Org, `[[address][title]]`.
pub fn org(text: &str) -> Option<Result<Spotted<'_>, UrlError>> {
    let inside = text.strip_prefix("[[")?.strip_suffix("]]")?;
    let (address, title) = match inside.split_once("][") {
        Some((address, title)) => (address, Some(title)),
        None => (inside, None),
    };
    is_address(address).then(|| alone(address).map(|spotted| Spotted { title, ..spotted }))
}
