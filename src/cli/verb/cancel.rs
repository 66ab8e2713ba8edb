//! `archivist cancel`: cancels crawls and snapshots, and ends single runs.

use crate::client::exit::{Exit, Failure};
use crate::client::fleet::Orders;
use crate::client::server::Server;
use crate::display::batch::for_each;
use archivist_config::Scope;
use archivist_core::model::AnyId;
use clap::Args;

/// Cancel crawls or snapshots and stop their running hooks
///
/// Files that are already archived remain. A hook that ignores SIGTERM is killed after the
/// TimeoutStopSec= of its unit; its outcome says so. Cancelling a cancelled crawl or snapshot is
/// not an error; cancelling a sealed one is.
///
/// The id of a run (r678) ends this hook alone: its result is skipped, with the reason "interrupted
/// by user", and its page continues with the next hook. The run of a worker cannot be cancelled;
/// cancel its crawl or snapshot.
#[derive(Args)]
pub struct CancelArgs {
    /// Crawls (c12), snapshots (s345) and runs of hooks (r678)
    #[arg(value_name = "ID", required = true)]
    ids: Vec<AnyId>,
    /// Return when no process of them is left
    ///
    /// In a fleet, return when all nodes have ended their pages; if only nodes that are not
    /// connected have some, fail and print their names and the number of pages.
    #[arg(long)]
    wait: bool,
}

pub async fn run(args: CancelArgs, scope: &Scope) -> Result<Exit, Failure> {
    let server = Server::reach(scope).await?;
    let orders = Orders::begin(scope).await;
    let cancel = async |id: AnyId| {
        let end = match id {
            AnyId::Owner(id) => orders.check(id, &server).await?,
            AnyId::Run(_) => "",
        };
        let owner = id;
        let id = id.to_string();
        server.call_in_pieces(|| server.proxy().cancel(&id)).await?;
        if args.wait {
            match server.call(|| server.proxy().await_units(&id)).await {
                // The units of a page of another node are there.
                Err(failure) if orders.is_in_fleet() && failure.is_about_input() => {}
                ended => ended?,
            }
            if let (AnyId::Owner(owner), Some(fleet)) = (owner, orders.fleet()) {
                fleet.until_cancelled(owner).await?;
            }
        }
        Ok(format!("{id} cancelled{end}"))
    };
    for_each(&args.ids, cancel).await
}
