//! `archivist fleet`: several machines with one archive. This program never connects to the
//! database: `archivist-fleet` does.

mod authorities;
mod backup;
mod files;
mod join;
mod leave;
mod nodes;
mod password;
mod restored;

use crate::client::exit::{Exit, Failure};
use archivist_config::programs::{FLEET, FLEET_FIX, FLEET_MISSING};
use archivist_config::{Scope, load};
use clap::{Args, Subcommand};

/// Manage the fleet: several machines with one archive, over a PostgreSQL database
///
/// archivist-fleet(8) describes it. This requires the package archivist-fleet. 'init', 'join',
/// 'leave', 'backup' and 'restored' require root.
#[derive(Args)]
pub struct FleetArgs {
    #[command(subcommand)]
    verb: FleetVerb,
}

#[derive(Subcommand)]
enum FleetVerb {
    /// Make a fleet in an empty PostgreSQL database, with this machine as its first node
    Init(join::JoinArgs),
    /// Make this machine a node of a fleet
    ///
    /// Its own crawls must be finished.
    Join(join::JoinArgs),
    /// Show whether this machine is connected, and the database, nodes and queue of the fleet
    ///
    /// The exit status is 1 if the database does not answer.
    Status(nodes::ShowArgs),
    /// List the nodes
    ///
    /// A connected node is seen every five seconds; after ten seconds, the list says for how long
    /// it was 'not seen'. A 'lost' node was not seen for the duration of a lease, and did not stop
    /// in an orderly way.
    Nodes(nodes::ShowArgs),
    Drain(leave::DrainArgs),
    Leave(leave::LeaveArgs),
    Backup(backup::BackupArgs),
    /// Declare that the database was restored from a backup, so that nodes send what it lacks
    ///
    /// See archivist-backup(7).
    Restored,
}

pub async fn run(args: FleetArgs, scope: &Scope) -> Result<Exit, Failure> {
    if scope.user || scope.instance.is_some() {
        return Err(Failure::usage(
            "only the archivist of the machine can be in a fleet: leave out --user and --instance",
        ));
    }
    if !FLEET.is_installed() {
        return Err(Failure::failed(format!("{FLEET_MISSING}; {FLEET_FIX}")));
    }
    if !matches!(args.verb, FleetVerb::Init(_) | FleetVerb::Join(_)) {
        refuse_outside(scope)?;
    }
    match args.verb {
        FleetVerb::Init(args) => join::run(&args, join::Kind::Init, scope).await,
        FleetVerb::Join(args) => join::run(&args, join::Kind::Join, scope).await,
        FleetVerb::Status(args) => nodes::status(&args).await,
        FleetVerb::Nodes(args) => nodes::nodes(&args).await,
        FleetVerb::Drain(args) => leave::drain(&args).await,
        FleetVerb::Leave(args) => leave::leave(&args, scope).await,
        FleetVerb::Backup(args) => backup::run(&args, scope),
        FleetVerb::Restored => restored::run().await,
    }
}

/// Refuses what only a node can answer on a machine that is none.
fn refuse_outside(scope: &Scope) -> Result<(), Failure> {
    let (settings, _) = load(scope)?;
    if settings.is_in_fleet() {
        return Ok(());
    }
    Err(Failure::failed("this machine is in no fleet; see: man archivist-fleet"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machine_outside_of_a_fleet_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let scope = Scope::system(root.path());
        let failure = refuse_outside(&scope).unwrap_err();
        assert!(failure.message().contains("in no fleet"), "{failure:?}");
        let url = "postgresql://db.example/archive";
        files::Files::of(&scope).write(url, "web2", None, None).unwrap();
        refuse_outside(&scope).unwrap();
    }
}
