//! Lines with and without text around an address.

use super::*;
use crate::model::web::url::PageUrl;
use proptest::prelude::*;

fn read(line: &str) -> Result<(String, Option<String>), String> {
    match parse_line(line.as_bytes()).expect(line) {
        Ok(entry) => Ok((entry.url.to_string(), entry.title)),
        Err(error) => Err(error.to_string()),
    }
}

#[test]
fn marks_around_an_address_are_removed() {
    for line in [
        "http://a.test/x",
        "\u{feff}http://a.test/x",
        "\u{a0}http://a.test/x\u{3000}\u{200b}",
        "<http://a.test/x>",
        "\"http://a.test/x\"",
        "\"http://a.test/x\",",
        "'http://a.test/x'",
        "`http://a.test/x`",
        "“http://a.test/x”",
        "(http://a.test/x)",
        "[http://a.test/x]",
        "- http://a.test/x",
        "* <http://a.test/x>",
        "•\u{a0}http://a.test/x",
        "- [ ] http://a.test/x",
        "> - [x] http://a.test/x",
        "12. http://a.test/x",
        "3) http://a.test/x",
        "http://a.test/x # read later",
        "http://a.test/x\t#later, see http://b.test/",
        "[[http://a.test/x]]",
    ] {
        assert_eq!(read(line), Ok(("http://a.test/x".into(), None)), "{line}");
    }
}

#[test]
fn titles_are_read_where_they_are_certain() {
    let of = |address: &str| Ok((address.to_owned(), Some("A (good) title".to_owned())));
    for line in [
        "http://a.test/x\tA (good) title",
        "http://a.test/x\tA (good) title\ttag",
        "http://a.test/x  A (good) title",
        "http://a.test/x | A (good) title",
        "[A (good) title](http://a.test/x)",
        "[A (good) title](<http://a.test/x>)",
        "[A (good) title](http://a.test/x \"on hover\")",
        "- [A (good) title](http://a.test/x) # seen",
        "[[http://a.test/x][A (good) title]]",
    ] {
        assert_eq!(read(line), of("http://a.test/x"), "{line}");
    }
    let line = "[A (good) title](http://a.test/wiki/Insert_(effects))";
    assert_eq!(read(line), of("http://a.test/wiki/Insert_(effects)"));
}

#[test]
fn text_that_may_belong_to_the_address_is_refused() {
    for (line, why) in [
        ("http://a.test/x A title", "text after the address"),
        ("http://a.test/page a", "text after the address"),
        ("http://a.test/x - A title", "text after the address"),
        ("http://a.test/x\u{a0}title", "text after the address"),
        ("http://a.test/My File.pdf", "%20"),
        ("http://a.test/a, http://a.test/b", "several addresses"),
        ("http://a.test/a http://a.test/b", "several addresses"),
        ("http://a.test/a,http://a.test/b", "several addresses"),
        ("http://a.test/a\tHTTP://a.test/b", "several addresses"),
        ("[a](http://a.test/a) [b](http://a.test/b)", "several addresses"),
        ("[a](http://a.test/a), good", "text after the address"),
        ("[a](http://a.test/a", "')' is missing"),
        ("http://a.test/x,", "comma"),
        ("http://a.test/x);", "comma"),
        ("http://a.test/x)", "without '('"),
        ("http://a.test/x]", "without '['"),
        ("http://a.test/x\"", "quotation mark"),
        ("http://a.test/x>", "'<' or '>'"),
        ("http://a.test/very-lo…", "cut off"),
        ("http://a.test/x\u{200b}y", "invisible"),
        ("Title: http://a.test/x", "text before the address"),
        ("URL=http://a.test/x", "text before the address"),
        ("see http://a.test/x", "text before the address"),
        ("<a href=\"http://a.test/x\">x</a>", "text around the address"),
        ("\"http://a.test/x\",\"Title\"", "text around the address"),
        ("<http://a.test/x> Title", "text around the address"),
        ("[1]: http://a.test/x", "text around the address"),
        ("[a]( /x)", "relative URL"),
        ("- nothing", "relative URL"),
    ] {
        let refused = read(line).expect_err(line);
        assert!(refused.contains(why), "{line}: {refused}");
    }
}

#[test]
fn addresses_stay_as_they_are() {
    for (line, want) in [
        ("http://a.test/wiki/Insert_(effects)", "http://a.test/wiki/Insert_(effects)"),
        ("http://a.test/semi;colon,comma'quote", "http://a.test/semi;colon,comma'quote"),
        ("http://a.test/?u=http://b.test/", "http://a.test/?u=http://b.test/"),
        ("http://a.test/web/2020/http://b.test/", "http://a.test/web/2020/http://b.test/"),
        ("http://a.test/#a|b", "http://a.test/#a|b"),
        ("http://a.test/q?a=[x]{y}|z^`\"'\\", "http://a.test/q?a=[x]{y}|z^`%22%27\\"),
        ("http://a.test/a b c", "http://a.test/a%20b%20c"),
        ("https:/a.test/one-slash", "https://a.test/one-slash"),
        ("http://a.test/(x)", "http://a.test/(x)"),
        ("http://a.test/Wow!", "http://a.test/Wow!"),
        (
            "http://a.test/\u{645}\u{6cc}\u{200c}\u{631}",
            "http://a.test/%D9%85%DB%8C%E2%80%8C%D8%B1",
        ),
    ] {
        assert_eq!(read(line), Ok((want.to_owned(), None)), "{line}");
    }
}

#[test]
fn other_lines() {
    assert_eq!(parse_line(b"# comment"), None);
    assert_eq!(parse_line("  \u{feff}\u{a0}".as_bytes()), None);
    assert!(read("view-source:http://a.test/").unwrap_err().contains("view-source:"));
    assert!(parse_line(b"http://x/\xff").unwrap().is_err());
}

proptest! {
    #[test]
    fn no_line_panics(line in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Some(Ok(entry)) = parse_line(&line) {
            let domain = entry.url.domain();
            prop_assert!(!domain.contains('/') && !domain.starts_with('.') && !domain.is_empty());
        }
    }

    /// Whatever is around an address: it is refused, or queued as it is.
    #[test]
    fn no_line_becomes_another_address(before in "[-*>\\[(<\"'`0-9. \u{a0}]{0,4}|\\[\\w{0,3}\\]\\(|\\PC{0,4}", after in "[ \t,;|#)>\\]\"'`]{0,3}\\PC{0,9}|\\PC{0,3}", path in "[a-z]{1,9}(_\\([a-z]{1,5}\\))?") {
        let address = format!("http://a.test/{path}");
        let line = format!("{before}{address} {after}");
        if let Some(Ok(entry)) = parse_line(line.as_bytes()) {
            let single = path.len() == 1;
            prop_assert!(single || entry.url.as_str() == address, "{}: {}", line, entry.url);
        }
    }

    /// What is queued of a line with several words is one of them, or in the marks around it.
    #[test]
    fn every_address_is_a_part_of_one_word(line in "(http://[a-c]{1,3}\\.test/[a-z(),;|#]{0,5}|[ \t,;<>\"|#]|[a-z]{2,4}){1,6}") {
        if let Some(Ok(entry)) = parse_line(line.as_bytes()) {
            let parts = line.split_whitespace().flat_map(|word| {
                word.match_indices("http").flat_map(move |(begin, _)| {
                    (begin + 1..=word.len()).filter_map(move |end| word.get(begin..end))
                })
            });
            let mut parts = parts.filter_map(|part| PageUrl::parse(part).ok());
            prop_assert!(parts.any(|part| part == entry.url), "{}: {}", line, entry.url);
        }
    }
}
