//! Calls to systemd.

use crate::bus::call::{Answer, Reply};
use crate::main_loop::effects::Systemd;
use crate::main_loop::event::Event;
use crate::main_loop::live::{Live, freezer};
use crate::main_loop::prepare::prepared;
use crate::main_loop::starts::Start;
use archivist_config::Scope;
use archivist_core::model::{Reading, RunId};
use archivist_core::plan::Evidence;
use archivist_shared::systemd::{ErrorKind, Hint, Release, Whom, synchronize_journal};

const SIGKILL: i32 = 9;
const SIGTERM: i32 = 15;

impl Systemd for Live {
    fn start(&mut self, start: Start, scope: &Scope) {
        let (manager, events) = (self.manager.clone(), self.events.clone());
        let scope = scope.clone();
        tokio::spawn(async move {
            let result = match prepared(&start, scope).await {
                Ok(stdout) => manager.start(&start.spec, stdout.as_ref()).await,
                Err(error) => Err(error),
            };
            let _ = events.send(Event::Started {
                run: start.run,
                unit: start.spec.name.clone(),
                result,
            });
        });
    }

    fn read(&mut self, run: RunId, unit: String, early: bool, evidence: Option<Evidence>) {
        let (manager, events) = (self.manager.clone(), self.events.clone());
        tokio::spawn(async move {
            let result = manager.read(&unit).await.map(Box::new);
            let killed = match &result {
                Ok(reading) => reading.exec_main_code > 1 || reading.load_state == "not-found",
                Err(_) => false,
            };
            let stopping = killed && manager.is_stopping().await.unwrap_or(true);
            let _ = events.send(Event::Read { run, unit, early, evidence, result, stopping });
        });
    }

    fn release(&mut self, unit: String, how: Release) {
        let (manager, settled) = (self.manager.clone(), self.freezer.settled(&unit));
        tokio::spawn(async move {
            settled.await;
            if let Err(error) = manager.release(&unit, how).await {
                tracing::warn!("{error}, ignoring");
            }
        });
    }

    fn unblock(&mut self, unit: String) {
        let (manager, events) = (self.manager.clone(), self.events.clone());
        tokio::spawn(async move {
            freezer::thaw(&manager, &unit).await;
            for how in [Release::Stop, Release::Reset] {
                if let Err(error) = manager.release(&unit, how).await {
                    tracing::warn!("{error}, ignoring");
                }
            }
            let gone = |reading: &Reading| reading.load_state == "not-found";
            if manager.read(&unit).await.as_ref().is_ok_and(gone) {
                let _ = events.send(Event::Hint(Hint::Removed { unit }));
            }
        });
    }

    fn signal(&mut self, unit: String, whom: Whom, signal: i32) {
        let (manager, settled) = (self.manager.clone(), self.freezer.settled(&unit));
        tokio::spawn(async move {
            settled.await;
            if let Err(error) = manager.kill(&unit, whom, signal).await {
                tracing::warn!("{error}, ignoring");
            }
        });
    }

    /// Sends SIGTERM as KillMode= of the unit says, or SIGKILL to all, without stopping the unit,
    /// whose outcome has to be read.
    fn end(&mut self, unit: String, force: bool, reply: Reply) {
        let (manager, settled) = (self.manager.clone(), self.freezer.settled(&unit));
        tokio::spawn(async move {
            settled.await;
            let (whom, signal) = if force {
                (Whom::All, SIGKILL)
            } else {
                let mode = manager.read(&unit).await.map(|reading| reading.kill_mode);
                match mode.as_deref() {
                    Ok("mixed" | "process") => (Whom::Main, SIGTERM),
                    _ => (Whom::All, SIGTERM),
                }
            };
            match manager.kill(&unit, whom, signal).await {
                Err(error) if error.kind == ErrorKind::Unreachable => {
                    // The process ends with the connection; the worker repeats the call.
                    return tracing::warn!("{error}");
                }
                Err(error) => tracing::warn!("{error}, ignoring"),
                Ok(()) => {}
            }
            reply.send(Ok(Answer::Done));
        });
    }

    fn freeze(&mut self, unit: String) {
        self.freezer.freeze(&self.manager, unit);
    }

    fn thaw(&mut self, unit: String) {
        self.freezer.thaw(&self.manager, unit);
    }

    fn thaw_at_shutdown(&mut self, units: Vec<String>) {
        let farewell = freezer::thaw_at_shutdown(self.manager.clone(), units);
        self.farewell = Some(tokio::spawn(farewell));
    }

    fn stop_slice(&mut self, slice: String) {
        let (manager, settled) = (self.manager.clone(), self.freezer.all_settled());
        tokio::spawn(async move {
            settled.await;
            if let Err(error) = manager.stop_slice(&slice).await {
                tracing::warn!("{error}, ignoring");
            }
        });
    }

    fn forget(&mut self, unit: &str) {
        self.manager.forget(unit);
    }

    fn list(&mut self) {
        let (manager, events) = (self.manager.clone(), self.events.clone());
        tokio::spawn(async move {
            let _ = events.send(Event::Listed(manager.list().await));
        });
    }

    fn synchronize_journal(&mut self, invocation: String, reply: Reply) {
        tokio::spawn(async move {
            synchronize_journal().await;
            reply.send(Ok(Answer::Text(invocation)));
        });
    }
}
