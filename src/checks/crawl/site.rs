//! State of a crawled site, and the next job. Time is an argument; results of jobs are applied by
//! the caller.

use super::job::{Done, Job, Response, Rules};
use super::page::Page;
use crate::follow::target;
use crate::http::Fault;
use archivist_core::model::Robots;
use archivist_hooks::page::sitemap::Sitemap;
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};
use url::Url;

/// Most known URLs in total, and most URLs of other sites that are checked.
const KNOWN: usize = 50_000;
const EXTERNAL: usize = 500;
/// Most pages that are named as sources of a link.
const ON: usize = 5;
/// Cost of a page or redirect towards the limit.
const PAGE: usize = 3;
const REDIRECT: usize = 1;
/// Most files of sitemaps that are read.
const SITEMAPS: usize = 50;
/// Most moves of a site to another host before it is read.
const MOVES: usize = 5;
/// Wait for an overloaded site that names no time, and longest wait.
const PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Most such waits.
const PAUSES: usize = 5;

#[derive(Debug)]
pub struct Known {
    /// The URL without fragment.
    pub url: Url,
    /// Numbers of the first pages that link to it.
    pub on: Vec<usize>,
    pub in_sitemap: bool,
    pub answer: Option<Found>,
    tries: u8,
    /// Whether it was requested again, because a cookie was set on the way back to it.
    is_again: bool,
}

#[derive(Debug)]
pub enum Found {
    /// A page, with the time until its headers and whether it was too long.
    Page(Box<Page>, Duration, bool),
    /// A redirect with this status to the URL of this number, or without a target.
    Redirect(u16, Option<usize>),
    /// An answer with this status that is not a page.
    Status(u16),
    Fault(Fault),
    /// Not requested: robots.txt forbids it.
    Forbidden,
}

#[derive(Debug, PartialEq)]
pub enum Next {
    Job(Job),
    /// Wait until this time, or for a result.
    Wait(Instant),
    /// Wait for a result.
    CheckAnswer,
    Done,
}

#[derive(Debug, PartialEq)]
enum Phase {
    Robots,
    Start,
    Open,
}

#[derive(Debug)]
pub struct Site {
    /// Known URLs; the first is that of the check.
    pub urls: Vec<Known>,
    /// Start of the site, after redirects.
    pub start: usize,
    pub rules: Rules,
    /// Files of the sitemap that failed, and why.
    pub broken_sitemaps: Vec<(Url, String)>,
    /// Whether any URL is in a sitemap.
    pub has_sitemap: bool,
    pub pages: usize,
    /// Whether a limit left something out.
    pub is_cut: bool,
    /// Whether a redirect of the site set a cookie.
    has_cookies: bool,
    by_url: HashMap<Url, usize>,
    phase: Phase,
    moves: usize,
    most: usize,
    asked: usize,
    looks_elsewhere: bool,
    elsewhere: usize,
    queue: VecDeque<usize>,
    externals: VecDeque<usize>,
    sitemaps: VecDeque<Url>,
    sitemaps_seen: Vec<Url>,
    under_way: usize,
    not_before: Option<Instant>,
    pauses: usize,
}

impl Site {
    /// Returns the state of an unread site. Requests at most `most` URLs.
    pub fn new(url: &Url, most: usize, looks_elsewhere: bool) -> Site {
        let mut site = Site {
            urls: Vec::new(),
            start: 0,
            rules: Rules::None,
            broken_sitemaps: Vec::new(),
            has_sitemap: false,
            pages: 0,
            is_cut: false,
            has_cookies: false,
            by_url: HashMap::new(),
            phase: Phase::Robots,
            moves: 0,
            most,
            asked: 0,
            looks_elsewhere,
            elsewhere: 0,
            queue: VecDeque::new(),
            externals: VecDeque::new(),
            sitemaps: VecDeque::new(),
            sitemaps_seen: Vec::new(),
            under_way: 0,
            not_before: None,
            pauses: 0,
        };
        let mut url = url.clone();
        url.set_fragment(None);
        site.know(url);
        site
    }

    pub fn next(&mut self, now: Instant) -> Next {
        let job = match self.phase {
            Phase::Robots if self.under_way == 0 => {
                Some(Job::Robots(at(&self.urls[self.start].url, "/robots.txt")))
            }
            Phase::Robots => None,
            Phase::Start | Phase::Open => match self.not_before.filter(|at| *at > now) {
                None => self.own_job(),
                Some(at) => match self.external_job() {
                    Some(job) => Some(job),
                    None if self.queue.is_empty() && self.sitemaps.is_empty() => None,
                    None => return Next::Wait(at),
                },
            },
        };
        match job.or_else(|| self.external_job()) {
            Some(job) => {
                let delay = self.delay().filter(|_| !matches!(job, Job::External(..)));
                self.not_before = delay.map(|delay| now + delay).or(self.not_before);
                self.under_way += 1;
                Next::Job(job)
            }
            None if self.under_way > 0 => Next::CheckAnswer,
            None => Next::Done,
        }
    }

