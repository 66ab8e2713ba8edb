//! Links. A relative link leads to one file of the archive, whatever its name contains, and stays
//! valid when the archive is moved or served.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// All characters except the unreserved ones of RFC 3986: `:` would make a scheme, `#` and `?` end
/// the path, `%` begins an escape, and browsers treat `\` as `/`.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Relative reference to `path` in the directory `ups` levels above the page. `None` for absolute
/// paths, for paths with `.` or `..`, and for names that are not UTF-8.
pub fn relative(ups: usize, path: &str) -> Option<String> {
    let is_name =
        |name: &str| !["", ".", ".."].contains(&name) && !name.contains(['\0', '\u{fffd}']);
    let names: Vec<&str> = path.split('/').collect();
    if !names.iter().copied().all(is_name) {
        return None;
    }
    let segments: Vec<String> =
        names.into_iter().map(|name| utf8_percent_encode(name, SEGMENT).to_string()).collect();
    // The leading dots prevent that the first name is read as a scheme or host.
    let start = match ups {
        0 => "./".to_owned(),
        ups => "../".repeat(ups),
    };
    Some(start + &segments.join("/"))
}

/// Normalised http or https URL of a web page. `None` for other schemes.
pub fn web(url: &str) -> Option<String> {
    let parsed = url::Url::parse(url).ok()?;
    ["http", "https"].contains(&parsed.scheme()).then(|| parsed.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::path::{Component, Path};

    #[test]
    fn special_characters_of_names_are_escaped() {
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
    fn only_http_and_https_are_web_urls() {
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
        /// A browser resolves every link to its file; otherwise there is no link.
        #[test]
        fn link_resolves_to_its_file(path in "([a-c%:?#&;<>\"'\\\\ .\n]{1,6}|\\PC{1,4}|\\.\\.)(/([a-c%:?#\\\\.]{0,4}|\\PC{1,3})){0,3}") {
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
            // The URL standard reads `%2e` as a dot; the escaped percent sign prevents that.
            prop_assert_eq!(found.to_file_path().unwrap(), wanted);
        }
    }
}
