//! Suffixes that make a file open as what it is.

use percent_encoding::percent_decode_str;
use url::Url;

/// Media types and the suffixes of their files; the first is given to files without one.
const SUFFIXES: [(&str, &[&str]); 41] = [
    ("text/html", &["html", "htm", "xhtml", "shtml", "xht"]),
    ("application/xhtml+xml", &["xhtml", "html", "htm", "xht"]),
    ("text/css", &["css"]),
    ("text/javascript", &["js", "mjs"]),
    ("application/javascript", &["js", "mjs"]),
    ("application/x-javascript", &["js", "mjs"]),
    ("application/json", &["json"]),
    ("application/ld+json", &["json", "jsonld"]),
    ("application/manifest+json", &["json", "webmanifest"]),
    ("application/xml", &["xml", "rss", "atom", "xsl"]),
    ("text/xml", &["xml", "rss", "atom", "xsl"]),
    ("text/xsl", &["xsl", "xslt"]),
    ("application/xslt+xml", &["xsl", "xslt"]),
    ("application/rss+xml", &["rss", "xml"]),
    ("application/atom+xml", &["atom", "xml"]),
    ("text/plain", &["txt"]),
    ("text/markdown", &["md"]),
    ("text/csv", &["csv"]),
    ("image/png", &["png", "apng"]),
    ("image/apng", &["png", "apng"]),
    ("image/jpeg", &["jpg", "jpeg", "jpe", "jfif"]),
    ("image/jpg", &["jpg", "jpeg"]),
    ("image/gif", &["gif"]),
    ("image/webp", &["webp"]),
    ("image/avif", &["avif"]),
    ("image/svg+xml", &["svg"]),
    ("image/x-icon", &["ico"]),
    ("image/vnd.microsoft.icon", &["ico"]),
    ("image/bmp", &["bmp"]),
    ("image/tiff", &["tif", "tiff"]),
    ("application/pdf", &["pdf"]),
    ("application/zip", &["zip"]),
    ("font/woff", &["woff"]),
    ("font/woff2", &["woff2"]),
    ("font/ttf", &["ttf"]),
    ("font/otf", &["otf"]),
    ("video/mp4", &["mp4", "m4v"]),
    ("video/webm", &["webm"]),
    ("audio/mpeg", &["mp3"]),
    ("audio/ogg", &["ogg", "oga", "opus"]),
    ("audio/mp4", &["m4a", "mp4"]),
];
/// Longest name of a file in bytes.
const NAME_MAX_BYTES: usize = 120;
/// Name of a file of which nothing says one.
const UNNAMED: &str = "document";

/// Suffixes of programs on servers: they say nothing about the file.
const PROGRAMS: [&str; 11] =
    ["php", "asp", "aspx", "ashx", "cgi", "jsp", "do", "pl", "py", "cfm", "axd"];

/// Suffix for a media type; for types that say nothing, that of the name that the server gives.
pub fn suffix(media_type: &str, disposition: Option<&str>) -> Option<String> {
    let known = SUFFIXES.iter().find(|(own, _)| *own == media_type);
    let of_type = known.map(|(_, suffixes)| suffixes[0].to_owned());
    if media_type != "text/plain"
        && let Some(suffix) = of_type
    {
        return Some(suffix);
    }
    let given = disposition.and_then(|text| {
        let (_, name) = text.split_once("filename")?;
        let name = name.trim_end_matches(['"', ' ', ';']);
        let (_, suffix) = name.rsplit_once('.')?;
        is_suffix(suffix).then(|| suffix.to_ascii_lowercase())
    });
    given.or_else(|| known.map(|(_, suffixes)| suffixes[0].to_owned()))
}

