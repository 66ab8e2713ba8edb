//! Queues checks, for users and for timers.

use super::history;
use crate::client::exit::{Exit, Failure};
use crate::client::server::{Server, decode};
use crate::display::style;
use archivist_config::Scope;
use archivist_core::model::{CheckKind, RunId};
use archivist_core::text::clean;
use archivist_shared::bus::documents::watches::{Check, Queued, Watch};
use archivist_shared::bus::wire::WatchesProxy;
use clap::Args;

/// Queue checks of a watch now
#[derive(Args)]
pub struct RunArgs {
    /// Name of the watch
    #[arg(value_name = "NAME", value_parser = super::name, required_unless_present = "all")]
    name: Option<String>,
    /// Queue checks of all watches
    #[arg(long, conflicts_with = "name")]
    all: bool,
    /// Queue only checks of this kind: status, lighthouse, crawl or archive; may be given more than
    /// once
    ///
    /// Without it, checks of all kinds that have a schedule are queued.
    #[arg(long = "kind", value_name = "KIND", value_parser = super::kind)]
    kinds: Vec<CheckKind>,
    /// Wait for the results and print them
    ///
    /// Checks that already wait or run are included. The exit status is 3 unless all of them are
    /// good.
    #[arg(long)]
    wait: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// End the checks of a watch that wait or run
///
/// Their results say "interrupted by user", which is neither up nor down. The schedules of the watch stay: to
/// stop them, archivist watch remove.
#[derive(Args)]
pub struct CancelArgs {
    /// Name of the watch
    #[arg(value_name = "NAME", value_parser = super::name)]
    name: String,
}

/// Queue the check of a timer (what archivist-watch@.service runs)
#[derive(Args)]
pub struct QueueArgs {
    /// KIND-NAME
    #[arg(value_name = "KIND-NAME")]
    check: String,
}

/// For a timer: the output goes to the journal.
pub async fn queue(args: QueueArgs, scope: &Scope) -> Result<Exit, Failure> {
    let parsed = args.check.split_once('-');
    let parsed =
        parsed.and_then(|(kind, name)| Some((super::kind(kind).ok()?, super::name(name).ok()?)));
    let Some((kind, name)) = parsed else {
        let what = format!("'{}' must be KIND-NAME, such as status-example", args.check);
        return Err(Failure::usage(what));
    };
    ask(&Server::reach(scope).await?, &name, &[kind]).await?;
    Ok(Exit::Done)
}

pub async fn cancel(args: CancelArgs, scope: &Scope) -> Result<Exit, Failure> {
    let server = Server::reach(scope).await?;
    server
        .call(|| async { server.feature::<WatchesProxy<'_>>().await?.cancel(&args.name).await })
        .await?;
    style::print(&format!("no check of watch {} waits or runs\n", args.name))?;
    Ok(Exit::Done)
}

/// Queueing a check twice queues it once, so a call whose answer was lost can be repeated.
pub async fn ask(server: &Server, name: &str, kinds: &[CheckKind]) -> Result<String, Failure> {
    let kinds: Vec<String> = kinds.iter().map(|kind| kind.as_str().to_owned()).collect();
    server
        .call(|| async { server.feature::<WatchesProxy<'_>>().await?.check(name, &kinds).await })
        .await
}

pub async fn run(args: RunArgs, scope: &Scope) -> Result<Exit, Failure> {
    let server = Server::reach(scope).await?;
    let names = names(&args, &server).await?;
    if names.is_empty() {
        style::note("no watches; see: archivist watch add --help");
        return Ok(Exit::Done);
    }
    let mut exit = Exit::Done;
    let mut queued = Vec::new();
    for name in names {
        match ask(&server, &name, &args.kinds).await {
            Ok(answer) => queued.push(decode::<Queued>(&answer)?),
            // An error of one watch does not affect the others.
            Err(failure) if args.all => {
                eprintln!("archivist: {name}: {}", clean(failure.message()));
                exit = Exit::Partly;
            }
            Err(failure) => return Err(failure),
        }
    }
    if args.wait {
        let done = ended(&server, &queued).await?;
        if done.is_empty() && !args.json {
            style::print(&summaries(&queued))?;
        } else {
            history::print(&done, args.json)?;
        }
        let all_good = done.iter().all(|check| check.ok == Some(true));
        return Ok(if all_good { exit } else { Exit::Partly });
    }
    if args.json {
        let text = match queued.as_slice() {
            [one] if !args.all => serde_json::to_string(one),
            all => serde_json::to_string(all),
        };
        style::print_json(&text.unwrap_or_default())?;
    } else {
        style::print(&summaries(&queued))?;
    }
    Ok(exit)
}

async fn names(args: &RunArgs, server: &Server) -> Result<Vec<String>, Failure> {
    if let Some(name) = &args.name {
        return Ok(vec![name.clone()]);
    }
    let watches: Vec<Watch> =
        server.ask(|| async { server.feature::<WatchesProxy<'_>>().await?.list("").await }).await?;
    Ok(watches.into_iter().map(|watch| watch.name).collect())
}

/// Waits for the checks of these watches that were queued or open, and returns their results. Their
/// ids come from the answer that queued them: a check may end at any time after it.
async fn ended(server: &Server, queued: &[Queued]) -> Result<Vec<Check>, Failure> {
    let mut all = Vec::new();
    for queued in queued {
        let waited: Vec<RunId> = queued.queued.iter().chain(&queued.open_ids).copied().collect();
        for id in &waited {
            // Longer than any check takes; the orchestrator may restart in the meantime.
            let id = id.to_string();
            server
                .wait_for(|| async { server.feature::<WatchesProxy<'_>>().await?.wait(&id).await })
                .await?;
        }
        let Some(first) = waited.iter().min().copied() else {
            continue;
        };
        let filter = Default::default();
        let done = history::fetch_down_to(server, &queued.watch, filter, first).await?;
        all.extend(done.into_iter().filter(|check| waited.contains(&check.id)));
    }
    Ok(all)
}

fn summaries(queued: &[Queued]) -> String {
    queued.iter().map(|queued| format!("{}\n", summary(queued))).collect()
}

fn summary(queued: &Queued) -> String {
    let of = match (queued.queued.len(), queued.open) {
        (0, 0) => format!("nothing to check in watch {}", queued.watch),
        (0, open) => {
            format!("queued nothing of watch {}: {open} already wait or run", queued.watch)
        }
        (n, 0) => format!("queued {n} of watch {}", queued.watch),
        (n, open) => format!("queued {n} of watch {}; {open} already wait or run", queued.watch),
    };
    match queued.crawl {
        Some(crawl) => format!("{of}; archiving as {crawl}"),
        None => of,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_core::model::RunId;

    /// No argument of a verb has the name of one that all verbs have.
    #[test]
    fn the_argument_of_a_timer_is_kind_and_name() {
        let words = ["archivist", "watch", "queue", "status-site"];
        let matches = crate::command().try_get_matches_from(words).unwrap();
        assert!(matches.get_one::<String>("instance").is_none());
    }

    #[test]
    fn queued_and_open_checks_are_counted() {
        let queued = Queued { watch: "site".into(), queued: vec![RunId(1)], ..Queued::default() };
        assert_eq!(summary(&queued), "queued 1 of watch site");
        let twice = Queued { watch: "site".into(), open: 2, ..Queued::default() };
        assert_eq!(summary(&twice), "queued nothing of watch site: 2 already wait or run");
    }
}
