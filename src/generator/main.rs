//! `archivist-generator NORMAL EARLY LATE`: the program that service managers run (systemd.generator(7)).

use std::path::Path;
use std::process::ExitCode;

/// Exit status for wrong usage, as of `archivist`.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    // The other two are for units of higher and lower priority, of which there are none.
    let Some(directory) = arguments.next() else {
        eprintln!(
            "archivist-generator: missing argument DIRECTORY; `archivist generate --dry-run` prints the units"
        );
        return ExitCode::from(USAGE);
    };
    let env = |name: &str| std::env::var_os(name);
    let scope = archivist_generator::scope(env);
    if archivist_generator::main(&scope, Path::new(&directory)) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
