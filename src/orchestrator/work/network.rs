//! Pages on the Internet, when the machine does not reach it: they wait, and their visits count for nothing.
//! What follows is decided by [`Network`](archivist_core::plan::Network).
//!
//! # What happens when the network is down
//!
//! | when | what acts | what happens |
//! |---|---|---|
//! | a built-in hook fails to resolve or to reach a host on the Internet | `hooks/process/network.rs` asks the name servers, and looks for a route | the record says `network_fault` if the machine is to blame; a check of a watch is skipped |
//! | a record says that, or a server answers 511 | `worker/output/report.rs`, `worker/run.rs` | the worker ends the visit, removes its files, and exits with 69 |
//! | the orchestrator reads the report, and the end of the worker | `orchestrator/work/network.rs`, `Network` (`core/plan/network.rs`) | the page is queued again without an attempt; hosts on the Internet wait (`HostNetwork`), and one page at a time tries |
//! | hosts in a row fail with the same error, of whatever hook | the same, by `NetworkError::of` | the same; pages that have failed are queued again when a server answers |
//!
//! A network in which users must sign in redirects each request. If it redirects to a private address,
//! hooks refuse it, which counts as the same error. If it redirects to a public host, nothing shows
//! that the machine is to blame: the domains of a list that have expired lead to the same seller of
//! names, and those of a company to its new site, also several in a row and although nothing asked for
//! that host. To hold the queue for them would delay the rest of such a list by minutes for each page,
//! and only a request that no page names could tell them apart. Such a page for signing in is not saved
//! if it has a field for a password (`hooks/chromium/tab/login_check.rs`).
//!
//! The outage is in memory: after a restart, the first page finds it again. No event says that a name
//! server answers again, so the next trial is part of the outlook. A node of a fleet takes no hosts
//! meanwhile.

use crate::database::{RunRow, SnapshotWork};
use crate::main_loop::action::LoopAction;
use crate::main_loop::event::Event;
use crate::main_loop::rooms::Which;
use crate::main_loop::turn::{Turn, TurnResult};
use archivist_core::model::{
    NetworkError, Outcome, Owner, PageUrl, ResultState, SnapshotId, Time, is_domain_on_internet,
    is_on_internet,
};
use archivist_core::plan::{HostNetwork, Uncounted};
use archivist_shared::bus::documents::work::{NO_NETWORK, Report};
use std::time::Duration;

impl crate::engine::state::Engine {
    /// What the network of the machine means for the host of this name.
    pub(crate) fn host_network(&self, host: &str, now: Time) -> HostNetwork {
        let network = self.network.borrow();
        // A host is looked up only during an outage.
        let hosts = &self.start_facts.addresses.hosts;
        let is_concerned = network.outage().is_some() && is_domain_on_internet(host, hosts);
        network.of_host(is_concerned, now)
    }

    fn is_on_internet(&self, url: &str) -> bool {
        is_on_internet(url, &self.start_facts.addresses.hosts)
    }
}

pub(super) fn starts(turn: &Turn<'_>, page: &SnapshotWork) {
    if turn.engine.is_on_internet(&page.url) {
        turn.engine.network.borrow_mut().page_starts(page.id, turn.now);
    }
}

/// Takes what a hook of a page reports about the network.
pub(super) fn take_report(
    turn: &mut Turn<'_>,
    page: &SnapshotWork,
    report: &Report,
) -> TurnResult<()> {
    if let Some(why) = &report.network_fault {
        let mut network = turn.engine.network.borrow_mut();
        network.is_down(page.id, why, turn.now);
        return Ok(());
    }
    if report.http_status.is_some() && turn.engine.is_on_internet(&page.url) {
        is_up(turn);
    }
    Ok(())
}

/// Queues again the pages that failed for the machine.
fn is_up(turn: &mut Turn<'_>) {
    let pages = turn.engine.network.borrow_mut().is_up();
    for page in pages {
        let (id, which) = (Some(Owner::Snapshot(page)), Which::Failed);
        turn.act(LoopAction::Again(Event::Call(turn.rooms.retry(id, which))));
    }
}

/// Why the end of a worker is no failed attempt, if it says that the machine does not reach the Internet.
pub(super) fn without_network(
    turn: &Turn<'_>,
    page: SnapshotId,
    run: &RunRow,
) -> TurnResult<Option<Uncounted>> {
    if run.outcome != Some(Outcome::Exit(NO_NETWORK)) {
        return Ok(None);
    }
    turn.tx.forget_visit(page)?;
    let network = turn.engine.network.borrow();
    let why = match network.outage() {
        Some(outage) => outage.why.clone(),
        None => "the machine did not reach the Internet".to_owned(),
    };
    Ok(Some(Uncounted { why: format!("{why}; the attempt does not count"), delay: Duration::ZERO }))
}

/// The worker of a page has done its work: whether a server answered.
pub(super) fn ends(turn: &mut Turn<'_>, page: &SnapshotWork, is_answered: bool) -> TurnResult<()> {
    if is_answered || !turn.engine.is_on_internet(&page.url) {
        return Ok(());
    }
    let results = turn.tx.results(Owner::Snapshot(page.id))?;
    let errors = results.iter().filter(|result| result.status == ResultState::Failed);
    let mut errors =
        errors.filter_map(|result| result.error.as_deref().or(result.output.as_deref()));
    let has_saved = results.iter().any(|result| result.status == ResultState::Succeeded);
    match errors.find_map(NetworkError::of) {
        Some(error) if !has_saved => {
            let host = PageUrl::parse(&page.url).map_or_else(|_| String::new(), |url| url.domain());
            let mut network = turn.engine.network.borrow_mut();
            network.is_silent(page.id, &host, error, turn.now);
        }
        None if has_saved && turn.engine.network.borrow().is_trial(page.id) => is_up(turn),
        _ => {}
    }
    Ok(())
}
