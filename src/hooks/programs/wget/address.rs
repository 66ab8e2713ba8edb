//! URLs as wget, servers and pages write them, in one form.

use super::needs::Syntax;
use super::warc::Response;
use crate::page::charset;
use crate::page::html::query_encoder;
use encoding_rs::{Encoding, UTF_8};
use std::borrow::Cow;
use url::Url;

/// What the addresses of a document are relative to.
pub struct Base {
    own: Url,
    url: Url,
    /// The encoding of its text, and that of the queries in it: browsers send those of markup as the page
    /// has them, and those of style sheets in UTF-8.
    encoding: &'static Encoding,
    of_queries: &'static Encoding,
}

impl Base {
    /// That of a response with this text.
    pub fn of(response: &Response, syntax: Syntax, text: &[u8]) -> Option<Base> {
        let kind = response.header("content-type").unwrap_or_default();
        Base::new(&response.url, kind, syntax, text)
    }

    fn new(url: &str, content_type: &str, syntax: Syntax, text: &[u8]) -> Option<Base> {
        let own = Url::parse(url).ok()?;
        let encoding = charset::encoding(text, content_type, Some(&own));
        let of_queries = if syntax == Syntax::Style { UTF_8 } else { encoding };
        Some(Base { url: own.clone(), own, encoding, of_queries })
    }

    /// Takes the value of a `base` element.
    pub fn set(&mut self, value: &[u8]) {
        if !value.is_empty() {
            self.url = self.join_to(&self.own, value).unwrap_or_else(|| self.own.clone());
        }
    }

    pub fn join(&self, value: &[u8]) -> Option<Url> {
        self.join_to(&self.url, value)
    }

    fn join_to(&self, base: &Url, value: &[u8]) -> Option<Url> {
        // Entities became UTF-8.
        let value = match str::from_utf8(value) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => self.encoding.decode_without_bom_handling(value).0,
        };
        let in_encoding = query_encoder(self.of_queries);
        let options = Url::options().base_url(Some(base));
        options.encoding_override(Some(&in_encoding)).parse(&value).ok()
    }
}

/// A URL in the form in which addresses are compared: without fragment, and with the same
/// characters escaped.
pub fn address(url: &str) -> Option<String> {
    let mut parsed = Url::parse(url).ok()?;
    parsed.set_fragment(None);
    let mut out = String::new();
    let text = parsed.as_str();
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'%' if after.len() >= 2 && after[..2].iter().all(u8::is_ascii_hexdigit) => {
                let digits = String::from_utf8_lossy(&after[..2]).to_ascii_uppercase();
                rest = &after[2..];
                match u8::from_str_radix(&digits, 16) {
                    Ok(c) if c.is_ascii_alphanumeric() || b"-._~".contains(&c) => {
                        out.push(char::from(c));
                    }
                    _ => out += &format!("%{digits}"),
                }
            }
            b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}' | b'\'' | b' ' | b'['
            | b']' => out += &format!("%{byte:02X}"),
            byte if byte.is_ascii() => out.push(char::from(*byte)),
            byte => out += &format!("%{byte:02X}"),
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_asked_for_in_the_encoding_of_their_page() {
        let joined = |kind: &str, syntax: Syntax, value: &[u8]| {
            let base = Base::new("http://a.test/x", kind, syntax, b"").unwrap();
            base.join(value).unwrap().to_string()
        };
        let sjis = b"\x93\xfa.png?q=\x93\xfa";
        let kind = "text/html; charset=shift_jis";
        assert_eq!(joined(kind, Syntax::Markup, sjis), "http://a.test/%E6%97%A5.png?q=%93%FA");
        let of_entities = "?q=日".as_bytes();
        assert_eq!(joined(kind, Syntax::Markup, of_entities), "http://a.test/x?q=%93%FA");
        let kind = "text/css; charset=shift_jis";
        assert_eq!(joined(kind, Syntax::Style, sjis), "http://a.test/%E6%97%A5.png?q=%E6%97%A5");
        let kind = "text/html; charset=utf-8";
        assert_eq!(joined(kind, Syntax::Markup, of_entities), "http://a.test/x?q=%E6%97%A5");
    }

    #[test]
    fn addresses_are_compared_without_differences_of_escapes() {
        for (one, other) in [
            ("http://a.test/%7euser/a%20b#x", "http://A.test:80/~user/a b"),
            ("http://a.test/?q=a|b{c}", "http://a.test/?q=a%7Cb%7bc%7d"),
            ("http://a.test/ü", "http://a.test/%c3%bc"),
        ] {
            assert_eq!(address(one), address(other), "{one}");
        }
        assert_ne!(address("http://a.test/?a%26b"), address("http://a.test/?a&b"));
    }
}
