//! Unit files as values: sections of assignments, and links between units.

use archivist_config::ini::IniEntry;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// Content of a path below the generator's directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    Text(String),
    Link(String),
}

/// All files to write, by path relative to the generator's directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Units {
    /// Contents by path.
    pub files: BTreeMap<String, Content>,
}

impl Units {
    pub fn unit(&mut self, name: &str, file: &UnitFile) {
        self.files.insert(name.to_owned(), Content::Text(file.render()));
    }

    /// Adds a symbolic link from `path` to `target`.
    pub fn link(&mut self, path: String, target: String) {
        self.files.insert(path, Content::Link(target));
    }

    /// Adds all files of `other`, which replace files of the same path.
    pub fn append(&mut self, other: Units) {
        self.files.extend(other.files);
    }
}

#[derive(Clone, Debug)]
pub struct UnitFile {
    text: String,
    section: &'static str,
}

impl UnitFile {
    /// Starts a unit file made from the declaration at `source`, which it names.
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

    pub fn drop_in() -> UnitFile {
        UnitFile {
            text: "# Made by archivist-generator; changes here are lost\n".to_owned(),
            section: "",
        }
    }

    /// Appends an assignment. The value is in systemd's syntax, with specifiers, on one line.
    /// Assignments of a section should follow each other.
    pub fn set(&mut self, section: &'static str, key: &str, value: &str) -> &mut UnitFile {
        if self.section != section {
            let _ = writeln!(self.text, "\n[{section}]");
            self.section = section;
        }
        let _ = writeln!(self.text, "{key}={value}");
        self
    }

    /// Appends assignments of the declaration: later assignments win.
    pub fn pass<'a>(
        &mut self,
        section: &'static str,
        entries: impl Iterator<Item = &'a IniEntry>,
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

/// Returns text without specifiers (systemd.unit(5), Specifiers).
pub fn literal(text: &str) -> String {
    text.replace('%', "%%")
}
