//! An archive of pages with texts, and its index.

use archivist_core::model::search::{
    SearchAnswer, SearchChange, SearchEntry, SearchHit, SearchQuestion,
};
use archivist_core::model::{Lifecycle, SnapshotId, Time};
use archivist_search::{Builder, answer, change};
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

pub struct Sample {
    pub root: TempDir,
    next: i64,
}

impl Sample {
    pub fn new() -> Sample {
        let sample = Sample { root: TempDir::new().unwrap(), next: 1 };
        let builder = Builder::begin(&sample.index(), 1).unwrap();
        builder.finish().unwrap();
        sample
    }

    pub fn index(&self) -> PathBuf {
        self.root.path().join("index")
    }

    /// Writes a page and returns its entry. Later ones have later times.
    pub fn page(&mut self, url: &str, title: &str, language: &str, text: &[u8]) -> SearchEntry {
        let id = SnapshotId(self.next);
        self.next += 1;
        let directory = self.root.path().join(id.to_string());
        fs::create_dir_all(directory.join("text")).unwrap();
        fs::write(directory.join("text/text.txt"), text).unwrap();
        let title = Some(title).filter(|title| !title.is_empty());
        let about = serde_json::json!({"language": language, "title": title});
        fs::write(directory.join("text/text.json"), about.to_string()).unwrap();
        SearchEntry {
            id,
            url: url.to_owned(),
            title: None,
            time: Time(1_700_000_000_000 + id.0 * 1000),
            tags: Vec::new(),
            status: Lifecycle::Sealed,
            is_failure: false,
            directory,
        }
    }

    pub fn put(&self, entry: &SearchEntry) {
        change(&self.index(), &[SearchChange::Put(entry.clone())]).unwrap();
    }

    pub fn add(&mut self, url: &str, title: &str, text: &str) -> SearchEntry {
        let entry = self.page(url, title, "en", text.as_bytes());
        self.put(&entry);
        entry
    }

    pub fn ask(&self, question: &SearchQuestion) -> SearchAnswer {
        let question = SearchQuestion { limit: question.limit.max(20), ..question.clone() };
        answer(&self.index(), &question).unwrap()
    }

    pub fn answer(&self, words: &str) -> SearchAnswer {
        self.ask(&SearchQuestion { words: words.to_owned(), ..SearchQuestion::default() })
    }

    /// The ids of the hits, in order.
    pub fn found(&self, words: &str) -> Vec<i64> {
        ids(&self.answer(words).hits)
    }
}

pub fn ids(hits: &[SearchHit]) -> Vec<i64> {
    hits.iter().map(|hit| hit.id.0).collect()
}
