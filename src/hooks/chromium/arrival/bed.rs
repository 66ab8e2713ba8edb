//! A tab that tests drive by hand.

use super::*;

pub const LIMITS: ArrivalLimits = ArrivalLimits {
    load: Duration::from_secs(30),
    settle: Duration::from_secs(3),
    total: Duration::from_secs(50),
};

/// A tab that is driven by hand: events at times in milliseconds.
pub struct Bed {
    pub arrival: Arrival,
    pub now: u64,
    pub steps: Vec<Step>,
}

impl Bed {
    pub fn new() -> Bed {
        Bed { arrival: Arrival::new(LIMITS), now: 0, steps: Vec::new() }
    }

    /// The event arrives `after` milliseconds; alarms before it are obeyed.
    pub fn then(&mut self, after: u64, event: TabEvent) -> &mut Bed {
        self.wait(after);
        let now = Duration::from_millis(self.now);
        self.steps.extend(self.arrival.take(event, now));
        self
    }

    /// Obeys the alarms of the next milliseconds.
    pub fn wait(&mut self, milliseconds: u64) -> &mut Bed {
        let end = self.now + milliseconds;
        let mut alarms = 0;
        while self.arrival.ending().is_none() {
            let alarm = u64::try_from(self.arrival.next_tick().as_millis()).unwrap();
            if alarm > end {
                break;
            }
            assert!(alarm >= self.now, "an alarm in the past");
            alarms += 1;
            assert!(alarms < 10_000, "alarms without progress");
            self.now = alarm;
            self.steps.extend(self.arrival.tick(Duration::from_millis(alarm)));
        }
        self.now = end;
        self
    }

    /// A document with this loader id is requested, answered and committed.
    pub fn commits(&mut self, loader: &str, url: &str) -> &mut Bed {
        self.then(1, navigating(loader, url))
            .then(1, responded(loader, 200))
            .then(1, committed(loader, url))
            .then(1, received(loader, 100))
            .then(1, ended(loader))
    }

    pub fn loads(&mut self) -> &mut Bed {
        self.then(1, TabEvent::Parsed).then(1, TabEvent::Loaded)
    }

    /// Answers the grants and the order to reveal the page, as a tab without surprises does.
    pub fn runs(&mut self) -> &mut Bed {
        for _ in 0..200 {
            if self.arrival.ending().is_some() {
                break;
            }
            match self.steps.pop() {
                Some(Step::Reveal | Step::Resume) => self.then(5, TabEvent::Revealed),
                Some(Step::Grant { .. }) => self.then(1, TabEvent::BudgetExpired),
                _ => self.wait(1),
            };
        }
        self
    }

    pub fn page(&self) -> &ReadyPage {
        match self.arrival.ending() {
            Some(Ending::Page(page)) => page,
            other => panic!("no page: {other:?}"),
        }
    }

    pub fn reason(&self) -> (&str, bool) {
        match self.arrival.ending() {
            Some(Ending::NoPage { reason, is_failure, .. }) => (reason, *is_failure),
            other => panic!("not refused: {other:?}"),
        }
    }

    pub fn has(&self, step: &Step) -> bool {
        self.steps.contains(step)
    }
}

pub fn navigating(loader: &str, url: &str) -> TabEvent {
    let (loader, url) = (loader.to_owned(), url.to_owned());
    TabEvent::Navigating { loader, url }
}

pub fn responded(request: &str, status: u64) -> TabEvent {
    TabEvent::Responded {
        request: request.to_owned(),
        response: Response {
            status,
            mime_type: "text/html".to_owned(),
            may_be_empty: true,
            retry_after: None,
        },
    }
}

pub fn committed(loader: &str, url: &str) -> TabEvent {
    TabEvent::Committed {
        loader: loader.to_owned(),
        url: url.to_owned(),
        mime_type: "text/html".to_owned(),
        is_error_page: false,
    }
}

/// Chromium's own page in place of a document that failed to load.
pub fn error_page(loader: &str) -> TabEvent {
    TabEvent::Committed {
        loader: loader.to_owned(),
        url: "chrome-error://chromewebdata/".to_owned(),
        mime_type: "text/html".to_owned(),
        is_error_page: true,
    }
}

pub fn received(request: &str, bytes: u64) -> TabEvent {
    let request = request.to_owned();
    TabEvent::Received { request, bytes }
}

pub fn began(request: &str, kind: RequestKind) -> TabEvent {
    TabEvent::Began {
        request: request.to_owned(),
        url: format!("http://a.test/{request}"),
        kind,
        frame: None,
    }
}

pub fn ended(request: &str) -> TabEvent {
    let request = request.to_owned();
    TabEvent::Ended { request }
}

pub fn failed(request: &str, error: &str) -> TabEvent {
    let (request, error) = (request.to_owned(), error.to_owned());
    TabEvent::Failed { request, error }
}

pub fn answered(error: &str) -> TabEvent {
    TabEvent::NavigationAnswered { error: error.to_owned(), is_download: false }
}
