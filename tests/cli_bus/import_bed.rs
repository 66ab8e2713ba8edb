//! An orchestrator, an archive and a directory with input, for the tests of `archivist import`.

use super::{Bus, Cardboard};
use archivist_shared::bus::documents::report::AddOptions;
use archivist_shared::staged::name_of;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Arc;

pub struct Bed {
    pub top: tempfile::TempDir,
    pub cardboard: Arc<Cardboard>,
    pub bus: Bus,
}

impl Bed {
    pub fn new() -> Option<Bed> {
        Bed::with(Cardboard::default())
    }

    pub fn with(cardboard: Cardboard) -> Option<Bed> {
        let top = tempfile::tempdir().unwrap();
        fs::create_dir_all(top.path().join("archivist/archive")).unwrap();
        let cardboard = Arc::new(cardboard);
        let bus = Bus::start(&cardboard)?;
        Some(Bed { top, cardboard, bus })
    }

    /// Writes a file of the input, and returns its path.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.top.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Runs `archivist import` in the directory of the input.
    pub fn import(&self, arguments: &[&str]) -> Output {
        let mut command = self.bus.command(&[&["import"], arguments].concat());
        command.current_dir(self.top.path()).env("XDG_DATA_HOME", self.top.path()).output().unwrap()
    }

    /// The lines that the orchestrator got since the last look.
    pub fn sent(&self) -> Vec<Value> {
        let sent = std::mem::take(&mut *self.cardboard.urls.lock().unwrap());
        let lines = sent.lines();
        lines.map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The options of the last crawl.
    pub fn options(&self) -> AddOptions {
        serde_json::from_str(&self.cardboard.options.lock().unwrap()).unwrap()
    }

    /// The directory above those that are staged for crawls.
    pub fn staging(&self) -> PathBuf {
        self.top.path().join("archivist/archive/.importing")
    }

    /// The directory that is staged for a page of the last crawl.
    pub fn staged(&self, url: &str) -> PathBuf {
        self.staging().join(&self.options().config["IMPORT_STAGED"]).join(name_of(url))
    }
}

/// Both outputs.
pub fn text(output: &Output) -> String {
    String::from_utf8([&output.stdout[..], &output.stderr].concat()).unwrap()
}

/// The names in a directory, in order; none if it does not exist.
pub fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
