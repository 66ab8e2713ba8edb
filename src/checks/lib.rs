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

use archivist_hooks::process::network;

/// Runs a check. Always returns a result, before the deadline of the check.
pub fn run(kind: Kind, request: &Request) -> CheckResult {
    let result = match kind {
        Kind::Status => status::check(request),
        Kind::Crawl => crawl::check(request),
        Kind::Lighthouse => lighthouse::check(request),
    };
    match &result.error {
        Some(error) if !result.ok && !result.skipped => {
            let excuse = network::excuse(error, &request.url);
            result.excused(excuse)
        }
        _ => result,
    }
}
