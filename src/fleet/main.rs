//! The program `archivist-fleet`: the fleet service of a machine, and what `archivist fleet` needs
//! of the database. No other program connects to PostgreSQL.

use std::process::ExitCode;

fn main() -> ExitCode {
    archivist_fleet::program::main(std::env::args_os().skip(1))
}
