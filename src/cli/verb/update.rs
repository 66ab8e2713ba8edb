//! `archivist update`: runs hooks that archived pages have no result of.

use crate::client::exit::{Exit, Failure};
use crate::client::server::Server;
use crate::display::batch::for_each;
use crate::queue::{update_all, updated};
use archivist_config::Scope;
use archivist_core::model::Owner;
use clap::Args;

/// Run hooks that archived pages have no result of, such as those of new plugins
///
/// On each sealed page of these crawls, of these snapshots, or without an id of the whole archive,
/// run the hooks of enabled plugins that it has no result of, because the plugin was installed or
/// enabled later or its program was missing. A crawl that selected its plugins keeps its selection;
/// archivist retry --hook adds to it. Pages of cancelled crawls are left alone. Failed results are
/// for archivist retry.
#[derive(Args)]
pub struct UpdateArgs {
    /// Crawls (c12) and snapshots (s345); without any, the whole archive
    #[arg(value_name = "ID")]
    ids: Vec<Owner>,
}

pub async fn run(args: UpdateArgs, scope: &Scope) -> Result<Exit, Failure> {
    if args.ids.is_empty() {
        return update_all(scope).await;
    }
    let server = Server::reach(scope).await?;
    let update = async |id: Owner| {
        let id = id.to_string();
        let count = server.call_once(server.proxy().update(&id)).await?;
        Ok(updated(&id, count))
    };
    for_each(&args.ids, update).await
}
