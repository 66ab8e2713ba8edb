//! The frame of all HTML pages: head, style, and content security policy.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

const STYLE: &str = concat!(include_str!("colors.css"), include_str!("style.css"));
/// Style of a [`strip`].
const STRIP_STYLE: &str = concat!(include_str!("colors.css"), include_str!("strip.css"));

/// Content security policy: images only from the archive, the one style sheet of these pages, and
/// no scripts. `'self'` covers archives on a server, `file:` those that are opened from disk.
static POLICY: LazyLock<String> =
    LazyLock::new(|| format!("{}; img-src 'self' file:", strict_policy(STYLE)));
/// The same for a page that shows a [`strip`] of the archive as an `object`.
static SHOWING_POLICY: LazyLock<String> =
    LazyLock::new(|| format!("{}; object-src 'self' file:; frame-src 'self' file:", *POLICY));
static STRIP_POLICY: LazyLock<String> = LazyLock::new(|| strict_policy(STRIP_STYLE));

/// Nothing but a style sheet.
fn strict_policy(style: &str) -> String {
    let style = base64(&Sha256::digest(style));
    format!("default-src 'none'; style-src 'sha256-{style}'; base-uri 'none'; form-action 'none'")
}

/// Base64 with padding (RFC 4648), as the policy requires for hashes.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for group in bytes.chunks(3) {
        let bits =
            (0..3).fold(0u32, |bits, at| bits << 8 | u32::from(*group.get(at).unwrap_or(&0)));
        for place in 0..4 {
            if place <= group.len() {
                out.push(char::from(DIGITS[(bits >> (18 - 6 * place) & 63) as usize]))
            } else {
                out.push('=')
            }
        }
    }
    out
}

/// Builds an HTML document. `title` is plain text.
pub fn document(title: &str, body: Markup) -> String {
    assemble(title, body, STYLE, &POLICY)
}

/// Builds an HTML document that shows a [`strip`].
pub fn document_with_strip(title: &str, body: Markup) -> String {
    assemble(title, body, STYLE, &SHOWING_POLICY)
}

/// Builds an HTML document of one line, which another one shows.
pub fn strip(title: &str, body: Markup) -> String {
    assemble(title, body, STRIP_STYLE, &STRIP_POLICY)
}

fn assemble(title: &str, body: Markup, style: &str, policy: &str) -> String {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="referrer" content="no-referrer";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(style)) }
            }
            body { (body) }
        }
    }
    .into_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_matches_the_test_vectors_of_rfc_4648() {
        let cases = ["", "f", "fo", "foo", "foob", "fooba", "foobar"];
        let wanted = ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"];
        assert_eq!(cases.map(|text| base64(text.as_bytes())), wanted);
    }

    #[test]
    fn style_sheets_load_nothing_and_cannot_end_their_element() {
        for style in [STYLE, STRIP_STYLE] {
            assert!(!style.contains('<') && !style.contains("url(") && !style.contains("@import"));
        }
    }
}
