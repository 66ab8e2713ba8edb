//! The state of the orchestrator as a whole.

use crate::machine::notify;
use crate::main_loop::turn::{Turn, TurnResult};
use crate::runner::reported::reported;
use archivist_core::model::{Owner, Runner, without_userinfo};
use archivist_shared::bus::documents::report;
use archivist_shared::bus::documents::report::Filter;

/// Pages whose replay does not hold that are named.
const UNFAITHFUL_SHOWN: u32 = 5;

pub(crate) fn status(turn: &Turn<'_>) -> TurnResult<report::Status> {
    let open = Filter { status: Some("open".into()), ..Filter::default() };
    let running = turn.tx.list_runs(&open)?;
    let (queued, units) = (turn.tx.queued_run_counts()?, turn.tx.open_run_counts()?);
    let (crawls, snapshots) = (turn.tx.counts("crawl", None)?, turn.tx.counts("snapshot", None)?);
    let outlook = turn.rooms.due(turn)?.outlook;
    let mut status = report::Status {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        systemd: turn.engine.systemd.clone(),
        data: turn.engine.scope.data_dir().to_string_lossy().into_owned(),
        line: notify::line(&crawls, &snapshots, &queued, &units),
        crawls,
        snapshots,
        incomplete: turn.tx.incomplete_pages(None)?,
        unfaithful: turn.tx.unfaithful_pages(UNFAITHFUL_SHOWN)?,
        running,
        uses: turn.tx.uses()?.into_values().sum(),
        ids: turn.tx.highest_ids()?,
        next: outlook.next,
        runners: runners(turn)?,
        commands: commands(turn)?,
        blocked: outlook.blocked,
        network_outage: turn.engine.network.borrow().outage().map(ToString::to_string),
        network: turn.engine.network_line(),
        address_filter: turn.engine.filter_holds,
        deleting: turn.tx.deletions()?,
        failing_removals: turn.tx.failing_removals()?,
        undated: turn.tx.undated_pages(turn.now)?,
        ..report::Status::default()
    };
    for part in turn.rooms.parts().status {
        part(turn, &mut status)?;
    }
    Ok(status)
}

fn runners(turn: &Turn<'_>) -> TurnResult<Vec<report::Runner>> {
    let Some(me) = &turn.engine.me else {
        return Ok(Vec::new());
    };
    let runners = turn.tx.runners()?;
    let is_alive = |runner: &Runner| turn.engine.facts.is_running(runner.rank);
    let mut reported = reported(&runners, me.rank, &me.place, is_alive);
    let own = reported.iter_mut().find(|runner| runner.state == "active");
    if let Some(own) = own {
        own.directory = Some(me.directory.clone()).filter(|directory| !directory.is_empty());
    }
    Ok(reported)
}

/// The registered commands, with the URLs of what they work on.
fn commands(turn: &Turn<'_>) -> TurnResult<Vec<report::Command>> {
    let mut commands = Vec::new();
    for command in turn.engine.commands.iter() {
        let registration = &command.registration;
        let mut targets = Vec::new();
        for id in &registration.targets {
            targets.extend(target(turn, *id)?);
        }
        commands.push(report::Command {
            verb: registration.verb.clone(),
            targets,
            directory: registration.directory.clone(),
            pid: command.pid,
            user: command.user,
            since: command.since,
        });
    }
    Ok(commands)
}

/// None if there is no such crawl or snapshot.
fn target(turn: &Turn<'_>, id: Owner) -> TurnResult<Option<report::Target>> {
    let found = match id {
        Owner::Crawl(id) => turn.tx.crawl(id)?.map(|crawl| (crawl.id, crawl.url)),
        Owner::Snapshot(id) => turn.tx.snapshot(id)?.map(|page| (page.crawl, page.url)),
    };
    Ok(found.map(|(crawl, url)| report::Target { id, crawl, url: without_userinfo(&url) }))
}
