//! Names of the copy's files. They are made of lower-case ASCII letters, digits, `-`, `_` and dots, so that
//! each file system has them and none takes two for one.

use crate::page::suffix::suffix;
use sha2::{Digest, Sha256};
use url::Url;

/// Longest part of a name that comes from a URL, in bytes.
const STEM_MAX_BYTES: usize = 40;
/// Bytes of the digest in a name: more than a site can try, to make one file stand for another.
const DIGEST_BYTES: usize = 12;
/// Suffix of files whose type says nothing.
const UNKNOWN: &str = "bin";

/// Name of a file with this content. Those of many pages are in directories, because FAT has room for some
/// thousands in one.
pub(super) fn of_file(url: &Url, content: &[u8; 32], suffix: &str, is_single: bool) -> String {
    let digest = hex(content);
    let stem = stem(last_segment(url));
    if is_single {
        return format!("files/{stem}{digest}.{suffix}");
    }
    format!("files/{}/{stem}{}.{suffix}", &digest[..2], &digest[2..])
}

/// Stands for such a name while the content is not known, because it refers to other files.
pub(super) fn some_file(is_single: bool) -> &'static str {
    if is_single { "files/file" } else { "files/00/file" }
}

/// Name of the page with this id.
pub(super) fn of_page(id: &str, url: &Url, suffix: &str) -> String {
    let host = url.host_str().unwrap_or_default().trim_start_matches("www.");
    let host = stem(host);
    format!("pages/{host}{}{id}.{suffix}", stem(last_segment(url)))
}

fn last_segment(url: &Url) -> &str {
    let segments = url.path_segments().and_then(|mut all| all.rfind(|part| !part.is_empty()));
    let last = segments.unwrap_or_default();
    last.rsplit_once('.').map_or(last, |(stem, _)| stem)
}

/// The text in characters of names, with a hyphen at its end if there is one.
fn stem(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars().map(|c| c.to_ascii_lowercase()).take(STEM_MAX_BYTES) {
        match c {
            'a'..='z' | '0'..='9' | '_' => out.push(c),
            _ if out.is_empty() || out.ends_with('-') => {}
            _ => out.push('-'),
        }
    }
    let out = out.trim_end_matches('-');
    if out.is_empty() { String::new() } else { format!("{out}-") }
}

/// Suffix for a media type. That of a file which browsers run is none of them.
pub(super) fn suffix_of(media_type: &str) -> String {
    suffix(media_type, None).unwrap_or_else(|| UNKNOWN.to_owned())
}

pub(super) fn digest(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

fn hex(content: &[u8; 32]) -> String {
    content.iter().take(DIGEST_BYTES).map(|byte| format!("{byte:02x}")).collect()
}

/// The link from one file of the copy to another.
pub(super) fn relative(from: &str, to: &str) -> String {
    format!("{}{to}", "../".repeat(from.matches('/').count()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_for_every_file_system() {
        for url in [
            "http://a.test/CON",
            "http://a.test/..%2f..%2fetc/passwd",
            "http://a.test/%00%0a?x=../../y",
            "http://xn--bcher-kva.test/B%C3%BCcher.Html",
            &format!("http://a.test/{}", "x".repeat(3000)),
            "http://[::1]:80/",
        ] {
            let url = Url::parse(url).unwrap();
            let page = of_page("s12", &url, "html");
            let of_file =
                |is_single| of_file(&url, &digest(b"x"), &suffix_of("image/png"), is_single);
            for name in [of_file(true), of_file(false), page] {
                let is_safe =
                    |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_./".contains(c);
                assert!(name.chars().all(is_safe) && name.len() <= 150, "{name}");
                assert!(
                    !name.contains("..") && !name.contains("/.") && !name.starts_with('/'),
                    "{name}"
                );
                let file = name.rsplit('/').next().unwrap();
                assert!(!file.starts_with("con.") && file.matches('.').count() == 1, "{name}");
            }
        }
        let url = Url::parse("http://www.a.test/b/Some%20Picture.JPEG?v=1").unwrap();
        let of_file = |is_single| of_file(&url, &digest(b"x"), "jpg", is_single);
        assert!(of_file(false).starts_with("files/2d/some-20picture-711642"));
        assert!(of_file(true).starts_with("files/some-20picture-2d711642"));
        for is_single in [true, false] {
            let depth = |name: &str| name.matches('/').count();
            assert_eq!(depth(some_file(is_single)), depth(&of_file(is_single)));
        }
        assert_eq!(of_page("s12", &url, "html"), "pages/a-test-some-20picture-s12.html");
        assert_eq!(relative("files/2d/x.css", "files/ab/y.png"), "../../files/ab/y.png");
        assert_eq!(relative("index.html", "files/ab/y.png"), "files/ab/y.png");
    }
}
