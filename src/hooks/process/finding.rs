//! The result of a hook, and the record that reports it.

use archivist_core::model::LACKS;
use serde_json::{Map, Value};
use std::io::Write;

/// Exit status of a skipped hook: the one of the contract, as [`std::process::ExitCode`] takes it.
pub const EXIT_SKIPPED: u8 = archivist_core::model::EXIT_SKIPPED as u8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FindingStatus {
    Succeeded,
    /// The hook ran without errors and found nothing.
    NoResults,
    /// The configuration, a missing program or a page that is not there prevents the run.
    Skipped,
    Failed,
}

impl FindingStatus {
    pub fn word(self) -> &'static str {
        match self {
            FindingStatus::Succeeded => "succeeded",
            FindingStatus::NoResults => "noresults",
            FindingStatus::Skipped => "skipped",
            FindingStatus::Failed => "failed",
        }
    }
}

/// Result of a program. An early end is also a finding, so that every run has a record.
pub type Outcome = Result<Finding, Finding>;

#[derive(Debug)]
pub struct Finding {
    pub status: FindingStatus,
    /// Path of the main output relative to the plugin's directory, or a short text.
    pub output_str: String,
    /// Further fields of the ArchiveResult.
    fields: Vec<(&'static str, Value)>,
    /// Records that are printed before the ArchiveResult.
    pub records: Vec<Value>,
    /// Whether no record is printed.
    silent: bool,
}

/// Longest `output_str` in characters, because a record is one line.
const OUTPUT_STR_MAX_CHARS: usize = 2000;

impl Finding {
    fn new(status: FindingStatus, output_str: impl Into<String>) -> Finding {
        let output_str: String = output_str.into().chars().take(OUTPUT_STR_MAX_CHARS).collect();
        Finding { status, output_str, fields: Vec::new(), records: Vec::new(), silent: false }
    }

    /// The hook has output. `output_str` is its relative path or a short description.
    pub fn succeeded(output_str: impl Into<String>) -> Finding {
        Finding::new(FindingStatus::Succeeded, output_str)
    }

    pub fn noresults(reason: impl Into<String>) -> Finding {
        Finding::new(FindingStatus::NoResults, reason)
    }

    /// The hook does not run with this configuration, on this machine, or without the page that it
    /// needs.
    pub fn skipped(reason: impl Into<String>) -> Finding {
        Finding::new(FindingStatus::Skipped, reason)
    }

    pub fn failed(reason: impl Into<String>) -> Finding {
        let finding = Finding::new(FindingStatus::Failed, reason);
        let reason = finding.output_str.clone();
        finding.with("error", reason)
    }

    pub fn with(mut self, name: &'static str, value: impl Into<Value>) -> Finding {
        self.fields.push((name, value.into()));
        self
    }

    /// Whether the ArchiveResult has a field.
    pub fn has(&self, field: &str) -> bool {
        self.fields.iter().any(|(name, _)| *name == field)
    }

    /// Adds numbers about the output.
    pub fn with_figures(mut self, figures: Map<String, Value>) -> Finding {
        match self.fields.iter_mut().find(|(name, _)| *name == "figures") {
            Some((_, Value::Object(stated))) => {
                stated.extend(figures);
                self
            }
            _ => self.with("figures", figures),
        }
    }

    /// Adds a remark about the output, if any, to those that it has.
    pub fn with_note(mut self, note: Option<String>) -> Finding {
        let Some(note) = note else { return self };
        match self.fields.iter_mut().find(|(name, _)| *name == "note") {
            Some((_, Value::String(notes))) => {
                notes.push_str("; ");
                notes.push_str(&note);
                self
            }
            _ => self.with("note", note),
        }
    }

    /// Adds remarks about parts of the page that the output lacks, and counts them.
    pub fn lacking<const N: usize>(self, parts: [Option<String>; N]) -> Finding {
        let count = parts.iter().flatten().count();
        self.with_lacks(count).with_notes(parts)
    }

    /// States how many parts of the page the output lacks, which a remark names ([`LACKS`]).
    pub fn with_lacks(self, count: usize) -> Finding {
        if count == 0 {
            return self;
        }
        self.with_figures(Map::from_iter([(LACKS.to_owned(), count.into())]))
    }

    /// The remark about the output, if any.
    #[cfg(test)]
    pub fn note(&self) -> Option<String> {
        let note = self.fields.iter().find(|(name, _)| *name == "note");
        note.and_then(|(_, text)| text.as_str().map(str::to_owned))
    }

