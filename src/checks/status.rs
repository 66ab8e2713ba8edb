//! `status`: whether a site answers as expected, how, and how fast. Follows Python's requests, whose
//! values (526, 408, 10000 ms) existing records contain.

use super::Request;
use super::follow::follow;
use super::http::{Ask, CheckAnswer, Client, DEMAND, Fault, Patience, Wanted};
use super::reach::Guard;
use super::result::{CheckResult, Kind};
use super::sender::{headers, identity};
use archivist_core::model::{Probe, ProbeBody, Time};
use archivist_hooks::page::charset::decode;
use archivist_hooks::page::html::one_line;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use url::Url;

/// 3 s to connect, 10 s to read.
const PATIENCE: Patience = Patience::of(3, 10);
/// Limit for all redirects; the last answer has its own limit in addition.
const LONGEST: Duration = Duration::from_secs(30);
/// Most redirects, as in Python's requests.
const REDIRECTS: usize = 30;
/// Most bytes of a body that is read for keywords, or must arrive as a whole.
const BODY: u64 = 1 << 20;
/// Status of TLS errors, status of other errors, and the time in ms for a missing answer.
const TLS_ERROR: u16 = 526;
const NO_ANSWER: u16 = 408;
const NO_TIME: u64 = 10_000;
const DAY: i64 = 86_400;

/// Requests the URL, follows redirects and judges the last answer. By default, ends when its headers
/// and the first bytes of its body have arrived: some bodies never end.
pub fn check(request: &Request) -> CheckResult {
    let settings = &request.settings;
    let mut result = CheckResult::new(Kind::Status, request.url.as_str());
    let identity = match identity(request) {
        Ok(identity) => identity,
        Err(why) => {
            result.skipped = true;
            return result.with_error(&why);
        }
    };
    let client = Client::new(
        settings.patience(PATIENCE),
        settings.user_agent(),
        &Guard::new(settings.reach.clone()),
        identity,
    );
    let mut asker = Asker::new(&client, &settings.probe, &request.url);
    let longest = settings.deadline(LONGEST.max(settings.patience(PATIENCE).read));
    let answered = follow(&request.url, REDIRECTS, longest, |url| asker.ask(url));
    if let Ok((url, answer)) = &answered {
        result.set_headers(&answer.headers);
        result.final_url = (url != &request.url).then(|| one_line(url.as_str(), 2048));
    }
    let expired = match &answered {
        Err(Fault::Expired(end)) => Some(*end),
        _ => None,
    };
    if let Some(end) = expired.or(asker.certificate_expires) {
        let warn_days = settings.probe.certificate_warn_days;
        note_certificate(&mut result, end, now(), warn_days);
    }
    match answered.and_then(|(_, answer)| whole(answer, &settings.probe)) {
        Ok(answer) => {
            result.status_code = Some(answer.status);
            result.response_ms = Some(answer.after.as_millis() as u64);
            match complaint(&answer, &settings.probe) {
                Some(why) => result.with_error(&why),
                None => {
                    result.ok = true;
                    result
                }
            }
        }
        Err(fault) => {
            result.status_code = Some(match fault {
                Fault::Tls(_) | Fault::Expired(_) => TLS_ERROR,
                Fault::Late(_) | Fault::Other(_) => NO_ANSWER,
            });
            result.response_ms = Some(NO_TIME);
            let why = match &fault {
                Fault::Expired(end) => format!("{fault}, {}", ago(*end, now())),
                _ => fault.to_string(),
            };
            result.with_error(&why)
        }
    }
}

struct Asker<'a> {
    client: &'a Client,
    probe: &'a Probe,
    start: &'a Url,
    /// Method and body; after some redirects, GET without a body, as browsers do.
    method: String,
    data: Option<&'a [u8]>,
    /// End of the first certificate that expires, in seconds since 1970.
    certificate_expires: Option<i64>,
}

