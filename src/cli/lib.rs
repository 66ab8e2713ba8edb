//! The command line. Each verb is one file: it parses its arguments, makes one call over the bus
//! and prints the answer.

/// Prints a line to standard error as the macro of std does, but goes on if its reader has gone: the command
/// is done nevertheless, and its exit status says so.
macro_rules! eprintln {
    ($($line:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($line)*);
    }};
}

/// As [`eprintln`], without the end of the line.
macro_rules! eprint {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = write!(std::io::stderr(), $($text)*);
    }};
}

mod client;
mod display;
mod hint;
mod machine;
mod manual;
mod programs;
mod progress;
mod queue;
mod recording;
mod replay;
mod staging;
mod survey;
mod verb;

#[cfg(test)]
mod sample;

pub use client::exit::Exit;

use archivist_config::{INSTANCE_ALLOWED, Scope, is_instance_name};
use clap::{Args, CommandFactory, Parser};
use std::process::ExitCode;
use verb::Verb;

#[derive(Parser)]
#[command(
    name = "archivist",
    version,
    about = "Archive web pages; every worker and every hook is a systemd unit",
    after_help = client::exit::HELP
)]
struct Cli {
    #[command(flatten)]
    scope: ScopeArgs,
    #[command(subcommand)]
    verb: Verb,
}

/// Place of the options of all verbs in help texts: after those of the verb.
const LAST: usize = 100;

#[derive(Args)]
struct ScopeArgs {
    /// Use the orchestrator of your own service manager instead of the machine's
    ///
    /// It is on the session bus, and requires no root privileges. Its data is in
    /// $XDG_DATA_HOME/archivist and its configuration in $XDG_CONFIG_HOME/archivist.
    ///
    /// This requires the package dbus-user-session. At logout, the service manager stops with all work,
    /// which continues after the next login. 'loginctl enable-linger', for which a machine without polkit
    /// requires root, keeps it running without a session, and starts it at boot. The first archivist add
    /// and archivist doctor say so if the user does not linger.
    #[arg(long, global = true, display_order = LAST)]
    user: bool,
    /// Use the instance NAME, which has its own queue, database and units
    ///
    /// See archivist-orchestrator.service(8).
    #[arg(long, global = true, display_order = LAST + 1, value_name = "NAME", value_parser = instance)]
    instance: Option<String>,
}

fn instance(text: &str) -> Result<String, String> {
    if is_instance_name(text) {
        Ok(text.to_owned())
    } else {
        Err(format!("an instance name must be {INSTANCE_ALLOWED}"))
    }
}

/// Returns the definition of the command line, for completions and the manual.
pub fn command() -> clap::Command {
    Cli::command()
}

/// Runs the verb that the arguments of the process name.
pub fn main() -> ExitCode {
    // The definition of all verbs costs more CPU time than the rest of such a start.
    if let Some(program) = verb::hook::of(std::env::args_os()) {
        return verb::hook::run(program);
    }
    let cli = Cli::try_parse().unwrap_or_else(|error| hint::with_hint(error).exit());
    let scope = Scope::from_env(cli.scope.user, cli.scope.instance, |name| std::env::var_os(name));
    client::hint::know(command);
    client::hint::remember(&scope);
    cli.verb.run(&scope, command)
}

#[cfg(test)]
mod tests {
    use clap::Command;

    /// As in systemctl(1) and journalctl(1).
    #[test]
    fn the_number_of_entries_is_n_in_every_verb() {
        let mut names = Vec::new();
        collect(&super::command(), &mut names);
        names.sort();
        let all = ["list limit", "logs lines", "plot limit", "search limit", "versions limit"];
        assert!(all.iter().all(|name| names.iter().any(|one| one == name)), "{names:?}");
    }

    fn collect(command: &Command, names: &mut Vec<String>) {
        for argument in command.get_arguments() {
            let Some(long @ ("limit" | "lines")) = argument.get_long() else { continue };
            let name = format!("{} {long}", command.get_name());
            assert_eq!(argument.get_short(), Some('n'), "{name}");
            names.push(name);
        }
        for verb in command.get_subcommands() {
            collect(verb, names);
        }
    }
}
