//! Alerts when a site goes down or comes back: a command of the watch, as a unit like every other
//! check, so that it has a time limit, a row and a journal.

use crate::main_loop::log::{LogEntry, WatchLog};
use crate::main_loop::turn::{Turn, TurnResult};
use crate::store::{CheckRow, NewCheck};
use crate::watch::checks::AlertRequest;
use archivist_core::model::{CheckKind, CheckRecord, Flip, Health, without_userinfo};
use archivist_shared::declare::watch::{Alert, Watch};

/// The command of an alert that only starts another unit, which comes with it.
const NO_COMMAND: &str = "/bin/true";

impl Turn<'_> {
    /// Counts a status check, and queues the alert if the site went down or came back with it.
    pub(crate) fn note_health(
        &mut self,
        check: &CheckRow,
        ok: bool,
        record: &CheckRecord,
        watch: Option<&Watch>,
    ) -> TurnResult<()> {
        let before = self.tx.health(&check.watch, &check.url)?;
        if ok && before == Health::default() {
            return Ok(());
        }
        // Its file may have been removed or spoilt while the check ran.
        let watch = watch.cloned().unwrap_or_else(|| Watch::new(&check.watch));
        let (health, flip) = before.after(ok, watch.down_after, self.now);
        self.tx.set_health(&check.watch, &check.url, &health)?;
        let Some(flip) = flip else { return Ok(()) };
        let since = health.down_since.or(before.down_since).unwrap_or(self.now);
        let why = record.error.as_deref().unwrap_or_default();
        let code = record.status_code.unwrap_or_default();
        let url = without_userinfo(&check.url);
        let log = match flip {
            Flip::Down => WatchLog::SiteDown {
                url,
                status_code: code,
                since,
                error: why.to_owned(),
            },
            Flip::Up => WatchLog::SiteUp { url, since },
        };
        self.log(LogEntry::Watch(check.watch.clone(), log));
        let alert = match flip {
            Flip::Down => watch.on_down.as_ref(),
            Flip::Up => watch.on_recovery.as_ref(),
        };
        let Some(alert) = alert else { return Ok(()) };
        let (argv, wants) = match alert {
            Alert::Command(argv) => (argv.clone(), Vec::new()),
            Alert::Unit(unit) => {
                let unit = Alert::instance(unit, &check.watch);
                (vec![NO_COMMAND.to_owned()], vec![unit])
            }
        };
        let clean = |text: &str| text.replace(char::is_control, " ");
        let environment = [
            ("ARCHIVIST_WATCH", check.watch.clone()),
            ("ARCHIVIST_URL", check.url.clone()),
            ("ARCHIVIST_STATE", flip.as_str().to_owned()),
            ("ARCHIVIST_SINCE", since.to_string()),
            ("ARCHIVIST_STATUS_CODE", code.to_string()),
            ("ARCHIVIST_ERROR", clean(why)),
        ];
        let request = serde_json::to_string(&AlertRequest {
            argv,
            environment: environment
                .map(|(key, value)| (key.to_owned(), value))
                .into(),
            wants,
        })?;
        self.tx.queue_check(&NewCheck {
            watch: &check.watch,
            kind: CheckKind::Alert,
            url: &check.url,
            request: &request,
            keep: watch.retention(CheckKind::Alert),
            now: self.now,
        })?;
        Ok(())
    }
}
