//! `archivist pause`: pauses crawls and snapshots.

use crate::client::exit::{Exit, Failure};
use crate::client::fleet::Orders;
use crate::client::server::Server;
use crate::display::batch::for_each;
use archivist_config::Scope;
use archivist_core::model::Owner;
use clap::Args;

/// Pause crawls or snapshots and freeze their running hooks
///
/// No further units are started for them until archivist resume. The pause survives a restart of
/// the orchestrator. A reboot ends frozen hooks; they run again after the resume.
///
/// A paused snapshot occupies no slot, and gets its slot back immediately when it is resumed, so
/// that the number of workers may exceed WorkersMax= for a while.
///
/// The time limit of a hook is enforced by systemd and keeps running while the hook is frozen. A
/// hook that reaches its limit while it is frozen runs again after the resume. If the kernel or the
/// service manager cannot freeze a unit, this is logged to the journal and the hook runs to its
/// end.
///
/// Pausing twice is not an error; pausing what is sealed or cancelled is.
#[derive(Args)]
pub struct PauseArgs {
    /// Crawls (c12) and snapshots (s345)
    #[arg(value_name = "ID", required = true)]
    ids: Vec<Owner>,
}

pub async fn run(args: PauseArgs, scope: &Scope) -> Result<Exit, Failure> {
    let server = Server::reach(scope).await?;
    let orders = Orders::begin(scope).await;
    let pause = async |id: Owner| {
        let end = orders.check(id, &server).await?;
        let id = id.to_string();
        server.call(|| server.proxy().pause(&id)).await?;
        Ok(format!("{id} paused{end}"))
    };
    for_each(&args.ids, pause).await
}
