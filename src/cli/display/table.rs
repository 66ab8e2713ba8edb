//! Tables with aligned columns that fit the terminal.

use crate::display::style::{Style, Tone};
use crate::display::text::cut_middle;
use archivist_core::text::clean;
use console::measure_text_width;

/// One cell.
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

/// Rows under a heading. On a narrow terminal the `flexible` columns shrink.
pub struct Table {
    heading: Vec<&'static str>,
    flexible: Vec<usize>,
    rows: Vec<Vec<Cell>>,
}

/// Blanks between two columns.
const GAP: usize = 2;

/// Least width of a column, in characters.
const NARROWEST: usize = 12;

impl Table {
    /// Returns an empty table. The heading is as it is printed, with two blanks between columns;
    /// columns whose heading ends in `…` are flexible.
    pub fn new(heading: &'static str) -> Table {
        let names = || heading.split("  ");
        let flexible = |(at, name): (usize, &str)| name.ends_with('…').then_some(at);
        Table {
            flexible: names().enumerate().filter_map(flexible).collect(),
            heading: names().map(|name| name.trim_end_matches('…')).collect(),
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
        let columns: Vec<usize> = (0..self.heading.len())
            .filter(|at| self.rows.iter().any(|row| !row[*at].text.is_empty()))
            .collect();
        let widths = self.widths(&columns, style.width);
        let heading: Vec<Cell> =
            self.heading.iter().map(|name| Cell::toned(*name, Tone::Dim)).collect();
        std::iter::once(&heading)
            .chain(&self.rows)
            .map(|row| line(row, &columns, &widths, style))
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
        let gaps = GAP * columns.len().saturating_sub(1);
        loop {
            let excess = (widths.iter().sum::<usize>() + gaps).saturating_sub(room);
            let widest = (0..columns.len())
                .filter(|at| self.flexible.contains(&columns[*at]) && widths[*at] > NARROWEST)
                .max_by_key(|at| widths[*at]);
            match widest {
                Some(at) if excess > 0 => widths[at] -= 1,
                _ => return widths,
            }
        }
    }
}

fn line(row: &[Cell], columns: &[usize], widths: &[usize], style: &Style) -> String {
    let mut out = String::new();
    for (place, (at, width)) in columns.iter().zip(widths).enumerate() {
        let text = cut_middle(&row[*at].text, *width);
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
        let style = Style { width: Some(36), ..Style::plain(Time(0)) };
        let text = table().render(&style);
        assert_eq!(
            text,
            "ID    STATUS  URL\n\
             s3    sealed  https://exa…/path.html\n\
             s345  queued  https://b.example/\n"
        );
        let narrow = Style { width: Some(5), ..style };
        assert!(table().render(&narrow).contains("https:…".trim_end_matches('…')));
    }
}
