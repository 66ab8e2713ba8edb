//! What the arrival of a page gets, what it orders, and how it ends.

use super::clock::Policy;
use super::document::ABORTED;
use super::requests::RequestKind;
use std::time::Duration;

/// An event of a tab, about its main frame unless it names a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TabEvent {
    /// The page asks for a navigation of its own, which has not started yet.
    NavigationRequested,
    /// A navigation sends a request, the first one or after a redirect.
    Navigating {
        loader: String,
        url: String,
    },
    /// The document of a navigation replaces the one before.
    Committed {
        loader: String,
        url: String,
        mime_type: String,
        /// Whether it is chromium's own page about an error.
        is_error_page: bool,
    },
    /// A script changed the address of the document.
    Renamed {
        url: String,
    },
    /// A navigation was held, as [`Step::HoldNavigation`] demands.
    Held {
        url: String,
    },
    /// The response to the request of a document or of anything else.
    Responded {
        request: String,
        response: Response,
    },
    Began {
        request: String,
        url: String,
        kind: RequestKind,
        /// The frame whose document is requested.
        frame: Option<String>,
    },
    /// A frame is gone, or lives on in another process, whose requests are not reported here.
    FrameGone {
        frame: String,
    },
    Received {
        request: String,
        bytes: u64,
    },
    /// A request has ended with its whole body.
    Ended {
        request: String,
    },
    Failed {
        request: String,
        error: String,
    },
    /// The document is parsed (`DOMContentLoaded`).
    Parsed,
    Loaded,
    /// The virtual time of the last [`Step::Grant`] is over.
    BudgetExpired,
    /// All that the browser had sent before [`Step::Probe`] has arrived.
    Reached,
    /// The page has run the script of [`Step::Probe`].
    Probed,
    Dialog,
    /// [`Step::Reveal`] goes on when the page has settled again; [`Step::Resume`] follows.
    Resting {
        /// The most time of the page's clock for its scripts.
        budget: Duration,
    },
    /// [`Step::Reveal`] is done, or failed.
    Revealed,
    /// Chromium's answer to the request for the first navigation.
    NavigationAnswered {
        error: String,
        is_download: bool,
    },
}

impl TabEvent {
    /// The answer that chromium gives when a file in place of the page is refused.
    pub fn download() -> TabEvent {
        TabEvent::NavigationAnswered { error: ABORTED.to_owned(), is_download: true }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Response {
    pub status: u64,
    /// Essence of the content type; empty if unknown.
    pub mime_type: String,
    /// Whether its headers say that the body is empty, or nothing about its length.
    pub may_be_empty: bool,
    /// Seconds after which an overloaded server wants to be asked again.
    pub retry_after: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Navigate to the page again; [`TabEvent::NavigationAnswered`] follows.
    Navigate,
    /// Let the page's clock advance by `budget`. Replaces an earlier grant.
    Grant {
        policy: Policy,
        budget: Duration,
    },
    /// Ask the browser for an answer, and let the page run a short script; [`TabEvent::Reached`] and
    /// [`TabEvent::Probed`] follow.
    Probe,
    /// End the running script, and allow no further ones.
    StopScripts,
    StopLoading,
    /// Refuse all further navigation of the main frame.
    HoldNavigation,
    /// Do what a reader does first, remove walls, load what is lazy and scroll through the page;
    /// [`TabEvent::Revealed`] follows. Replaces an earlier one, of another document.
    Reveal,
    /// Go on with that.
    Resume,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    Page(ReadyPage),
    NoPage {
        reason: String,
        /// Whether that is a failure. If not, the address has something other than a page.
        is_failure: bool,
        /// The response, if there is one.
        response: Option<Response>,
    },
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadyPage {
    pub url: String,
    /// The document's response, if it has one.
    pub response: Option<Response>,
    pub mime_type: String,
    /// Remarks about what is missing or was cut off.
    pub notes: Vec<String>,
}
