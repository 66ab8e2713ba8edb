//! Heads of records, requests and responses: a first line, named fields, and an empty line.

use std::io::{self, BufRead};

/// Longest head in bytes. Chromium refuses heads above 256 KiB.
pub const HEAD_MAX_BYTES: usize = 1 << 20;

/// Whether a status leads to another URL, as the Fetch standard defines it ("redirect status").
#[must_use]
pub fn is_redirect(status: u16) -> bool {
    matches!(status, 301 | 302 | 303 | 307 | 308)
}

/// Names and values in their order.
pub type Fields = Vec<(String, String)>;

/// Reads a head with its empty line. The reader is then at the body. An empty result is the end of
/// the stream.
///
/// # Errors
/// [`io::ErrorKind::InvalidData`] if the head is longer than [`HEAD_MAX_BYTES`], and
/// [`io::ErrorKind::UnexpectedEof`] if its end is missing.
pub fn read(source: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    loop {
        let begin = head.len();
        let available = source.fill_buf()?;
        if available.is_empty() {
            return match begin {
                0 => Ok(head),
                _ => Err(io::ErrorKind::UnexpectedEof.into()),
            };
        }
        let end = available.iter().position(|byte| *byte == b'\n');
        let count = end.map_or(available.len(), |end| end + 1);
        head.extend_from_slice(&available[..count]);
        source.consume(count);
        if head.len() > HEAD_MAX_BYTES {
            let reason = format!("head is longer than {HEAD_MAX_BYTES} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
        }
        if head.ends_with(b"\n\r\n") || head.ends_with(b"\n\n") {
            return Ok(head);
        }
        if head == b"\r\n" || head == b"\n" {
            return Ok(head);
        }
    }
}

/// The first line and the fields of a head. Lines without a colon are left out, and lines that
/// begin with a blank continue the previous one.
#[must_use]
pub fn parse(head: &[u8]) -> (String, Fields) {
    let text = decoded(head);
    let mut lines = text.split('\n').map(|line| line.trim_end_matches('\r'));
    let first = lines.next().unwrap_or_default().trim().to_owned();
    let mut fields = Fields::new();
    for line in lines {
        if line.starts_with([' ', '\t']) {
            if let Some((_, value)) = fields.last_mut() {
                value.push(' ');
                value.push_str(line.trim());
            }
        } else if let Some((name, value)) = line.split_once(':') {
            fields.push((name.trim().to_owned(), value.trim().to_owned()));
        }
    }
    (first, fields)
}

/// The value of the first field with a name, whatever its case.
#[must_use]
pub fn value<'a>(fields: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let mut found = fields.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
    found.next().map(|(_, value)| value.as_str())
}

/// Appends a field. What would end the line or the head becomes a blank.
pub(crate) fn push(head: &mut Vec<u8>, name: &str, value: &str) {
    let safe = |byte: u8| match byte {
        b'\r' | b'\n' | 0 => b' ',
        byte => byte,
    };
    let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    let name = name.bytes();
    head.extend(name.map(|byte| if is_token(&byte) { byte } else { b'_' }));
    head.extend_from_slice(b": ");
    head.extend(value.bytes().map(safe));
    head.extend_from_slice(b"\r\n");
}

/// Status code and reason phrase of a response's first line.
#[must_use]
pub fn status(line: &str) -> Option<(u16, String)> {
    let mut words = line.splitn(3, ' ');
    // A server of 1995 names no version.
    words.next().filter(|version| version.starts_with("HTTP/") || *version == "HTTP")?;
    let status = words.next()?.parse().ok()?;
    let reason = words.next().unwrap_or_default().trim().to_owned();
    Some((status, reason)).filter(|(status, _)| (100..=999).contains(status))
}

/// A part of a text, for messages.
pub(crate) fn shown(text: &str) -> String {
    let visible = text.chars().map(|c| if c.is_control() { '?' } else { c });
    visible.take(80).collect()
}

/// Text in UTF-8, else in ISO 8859-1, which older servers send.
fn decoded(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().map(|byte| char::from(*byte)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn head_ends_at_the_empty_line() {
        let text = b"HTTP/1.1 200 OK\r\nA: b\r\n\r\nbody";
        let mut source = &text[..];
        let head = read(&mut source).unwrap();
        assert_eq!(source, b"body");
        let (first, fields) = parse(&head);
        assert_eq!(status(&first), Some((200, "OK".to_owned())));
        assert_eq!(value(&fields, "a"), Some("b"));
        assert_eq!(read(&mut &b"a\nb: c\n\nx"[..]).unwrap(), b"a\nb: c\n\n");
        assert_eq!(read(&mut &b""[..]).unwrap(), b"");
        let cut = read(&mut &b"a\nb: c\n"[..]).unwrap_err();
        assert_eq!(cut.kind(), io::ErrorKind::UnexpectedEof);
        let long = vec![b'a'; HEAD_MAX_BYTES + 1];
        let long = read(&mut &long[..]).unwrap_err();
        assert_eq!(long.kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn fields_of_old_servers_are_read() {
        let (_, fields) = parse(b"HTTP/1.0 200\nA: caf\xe9\n  more\nno field\n: x\nB:c:d\n");
        let expected = [("A", "caf\u{e9} more"), ("", "x"), ("B", "c:d")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(fields, expected);
        assert_eq!(status("HTTP/2 404"), Some((404, String::new())));
        for line in ["HTTP/1.1", "HTTP/1.1 x", "HTTP/1.1 7", "ICY 200 OK", ""] {
            assert_eq!(status(line), None, "{line}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_field_stays_one_line(name in ".*", value in ".*") {
            let mut head = b"HTTP/1.1 200 OK\r\n".to_vec();
            push(&mut head, &format!("a{name}"), &value);
            head.extend_from_slice(b"\r\n");
            let mut source = &head[..];
            proptest::prop_assert_eq!(read(&mut source).unwrap(), head.clone());
            proptest::prop_assert_eq!(parse(&head).1.len(), 1);
        }

        #[test]
        fn any_bytes_are_parsed(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
            if let Ok(head) = read(&mut &bytes[..]) {
                let _ = status(&parse(&head).0);
            }
        }
    }
}
