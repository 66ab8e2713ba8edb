//! The open requests of a page.

use crate::page::html::one_line;
use std::collections::BTreeMap;
use std::time::Duration;

/// Open requests that are counted. Further ones are ignored: a page waits long enough for these.
const OPEN_MAX: usize = 10_000;
/// Requests that a remark names.
const NAMED_MAX: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestKind {
    /// A part of the page, or data of a script.
    Ordinary,
    /// An event stream, which ends when its server wants.
    Stream,
    /// A message to the server whose answer the page does not see.
    Beacon,
    /// A part of the page that did not arrive in time.
    Late,
    /// A request that the page's state does not depend on, or whose end is not always reported:
    /// icons, media, worker scripts.
    Uncounted,
}

#[derive(Debug)]
struct Open {
    url: String,
    kind: RequestKind,
    /// The frame whose document is requested.
    frame: Option<String>,
    since: Duration,
}

#[derive(Debug, Default)]
pub struct Requests(BTreeMap<String, Open>);

impl Requests {
    pub fn began(
        &mut self,
        request: String,
        url: String,
        kind: RequestKind,
        frame: Option<String>,
        now: Duration,
    ) {
        if kind != RequestKind::Uncounted && self.0.len() < OPEN_MAX {
            let open = Open { url: one_line(&url, 200), kind, frame, since: now };
            // A redirect begins the same request again.
            self.0.entry(request).or_insert(open);
        }
    }

    pub fn ended(&mut self, request: &str) {
        self.0.remove(request);
    }

    pub fn frame_gone(&mut self, frame: &str) {
        self.0.retain(|_, open| open.frame.as_deref() != Some(frame));
    }

    /// Forgets the requests of the page before. Their ends may not be reported.
    pub fn forget_all_but(&mut self, request: &str) {
        self.0.retain(|id, _| id == request);
    }

    /// Whether a request of a kind that should end is open and began before `limit`.
    pub fn waits_for(&self, limit: Duration) -> bool {
        let mut open = self.0.values();
        open.any(|open| open.kind == RequestKind::Ordinary && open.since < limit)
    }

    /// Waits no longer for the open requests.
    pub fn give_up(&mut self) {
        for open in self.0.values_mut() {
            if open.kind == RequestKind::Ordinary {
                open.kind = RequestKind::Late;
            }
        }
    }

    /// Whether a request is open that is not expected to end.
    pub fn has_endless(&self) -> bool {
        let mut open = self.0.values();
        open.any(|open| open.kind != RequestKind::Ordinary)
    }

    /// Names the requests that are open.
    pub fn remark(&self) -> Option<String> {
        let count = self.0.len();
        let named: Vec<String> = self.0.values().take(NAMED_MAX).map(Open::name).collect();
        let more = count.saturating_sub(NAMED_MAX);
        let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
        let (s, named) = (if count == 1 { "" } else { "s" }, named.join(", "));
        (count > 0).then(|| format!("ignored {count} request{s} that did not end: {named}{rest}"))
    }
}

impl Open {
    fn name(&self) -> String {
        match self.kind {
            RequestKind::Stream => format!("{} (event stream)", self.url),
            RequestKind::Beacon => format!("{} (beacon)", self.url),
            RequestKind::Ordinary | RequestKind::Late | RequestKind::Uncounted => self.url.clone(),
        }
    }
}
