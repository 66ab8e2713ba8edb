//! Lists of addresses, as users and their programs write them: lines, bookmark files, tables and
//! JSON. What an entry means is decided by [`parse_line`]; here is found where the entries are.

mod bookmarks;
mod draft;
mod foreign;
mod json;
mod line;
mod marks;
mod moment;
mod object;
mod opml;
mod spot;
mod table;

pub use foreign::ForeignFormat;
pub use line::{LineEntry, parse_line};
pub use moment::moment;

use crate::text::to_lines;
use std::borrow::Cow;
use std::fmt;

/// Position of an entry in a list. Counts from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Line(u64),
    /// An element of a JSON document, which has no lines.
    Element(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Line(number) => write!(f, "line {number}"),
            Place::Element(number) => write!(f, "element {number}"),
        }
    }
}

/// Returns the output of a page that is an entry of the list `source`, and was kept without a visit.
pub fn kept_entry(source: &str) -> String {
    format!("an entry of '{source}', which was not visited")
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Folders {
    AsTags,
    #[default]
    Ignored,
}

/// The entries of a list in a format that has more than an address in each line.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Structured {
    format: &'static str,
    /// Lines for [`parse_line`].
    entries: Vec<(Place, String)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List<'a> {
    /// UTF-8 with LF.
    text: Cow<'a, [u8]>,
    structured: Option<Structured>,
}

impl<'a> List<'a> {
    /// Reads a list. Its encoding and its format are found from its content.
    ///
    /// # Errors
    /// The name of the format, if it is not a list.
    pub fn read(bytes: &'a [u8]) -> Result<List<'a>, ForeignFormat> {
        List::read_with(bytes, Folders::Ignored)
    }

    /// Reads a list as [`List::read`] does, with or without the names of folders.
    ///
    /// # Errors
    /// The name of the format, if it is not a list.
    pub fn read_with(bytes: &'a [u8], folders: Folders) -> Result<List<'a>, ForeignFormat> {
        foreign::check_bytes(bytes)?;
        let text = to_lines(bytes);
        let structured = structured(&text, folders)?;
        Ok(List { text, structured })
    }

    /// Returns the format and the number of addresses, such as `Netscape bookmark file: 2
    /// addresses`; `None` for a list of lines.
    pub fn description(&self) -> Option<String> {
        let Structured { format, entries } = self.structured.as_ref()?;
        Some(match entries.len() {
            1 => format!("{format}: 1 address"),
            count => format!("{format}: {count} addresses"),
        })
    }

    /// Returns the name of the format; `None` for a list of lines.
    pub fn format(&self) -> Option<&'static str> {
        Some(self.structured.as_ref()?.format)
    }

    /// Returns the entries as lines for [`parse_line`], with their positions.
    pub fn lines(&self) -> Box<dyn Iterator<Item = (Place, &[u8])> + '_> {
        match &self.structured {
            Some(Structured { entries, .. }) => {
                Box::new(entries.iter().map(|(place, line)| (*place, line.as_bytes())))
            }
            None => {
                let lines = self.text.split(|byte| *byte == b'\n');
                Box::new((1..).map(Place::Line).zip(lines))
            }
        }
    }
}

fn structured(text: &[u8], folders: Folders) -> Result<Option<Structured>, ForeignFormat> {
    let start = foreign::start(text);
    if start.starts_with('<') {
        let decoded = String::from_utf8_lossy(text);
        let found = bookmarks::format(&start)
            .map(|format| Structured { format, entries: bookmarks::entries(&decoded, folders) });
        if found.is_none() && start.contains("<opml") {
            return Ok(Some(Structured {
                format: "OPML file",
                entries: opml::entries(&decoded, folders),
            }));
        }
        if found.is_none() {
            foreign::check_markup(&start)?;
        }
        return Ok(found);
    }
    foreign::check_text(&start)?;
    if start.starts_with(['{', '[']) {
        return json::read(text, folders);
    }
    Ok(table::read(text, folders))
}

#[cfg(test)]
mod tests;
