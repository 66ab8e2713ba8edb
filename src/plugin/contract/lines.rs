//! Splits a hook's output into lines in bounded memory.

/// Longest line in bytes. Longer lines are dropped and counted.
pub const LINE_MAX_BYTES: usize = 1 << 20;

/// Collects output and emits complete lines.
#[derive(Debug, Default)]
pub struct LineReader {
    part: Vec<u8>,
    /// Whether the current line is too long and is being skipped.
    skipping: bool,
    lines: u64,
    dropped: u64,
}

impl LineReader {
    /// Returns a reader without input.
    pub fn new() -> LineReader {
        LineReader::default()
    }

    /// Calls `line` for each line that ends in these bytes, without its line break. Lines may
    /// contain any bytes; [`crate::parse_line`] replaces invalid UTF-8.
    pub fn feed(&mut self, bytes: &[u8], line: &mut impl FnMut(&[u8])) {
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let (head, tail) = rest.split_at(end);
            rest = &tail[1..];
            if self.part.is_empty() && !self.skipping && head.len() <= LINE_MAX_BYTES {
                self.lines += 1;
                line(trim(head));
                continue;
            }
            self.keep(head);
            self.end(line);
        }
        self.keep(rest);
    }

    /// Emits a last line without line break. Call this at the end of the output.
    pub fn finish(&mut self, line: &mut impl FnMut(&[u8])) {
        if self.skipping || !self.part.is_empty() {
            self.end(line);
        }
    }

    /// Number of emitted lines. The first line means that a background hook is ready.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Number of lines that were too long.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.skipping {
            return;
        }
        if self.part.len() + bytes.len() > LINE_MAX_BYTES {
            self.skipping = true;
            self.part = Vec::new();
            return;
        }
        self.part.extend_from_slice(bytes);
    }

    fn end(&mut self, line: &mut impl FnMut(&[u8])) {
        if std::mem::take(&mut self.skipping) {
            self.dropped += 1;
            return;
        }
        self.lines += 1;
        line(trim(&self.part));
        self.part.clear();
    }
}

fn trim(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(chunks: &[&[u8]]) -> (Vec<Vec<u8>>, LineReader) {
        let mut lines = Vec::new();
        let mut reader = LineReader::new();
        for chunk in chunks {
            reader.feed(chunk, &mut |line| lines.push(line.to_vec()));
        }
        reader.finish(&mut |line| lines.push(line.to_vec()));
        (lines, reader)
    }

    #[test]
    fn lines_may_span_chunks() {
        let (lines, reader) = read(&[b"one\ntw", b"o\r\n", b"", b"\nlast"]);
        assert_eq!(lines, [&b"one"[..], b"two", b"", b"last"]);
        assert_eq!((reader.lines(), reader.dropped()), (4, 0));
        assert_eq!(read(&[]).0.len(), 0);
        assert_eq!(read(&[b"\xff\xfe\0\n"]).0, [b"\xff\xfe\0"]);
    }

    #[test]
    fn too_long_line_is_dropped_and_later_lines_are_emitted() {
        let long = vec![b'x'; LINE_MAX_BYTES + 1];
        let (lines, reader) = read(&[b"a\n", &long, b"tail\nb\n"]);
        assert_eq!(lines, [b"a", b"b"]);
        assert_eq!(reader.dropped(), 1);
        let mut whole = long.clone();
        whole.extend_from_slice(b"\nc\n");
        assert_eq!(read(&[&whole]).0, [b"c"]);
        assert_eq!(read(&[&long]).1.dropped(), 1);
    }

    #[test]
    fn endless_line_needs_bounded_memory() {
        let mut reader = LineReader::new();
        let chunk = vec![b'x'; 1 << 16];
        for _ in 0..1600 {
            reader.feed(&chunk, &mut |_| panic!("no line yet"));
            assert!(reader.part.capacity() <= 2 * LINE_MAX_BYTES);
        }
        reader.feed(b"\nok\n", &mut |line| assert_eq!(line, b"ok"));
        assert_eq!((reader.lines(), reader.dropped()), (1, 1));
    }

    proptest! {
        #[test]
        fn chunk_size_does_not_matter(bytes in prop::collection::vec(prop::sample::select(vec![b'a', b'\n', b'\r', 0xff]), 0..200),
                                    size in 1usize..20) {
            let whole = read(&[&bytes]).0;
            let chunks: Vec<&[u8]> = bytes.chunks(size).collect();
            prop_assert_eq!(read(&chunks).0, whole);
        }
    }
}
