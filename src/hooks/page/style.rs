//! Addresses in style sheets: finds and replaces them in a pass over the bytes, so that everything
//! else stays as it is in any encoding that contains ASCII.

use std::borrow::Cow;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StyleUse {
    /// `@import`: another style sheet.
    Import,
    /// `url()` and `image-set()`: a picture or a font.
    Picture,
}

/// Calls `replace` for each address in a style sheet. An address for which it returns a text is
/// replaced by that, which must contain neither quotes, parentheses, blanks nor backslashes.
pub fn rewrite(css: &[u8], replace: &mut dyn FnMut(&[u8], StyleUse) -> Option<String>) -> Vec<u8> {
    let mut out = Vec::with_capacity(css.len());
    let mut at = 0;
    let mut is_import = false;
    // Depth of parentheses within image-set(); 0 outside.
    let mut in_set = 0_usize;
    while at < css.len() {
        let rest = &css[at..];
        let length = match rest[0] {
            b'/' if rest.starts_with(b"/*") => comment(rest),
            b'"' | b'\'' => {
                let length = string(rest);
                let inner = &rest[1..length.max(2) - 1];
                let usage = if is_import {
                    Some(StyleUse::Import)
                } else {
                    (in_set == 1).then_some(StyleUse::Picture)
                };
                is_import = false;
                let new = usage.and_then(|usage| replace(&unescaped(inner), usage));
                match new {
                    Some(new) => {
                        out.push(rest[0]);
                        out.extend(new.bytes());
                        out.push(rest[0]);
                        at += length;
                        continue;
                    }
                    None => length,
                }
            }
            b'@' if word(rest, b"@import") => {
                is_import = true;
                b"@import".len()
            }
            b';' | b'{' | b'}' => {
                (is_import, in_set) = (false, 0);
                1
            }
            b'(' => {
                in_set += usize::from(in_set > 0);
                1
            }
            b')' => {
                in_set = in_set.saturating_sub(1);
                1
            }
            _ if word(rest, b"url(") && !is_name(css, at) => {
                let (length, inner) = url_function(rest);
                let usage = if is_import { StyleUse::Import } else { StyleUse::Picture };
                is_import = false;
                if let Some(new) = replace(&unescaped(inner), usage) {
                    out.extend(b"url(\"");
                    out.extend(new.bytes());
                    out.extend(b"\")");
                    at += length;
                    continue;
                }
                length
            }
            _ if word(rest, b"image-set(") => {
                in_set = 1;
                b"image-set(".len()
            }
            _ => 1,
        };
        let length = length.clamp(1, rest.len());
        out.extend(&rest[..length]);
        at += length;
    }
    out
}

fn word(rest: &[u8], word: &[u8]) -> bool {
    rest.len() >= word.len() && rest[..word.len()].eq_ignore_ascii_case(word)
}

/// Whether the byte before `at` belongs to a name, as in `my-url(`.
fn is_name(css: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).map(|before| css[before]);
    before.is_some_and(is_name_byte)
}

fn comment(rest: &[u8]) -> usize {
    let end = rest[2..].windows(2).position(|part| part == b"*/");
    end.map_or(rest.len(), |end| end + 4)
}

/// Length of a string with its quotes. A line feed ends it, as in browsers.
fn string(rest: &[u8]) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 1,
            b'\n' => return at,
            byte if byte == rest[0] => return at + 1,
            _ => {}
        }
        at += 1;
    }
    rest.len()
}

/// Length of `url(…)`, and the address in it without quotes.
fn url_function(rest: &[u8]) -> (usize, &[u8]) {
    let start = b"url(".len();
    let blanks = rest[start..].iter().take_while(|byte| byte.is_ascii_whitespace());
    let start = start + blanks.count();
    match rest.get(start) {
        Some(b'"' | b'\'') => {
            let length = string(&rest[start..]);
            let inner = &rest[start + 1..(start + length).saturating_sub(1).max(start + 1)];
            let close = rest[start + length..].iter().position(|byte| *byte == b')');
            let end = close.map_or(rest.len(), |close| start + length + close + 1);
            (end, inner)
        }
        _ => {
            let mut end = start;
            while end < rest.len() && rest[end] != b')' {
                end += if rest[end] == b'\\' { 2 } else { 1 };
            }
            let end = end.min(rest.len());
            ((end + 1).min(rest.len()), rest[start..end].trim_ascii())
        }
    }
}

fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        if text[at] != b'\\' {
            out.push(text[at]);
            at += 1;
            continue;
        }
        let digits =
            text[at + 1..].iter().take(6).take_while(|byte| byte.is_ascii_hexdigit()).count();
        if digits == 0 {
            let escaped = text.get(at + 1).filter(|byte| **byte != b'\n');
            out.extend(escaped);
            at += 2;
            continue;
        }
        let number = std::str::from_utf8(&text[at + 1..=at + digits]).unwrap_or_default();
        let c = u32::from_str_radix(number, 16).ok().and_then(char::from_u32);
        out.extend(c.unwrap_or('\u{fffd}').to_string().bytes());
        at += 1 + digits;
        at += usize::from(text.get(at).is_some_and(u8::is_ascii_whitespace));
    }
    out
}

