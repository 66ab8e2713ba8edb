//! The pieces of work of a crawl: what is asked of the network, and what came of it.

use super::page::Page;
use super::sitemap::Sitemap;
use crate::client::{Answer, Client, Fault, Patience};
use crate::crawl::page;
use crate::crawl::sitemap;
use crate::follow::follow;
use crate::reach::Guard;
use crate::request::Settings;
use archivist_core::model::Robots;
use std::time::Duration;
use url::Url;

/// Connecting 5 s and reading 15 s on the site; 3 s and 8 s elsewhere.
const OWN: Patience = Patience::of(5, 15);
const ELSEWHERE: Patience = Patience::of(3, 8);
/// Bytes that are read of a page, of a robots.txt (RFC 9309), of a sitemap.
const PAGE: u64 = 1 << 20;
const ROBOTS: u64 = 500 << 10;
const SITEMAP: u64 = 16 << 20;
/// Redirects that are followed where their way is of no interest.
const REDIRECTS: usize = 10;
const LONGEST: Duration = Duration::from_secs(30);
/// Who we are in a robots.txt.
const NAME: &str = "archivist";

/// Something to be asked for. Numbers are those of the site's URLs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Job {
    /// What the site asks of robots.
    Robots(Url),
    /// A file of a sitemap.
    Sitemap(Url),
    /// A URL of the site.
    Page(usize, Url),
    /// A URL of another one.
    External(usize, Url),
}

/// What came of a job.
#[derive(Debug)]
pub enum Done {
    /// Rules, or why there are none.
    Robots(Rules),
    /// Of this address.
    Sitemap(Url, Result<Sitemap, String>),
    /// An answer of the site.
    Page(usize, Result<Seen, Fault>),
    /// The status of another site.
    External(usize, Result<u16, Fault>),
}

/// What a site asks of robots.
#[derive(Debug)]
pub enum Rules {
    /// This.
    Known(Robots),
    /// Nothing.
    None,
    /// It cannot say, and so may not be read (RFC 9309, 2.3.1.4); why, in words.
    Unknown(String),
}

/// An answer of the site.
#[derive(Debug)]
pub struct Seen {
    /// The status number.
    pub status: u16,
    /// Until the headers.
    pub after: Duration,
    /// Where it points, if it is a redirect.
    pub location: Option<String>,
    /// How long it wants to be left alone, if it does.
    pub retry_after: Option<Duration>,
    /// What was read, if it is a page.
    pub page: Option<Page>,
    /// Whether there was more of it than is read.
    pub is_large: bool,
}

/// Two clients, shared by the threads.
#[derive(Clone)]
pub struct Fetcher {
    own: Client,
    elsewhere: Client,
}

impl Fetcher {
    /// With the times of the settings.
    pub fn new(settings: &Settings) -> Fetcher {
        let guard = Guard::new(settings.reach.clone());
        let agent = settings.user_agent();
        Fetcher {
            own: Client::new(settings.patience(OWN), agent, &guard),
            elsewhere: Client::new(settings.patience(ELSEWHERE), agent, &guard),
        }
    }

    /// Does it.
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
        let answered = follow(url, REDIRECTS, LONGEST, |url| self.own.get(url, ROBOTS));
        match answered {
            Ok((_, answer)) => match answer.status {
                200..300 => {
                    Rules::Known(Robots::parse(&String::from_utf8_lossy(&answer.body), NAME))
                }
                400..500 => Rules::None,
                status => Rules::Unknown(format!("the server answered {status}")),
            },
            Err(fault) => Rules::Unknown(fault.to_string()),
        }
    }

    fn sitemap(&self, url: &Url) -> Result<Sitemap, String> {
        let answered = follow(url, REDIRECTS, LONGEST, |url| self.own.get(url, SITEMAP));
        let (_, answer) = answered.map_err(|fault| fault.to_string())?;
        match (answer.status, answer.problem) {
            (200, None) => Ok(sitemap::read(&answer.body, url)),
            (200, Some(problem)) => Err(problem.to_string()),
            (status, _) => Err(format!("the server answered {status}")),
        }
    }

    /// Once more where the connection broke: a server may close one that was kept open.
    fn page(&self, url: &Url) -> Result<Seen, Fault> {
        let ask = || {
            self.own
                .get_some(url, |answer| if is_page(answer) { PAGE } else { 0 })
        };
        let mut answer = match ask() {
            Err(Fault::Other(_)) => ask()?,
            answer => answer?,
        };
        if let Some(fault) = answer.problem.take() {
            return Err(fault);
        }
        let tags = answer.header("x-robots-tag").unwrap_or_default();
        let kind = answer.header("content-type").unwrap_or_default();
        let page = is_page(&answer).then(|| page::read(&answer.body, kind, url, tags));
        Ok(Seen {
            status: answer.status,
            after: answer.after,
            location: answer.location().map(str::to_owned),
            retry_after: retry_after(&answer),
            page,
            is_large: answer.is_cut,
        })
    }

    /// HEAD, and GET where that is not liked.
    fn external(&self, url: &Url) -> Result<u16, Fault> {
        let head = follow(url, REDIRECTS, LONGEST, |url| self.elsewhere.head(url));
        if let Ok((_, answer)) = &head
            && answer.status < 400
        {
            return Ok(answer.status);
        }
        let got = follow(url, REDIRECTS, LONGEST, |url| self.elsewhere.get(url, 0));
        got.map(|(_, answer)| answer.status)
    }
}

fn is_page(answer: &Answer) -> bool {
    let kind = answer.media_type();
    answer.status == 200 && matches!(kind.as_str(), "text/html" | "application/xhtml+xml")
}

/// In whole seconds; a date is taken as half a minute, which is as long as is waited.
fn retry_after(answer: &Answer) -> Option<Duration> {
    if !matches!(answer.status, 429 | 503) {
        return None;
    }
    let text = answer.header("retry-after")?;
    Some(Duration::from_secs(text.trim().parse().unwrap_or(30)))
}
