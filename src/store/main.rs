//! Carries out one transfer: reads an assignment from standard input and writes a record to standard
//! output, both JSON. The exit status is 0 if the task is done, 1 if it failed. With the argument
//! `compare` or `foreign`, it reads a comparison or a foreign copy instead.

use archivist_core::store::{Assignment, Compared, Comparison, Foreign, Record, StoredObject};
use archivist_store::failure::TransferFailure;
use archivist_store::{compare, foreign, task};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::process::ExitCode;

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        None => run(|assignment: &Assignment| recorded(task::perform(assignment))),
        Some("foreign") => run(|page: &Foreign| recorded(foreign::fetch(page).map(Some))),
        Some("compare") => run(compared),
        Some(other) => {
            eprintln!("'{other}' is no task of archivist-store");
            ExitCode::from(2)
        }
    }
}

fn run<T: DeserializeOwned>(perform: impl Fn(&T) -> ExitCode) -> ExitCode {
    match serde_json::from_reader(std::io::stdin().lock()) {
        Ok(task) => perform(&task),
        Err(error) => {
            eprintln!(
                "failed to read the assignment from standard input: {error}; archivist-store is \
                 started by archivist-orchestrator.service"
            );
            ExitCode::from(2)
        }
    }
}

fn recorded(done: Result<Option<StoredObject>, TransferFailure>) -> ExitCode {
    let record = match done {
        Ok(object) => Record { object, ..Record::default() },
        Err(failure) => {
            eprintln!("{failure}");
            Record { error: Some(failure.text), differs: failure.differs, ..Record::default() }
        }
    };
    let is_done = record.error.is_none();
    ExitCode::from(u8::from(!(print(&record) && is_done)))
}

fn compared(comparison: &Comparison) -> ExitCode {
    let mut is_written = true;
    let mut see = |compared: Compared| is_written &= print(&compared);
    match compare::compare(comparison, &mut see) {
        Ok(()) => ExitCode::from(u8::from(!is_written)),
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}

fn print(document: &impl Serialize) -> bool {
    let written = serde_json::to_string(document).map(|text| println!("{text}"));
    written.is_ok()
}
