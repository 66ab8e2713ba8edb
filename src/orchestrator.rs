use std::process::ExitCode;

fn main() -> ExitCode {
    archivist::service::main(std::env::args_os().skip(1))
}
