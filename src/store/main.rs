//! Carries out one transfer: reads an assignment from standard input and writes a record to standard
//! output, both JSON. The exit status is 0 if the task is done, 1 if it failed.

use archivist_core::store::{Assignment, Record};
use archivist_store::task;
use std::process::ExitCode;

fn main() -> ExitCode {
    let assignment: Assignment = match serde_json::from_reader(std::io::stdin().lock()) {
        Ok(assignment) => assignment,
        Err(error) => {
            eprintln!(
                "failed to read the assignment from standard input: {error}; archivist-store is \
                 started by archivist-orchestrator.service"
            );
            return ExitCode::from(2);
        }
    };
    let record = match task::perform(&assignment) {
        Ok(object) => Record {
            object,
            ..Record::default()
        },
        Err(failure) => {
            eprintln!("{failure}");
            Record {
                error: Some(failure.text),
                differs: failure.differs,
                ..Record::default()
            }
        }
    };
    let is_done = record.error.is_none();
    let written = serde_json::to_string(&record).map(|text| println!("{text}"));
    ExitCode::from(u8::from(!(is_done && written.is_ok())))
}