    pub fn apply(&mut self, done: Done, now: Instant) {
        self.under_way = self.under_way.saturating_sub(1);
        match done {
            Done::Robots(rules) => self.open(rules),
            Done::Sitemap(url, Ok(sitemap)) => self.take_sitemap(url, sitemap),
            Done::Sitemap(url, Err(reason)) => self.broken_sitemaps.push((url, reason)),
            Done::Page(number, Ok(seen)) => self.take_page(number, seen, now),
            Done::Page(number, Err(fault)) => self.settle(number, Found::Fault(fault)),
            Done::External(number, Ok(status)) => self.settle(number, Found::Status(status)),
            Done::External(number, Err(fault)) => self.settle(number, Found::Fault(fault)),
        }
    }

    /// Returns whether a URL is on this site: same host, with or without www, and same port.
    pub fn is_own(&self, url: &Url) -> bool {
        place(url) == place(&self.urls[self.start].url)
    }

    /// Returns whether robots may request it.
    pub fn may_ask(&self, url: &Url) -> bool {
        match &self.rules {
            Rules::Known(robots) => robots.allows(&path(url)),
            Rules::None => true,
            Rules::Unknown(_) => false,
        }
    }

    fn delay(&self) -> Option<Duration> {
        match &self.rules {
            Rules::Known(robots) => robots.delay.filter(|delay| !delay.is_zero()),
            _ => None,
        }
    }

    /// Sitemaps first: there are few, and they list the pages.
    fn own_job(&mut self) -> Option<Job> {
        if let Some(url) = self.sitemaps.pop_front() {
            return Some(Job::Sitemap(url));
        }
        while let Some(number) = self.queue.pop_front() {
            if self.asked >= self.most * PAGE {
                self.is_cut = true;
                self.queue.clear();
                return None;
            }
            let url = self.urls[number].url.clone();
            if !self.may_ask(&url) {
                self.settle(number, Found::Forbidden);
                continue;
            }
            self.asked += PAGE;
            return Some(Job::Page(number, url));
        }
        None
    }

    fn external_job(&mut self) -> Option<Job> {
        if self.phase != Phase::Open {
            return None;
        }
        let number = self.externals.pop_front()?;
        Some(Job::External(number, self.urls[number].url.clone()))
    }

    /// The rules are known: the first page may be requested.
    fn open(&mut self, rules: Rules) {
        let named = match &rules {
            Rules::Known(Robots { sitemaps, .. }) => sitemaps.clone(),
            _ => Vec::new(),
        };
        self.rules = rules;
        self.phase = Phase::Start;
        self.sitemaps_seen = named.iter().filter_map(|text| Url::parse(text).ok()).collect();
        self.queue.push_front(self.start);
    }

    /// The first page is read: the host is the site, and its sitemaps count.
    fn begin(&mut self) {
        self.phase = Phase::Open;
        let mut files = std::mem::take(&mut self.sitemaps_seen);
        if files.is_empty() {
            files.push(at(&self.urls[self.start].url, "/sitemap.xml"));
        }
        for url in files {
            self.plan_sitemap(url);
        }
    }

    fn plan_sitemap(&mut self, url: Url) {
        let is_new = !self.sitemaps_seen.contains(&url) && self.sitemaps_seen.len() < SITEMAPS;
        if is_new && self.is_own(&url) && self.may_ask(&url) {
            self.sitemaps_seen.push(url.clone());
            self.sitemaps.push_back(url);
        }
    }

    fn take_sitemap(&mut self, url: Url, sitemap: Sitemap) {
        if let Some(problem) = sitemap.problem {
            self.broken_sitemaps.push((url, problem));
        }
        for file in sitemap.files {
            self.plan_sitemap(file.url);
        }
        for page in sitemap.pages {
            if self.is_own(&page.url)
                && let Some(number) = self.know(page.url)
            {
                self.urls[number].in_sitemap = true;
                self.has_sitemap = true;
            }
        }
    }

