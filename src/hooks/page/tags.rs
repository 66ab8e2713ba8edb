//! Reads the tags of HTML in its bytes, before its encoding is known.

use std::ops::Range;

/// Elements whose content is text without tags and comments.
const TEXT_ELEMENTS: [&[u8]; 8] =
    [b"script", b"style", b"title", b"textarea", b"xmp", b"iframe", b"noembed", b"noframes"];

pub struct Tag<'a> {
    pub span: Range<usize>,
    name: &'a [u8],
    pub is_end: bool,
    /// Names, values, and ranges of the values.
    attributes: Vec<(&'a [u8], &'a [u8], Range<usize>)>,
}

impl<'a> Tag<'a> {
    /// Whether this is its name.
    pub fn is(&self, name: &[u8]) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }

    pub fn attributes(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        self.attributes.iter().map(|(name, value, _)| (*name, *value))
    }

    /// Value and range of the first attribute of this name.
    pub fn attribute(&self, name: &[u8]) -> Option<(&'a [u8], Range<usize>)> {
        let mut own = self.attributes.iter();
        own.find(|(own, ..)| own.eq_ignore_ascii_case(name))
            .map(|(_, value, range)| (*value, range.clone()))
    }
}

/// Reads the tags of a document, in time that is proportional to its length.
pub struct Tags<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Tags<'a> {
    pub fn new(bytes: &'a [u8]) -> Tags<'a> {
        Tags { bytes, at: 0 }
    }

    /// The next tag; `None` at the end, also within a tag.
    pub fn next(&mut self) -> Option<Tag<'a>> {
        loop {
            let start = find(self.bytes, b"<", self.at)?;
            let rest = &self.bytes[start + 1..];
            if rest.starts_with(b"!--") {
                // `<!-->` is a comment, too.
                self.at = find(self.bytes, b"-->", start + 2)? + 3;
            } else if matches!(rest.first(), Some(b'!' | b'?')) {
                self.at = find(self.bytes, b">", start)? + 1;
            } else {
                let is_end = rest.first() == Some(&b'/');
                let name = start + 1 + usize::from(is_end);
                if self.bytes.get(name).is_some_and(u8::is_ascii_alphabetic) {
                    return self.tag(start, name, is_end);
                }
                self.at = start + 1;
            }
        }
    }

    fn tag(&mut self, start: usize, name: usize, is_end: bool) -> Option<Tag<'a>> {
        let bytes = self.bytes;
        let ends = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>');
        let length = bytes[name..].iter().position(ends)?;
        let name = &bytes[name..name + length];
        self.at = start + 1 + usize::from(is_end) + length;
        let mut attributes = Vec::new();
        let close = loop {
            match self.attribute()? {
                Some(attribute) => attributes.push(attribute),
                None => break self.at,
            }
        };
        let tag = Tag { span: start..close, name, is_end, attributes };
        if !is_end && TEXT_ELEMENTS.iter().any(|own| tag.is(own)) {
            self.skip_text(name);
        }
        Some(tag)
    }

    /// The next attribute; `Some(None)` at the end of the tag, which is consumed, `None` at the end
    /// of the document.
    #[allow(clippy::type_complexity)]
    fn attribute(&mut self) -> Option<Option<(&'a [u8], &'a [u8], Range<usize>)>> {
        let bytes = self.bytes;
        while bytes.get(self.at)?.is_ascii_whitespace() || bytes[self.at] == b'/' {
            self.at += 1;
        }
        if bytes[self.at] == b'>' {
            self.at += 1;
            return Some(None);
        }
        let start = self.at;
        // A name may begin with an equals sign.
        let ends = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>' | b'=');
        self.at = start + 1 + bytes[start + 1..].iter().position(ends)?;
        let name = &bytes[start..self.at];
        let gap = blanks(&bytes[self.at..]);
        if bytes.get(self.at + gap)? != &b'=' {
            return Some(Some((name, &[], self.at..self.at)));
        }
        self.at += gap + 1;
        self.at += blanks(&bytes[self.at..]);
        let (from, length, skip) = match *bytes.get(self.at)? {
            quote @ (b'"' | b'\'') => {
                let from = self.at + 1;
                (from, bytes[from..].iter().position(|byte| *byte == quote)?, 1)
            }
            _ => {
                let ends = |byte: &u8| byte.is_ascii_whitespace() || *byte == b'>';
                (self.at, bytes[self.at..].iter().position(ends)?, 0)
            }
        };
        self.at = from + length + skip;
        Some(Some((name, &bytes[from..from + length], from..from + length)))
    }

    fn skip_text(&mut self, name: &[u8]) {
        while let Some(at) = find(self.bytes, b"</", self.at) {
            let own = &self.bytes[at + 2..];
            if own.len() >= name.len() && own[..name.len()].eq_ignore_ascii_case(name) {
                self.at = at;
                return;
            }
            self.at = at + 2;
        }
        self.at = self.bytes.len();
    }
}

pub fn blanks(bytes: &[u8]) -> usize {
    let is_other = |byte: &u8| !byte.is_ascii_whitespace();
    bytes.iter().position(is_other).unwrap_or(bytes.len())
}

/// Position of `what` at or after `from`.
pub fn find(bytes: &[u8], what: &[u8], from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?;
    let found = rest.windows(what.len()).position(|window| window == what);
    found.map(|at| from + at)
}
