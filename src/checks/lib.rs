//! The programs behind watches: one asks whether a site answers, one reads its pages and says
//! what is wrong with them, one has lighthouse give it scores. Each is a request in and a
//! [`CheckResult`] out, and meant to run in a unit of its own, whose time limit is longer than the
//! check's.

mod client;
mod crawl;
mod follow;
mod lighthouse;
mod reach;
mod record;
mod request;
mod status;

pub use record::{CheckResult, Finding, Kind, Scores};
pub use request::{Request, Settings};

/// Makes a check. It always ends with a result, and by itself before its deadline.
pub fn run(kind: Kind, request: &Request) -> CheckResult {
    match kind {
        Kind::Status => status::check(request),
        Kind::Crawl => crawl::check(request),
        Kind::Lighthouse => lighthouse::check(request),
    }
}
