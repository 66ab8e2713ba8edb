//! Bookmark files: the HTML that Netscape wrote first and every browser exports and imports
//! (`<DT><A HREF="…" ADD_DATE="…" TAGS="…">title</A>`), and Pocket's, which differs in the names.

use super::draft::{DraftEntry, split_tags};
use super::{Folders, Place};
use crate::text::trim_blanks;

/// Returns the name of the format of a file that begins like this, in lower case.
pub fn format(start: &str) -> Option<&'static str> {
    let has = |text: &str| start.contains(text);
    let is_netscape = has("netscape-bookmark-file") || (has("<dl") && has("<dt"));
    if is_netscape || has("<dt><a ") {
        Some("Netscape bookmark file")
    } else if has("<title>pocket export") {
        Some("Pocket bookmark file")
    } else if has("<title>instapaper: export") {
        Some("Instapaper bookmark file")
    } else {
        None
    }
}

/// Folders above an entry that are read.
const DEPTH_MAX: usize = 16;
/// Attributes of the folders that every browser has.
const ROOTS: [&str; 2] = ["personal_toolbar_folder", "unfiled_bookmarks_folder"];
/// Begin of tags that linkding writes for its own states.
const STATE_TAG: &str = "linkding:bookmarks.";

/// Returns the links of a bookmark file as JSON objects, in their order.
pub fn entries(text: &str, folders: Folders) -> Vec<(Place, String)> {
    let mut entries = Vec::new();
    let mut above: Vec<Option<String>> = Vec::new();
    let mut next_folder = None;
    let mut is_description = false;
    let (mut at, mut line, mut counted) = (0, 1, 0);
    while let Some(begin) = text[at..].find('<').map(|found| at + found) {
        let rest = &text[begin..];
        if let Some(skipped) = skipped(rest) {
            at = begin + skipped;
            continue;
        }
        let is = |name: &str| is_tag(rest, name);
        at = begin + 1;
        if ["dt", "dl", "/dl", "h3", "hr"].into_iter().any(is) {
            is_description = false;
        }
        if is("h3") {
            let (found, length) = attributes(&rest[3..]);
            at = begin + 3 + length;
            let end = title_end(&text[at..]);
            let is_root = found.iter().any(|(name, _)| ROOTS.contains(&name.as_str()));
            next_folder = Some(words(&text[at..at + end])).filter(|_| !is_root);
            at += end;
        } else if is("dl") {
            above.push(next_folder.take());
        } else if is("/dl") {
            above.pop();
        } else if is("dd") {
            is_description = true;
        }
        // A description may have links of its own.
        if !is("a") || is_description {
            continue;
        }
        let (found, length) = attributes(&rest[2..]);
        at = begin + 2 + length;
        let end = title_end(&text[at..]);
        let title = words(&text[at..at + end]);
        at += end;
        let value = |name: &str| {
            let found = found.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.as_str())
        };
        let Some(url) = value("href") else {
            continue;
        };
        line += text[counted..begin].matches('\n').count() as u64;
        counted = begin;
        let mut tags = split_tags(value("tags").unwrap_or_default());
        tags.retain(|tag| !tag.starts_with(STATE_TAG));
        if folders == Folders::AsTags {
            tags.extend(above.iter().flatten().take(DEPTH_MAX).cloned());
        }
        let time = value("add_date").or_else(|| value("time_added"));
        let entry = DraftEntry {
            url: url.to_owned(),
            title,
            tags,
            time: time.unwrap_or_default().to_owned(),
        };
        entries.push((Place::Line(line), entry.into_line()));
    }
    entries
}

/// Returns the length of a comment, script or style sheet at the beginning.
fn skipped(text: &str) -> Option<usize> {
    if text.starts_with("<!--") {
        return Some(text.find("-->").unwrap_or(text.len()));
    }
    let (_, end) = [("script", "/script"), ("style", "/style")]
        .into_iter()
        .find(|(begin, _)| is_tag(text, begin))?;
    let mut tags = text.match_indices('<').map(|(at, _)| at);
    Some(tags.find(|at| is_tag(&text[*at..], end)).unwrap_or(text.len()))
}

/// Returns whether `text` begins with the tag `<name`.
pub(super) fn is_tag(text: &str, name: &str) -> bool {
    let end = 1 + name.len();
    let is_name = text.get(1..end).is_some_and(|found| found.eq_ignore_ascii_case(name));
    let next = text.as_bytes().get(end);
    is_name && next.is_some_and(|byte| byte.is_ascii_whitespace() || *byte == b'>')
}

