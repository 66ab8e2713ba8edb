//! `archivist cancel`: cancels crawls and snapshots.

use crate::client::exit::{Exit, Failure};
use crate::client::server::Server;
use crate::verb::each::each;
use archivist_core::model::Owner;
use archivist_shared::config::Scope;
use clap::Args;

#[derive(Args)]
pub struct CancelArgs {
    /// Crawls (c12) and snapshots (s345)
    #[arg(value_name = "ID", required = true)]
    ids: Vec<Owner>,
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
