//! Values of attributes in HTML and XML: entities.

use archivist_core::text::escape_markup;

/// Resolves the entities that addresses contain: numbers, and those of ASCII characters.
pub fn resolved(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let entity = (text[at] == b'&').then(|| entity(&text[at + 1..])).flatten();
        match entity {
            Some((c, length)) => {
                out.extend(c.to_string().bytes());
                at += 1 + length;
            }
            None => {
                out.push(text[at]);
                at += 1;
            }
        }
    }
    out
}

/// The character of an entity after its `&`, and the length of its name with the semicolon.
fn entity(text: &[u8]) -> Option<(char, usize)> {
    let end = text.iter().take(10).position(|byte| *byte == b';')?;
    let name = std::str::from_utf8(&text[..end]).ok()?;
    let c = match name {
        "amp" => '&',
        "quot" => '"',
        "apos" => '\'',
        "lt" => '<',
        "gt" => '>',
        "sol" => '/',
        "colon" => ':',
        "period" => '.',
        "quest" => '?',
        "equals" => '=',
        "num" => '#',
        "percnt" => '%',
        "lowbar" => '_',
        "comma" => ',',
        "semi" => ';',
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(digits) => u32::from_str_radix(digits, 16),
                None => number.parse(),
            };
            char::from_u32(code.ok()?)?
        }
    };
    Some((c, end + 1))
}

/// A text as value of an attribute. Bytes that are no UTF-8 stay as they are.
pub fn escaped(text: &[u8]) -> Vec<u8> {
    let parts = text.utf8_chunks();
    parts
        .flat_map(|part| [escape_markup(part.valid()).as_bytes(), part.invalid()].concat())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entities_of_addresses_are_resolved_and_written() {
        for (text, plain) in [
            ("a?b&amp;c&#38;d&#x26;e", "a?b&c&d&e"),
            ("&copy=1&unknown;&", "&copy=1&unknown;&"),
            ("&quot;&#39;&lt;", "\"'<"),
        ] {
            assert_eq!(resolved(text.as_bytes()), plain.as_bytes(), "{text}");
            assert_eq!(resolved(&escaped(plain.as_bytes())), plain.as_bytes());
        }
    }
}
