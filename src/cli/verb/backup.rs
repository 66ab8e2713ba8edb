//! `archivist backup`: copies database, archive and configuration, while work runs. The program of the
//! orchestrator does it, because it knows the database, but as a process of the caller: it has the
//! rights of the caller, who names a directory, and the orchestrator need not work.

use crate::client::exit::{Exit, Failure};
use crate::machine::orchestrator::{command, exec, need_root, real};
use archivist_config::Scope;
use clap::Args;
use std::path::PathBuf;

/// Back up database, archive, configuration, personas and library, while work runs
///
/// The backup is a new directory in DIR. Files that did not change since the backup before are hard
/// links to its copies, and are not read again. Only root may back up the archivist of the machine.
/// Print the directory of the backup, what is in it, and which pages are not, such as those that
/// are running. The exit status is 3 if something could not be read and is missing in the backup.
/// See archivist-backup(7).
#[derive(Args)]
pub struct BackupArgs {
    /// The directory of the backups, outside of the data directory
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Remove all but the newest N backups of DIR afterwards
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    keep: Option<u32>,
}

pub fn run(args: BackupArgs, scope: &Scope) -> Result<Exit, Failure> {
    need_root(scope, "back up")?;
    let mut command = command(scope)?;
    command.arg("backup").arg(real(&args.dir)?);
    if let Some(keep) = args.keep {
        command.args(["--keep", &keep.to_string()]);
    }
    exec(command)
}
