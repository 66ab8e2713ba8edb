//! The limits of a crawl: what they leave out, and how they are raised; and the limit of a page.

use crate::database::Users;
use crate::database::{CrawlWork, RunRow, SnapshotWork, Sum};
use crate::engine::state::Engine;
use crate::machine::library::installed_names;
use crate::main_loop;
use crate::main_loop::action::LoopAction;
use crate::main_loop::event::Event;
use crate::main_loop::turn::failed;
use crate::main_loop::turn::{Change, Turn, TurnResult, invalid};
use crate::notices;
use crate::work::bounds::check_size;
use crate::work::ends;
use crate::work::ends::PAGES_PER_TURN;
use archivist_core::model::{Outcome, Owner};
use archivist_core::plan::Notice;
use archivist_core::text::exact_span;
use archivist_plugin::settings::check::check;
use archivist_plugin::settings::derived::is_derived;
use archivist_plugin::{Used, Values};
use archivist_shared::bus::documents::report::AddOptions;
use std::collections::BTreeMap;
use std::time::Duration;

impl Engine {
    /// The time limit of one worker of `owner`. A crawl has none: its own settings limit it.
    pub(crate) fn worker_limit(&self, owner: Owner) -> Option<Duration> {
        match owner {
            Owner::Snapshot(_) => Some(self.settings.snapshot_limit),
            Owner::Crawl(_) => None,
        }
    }

    /// Why no further worker follows `run`, if so: it used its whole time, less what a step of the
    /// clock may hide. systemd reports a slow start or stop as a time limit, too. If the worker was
    /// paused, the used time is unknown.
    pub(crate) fn spent(&self, run: &RunRow) -> Option<String> {
        let limit = self.worker_limit(run.owner)?;
        let took = run.ended_at?.until(run.started_at?);
        let whole = took >= limit - limit / 10;
        let spent = run.outcome == Some(Outcome::TimeLimit) && whole && !run.frozen;
        spent.then(|| format!("not done within SnapshotMaxSec={}", exact_span(limit)))
    }
}

/// Whether a page may start for the first time. If a limit of its crawl is reached, the page
/// and all that wait are left out.
///
/// Of very many that wait a piece is left out, and the crawl has to wait for the next turn,
/// which takes the next piece: calls of others are answered in between.
pub(crate) fn admit(
    turn: &mut Turn<'_>,
    crawl: &CrawlWork,
    snapshot: &SnapshotWork,
) -> TurnResult<bool> {
    if turn.leaving_out.contains(&crawl.id) {
        return Ok(false);
    }
    if snapshot.directory.is_some() {
        return Ok(true);
    }
    let plan = turn.engine.plan(crawl).map_err(invalid)?;
    let began = turn.tx.crawl_began(crawl.id)?.unwrap_or(turn.now);
    let used = Used {
        urls: turn.tx.used(crawl.id, Sum::Pages)?,
        size: turn.tx.crawl_bytes(crawl.id)?,
        time: Duration::from_millis(u64::try_from(turn.now.0 - began.0).unwrap_or(0)),
    };
    let Some(why) = plan.limits.stop_reason(&used) else {
        turn.tx.count_page(crawl.id)?;
        return Ok(true);
    };
    let count = turn.tx.cancel_some_unbegun(crawl.id, &why, turn.now, PAGES_PER_TURN)?;
    if count == PAGES_PER_TURN {
        turn.leaving_out.insert(crawl.id);
        turn.act(LoopAction::Again(Event::Due));
    }
    let id = crawl.id;
    turn.log(move || {
        tracing::info!(archivist_crawl_id = id.0, "crawl {id}: {why}, {count} pages left out")
    });
    turn.changes.insert(Change::Crawl(crawl.id));
    turn.changes.insert(Change::Snapshot { crawl: crawl.id, id: snapshot.id });
    notices::announce_crawl(turn, crawl.id, Notice::Changed)?;
    ends::tidy_crawl(turn, crawl.id)?;
    Ok(false)
}

/// Why no further hook of a page is started: its files are too large.
pub(crate) fn too_large(
    turn: &Turn<'_>,
    crawl: &CrawlWork,
    owner: Owner,
) -> TurnResult<Option<String>> {
    let plan = turn.engine.plan(crawl).map_err(invalid)?;
    if plan.limits.snapshot_size.is_none() || matches!(owner, Owner::Crawl(_)) {
        return Ok(None);
    }
    let size = turn.tx.output_size(owner)?;
    Ok(plan.limits.snapshot_stop_reason(size))
}

