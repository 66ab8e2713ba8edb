//! What a hook found out, and the one record that says it.

use serde_json::{Map, Value};
use std::io::Write;

/// The statuses of an ArchiveResult.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// There is output.
    Succeeded,
    /// It ran well, there was nothing to find.
    NoResults,
    /// The configuration or a missing program says not to run.
    Skipped,
    /// It did not work.
    Failed,
}

impl Status {
    /// The word of the ArchiveResult.
    pub fn word(self) -> &'static str {
        match self {
            Status::Succeeded => "succeeded",
            Status::NoResults => "noresults",
            Status::Skipped => "skipped",
            Status::Failed => "failed",
        }
    }
}

/// The result of a hook.
#[derive(Debug)]
pub struct Finding {
    /// How it ended.
    pub status: Status,
    /// The main output's path relative to the plugin's directory, or a short text.
    pub output_str: String,
    /// Further fields of the ArchiveResult.
    fields: Vec<(&'static str, Value)>,
    /// Records printed before the ArchiveResult.
    pub records: Vec<Value>,
    /// Whether nothing is printed.
    silent: bool,
}

/// The longest `output_str` in characters: a record is a line, not a file.
const LONGEST: usize = 2000;

impl Finding {
    fn new(status: Status, output_str: impl Into<String>) -> Finding {
        let output_str: String = output_str.into().chars().take(LONGEST).collect();
        Finding {
            status,
            output_str,
            fields: Vec::new(),
            records: Vec::new(),
            silent: false,
        }
    }

    /// There is output; the text is its relative path or a short description.
    pub fn succeeded(output_str: impl Into<String>) -> Finding {
        Finding::new(Status::Succeeded, output_str)
    }

    /// It ran well and there is nothing.
    pub fn noresults(reason: impl Into<String>) -> Finding {
        Finding::new(Status::NoResults, reason)
    }

    /// It was not to run here.
    pub fn skipped(reason: impl Into<String>) -> Finding {
        Finding::new(Status::Skipped, reason)
    }

    /// It failed, and why.
    pub fn failed(reason: impl Into<String>) -> Finding {
        let finding = Finding::new(Status::Failed, reason);
        let reason = finding.output_str.clone();
        finding.with("error", reason)
    }

    /// Adds a field to the ArchiveResult.
    pub fn with(mut self, name: &'static str, value: impl Into<Value>) -> Finding {
        self.fields.push((name, value.into()));
        self
    }

    /// Adds what is to be known of the output, if anything.
    pub fn with_note(self, note: Option<String>) -> Finding {
        match note {
            Some(note) => self.with("note", note),
            None => self,
        }
    }

    /// Adds why it failed to what is said.
    pub fn because(mut self, why: &str) -> Finding {
        let text = format!("{}; {why}", self.output_str);
        self.output_str = text.chars().take(LONGEST).collect();
        for (_, value) in self.fields.iter_mut().filter(|(name, _)| *name == "error") {
            *value = self.output_str.clone().into();
        }
        self
    }

    /// Adds records of other types, printed before the ArchiveResult.
    pub fn with_records(mut self, records: Vec<Value>) -> Finding {
        self.records = records;
        self
    }

    /// Leaves the exit status to speak for itself.
    pub fn without_record(mut self) -> Finding {
        self.silent = true;
        self
    }

    /// The exit status of the contract: 0 done, 10 skipped, 1 failed.
    pub fn exit_code(&self) -> u8 {
        match self.status {
            Status::Succeeded | Status::NoResults => 0,
            Status::Skipped => 10,
            Status::Failed => 1,
        }
    }

    fn archive_result(&self) -> Value {
        let mut record = Map::new();
        record.insert("type".into(), "ArchiveResult".into());
        record.insert("status".into(), self.status.word().into());
        record.insert("output_str".into(), self.output_str.as_str().into());
        record.extend(
            self.fields
                .iter()
                .map(|(name, value)| (name.to_string(), value.clone())),
        );
        Value::Object(record)
    }
}

/// Prints the records of a finding, the ArchiveResult last, each over the context's fields.
///
/// A reader that has gone away is no error: there is nobody left to tell.
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

/// Prints a line of progress. The first one tells the worker that a background hook is ready.
pub fn progress(text: &str) {
    let _ = writeln!(
        std::io::stdout(),
        "{}",
        text.replace(|c: char| c.is_control(), " ")
    );
}

/// One record as a line of JSON, its own fields over those of the context.
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
    fn a_record_lies_over_the_context_and_on_one_line() {
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
    fn exit_codes_are_those_of_the_contract() {
        let codes = [
            Finding::succeeded(""),
            Finding::noresults(""),
            Finding::skipped(""),
            Finding::failed(""),
        ];
        assert_eq!(codes.map(|finding| finding.exit_code()), [0, 0, 10, 1]);
    }
}
