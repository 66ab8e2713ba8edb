//! A text on the terminal that is drawn again in its place.

/// What is on the terminal.
#[derive(Debug, Default)]
pub struct Redraw {
    /// Lines of the last text.
    drawn: usize,
}

impl Redraw {
    /// Returns the characters that draw `text` over the last text. Lines that the terminal has no
    /// room for are cut, so that none of them wraps or scrolls.
    pub fn draw(&mut self, text: &str, (rows, columns): (u16, u16)) -> String {
        let (room, width) = (usize::from(rows.max(3)) - 1, usize::from(columns.max(2)) - 1);
        let mut lines: Vec<String> =
            text.lines().map(|line| console::truncate_str(line, width, "…").into_owned()).collect();
        if lines.len() > room {
            let hidden = lines.len() - (room - 1);
            lines.truncate(room - 1);
            lines.push(format!("… and {hidden} more lines"));
        }
        let mut out = String::from("\r");
        if self.drawn > 0 {
            out += &format!("\u{1b}[{}A", self.drawn);
        }
        for line in &lines {
            out += &format!("{line}\u{1b}[K\n");
        }
        self.drawn = lines.len();
        out + "\u{1b}[J"
    }

    /// Returns the characters that clear the terminal, whose size has changed.
    pub fn start_again(&mut self) -> String {
        self.drawn = 0;
        "\u{1b}[2J\u{1b}[H".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_text_replaces_the_last_one() {
        let mut redraw = Redraw::default();
        let size = (24, 80);
        assert_eq!(redraw.draw("a\nb\n", size), "\ra\u{1b}[K\nb\u{1b}[K\n\u{1b}[J");
        assert_eq!(redraw.draw("c\n", size), "\r\u{1b}[2Ac\u{1b}[K\n\u{1b}[J");
        assert_eq!(redraw.start_again(), "\u{1b}[2J\u{1b}[H");
        assert_eq!(redraw.draw("d\n", size), "\rd\u{1b}[K\n\u{1b}[J");
    }

    #[test]
    fn text_that_is_too_large_is_cut() {
        let mut redraw = Redraw::default();
        let drawn = redraw.draw("abcdef\n2\n3\n4\n5\n", (4, 5));
        assert_eq!(drawn, "\rabc…\u{1b}[K\n2\u{1b}[K\n… and 3 more lines\u{1b}[K\n\u{1b}[J");
        assert_eq!(redraw.drawn, 3);
    }
}