    /// Adds remarks about the output.
    pub fn with_notes<const N: usize>(self, notes: [Option<String>; N]) -> Finding {
        notes.into_iter().fold(self, Finding::with_note)
    }

    /// Appends a cause to the message of a failure, unless the message has it.
    pub fn because(mut self, why: &str) -> Finding {
        if self.output_str.contains(why) {
            return self;
        }
        let text = format!("{}; {why}", self.output_str);
        self.output_str = text.chars().take(OUTPUT_STR_MAX_CHARS).collect();
        for (_, value) in self.fields.iter_mut().filter(|(name, _)| *name == "error") {
            *value = self.output_str.clone().into();
        }
        self
    }

    /// Adds records of other types, which are printed before the ArchiveResult.
    pub fn with_records(mut self, records: Vec<Value>) -> Finding {
        self.records = records;
        self
    }

    /// Prints no record: the exit status alone reports the result.
    pub fn without_record(mut self) -> Finding {
        self.silent = true;
        self
    }

    /// Exit status of the contract: 0 for success, [`EXIT_SKIPPED`] for skipped, 1 for failed.
    pub fn exit_code(&self) -> u8 {
        match self.status {
            FindingStatus::Succeeded | FindingStatus::NoResults => 0,
            FindingStatus::Skipped => EXIT_SKIPPED,
            FindingStatus::Failed => 1,
        }
    }

    fn archive_result(&self) -> Value {
        let mut record = Map::new();
        record.insert("type".into(), "ArchiveResult".into());
        record.insert("status".into(), self.status.word().into());
        record.insert("output_str".into(), self.output_str.as_str().into());
        record.extend(self.fields.iter().map(|(name, value)| (name.to_string(), value.clone())));
        Value::Object(record)
    }
}

/// Prints the records of a finding, the ArchiveResult last. Each includes the fields of the
/// context.
///
/// Ignores write errors: the reader of the pipe has exited.
pub fn print(finding: &Finding, context: &Map<String, Value>) {
    if finding.silent {
        return;
    }
    let mut out = std::io::stdout().lock();
    for record in finding.records.iter().chain([&finding.archive_result()]) {
        let _ = writeln!(out, "{}", line(record, context));
    }
    let _ = out.flush();
}

/// Prints a line of progress. The first line reports to the worker that a background hook is ready.
pub fn progress(text: &str) {
    let _ = writeln!(std::io::stdout(), "{}", text.replace(|c: char| c.is_control(), " "));
}

/// Formats a record as one line of JSON. Its fields override those of the context.
fn line(record: &Value, context: &Map<String, Value>) -> String {
    let mut merged = context.clone();
    if let Value::Object(own) = record {
        merged.extend(own.clone());
    }
    Value::Object(merged).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn record_overrides_the_context_and_is_one_line() {
        let context = json!({"snapshot_id": "7", "status": "queued"});
        let finding = Finding::succeeded("a\n$(reboot) \"%n\"").with("final_url", "http://a.test/");
        let text = line(&finding.archive_result(), context.as_object().unwrap());
        assert!(!text.contains('\n'));
        let back: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            back,
            json!({"snapshot_id": "7", "type": "ArchiveResult", "status": "succeeded",
                   "output_str": "a\n$(reboot) \"%n\"", "final_url": "http://a.test/"})
        );
    }

    #[test]
    fn notes_become_one() {
        let note =
            |notes| Finding::succeeded("").with_notes(notes).archive_result()["note"].clone();
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(note([some("a"), some("b")]), "a; b");
        assert_eq!(note([None, some("b")]), "b");
        assert_eq!(note([None, None]), Value::Null);
    }

    #[test]
    fn parts_that_the_output_lacks_are_counted_and_named_first() {
        let part = |text: &str| Some(text.to_owned());
        let finding = Finding::succeeded("")
            .lacking([part("cut"), None, part("no font")])
            .with_notes([part("rejected consent")]);
        let record = finding.archive_result();
        assert_eq!(record["figures"], json!({"lacks": 2}));
        assert_eq!(record["note"], "cut; no font; rejected consent");
        let whole = Finding::succeeded("").lacking([None]).archive_result();
        assert_eq!(whole.get("figures"), None);
    }

    #[test]
    fn exit_codes_follow_the_contract() {
        let codes = [
            Finding::succeeded(""),
            Finding::noresults(""),
            Finding::skipped(""),
            Finding::failed(""),
        ];
        assert_eq!(codes.map(|finding| finding.exit_code()), [0, 0, EXIT_SKIPPED, 1]);
    }
}
