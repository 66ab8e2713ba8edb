//! Checks of watches: `status` tests whether a site answers, `crawl` reads its pages and reports
//! problems, `lighthouse` measures one page. Each takes a request and returns a [`CheckResult`],
//! and is meant for its own unit, whose time limit is longer than the check's.

mod crawl;
mod follow;
mod http;
pub mod lighthouse;
mod reach;
mod request;
mod result;
mod sender;
mod status;

pub use request::{Request, Settings};
pub use result::{CheckResult, Finding, Kind, Scores};

/// Runs a check. Always returns a result, before the deadline of the check.
pub fn run(kind: Kind, request: &Request) -> CheckResult {
    match kind {
        Kind::Status => status::check(request),
        Kind::Crawl => crawl::check(request),
        Kind::Lighthouse => lighthouse::check(request),
    }
}
