//! `archivist fleet drain` and `archivist fleet leave`.

use super::files::Files;
use crate::client::exit::{Exit, Failure};
use crate::client::fleet_service;
use crate::display::style;
use archivist_config::Scope;
use clap::Args;

/// Give a node, by default this machine, no more hosts
///
/// When the command returns, the node starts no page any more. Running pages end; the others go to
/// other nodes at once, those of a host with a running page when that has ended.
#[derive(Args)]
pub struct DrainArgs {
    /// The node; without it, this machine
    #[arg(value_name = "NODE")]
    node: Option<String>,
    /// Give the node hosts again
    #[arg(long)]
    undo: bool,
}

/// Remove this machine from the fleet as soon as its running pages have ended
///
/// The pages that it archived stay here.
#[derive(Args)]
pub struct LeaveArgs {
    /// A node whose machine is gone; without it, this machine leaves
    #[arg(value_name = "NODE")]
    node: Option<String>,
}

/// Stops or resumes giving work to a node.
pub(super) async fn drain(args: &DrainArgs) -> Result<Exit, Failure> {
    let name = match &args.node {
        Some(name) => name.clone(),
        None => fleet_service::state().await?.name,
    };
    let has_stopped = fleet_service::drain(&name, !args.undo).await?;
    style::print(&drained(&name, args.undo, has_stopped))?;
    Ok(Exit::Done)
}

fn drained(name: &str, is_undone: bool, has_stopped: bool) -> String {
    match (is_undone, has_stopped) {
        (true, _) => format!("node '{name}' gets hosts again\n"),
        (false, true) => format!(
            "node '{name}' starts no more pages; its running pages end, the others go to other nodes\n"
        ),
        (false, false) => format!(
            "node '{name}' is not connected: it gets no more hosts, and other nodes get its hosts when their leases end; see: archivist fleet nodes\n"
        ),
    }
}

pub(super) async fn leave(args: &LeaveArgs, scope: &Scope) -> Result<Exit, Failure> {
    let Some(name) = &args.node else {
        return leave_here(scope).await;
    };
    fleet_service::remove(name).await?;
    style::print(&format!("node '{name}' is removed; its hosts go to other nodes\n"))?;
    Ok(Exit::Done)
}

async fn leave_here(scope: &Scope) -> Result<Exit, Failure> {
    if !nix::unistd::geteuid().is_root() {
        return Err(Failure::failed("only root can remove this machine from the fleet: use sudo"));
    }
    let hosts = fleet_service::state().await?.hosts;
    if hosts > 0 {
        eprintln!(
            "waiting for the running pages of {hosts} hosts; after Ctrl-C, this machine stays in the fleet and gets no more hosts (archivist fleet drain --undo)"
        );
    }
    // Each call takes until the service looks at its work the next time.
    while !fleet_service::leave().await? {}
    fleet_service::stop()?;
    Files::of(scope).remove()?;
    fleet_service::reload(scope).await?;
    style::print("this machine has left the fleet; the pages that it archived stay here\n")?;
    Ok(Exit::Done)
}
