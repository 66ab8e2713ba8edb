//! Links. A relative one leads to a file of the archive whatever that file is called, and to
//! nothing else; it goes on doing so when the archive is moved or served.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// All but the unreserved characters of RFC 3986. `:` would make a scheme, `#` and `?` end the
/// path, `%` begin an escape, and browsers take `\` for `/`.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// The reference to `path` below the directory `ups` levels above the page. `None` for a path
/// that leads out of there (`..`, `/…`), or whose name was not UTF-8 and is lost.
pub fn relative(ups: usize, path: &str) -> Option<String> {
    let is_name =
        |name: &str| !["", ".", ".."].contains(&name) && !name.contains(['\0', '\u{fffd}']);
    let names: Vec<&str> = path.split('/').collect();
    if !names.iter().copied().all(is_name) {
        return None;
    }
    let names: Vec<String> = names
        .into_iter()
        .map(|name| utf8_percent_encode(name, SEGMENT).to_string())
        .collect();
    // The leading dots keep a first name with whatever is in it from being anything but a name.
    let start = match ups {
        0 => "./".to_owned(),
        ups => "../".repeat(ups),
    };
    Some(start + &names.join("/"))
}

/// The address of a page on the web, in the form that the URL standard gives it; `None` for every
/// other scheme.
pub fn web(url: &str) -> Option<String> {
    let parsed = url::Url::parse(url).ok()?;
    ["http", "https"]
        .contains(&parsed.scheme())
        .then(|| parsed.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::path::{Component, Path};

    #[test]
    fn names_that_mean_something_in_a_url() {
        for (path, wanted) in [
            ("wget/index.html", "./wget/index.html"),
            ("javascript:alert(1)", "./javascript%3Aalert%281%29"),
            ("a#b?c%2Fd", "./a%23b%3Fc%252Fd"),
            ("a\\..\\b", "./a%5C..%5Cb"),
            ("one\ntwo\"'<>", "./one%0Atwo%22%27%3C%3E"),
            ("ä", "./%C3%A4"),
            ("...", "./..."),
            ("%2e%2e/x", "./%252e%252e/x"),
        ] {
            assert_eq!(relative(0, path).as_deref(), Some(wanted));
        }
        assert_eq!(relative(2, "a/b").unwrap(), "../../a/b");
        for bad in [
            "",
            "/etc/passwd",
            "//host/x",
            "a//b",
            "../x",
            "a/../../x",
            "./x",
            "a/",
            "lost\u{fffd}",
        ] {
            assert_eq!(relative(0, bad), None, "{bad}");
        }
    }

    #[test]
    fn only_the_web_is_the_web() {
        assert_eq!(web("https://a.test/\"x").unwrap(), "https://a.test/%22x");
        for bad in [
            "javascript:alert(1)",
            " java\nscript:alert(1)",
            "data:text/html,x",
            "file:///etc/passwd",
            "//host/x",
            "x",
        ] {
            assert_eq!(web(bad), None, "{bad}");
        }
    }

    proptest! {
        /// A browser that resolves the link arrives at the file, or there is no link.
        #[test]
        fn a_link_leads_to_its_file(path in "([a-c%:?#&;<>\"'\\\\ .\n]{1,6}|\\PC{1,4}|\\.\\.)(/([a-c%:?#\\\\.]{0,4}|\\PC{1,3})){0,3}") {
            let base = url::Url::parse("file:///srv/archive/day/domain/s1/index.html").unwrap();
            let Some(href) = relative(0, &path) else {
                let steps = Path::new(&path).components();
                let plain = steps.clone().all(|step| matches!(step, Component::Normal(_)));
                prop_assert!(!plain || path.contains("//") || path.ends_with('/') || path.contains("/.")
                    || path.contains(['\0', '\u{fffd}']), "no link to {path:?}");
                return Ok(());
            };
            prop_assert!(href.is_ascii() && !href.contains(['"', '\'', '<', '>', '&', ' ', '\n']));
            let found = base.join(&href).unwrap();
            prop_assert_eq!((found.query(), found.fragment()), (None, None));
            let wanted = Path::new("/srv/archive/day/domain/s1").join(&path);
            // The URL standard takes `%2e` for a dot; encoding the percent sign keeps it out.
            prop_assert_eq!(found.to_file_path().unwrap(), wanted);
        }
    }
}
