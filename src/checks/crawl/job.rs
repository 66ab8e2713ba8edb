//! Jobs of a crawl: requests to the network, and their results.

use super::page::Page;
use crate::crawl::page;
use crate::follow::{follow, target};
use crate::http::{Ask, CheckAnswer, Client, Fault, Patience};
use crate::reach::Guard;
use crate::request::Request;
use crate::sender::{headers, identity};
use archivist_core::model::Robots;
use archivist_hooks::page::charset::decode;
use archivist_hooks::page::sitemap::{self, Sitemap};
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// On the site 5 s to connect and 15 s to read; elsewhere 3 s and 8 s.
const OWN: Patience = Patience::of(5, 15);
const ELSEWHERE: Patience = Patience::of(3, 8);
/// Most bytes of a page, of a robots.txt (RFC 9309), of a sitemap.
const PAGE: u64 = 1 << 20;
const ROBOTS: u64 = 500 << 10;
const SITEMAP: u64 = 16 << 20;
/// Most redirects whose steps do not matter.
const REDIRECTS: usize = 10;
const LONGEST: Duration = Duration::from_secs(30);
/// Name of this robot in robots.txt.
const NAME: &str = "archivist";

/// A request. Numbers are those of the site's URLs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Job {
    Robots(Url),
    Sitemap(Url),
    Page(usize, Url),
    External(usize, Url),
}

#[derive(Debug)]
pub enum Done {
    /// Rules, or why there are none.
    Robots(Rules),
    Sitemap(Url, Result<Sitemap, String>),
    Page(usize, Result<Response, Fault>),
    External(usize, Result<u16, Fault>),
}

#[derive(Debug)]
pub enum Rules {
    Known(Robots),
    None,
    /// The rules are unknown, so the site must not be read (RFC 9309, 2.3.1.4); the text says why.
    Unknown(String),
}

#[derive(Debug)]
pub struct Response {
    pub status: u16,
    /// Time until the headers.
    pub after: Duration,
    /// Where it points, if it is a redirect.
    pub location: Option<String>,
    /// Time that the site asks to wait.
    pub retry_after: Option<Duration>,
    /// The page, if the answer is one.
    pub page: Option<Page>,
    /// Whether the page is longer than what was read.
    pub is_large: bool,
    /// Whether the answer set a cookie, with which the site may answer otherwise.
    pub sets_cookie: bool,
}

/// Both clients; threads share them.
#[derive(Clone)]
pub struct Fetcher {
    own: Client,
    elsewhere: Client,
    start: Url,
    headers: Arc<[(String, String)]>,
}

impl Fetcher {
    /// Returns clients with the time limits of the settings.
    ///
    /// # Errors
    /// If the certificate of the client cannot be used.
    pub fn new(request: &Request) -> Result<Fetcher, String> {
        let settings = &request.settings;
        let guard = Guard::new(settings.reach.clone());
        let agent = settings.user_agent();
        let identity = identity(request)?;
        Ok(Fetcher {
            own: Client::new(settings.patience(OWN), agent, &guard, identity),
            elsewhere: Client::new(settings.patience(ELSEWHERE), agent, &guard, None),
            start: request.url.clone(),
            headers: settings.probe.headers.clone().into(),
        })
    }

    /// Sends GET with the headers of the watch; `most` decides from the answer how many bytes of the
    /// body to keep.
    fn get(&self, url: &Url, most: impl FnOnce(&CheckAnswer) -> u64) -> Result<CheckAnswer, Fault> {
        let headers = headers(&self.headers, &self.start, url);
        let ask = Ask { headers: &headers, ..Ask::new("GET", url) };
        self.own.get_some(&ask, most)
    }

    pub fn carry_out(&self, job: Job) -> Done {
        match job {
            Job::Robots(url) => Done::Robots(self.robots(&url)),
            Job::Sitemap(url) => {
                let brought = self.sitemap(&url);
                Done::Sitemap(url, brought)
            }
            Job::Page(number, url) => Done::Page(number, self.page(&url)),
            Job::External(number, url) => Done::External(number, self.external(&url)),
        }
    }