/// The name that a browser gives to a saved response: what the server says, else the end of the path of
/// the URL, with a suffix that makes the file open.
pub fn file_name(url: &Url, media_type: &str, disposition: Option<&str>) -> String {
    let in_url = || {
        let last = url.path_segments()?.next_back()?;
        Some(percent_decode_str(last).decode_utf8_lossy().into_owned())
    };
    let given = disposition.and_then(name_in).or_else(in_url).unwrap_or_default();
    let is_plain = |c: char| c.is_alphanumeric() || " ._-+,=()@".contains(c);
    let plain: String = given.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    let plain = plain.trim_matches([' ', '.', '-']);
    let opens = |suffix: &str| {
        let of_type = SUFFIXES.iter().find(|(own, _)| *own == media_type && *own != "text/plain");
        of_type.map_or(is_suffix(suffix), |(_, known)| known.contains(&&*suffix.to_lowercase()))
    };
    let (stem, end) = match plain.rsplit_once('.').filter(|(_, suffix)| opens(suffix)) {
        Some((stem, suffix)) => (stem, format!(".{suffix}")),
        None => {
            let suffix = suffix(media_type, disposition);
            (plain, suffix.map_or_else(String::new, |suffix| format!(".{suffix}")))
        }
    };
    let room = NAME_MAX_BYTES - end.len().min(NAME_MAX_BYTES);
    let stem = &stem[..stem.floor_char_boundary(room)];
    format!("{}{end}", if stem.is_empty() { UNNAMED } else { stem })
}

/// The file name in a Content-Disposition field (RFC 6266), without directories.
fn name_in(disposition: &str) -> Option<String> {
    let parameter = |wanted: &str| {
        let mut parameters = disposition.split(';').filter_map(|part| part.split_once('='));
        let found = parameters.find(|(name, _)| name.trim().eq_ignore_ascii_case(wanted));
        found.map(|(_, value)| value.trim().trim_matches('"'))
    };
    let extended = parameter("filename*").and_then(|value| value.rsplit_once('\''));
    let extended =
        extended.map(|(_, name)| percent_decode_str(name).decode_utf8_lossy().into_owned());
    let name = extended.or_else(|| parameter("filename").map(str::to_owned))?;
    name.rsplit(['/', '\\']).next().map(str::to_owned).filter(|name| !name.is_empty())
}

pub fn is_suffix(text: &str) -> bool {
    (1..=5).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && !text.bytes().all(|byte| byte.is_ascii_digit())
        && !PROGRAMS.contains(&text.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn files_have_the_name_that_a_browser_gives_them() {
        let pdf = "application/pdf";
        for (url, kind, disposition, name) in [
            ("/a/paper.pdf?x=1", pdf, None, "paper.pdf"),
            ("/a/Caf%C3%A9%20menu.PDF", pdf, None, "Café menu.PDF"),
            ("/pdf/2101.00001v2", pdf, None, "2101.00001v2.pdf"),
            ("/get.php?id=7", pdf, None, "get.php.pdf"),
            ("/", pdf, None, "document.pdf"),
            ("/get", pdf, Some("attachment; filename=\"a report.pdf\""), "a report.pdf"),
            ("/get", pdf, Some("inline; filename=x; filename*=UTF-8''%c3%a4.pdf"), "ä.pdf"),
            ("/get", pdf, Some("attachment; filename=\"../../.ssh/x\""), "x.pdf"),
            ("/..%2f..%2fetc%2fpasswd", "application/octet-stream", None, "_.._etc_passwd"),
            ("/b.epub", "application/epub+zip", None, "b.epub"),
            ("/list", "text/csv", None, "list.csv"),
            ("/b.csv", "text/plain", None, "b.csv"),
        ] {
            let url = Url::parse(&format!("http://a.test{url}")).unwrap();
            assert_eq!(file_name(&url, kind, disposition), name, "{url}");
        }
    }

    proptest! {
        #[test]
        fn names_are_one_short_part_of_a_path(path in ".{0,300}", said in ".{0,200}") {
            let url = Url::parse("http://a.test/").unwrap().join(&path.replace(':', ""));
            let url = url.unwrap_or(Url::parse("http://a.test/").unwrap());
            let said = format!("attachment; filename=\"{said}\"");
            for disposition in [None, Some(said.as_str())] {
                let name = file_name(&url, "application/pdf", disposition);
                prop_assert!(name.len() <= NAME_MAX_BYTES && !name.is_empty());
                prop_assert!(!name.starts_with('.') && !name.contains(['/', '\0', '\n']));
                prop_assert!(name.to_lowercase().ends_with(".pdf"), "{name}");
            }
        }
    }
}
