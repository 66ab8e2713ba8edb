//! What is wrong in a file, with its place in the file.

use super::clean;
use std::fmt;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    pub file: PathBuf,
    /// Counts from 1.
    pub line: u32,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file.display(), self.line)
    }
}

/// Something in a file, or about a file or directory, that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// File or directory.
    pub path: PathBuf,
    /// `None` if the problem concerns the whole file.
    pub line: Option<u32>,
    /// What is wrong and what to do about it, on one line.
    pub what: String,
    /// Nothing is made of the file. Otherwise only the line is ignored.
    pub fatal: bool,
}

impl Problem {
    pub fn at(location: &Location, what: impl Into<String>) -> Problem {
        Problem { line: Some(location.line), ..Problem::of(&location.file, what) }
    }

    /// Returns a fatal problem of a whole file or directory.
    pub fn of(path: &Path, what: impl Into<String>) -> Problem {
        Problem { path: path.to_owned(), line: None, what: what.into(), fatal: true }
    }

    /// Returns the same problem as one for which only the line is ignored.
    pub fn ignored(self) -> Problem {
        Problem { fatal: false, ..self }
    }

    /// Returns `FILE:LINE: what is wrong; what to do`, safe to print on one line.
    pub fn text(&self) -> String {
        let path = self.path.display();
        clean(&match self.line {
            Some(line) => format!("{path}:{line}: {}", self.what),
            None => format!("{path}: {}", self.what),
        })
    }
}

/// Prints [`Problem::text`], and ", ignoring" after a problem that is not fatal.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())?;
        if self.fatal { Ok(()) } else { f.write_str(", ignoring") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_printed_on_one_line() {
        let location = Location { file: "/etc/a".into(), line: 3 };
        let problem = Problem::at(&location, "bad\r\nvalue");
        assert_eq!(problem.to_string(), "/etc/a:3: bad  value");
        let ignored = Problem::of(Path::new("/etc/a"), "is odd").ignored();
        assert_eq!(ignored.to_string(), "/etc/a: is odd, ignoring");
    }
}
