//! `archivist completions`: completion scripts for shells.

use crate::client::exit::{Exit, Failure};
use crate::display::style;
use clap::{Args, Command, ValueEnum};
use clap_complete::{Shell, generate};

/// Print the completion script of a shell
///
/// The Debian package installs all three.
#[derive(Args)]
pub struct CompletionsArgs {
    /// Shell to complete for
    #[arg(value_enum)]
    shell: Which,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Which {
    Bash,
    Zsh,
    Fish,
}

pub fn run(args: CompletionsArgs, mut line: Command) -> Result<Exit, Failure> {
    let shell = match args.shell {
        Which::Bash => Shell::Bash,
        Which::Zsh => Shell::Zsh,
        Which::Fish => Shell::Fish,
    };
    let mut script = Vec::new();
    generate(shell, &mut line, "archivist", &mut script);
    style::print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}
