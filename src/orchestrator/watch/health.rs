//! Sites that go down and come back, as status checks find out.

use crate::alert::{CheckRow, NewCheck, occasion};
use crate::main_loop::turn::{Turn, TurnResult};
use archivist_config::declare::watch::Watch;
use archivist_core::model::{CheckKind, CheckRecord, Flip, Health, without_userinfo};
use archivist_shared::journal::message;

/// Counts a status check, and queues the alert if the site went down or came back with it.
pub(super) fn note_health(
    turn: &mut Turn<'_>,
    check: &CheckRow,
    ok: bool,
    record: &CheckRecord,
    watch: Option<&Watch>,
) -> TurnResult<()> {
    let before = turn.tx.health(&check.watch, &check.url)?;
    if ok && before == Health::default() {
        return Ok(());
    }
    // Its file may have been removed or spoilt while the check ran.
    let watch = watch.cloned().unwrap_or_else(|| Watch::new(&check.watch));
    let (health, flip) = before.after(ok, watch.down_after, turn.now);
    turn.tx.set_health(&check.watch, &check.url, &health)?;
    let Some(flip) = flip else { return Ok(()) };
    let since = health.down_since.or(before.down_since).unwrap_or(turn.now);
    let why = record.error.as_deref().unwrap_or_default();
    let code = record.status_code.unwrap_or_default();
    let url = without_userinfo(&check.url);
    let (watched, error) = (check.watch.clone(), why.to_owned());
    turn.log(move || match flip {
        Flip::Down => tracing::warn!(
            message_id = message::SITE_DOWN,
            archivist_watch = watched.as_str(),
            archivist_url = url.as_str(),
            archivist_status_code = code,
            "{url} is down since {since}: {code} {error}"
        ),
        Flip::Up => tracing::info!(
            message_id = message::SITE_UP,
            archivist_watch = watched.as_str(),
            archivist_url = url.as_str(),
            archivist_since = %since,
            "{url} is up again, it was down since {since}"
        ),
    });
    let wanted = match flip {
        Flip::Down => watch.on_down.as_ref(),
        Flip::Up => watch.on_recovery.as_ref(),
    };
    let Some(wanted) = wanted else { return Ok(()) };
    let environment = vec![
        ("ARCHIVIST_WATCH", check.watch.clone()),
        ("ARCHIVIST_URL", check.url.clone()),
        ("ARCHIVIST_STATE", flip.as_str().to_owned()),
        ("ARCHIVIST_SINCE", since.to_string()),
        ("ARCHIVIST_STATUS_CODE", code.to_string()),
        ("ARCHIVIST_ERROR", why.to_owned()),
    ];
    let request = serde_json::to_string(&occasion::request(wanted, &check.watch, environment))?;
    turn.tx.queue_check(&NewCheck {
        watch: &check.watch,
        kind: CheckKind::Alert,
        url: &check.url,
        request: &request,
        keep: watch.retention(CheckKind::Alert),
        now: turn.now,
    })?;
    Ok(())
}
