//! `archivist pause`: holds crawls and snapshots up.

use super::each::each;
use super::exit::{Exit, Failure};
use super::server::Server;
use crate::config::Scope;
use crate::model::Owner;
use clap::Args;

#[derive(Args)]
pub struct PauseArgs {
    /// Crawls (c12) and snapshots (s345)
    #[arg(value_name = "ID", required = true)]
    ids: Vec<Owner>,
}

pub async fn run(args: PauseArgs, scope: &Scope) -> Result<Exit, Failure> {
    let server = Server::reach(scope).await?;
    let pause = async |id: String| {
        server.call(|| server.proxy().pause(&id)).await?;
        Ok(format!("{id} paused"))
    };
    each(&args.ids, pause).await
}
