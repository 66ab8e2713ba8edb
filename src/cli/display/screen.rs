//! A text on the terminal that is drawn again in its place.

use super::style::Style;
use archivist_core::model::Time;
use std::io::Write;

/// The characters that draw a text over the last one.
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

    /// Returns the characters that print lines above `text`. These may wrap.
    fn above(&mut self, lines: &str, text: &str, size: (u16, u16)) -> String {
        self.draw("", size) + lines + &self.draw(text, size)
    }

    /// Returns the characters that clear the terminal, whose size has changed.
    pub fn start_again(&mut self) -> String {
        self.drawn = 0;
        "\u{1b}[2J\u{1b}[H".to_owned()
    }
}

/// A text at the end of standard error, below the lines that stay.
#[derive(Debug, Default)]
pub struct Screen {
    redraw: Redraw,
    text: String,
    /// A question is open: nothing is drawn, and lines that stay are held back.
    quiet: bool,
    waiting: String,
}

impl Screen {
    pub fn size() -> (u16, u16) {
        console::Term::stderr().size()
    }

    pub fn style(now: Time) -> Style {
        Style {
            width: Some(usize::from(Screen::size().1).saturating_sub(1)),
            color: console::colors_enabled_stderr(),
            now,
            ..Style::of_stdout()
        }
    }

    /// Prints a line above the text.
    pub fn print(&mut self, line: &str) {
        self.waiting += &format!("{line}\n");
        if !self.quiet {
            let lines = std::mem::take(&mut self.waiting);
            write(&self.redraw.above(&lines, &self.text, Screen::size()));
        }
    }

    pub fn draw(&mut self, text: String) {
        if !self.quiet {
            write(&self.redraw.draw(&text, Screen::size()));
            self.text = text;
        }
    }

    /// Clears the text for a question.
    pub fn ask(&mut self, question: &str) {
        self.clear();
        self.quiet = true;
        write(question);
    }

    /// Draws again after the answer.
    pub fn resume(&mut self) {
        self.quiet = false;
        write(&std::mem::take(&mut self.waiting));
    }

    pub fn clear(&mut self) {
        self.draw(String::new());
    }
}

fn write(characters: &str) {
    // Writing fails only if the terminal is gone; ignoring.
    let _ = std::io::stderr().write_all(characters.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_stay_are_above_the_text() {
        let mut redraw = Redraw::default();
        let size = (24, 80);
        redraw.draw("a\nb\n", size);
        let shown = "\r\u{1b}[2A\u{1b}[Jline\n\ra\u{1b}[K\n\u{1b}[J";
        assert_eq!(redraw.above("line\n", "a\n", size), shown);
        assert_eq!(redraw.draw("", size), "\r\u{1b}[1A\u{1b}[J");
    }

    #[test]
    fn nothing_is_drawn_while_a_question_is_open() {
        let mut screen = Screen::default();
        screen.draw("a\n".to_owned());
        screen.ask("? ");
        screen.draw("b\n".to_owned());
        screen.print("line");
        assert_eq!((screen.text.as_str(), screen.waiting.as_str()), ("", "line\n"));
        screen.resume();
        assert_eq!(screen.waiting, "");
        screen.draw("b\n".to_owned());
        assert_eq!(screen.text, "b\n");
    }

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
