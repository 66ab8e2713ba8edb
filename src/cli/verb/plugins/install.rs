//! `archivist plugins install`, and `archivist install`, which is short for it.

use crate::client::exit::{Exit, Failure};
use crate::programs::install;
use archivist_config::Scope;
use clap::Args;

/// Have provider plugins install programs: those of these names, or that plugins of these names
/// need
///
/// The command waits for the result. This is a crawl without pages, with the URL
/// 'archivist:install/NAME': its hooks are units, and archivist list, archivist logs and archivist
/// cancel work as for every other crawl. If an installation requires root, the command only prints
/// the 'apt install' command line. The exit status is 1 if a program is still missing.
#[derive(Args)]
pub struct InstallArgs {
    /// Programs, or plugins whose programs to install
    #[arg(value_name = "NAME", required_unless_present = "missing")]
    names: Vec<String>,
    /// Install the programs that the enabled plugins lack
    ///
    /// The command first lists all of them, with the plugins that need them, and then installs
    /// those that do not require root: those of which a provider plugin precedes 'apt' in the list
    /// of the plugin, and those that Debian does not have.
    #[arg(long, conflicts_with = "names")]
    missing: bool,
    /// Install nothing, also with names, and only list what is missing
    #[arg(long)]
    dry_run: bool,
}

/// Install programs that plugins need; short for archivist plugins install
///
/// Without names, it is short for archivist plugins install --missing.
#[derive(Args)]
pub struct InstallVerbArgs {
    /// Programs, or plugins whose programs to install; without one, all that enabled plugins lack
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Install nothing, also with names, and only list what is missing
    #[arg(long)]
    dry_run: bool,
}

pub async fn run(args: InstallArgs, scope: &Scope) -> Result<Exit, Failure> {
    install::run(&args.names, args.dry_run, scope).await
}

pub async fn run_verb(args: InstallVerbArgs, scope: &Scope) -> Result<Exit, Failure> {
    install::run(&args.names, args.dry_run, scope).await
}
