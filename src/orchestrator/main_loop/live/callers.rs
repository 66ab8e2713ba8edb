//! Callers on the bus, and the line that systemd shows of the service.

use crate::bus::announcer::Announcer;
use crate::bus::call::Reply;
use crate::engine::commands::{Commands, RegisteredCommand};
use crate::main_loop::effects::Callers;
use crate::main_loop::live::{Live, registered};
use archivist_core::model::CrawlId;
use archivist_shared::bus::callers::Claim;
use archivist_shared::bus::signals::Signal;
use std::collections::BTreeSet;
use std::time::Duration;

impl Callers for Live {
    fn followed(&self) -> BTreeSet<CrawlId> {
        self.followers.crawls()
    }

    fn is_subscribed(&self) -> bool {
        let announcer = self.announcer.as_ref();
        announcer.is_some_and(Announcer::is_subscribed)
    }

    fn follow(&mut self, crawl: CrawlId, first: Vec<String>, claim: Claim, reply: &Reply) {
        self.followers.follow(crawl, first, claim, reply);
    }

    fn follow_status(&mut self, claim: Claim, reply: &Reply) {
        self.followers.follow_status(claim, reply);
    }

    fn tell(&mut self, crawl: CrawlId, line: &str, last: bool) {
        self.followers.tell(crawl, line, last);
    }

    fn tell_of_status(&mut self) {
        self.followers.tell_of_status();
    }

    fn status(&mut self, line: &str) -> Option<Duration> {
        self.followers.compare_line(line);
        self.status.tell(line)
    }

    fn hold(&mut self, crawl: CrawlId, cancel: bool, claim: Claim, reply: &Reply) {
        self.holds.hold((crawl, cancel), claim, reply, &self.events);
    }

    fn release_holds(&mut self, crawl: CrawlId) {
        self.holds.release(crawl);
    }

    fn register(
        &mut self,
        commands: &mut Commands,
        command: RegisteredCommand,
        claim: Claim,
        reply: &Reply,
    ) {
        registered::register(commands, command, claim, reply, &self.events);
    }

    fn announce(&mut self, signal: Signal) {
        if let Some(announcer) = &mut self.announcer {
            announcer.announce(signal);
        }
    }
}
