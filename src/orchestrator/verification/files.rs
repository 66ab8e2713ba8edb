//! The records of replays. They are read outside the transaction, on a thread.

use crate::units::ReadFiles;
use archivist_config::Scope;
use archivist_core::model::{Figures, RunId, without_userinfo};
use archivist_core::text::clean_to;
use archivist_plugin::contract::lines::LINE_MAX_BYTES;
use serde_json::Value;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Longest reason of a failure, in characters.
const PROBLEM_MAX: usize = 1_000;

/// What a replay showed, or why there was none.
pub type Shown = Result<Figures, String>;

/// Where the unit writes its record.
pub fn record_path(scope: &Scope, run: RunId) -> PathBuf {
    let name = format!("{}-{}.jsonl", scope.unit_prefix(), run.0);
    scope.runtime_dir().join("replays").join(name)
}

/// Reads the record of a replay, as an `Option<Shown>`: none if what the hook wrote is not one.
pub fn of_replay(run: RunId) -> ReadFiles {
    Box::new(move |scope| Arc::new(read(&record_path(scope, run))))
}

/// The last record of a result in the output of the hook, which is not larger than a line may be.
fn read(path: &Path) -> Option<Shown> {
    let mut text = Vec::new();
    File::open(path).ok()?.take(LINE_MAX_BYTES as u64).read_to_end(&mut text).ok()?;
    let text = String::from_utf8_lossy(&text);
    let records = text.lines().rev().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let result = records.into_iter().find(|record| record["type"] == "ArchiveResult")?;
    if result["status"] == "succeeded" {
        return result["figures"].as_object().map(|figures| Ok(Figures::of(figures)));
    }
    let why = result["error"].as_str().or(result["output_str"].as_str()).unwrap_or_default();
    Some(Err(clean_to(&without_userinfo(why), PROBLEM_MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_core::model::fidelity;

    #[test]
    fn last_result_of_the_hook_counts() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("record");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            read(&path)
        };
        let line = r#"{"type":"ArchiveResult","status":"succeeded","figures":{"fidelity":0.5}}"#;
        let shown = read(&format!("{line}\nno record\n")).unwrap().unwrap();
        assert_eq!(fidelity(&shown), Some(0.5));
        let line = r#"{"type":"ArchiveResult","status":"failed","output_str":"no browser"}"#;
        assert_eq!(read(line), Some(Err("no browser".to_owned())));
        assert_eq!(read("Traceback"), None);
    }
}
