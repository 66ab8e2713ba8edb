//! `archivist tag`: give pages and crawls that are there other tags.

use crate::client::exit::{Exit, Failure};
use crate::client::server::Server;
use crate::display::batch::for_each;
use archivist_config::Scope;
use archivist_core::model::Owner;
use clap::Args;

/// Give pages and crawls that are there other tags
///
/// archivist list and search know the new tags at once, and so do Retention= and Quota=: a page that loses the tag of a
/// rule is no longer kept, or deleted, by that rule. The page about a snapshot, the lists of the archive as HTML, and
/// copies in the store keep the tags that the page had when it was archived.
///
/// A tag of a crawl is one of all its pages. Nodes of a fleet change no tags.
#[derive(Args)]
pub struct TagArgs {
    /// Crawls (c12) and snapshots (s345)
    #[arg(value_name = "ID", required_unless_present = "rename")]
    ids: Vec<Owner>,
    /// Add a tag; may be given more than once
    #[arg(long, value_name = "T")]
    add: Vec<String>,
    /// Remove a tag, of a crawl also from its pages; may be given more than once
    #[arg(long, value_name = "T")]
    remove: Vec<String>,
    /// Give a tag of the archive another name, which no page has as a tag; root alone may
    #[arg(long, num_args = 2, value_names = ["OLD", "NEW"], conflicts_with_all = ["ids", "add", "remove"])]
    rename: Option<Vec<String>>,
}

pub async fn run(args: TagArgs, scope: &Scope) -> Result<Exit, Failure> {
    if let Some([old, new]) = args.rename.as_deref() {
        let server = Server::reach(scope).await?;
        let pages = server.call(|| server.proxy().rename_tag(old, new)).await?;
        println!(
            "{pages} page{} with the tag {new}, which was {old}",
            if pages == 1 { "" } else { "s" }
        );
        return Ok(Exit::Done);
    }
    if args.add.is_empty() && args.remove.is_empty() {
        return Err(Failure::usage("no tag to change: name one with --add or --remove".to_owned()));
    }
    let server = Server::reach(scope).await?;
    let change = async |id: Owner| {
        let name = id.to_string();
        let answer = server.call(|| server.proxy().tag(&name, &args.add, &args.remove)).await?;
        Ok(match answer {
            0 => format!("{id} has these tags already"),
            1 => format!("{id}: 1 tag changed"),
            count => format!("{id}: {count} tags changed"),
        })
    };
    for_each(&args.ids, change).await
}
