//! `archivist cancel`: gives up a crawl or snapshot.

use super::exit::{Exit, Failure};
use super::look;
use super::server::Server;
use crate::config::Scope;
use crate::model::Owner;
use clap::Args;

#[derive(Args)]
pub struct CancelArgs {
    /// A crawl (c12) or a snapshot (s345)
    #[arg(value_name = "ID")]
    id: Owner,
}

pub async fn run(args: CancelArgs, scope: &Scope) -> Result<Exit, Failure> {
    let server = Server::reach(scope).await?;
    let id = args.id.to_string();
    server.call(server.proxy().cancel(&id)).await?;
    look::print(&format!("{id} cancelled\n"))?;
    Ok(Exit::Done)
}