/// Reads the attributes of a tag up to its `>`. Returns their names in lower case with their
/// values, and the length of what was read.
pub(super) fn attributes(text: &str) -> (Vec<(String, String)>, usize) {
    let mut found = Vec::new();
    let is_space = |c: char| c.is_ascii_whitespace() || c == '/';
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(is_space);
        let Some(first) = rest.chars().next() else {
            break;
        };
        if first == '>' {
            rest = &rest[1..];
            break;
        }
        let is_end = |c: char| c.is_ascii_whitespace() || c == '=' || c == '>';
        // An equals sign without a name is a part of the name.
        let first_len = first.len_utf8();
        let end = rest[first_len..].find(is_end).map_or(rest.len(), |end| first_len + end);
        let (name, after) = rest.split_at(end);
        let after = after.trim_start();
        let Some(value) = after.strip_prefix('=') else {
            rest = after;
            continue;
        };
        let value = value.trim_start();
        let (value, after) = match value.chars().next() {
            Some(quote @ ('"' | '\'')) => {
                let inner = &value[1..];
                inner.split_once(quote).unwrap_or((inner, ""))
            }
            _ => {
                let is_end = |c: char| c.is_ascii_whitespace() || c == '>';
                value.split_at(value.find(is_end).unwrap_or(value.len()))
            }
        };
        found.push((name.to_ascii_lowercase(), decoded(value)));
        rest = after;
    }
    (found, text.len() - rest.len())
}

/// Returns where the title of a link ends: at `</a`, or where a further entry begins.
fn title_end(text: &str) -> usize {
    let ends = ["a", "/a", "dt", "dd", "dl", "/dl", "li", "/li", "h3"];
    let mut tags = text.match_indices('<');
    let end = tags.find(|(at, _)| ends.iter().any(|name| is_tag(&text[*at..], name)));
    end.map_or(text.len(), |(at, _)| at)
}

/// Returns the text of HTML on one line, without tags.
fn words(html: &str) -> String {
    let mut text = String::with_capacity(html.len());
    let mut rest = html;
    while let Some((before, tag)) = rest.split_once('<') {
        text.push_str(before);
        rest = tag.split_once('>').map_or("", |(_, after)| after);
    }
    text.push_str(rest);
    let text = decoded(&text);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Longest character reference, in bytes.
const REFERENCE_MAX: usize = 12;

/// Replaces the character references that browsers write.
fn decoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        out.push_str(before);
        let mut near = after.bytes().take(REFERENCE_MAX);
        let end = near.position(|byte| byte == b';');
        match end.and_then(|end| Some((character(&after[..end])?, end))) {
            Some((c, end)) => {
                out.push(c);
                rest = &after[end + 1..];
            }
            None => {
                out.push('&');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    trim_blanks(&out).to_owned()
}

fn character(name: &str) -> Option<char> {
    let number = match name.strip_prefix('#') {
        Some(number) => match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16).ok()?,
            None => number.parse().ok()?,
        },
        None => {
            return match name {
                "amp" => Some('&'),
                "lt" => Some('<'),
                "gt" => Some('>'),
                "quot" => Some('"'),
                "apos" => Some('\''),
                "nbsp" => Some(' '),
                "ndash" => Some('–'),
                "mdash" => Some('—'),
                "lsquo" => Some('‘'),
                "rsquo" => Some('’'),
                "ldquo" => Some('“'),
                "rdquo" => Some('”'),
                "hellip" => Some('…'),
                "euro" => Some('€'),
                name => latin_1(name),
            };
        }
    };
    char::from_u32(number).filter(|c| !c.is_control())
}

/// Names of the characters from U+00A1 on (HTML 4, section 24.2.1).
const LATIN_1: &str = "iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg \
    plusmn sup2 sup3 acute micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave \
    Aacute Acirc Atilde Auml Aring AElig Ccedil Egrave Eacute Ecirc Euml Igrave Iacute Icirc Iuml ETH \
    Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc Uuml Yacute THORN szlig \
    agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml igrave iacute icirc iuml \
    eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc uuml yacute thorn yuml";

fn latin_1(name: &str) -> Option<char> {
    let place = LATIN_1.split(' ').position(|known| known == name)?;
    char::from_u32(0xa1 + u32::try_from(place).ok()?)
}
