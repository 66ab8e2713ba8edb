//! The lists of the snapshots of a site and of a tag: their names, their directories, and the pages that list the
//! sites and the tags.

use super::frame::document;
use super::list::{ListEntry, ListKind};
use super::{href, text};
use archivist_core::text::clean_to;
use maud::html;
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

/// What cannot be in the name of a file, and what begins an escape.
const ESCAPED: &AsciiSet = &CONTROLS.add(b'/').add(b'%');
/// Longest name of a list in bytes; names of files have at most 255.
const NAME_MAX: usize = 240;
const TEXT_MAX_CHARS: usize = 160;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Directories of hosts below those of days.
    Site,
    Tag,
}

impl Group {
    pub const ALL: [Group; 2] = [Group::Site, Group::Tag];

    /// Directory of the lists, below that of the archive, and of their chunks, below that of all chunks.
    pub fn directory(self) -> &'static str {
        match self {
            Group::Site => "sites",
            Group::Tag => "tags",
        }
    }

    /// Page of the archive that has links to the lists.
    pub fn page(self) -> &'static str {
        match self {
            Group::Site => "sites.html",
            Group::Tag => "tags.html",
        }
    }

    pub fn title(self) -> &'static str {
        match self {
            Group::Site => "Sites",
            Group::Tag => "Tags",
        }
    }

    fn prefix(self) -> &'static str {
        match self {
            Group::Site => "site-",
            Group::Tag => "tag-",
        }
    }

    /// The directory of the list of a site or tag, below that of the archive. `None` if its name would be too long.
    pub fn directory_of(self, text: &str) -> Option<String> {
        Some(format!("{}/{}", self.directory(), file_name(text)?))
    }
}

/// Returns the name of a site or tag as that of a file. [`text_of`] returns the site or tag.
fn file_name(text: &str) -> Option<String> {
    let escaped = utf8_percent_encode(text, ESCAPED).to_string();
    let name = match escaped.strip_prefix('.') {
        Some(rest) => format!("%2E{rest}"),
        None => escaped,
    };
    (!name.is_empty() && name.len() <= NAME_MAX).then_some(name)
}

/// The site or tag of a list whose directory has this name.
pub fn text_of(name: &str) -> String {
    percent_decode_str(name).decode_utf8_lossy().into_owned()
}

/// A list of a site or tag: its name, its kind, and its directory.
pub type GroupList = (String, ListKind, String);

/// The list of a site or tag. `None` if its name would be too long.
fn list_of(group: Group, text: &str) -> Option<GroupList> {
    let name = format!("{}{}", group.prefix(), file_name(text)?);
    Some((name, ListKind::Of(group, text.to_owned()), group.directory_of(text)?))
}

/// The lists of its site and its tags that a snapshot is on.
pub fn lists_of(entry: &ListEntry) -> impl Iterator<Item = GroupList> + '_ {
    let site = entry.directory.split('/').nth(1);
    let site = site.and_then(|site| list_of(Group::Site, site));
    site.into_iter().chain(entry.tags.iter().filter_map(|tag| list_of(Group::Tag, tag)))
}

/// The list with a name; `None` if it is that of a day, crawl or URL.
pub fn of_name(name: &str) -> Option<GroupList> {
    let group = Group::ALL.into_iter().find(|group| name.starts_with(group.prefix()))?;
    list_of(group, &text_of(name.strip_prefix(group.prefix())?))
}

/// The name of the list in a directory of this name.
pub fn name_in(group: Group, directory: &str) -> String {
    format!("{}{directory}", group.prefix())
}

/// Renders the page with links to the lists of these directories.
pub fn index(group: Group, directories: impl IntoIterator<Item = String>) -> String {
    let mut lists: Vec<(String, String)> =
        directories.into_iter().map(|name| (text_of(&name), name)).collect();
    lists.sort();
    let what = group.title().trim_end_matches('s').to_lowercase();
    let body = html! {
        nav { a href="./index.html" rel="up" { "Archive" } span { (group.title()) } }
        main {
            header class="head" {
                h1 { (group.title()) }
                p class="dim" { (text::count(lists.len(), &what)) }
            }
            ul class="days" {
                @for (text, name) in &lists {
                    @if let Some(link) = href::relative(0, &format!("{}/{name}/index.html", group.directory())) {
                        li { a href=(link) { bdi { (clean_to(text, TEXT_MAX_CHARS)) } } }
                    }
                }
            }
        }
    };
    document(group.title(), body)
}
