//! Time passes, and everything that can happen happens, until all has ended.

use super::*;
use crate::calls::add::cancel_half_added;
use crate::calls::retry::begin_half_retried;

impl Bed {
    pub fn pass(&mut self, ms: u64) {
        self.advance_to(self.now.after(std::time::Duration::from_millis(ms)));
        self.turn(vec![Event::Due]);
    }

    /// The requested time comes.
    pub fn until_woken(&mut self) {
        let time = self.performer.wake_at.take().unwrap();
        self.advance_to(time);
        self.turn(vec![Event::Due]);
    }

    /// Both clocks run on to this time.
    fn advance_to(&mut self, time: Time) {
        self.machine += time.0 - self.now.0;
        self.now = time;
    }

    pub fn daemon_reload(&mut self) {
        self.turn(vec![Event::Hint(Hint::Reloaded)]);
    }

    /// The orchestrator is killed and starts again.
    pub fn restart(&mut self, heard: usize) {
        self.world.orphan(heard);
        self.performer = Performer::default();
        self.database = open(&self.directory, self.now);
        let tx = self.database.begin().unwrap();
        cancel_half_added(&tx, self.now).unwrap();
        begin_half_retried(&tx, self.now).unwrap();
        tx.commit().unwrap();
        self.engine = engine(&self.directory);
        self.engine.settings.host_delay = self.pace;
        let tokens = self.look(|tx| tx.tokens());
        self.engine.tokens.extend(tokens);
        self.world.calls.push_back(Call::List);
        self.world.answers.push(Event::of(crate::deletion::delete_some));
    }

    /// PID 1, the loop and the workers run until nothing is left to do; no hook ends by itself.
    pub fn until_quiet(&mut self) {
        loop {
            let mut moved = self.world.handle(Mood::Fine);
            if !self.world.signals.is_empty() || !self.world.answers.is_empty() {
                self.turn_with(3, 3, 0);
                moved = true;
            }
            for n in 0..self.world.units.len() {
                moved |= self.work(n);
            }
            if !moved {
                return;
            }
        }
    }

    /// Lets everybody do something: systemd, the orchestrator, workers, one hook, check and alert.
    /// Answers whether anybody did.
    pub fn moves_on(&mut self) -> bool {
        let mut moved = self.world.handle(Mood::Fine);
        if !self.world.signals.is_empty() || !self.world.answers.is_empty() {
            self.turn_with(3, 3, 0);
            moved = true;
        }
        let workers = self.world.units.len();
        for n in 0..workers {
            moved |= self.work(n);
        }
        for part in ["-hook-", "-check-", "-alert-", "-delete-", "-index-", "-entries-"] {
            if let Some(unit) = self.running_of(part).pop() {
                self.world.end(&unit, 1, 0, "success");
                moved = true;
            }
        }
        moved
    }

    /// From now on nothing fails: every crawl must end, and no unit may be left.
    pub fn come_to_an_end(&mut self) {
        const ENOUGH: usize = 5000;
        while !self.engine.held.is_empty() {
            self.abandon(0, false);
        }
        self.resume_all();
        self.engine.load.free = None;
        self.pass(1);
        for _ in 0..ENOUGH {
            if self.moves_on() {
                continue;
            }
            let open = self.look(|tx| tx.open_runs());
            let crawls = self.look(|tx| tx.list_crawls(&Filter::default()));
            let unfinished = crawls.iter().find(|crawl| !crawl.status.is_final());
            let is_deleting = self.look(|tx| tx.has_deletions());
            if open.is_empty() && unfinished.is_none() && !self.has_checks() && !is_deleting {
                assert!(self.world.units.is_empty(), "left: {:?}", self.world.units);
                return;
            }
            let wake = self.performer.wake_at.take().filter(|time| *time > self.now);
            let Some(time) = wake else {
                panic!("stuck: open runs {open:#?}, crawl {unfinished:#?}");
            };
            self.advance_to(time);
            self.turn(vec![Event::Due]);
        }
        panic!("it does not come to an end");
    }

    pub fn running_of(&self, part: &str) -> Vec<String> {
        let running = self.world.running().into_iter();
        running.filter(|unit| unit.contains(part)).collect()
    }

    /// Whether a check or alert waits or runs.
    pub fn has_checks(&mut self) -> bool {
        let (queued, running) =
            self.look(|tx| Ok((tx.queued_run_counts()?, tx.open_run_counts()?)));
        ["check", "alert"]
            .iter()
            .any(|kind| queued.contains_key(*kind) || running.contains_key(*kind))
    }

    pub fn running_hook(&self) -> Option<String> {
        self.running_of("-hook-").into_iter().next()
    }
}
