//! `archivist restore`: puts a backup in the place of the data directory. The orchestrator must be
//! stopped, and no call may start it before the end: its unit is masked until then.

use crate::client::exit::{Exit, Failure};
use crate::client::reader::BOOTED;
use crate::client::server::systemctl;
use crate::machine::orchestrator::{command, need_root, real};
use archivist_config::Scope;
use archivist_core::unit::Names;
use clap::Args;
use std::path::{Path, PathBuf};
use std::process::Command;
use tokio::signal::unix::{SignalKind, signal};

/// Restore a backup
///
/// The orchestrator and its units must be stopped. Every file is verified first; if one is damaged,
/// it is named, and nothing is changed. What was there before is moved to a directory with the date
/// in its name. See archivist-backup(7).
#[derive(Args)]
pub struct RestoreArgs {
    /// A backup, or the directory of the backups, whose newest one is restored
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Restore the configuration, too
    ///
    /// Without it, files of the configuration that differ are named.
    #[arg(long)]
    config: bool,
    /// Restore the database alone; archive, library and personas stay as they are
    #[arg(long, conflicts_with = "config")]
    database: bool,
    /// Delete pages again that were deleted after the backup, without a question
    ///
    /// They are listed, and nothing is restored before the answer. Without a terminal, this option or
    /// --keep-deleted is required if there are such pages.
    #[arg(short, long)]
    yes: bool,
    /// Keep pages that were deleted after the backup, without a question
    #[arg(long, conflicts_with = "yes")]
    keep_deleted: bool,
}

/// The server of the search index, which all instances share.
const INDEX_SERVER: &str = "archivist-sonic.service";
const TMPFILES: &str = "archivist.conf";

pub async fn run(args: RestoreArgs, scope: &Scope) -> Result<Exit, Failure> {
    need_root(scope, "restore")?;
    let mut command = command(scope)?;
    command.arg("restore").arg(real(&args.dir)?);
    command.args(args.config.then_some("--config"));
    command.args(args.database.then_some("--database"));
    command.args(args.yes.then_some("--yes"));
    command.args(args.keep_deleted.then_some("--keep-deleted"));
    // Ctrl-C ends the program alone: the unit must be unmasked after it.
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let _caught = kinds.map(signal);
    // Before the look at the units, so that none starts after it. If the administrator's own unit
    // cannot be masked, the locks of the data directory still keep an orchestrator out.
    let masked = call(scope, &["--runtime", "mask"]).is_some();
    let done = match running(scope) {
        Err(failure) => Err(failure),
        Ok(units) if units.is_empty() => {
            let program = command.get_program().display().to_string();
            let status = tokio::process::Command::from(command).status().await;
            status.map_err(|error| Failure::failed(format!("failed to run '{program}': {error}")))
        }
        Ok(units) => Err(Failure::failed(format!(
            "failed to restore while these units run: {}\nto stop them: {} stop {}.slice",
            units.join(", "),
            systemctl(scope),
            scope.unit_prefix()
        ))),
    };
    if masked {
        call(scope, &["--runtime", "unmask"]);
    }
    if !done?.success() {
        return Ok(Exit::Failed);
    }
    if !scope.user {
        // Directories that the backup does not have.
        let _ = Command::new("systemd-tmpfiles").args(["--create", TMPFILES]).status();
    }
    println!("to continue: {} start {}", systemctl(scope), scope.orchestrator_unit());
    Ok(Exit::Done)
}

/// Calls systemctl(1) for the unit of the orchestrator. None if that failed.
fn call(scope: &Scope, arguments: &[&str]) -> Option<()> {
    let mut command = Command::new("systemctl");
    command.arg("--quiet").args(scope.user.then_some("--user"));
    command.args(arguments).arg(scope.orchestrator_unit());
    let output = command.output().ok()?;
    output.status.success().then_some(())
}

/// Returns the units that write to the data directory. Without systemd, as in a rescue system, there are
/// none.
///
/// # Errors
/// If systemd does not say which units run.
fn running(scope: &Scope) -> Result<Vec<String>, Failure> {
    if !Path::new(BOOTED).is_dir() {
        return Ok(Vec::new());
    }
    let mut command = Command::new("systemctl");
    command.args(scope.user.then_some("--user"));
    command.args(["list-units", "--plain", "--no-legend", "--full"]);
    command.arg("--state=active,activating,reloading,deactivating");
    command.args(Names::new(scope.unit_prefix()).patterns());
    command.args([&scope.orchestrator_unit(), INDEX_SERVER]);
    let unknown = |why: &str| {
        let why = why.trim_end();
        Failure::failed(format!("failed to ask systemd which units run: {why}"))
    };
    let output = command.output().map_err(|error| unknown(&error.to_string()))?;
    if !output.status.success() {
        return Err(unknown(&String::from_utf8_lossy(&output.stderr)));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let names = text.lines().filter_map(|line| line.split_whitespace().next());
    Ok(names.map(str::to_owned).collect())
}
