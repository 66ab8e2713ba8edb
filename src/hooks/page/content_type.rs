//! What a content type says: whether it is a page, whether browsers show it, and whether hooks read it.

use std::path::Path;

/// Whether documents of this type may be feeds, sitemaps or lists.
pub(crate) fn may_list(content_type: &str) -> bool {
    let kind = essence(content_type);
    let is_text = kind.starts_with("text/") && !matches!(&*kind, "text/html" | "text/css");
    let is_data = ["xml", "json", "gzip", "octet-stream"];
    kind != "application/xhtml+xml"
        && kind != "image/svg+xml"
        && (is_text || is_data.iter().any(|end| kind.ends_with(end)))
}

/// Content type of a file that wget saved, if no hook has stored that of the response: from its
/// name, else from its first tag (MIME Sniffing standard, "identifying an unknown MIME type").
pub(crate) fn guessed_type(path: &Path, bytes: &[u8]) -> &'static str {
    match path.extension().and_then(|suffix| suffix.to_str()) {
        Some("html" | "htm") => "text/html",
        Some("xhtml") => "application/xhtml+xml",
        Some("xml" | "rss" | "atom" | "rdf") => "application/xml",
        Some("json") => "application/json",
        Some("txt") => "text/plain",
        Some("gz") => "application/gzip",
        _ => {
            let tags = [
                "!doctype html",
                "html",
                "head",
                "script",
                "iframe",
                "h1",
                "div",
                "table",
                "a",
                "style",
                "title",
                "body",
                "p",
                "!--",
            ];
            let start = bytes[..bytes.len().min(512)].trim_ascii_start();
            let start = String::from_utf8_lossy(start).to_ascii_lowercase();
            let is_html = tags.iter().any(|tag| {
                let rest = start.strip_prefix('<').and_then(|rest| rest.strip_prefix(tag));
                rest.is_some_and(|rest| {
                    *tag == "!--" || rest.starts_with(['>', ' ', '\n', '\r', '\t'])
                })
            });
            if is_html { "text/html" } else { "application/octet-stream" }
        }
    }
}

/// Whether hooks read a file of this content type: as a page, feed, sitemap or list. Of mere bytes, only
/// a short list is read.
pub fn is_read(content_type: &str) -> bool {
    let is_bytes = essence(content_type) == "application/octet-stream";
    !content_type.is_empty() && !is_bytes && (is_html(content_type) || may_list(content_type))
}

pub fn is_html(content_type: &str) -> bool {
    let kind = essence(content_type);
    matches!(kind.as_str(), "text/html" | "application/xhtml+xml") || kind.ends_with("+xml")
}

/// Whether a browser shows the content type as a page, instead of a PDF viewer or a download.
pub fn is_viewable(content_type: &str) -> bool {
    let kind = essence(content_type);
    let known = matches!(
        kind.as_str(),
        "" | "application/json" | "application/xml" | "application/javascript"
    );
    known || is_html(&kind) || kind.starts_with("text/") || kind.starts_with("image/")
}

/// A content type without its parameters, in lower case.
pub fn essence(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_without_a_known_suffix_are_pages_if_they_begin_as_one() {
        let kind = |name: &str, text: &str| guessed_type(Path::new(name), text.as_bytes());
        assert_eq!(kind("a", " <!DOCTYPE html>"), "text/html");
        assert_eq!(kind("a.php", "<a href=x>"), "text/html");
        assert_eq!(kind("a", "<address>"), "application/octet-stream");
        assert_eq!(kind("a.png", "\u{fffd}PNG"), "application/octet-stream");
        assert_eq!(kind("a.txt", "<p>"), "text/plain");
    }

    #[test]
    fn viewable_content_types_are_those_that_browsers_show() {
        for kind in
            ["", "text/html; charset=utf-8", "image/png", "text/plain", "application/xhtml+xml"]
        {
            assert!(is_viewable(kind), "{kind}");
        }
        for kind in ["application/pdf", "application/octet-stream", "application/zip", "video/mp4"]
        {
            assert!(!is_viewable(kind), "{kind}");
        }
    }
}
