//! The program `archivist`.

use std::process::ExitCode;

fn main() -> ExitCode {
    archivist::main()
}
