//! Decodes documents: finds their character encoding as browsers do.

use super::declaration;
use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};
use url::Url;

/// Bytes of a document from which its encoding is guessed.
const GUESS_BYTES: usize = 1 << 20;
/// Bytes of a document in which UTF-16 is recognised.
const UTF_16_BYTES: usize = 4096;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded {
    /// Its text without byte order mark. Malformed bytes are U+FFFD.
    pub text: String,
    /// The encoding, with which the queries of its links are encoded.
    pub encoding: &'static Encoding,
}

/// Decodes a document of this content type and address.
///
/// A byte order mark decides, then `charset=` of the content type, then the declaration in the
/// document: `meta` elements of HTML, the XML declaration of XML and HTML. All of this is the
/// encoding sniffing algorithm of the HTML standard, with the labels of the WHATWG Encoding
/// standard. As in browsers, a wrong label is believed: text in UTF-8 that the server labels
/// Latin-1 is shown as Latin-1. Without a label, valid UTF-8 is UTF-8, and other text is guessed
/// from its bytes and the top-level domain, as in Firefox.
pub fn decode(bytes: &[u8], content_type: &str, address: Option<&Url>) -> Decoded {
    let encoding = encoding(bytes, content_type, address);
    let (text, encoding, _) = encoding.decode(bytes);
    Decoded { text: text.into_owned(), encoding }
}

/// Returns the encoding by which [`decode`] reads a document.
pub fn encoding(bytes: &[u8], content_type: &str, address: Option<&Url>) -> &'static Encoding {
    if let Some((marked, _)) = Encoding::for_bom(bytes) {
        return marked;
    }
    if let Some(named) = in_header(content_type) {
        return named;
    }
    let kind = super::content_type::essence(content_type);
    let is_html = matches!(kind.as_str(), "" | "text/html" | "application/xhtml+xml");
    let is_xml = kind.ends_with("/xml") || kind.ends_with("+xml");
    let is_page = is_html && kind != "application/xhtml+xml";
    let declared = is_page.then(|| declaration::in_html(bytes)).flatten();
    let declared = declared.or_else(|| {
        // Some servers send XML as text.
        (is_html || is_xml || bytes.starts_with(b"<?xml"))
            .then(|| declaration::in_xml(bytes))
            .flatten()
    });
    declared.unwrap_or_else(|| guess(bytes, is_page, address))
}

/// The encoding of `charset=` in a content type, if the label is known.
fn in_header(content_type: &str) -> Option<&'static Encoding> {
    let mut parameters = content_type.split(';').skip(1);
    parameters.find_map(|parameter| {
        let (name, label) = parameter.split_once('=')?;
        let label = label.trim().trim_matches(['"', '\'']);
        name.trim()
            .eq_ignore_ascii_case("charset")
            .then(|| Encoding::for_label(label.as_bytes()))
            .flatten()
    })
}

/// Guesses the encoding of a document that declares none. Documents of ASCII only are UTF-8, except
/// pages, whose links browsers encode as in the most likely encoding of their country.
fn guess(bytes: &[u8], is_page: bool, address: Option<&Url>) -> &'static Encoding {
    if let Some(encoding) = utf_16(bytes) {
        return encoding;
    }
    let is_ascii = bytes.is_ascii() && !bytes.contains(&0x1b);
    if is_ascii && !is_page {
        return UTF_8;
    }
    if !is_ascii && !bytes.is_ascii() && is_utf_8(bytes) {
        return UTF_8;
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    let start = &bytes[..bytes.len().min(GUESS_BYTES)];
    detector.feed(start, start.len() == bytes.len());
    let domain = address.and_then(Url::domain).unwrap_or_default();
    let top = domain.trim_end_matches('.').rsplit('.').next();
    let top = top.map(str::to_ascii_lowercase).filter(|top| {
        !top.is_empty() && top.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    });
    detector.guess(top.as_deref().map(str::as_bytes), Utf8Detection::Allow)
}

/// Whether the text is UTF-8. Its last character may be cut, because documents are read up to a
/// limit, if another one is not ASCII.
fn is_utf_8(bytes: &[u8]) -> bool {
    match std::str::from_utf8(bytes) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none() && !bytes[..error.valid_up_to()].is_ascii(),
    }
}

