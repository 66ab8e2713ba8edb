//! Style of the output: for a terminal, or for a file or pipe.

use crate::client::exit::Failure;
use crate::client::hint::here;
use archivist_core::model::Time;
use archivist_core::text::escape_json;
use jiff::tz::TimeZone;
use serde::Serialize;
use std::io::{ErrorKind, IsTerminal, Write};

#[derive(Clone, Debug)]
pub struct Style {
    /// Columns of the terminal; `None` for a file or pipe, where nothing is cut and times are
    /// absolute.
    pub width: Option<usize>,
    pub color: bool,
    pub now: Time,
    pub zone: TimeZone,
}

/// Meaning of a word, shown as a colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    #[default]
    Plain,
    Good,
    Busy,
    Bad,
    Dim,
}

impl Style {
    pub fn of_stdout() -> Style {
        let terminal = std::io::stdout().is_terminal();
        let size = console::Term::stdout().size_checked();
        Style {
            width: terminal.then(|| size.map_or(80, |(_, columns)| usize::from(columns))),
            color: terminal && console::colors_enabled(),
            now: now(),
            zone: TimeZone::system(),
        }
    }

    #[cfg(test)]
    pub fn plain(now: Time) -> Style {
        Style { width: None, color: false, now, zone: TimeZone::UTC }
    }

    pub fn paint(&self, text: &str, tone: Tone) -> String {
        if !self.color {
            return text.to_owned();
        }
        let styled = console::style(text).force_styling(true);
        match tone {
            Tone::Plain => return text.to_owned(),
            Tone::Good => styled.green(),
            Tone::Busy => styled.yellow(),
            Tone::Bad => styled.red().bold(),
            Tone::Dim => styled.dim(),
        }
        .to_string()
    }
}

/// Returns the current time. The command line reads the clock only here.
pub fn now() -> Time {
    jiff::Timestamp::now().into()
}

/// Writes `text` to standard output.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(Failure::broken_pipe()),
        Err(error) => Err(Failure::failed(format!("failed to write the output: {error}"))),
    }
}

/// Writes a text of ours to standard output. Its commands are those for the orchestrator that was called.
pub fn say(text: &str) -> Result<(), Failure> {
    print(&here(text))
}

/// Same to standard error, as a line.
pub fn note(text: &str) {
    eprintln!("{}", here(text));
}

/// Writes a JSON document of the orchestrator, including fields that this version does not know.
pub fn print_json(document: &str) -> Result<(), Failure> {
    let value: serde_json::Value = crate::client::server::decode(document)?;
    print_document(&format!("{value:#}\n"))
}

/// Writes a document of this program as JSON.
pub fn print_value(document: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(document)
        .map_err(|error| Failure::failed(format!("failed to write JSON: {error}")))?;
    print_document(&format!("{text}\n"))
}

/// Writes JSON text, with every character escaped that a terminal would obey.
pub fn print_document(json: &str) -> Result<(), Failure> {
    print(&escape_json(json))
}
