//! Sorts more lines than fit in memory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Seek, Write};

/// Lines of which at most a part is in memory.
pub(super) struct Sorter {
    /// Bytes of lines in memory, at most.
    most: usize,
    lines: Vec<String>,
    bytes: usize,
    runs: Vec<File>,
}

impl Sorter {
    pub(super) fn new(most: usize) -> Sorter {
        Sorter { most, lines: Vec::new(), bytes: 0, runs: Vec::new() }
    }

    /// Adds a line, which has no line end. `scratch` makes a file for those that are in memory.
    pub(super) fn add(
        &mut self,
        line: String,
        scratch: &dyn Fn() -> io::Result<File>,
    ) -> io::Result<()> {
        self.bytes += line.len() + size_of::<String>();
        self.lines.push(line);
        if self.bytes < self.most {
            return Ok(());
        }
        self.lines.sort_unstable();
        let mut run = BufWriter::new(scratch()?);
        for line in self.lines.drain(..) {
            run.write_all(line.as_bytes())?;
            run.write_all(b"\n")?;
        }
        self.bytes = 0;
        self.runs.push(run.into_inner()?);
        Ok(())
    }

    pub(super) fn sorted(mut self) -> io::Result<Sorted> {
        self.lines.sort_unstable();
        let mut sorted =
            Sorted { lines: self.lines.into_iter(), runs: Vec::new(), next: BinaryHeap::new() };
        for mut run in self.runs {
            run.rewind()?;
            sorted.runs.push(BufReader::new(run));
        }
        for number in 0..=sorted.runs.len() {
            sorted.refill(number)?;
        }
        Ok(sorted)
    }
}

/// Sorted lines. Each is read when it is next.
pub(super) struct Sorted {
    lines: std::vec::IntoIter<String>,
    runs: Vec<BufReader<File>>,
    /// The next line of each run, with the number of the run.
    next: BinaryHeap<Reverse<(String, usize)>>,
}

impl Sorted {
    /// Reads the next line of a run; that behind the last one is in memory.
    fn refill(&mut self, number: usize) -> io::Result<()> {
        let line = match self.runs.get_mut(number) {
            None => self.lines.next(),
            Some(run) => {
                let mut line = String::new();
                run.read_line(&mut line)?;
                line.pop().map(|_| line)
            }
        };
        self.next.extend(line.map(|line| Reverse((line, number))));
        Ok(())
    }
}

impl Iterator for Sorted {
    type Item = io::Result<String>;

    fn next(&mut self) -> Option<io::Result<String>> {
        let Reverse((line, number)) = self.next.pop()?;
        Some(self.refill(number).map(|()| line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn lines_are_sorted_whatever_fits_in_memory(
            lines in proptest::collection::vec("[a-z {}é]{0,12}", 0..60),
            most in 1..2000_usize,
        ) {
            let mut sorter = Sorter::new(most);
            for line in &lines {
                sorter.add(line.clone(), &tempfile::tempfile).unwrap();
            }
            let sorted: Vec<_> = sorter.sorted().unwrap().map(Result::unwrap).collect();
            let mut expected = lines;
            expected.sort_unstable();
            prop_assert_eq!(sorted, expected);
        }
    }
}
