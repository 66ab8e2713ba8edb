//! `status`: does a site answer, how, and how fast. As the library requests does it, whose words
//! (526, 408, 10000 ms) people's records are full of.

use super::Request;
use super::client::{Answer, Client, Fault, Patience};
use super::follow::follow;
use super::reach::Guard;
use super::record::{CheckResult, Kind};
use archivist_hooks::page::html::one_line;
use std::time::Duration;
use url::Url;

/// Connecting 3 s, reading 10 s.
const PATIENCE: Patience = Patience::of(3, 10);
/// All redirects together; the last answer may still use up its own time.
const LONGEST: Duration = Duration::from_secs(30);
/// As many as requests follows.
const REDIRECTS: usize = 30;
/// Bytes of the body that have to come in time; what comes after them is of no interest.
const BODY: u64 = 1 << 20;
/// The status of TLS errors, the one of everything else, and the time in ms that stands for none.
const TLS_ERROR: u16 = 526;
const NO_ANSWER: u16 = 408;
const NO_TIME: u64 = 10_000;

/// Asks for the URL, follows redirects and says what the last answer was.
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
        client.get(url, BODY)
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

/// An answer whose body did not come is none.
fn whole((_, mut answer): (Url, Answer)) -> Result<Answer, Fault> {
    match answer.problem.take() {
        Some(fault) => Err(fault),
        None => Ok(answer),
    }
}
