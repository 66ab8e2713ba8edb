//! `archivist worker`: what the orchestrator starts for a crawl or snapshot.

use std::process::ExitCode;

pub fn run() -> ExitCode {
    crate::worker::main()
}