/// Changes settings of a crawl, or of one of its pages, for the user with this id; its next hooks
/// and pages use them. Settings decide what hooks run, so the user must be allowed to use the
/// persona of the crawl.
pub(crate) fn amend(
    turn: &mut Turn<'_>,
    id: Owner,
    changes: &BTreeMap<String, String>,
    user: u32,
) -> TurnResult<()> {
    let crawl = main_loop::crawl_of_owner(turn, id)?;
    if installed_names(&crawl).is_some() {
        // Its hooks write the library, whose programs run in the crawls of all users.
        let what = format!("{id} is an installation, which takes no settings");
        return Err(invalid(what));
    }
    let mut users = crawl.users.clone();
    users.insert(user);
    let config = crawl.config.clone().into_iter();
    let (mut derived, mut config): (Values, Values) = config.partition(|(key, _)| is_derived(key));
    turn.engine.check_change(&crawl, user).map_err(invalid)?;
    match id {
        Owner::Crawl(id) => {
            config.extend(changes.clone());
            check_settings(turn, &crawl.plugins, &config, &users)?;
            config.append(&mut derived);
            turn.tx.set_crawl_config(id, &config)?;
        }
        Owner::Snapshot(id) => {
            if let Some(key) = changes.keys().find(|key| is_of_crawl(key)) {
                let crawl = crawl.id;
                let what = format!(
                    "{key} is a setting of the crawl: archivist retry {crawl} --set {key}="
                );
                return Err(invalid(what));
            }
            let mut own = main_loop::snapshot_of(turn, id)?.config;
            own.extend(changes.clone());
            config.extend(own.clone());
            check_settings(turn, &crawl.plugins, &config, &users)?;
            turn.tx.set_snapshot_config(id, &own)?;
        }
    }
    turn.tx.set_crawl_users(crawl.id, &users)?;
    turn.tx.set_foreground(crawl.id, None)?;
    turn.engine.forget(crawl.id);
    Ok(())
}

/// Returns why a page of a new crawl with these options cannot have settings of its own.
pub(crate) fn refuse_own(
    turn: &Turn<'_>,
    options: &AddOptions,
    own: &BTreeMap<String, String>,
    user: u32,
) -> Option<String> {
    if turn.engine.settings.is_in_fleet() {
        return Some("a fleet takes no settings of single pages".to_owned());
    }
    if let Some(key) = own.keys().find(|key| is_of_crawl(key)) {
        return Some(format!("{key} is a setting of the crawl"));
    }
    let mut config = options.config.clone();
    config.extend(own.clone());
    let checked = check_settings(turn, &options.plugins, &config, &Users::from([user]));
    checked.err().map(|error| error.to_string())
}

/// Whether a setting has its effect on the crawl as a whole: on its pages, or on the persona that is
/// copied before the first one.
fn is_of_crawl(key: &str) -> bool {
    const PREFIXES: [&str; 5] =
        ["ACTIVE_PERSONA", "CRAWL_", "DEFAULT_PERSONA", "URL_ALLOW", "URL_DENY"];
    let older = ["URL_BLACKLIST", "URL_WHITELIST"];
    older.contains(&key) || PREFIXES.iter().any(|prefix| key.starts_with(prefix))
}

pub(crate) fn check_settings(
    turn: &Turn<'_>,
    plugins: &[String],
    config: &BTreeMap<String, String>,
    users: &Users,
) -> TurnResult<()> {
    check_size(plugins, config).map_err(invalid)?;
    let engine = &turn.engine;
    if let Some(error) = check(&engine.catalogue, config).into_iter().next() {
        return Err(invalid(format!("{error}; see: archivist plugins")));
    }
    let chosen = engine.persona(config, users).map_err(invalid)?;
    let persona = chosen.as_deref();
    engine.select(plugins, config, persona).map_err(invalid)?;
    let own = engine.persona_settings(persona).map_err(invalid)?;
    turn.require_facts()?;
    engine.url_filter(config, &own).map_err(invalid)?;
    engine.crawl_limits(config, &own).map_err(invalid)?;
    engine.check_network().map_err(failed)
}
