//! When is a page there?
//!
//! A page in a tab is **loaded** when its load event has fired; when its document was cut off by
//! the server and its other requests have ended; or when its document was parsed and nothing
//! arrived for the settling time (`CHROME_SETTLE_MS`, 1 to 5 seconds here), so that a tracker which
//! never answers does not hold the page.
//!
//! A loaded page is **settled** when its scripts had the settling time of their own clock and the
//! requests that they made have ended. Requests that do not end are ignored and named: event
//! streams and beacons at once, all others when they were open for the settling time.
//!
//! A page has **gone elsewhere** when its main frame commits another document: by a script, a
//! form, a `Refresh` header or its meta element. The new document is loaded and settled like the
//! first, and is the one that is saved. A page that comes back to the same address
//! [`SAME_ADDRESS_MAX`] times, or goes further than [`NAVIGATIONS_MAX`] documents, is held where it
//! is.
//!
//! A settled page is **revealed**: it gets the input events of a reader, walls that cover it are removed,
//! its lazy images and frames load and the page is scrolled to its end and back. After each of these
//! that may have changed it, it settles again. Then it is ready, navigation is held, and its clock
//! runs at the pace of real time for the hooks that save it.
//!
//! [`Arrival`] is this as a state machine without I/O: events of the tab and the time in, [`Step`]s
//! out.

#[cfg(test)]
mod bed;
mod clock;
mod document;
mod event;
mod progress;
mod requests;
#[cfg(test)]
mod tests;

use clock::Clock;
pub use clock::{Meter, Policy, TICK};
use document::{ABORTED, Document, NETWORK_CHANGED, NO_BODY};
pub use event::{Ending, ReadyPage, Response, Step, TabEvent};
pub use requests::RequestKind;
use requests::Requests;
use std::collections::HashMap;
use std::time::Duration;

/// Documents after the first that a page may go to. Chains of logins and consent pages have fewer
/// than ten.
const NAVIGATIONS_MAX: usize = 15;
/// Times that a page may commit the same address. Pages that set a cookie and reload need two.
const SAME_ADDRESS_MAX: usize = 3;
/// Times that the first navigation begins again because an address of the machine came or went. IPv6
/// adds one about a second after a network begins.
const NETWORK_CHANGES_MAX: usize = 3;
/// Remarks about a page that are kept.
const NOTES_MAX: usize = 8;
/// Dialogs that a page may open before its scripts are stopped.
const DIALOGS_MAX: usize = 20;
/// Time limits of a page.
#[derive(Debug, Clone, Copy)]
pub struct ArrivalLimits {
    /// From the start of a navigation until its document is loaded.
    pub load: Duration,
    /// Time of the page's own clock for its scripts after the load; zero for none.
    pub settle: Duration,
    /// From the start until the page is ready, whatever happens.
    pub total: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// A document is on its way, or loads.
    Loading {
        since: Duration,
    },
    /// The first navigation ended with this error; its response may follow.
    Refused {
        since: Duration,
        error: &'static str,
    },
    /// The scripts of a loaded page run.
    Settling {
        since: Duration,
    },
    /// The clock of the page stands still: a script does not end, or the page is busy with a large body.
    Probing {
        since: Duration,
        is_reached: bool,
    },
    /// The page asked for a navigation.
    Departing {
        since: Duration,
    },
    Revealing,
    /// Waits for the requests that the revealing caused.
    Finishing {
        since: Duration,
    },
    Over,
}

/// How far the revealing of the present document is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Revealing {
    Working,
    /// Waits until the page has settled again.
    Resting,
    Done,
}

#[derive(Debug)]
pub struct Arrival {
    limits: ArrivalLimits,
    phase: Phase,
    /// The revealing of the document, and when it began.
    revealing: Option<(Revealing, Duration)>,
    document: Option<Document>,
    /// Document of a navigation that has not committed.
    incoming: Option<Document>,
    requests: Requests,
    clock: Clock,
    last_event: Duration,
    dialogs: usize,
    commits: usize,
    network_changes: usize,
    addresses: HashMap<String, usize>,
    is_held: bool,
    has_stopped_scripts: bool,
    notes: Vec<String>,
    steps: Vec<Step>,
    ending: Option<Ending>,
}

