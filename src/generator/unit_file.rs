//! Unit files as values: sections of assignments, and links between units.

use archivist_shared::config::ini::Entry;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// What is at a path below the generator's directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    Text(String),
    /// A symbolic link to this.
    Link(String),
}

/// Everything that is to be written, by path relative to the generator's directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Units {
    pub files: BTreeMap<String, Content>,
}

impl Units {
    pub fn unit(&mut self, name: &str, file: &UnitFile) {
        self.files
            .insert(name.to_owned(), Content::Text(file.render()));
    }

    pub fn link(&mut self, path: String, target: String) {
        self.files.insert(path, Content::Link(target));
    }

    pub fn append(&mut self, other: Units) {
        self.files.extend(other.files);
    }
}

/// One unit file in the making.
#[derive(Clone, Debug)]
pub struct UnitFile {
    text: String,
    section: &'static str,
}

impl UnitFile {
    /// One that is made of the declaration at `source`, which it names for whoever finds it.
    pub fn new(source: &Path, description: &str) -> UnitFile {
        let mut file = UnitFile {
            text: "# Made by archivist-generator; changes here are lost\n".to_owned(),
            section: "",
        };
        file.set("Unit", "Description", description);
        let source = source.to_string_lossy();
        if !source.chars().any(char::is_control) {
            file.set("Unit", "SourcePath", &literal(&source));
        }
        file
    }

    /// A drop-in for a unit that is there already.
    pub fn drop_in() -> UnitFile {
        UnitFile {
            text: "# Made by archivist-generator; changes here are lost\n".to_owned(),
            section: "",
        }
    }

    /// Appends an assignment. The value is as systemd is to read it: with specifiers, and on one
    /// line. Assignments of one section are best made in a row.
    pub fn set(&mut self, section: &'static str, key: &str, value: &str) -> &mut UnitFile {
        if self.section != section {
            let _ = writeln!(self.text, "\n[{section}]");
            self.section = section;
        }
        let _ = writeln!(self.text, "{key}={value}");
        self
    }

    /// Appends the declaration's own assignments: being later, they win.
    pub fn pass<'a>(
        &mut self,
        section: &'static str,
        entries: impl Iterator<Item = &'a Entry>,
    ) -> &mut UnitFile {
        for entry in entries {
            self.set(section, &entry.key, &entry.value);
        }
        self
    }

    fn render(&self) -> String {
        self.text.clone()
    }
}

/// Text in which systemd shall see no specifier (systemd.unit(5), Specifiers).
pub fn literal(text: &str) -> String {
    text.replace('%', "%%")
}
