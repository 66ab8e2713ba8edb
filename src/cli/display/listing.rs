//! Lists that may be very long: a terminal shows their beginning and the number of the rest. A file or another
//! program gets all.

use std::io::IsTerminal;

/// Rows of a table, unless the user says how many.
pub const ROWS_MAX: u32 = 50;

/// Entries of a list that a terminal shows.
const SHOWN_MAX: usize = 100;

/// Returns the entries that this output gets.
pub fn most(output: &impl IsTerminal) -> usize {
    if output.is_terminal() { SHOWN_MAX } else { usize::MAX }
}

/// Returns the first `most` entries, one a line, and a line with the number of the others.
pub fn lines<T>(entries: &[T], most: usize, line: impl FnMut(&T) -> String) -> String {
    let shown = entries.iter().take(most).map(line);
    let mut text: String = shown.map(|line| line + "\n").collect();
    if let Some(more @ 1..) = entries.len().checked_sub(most) {
        text.push_str(&format!("  and {more} more\n"));
    }
    text
}

/// Prints a list to standard error.
pub fn report<T>(entries: &[T], line: impl FnMut(&T) -> String) {
    let error = std::io::stderr();
    let most = most(&error);
    eprint!("{}", lines(entries, most, line));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_ends_with_the_number_of_the_rest() {
        let text = |count: usize, most| lines(&vec![7; count], most, |n| format!("n{n}"));
        assert_eq!(text(0, 100), "");
        assert_eq!(text(2, 2), "n7\nn7\n");
        assert_eq!(text(2, usize::MAX), "n7\nn7\n");
        let long = text(10_000, SHOWN_MAX);
        assert_eq!(long.lines().count(), 101);
        assert!(long.ends_with("n7\n  and 9900 more\n"));
    }
}
