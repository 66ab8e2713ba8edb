//! The command line: one verb is one file; argv → one bus call → print.

use std::process::ExitCode;

pub fn main() -> ExitCode {
    ExitCode::SUCCESS
}
