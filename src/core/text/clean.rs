//! Untrusted text (from pages, hooks and files) made safe to print. A terminal obeys control
//! characters, and bidirectional formatting (Unicode, UAX #9) reorders the text around it in a
//! browser too, so both use the same rule. Escaping HTML is left to the template.

use std::borrow::Cow;

/// Returns whether a terminal or browser obeys `c` instead of showing it: control characters (C0,
/// DEL, C1), bidirectional formatting, and the line and paragraph separators.
pub fn is_unsafe(c: char) -> bool {
    matches!(
        c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    ) || c.is_control()
}

fn safe(c: char) -> char {
    match c {
        '\n' | '\r' | '\t' => ' ',
        c if is_unsafe(c) => '\u{fffd}',
        c => c,
    }
}

/// Returns `text` as one line that is safe to print: line feeds and tabs become spaces, other
/// [unsafe](is_unsafe) characters become U+FFFD.
pub fn clean(text: &str) -> String {
    text.chars().map(safe).collect()
}

/// Returns `text` cleaned like [`clean`], except that line feeds stay.
pub fn clean_lines(text: &str) -> String {
    let lines: Vec<_> = text.split('\n').map(clean).collect();
    lines.join("\n")
}

/// Returns `text` trimmed, cleaned like [`clean`] and cut to `max` characters, with `…` in place of
/// the rest.
pub fn clean_to(text: &str, max: usize) -> String {
    let mut chars = text.trim().chars();
    let mut out: String = chars.by_ref().take(max).map(safe).collect();
    if chars.next().is_some() {
        out.push('…');
    }
    out
}

/// Returns an equal JSON document in which every [unsafe](is_unsafe) character is written as
/// `\uXXXX`. Line feeds stay: JSON strings cannot contain them, so they can only stand between
/// values.
pub fn escape_json(json: &str) -> Cow<'_, str> {
    let escaped = |c: char| c != '\n' && is_unsafe(c);
    if !json.contains(escaped) {
        return Cow::Borrowed(json);
    }
    let mut text = String::with_capacity(json.len() + 64);
    for c in json.chars() {
        if escaped(c) {
            // Every unsafe character is in the basic plane, so four digits are enough.
            text.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            text.push(c);
        }
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bidirectional_formatting_and_controls_are_replaced() {
        assert_eq!(clean_to(" a\u{202e}gpj.exe\n\0 ", 20), "a\u{fffd}gpj.exe \u{fffd}");
        assert_eq!(clean_to("ääää", 2), "ää…");
        assert_eq!(clean("a\nb\u{1b}[31m\u{61c}"), "a b\u{fffd}[31m\u{fffd}");
        assert_eq!(clean_lines("a\nb\r\u{7}"), "a\nb \u{fffd}");
    }

    #[test]
    fn clean_lets_no_escape_sequence_through() {
        assert_eq!(clean("a\x1b[31mb\nc\u{202e}d\u{9b}"), "a\u{fffd}[31mb c\u{fffd}d\u{fffd}");
        assert_eq!(clean_lines("a\u{1b}[2J\nb\u{85}"), "a\u{fffd}[2J\nb\u{fffd}");
    }

    proptest::proptest! {
        #[test]
        fn escape_json_keeps_the_document_and_leaves_nothing_unsafe(text: String, odd in "[\u{7f}-\u{9f}\u{61c}\u{200e}-\u{202f}\u{2060}-\u{206f}\u{1}-\u{1f}a]{0,20}") {
            let value = serde_json::json!({(odd.clone()): text, "list": [odd]});
            for document in [value.to_string(), format!("{value:#}")] {
                let escaped = escape_json(&document);
                assert!(!escaped.chars().any(|c| c != '\n' && is_unsafe(c)), "{escaped:?}");
                assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).unwrap(), value);
            }
        }
    }
}
