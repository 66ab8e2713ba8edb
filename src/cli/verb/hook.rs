//! `archivist hook NAME ARGUMENTS…`: the program of a built-in plugin, called by its hook file.

use clap::Args;
use std::ffi::OsString;
use std::process::ExitCode;

/// Run the program of a built-in plugin, see archivist-hooks(7)
#[derive(Args)]
pub struct HookArgs {
    name: String,
    /// Arguments of the hook
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

pub fn run(args: HookArgs) -> ExitCode {
    let arguments: Vec<String> = args
        .arguments
        .iter()
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    archivist_hooks::main(&args.name, &arguments)
}
