//! `index.jsonl` beside the output of a snapshot: what was done, one record a line, for people
//! and programs that have nothing but the directory.

use super::WorkerError;
use crate::bus::work::{Assignment, Ended, HookTask, Report};
use serde_json::json;
use std::cell::RefCell;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

pub struct Index {
    path: PathBuf,
    file: RefCell<File>,
}

impl Index {
    /// Opens the index of an owner's directory and notes who it is about. An earlier attempt's
    /// records stay; the newest record of a hook is the one that counts.
    pub fn open(assignment: &Assignment) -> Result<Index, WorkerError> {
        let path = assignment.directory.join("index.jsonl");
        let fail = |source| WorkerError::File {
            verb: "write",
            path: path.clone(),
            source,
        };
        let file = File::options()
            .append(true)
            .create(true)
            .open(&path)
            .map_err(fail)?;
        let index = Index {
            path,
            file: RefCell::new(file),
        };
        index.line(&json!({
            "type": "Snapshot",
            "id": assignment.owner,
            "url": assignment.url,
            "depth": assignment.depth,
        }))?;
        Ok(index)
    }

    /// Appends the result of a hook.
    pub fn result(
        &self,
        hook: &HookTask,
        report: &Report,
        ended: &Ended,
    ) -> Result<(), WorkerError> {
        self.line(&json!({
            "type": "ArchiveResult",
            "plugin": hook.plugin,
            "hook_name": hook.hook,
            "status": report.verdict.state,
            "output_str": report.output,
            "error": report.verdict.error,
            "outcome": ended.outcome.to_string(),
            "start_ts": ended.started_at,
            "end_ts": ended.ended_at,
            "output_size": report.size,
            "output_files": report.files,
        }))
    }

    fn line(&self, record: &serde_json::Value) -> Result<(), WorkerError> {
        let line = format!("{record}\n");
        self.file
            .borrow_mut()
            .write_all(line.as_bytes())
            .map_err(|source| WorkerError::File {
                verb: "write",
                path: self.path.clone(),
                source,
            })
    }
}