impl<'a> Asker<'a> {
    fn new(client: &'a Client, probe: &'a Probe, start: &'a Url) -> Asker<'a> {
        Asker {
            client,
            probe,
            start,
            method: probe.method().to_owned(),
            data: probe.data.as_deref().map(str::as_bytes),
            certificate_expires: None,
        }
    }

    fn ask(&mut self, url: &Url) -> Result<CheckAnswer, Fault> {
        let mut headers = headers(&self.probe.headers, self.start, url);
        let has_type = |(name, _): &(String, String)| name.eq_ignore_ascii_case("content-type");
        if self.data.is_some() && !headers.iter().any(has_type) {
            let form = "application/x-www-form-urlencoded";
            headers.push(("Content-Type".to_owned(), form.to_owned()));
        }
        let ask = Ask { method: &self.method, url, headers: &headers, body: self.data };
        let probe = self.probe;
        let mut answer = self.client.send(&ask, |answer| match probe.body {
            _ if answer.location().is_some() && !probe.names(answer.status) => Wanted::Nothing,
            _ if probe.has_keywords() => Wanted::Bytes(BODY),
            ProbeBody::No => Wanted::Nothing,
            ProbeBody::Start => Wanted::Start,
            ProbeBody::Whole => Wanted::Bytes(BODY),
        })?;
        let ends = [self.certificate_expires, answer.certificate_expires];
        self.certificate_expires = ends.into_iter().flatten().min();
        if probe.names(answer.status) {
            answer.stay();
        }
        let is_post = !matches!(self.method.as_str(), "GET" | "HEAD");
        if answer.status == 303 || (is_post && matches!(answer.status, 301 | 302)) {
            if self.method != "HEAD" {
                self.method = "GET".to_owned();
            }
            self.data = None;
        }
        Ok(answer)
    }
}

/// An answer without the body that must arrive counts as none. For keywords, what has arrived of a
/// body without an end is enough.
fn whole(mut answer: CheckAnswer, probe: &Probe) -> Result<CheckAnswer, Fault> {
    match answer.problem.take() {
        Some(Fault::Late(_))
            if probe.body != ProbeBody::Whole
                && !answer.body.is_empty()
                && complaint(&answer, probe).is_none() =>
        {
            Ok(answer)
        }
        Some(fault) => Err(fault),
        None => Ok(answer),
    }
}

/// Returns why an answer is not the expected one, if it is not.
fn complaint(answer: &CheckAnswer, probe: &Probe) -> Option<String> {
    if !probe.expects(answer.status) {
        let demand = match answer.status {
            400 | 401 | 403 | 495 | 496 if answer.misses_certificate => format!("; {DEMAND}"),
            _ => String::new(),
        };
        return Some(format!("the server answered {}{demand}", answer.status));
    }
    if !probe.has_keywords() {
        return None;
    }
    let kind = answer.header("content-type").unwrap_or_default();
    probe.complaint(&decode(&answer.body, kind, None).text)
}

/// Records when the certificate expires, and warns before.
fn note_certificate(result: &mut CheckResult, end: i64, now: i64, warn_days: u32) {
    let days = (end - now).div_euclid(DAY);
    result.certificate_expires = Some(Time(end.saturating_mul(1000)));
    result.certificate_days = Some(days);
    result.certificate_warn_days = Some(warn_days);
    // After the end, the check fails with that reason.
    if (0..i64::from(warn_days)).contains(&days) {
        let when = match days {
            0 => "today".to_owned(),
            1 => "in 1 day".to_owned(),
            days => format!("in {days} days"),
        };
        result.warning = Some(format!("the certificate expires {when}"));
    }
}

/// Returns how long ago a certificate expired.
fn ago(end: i64, now: i64) -> String {
    match (now - end) / DAY {
        ..=0 => "less than a day ago".to_owned(),
        1 => "1 day ago".to_owned(),
        days => format!("{days} days ago"),
    }
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_that_expire_soon_are_a_warning() {
        let of = |seconds: i64, warn: u32| {
            let mut result = CheckResult::new(Kind::Status, "https://a.test/");
            note_certificate(&mut result, 1_000_000 + seconds, 1_000_000, warn);
            (result.certificate_days.unwrap(), result.warning)
        };
        let soon = |text: &str| Some(format!("the certificate expires {text}"));
        assert_eq!(of(2 * DAY + 5, 14), (2, soon("in 2 days")));
        assert_eq!(of(DAY, 14), (1, soon("in 1 day")));
        assert_eq!(of(60, 14), (0, soon("today")));
        assert_eq!(of(14 * DAY, 14), (14, None));
        assert_eq!(of(14 * DAY - 1, 14), (13, soon("in 13 days")));
        assert_eq!(of(5, 0), (0, None));
        assert_eq!(of(-5, 14), (-1, None));
        assert_eq!(of(-3 * DAY - 5, 14), (-4, None));
        assert_eq!(ago(0, 2 * DAY + 5), "2 days ago");
        assert_eq!(ago(0, 5), "less than a day ago");
    }
}
