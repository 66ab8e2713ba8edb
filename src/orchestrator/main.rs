//! The program `archivist-orchestrator`: the orchestrator and its workers.

use std::process::ExitCode;

fn main() -> ExitCode {
    archivist_orchestrator::program::main(std::env::args_os().skip(1))
}
