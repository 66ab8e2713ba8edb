//! `archivist cancel`: cancels crawls and snapshots, and ends single runs.

use crate::client::exit::{Exit, Failure};
use crate::client::server::Server;
use crate::verb::each::each;
use archivist_core::model::AnyId;
use archivist_shared::config::Scope;
use clap::Args;

#[derive(Args)]
pub struct CancelArgs {
    /// Crawls (c12), snapshots (s345) and runs of hooks (r678)
    #[arg(value_name = "ID", required = true)]
    ids: Vec<AnyId>,
    /// Wait until no process of them is left
    #[arg(long)]
    wait: bool,
}

pub async fn run(args: CancelArgs, scope: &Scope) -> Result<Exit, Failure> {
    let server = Server::reach(scope).await?;
    let cancel = async |id: String| {
        server.call(|| server.proxy().cancel(&id)).await?;
        if args.wait {
            server.call(|| server.proxy().await_units(&id)).await?;
        }
        Ok(format!("{id} cancelled"))
    };
    each(&args.ids, cancel).await
}
