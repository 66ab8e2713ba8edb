//! `archivist pool logs`: journalctl(1) for the units of a pool.

use super::find;
use crate::client::exit::{Exit, Failure};
use archivist_config::Scope;
use archivist_generator::Pool;
use clap::Args;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Show the journal of a pool and its health checks, or of one worker
#[derive(Args)]
pub struct LogsArgs {
    /// Name of the pool
    name: String,
    /// Show only the worker with this index
    index: Option<u32>,
    /// Show new lines as they arrive
    #[arg(short, long)]
    follow: bool,
    /// Show only the last N lines
    #[arg(short = 'n', long, value_name = "N")]
    lines: Option<u32>,
}

pub fn run(args: LogsArgs, scope: &Scope) -> Result<Exit, Failure> {
    let pool = find(&args.name, scope)?;
    let error = Command::new("journalctl").args(arguments(&args, &pool, scope)).exec();
    Err(Failure::failed(format!(
        "failed to run journalctl: {error}; it is part of the package systemd"
    )))
}

fn arguments(args: &LogsArgs, pool: &Pool, scope: &Scope) -> Vec<String> {
    let unit = if scope.user { "--user-unit" } else { "--unit" };
    let patterns = pool.log_patterns(args.index).into_iter();
    let mut out: Vec<_> = patterns.map(|pattern| format!("{unit}={pattern}")).collect();
    if args.follow {
        out.push("--follow".to_owned());
    }
    if let Some(lines) = args.lines {
        out.push(format!("--lines={lines}"));
    }
    out
}
