//! What alerts are about, and the units or commands that the configuration names for them.

use crate::alert::{AlertRequest, NO_WATCH, NewCheck};
use crate::main_loop::action::LoopAction;
use crate::main_loop::action::{Action, CallerAction};
use crate::main_loop::event::Event;
use crate::main_loop::turn::{Turn, TurnResult};
use crate::notices;
use crate::notices::announce::is_any_open;
use archivist_config::Settings;
use archivist_config::alert::Alert;
use archivist_core::model::{CheckKind, CrawlId, without_userinfo};
use archivist_core::plan::becomes_idle;
use archivist_core::plan::{CrawlEnd, Notice, Occasion};
use archivist_shared::bus::signals::Signal;
use std::time::Duration;

/// The command of an alert that only starts another unit, which comes with it.
const NO_COMMAND: &str = "/bin/true";
/// How long the row of an alert of the orchestrator stays: its journal says more.
const ROW_STAYS: Duration = Duration::from_secs(86_400);

/// What `alert` starts about the watch or crawl of this name.
pub(crate) fn request(alert: &Alert, name: &str, environment: Vec<(&str, String)>) -> AlertRequest {
    let (argv, wants) = match alert {
        Alert::Command(argv) => (argv.clone(), Vec::new()),
        Alert::Unit(unit) => {
            let unit = Alert::instance(unit, name);
            (vec![NO_COMMAND.to_owned()], vec![unit])
        }
    };
    let clean = |text: String| text.replace(char::is_control, " ");
    let environment = environment.into_iter();
    AlertRequest {
        argv,
        environment: environment.map(|(key, value)| (key.to_owned(), clean(value))).collect(),
        wants,
        crawl: None,
        url: String::new(),
    }
}

/// The alert that the configuration has for an occasion.
fn configured(settings: &Settings, occasion: Occasion) -> Option<&Alert> {
    match occasion {
        Occasion::Sealed => settings.on_sealed.as_ref(),
        Occasion::Failed => settings.on_failed.as_ref(),
        Occasion::Idle => settings.on_idle.as_ref(),
    }
}

/// Reports that a crawl was sealed, and queues the alert of `OnSealed=` or `OnFailed=`.
pub(crate) fn crawl_sealed(turn: &mut Turn<'_>, id: CrawlId) -> TurnResult<()> {
    notices::announce_crawl(turn, id, Notice::Sealed)?;
    let settings = &turn.engine.settings;
    if settings.on_sealed.is_none() && settings.on_failed.is_none() {
        return Ok(());
    }
    let (status, reason, url) = turn.tx.crawl_state(id)?;
    let results = turn.tx.counts("result", Some(id))?;
    let count = |status: &str| results.get(status).copied().unwrap_or(0);
    let end = CrawlEnd {
        status,
        has_reason: reason.is_some(),
        failed_results: count("failed"),
        bad_pages: turn.tx.bad_pages(id)?,
    };
    let Some(occasion) = Occasion::of(Notice::Sealed, &end) else {
        return Ok(());
    };
    let environment = vec![
        ("ARCHIVIST_CRAWL", id.to_string()),
        ("ARCHIVIST_URL", without_userinfo(&url)),
        ("ARCHIVIST_REASON", reason.unwrap_or_default()),
        ("ARCHIVIST_SUCCEEDED", count("succeeded").to_string()),
        ("ARCHIVIST_FAILED", count("failed").to_string()),
    ];
    queue_alert(turn, occasion, Some((id, &url)), environment)
}

/// Queues the alert of `OnIdle=`, for the next turn.
fn crawls_are_over(turn: &mut Turn<'_>) -> TurnResult<()> {
    if turn.engine.settings.on_idle.is_some() {
        queue_alert(turn, Occasion::Idle, None, Vec::new())?;
        turn.act(LoopAction::Again(Event::Due));
    }
    Ok(())
}

/// Queues the start of a unit that comes with the package.
pub(crate) fn queue_unit(turn: &mut Turn<'_>, unit: &str) -> TurnResult<()> {
    let alert = Alert::Unit(unit.to_owned());
    turn.tx.queue_check(&NewCheck {
        watch: NO_WATCH,
        kind: CheckKind::Alert,
        url: unit,
        request: &serde_json::to_string(&request(&alert, unit, Vec::new()))?,
        keep: ROW_STAYS,
        now: turn.now,
    })?;
    turn.act(LoopAction::Again(Event::Due));
    Ok(())
}

/// Queues the alert of an occasion, if the configuration has one.
fn queue_alert(
    turn: &mut Turn<'_>,
    occasion: Occasion,
    about: Option<(CrawlId, &str)>,
    mut environment: Vec<(&str, String)>,
) -> TurnResult<()> {
    let Some(alert) = configured(&turn.engine.settings, occasion) else {
        return Ok(());
    };
    environment.push(("ARCHIVIST_STATE", occasion.as_str().to_owned()));
    let id = about.map(|(id, _)| id.to_string());
    let name = id.as_deref().unwrap_or(occasion.as_str());
    let request = AlertRequest {
        crawl: about.map(|(id, _)| id),
        url: about.map(|(_, url)| url.to_owned()).unwrap_or_default(),
        ..request(alert, name, environment)
    };
    turn.tx.queue_check(&NewCheck {
        watch: NO_WATCH,
        kind: CheckKind::Alert,
        url: occasion.as_str(),
        request: &serde_json::to_string(&request)?,
        keep: ROW_STAYS,
        now: turn.now,
    })?;
    Ok(())
}

/// Queues the signal that the last open crawl has ended, and the alert of `OnIdle=`, if it ended
/// in this turn.
pub(crate) fn queue_idle_alert(turn: &mut Turn<'_>) -> TurnResult<()> {
    let crawls = turn.tx.counts("crawl", None)?;
    if becomes_idle(turn.actions.iter().any(ends_crawl), is_any_open(&crawls)) {
        turn.act(CallerAction::Announce(Signal::Idle));
        crawls_are_over(turn)?;
    }
    Ok(())
}

fn ends_crawl(action: &Action) -> bool {
    matches!(action, Action::Caller(CallerAction::Announce(Signal::Crawl { notice, .. })) if notice.is_end())
}
