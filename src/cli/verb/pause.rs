//! `archivist pause`: pauses crawls and snapshots.

use crate::client::exit::{Exit, Failure};
use crate::client::fleet::Orders;
use crate::client::server::Server;
use crate::verb::each::each;
use archivist_config::Scope;
use archivist_core::model::Owner;
use clap::Args;

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
    each(&args.ids, pause).await
}
