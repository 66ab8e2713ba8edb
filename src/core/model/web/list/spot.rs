//! The address in a line, and what is next to it.

use super::marks::{MARKS, markdown, org, unmarked, without_bullet};
use crate::model::web::url::UrlError;
use crate::text::{is_blank, is_invisible};

const BEFORE: &str = "there is text before the address; write the address alone on its line";
/// Reason against text after an address.
pub const BEHIND: &str = "there is text after the address; write a blank in an address as %20, and \
                      separate a title by a tab";
/// Reason against further addresses in a line.
pub const SEVERAL: &str = "there are several addresses; write each on a line of its own";

#[derive(Debug, PartialEq)]
pub struct Spotted<'a> {
    /// As it is in the line.
    pub address: &'a str,
    /// With blanks around it.
    pub title: Option<&'a str>,
}

pub fn refuse<T>(why: &'static str) -> Result<T, UrlError> {
    Err(UrlError::Around(why))
}

/// Finds the address in a line and its title; the parser of URLs judges it.
pub fn spot(line: &str) -> Result<Spotted<'_>, UrlError> {
    let text = without_bullet(line);
    if is_address(text) {
        return first(text);
    }
    if let Some(link) = markdown(text).or_else(|| org(text)) {
        return link;
    }
    if let Some(inner) = unmarked(text) {
        return alone(inner);
    }
    if has_address(text) {
        return refuse(if text.starts_with(MARKS.map(|(begin, _)| begin)) {
            "there is text around the address; write the address alone on its line"
        } else {
            BEFORE
        });
    }
    // Not an address: the parser has the reason.
    Ok(Spotted { address: line, title: None })
}

/// Returns whether `text` begins with an address that can be archived.
pub fn is_address(text: &str) -> bool {
    let begins = |scheme: &str| {
        let start = text.as_bytes().get(..scheme.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(scheme.as_bytes()))
    };
    begins("http:") || begins("https:")
}

/// Returns whether an address begins at a word in `text`. `view-source:http://a.test` is one
/// address of another kind.
pub fn has_address(text: &str) -> bool {
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        let is_start = is_blank(before) || "<>()[]{}\"'`“‘«|,;=*_".contains(before);
        if is_start && is_absolute(&text[at..]) {
            return true;
        }
        before = c;
    }
    false
}

/// Returns whether `text` begins with `http://` or `https://`.
fn is_absolute(text: &str) -> bool {
    is_address(text) && text[4..].trim_start_matches(['s', 'S']).starts_with("://")
}

/// Judges a line that begins with an address.
fn first(text: &str) -> Result<Spotted<'_>, UrlError> {
    let Some(end) = text.find(is_gap) else {
        return alone(text);
    };
    let (address, rest) = text.split_at(end);
    let tail = rest.trim_start_matches(is_gap);
    let gap = &rest[..rest.len() - tail.len()];
    if tail.starts_with('#') {
        return alone(address);
    }
    if has_address(tail) {
        return refuse(SEVERAL);
    }
    let title = if gap.contains('\t') {
        tail.split('\t').next()
    } else if let Some(title) = tail.strip_prefix('|').filter(|rest| rest.starts_with(is_gap)) {
        Some(title)
    } else if gap.chars().count() > 1 {
        Some(tail)
    } else {
        None
    };
    match title {
        Some(title) => alone(address).map(|spotted| Spotted { title: Some(title), ..spotted }),
        None if gap == " " && is_of_letters(address, tail) => {
            Ok(Spotted { address: text, title: None })
        }
        None => refuse(BEHIND),
    }
}

/// Returns whether `c` ends an address.
pub fn is_gap(c: char) -> bool {
    c.is_whitespace()
}

/// Returns whether the blanks in the last part of a path stand between single letters or digits,
/// as in `https://a.test/a b c`: that is no title.
fn is_of_letters(address: &str, tail: &str) -> bool {
    let last = address.rsplit('/').next().unwrap_or_default();
    let single = |word: &str| word.len() == 1 && word.as_bytes()[0].is_ascii_alphanumeric();
    single(last) && tail.split(' ').all(single)
}

/// Judges an address without a blank: what was written around it may be left at its end.
pub fn alone(text: &str) -> Result<Spotted<'_>, UrlError> {
    let count = |c: char| text.matches(c).count();
    let last = text.chars().next_back().unwrap_or_default();
    let why = match last {
        ',' | ';' => "it ends in a comma or semicolon; write %2C or %3B if that is a part of it",
        ')' if count(')') > count('(') => {
            "it ends in ')' without '('; write %29 if that is a part of it"
        }
        ']' if count(']') > count('[') => {
            "it ends in ']' without '['; write %5D if that is a part of it"
        }
        '"' if count('"') % 2 == 1 => {
            "it ends in a quotation mark; write %22 if that is a part of it"
        }
        '”' | '’' | '»' => {
            "it ends in a quotation mark; write that as %XX if it is a part of it"
        }
        '…' => "it ends in '…': it was cut off where it was copied",
        _ if text.contains(['<', '>']) => {
            "it contains '<' or '>'; write %3C or %3E if that is a part of it"
        }
        _ if text.contains(is_gap) => BEHIND,
        _ if text.contains(is_invisible) => {
            "it contains an invisible character; write that as %XX if it is a part of it"
        }
        _ if is_joined(text) => SEVERAL,
        _ => {
            return Ok(Spotted { address: text, title: None });
        }
    };
    refuse(why)
}

/// Returns whether a separator stands directly before a further address.
fn is_joined(text: &str) -> bool {
    let mut separators = text.match_indices([',', ';', '|']);
    separators.any(|(at, mark)| is_absolute(&text[at + mark.len()..]))
}
