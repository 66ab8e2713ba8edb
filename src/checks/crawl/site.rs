//! A site as far as it is known, and what to ask for next. Time is an argument, the network is
//! elsewhere: jobs go out, what came of them comes in.

use super::job::{Done, Job, Rules, Seen};
use super::page::Page;
use super::sitemap::Sitemap;
use crate::client::Fault;
use crate::follow::target;
use archivist_core::model::Robots;
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};
use url::Url;

/// The most URLs that are known at all, and those of other sites that are looked at.
const KNOWN: usize = 50_000;
const EXTERNAL: usize = 500;
/// Pages that are named where something is linked from.
const ON: usize = 5;
/// What pages and redirects count against the limit.
const PAGE: usize = 3;
const REDIRECT: usize = 1;
/// Files of sitemaps that are read.
const SITEMAPS: usize = 50;
/// How often a site may move to another host before it is read.
const MOVES: usize = 5;
/// How long a site is left alone that is overloaded and does not say, and at most.
const PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How often it may be.
const PAUSES: usize = 5;

/// A URL that was seen somewhere.
#[derive(Debug)]
pub struct Known {
    /// Without fragment.
    pub url: Url,
    /// The numbers of pages that link to it, the first few.
    pub on: Vec<usize>,
    /// Whether a sitemap lists it.
    pub in_sitemap: bool,
    /// What came of asking for it.
    pub answer: Option<Found>,
    tries: u8,
}

/// What came of asking for a URL.
#[derive(Debug)]
pub enum Found {
    /// A page, until its headers; and whether there was too much of it.
    Page(Box<Page>, Duration, bool),
    /// A redirect with this status to the URL of this number, or to nowhere.
    Redirect(u16, Option<usize>),
    /// An answer with this status that is no page.
    Status(u16),
    /// None.
    Fault(Fault),
    /// It was not asked for: robots.txt says so.
    Forbidden,
}

/// What to do next.
#[derive(Debug, PartialEq)]
pub enum Next {
    /// This.
    Job(Job),
    /// Nothing before this time, unless an answer comes.
    Wait(Instant),
    /// Nothing before an answer comes.
    Answer,
    /// Nothing at all.
    Done,
}

#[derive(Debug, PartialEq)]
enum Phase {
    Robots,
    Start,
    Open,
}

/// The site.
#[derive(Debug)]
pub struct Site {
    /// Every URL that was seen, the first one that of the check.
    pub urls: Vec<Known>,
    /// Where the site begins, after redirects.
    pub start: usize,
    /// What it asks of robots.
    pub rules: Rules,
    /// Files of its sitemap that could not be read, and why.
    pub broken_sitemaps: Vec<(Url, String)>,
    /// Whether some URL is in a sitemap.
    pub has_sitemap: bool,
    /// Pages that were read.
    pub pages: usize,
    /// Whether something was left out by a limit.
    pub is_cut: bool,
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
    /// A site of which only this is known. Asks for `most` URLs.
    pub fn new(url: &Url, most: usize, looks_elsewhere: bool) -> Site {
        let mut site = Site {
            urls: Vec::new(),
            start: 0,
            rules: Rules::None,
            broken_sitemaps: Vec::new(),
            has_sitemap: false,
            pages: 0,
            is_cut: false,
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

    /// What to do now.
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
            None if self.under_way > 0 => Next::Answer,
            None => Next::Done,
        }
    }

    /// Takes in what came of a job.
    pub fn heed(&mut self, done: Done, now: Instant) {
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

    /// Whether a URL is of this site: of the same host, with or without www, and port.
    pub fn is_own(&self, url: &Url) -> bool {
        place(url) == place(&self.urls[self.start].url)
    }

    /// Whether robots may ask for it.
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

    /// Sitemaps first: they are few, and say what there is.
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

    /// The site's rules are known: its first page may be asked for.
    fn open(&mut self, rules: Rules) {
        let named = match &rules {
            Rules::Known(Robots { sitemaps, .. }) => sitemaps.clone(),
            _ => Vec::new(),
        };
        self.rules = rules;
        self.phase = Phase::Start;
        self.sitemaps_seen = named
            .iter()
            .filter_map(|text| Url::parse(text).ok())
            .collect();
        self.queue.push_front(self.start);
    }

    /// Its first page is there: this is the site, and its sitemaps count.
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
            self.plan_sitemap(file);
        }
        for page in sitemap.pages {
            if self.is_own(&page)
                && let Some(number) = self.know(page)
            {
                self.urls[number].in_sitemap = true;
                self.has_sitemap = true;
            }
        }
    }

    fn take_page(&mut self, number: usize, seen: Seen, now: Instant) {
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
            return self.take_redirect(number, seen.status, location);
        }
        let Some(page) = seen.page else {
            return self.settle(number, Found::Status(seen.status));
        };
        self.pages += 1;
        self.settle(
            number,
            Found::Page(Box::default(), seen.after, seen.is_large),
        );
        for link in &page.links {
            self.link(link.clone(), number);
        }
        self.urls[number].answer = Some(Found::Page(Box::new(page), seen.after, seen.is_large));
    }

    fn take_redirect(&mut self, number: usize, status: u16, location: &str) {
        let url = target(&self.urls[number].url, location)
            .ok()
            .map(|mut url| {
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
            // Before its target is known, so that the sitemap is planned first.
            self.begin();
        }
        let to = self.link(url, number);
        self.urls[number].answer = Some(Found::Redirect(status, to));
    }

    /// The site is really another one, which has rules of its own.
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
            // Round in a circle.
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

    /// The number of a URL; one that is new is queued.
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
