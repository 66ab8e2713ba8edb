//! `archivist resume`: lets paused crawls and snapshots go on.

use super::each::each;
use super::exit::{Exit, Failure};
use super::server::Server;
use crate::config::Scope;
use crate::model::Owner;
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
