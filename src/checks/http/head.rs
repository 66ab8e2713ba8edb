//! Status line and headers, read as Chromium reads them: a line that makes no sense is left out.

/// Bytes that may precede the status line, as in Chromium.
const SLOP: usize = 4;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// Status number; 200 if the line has none.
    pub status: u16,
    /// Whether the version is 1.1 or newer.
    pub is_modern: bool,
    /// Names in lower case.
    pub headers: Vec<(String, Vec<u8>)>,
}

impl Head {
    /// Returns the values of all headers with this lower-case name.
    pub fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        let named = self.headers.iter().filter(move |(own, _)| own == name);
        named.map(|(_, value)| value.as_slice())
    }

    /// Returns whether a header with a comma-separated list has this element.
    pub fn lists(&self, name: &str, element: &str) -> bool {
        self.values(name)
            .flat_map(|value| value.split(|byte| *byte == b','))
            .any(|part| part.trim_ascii().eq_ignore_ascii_case(element.as_bytes()))
    }
}

/// Returns where the headers end, if they do: after an empty line. The search starts at `from`.
pub fn end(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    while let Some(found) = bytes.get(at..)?.iter().position(|byte| *byte == b'\n') {
        let next = at + found + 1;
        match bytes.get(next..)? {
            [b'\n', ..] => return Some(next + 1),
            [b'\r', b'\n', ..] => return Some(next + 2),
            _ => at = next,
        }
    }
    None
}

/// Returns whether these first bytes of an answer may be the start of HTTP.
pub fn may_be_http(bytes: &[u8]) -> bool {
    start(bytes).is_some() || bytes.len() < SLOP + 4
}

fn start(bytes: &[u8]) -> Option<usize> {
    let is_icy = bytes.get(..4).is_some_and(|word| word.eq_ignore_ascii_case(b"ICY "));
    let is_start = |at: &usize| {
        let word = bytes.get(*at..*at + 4);
        word.is_some_and(|word| word.eq_ignore_ascii_case(b"http"))
    };
    if is_icy {
        return Some(0);
    }
    (0..=SLOP).find(is_start)
}

/// Reads status line and headers; returns nothing if the bytes do not start with a status line.
pub fn parse(bytes: &[u8]) -> Option<Head> {
    let bytes = &bytes[start(bytes)?..];
    let mut lines = bytes.split(|byte| *byte == b'\n').map(|line| match line {
        [line @ .., b'\r'] => line,
        line => line,
    });
    let mut head = status_line(lines.next()?);
    for line in lines {
        match line {
            [] => break,
            [b' ' | b'\t', ..] => {
                if let Some((_, value)) = head.headers.last_mut() {
                    value.push(b' ');
                    value.extend_from_slice(line.trim_ascii());
                }
            }
            _ => head.headers.extend(header(line)),
        }
    }
    Some(head)
}

fn status_line(line: &[u8]) -> Head {
    let word = line.split(|byte| *byte == b' ').next().unwrap_or_default();
    let rest = line[word.len()..].trim_ascii_start();
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit());
    let number: String = digits.map(|byte| char::from(*byte)).collect();
    let version = word.split(|byte| *byte == b'/').nth(1).unwrap_or_default();
    let is_modern = match version {
        [major, b'.', minor, ..] => (*major, *minor) >= (b'1', b'1'),
        [major, ..] => *major > b'1',
        [] => false,
    };
    Head { status: number.parse().unwrap_or(200), is_modern, headers: Vec::new() }
}

fn header(line: &[u8]) -> Option<(String, Vec<u8>)> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    let name = text(line[..colon].trim_ascii()).to_ascii_lowercase();
    (!name.is_empty()).then(|| (name, line[colon + 1..].trim_ascii().to_vec()))
}

/// Returns a value as text: UTF-8, otherwise Latin-1.
pub fn text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().copied().map(char::from).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(text: &[u8]) -> Head {
        let end = end(text, 0).unwrap();
        parse(&text[..end]).unwrap()
    }

    #[test]
    fn odd_headers_are_read_as_browsers_read_them() {
        for line in [
            &b"Content Security: x\r\n"[..],
            b"X-A : b\r\n",
            b"Set-Cookie: x=\x01\x02; path=/\r\n",
            b"X-Name: caf\xe9\r\n",
            b"X-A: b\n",
            b"garbage line\r\n",
            b": no name\r\n",
            b"\xff\xfe\x00: x\r\n",
            b"X-A: b\r\n continued\r\n",
            b"X: \x00\r\n",
            b"",
        ] {
            let head = of(&[b"HTTP/1.1 200 OK\r\n", line, b"Last: 1\r\n\r\n"].concat());
            assert_eq!(head.status, 200);
            assert!(head.is_modern);
            let last = head.headers.last().unwrap();
            assert_eq!(last, &("last".to_owned(), b"1".to_vec()), "{line:?}");
        }
        let head = of(b"HTTP/1.1 200 OK\r\nX-A : b\r\nC D: e\r\n\tf\r\n\r\n");
        let own: Vec<_> = head.headers.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(own, ["x-a", "c d"]);
        assert_eq!(head.values("c d").next(), Some(&b"e f"[..]));
        assert_eq!(text(b"caf\xe9"), "café");
    }

    #[test]
    fn odd_status_lines_are_read_as_browsers_read_them() {
        for (line, status) in [
            ("HTTP/1.1 200", 200),
            ("HTTP/1.1  404  gone", 404),
            ("http/1.0 301 x", 301),
            ("HTTP/1.1 OK", 200),
            ("HTTP/1.1", 200),
            ("ICY 200 OK", 200),
            ("\r\nHTTP/1.1 503 x", 503),
            ("HTTP/2 204", 204),
        ] {
            let head = parse(format!("{line}\r\n\r\n").as_bytes()).unwrap();
            assert_eq!(head.status, status, "{line}");
        }
        assert!(parse(b"\x00\xff garbage\r\n\r\n").is_none());
        assert!(may_be_http(b"HT") && may_be_http(b"HTTP/1.1 200") && !may_be_http(b"SSH-2.0-x"));
    }

    #[test]
    fn headers_end_at_the_first_empty_line() {
        assert_eq!(end(b"HTTP/1.1 200\r\nA: b\r\n\r\nbody\n\n", 0), Some(22));
        assert_eq!(end(b"HTTP/1.1 200\nA: b\n\nbody", 0), Some(19));
        assert_eq!(end(b"HTTP/1.1 200\nA: b\n", 0), None);
    }

    proptest! {
        #[test]
        fn no_head_is_too_odd(bytes in proptest::collection::vec(any::<u8>(), 0..300), from in 0usize..400) {
            end(&bytes, from);
            parse(&bytes);
            parse(&[b"HTTP/1.1 ", &bytes[..]].concat());
        }
    }
}
