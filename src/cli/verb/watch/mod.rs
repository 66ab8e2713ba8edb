//! `archivist watch`: sites that are checked repeatedly.

mod edit;
mod history;
mod list;
mod plot;
mod queue;

use crate::client::exit::{Exit, Failure};
use archivist_config::Scope;
use archivist_core::model::CheckKind;
use clap::{Args, Subcommand};

/// Manage watches: list, add and remove them, run their checks, show the results
///
/// Watches are declared in archivist.watch(5) files.
#[derive(Args)]
pub struct WatchArgs {
    #[command(subcommand)]
    verb: WatchVerb,
}

#[derive(Subcommand)]
enum WatchVerb {
    List(list::ListArgs),
    Show(list::ShowArgs),
    Add(edit::WatchAddArgs),
    Remove(edit::RemoveArgs),
    Run(queue::RunArgs),
    Cancel(queue::CancelArgs),
    History(history::HistoryArgs),
    #[command(hide = true)]
    Queue(queue::QueueArgs),
}

pub async fn run(args: WatchArgs, scope: &Scope) -> Result<Exit, Failure> {
    match args.verb {
        WatchVerb::List(args) => list::list(args, scope).await,
        WatchVerb::Show(args) => list::show(args, scope).await,
        WatchVerb::Add(args) => edit::add(args, scope).await,
        WatchVerb::Remove(args) => edit::remove(args, scope).await,
        WatchVerb::Run(args) => queue::run(args, scope).await,
        WatchVerb::Cancel(args) => queue::cancel(args, scope).await,
        WatchVerb::History(args) => history::run(args, scope).await,
        WatchVerb::Queue(args) => queue::queue(args, scope).await,
    }
}

fn kind(text: &str) -> Result<CheckKind, String> {
    let known = CheckKind::SCHEDULED.map(CheckKind::as_str);
    let kind = CheckKind::parse(text).filter(|kind| *kind != CheckKind::Alert);
    kind.ok_or_else(|| format!("there are {}", known.join(", ")))
}

fn name(text: &str) -> Result<String, String> {
    if archivist_config::declare::watch::is_name(text) {
        Ok(text.to_owned())
    } else {
        Err(format!("a watch name must be {}", archivist_config::declare::watch::NAME_ALLOWED))
    }
}
