//! Cuts a hook's output into lines, in bounded memory.

/// A longer line is dropped and counted.
pub const MAX_LINE: usize = 1 << 20;

/// Takes output as it comes and hands on whole lines.
#[derive(Debug, Default)]
pub struct LineReader {
    part: Vec<u8>,
    /// Inside a line that is too long, up to its end.
    skipping: bool,
    lines: u64,
    dropped: u64,
}

impl LineReader {
    pub fn new() -> LineReader {
        LineReader::default()
    }

    /// Calls `line` for each line that ends in these bytes, without its line break. The bytes are
    /// whatever the hook printed; [`crate::parse_line`] replaces what is not UTF-8.
    pub fn feed(&mut self, bytes: &[u8], line: &mut impl FnMut(&[u8])) {
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let (head, tail) = rest.split_at(end);
            rest = &tail[1..];
            if self.part.is_empty() && !self.skipping && head.len() <= MAX_LINE {
                self.lines += 1;
                line(trim(head));
                continue;
            }
            self.keep(head);
            self.end(line);
        }
        self.keep(rest);
    }

    /// Hands on the last line when it has no line break. To be called when the output has ended.
    pub fn finish(&mut self, line: &mut impl FnMut(&[u8])) {
        if self.skipping || !self.part.is_empty() {
            self.end(line);
        }
    }

    /// Lines handed on so far. The first one says that a background hook is ready.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Lines that were too long.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.skipping {
            return;
        }
        if self.part.len() + bytes.len() > MAX_LINE {
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
    fn lines_across_chunks() {
        let (lines, reader) = read(&[b"one\ntw", b"o\r\n", b"", b"\nlast"]);
        assert_eq!(lines, [&b"one"[..], b"two", b"", b"last"]);
        assert_eq!((reader.lines(), reader.dropped()), (4, 0));
        assert_eq!(read(&[]).0.len(), 0);
        assert_eq!(read(&[b"\xff\xfe\0\n"]).0, [b"\xff\xfe\0"]);
    }

    #[test]
    fn a_line_too_long_is_dropped_and_the_rest_goes_on() {
        let long = vec![b'x'; MAX_LINE + 1];
        let (lines, reader) = read(&[b"a\n", &long, b"tail\nb\n"]);
        assert_eq!(lines, [b"a", b"b"]);
        assert_eq!(reader.dropped(), 1);
        let mut whole = long.clone();
        whole.extend_from_slice(b"\nc\n");
        assert_eq!(read(&[&whole]).0, [b"c"]);
        assert_eq!(read(&[&long]).1.dropped(), 1);
    }

    #[test]
    fn a_hundred_megabytes_without_a_line_break_stay_small() {
        let mut reader = LineReader::new();
        let chunk = vec![b'x'; 1 << 16];
        for _ in 0..1600 {
            reader.feed(&chunk, &mut |_| panic!("no line yet"));
            assert!(reader.part.capacity() <= 2 * MAX_LINE);
        }
        reader.feed(b"\nok\n", &mut |line| assert_eq!(line, b"ok"));
        assert_eq!((reader.lines(), reader.dropped()), (1, 1));
    }

    proptest! {
        #[test]
        fn chunking_changes_nothing(bytes in prop::collection::vec(prop::sample::select(vec![b'a', b'\n', b'\r', 0xff]), 0..200),
                                    size in 1usize..20) {
            let whole = read(&[&bytes]).0;
            let chunks: Vec<&[u8]> = bytes.chunks(size).collect();
            prop_assert_eq!(read(&chunks).0, whole);
        }
    }
}
