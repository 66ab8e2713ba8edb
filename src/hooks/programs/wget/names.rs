//! Names of the copy's files: what the log of wget says, suffixes that open, short names, and links
//! from one file to another.

use crate::page::suffix::is_suffix;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};
use regex::Regex;
use sha2::{Digest, Sha256};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use url::Url;

/// Longest name of a file that does not get a short one, in bytes.
const NAME_MAX_BYTES: usize = 200;
/// Longest start of a short name in bytes.
const STEM_MAX_BYTES: usize = 40;
/// Characters of links that are escaped.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'@')
    .remove(b'=')
    .remove(b'+')
    .remove(b',');
/// URLs and paths of the files that wget logged as saved.
pub fn saved(log: &str) -> Vec<(String, PathBuf)> {
    let Ok(line) = Regex::new(r#"(?m)^\S+ \S+ URL:(\S+) \[[0-9/]*\] -> "([^"]+)" \[[0-9]+\]$"#)
    else {
        return Vec::new();
    };
    line.captures_iter(log).map(|found| (found[1].to_owned(), PathBuf::from(&found[2]))).collect()
}

/// Paths that wget gives to the response for a URL, with and without the suffix that it adds.
pub fn of_wget(url: &str) -> Vec<PathBuf> {
    let Ok(parsed) = Url::parse(url) else {
        return Vec::new();
    };
    let directory = directory(&parsed);
    let mut path = percent_decode_str(parsed.path()).decode_utf8_lossy().into_owned();
    if path.ends_with('/') {
        path.push_str("index.html");
    }
    if let Some(query) = parsed.query() {
        path = format!("{path}@{query}");
    }
    let path = directory
        .join(path.trim_start_matches('/').replace([':', '"', '|', '*', '<', '>', '\\'], "+"));
    vec![path.clone(), added(&path, ".html")]
}

/// Directory that wget gives to the files of a server.
fn directory(url: &Url) -> PathBuf {
    let host = url.host_str().unwrap_or("unknown").trim_matches(['[', ']']);
    let host = host.replace(':', "+");
    url.port().map_or(host.clone(), |port| format!("{host}+{port}")).into()
}

/// The path of a regular file in the working directory. Bytes that are not UTF-8 in its name are
/// U+FFFD in the log.
pub fn existing(logged: &Path) -> Option<PathBuf> {
    let mut path = PathBuf::new();
    for part in logged.components() {
        let Component::Normal(name) = part else {
            return None;
        };
        let next = path.join(name);
        path = if next.symlink_metadata().is_ok() || !name.to_string_lossy().contains('\u{fffd}') {
            next
        } else {
            let parent = if path.as_os_str().is_empty() { Path::new(".") } else { &path };
            let mut entries = fs::read_dir(parent).ok()?.flatten();
            let found =
                entries.find(|entry| entry.file_name().to_string_lossy() == name.to_string_lossy());
            path.join(found?.file_name())
        };
    }
    let is_file = path.symlink_metadata().is_ok_and(|file| file.is_file());
    is_file.then_some(path)
}

/// The path without the suffix that wget adds for an encoding, such as `.gz`.
pub fn without_encoding(path: &Path) -> PathBuf {
    match path.extension().and_then(OsStr::to_str) {
        Some("gz" | "Z" | "br" | "zlib" | "zst") => path.with_extension(""),
        _ => path.to_owned(),
    }
}

/// The path with a suffix if it has none, and with ASCII in place of bytes that are not UTF-8.
pub fn with_suffix(path: &Path, suffix: Option<&str>) -> PathBuf {
    let mut path = path.to_owned();
    if path.to_str().is_none() {
        path = path.iter().map(readable).collect();
    }
    let has_one = path.extension().and_then(OsStr::to_str).is_some_and(is_suffix);
    match suffix {
        Some(suffix) if !has_one => added(&path, &format!(".{suffix}")),
        _ => path,
    }
}

fn readable(name: &OsStr) -> OsString {
    if name.to_str().is_some() {
        return name.to_owned();
    }
    let mut out = String::new();
    for byte in name.as_bytes() {
        if byte.is_ascii() {
            out.push(char::from(*byte));
        } else {
            out += &format!("_{byte:02X}");
        }
    }
    out.into()
}

/// A free path for the response of a URL: the one that wget would use if that is possible, else a
/// short name.
pub fn free(url: &str, suffix: Option<&str>) -> PathBuf {
    let own = of_wget(url).into_iter().next();
    let own = own.map(|path| with_suffix(&path, suffix)).filter(|path| {
        let is_safe = path.components().all(|part| {
            let text = part.as_os_str().to_string_lossy();
            let is_plain = !text.chars().any(|c| c.is_control() || c == '?');
            matches!(part, Component::Normal(_)) && is_plain && text.len() <= NAME_MAX_BYTES
        });
        let mut above = path.ancestors().skip(1).filter(|path| path.parent().is_some());
        is_safe && path.symlink_metadata().is_err() && !above.any(Path::is_file)
    });
    own.unwrap_or_else(|| short(url, suffix))
}

/// A short name for the response of a URL, in the directory of its server.
pub fn short(url: &str, suffix: Option<&str>) -> PathBuf {
    let parsed = Url::parse(url).ok();
    let directory = parsed.as_ref().map_or_else(|| PathBuf::from("unknown"), directory);
    let segments = parsed.as_ref().and_then(|url| url.path_segments());
    let last = segments.and_then(|mut all| all.next_back()).unwrap_or_default();
    let stem: String = Path::new(last)
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
        .take(STEM_MAX_BYTES)
        .collect();
    let digest = Sha256::digest(url);
    let hash: String = digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    let own = Path::new(last).extension().and_then(OsStr::to_str);
    let own = own.filter(|own| is_suffix(own)).map(str::to_ascii_lowercase);
    let suffix = own.or_else(|| suffix.map(str::to_owned));
    let suffix = suffix.map_or_else(String::new, |suffix| format!(".{suffix}"));
    directory.join(format!("{stem}-{hash}{suffix}"))
}

/// The path with `end` appended to its name.
pub fn added(path: &Path, end: &str) -> PathBuf {
    let mut text = path.as_os_str().to_owned();
    text.push(end);
    text.into()
}

/// The file in which wget keeps a document before it converts the links: without the suffix that it
/// added to the document.
fn original_of_wget(path: &Path) -> Option<PathBuf> {
    let stem = path.to_str()?.strip_suffix(".html")?;
    let original = PathBuf::from(format!("{stem}.orig"));
    original.is_file().then_some(original)
}

/// Removes the file in which wget kept a document as it came.
pub fn remove_original_of_wget(path: &Path) {
    if let Some(original) = original_of_wget(path) {
        let _ = fs::remove_file(original);
    }
    let _ = fs::remove_file(added(path, ".orig"));
}

/// Renames wget's copy of a document as it came to the name of the document with `.orig`.
pub fn name_original(path: &Path) {
    if let Some(original) = original_of_wget(path) {
        let _ = fs::rename(original, added(path, ".orig"));
    }
}

pub fn relative(from: &Path, to: &Path) -> String {
    let from: Vec<_> = from.parent().into_iter().flat_map(Path::iter).collect();
    let to: Vec<_> = to.iter().collect();
    let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let up = vec!["..".to_owned(); from.len() - common];
    let down = to[common..].iter().map(|name| percent_encode(name.as_bytes(), SEGMENT).to_string());
    up.into_iter().chain(down).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::suffix::suffix;

    #[test]
    fn files_get_suffixes_that_open() {
        let named = |path: &str, kind: &str, disposition: Option<&str>| {
            let suffix = suffix(kind, disposition);
            with_suffix(Path::new(path), suffix.as_deref())
        };
        for (path, kind, expected) in [
            ("a/full@img=1", "image/png", "a/full@img=1.png"),
            ("a/logo.jpg", "image/png", "a/logo.jpg"),
            ("a/show.php", "image/gif", "a/show.php.gif"),
            ("a/x.js@ver=1.2", "text/javascript", "a/x.js@ver=1.2.js"),
            ("a/jquery-3.6", "text/javascript", "a/jquery-3.6.js"),
            ("a/unknown", "application/x-thing", "a/unknown"),
            ("a/notes.log", "text/plain", "a/notes.log"),
        ] {
            assert_eq!(named(path, kind, None), Path::new(expected), "{path}");
        }
        let disposition = Some("attachment; filename=\"Report.PDF\"");
        let octets = "application/octet-stream";
        assert_eq!(named("a/get@id=3", octets, disposition), Path::new("a/get@id=3.pdf"));
        let bytes = Path::new(OsStr::from_bytes(b"a/caf\xe9.html"));
        assert_eq!(with_suffix(bytes, Some("html")), Path::new("a/caf_E9.html"));
    }

    #[test]
    fn short_names_differ_where_the_urls_do() {
        let long = format!("http://a.test:81/dir/pic.png?{}", "x".repeat(400));
        let (one, other) = (short(&long, None), short(&format!("{long}y"), None));
        assert_ne!(one, other);
        assert!(one.starts_with("a.test+81") && one.extension().unwrap() == "png", "{one:?}");
        assert!(short("http://[::1]/", Some("html")).to_str().unwrap().ends_with(".html"));
    }

    #[test]
    fn links_lead_from_file_to_file() {
        let link = |from: &str, to: &str| relative(Path::new(from), Path::new(to));
        assert_eq!(link("a/b/c.html", "a/d e#.png"), "../d%20e%23.png");
        assert_eq!(link("a/c.html", "a/c.html"), "c.html");
        assert_eq!(link("a/c.html", "b/x@y=1.png"), "../b/x@y=1.png");
    }
}