/// A style sheet in which no escape hides that a name is one of a function or rule, such as `u\\72l(`: browsers
/// would load its address, which [`rewrite`] does not see.
pub fn with_plain_names(css: &str) -> Cow<'_, str> {
    let bytes = css.as_bytes();
    let mut hiding = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        at += match rest[0] {
            b'/' if rest.starts_with(b"/*") => comment(rest),
            b'"' | b'\'' => string(rest),
            b'\\' => {
                let length = name(rest);
                let before = bytes[..at].iter().rposition(|byte| !is_name_byte(*byte));
                let is_rule = before.is_some_and(|before| bytes[before] == b'@');
                if is_rule || rest.get(length) == Some(&b'(') {
                    hiding.push(at);
                }
                length
            }
            _ => 1,
        }
        .clamp(1, rest.len());
    }
    if hiding.is_empty() {
        return Cow::Borrowed(css);
    }
    let mut plain = css.to_owned();
    for at in hiding {
        plain.replace_range(at..=at, "_");
    }
    Cow::Owned(plain)
}

/// Length of a name that begins with an escape.
fn name(rest: &[u8]) -> usize {
    let mut at = 0;
    while at < rest.len() {
        if rest[at] == b'\\' {
            let digits = rest[at + 1..].iter().take(6).take_while(|byte| byte.is_ascii_hexdigit());
            let digits = digits.count();
            at += 1 + digits.max(1);
            at += usize::from(digits > 0 && rest.get(at).is_some_and(u8::is_ascii_whitespace));
        } else if is_name_byte(rest[at]) {
            at += 1;
        } else {
            break;
        }
    }
    at
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') || !byte.is_ascii()
}

/// A link without characters that end it in HTML or in a style sheet.
pub fn quotable(link: &str) -> String {
    let mut out = String::new();
    for c in link.chars() {
        match c {
            '"' | '\'' | '(' | ')' | '<' | '>' | '\\' | ' ' | '`' => {
                out += &format!("%{:02X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(css: &str) -> Vec<(String, StyleUse)> {
        let mut all = Vec::new();
        let same = rewrite(css.as_bytes(), &mut |url, usage| {
            all.push((String::from_utf8_lossy(url).into_owned(), usage));
            None
        });
        assert_eq!(same, css.as_bytes());
        all
    }

    #[test]
    fn addresses_of_style_sheets_are_found_and_replaced() {
        let css = "@charset \"x\"; @import 'a.css' screen;@IMPORT url( b.css );/* url(no) */\n\
            .c{background:url(\"c(1).png\"), URL('d\\29.png');src:url(e\\ f.woff)}\n\
            .g:before{content:\"url(no)\";background:-webkit-image-set(\"g.png\" 1x, url(h.png) 2x, \
            'i.avif' type('image/avif'))} .x{content:'no'}";
        let urls: Vec<_> = found(css).into_iter().map(|(url, _)| url).collect();
        let expected =
            ["a.css", "b.css", "c(1).png", "d).png", "e f.woff", "g.png", "h.png", "i.avif"];
        assert_eq!(urls, expected);
        assert_eq!(found(css)[1].1, StyleUse::Import);
        assert_eq!(found(css)[2].1, StyleUse::Picture);
        let new = rewrite(b"@import 'a';b{c:url(d)}", &mut |url, _| {
            Some(format!("new/{}", String::from_utf8_lossy(url)))
        });
        assert_eq!(new, b"@import 'new/a';b{c:url(\"new/d\")}");
    }

    #[test]
    fn names_are_not_hidden_by_escapes() {
        for (css, plain) in [
            ("a{b:u\\72l(//x)}", "a{b:u_72l(//x)}"),
            ("a{b:\\75 rl('//x')}", "a{b:_75 rl('//x')}"),
            ("@\\69mport '//x';@i\\mport '//x'", "@_69mport '//x';@i_mport '//x'"),
        ] {
            assert_eq!(with_plain_names(css), plain);
        }
        for css in [
            ".md\\:w-\\[calc\\(1px\\)\\]:not(.\\31 a){content:'\\f1('}",
            "a{b:url(c\\(d.png)}",
            "\\",
        ] {
            assert_eq!(with_plain_names(css), css);
        }
    }

    proptest::proptest! {
        #[test]
        fn style_sheet_without_replacement_is_unchanged(css in "(url\\(|image-set\\(|@import|[\"'();{}\\\\/*\n a1é]){0,40}") {
            found(&css);
            assert_eq!(with_plain_names(&css).len(), css.len());
        }
    }
}
