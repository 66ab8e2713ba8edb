//! The state of the orchestrator as a whole.

use crate::main_loop::notify;
use crate::main_loop::turn::{Turn, TurnResult};
use crate::query::documents::documents;
use crate::runner::gate;
use archivist_core::model::{Owner, Runner, without_userinfo};
use archivist_shared::bus::documents::report;
use archivist_shared::bus::documents::report::Filter;
use archivist_shared::bus::documents::watches::Certificate;

/// Milliseconds of a day.
const DAY: i64 = 86_400_000;

impl Turn<'_> {
    pub(crate) fn status(&self) -> TurnResult<report::Status> {
        let open = Filter {
            status: Some("open".into()),
            ..Filter::default()
        };
        let running: Vec<report::Run> = documents(self.tx.list_runs(&open)?);
        let (crawls, snapshots) = (
            self.tx.counts("crawl", None)?,
            self.tx.counts("snapshot", None)?,
        );
        let view = self.view(&self.engine.limits())?;
        Ok(report::Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            systemd: self.engine.systemd.clone(),
            data: self.engine.scope.data_dir().to_string_lossy().into_owned(),
            line: notify::line(
                &crawls,
                &snapshots,
                &notify::units(&running),
                self.tx.check_counts()?,
            ),
            crawls,
            snapshots,
            incomplete: self.tx.incomplete_pages(None)?,
            running,
            uses: self.tx.uses()?.into_values().sum(),
            ids: self.tx.highest_ids()?,
            next: view.next_due,
            runners: self.runners()?,
            commands: self.commands()?,
            blocked: view.blocked().map(str::to_owned),
            network: self.engine.network_line(),
            address_filter: self.engine.filter_holds,
            fleet: None,
            certificates: self.certificates()?,
            store: self.store_status()?,
        })
    }

    /// Returns the certificates that have expired or expire soon, the next first.
    fn certificates(&self) -> TurnResult<Vec<Certificate>> {
        let entries = self.tx.certificates(self.now)?.into_iter();
        let mut soon: Vec<Certificate> = entries
            .map(|(watch, url, expires)| Certificate {
                watch,
                url: without_userinfo(&url),
                expires,
                days: (expires.0 - self.now.0).div_euclid(DAY),
            })
            .collect();
        soon.sort_by_key(|certificate| certificate.expires);
        Ok(soon)
    }

    fn runners(&self) -> TurnResult<Vec<report::Runner>> {
        let Some(me) = &self.engine.me else {
            return Ok(Vec::new());
        };
        let runners = self.tx.runners()?;
        let is_alive = |runner: &Runner| self.engine.facts.is_running(runner.rank);
        let mut reported = gate::reported(&runners, me.rank, &me.place, is_alive);
        let own = reported.iter_mut().find(|runner| runner.state == "active");
        if let Some(own) = own {
            own.directory = Some(me.directory.clone()).filter(|directory| !directory.is_empty());
        }
        Ok(reported)
    }

    /// The registered commands, with the URLs of what they work on.
    fn commands(&self) -> TurnResult<Vec<report::Command>> {
        let mut commands = Vec::new();
        for command in self.engine.commands.iter() {
            let registration = &command.registration;
            let mut targets = Vec::new();
            for id in &registration.targets {
                targets.extend(self.target(*id)?);
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
    fn target(&self, id: Owner) -> TurnResult<Option<report::Target>> {
        let found = match id {
            Owner::Crawl(id) => self.tx.crawl(id)?.map(|crawl| (crawl.id, crawl.url)),
            Owner::Snapshot(id) => self.tx.snapshot(id)?.map(|page| (page.crawl, page.url)),
        };
        Ok(found.map(|(crawl, url)| report::Target {
            id,
            crawl,
            url: without_userinfo(&url),
        }))
    }
}
