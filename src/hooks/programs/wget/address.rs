//! URLs as wget, servers and pages write them, in one form.

use url::Url;

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
