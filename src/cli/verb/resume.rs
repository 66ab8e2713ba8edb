//! `archivist resume`: resumes paused crawls and snapshots.

use crate::client::exit::{Exit, Failure};
use crate::client::fleet::Orders;
use crate::client::server::Server;
use crate::display::batch::for_each;
use archivist_config::Scope;
use archivist_core::model::Owner;
use clap::Args;

/// Resume paused crawls and snapshots
///
/// A snapshot that was paused individually stays paused when its crawl is resumed. Resuming twice
/// is not an error; resuming what is sealed or cancelled is.
#[derive(Args)]
pub struct ResumeArgs {
    /// Crawls (c12) and snapshots (s345)
    #[arg(value_name = "ID", required = true)]
    ids: Vec<Owner>,
}

pub async fn run(args: ResumeArgs, scope: &Scope) -> Result<Exit, Failure> {
    let server = Server::reach(scope).await?;
    let orders = Orders::begin(scope).await;
    let resume = async |id: Owner| {
        let end = orders.check(id, &server).await?;
        let id = id.to_string();
        server.call(|| server.proxy().resume(&id)).await?;
        Ok(format!("{id} resumed{end}"))
    };
    for_each(&args.ids, resume).await
}