impl Arrival {
    /// A navigation that begins now, at time zero.
    pub fn new(limits: ArrivalLimits) -> Arrival {
        Arrival {
            limits,
            phase: Phase::Loading { since: Duration::ZERO },
            revealing: None,
            document: None,
            incoming: None,
            requests: Requests::default(),
            clock: Clock::default(),
            last_event: Duration::ZERO,
            dialogs: 0,
            commits: 0,
            network_changes: 0,
            addresses: HashMap::new(),
            is_held: false,
            has_stopped_scripts: false,
            notes: Vec::new(),
            steps: Vec::new(),
            ending: None,
        }
    }

    /// How it ended, if it has.
    pub fn ending(&self) -> Option<&Ending> {
        self.ending.as_ref()
    }

    /// Processes an event at time `now` since the beginning. Returns the orders to the tab.
    pub fn take(&mut self, event: TabEvent, now: Duration) -> Vec<Step> {
        if self.phase != Phase::Over {
            if event != TabEvent::BudgetExpired {
                self.last_event = now;
            }
            self.process(event, now);
            self.advance(now);
        }
        std::mem::take(&mut self.steps)
    }

    /// Processes the time. Returns the orders to the tab.
    pub fn tick(&mut self, now: Duration) -> Vec<Step> {
        if self.phase != Phase::Over {
            self.advance(now);
        }
        std::mem::take(&mut self.steps)
    }

    fn process(&mut self, event: TabEvent, now: Duration) {
        match event {
            TabEvent::NavigationRequested => {
                if !self.is_held && !matches!(self.phase, Phase::Loading { .. }) {
                    self.phase = Phase::Departing { since: now };
                }
            }
            TabEvent::Navigating { loader, url } => self.navigating(loader, url, now),
            TabEvent::Committed { loader, url, mime_type, is_error_page } => {
                self.committed(loader, url, mime_type, is_error_page, now)
            }
            TabEvent::Renamed { url } => {
                if let Some(document) = &mut self.document {
                    document.url = url;
                }
            }
            TabEvent::Held { url } => {
                self.note(format!("the page was held, it navigates on its own: {url}"));
                if let Phase::Departing { .. } = self.phase {
                    self.stay(now);
                }
            }
            TabEvent::Responded { request, response } => {
                if let Some(document) = self.document_of(&request) {
                    document.response = Some(response);
                }
            }
            TabEvent::Began { request, url, kind, frame } => {
                self.requests.began(request, url, kind, frame, now)
            }
            TabEvent::FrameGone { frame } => self.requests.frame_gone(&frame),
            TabEvent::Received { request, bytes } => {
                if let Some(document) = self.document_of(&request) {
                    document.bytes += bytes;
                }
            }
            TabEvent::Ended { request } => {
                self.requests.ended(&request);
                if let Some(document) = self.document_of(&request) {
                    document.has_ended = true;
                }
            }
            TabEvent::Failed { request, error } => self.failed(&request, error, now),
            TabEvent::Parsed => {
                if let Some(document) = &mut self.document {
                    document.is_parsed = true;
                }
            }
            TabEvent::Loaded => self.loaded(now),
            TabEvent::BudgetExpired => self.clock.expired(now),
            TabEvent::Reached => {
                if let Phase::Probing { is_reached, .. } = &mut self.phase {
                    *is_reached = true;
                }
            }
            TabEvent::Probed => {
                if let Phase::Probing { .. } = self.phase {
                    self.reveal(now);
                }
            }
            TabEvent::Dialog => self.dialog(),
            TabEvent::Resting { budget } => {
                self.is_revealing(Revealing::Resting);
                if self.phase == Phase::Revealing {
                    self.settle_for(budget, now);
                }
            }
            TabEvent::Revealed => {
                self.is_revealing(Revealing::Done);
                if self.phase == Phase::Revealing {
                    self.phase = Phase::Finishing { since: now };
                }
            }
            TabEvent::NavigationAnswered { error, is_download } => {
                self.answered(error, is_download, now);
            }
        }
    }

    fn document_of(&mut self, request: &str) -> Option<&mut Document> {
        let both = [self.incoming.as_mut(), self.document.as_mut()];
        both.into_iter().flatten().find(|document| document.loader == request)
    }

    fn navigating(&mut self, loader: String, url: String, now: Duration) {
        if let Some(known) = self.document_of(&loader) {
            known.url = url;
            return;
        }
        if self.is_held {
            return;
        }
        self.incoming = Some(Document::new(loader, url));
        if self.document.is_some() {
            self.load(now);
        }
    }

    /// Waits for a document.
    fn load(&mut self, now: Duration) {
        self.phase = Phase::Loading { since: now };
        self.clock.meter();
    }

