//! `crawl`: reads the pages of a site, as robots.txt allows and a few at a time, and reports
//! problems. Ends before its deadline, or on SIGTERM, with what it has found so far.

mod findings;
mod job;
mod page;
mod site;
#[cfg(test)]
mod tests;

use super::request::{Request, Settings};
use super::result::{CheckResult, Kind};
use archivist_core::lock;
use archivist_hooks::page::html::one_line;
use job::{Done, Fetcher, Job, Rules};
use nix::sys::signal::{SigSet, Signal};
use site::{Found, Next, Site};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Most URLs of a site, and most concurrent requests.
const PAGES: usize = 500;
const AT_ONCE: usize = 4;
/// The unit's limit is 540 s; a check that met it would have found nothing.
const DEADLINE: Duration = Duration::from_secs(530);

enum Message {
    Done(Box<Done>),
    /// SIGTERM or SIGINT arrived.
    Stop,
}

#[derive(Clone, Copy, PartialEq)]
enum End {
    Done,
    Late,
    Stopped,
}

/// Crawls the site of the URL.
///
/// Blocks SIGTERM and SIGINT in this process and ends on either. Requests that are in progress at
/// the end are abandoned: their threads end with the process or at their time limits.
pub fn check(request: &Request) -> CheckResult {
    let settings = &request.settings;
    let deadline = Instant::now() + settings.deadline(DEADLINE);
    let most = settings.pages.unwrap_or(PAGES).clamp(1, 10_000);
    let mut site = Site::new(&request.url, most, settings.external.unwrap_or(true));
    let (events, heard) = channel();
    let fetcher = match Fetcher::new(request) {
        Ok(fetcher) => fetcher,
        Err(reason) => {
            let mut result = CheckResult::new(Kind::Crawl, request.url.as_str());
            result.skipped = true;
            return result.with_error(&reason);
        }
    };
    let end = match start(settings, fetcher, &events) {
        Ok(jobs) => survey(&mut site, &jobs, &heard, deadline),
        Err(error) => {
            let reason = format!("failed to start a thread: {error}");
            return CheckResult::new(Kind::Crawl, request.url.as_str()).with_error(&reason);
        }
    };
    conclude(request, &site, end, settings.deadline(DEADLINE))
}

/// The threads that ask, and one that waits for signals.
fn start(
    settings: &Settings,
    fetcher: Fetcher,
    events: &Sender<Message>,
) -> std::io::Result<Sender<Job>> {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGTERM);
    signals.add(Signal::SIGINT);
    // Threads to come have it from this one.
    let _ = signals.thread_block();
    let told = events.clone();
    thread::Builder::new().name("signals".into()).spawn(move || {
        let _ = signals.wait().map(|_| told.send(Message::Stop));
    })?;
    let (jobs, queue) = channel::<Job>();
    let queue = Arc::new(Mutex::new(queue));
    for number in 0..settings.at_once.unwrap_or(AT_ONCE).clamp(1, 64) {
        let (fetcher, queue, events) = (fetcher.clone(), queue.clone(), events.clone());
        let work = move || {
            while let Some(job) = take(&queue) {
                let done = Message::Done(Box::new(fetcher.carry_out(job)));
                if events.send(done).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new().name(format!("fetch-{number}")).spawn(work)?;
    }
    Ok(jobs)
}

fn take(queue: &Mutex<Receiver<Job>>) -> Option<Job> {
    lock(queue).recv().ok()
}

/// Hands out jobs and takes in what comes of them, until there is nothing more, or no more time.
fn survey(
    site: &mut Site,
    jobs: &Sender<Job>,
    heard: &Receiver<Message>,
    deadline: Instant,
) -> End {
    loop {
        let until = match site.next(Instant::now()) {
            Next::Job(job) => match jobs.send(job) {
                Ok(()) => continue,
                Err(_) => return End::Stopped,
            },
            Next::Wait(until) => until.min(deadline),
            Next::CheckAnswer => deadline,
            Next::Done => return End::Done,
        };
        match heard.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(Message::Done(done)) => site.apply(*done, Instant::now()),
            Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => return End::Stopped,
            Err(RecvTimeoutError::Timeout) => {}
        }
        if Instant::now() >= deadline {
            return End::Late;
        }
    }
}

fn conclude(request: &Request, site: &Site, end: End, limit: Duration) -> CheckResult {
    let mut result = CheckResult::new(Kind::Crawl, request.url.as_str());
    let start = &site.urls[site.start];
    let moved = site.start != 0;
    result.final_url = moved.then(|| one_line(start.url.as_str(), 2048));
    result.pages = Some(site.pages);
    result.partial = end != End::Done;
    result.ok = site.pages > 0;
    if let Some(Found::Page(_, after, _)) = &start.answer {
        result.status_code = Some(200);
        result.response_ms = Some(after.as_millis() as u64);
    }
    if let Some(Found::Status(status)) = start.answer {
        result.status_code = Some(status);
    }
    result.set_findings(findings::of(site, end == End::Done));
    match reason(site, end, limit) {
        Some(reason) => result.with_error(&reason),
        None => result,
    }
}

/// Why there is less than there could be.
fn reason(site: &Site, end: End, limit: Duration) -> Option<String> {
    let start = &site.urls[site.start];
    let early = match end {
        End::Done => None,
        End::Late => Some(format!("ended after {} s, with pages left to read", limit.as_secs())),
        End::Stopped => Some("ended when it was told to, with pages left to read".to_owned()),
    };
    let closed = match (&site.rules, &start.answer) {
        (Rules::Unknown(reason), _) => {
            Some(format!("robots.txt cannot be read, and so nothing else may be: {reason}"))
        }
        (_, Some(Found::Forbidden)) => {
            Some("robots.txt does not allow to read this URL".to_owned())
        }
        (_, Some(Found::Fault(fault))) => Some(fault.to_string()),
        (_, Some(Found::Status(status))) if site.pages == 0 => {
            Some(format!("the server answered {status}, not with a page"))
        }
        (_, Some(Found::Redirect(..))) if site.pages == 0 => {
            Some("a redirect leads to no page".to_owned())
        }
        _ => None,
    };
    closed.or(early)
}
