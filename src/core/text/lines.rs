//! Bytes of a file as lines of UTF-8: editors and shells of other systems write byte order marks,
//! UTF-16 (Notepad, PowerShell), UTF-32, and lines that end in CR LF or in CR alone.

use std::borrow::Cow;

/// Bytes that decide whether a text without a byte order mark is UTF-16.
const GUESS_BYTES: usize = 512;

/// Returns `bytes` as UTF-8 without a byte order mark, with LF at the end of lines. Bytes that are
/// no UTF-8 stay, so that the line that has them can be named.
pub fn to_lines(bytes: &[u8]) -> Cow<'_, [u8]> {
    let text = match bytes {
        [0xff, 0xfe, 0, 0, rest @ ..] => utf32(rest, u32::from_le_bytes),
        [0, 0, 0xfe, 0xff, rest @ ..] => utf32(rest, u32::from_be_bytes),
        [0xff, 0xfe, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => utf16(rest, u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => Cow::Borrowed(rest),
        _ if has_zeros(bytes, 1) => utf16(bytes, u16::from_le_bytes),
        _ if has_zeros(bytes, 0) => utf16(bytes, u16::from_be_bytes),
        _ => Cow::Borrowed(bytes),
    };
    if !text.contains(&b'\r') {
        return text;
    }
    let mut lines = Vec::with_capacity(text.len());
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'\r' if text.get(at + 1) == Some(&b'\n') => {}
            b'\r' => lines.push(b'\n'),
            byte => lines.push(*byte),
        }
    }
    Cow::Owned(lines)
}

/// Returns whether `bytes` begin as ASCII in UTF-16 does: of each pair of bytes the one with this
/// index is zero, and the other is not.
fn has_zeros(bytes: &[u8], index: usize) -> bool {
    let start = &bytes[..bytes.len().min(GUESS_BYTES)];
    let mut pairs = start.chunks_exact(2).take(4).peekable();
    pairs.peek().is_some() && pairs.all(|pair| pair[index] == 0 && pair[1 - index] != 0)
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Cow<'static, [u8]> {
    let units = bytes.chunks(2).map(|pair| match pair {
        [a, b] => unit([*a, *b]),
        // Half a unit at the end: U+FFFD.
        _ => 0xfffd,
    });
    let text: String =
        char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
    Cow::Owned(text.into_bytes())
}

fn utf32(bytes: &[u8], unit: fn([u8; 4]) -> u32) -> Cow<'static, [u8]> {
    let of = |word: &[u8]| char::from_u32(unit(word.try_into().ok()?));
    let text: String =
        bytes.chunks(4).map(|word| of(word).unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
    Cow::Owned(text.into_bytes())
}

/// Returns whether `c` can stand around a word without being seen: white space of Unicode, byte
/// order marks, and characters without width.
pub fn is_blank(c: char) -> bool {
    c.is_whitespace() || is_invisible(c)
}

/// Returns whether `c` has no width and no meaning in an address: U+FEFF, zero width space, word
/// joiner, soft hyphen, and formatting of directions. Joiners (U+200C, U+200D) have a meaning.
pub fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{2064}'
            | '\u{2066}'..='\u{2069}'
            | '\u{feff}'
    )
}

/// Returns `text` without [blanks](is_blank) at both ends.
pub fn trim_blanks(text: &str) -> &str {
    text.trim_matches(is_blank)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn units(text: &str, unit: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(unit).collect()
    }

    fn words(text: &str, unit: fn(u32) -> [u8; 4]) -> Vec<u8> {
        text.chars().flat_map(|c| unit(u32::from(c))).collect()
    }

    #[test]
    fn encodings_of_editors_are_read() {
        let text = "http://a.test/é\r\nhttp://b.test/😀\rc";
        let want = "http://a.test/é\nhttp://b.test/😀\nc".as_bytes();
        let marked = format!("\u{feff}{text}");
        for bytes in [
            text.as_bytes().to_vec(),
            marked.as_bytes().to_vec(),
            units(&marked, u16::to_le_bytes),
            units(&marked, u16::to_be_bytes),
            units(text, u16::to_le_bytes),
            units(text, u16::to_be_bytes),
            words(&marked, u32::to_le_bytes),
            words(&marked, u32::to_be_bytes),
        ] {
            assert_eq!(to_lines(&bytes), want, "{bytes:x?}");
        }
    }

    #[test]
    fn other_bytes_stay() {
        assert_eq!(to_lines(b"a\xff\nb"), &b"a\xff\nb"[..]);
        assert_eq!(to_lines(b"\0\0"), &b"\0\0"[..]);
        assert_eq!(to_lines(b""), &b""[..]);
        assert_eq!(to_lines(b"\xff\xfea\0b"), "a\u{fffd}".as_bytes());
    }

    #[test]
    fn blanks_around_a_word_are_removed() {
        let text = "\u{feff}\u{a0}\u{3000} \u{200b}x y\u{200e}\u{202c}\t";
        assert_eq!(trim_blanks(text), "x y");
    }

    proptest! {
        #[test]
        fn any_bytes_become_lines_without_cr(bytes: Vec<u8>) {
            let lines = to_lines(&bytes);
            prop_assert!(!lines.contains(&b'\r'));
            prop_assert!(lines.len() <= 3 * bytes.len() + 3);
        }
    }
}
