//! Reads the title, links and icons of a page's HTML. All of it is untrusted text.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};
use scraper::{ElementRef, Html, Selector};
use url::Url;

const XHTML: &str = "http://www.w3.org/1999/xhtml";
/// Longest URL in bytes that is taken from a page.
const URL_MAX_BYTES: usize = 8192;

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
    let encoding = named.unwrap_or(UTF_8);
    let is_mislabelled = encoding == WINDOWS_1252 && std::str::from_utf8(bytes).is_ok();
    let encoding = if is_mislabelled { UTF_8 } else { encoding };
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

/// Converts text to one line of at most `most` characters: runs of white space and control
/// characters become one blank.
pub fn one_line(text: &str, most: usize) -> String {
    let plain = text.replace(|c: char| c.is_control(), " ");
    let words: Vec<_> = plain.split_whitespace().collect();
    words.join(" ").chars().take(most).collect()
}

/// The page's title, else its `og:title`. `None` if both are empty.
pub fn title(page: &Html) -> Option<String> {
    let element = select(page, "title").find(|element| &*element.value().name.ns == XHTML);
    let own = element.map(|element| one_line(&element.text().collect::<String>(), 1024));
    let open_graph =
        || select(page, "meta[property='og:title']").find_map(|element| element.attr("content"));
    own.filter(|text| !text.is_empty()).or_else(|| {
        open_graph()
            .map(|text| one_line(text, 1024))
            .filter(|text| !text.is_empty())
    })
}

/// A link of a page.
#[derive(Debug, PartialEq, Eq)]
pub struct Link {
    /// Target: an absolute http or https URL without fragment.
    pub url: Url,
    /// Text of the link on one line, often empty.
    pub text: String,
}

/// All links of the page in their order, including duplicates.
pub fn links(page: &Html, address: &Url) -> Vec<Link> {
    let base = base(page, address);
    let mut links = Vec::new();
    for element in select(
        page,
        "a[href], area[href], iframe[src], frame[src], meta[http-equiv][content]",
    ) {
        let target = match element.value().name() {
            "a" | "area" => element.attr("href"),
            "meta" => refresh_target(&element),
            _ => element.attr("src"),
        };
        if let Some(url) = target.and_then(|target| web_url(&base, target)) {
            links.push(Link {
                url,
                text: one_line(&element.text().collect::<String>(), 300),
            });
        }
    }
    links
}

/// The icons that the page names: those for browsers before those for home screens.
pub fn icons(page: &Html, address: &Url) -> Vec<Url> {
    let base = base(page, address);
    let named = |wanted: &str| {
        let elements = select(page, "link[rel][href]").filter(|element| {
            let mut words = element
                .attr("rel")
                .unwrap_or_default()
                .split_ascii_whitespace();
            words.any(|word| word.eq_ignore_ascii_case(wanted))
        });
        elements
            .filter_map(|element| web_url(&base, element.attr("href")?))
            .collect::<Vec<_>>()
    };
    [named("icon"), named("apple-touch-icon")].concat()
}

/// The base URL for links: the page's URL, resolved against its first `base` element.
pub fn base(page: &Html, address: &Url) -> Url {
    let href = select(page, "base[href]").find_map(|element| element.attr("href"));
    let joined = href.and_then(|href| address.join(href.trim()).ok());
    joined
        .filter(|url| matches!(url.scheme(), "http" | "https"))
        .unwrap_or_else(|| address.clone())
}

/// Resolves the value of an attribute to an http or https URL without fragment. `None` for other
/// schemes, fragments, and URLs above the length limit.
pub fn web_url(base: &Url, target: &str) -> Option<Url> {
    let target = target.trim();
    if target.is_empty() || target.starts_with('#') || target.len() > URL_MAX_BYTES {
        return None;
    }
    let mut url = base.join(target).ok()?;
    url.set_fragment(None);
    let fits = matches!(url.scheme(), "http" | "https") && url.as_str().len() <= URL_MAX_BYTES;
    fits.then_some(url)
}

/// The target of `<meta http-equiv=refresh content="5; url=…">`.
fn refresh_target<'a>(element: &ElementRef<'a>) -> Option<&'a str> {
    if !element.attr("http-equiv")?.eq_ignore_ascii_case("refresh") {
        return None;
    }
    let (_, rest) = element.attr("content")?.split_once([';', ','])?;
    let rest = rest.trim_start();
    let (key, target) = rest.split_once('=')?;
    let target = target.trim().trim_matches(['"', '\'']);
    key.trim().eq_ignore_ascii_case("url").then_some(target)
}

