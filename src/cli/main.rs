use std::process::ExitCode;

fn main() -> ExitCode {
    archivist::main()
}
