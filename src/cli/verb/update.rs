//! `archivist update`: runs hooks that archived pages have no result of.

use crate::client::exit::{Exit, Failure};
use crate::client::server::Server;
use crate::display::style;
use crate::verb::each::each;
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
        return run_all(scope).await;
    }
    let server = Server::reach(scope).await?;
    let update = async |id: Owner| {
        let id = id.to_string();
        let count = server.call_once(server.proxy().update(&id)).await?;
        Ok(summary(&id, count))
    };
    each(&args.ids, update).await
}

pub async fn run_all(scope: &Scope) -> Result<Exit, Failure> {
    let server = Server::reach(scope).await?;
    let count = server.call_once(server.proxy().update("")).await?;
    style::print(&format!("{}\n", summary("the archive", count)))?;
    Ok(Exit::Done)
}

fn summary(of: &str, count: u32) -> String {
    match count {
        0 => format!("nothing to update: {of} has a result of every enabled hook"),
        1 => format!("1 missing result of {of} queued"),
        n => format!("{n} missing results of {of} queued"),
    }
}

#[cfg(test)]
mod tests {
    use super::summary;

    #[test]
    fn counts_are_printed() {
        assert!(summary("s3", 0).starts_with("nothing to update: s3"));
        assert_eq!(summary("s3", 1), "1 missing result of s3 queued");
        assert_eq!(summary("the archive", 7), "7 missing results of the archive queued");
    }
}