/// The elements that match a selector in the page's order. None if the selector is invalid.
pub fn select<'a>(page: &'a Html, selector: &str) -> impl Iterator<Item = ElementRef<'a>> {
    let selector = Selector::parse(selector).ok();
    page.root_element()
        .descendent_elements()
        .filter(move |element| selector.as_ref().is_some_and(|s| s.matches(element)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str) -> Html {
        Html::parse_document(text)
    }

    fn urls(text: &str) -> Vec<String> {
        let address = Url::parse("http://a.test/dir/page?x=1#top").unwrap();
        links(&page(text), &address)
            .into_iter()
            .map(|link| link.url.to_string())
            .collect()
    }

    #[test]
    fn titles_are_text_on_one_line() {
        let read = |text: &str| title(&page(text));
        assert_eq!(
            read("<title> a\n\t b\u{7}c </title>").as_deref(),
            Some("a b c")
        );
        assert_eq!(
            read("<title>$(touch /tmp/pwned) \"<b></title>").as_deref(),
            Some("$(touch /tmp/pwned) \"<b>")
        );
        assert_eq!(
            read("<svg><title>drawing</title></svg><title>page</title>").as_deref(),
            Some("page")
        );
        assert_eq!(
            read("<title> </title><meta property=og:title content='og'>").as_deref(),
            Some("og")
        );
        assert_eq!(read("<p>none").as_deref(), None);
        assert_eq!(
            read(&format!("<title>{}</title>", "é".repeat(5000)))
                .unwrap()
                .chars()
                .count(),
            1024
        );
    }

    #[test]
    fn links_are_resolved_against_base_element_and_url() {
        assert_eq!(
            urls(
                "<a href=b>1</a><a href='/c#f'>2</a><a href='//o.test/'>3</a><area href='?q'><iframe src=i>"
            ),
            [
                "http://a.test/dir/b",
                "http://a.test/c",
                "http://o.test/",
                "http://a.test/dir/page?q",
                "http://a.test/dir/i"
            ]
        );
        assert_eq!(
            urls("<base href='/deep/'><a href=x>"),
            ["http://a.test/deep/x"]
        );
        assert_eq!(
            urls("<base href='file:///etc/'><a href=x>"),
            ["http://a.test/dir/x"]
        );
    }

    #[test]
    fn other_schemes_fragments_and_malformed_urls_are_not_links() {
        let text = "<a href='javascript:alert(1)'><a href='file:///etc/passwd'><a href='#x'><a href=''>\
            <a href='http://[bad/'><a href='data:text/html,x'><a href='mailto:a@b.test'><a href='  '>";
        assert!(urls(text).is_empty());
        assert!(urls(&format!("<a href='/{}'>", "x".repeat(10_000))).is_empty());
    }

    #[test]
    fn hostile_urls_stay_text() {
        assert_eq!(
            urls("<a href='/?q=$(reboot)&n=%n&h=${HOME}&t=`id`'><a href=\"/a\nb'\">"),
            [
                "http://a.test/?q=$(reboot)&n=%n&h=${HOME}&t=`id`",
                "http://a.test/ab'"
            ]
        );
    }

    #[test]
    fn meta_refresh_is_a_link() {
        assert_eq!(
            urls("<meta http-equiv=Refresh content='5; URL=\"/next\"'>"),
            ["http://a.test/next"]
        );
        assert!(
            urls("<meta http-equiv=refresh content=5><meta http-equiv=x content='0;url=/no'>")
                .is_empty()
        );
    }

    #[test]
    fn icons_for_browsers_precede_those_for_home_screens() {
        let text = "<link rel=apple-touch-icon href=/t.png><link rel='SHORTCUT Icon' href=f.ico><link rel=mask href=m>";
        let found = icons(&page(text), &Url::parse("http://a.test/d/").unwrap());
        assert_eq!(
            found.iter().map(Url::as_str).collect::<Vec<_>>(),
            ["http://a.test/d/f.ico", "http://a.test/t.png"]
        );
    }

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
        assert_eq!(
            title(&Html::parse_document(&decode(page, ""))).as_deref(),
            Some("日本")
        );
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