    fn committed(
        &mut self,
        loader: String,
        url: String,
        mime_type: String,
        is_error_page: bool,
        now: Duration,
    ) {
        // The answer to the first navigation has the reason of its failure. The head of the response
        // may follow, so its document is kept.
        if is_error_page && self.commits == 0 {
            return;
        }
        let known = self.incoming.take_if(|document| document.loader == loader);
        let mut document = known.unwrap_or_else(|| Document::new(loader, url.clone()));
        if is_error_page {
            let error = document.error.as_deref().unwrap_or("unknown error");
            let url = &document.url;
            let reason = format!("the page went to {url}, which failed to load: {error}");
            self.no_page(reason, true, None);
            return;
        }
        document.url = url;
        document.mime_type = mime_type;
        self.commits += 1;
        self.requests.forget_all_but(&document.loader);
        let visits = self.addresses.entry(document.url.clone()).or_default();
        *visits += 1;
        if *visits >= SAME_ADDRESS_MAX || self.commits > NAVIGATIONS_MAX {
            self.hold();
        }
        self.document = Some(document);
        self.revealing = None;
        self.load(now);
    }

    fn is_revealing(&mut self, progress: Revealing) {
        if let Some((own, _)) = &mut self.revealing {
            *own = progress;
        }
    }

    fn failed(&mut self, request: &str, error: String, now: Duration) {
        self.requests.ended(request);
        let is_incoming = self.incoming.as_ref().is_some_and(|incoming| incoming.loader == request);
        if let Some(document) = self.document_of(request) {
            document.error = Some(error.clone());
        }
        // The page stays where it is: the navigation led to a download, or to no content.
        if is_incoming && self.document.is_some() && error == ABORTED {
            self.incoming = None;
            if self.document.as_ref().is_some_and(|it| it.is_loaded) {
                self.stay(now);
            }
        }
    }

    fn loaded(&mut self, now: Duration) {
        let Some(document) = &mut self.document else {
            return;
        };
        document.is_parsed = true;
        document.is_loaded = true;
        if self.incoming.is_none() && matches!(self.phase, Phase::Loading { .. }) {
            self.settle(now);
        }
    }

    fn dialog(&mut self) {
        self.dialogs += 1;
        if self.dialogs == DIALOGS_MAX {
            self.note(format!("its scripts were stopped, they opened {DIALOGS_MAX} dialogs"));
            self.stop_scripts();
        }
    }

    /// Judges the answer to the first navigation. Chromium may report the head of the response
    /// after it.
    fn answered(&mut self, error: String, is_download: bool, now: Duration) {
        if error == NETWORK_CHANGED && self.network_changes < NETWORK_CHANGES_MAX {
            self.network_changes += 1;
            self.incoming = None;
            self.steps.push(Step::Navigate);
            return;
        }
        let known = [ABORTED, NO_BODY].into_iter().find(|known| *known == error);
        match known.filter(|_| !is_download && self.first_response().is_none()) {
            Some(error) => self.phase = Phase::Refused { since: now, error },
            None => self.judge_answer(&error, is_download),
        }
    }

    /// The head of the response to the first navigation, if chromium has reported it.
    fn first_response(&self) -> Option<&Response> {
        let first = self.document.as_ref().or(self.incoming.as_ref());
        first?.response.as_ref()
    }

    fn judge_answer(&mut self, error: &str, is_download: bool) {
        let response = self.first_response().cloned();
        let known = response.clone().unwrap_or_default();
        if let Some((reason, is_failure)) = document::refusal(error, is_download, &known) {
            self.no_page(reason, is_failure, response);
        }
    }

    fn no_page(&mut self, reason: String, is_failure: bool, response: Option<Response>) {
        self.ending.get_or_insert(Ending::NoPage { reason, is_failure, response });
    }

    fn hold(&mut self) {
        if !self.is_held {
            self.is_held = true;
            self.steps.push(Step::HoldNavigation);
        }
    }

    fn stop_scripts(&mut self) {
        if !self.has_stopped_scripts {
            self.has_stopped_scripts = true;
            self.steps.push(Step::StopScripts);
        }
    }

    fn note(&mut self, text: String) {
        if !self.notes.contains(&text) && self.notes.len() < NOTES_MAX {
            self.notes.push(text);
        }
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks = self.notes.clone();
        remarks.extend(self.requests.remark());
        remarks
    }
}
