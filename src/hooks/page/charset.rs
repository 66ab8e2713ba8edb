//! Decodes pages: finds their character encoding as browsers do.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};

/// Decodes the bytes of a page.
///
/// A byte order mark decides, then `charset=` of the content type, then that of a `meta` element in
/// the first 1024 bytes, as in the encoding sniffing algorithm of the HTML standard; the default is
/// UTF-8. Labels are those of the WHATWG Encoding standard. Text that is labelled Latin-1 or
/// windows-1252 but is valid UTF-8 is UTF-8, because servers often send a wrong default. Malformed
/// bytes become U+FFFD.
pub fn decode(bytes: &[u8], content_type: &str) -> String {
    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(1024)]);
    let named = labelled(content_type).or_else(|| labelled(&start).map(in_meta));
    let encoding = match named {
        // Servers often send this default with pages that are UTF-8.
        Some(label) if label == WINDOWS_1252 && std::str::from_utf8(bytes).is_ok() => UTF_8,
        Some(label) => label,
        None => UTF_8,
    };
    encoding.decode(bytes).0.into_owned()
}

/// The encoding that the first `charset=` in the text names, if the label is known.
fn labelled(text: &str) -> Option<&'static Encoding> {
    let text = text.to_ascii_lowercase();
    let (_, rest) = text.split_once("charset")?;
    let value = rest.trim_start().strip_prefix('=')?;
    let label = value.trim_start().trim_start_matches(['"', '\'']);
    let end = label.find(|c: char| !c.is_ascii_alphanumeric() && !"-_:.".contains(c));
    Encoding::for_label(&label.as_bytes()[..end.unwrap_or(label.len())])
}

/// The encoding for a label in a `meta` element, which proves that the text is not UTF-16.
fn in_meta(encoding: &'static Encoding) -> &'static Encoding {
    match encoding {
        e if e == UTF_16LE || e == UTF_16BE => UTF_8,
        e if e == X_USER_DEFINED => WINDOWS_1252,
        e => e,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latin_1_is_decoded_where_it_is_labelled() {
        assert_eq!(decode(b"caf\xe9", "text/html; charset=ISO-8859-1"), "café");
        assert_eq!(
            decode(b"<meta charset='windows-1252'>caf\xe9", ""),
            "<meta charset='windows-1252'>café"
        );
        assert_eq!(
            decode("café".as_bytes(), "text/html; charset=latin1"),
            "café"
        );
        assert_eq!(decode(b"caf\xe9", "text/html"), "caf\u{fffd}");
    }

    #[test]
    fn windows_1252_is_not_latin_1() {
        // 0x80 is the euro sign, 0x93 and 0x94 are quotation marks; in ISO 8859-1 they are control
        // characters.
        let bytes = b"\x93\x80 5\x94 \x96 caf\xe9";
        for label in ["windows-1252", "ISO-8859-1", "latin1", "us-ascii"] {
            let text = decode(bytes, &format!("text/html; charset={label}"));
            assert_eq!(text, "\u{201c}\u{20ac} 5\u{201d} \u{2013} café", "{label}");
        }
        assert_eq!(
            decode(b"\xa4", "text/html; charset=iso-8859-15"),
            "\u{20ac}"
        );
    }

    #[test]
    fn shift_jis_and_other_legacy_encodings_are_decoded() {
        // The second byte of U+8868 and U+30BD is a backslash.
        let bytes = b"\x93\xfa\x96\x7b\x8c\xea \x95\x5c\x83\x5c";
        for label in ["Shift_JIS", "\"x-sjis\"", "MS_Kanji", "windows-31j"] {
            let text = decode(bytes, &format!("text/html;charset={label}"));
            assert_eq!(text, "日本語 表ソ", "{label}");
        }
        let page = b"<META http-equiv=Content-Type content='text/html; CHARSET = Shift_JIS'><title>\x93\xfa\x96\x7b</title>";
        assert!(decode(page, "").ends_with("<title>日本</title>"));
        assert_eq!(
            decode(b"\xc6\xfc\xcb\xdc", "text/html; charset=EUC-JP"),
            "日本"
        );
        assert_eq!(
            decode(b"\x1b$BF|K\\\x1b(B", "text/html; charset=iso-2022-jp"),
            "日本"
        );
        assert_eq!(
            decode(b"\xcf\xf0\xe8", "text/html; charset=windows-1251"),
            "При"
        );
    }

    #[test]
    fn byte_order_mark_precedes_header_and_header_precedes_meta() {
        assert_eq!(
            decode(b"\xff\xfea\0\xe9\0", "text/html; charset=shift_jis"),
            "aé"
        );
        assert_eq!(decode(b"\xef\xbb\xbfcaf\xc3\xa9", ""), "café");
        let page = "<meta charset=shift_jis>日本".as_bytes();
        assert!(decode(page, "text/html; charset=utf-8").ends_with("日本"));
        assert!(decode(b"<meta charset=utf-16>caf\xc3\xa9", "").ends_with("café"));
        assert_eq!(decode(b"caf\xc3\xa9", "text/html; charset=klingon"), "café");
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_decoded(bytes: Vec<u8>, content_type in ".{0,40}", label in "(?i)charset ?=[\"']?[-a-z0-9_:]{0,12}") {
            decode(&bytes, &content_type);
            decode(&bytes, &label);
            decode(&[label.as_bytes(), &bytes].concat(), "");
        }
    }
}