    fn take_page(&mut self, number: usize, seen: Response, now: Instant) {
        if matches!(seen.status, 429 | 503) && self.pauses < PAUSES && self.urls[number].tries == 0
        {
            self.pauses += 1;
            self.urls[number].tries += 1;
            self.not_before = Some(now + seen.retry_after.unwrap_or(PAUSE).min(LONGEST_PAUSE));
            self.asked -= PAGE;
            self.queue.push_back(number);
            return;
        }
        if let Some(location) = &seen.location {
            self.asked -= PAGE - REDIRECT;
            self.has_cookies |= seen.sets_cookie;
            return self.take_redirect(number, seen.status, location);
        }
        let Some(page) = seen.page else {
            return self.settle(number, Found::Status(seen.status));
        };
        self.pages += 1;
        self.settle(number, Found::Page(Box::default(), seen.after, seen.is_large));
        for link in &page.links {
            self.link(link.clone(), number);
        }
        self.urls[number].answer = Some(Found::Page(Box::new(page), seen.after, seen.is_large));
    }

    fn take_redirect(&mut self, number: usize, status: u16, location: &str) {
        let url = target(&self.urls[number].url, location).ok().map(|mut url| {
            url.set_fragment(None);
            url
        });
        let is_start = self.phase == Phase::Start && number == self.start;
        let Some(url) = url else {
            return self.settle(number, Found::Redirect(status, None));
        };
        if is_start && !self.is_own(&url) && self.moves < MOVES {
            self.moves += 1;
            return self.move_to(url, status);
        }
        if is_start {
            // Before the target is known, so that the sitemap is requested first.
            self.begin();
        }
        let to = self.link(url, number);
        self.urls[number].answer = Some(Found::Redirect(status, to));
        if let Some(to) = to.filter(|to| self.has_cookies && self.leads_back(*to, number)) {
            self.urls[to].is_again = true;
            self.urls[to].answer = None;
            self.queue.push_front(to);
        }
    }

    /// Returns whether `from` redirects to `to`, directly or through others, and was requested once.
    /// With the cookies of the way, the site may answer with a page.
    fn leads_back(&self, from: usize, to: usize) -> bool {
        let mut at = from;
        for _ in 0..=MOVES {
            match self.urls[at].answer {
                _ if at == to => return !self.urls[from].is_again,
                Some(Found::Redirect(_, Some(next))) => at = next,
                _ => return false,
            }
        }
        false
    }

    /// The site is on another host, which has its own rules.
    fn move_to(&mut self, url: Url, status: u16) {
        let from = self.start;
        let to = self.link(url, from).unwrap_or(from);
        self.start = to;
        self.urls[from].answer = Some(Found::Redirect(status, Some(to)));
        self.queue.clear();
        self.externals.clear();
        self.not_before = None;
        self.phase = match self.urls[to].answer {
            None => Phase::Robots,
            // A redirect loop.
            Some(_) => Phase::Open,
        };
    }

    fn settle(&mut self, number: usize, found: Found) {
        let is_start = self.phase == Phase::Start && number == self.start;
        let is_there = !matches!(found, Found::Fault(_) | Found::Forbidden);
        self.urls[number].answer = Some(found);
        if is_start && is_there {
            self.begin();
        } else if is_start {
            self.phase = Phase::Open;
        }
    }

    fn link(&mut self, url: Url, on: usize) -> Option<usize> {
        let number = self.know(url)?;
        let known = &mut self.urls[number].on;
        if known.len() < ON && !known.contains(&on) {
            known.push(on);
        }
        Some(number)
    }

    /// Returns the number of a URL; a new URL is queued.
    fn know(&mut self, url: Url) -> Option<usize> {
        if let Some(number) = self.by_url.get(&url) {
            return Some(*number);
        }
        if self.urls.len() >= KNOWN {
            self.is_cut = true;
            return None;
        }
        let number = self.urls.len();
        self.by_url.insert(url.clone(), number);
        self.urls.push(Known {
            url,
            on: Vec::new(),
            in_sitemap: false,
            answer: None,
            tries: 0,
            is_again: false,
        });
        if self.phase == Phase::Open {
            if self.is_own(&self.urls[number].url) {
                self.queue.push_back(number);
            } else if self.looks_elsewhere && self.elsewhere < EXTERNAL {
                self.elsewhere += 1;
                self.externals.push_back(number);
            }
        }
        Some(number)
    }
}

fn at(url: &Url, path: &str) -> Url {
    let mut url = url.clone();
    url.set_path(path);
    url.set_query(None);
    url
}

fn path(url: &Url) -> String {
    match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    }
}

fn place(url: &Url) -> (&str, Option<u16>) {
    let host = url.host_str().unwrap_or_default();
    (host.strip_prefix("www.").unwrap_or(host), url.port())
}