/// UTF-16 without a byte order mark: where every other byte of much of the text is zero, because
/// tags, blanks and addresses are ASCII.
fn utf_16(bytes: &[u8]) -> Option<&'static Encoding> {
    let start = &bytes[..bytes.len().min(UTF_16_BYTES)];
    let pairs = start.chunks_exact(2);
    let count = |high: usize| {
        let is_ascii =
            |pair: &&[u8]| pair[high] == 0 && matches!(pair[1 - high], 9 | 10 | 13 | 32..127);
        pairs.clone().filter(is_ascii).count()
    };
    let (little, big, all) = (count(1), count(0), pairs.len());
    match () {
        () if little >= 2 && little * 4 >= all && little > big * 8 => Some(UTF_16LE),
        () if big >= 2 && big * 4 >= all && big > little * 8 => Some(UTF_16BE),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(bytes: &[u8], content_type: &str) -> String {
        super::decode(bytes, content_type, None).text
    }

    fn of_host(text: &str, encoding: &'static Encoding, host: &str) -> Decoded {
        let bytes = encoding.encode(text).0;
        let address = Url::parse(&format!("http://{host}/")).unwrap();
        super::decode(&bytes, "text/html", Some(&address))
    }

    #[test]
    fn encodings_without_a_declaration_are_guessed() {
        use encoding_rs::*;
        for (text, encoding, host) in [
            (
                "<title>国家图书馆今天发布公告，欢迎各位读者前来参观，开放时间为上午九点。</title>",
                GBK,
                "127.0.0.1",
            ),
            (
                "<title>日本語の題名と、世界のみなさんへのお知らせです。</title>",
                SHIFT_JIS,
                "a.test",
            ),
            ("<title>日本語の題名と、世界のみなさんへのお知らせです。</title>", EUC_JP, "a.jp"),
            ("<title>국립중앙도서관 공지사항을 알려 드립니다</title>", EUC_KR, "a.kr"),
            ("<title>Привет, мир! Новости библиотеки и расписание</title>", WINDOWS_1251, "a.ru"),
            ("<title>Привет, мир! Новости библиотеки и расписание</title>", KOI8_R, "a.ru"),
            ("<title>Žluťoučký kůň příšerně úpěl ďábelské ódy</title>", WINDOWS_1250, "a.cz"),
            ("<title>café à la carte – “déjà vu”</title>", WINDOWS_1252, "a.fr"),
            ("<title>日本語</title>", ISO_2022_JP, "a.jp"),
            ("<title>日本語 Ünïcode</title>", UTF_8, "a.jp"),
        ] {
            let decoded = of_host(text, encoding, host);
            assert_eq!(decoded.text, text, "{}", encoding.name());
        }
    }

    #[test]
    fn utf_16_without_mark_is_recognised() {
        let text = "<!doctype html><title>国家图书馆 公告</title>";
        let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        for bytes in [little, big] {
            assert_eq!(decode(&bytes, "text/html"), text);
            assert_eq!(decode(&bytes, "text/plain"), text);
        }
        let xml = "<?xml version='1.0' encoding='utf-16'?><a>国</a>";
        let bytes: Vec<u8> = xml.encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(decode(&bytes, "application/xml"), xml);
        assert_eq!(decode(b"a\0b", "text/html"), "a\0b");
    }

    #[test]
    fn cut_utf_8_is_utf_8() {
        let bytes = "<p>日本語 Ünïcode".as_bytes();
        let read = super::decode(&bytes[..bytes.len() - 9], "text/html", None);
        assert_eq!(read.encoding, UTF_8);
    }

    #[test]
    fn comments_scripts_and_descriptions_are_no_declarations() {
        let title = "<title>国家图书馆 公告</title>";
        for page in [
            "<!-- keep the charset line first! --><meta charset=gb2312>",
            "<script src=/a.js charset=utf-8></script><meta charset=gb2312>",
            "<?xml version='1.0' encoding='gb2312'?><!doctype html>",
        ] {
            let text = format!("{page}{title}");
            let bytes = encoding_rs::GB18030.encode(&text).0.into_owned();
            assert_eq!(decode(&bytes, "text/html"), text);
        }
        let xhtml = format!("<?xml version='1.0' encoding='gb2312'?><html>{title}</html>");
        let bytes = encoding_rs::GB18030.encode(&xhtml).0.into_owned();
        assert_eq!(decode(&bytes, "application/xhtml+xml"), xhtml);
        assert_eq!(decode(&bytes, "application/rss+xml"), xhtml);
    }

    #[test]
    fn latin_1_is_decoded_where_it_is_labelled() {
        assert_eq!(decode(b"caf\xe9", "text/html; charset=ISO-8859-1"), "café");
        assert_eq!(
            decode(b"<meta charset='windows-1252'>caf\xe9", ""),
            "<meta charset='windows-1252'>café"
        );
        assert_eq!(decode("café".as_bytes(), "text/html; charset=latin1"), "cafÃ©");
        assert_eq!(decode(b"caf\xe9", "text/html"), "café");
        assert_eq!(decode(b"caf\xe9", "text/html; charset=utf-8"), "caf\u{fffd}");
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
        assert_eq!(decode(b"\xa4", "text/html; charset=iso-8859-15"), "\u{20ac}");
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
        assert_eq!(decode(b"\xc6\xfc\xcb\xdc", "text/html; charset=EUC-JP"), "日本");
        assert_eq!(decode(b"\x1b$BF|K\\\x1b(B", "text/html; charset=iso-2022-jp"), "日本");
        assert_eq!(decode(b"\xcf\xf0\xe8", "text/html; charset=windows-1251"), "При");
    }

    #[test]
    fn byte_order_mark_precedes_header_and_header_precedes_meta() {
        assert_eq!(decode(b"\xff\xfea\0\xe9\0", "text/html; charset=shift_jis"), "aé");
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
