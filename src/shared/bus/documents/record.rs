//! Records of `index.jsonl` and of `archivist run`: one JSON object per line, with the types and
//! names of abx-dl.

use crate::bus::documents::report::{File, HookResult};
use archivist_core::model::{EXIT_SKIPPED, Figures, Outcome, Owner, ResultState, RunId, Time};
use nix::sys::utsname::uname;
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

/// Returns the record of a page, or of a crawl in the index of its own directory.
pub fn owner(owner: Owner, url: &str, depth: u32) -> Value {
    let kind = match owner {
        Owner::Crawl(_) => "Crawl",
        Owner::Snapshot(_) => "Snapshot",
    };
    json!({ "type": kind, "id": owner, "url": url, "depth": depth })
}

/// One finished run of a hook.
pub struct Process<'a> {
    /// Row of the run, if known.
    pub run: Option<RunId>,
    /// Crawl or snapshot of the hook.
    pub owner: Owner,
    /// Name of its plugin.
    pub plugin: &'a str,
    /// Name of the hook.
    pub hook: &'a str,
    /// Name of its unit, if one was started.
    pub unit: Option<&'a str>,
    /// Program and arguments.
    pub argv: &'a [String],
    /// Run of the worker that asked for it, if known.
    pub parent: Option<RunId>,
    /// Working directory, if known.
    pub pwd: Option<&'a Path>,
    /// Time limit, if known.
    pub limit: Option<Duration>,
    /// How the run ended.
    pub outcome: &'a Outcome,
    /// When its main process started.
    pub started_at: Option<Time>,
    /// When its main process ended.
    pub ended_at: Option<Time>,
}

impl Process<'_> {
    /// Returns the `Process` record of `index.jsonl`.
    pub fn record(&self) -> Value {
        let status = match self.outcome {
            Outcome::Exit(0) => ResultState::Succeeded,
            Outcome::Exit(EXIT_SKIPPED) | Outcome::Interrupted => ResultState::Skipped,
            _ => ResultState::Failed,
        };
        let machine = uname().ok();
        let name = |text: &OsStr| text.to_string_lossy().into_owned();
        json!({
            "type": "Process",
            "id": self.run,
            "parent_id": self.parent,
            "snapshot_id": self.owner,
            "plugin": self.plugin,
            "hook_name": self.hook,
            "unit": self.unit,
            "cmd": self.argv,
            "pwd": self.pwd,
            "timeout": self.limit.map(|limit| limit.as_secs()),
            "status": status,
            "exit_code": self.outcome.exit_code(),
            "outcome": self.outcome.to_string(),
            "started_at": self.started_at,
            "ended_at": self.ended_at,
            "machine_hostname": machine.as_ref().map(|machine| name(machine.nodename())),
            "machine_os": machine
                .map(|machine| format!("{} {}", name(machine.sysname()), name(machine.release()))),
        })
    }
}

/// Result of a hook for a page.
pub struct ArchiveResult<'a> {
    /// Crawl or snapshot of the hook.
    pub owner: Owner,
    /// Name of its plugin.
    pub plugin: &'a str,
    /// Name of the hook.
    pub hook: &'a str,
    /// State of the result.
    pub status: ResultState,
    /// Output as the hook states it: a path or a short text.
    pub output: Option<&'a str>,
    /// Why the hook failed or was skipped.
    pub error: Option<&'a str>,
    /// Outcome of the unit, if there was one.
    pub outcome: Option<&'a Outcome>,
    /// When the newest run started.
    pub started_at: Option<Time>,
    /// When the newest run ended.
    pub ended_at: Option<Time>,
    /// Bytes of all files.
    pub size: u64,
    /// Files that the hook left, up to the limit of the list.
    pub files: &'a [File],
    /// Numbers that the hook states.
    pub figures: &'a Figures,
}

impl<'a> ArchiveResult<'a> {
    /// Returns what the record has of a result, with the outcome of its unit.
    pub fn of(result: &'a HookResult, outcome: Option<&'a Outcome>) -> ArchiveResult<'a> {
        ArchiveResult {
            owner: result.owner,
            plugin: &result.plugin,
            hook: &result.hook,
            status: result.status,
            output: result.output.as_deref(),
            error: result.error.as_deref(),
            outcome,
            started_at: result.started_at,
            ended_at: result.ended_at,
            size: result.size,
            files: &result.files,
            figures: &result.figures,
        }
    }

    /// Returns the `ArchiveResult` record of `index.jsonl`.
    pub fn record(&self) -> Value {
        let mut record = json!({
            "type": "ArchiveResult",
            "id": format!("{}/{}/{}", self.owner, self.plugin, self.hook),
            "snapshot_id": self.owner,
            "plugin": self.plugin,
            "hook_name": self.hook,
            "status": self.status,
            "output_str": self.output,
            "error": self.error,
            "outcome": self.outcome.map(ToString::to_string),
            "start_ts": self.started_at,
            "end_ts": self.ended_at,
            "output_size": self.size,
            "output_files": self.files,
        });
        if !self.figures.is_empty() {
            record["figures"] = json!(self.figures);
        }
        record
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_core::model::SnapshotId;

    #[test]
    fn a_process_record_has_the_outcome() {
        let status = |outcome: &Outcome| {
            let process = Process {
                run: Some(RunId(7)),
                owner: Owner::Snapshot(SnapshotId(3)),
                plugin: "wget",
                hook: "on_Snapshot__06_wget",
                unit: Some("archivist-hook-wget-s3.service"),
                argv: &["/x".to_owned()],
                parent: Some(RunId(6)),
                pwd: Some(Path::new("/y")),
                limit: Some(Duration::from_secs(60)),
                outcome,
                started_at: Some(Time(0)),
                ended_at: None,
            };
            let record = process.record();
            assert_eq!((&record["id"], &record["parent_id"]), (&json!("r7"), &json!("r6")));
            assert_eq!(record["cmd"][0], "/x");
            assert_eq!((&record["pwd"], &record["timeout"]), (&json!("/y"), &json!(60)));
            assert!(record["machine_os"].as_str().unwrap().starts_with("Linux "));
            (record["status"].clone(), record["exit_code"].clone())
        };
        assert_eq!(status(&Outcome::Exit(0)), (json!("succeeded"), json!(0)));
        assert_eq!(status(&Outcome::Exit(EXIT_SKIPPED)), (json!("skipped"), json!(10)));
        assert_eq!(status(&Outcome::Interrupted), (json!("skipped"), Value::Null));
        assert_eq!(status(&Outcome::Signal(9)), (json!("failed"), Value::Null));
    }
}
