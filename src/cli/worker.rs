//! `archivist worker`: what the orchestrator starts for a crawl or snapshot.

use std::process::ExitCode;

// STUB: becomes `crate::worker::main()`.
pub fn run() -> ExitCode {
    eprintln!("archivist: this build has no worker");
    ExitCode::FAILURE
}
