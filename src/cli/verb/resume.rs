//! `archivist resume`: resumes paused crawls and snapshots.

use crate::client::exit::{Exit, Failure};
use crate::client::server::Server;
use crate::verb::each::each;
use archivist_core::model::Owner;
use archivist_shared::config::Scope;
use clap::Args;

#[derive(Args)]
pub struct ResumeArgs {
    /// Crawls (c12) and snapshots (s345)
    #[arg(value_name = "ID", required = true)]
    ids: Vec<Owner>,
}

pub async fn run(args: ResumeArgs, scope: &Scope) -> Result<Exit, Failure> {
    let server = Server::reach(scope).await?;
    let resume = async |id: String| {
        server.call(|| server.proxy().resume(&id)).await?;
        Ok(format!("{id} resumed"))
    };
    each(&args.ids, resume).await
}
