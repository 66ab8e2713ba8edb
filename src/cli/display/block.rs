//! Labels and their texts, one a line.

use archivist_core::text::clean;

/// Lines `   Label: text`, with the labels right-aligned as in systemctl.
pub struct Block {
    lines: Vec<(&'static str, String)>,
}

impl Block {
    pub fn new() -> Block {
        Block { lines: Vec::new() }
    }

    /// Adds a line, unless its text is empty.
    pub fn line(&mut self, label: &'static str, text: impl Into<String>) {
        let text = text.into();
        if !text.is_empty() {
            self.lines.push((label, text));
        }
    }

    pub fn render(&self) -> String {
        self.lines.iter().map(|(label, text)| format!("{label:>10}: {}\n", clean(text))).collect()
    }
}
