//! Queueing checks, by hand and for the timers.

use super::history;
use crate::client::exit::{Exit, Failure};
use crate::client::server::{Server, decode};
use crate::display::look;
use archivist_core::model::{CheckKind, RunId};
use archivist_shared::bus::documents::watches::Queued;
use archivist_shared::config::Scope;
use clap::Args;

#[derive(Args)]
pub struct RunArgs {
    /// The watch
    #[arg(value_name = "NAME", value_parser = super::name)]
    name: String,
    /// Only checks of this kind; may be given more than once
    #[arg(long = "kind", value_name = "KIND", value_parser = super::kind)]
    kinds: Vec<CheckKind>,
    /// Return when the checks are done, and show their results
    #[arg(long)]
    wait: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub struct QueueArgs {
    /// KIND-NAME
    #[arg(value_name = "KIND-NAME")]
    check: String,
}

/// For a timer: nobody reads what it prints but the journal.
pub async fn queue(args: QueueArgs, scope: &Scope) -> Result<Exit, Failure> {
    let parsed = args.check.split_once('-');
    let parsed =
        parsed.and_then(|(kind, name)| Some((super::kind(kind).ok()?, super::name(name).ok()?)));
    let Some((kind, name)) = parsed else {
        let what = format!("'{}' is not KIND-NAME, such as status-example", args.check);
        return Err(Failure::usage(what));
    };
    ask(&Server::reach(scope).await?, &name, &[kind]).await?;
    Ok(Exit::Done)
}

/// The same twice is once, so that an answer which gets lost is asked for again.
async fn ask(server: &Server, name: &str, kinds: &[CheckKind]) -> Result<String, Failure> {
    let kinds: Vec<String> = kinds.iter().map(|kind| kind.as_str().to_owned()).collect();
    server.call(|| server.proxy().check(name, &kinds)).await
}

pub async fn run(args: RunArgs, scope: &Scope) -> Result<Exit, Failure> {
    let server = Server::reach(scope).await?;
    let answer = ask(&server, &args.name, &args.kinds).await?;
    let queued: Queued = decode(&answer)?;
    if !args.wait {
        if args.json {
            look::print_json(&answer)?
        } else {
            look::print(&format!("{}\n", told(&queued)))?
        }
        return Ok(Exit::Done);
    }
    let shown = history::fetch(&server, &args.name, Default::default()).await?;
    let open = shown.iter().filter(|check| check.state != "done");
    let kinds = &args.kinds;
    let open = open.filter(|check| kinds.is_empty() || kinds.contains(&check.kind));
    let mut waited: Vec<_> = open.map(|check| check.id).collect();
    for id in &waited {
        // Longer than any check takes; the orchestrator may be restarted meanwhile.
        let id = id.to_string();
        server.wait_for(|| server.proxy().await_check(&id)).await?;
    }
    waited.extend(&queued.queued);
    let first = waited.iter().min().copied().unwrap_or(RunId(0));
    let done = history::fetch_down_to(&server, &args.name, Default::default(), first).await?;
    let done: Vec<_> = done
        .into_iter()
        .filter(|check| waited.contains(&check.id))
        .collect();
    history::print(&done, args.json)?;
    if done.iter().all(|check| check.ok == Some(true)) {
        Ok(Exit::Done)
    } else {
        Ok(Exit::Partly)
    }
}

fn told(queued: &Queued) -> String {
    let of = match (queued.queued.len(), queued.open) {
        (0, 0) => "nothing to check".to_owned(),
        (0, open) => format!("nothing is queued twice: {open} wait or run already"),
        (n, 0) => format!("queued {n} of watch {}", queued.watch),
        (n, open) => format!(
            "queued {n} of watch {}; {open} wait or run already",
            queued.watch
        ),
    };
    match queued.crawl {
        Some(crawl) => format!("{of}; it is archived as {crawl}"),
        None => of,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_core::model::RunId;

    /// No argument of a verb has the name of one that all verbs have.
    #[test]
    fn what_a_timer_asks_for_is_no_instance() {
        let words = ["archivist", "watch", "queue", "status-site"];
        let matches = crate::command().try_get_matches_from(words).unwrap();
        assert!(matches.get_one::<String>("instance").is_none());
    }

    #[test]
    fn what_was_queued_in_words() {
        let queued = Queued {
            watch: "site".into(),
            queued: vec![RunId(1)],
            ..Queued::default()
        };
        assert_eq!(told(&queued), "queued 1 of watch site");
        let twice = Queued {
            open: 2,
            ..Queued::default()
        };
        assert_eq!(
            told(&twice),
            "nothing is queued twice: 2 wait or run already"
        );
    }
}
