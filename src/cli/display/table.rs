//! Tables with aligned columns that fit the terminal.

use crate::display::style::{Style, Tone};
use crate::display::text::{cut_middle, cut_url};
use archivist_core::text::clean;
use console::measure_text_width;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    text: String,
    tone: Tone,
}

impl Cell {
    pub fn toned(text: impl Into<String>, tone: Tone) -> Cell {
        Cell { text: clean(&text.into()), tone }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Cell {
        Cell::toned(text, Tone::Plain)
    }
}

/// Rows under a heading. On a narrow terminal the `flexible` columns shrink, and then the `spare`
/// ones are left out.
pub struct Table {
    heading: Vec<&'static str>,
    flexible: Vec<usize>,
    spare: Vec<usize>,
    rows: Vec<Vec<Cell>>,
}

const GAP: usize = 2;

/// Least width of a flexible column, in characters.
const NARROWEST: usize = 12;
/// That of the column `URL`: a host and the end of a path.
const URL_NARROWEST: usize = 24;
/// That of the other columns of a table that has the column `URL`.
const REST_NARROWEST: usize = 6;
const URL: &str = "URL";

impl Table {
    /// Returns an empty table. The heading is as it is printed, with two blanks between columns.
    /// Columns whose heading ends in `…` are flexible, and those with `?` are spare, also both
    /// (`…?`); the first spare column is left out first.
    pub fn new(heading: &'static str) -> Table {
        let marked = |mark: char| {
            let has = move |(at, name): (usize, &str)| name.contains(mark).then_some(at);
            heading.split("  ").enumerate().filter_map(has).collect()
        };
        Table {
            flexible: marked('…'),
            spare: marked('?'),
            heading: heading.split("  ").map(|name| name.trim_end_matches(['…', '?'])).collect(),
            rows: Vec::new(),
        }
    }

    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the lines of the table, each with a line feed. Columns without any text are left
    /// out.
    pub fn render(&self, style: &Style) -> String {
        let mut columns: Vec<usize> = (0..self.heading.len())
            .filter(|at| self.rows.iter().any(|row| !row[*at].text.is_empty()))
            .collect();
        let mut widths = self.widths(&columns, style.width);
        for at in &self.spare {
            if fits(&widths, style.width) {
                break;
            }
            columns.retain(|column| column != at);
            widths = self.widths(&columns, style.width);
        }
        let heading: Vec<Cell> =
            self.heading.iter().map(|name| Cell::toned(*name, Tone::Dim)).collect();
        std::iter::once(&heading)
            .chain(&self.rows)
            .map(|row| self.line(row, &columns, &widths, style))
            .collect()
    }

    fn widths(&self, columns: &[usize], room: Option<usize>) -> Vec<usize> {
        let natural = |at: &usize| {
            let cells = self.rows.iter().map(|row| measure_text_width(&row[*at].text));
            cells.max().unwrap_or(0).max(measure_text_width(self.heading[*at]))
        };
        let mut widths: Vec<usize> = columns.iter().map(natural).collect();
        let Some(room) = room else {
            return widths;
        };
        let has_url = columns.iter().any(|at| self.heading[*at] == URL);
        let narrowest = |at: usize| match self.heading[columns[at]] {
            URL => URL_NARROWEST,
            _ if has_url => REST_NARROWEST,
            _ => NARROWEST,
        };
        loop {
            let widest = (0..columns.len())
                .filter(|at| self.flexible.contains(&columns[*at]) && widths[*at] > narrowest(*at))
                .max_by_key(|at| widths[*at] - narrowest(*at));
            match widest {
                Some(at) if !fits(&widths, Some(room)) => widths[at] -= 1,
                _ => return widths,
            }
        }
    }

    fn line(&self, row: &[Cell], columns: &[usize], widths: &[usize], style: &Style) -> String {
        let mut out = String::new();
        for (place, (at, width)) in columns.iter().zip(widths).enumerate() {
            let cut = if self.heading[*at] == URL { cut_url } else { cut_middle };
            let text = cut(&row[*at].text, *width);
            let padding = width - measure_text_width(&text);
            out.push_str(&style.paint(&text, row[*at].tone));
            if place + 1 < columns.len() {
                out.extend(std::iter::repeat_n(' ', padding + GAP));
            }
        }
        out.truncate(out.trim_end().len());
        out.push('\n');
        out
    }
}

/// Whether a line with columns of these widths is not wider than the terminal.
fn fits(widths: &[usize], room: Option<usize>) -> bool {
    let gaps = GAP * widths.len().saturating_sub(1);
    room.is_none_or(|room| widths.iter().sum::<usize>() + gaps <= room)
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_core::model::Time;

    fn table() -> Table {
        let mut table = Table::new("ID  STATUS  NOTE  URL…");
        table.row(["s3", "sealed", "", "https://example.com/a/long/path.html"].map(Cell::from));
        table.row(["s345", "queued", "", "https://b.example/"].map(Cell::from));
        table
    }

    #[test]
    fn a_file_gets_uncut_cells() {
        let text = table().render(&Style::plain(Time(0)));
        assert_eq!(
            text,
            "ID    STATUS  URL\n\
             s3    sealed  https://example.com/a/long/path.html\n\
             s345  queued  https://b.example/\n"
        );
    }

    #[test]
    fn a_terminal_gets_lines_that_fit() {
        let style = Style { width: Some(40), ..Style::plain(Time(0)) };
        let text = table().render(&style);
        assert_eq!(
            text,
            "ID    STATUS  URL\n\
             s3    sealed  example.com/…ong/path.html\n\
             s345  queued  https://b.example/\n"
        );
        let narrow = Style { width: Some(5), ..style };
        assert!(table().render(&narrow).contains("example.com/…g/path.html"));
    }
    #[test]
    fn the_first_spare_column_is_left_out_first() {
        let mut table = Table::new("ID  DEPTH?  STATUS  TITLE…?  URL…");
        table.row(["s3", "0", "sealed", "A long title", "https://example.com/"].map(Cell::from));
        let heading = |width| {
            let text = table.render(&Style { width: Some(width), ..Style::plain(Time(0)) });
            assert!(text.lines().all(|line| measure_text_width(line) <= width), "{text}");
            let names = text.lines().next().unwrap_or_default().split_whitespace();
            names.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(heading(80), "ID DEPTH STATUS TITLE URL");
        assert_eq!(heading(46), "ID STATUS TITLE URL");
        assert_eq!(heading(36), "ID STATUS URL");
    }
}
