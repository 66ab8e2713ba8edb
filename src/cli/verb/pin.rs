//! `archivist pin` and `unpin`: keep crawls and snapshots from deletion, and end that.

use crate::client::exit::{Exit, Failure};
use crate::client::server::Server;
use crate::display::batch::for_each;
use archivist_config::Scope;
use archivist_core::model::Owner;
use clap::Args;

/// Keep pages or crawls from deletion
///
/// archivist delete refuses a pinned page by its id and leaves it out of a selection by tag, URL, age or
/// state; Retention= deletes none. A pinned crawl keeps all its pages, and a pinned page its crawl. A pin does not prevent retries.
///
/// Pinning twice is not an error. archivist list and show say what is pinned.
#[derive(Args)]
pub struct PinArgs {
    /// Crawls (c12) and snapshots (s345)
    #[arg(value_name = "ID", required = true)]
    ids: Vec<Owner>,
    /// Print what would be pinned, and change nothing
    #[arg(long)]
    dry_run: bool,
}

/// Allow the deletion of pinned pages or crawls again
///
/// A page whose crawl is pinned is kept until that is unpinned, too. A pin is removed by the user who set it,
/// or by root.
#[derive(Args)]
pub struct UnpinArgs {
    /// Crawls (c12) and snapshots (s345)
    #[arg(value_name = "ID", required = true)]
    ids: Vec<Owner>,
    /// Print what would be unpinned, and change nothing
    #[arg(long)]
    dry_run: bool,
}

pub async fn run(args: PinArgs, scope: &Scope) -> Result<Exit, Failure> {
    let server = Server::reach(scope).await?;
    let pin = async |id: Owner| {
        let name = id.to_string();
        let answer = server.call(|| server.proxy().pin(&name, args.dry_run));
        Ok(match (answer.await?, args.dry_run) {
            (0, _) => format!("{id} is pinned already"),
            (_, true) => format!("would pin {id}"),
            (_, false) => format!("{id} pinned"),
        })
    };
    for_each(&args.ids, pin).await
}

pub async fn run_unpin(args: UnpinArgs, scope: &Scope) -> Result<Exit, Failure> {
    let server = Server::reach(scope).await?;
    let unpin = async |id: Owner| {
        let name = id.to_string();
        let answer = server.call(|| server.proxy().unpin(&name, args.dry_run));
        Ok(match (answer.await?, args.dry_run) {
            (0, _) => format!("{id} is not pinned"),
            (_, true) => format!("would unpin {id}"),
            (_, false) => format!("{id} unpinned"),
        })
    };
    for_each(&args.ids, unpin).await
}
