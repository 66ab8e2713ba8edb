//! Tables of services for bookmarks: values separated by commas, semicolons or tabs (RFC 4180),
//! whose first row has the names of the columns.

use super::draft::{DraftEntry, split_tags};
use super::{Folders, Place, Structured, parse_line};

const URL: [&str; 6] = ["url", "link", "href", "uri", "address", "website"];
const TITLE: [&str; 2] = ["title", "name"];
const TAGS: [&str; 3] = ["tags", "document tags", "labels"];
const FOLDER: [&str; 1] = ["folder"];
const TIME: [&str; 7] =
    ["time_added", "created", "created_at", "timestamp", "add_date", "date", "saved date"];
/// Services by columns that only their tables have.
const SERVICES: [(&str, &str, &str); 4] = [
    ("time_added", "status", "Pocket table"),
    ("selection", "folder", "Instapaper table"),
    ("excerpt", "folder", "Raindrop table"),
    ("document tags", "saved date", "Readwise table"),
];
const STATES: [&str; 5] = ["Unread", "Archive", "Starred", "Home", "Unsorted"];
/// What Raindrop writes between the folders of a path.
const PATH_SEPARATOR: &str = " / ";

/// Reads a table; `None` if the first line does not name a column of addresses.
pub fn read(text: &[u8], folders: Folders) -> Option<Structured> {
    let head = text.split(|byte| *byte == b'\n').next()?;
    let head = std::str::from_utf8(head).ok()?;
    if head.contains("://") || head.len() > 1000 {
        return None;
    }
    let separator = [',', ';', '\t'].into_iter().max_by_key(|c| head.matches(*c).count())?;
    let decoded = String::from_utf8_lossy(text);
    let mut rows = Rows { rest: &decoded, line: 1, separator };
    let (_, names) = rows.next()?;
    let names: Vec<String> = names.iter().map(|name| name.trim().to_lowercase()).collect();
    let column = |known: &[&str]| {
        let mut known = known.iter();
        known.find_map(|name| names.iter().position(|found| found == name))
    };
    let url = column(&URL)?;
    let (title, tags, time) = (column(&TITLE), column(&TAGS), column(&TIME));
    let folder = column(&FOLDER).filter(|_| folders == Folders::AsTags);
    let mut entries = Vec::new();
    for (line, row) in rows {
        let value = |column: Option<usize>| {
            let value = column.and_then(|column| row.get(column));
            value.map_or("", |value| value.trim())
        };
        if row.len() > names.len() {
            // Not a row of this table: it is judged as a line.
            entries.push((Place::Line(line), row.join(", ")));
            continue;
        }
        let address = value(Some(url));
        if address.is_empty() && row.iter().all(|value| value.trim().is_empty()) {
            continue;
        }
        // Nor is every value of the column an address: "http://a.test/, http://b.test/".
        if matches!(parse_line(address.as_bytes()), Some(Err(_))) {
            entries.push((Place::Line(line), address.to_owned()));
            continue;
        }
        let mut tags = split_tags(value(tags));
        let path = value(folder).split(PATH_SEPARATOR).map(str::trim);
        let path = path.filter(|name| !name.is_empty() && !STATES.contains(name));
        tags.extend(path.map(str::to_owned));
        let entry = DraftEntry {
            url: address.to_owned(),
            title: value(title).to_owned(),
            tags,
            time: value(time).to_owned(),
        };
        entries.push((Place::Line(line), entry.into_line()));
    }
    let has = |name: &str| names.iter().any(|found| found == name);
    let service = SERVICES.iter().find(|(a, b, _)| has(a) && has(b));
    Some(Structured { format: service.map_or("CSV table", |(.., name)| name), entries })
}

/// The rows of a table with the numbers of their first lines.
struct Rows<'a> {
    rest: &'a str,
    line: u64,
    separator: char,
}

impl Iterator for Rows<'_> {
    type Item = (u64, Vec<String>);

    fn next(&mut self) -> Option<(u64, Vec<String>)> {
        if self.rest.is_empty() {
            return None;
        }
        let line = self.line;
        let (mut row, mut value) = (Vec::new(), String::new());
        let mut is_quoted = false;
        let mut chars = self.rest.char_indices().peekable();
        let mut end = self.rest.len();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' if is_quoted && chars.peek().is_some_and(|(_, next)| *next == '"') => {
                    chars.next();
                    value.push('"');
                }
                '"' if is_quoted || value.is_empty() => is_quoted = !is_quoted,
                '\n' => {
                    self.line += 1;
                    if is_quoted {
                        value.push(' ');
                    } else {
                        end = at + 1;
                        break;
                    }
                }
                c if c == self.separator && !is_quoted => row.push(std::mem::take(&mut value)),
                c => value.push(c),
            }
        }
        row.push(value);
        self.rest = &self.rest[end..];
        Some((line, row))
    }
}
