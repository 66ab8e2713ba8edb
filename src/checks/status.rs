//! `status`: whether a site answers, how, and how fast. Follows Python's requests, whose values
//! (526, 408, 10000 ms) existing records contain.

use super::Request;
use super::follow::follow;
use super::http::{Answer, Ask, Client, Fault, Patience, Wanted};
use super::reach::Guard;
use super::result::{CheckResult, Kind};
use archivist_hooks::page::html::one_line;
use std::time::Duration;
use url::Url;

/// 3 s to connect, 10 s to read.
const PATIENCE: Patience = Patience::of(3, 10);
/// Limit for all redirects; the last answer has its own limit in addition.
const LONGEST: Duration = Duration::from_secs(30);
/// Most redirects, as in Python's requests.
const REDIRECTS: usize = 30;
/// Status of TLS errors, status of other errors, and the time in ms for a missing answer.
const TLS_ERROR: u16 = 526;
const NO_ANSWER: u16 = 408;
const NO_TIME: u64 = 10_000;

/// Requests the URL, follows redirects and returns the last answer. Ends when its headers and the
/// first bytes of its body have arrived: some bodies never end.
pub fn check(request: &Request) -> CheckResult {
    let settings = &request.settings;
    let client = Client::new(
        settings.patience(PATIENCE),
        settings.user_agent(),
        &Guard::new(settings.reach.clone()),
    );
    let mut result = CheckResult::new(Kind::Status, request.url.as_str());
    let longest = settings.deadline(LONGEST);
    let answered = follow(&request.url, REDIRECTS, longest, |url| {
        client.send(&Ask::new("GET", url), |_| Wanted::Start)
    });
    if let Ok((url, answer)) = &answered {
        result.set_headers(&answer.headers);
        result.final_url = (url != &request.url).then(|| one_line(url.as_str(), 2048));
    }
    match answered.and_then(whole) {
        Ok(answer) => {
            result.ok = (200..300).contains(&answer.status);
            result.status_code = Some(answer.status);
            result.response_ms = Some(answer.after.as_millis() as u64);
            if result.ok {
                result
            } else {
                result.with_error(&format!("the server answered {}", answer.status))
            }
        }
        Err(fault) => {
            result.status_code = Some(match fault {
                Fault::Tls(_) => TLS_ERROR,
                Fault::Late(_) | Fault::Other(_) => NO_ANSWER,
            });
            result.response_ms = Some(NO_TIME);
            result.with_error(&fault.to_string())
        }
    }
}

/// An answer without the start of its body counts as none.
fn whole((_, mut answer): (Url, Answer)) -> Result<Answer, Fault> {
    match answer.problem.take() {
        Some(fault) => Err(fault),
        None => Ok(answer),
    }
}