    fn robots(&self, url: &Url) -> Rules {
        let answered = follow(url, REDIRECTS, LONGEST, |url| self.get(url, |_| ROBOTS));
        match answered {
            Ok((_, answer)) => match answer.status {
                200..300 => {
                    let text = decode(&answer.body, "text/plain", Some(url)).text;
                    Rules::Known(Robots::parse(&text, NAME))
                }
                400..500 => Rules::None,
                status => Rules::Unknown(format!("the server answered {status}")),
            },
            Err(fault) => Rules::Unknown(fault.to_string()),
        }
    }

    fn sitemap(&self, url: &Url) -> Result<Sitemap, String> {
        let answered = follow(url, REDIRECTS, LONGEST, |url| self.get(url, |_| SITEMAP));
        let (_, answer) = answered.map_err(|fault| fault.to_string())?;
        match (answer.status, answer.problem) {
            (200, None) => Ok(sitemap::read(&answer.body, url)),
            (200, Some(problem)) => Err(problem.to_string()),
            (status, _) => Err(format!("the server answered {status}")),
        }
    }

    /// Repeats a request if the connection broke: the server may have closed a kept-alive one.
    fn page(&self, url: &Url) -> Result<Response, Fault> {
        let ask = || self.get(url, |answer| if is_page(answer) { PAGE } else { 0 });
        let mut answer = match ask() {
            Err(Fault::Other(_)) => ask()?,
            answer => answer?,
        };
        // A page that sets a cookie and redirects to itself is there with the cookie.
        for _ in 0..REDIRECTS {
            if !(answer.sets_cookie && leads_to_itself(&answer, url)) {
                break;
            }
            answer = ask()?;
        }
        match answer.problem.take() {
            // An endless page, of which browsers show what has arrived.
            Some(Fault::Late(_)) if !answer.body.is_empty() => answer.is_cut = true,
            Some(fault) => return Err(fault),
            None => {}
        }
        let tags = answer.header("x-robots-tag").unwrap_or_default();
        let kind = answer.header("content-type").unwrap_or_default();
        let page = is_page(&answer).then(|| page::read(&answer.body, kind, url, tags));
        Ok(Response {
            status: answer.status,
            after: answer.after,
            location: answer.location().map(str::to_owned),
            retry_after: retry_after(&answer),
            page,
            is_large: answer.is_cut,
            sets_cookie: answer.sets_cookie,
        })
    }

    /// Sends HEAD, and GET if the server does not support HEAD.
    fn external(&self, url: &Url) -> Result<u16, Fault> {
        let client = self.elsewhere.without_cookies();
        let head = follow(url, REDIRECTS, LONGEST, |url| client.head(url));
        if let Ok((_, answer)) = &head
            && answer.status < 400
        {
            return Ok(answer.status);
        }
        let got = follow(url, REDIRECTS, LONGEST, |url| client.get(url, 0));
        got.map(|(_, answer)| answer.status)
    }
}

fn leads_to_itself(answer: &CheckAnswer, url: &Url) -> bool {
    let to = answer.location().and_then(|to| target(url, to).ok());
    to.is_some_and(|to| to == *url)
}

fn is_page(answer: &CheckAnswer) -> bool {
    let kind = answer.media_type();
    answer.status == 200 && matches!(kind.as_str(), "text/html" | "application/xhtml+xml")
}

/// Parses Retry-After in seconds; a date counts as 30 s, the longest wait.
fn retry_after(answer: &CheckAnswer) -> Option<Duration> {
    if !matches!(answer.status, 429 | 503) {
        return None;
    }
    let text = answer.header("retry-after")?;
    Some(Duration::from_secs(text.trim().parse().unwrap_or(30)))
}
