//! Invented sites: which requests a crawl makes, in which order, and its findings.

use super::findings;
use super::job::{Done, Job, Response, Rules};
use super::page::Page;
use super::site::{Next, Site};
use crate::crawl::page;
use crate::http::Fault;
use crate::result::Finding;
use archivist_core::model::Robots;
use archivist_hooks::page::sitemap;
use proptest::prelude::*;
use std::collections::HashMap;
use std::time::{Duration, Instant};
use url::Url;

/// URLs of a.test (paths) and of other sites. `301 /x` redirects, a number is a status, `-` is no
/// answer, everything else is a page.
struct Web {
    answers: HashMap<String, String>,
    asked: Vec<String>,
    now: Instant,
    times: Vec<Instant>,
}

impl Web {
    fn of(answers: &[(&str, &str)]) -> Web {
        let whole = |url: &str| {
            if url.starts_with('/') { format!("https://a.test{url}") } else { url.to_owned() }
        };
        let answers = answers.iter().map(|(url, text)| (whole(url), (*text).to_owned()));
        Web {
            answers: answers.collect(),
            asked: Vec::new(),
            now: Instant::now(),
            times: Vec::new(),
        }
    }

    fn crawl(&mut self, most: usize) -> Site {
        let mut site = Site::new(&Url::parse("https://a.test/").unwrap(), most, true);
        let mut under_way = Vec::new();
        loop {
            match site.next(self.now) {
                Next::Job(job) => under_way.push(job),
                Next::Wait(at) if under_way.is_empty() => self.now = at,
                Next::Done => return site,
                Next::Wait(_) | Next::CheckAnswer => {
                    let done = self.carry_out(under_way.remove(0));
                    site.apply(done, self.now);
                }
            }
            assert!(self.asked.len() < 5000, "it never ends");
        }
    }

    fn carry_out(&mut self, job: Job) -> Done {
        self.times.push(self.now);
        let url = match &job {
            Job::Robots(url) | Job::Sitemap(url) | Job::Page(_, url) | Job::External(_, url) => {
                url.clone()
            }
        };
        self.asked.push(url.as_str().replace("https://a.test", ""));
        let text = self.answers.get(url.as_str()).cloned().unwrap_or("404".into());
        let status = text.split(' ').next().and_then(|word| word.parse::<u16>().ok());
        let fault = || Fault::Other("refused".into());
        match job {
            Job::Robots(_) => Done::Robots(match status {
                _ if text == "-" => Rules::Unknown("refused".into()),
                Some(_) => Rules::None,
                None => Rules::Known(Robots::parse(&text, "archivist")),
            }),
            Job::Sitemap(_) if status.is_some() => {
                Done::Sitemap(url, Err("the server answered 404".into()))
            }
            Job::Sitemap(_) => Done::Sitemap(url.clone(), Ok(sitemap::read(text.as_bytes(), &url))),
            Job::Page(number, _) if text == "-" => Done::Page(number, Err(fault())),
            Job::Page(number, _) => Done::Page(number, Ok(seen(&url, status, &text))),
            Job::External(number, _) if text == "-" => Done::External(number, Err(fault())),
            Job::External(number, _) => Done::External(number, Ok(status.unwrap_or(200))),
        }
    }
}

fn seen(url: &Url, status: Option<u16>, text: &str) -> Response {
    let location = text.split_once(' ').map(|(_, to)| to.to_owned());
    Response {
        status: status.unwrap_or(200),
        after: Duration::from_millis(if text.contains("slow") { 2500 } else { 5 }),
        location: location.filter(|_| status.is_some_and(|status| (300..400).contains(&status))),
        retry_after: None,
        page: status.is_none().then(|| page::read(text.as_bytes(), "", url, "")),
        is_large: false,
        sets_cookie: text.contains("cookie"),
    }
}

fn said(site: &Site, kind: &str) -> Vec<(String, String, String)> {
    let short = |url: &str| url.replace("https://a.test", "");
    let fits = |finding: &Finding| finding.kind == kind;
    findings::of(site, true)
        .into_iter()
        .filter(fits)
        .map(|it| (short(&it.url), short(&it.on.unwrap_or_default()), short(&it.text)))
        .collect()
}

fn of(url: &str, on: &str, text: &str) -> (String, String, String) {
    (url.to_owned(), on.to_owned(), text.to_owned())
}

#[test]
fn links_are_followed_on_the_site_only_and_each_once() {
    let mut web = Web::of(&[
        ("/", "<title>t</title><a href=/a>1</a><a href=https://b.test/>2</a><a href=/a#x>3</a>"),
        ("/a", "<title>a</title><a href=/>1</a><a href=http://www.a.test/b>2</a>"),
        ("https://b.test/", "<a href=https://c.test/>"),
    ]);
    let site = web.crawl(500);
    assert_eq!(
        web.asked,
        ["/robots.txt", "/", "/sitemap.xml", "/a", "https://b.test/", "http://www.a.test/b"]
    );
    assert_eq!(site.pages, 2);
    assert_eq!(
        said(&site, "broken-link"),
        [of("http://www.a.test/b", "/a", "the server answers 404")]
    );
    assert_eq!(said(&site, "missing-robots").len() + said(&site, "missing-sitemap").len(), 2);
}

#[test]
fn dead_links_are_broken_and_refusals_are_not() {
    let mut web = Web::of(&[
        (
            "/",
            "<a href=/gone><a href=/error><a href=/away><a href=https://b.test/><a href=https://c.test/><a href=https://d.test/>",
        ),
        ("/error", "500"),
        ("/away", "403"),
        ("https://b.test/", "-"),
        ("https://c.test/", "404"),
        ("https://d.test/", "999"),
    ]);
    let site = web.crawl(500);
    assert_eq!(
        said(&site, "broken-link"),
        [of("/gone", "/", "the server answers 404"), of("/error", "/", "the server answers 500")]
    );
    assert_eq!(
        said(&site, "broken-external-link"),
        [
            of("https://b.test/", "/", "refused"),
            of("https://c.test/", "/", "the server answers 404")
        ]
    );
}

#[test]
fn redirects_chains_and_loops() {
    let mut web = Web::of(&[
        ("/", "<a href=/one><a href=/many><a href=/loop><a href=/lost><a href=/nowhere>"),
        ("/one", "301 /page"),
        ("/many", "302 /many2"),
        ("/many2", "308 /page"),
        ("/loop", "302 /loop2"),
        ("/loop2", "302 /loop"),
        ("/lost", "301 /missing"),
        ("/nowhere", "301 file:///etc/passwd"),
        ("/page", "<title>p</title>"),
    ]);
    let site = web.crawl(500);
    assert_eq!(
        said(&site, "redirect"),
        [of("/one", "/", "301 → /page"), of("/lost", "/", "301 → /missing")]
    );
    assert_eq!(said(&site, "redirect-chain"), [of("/many", "/", "302 → /many2, 308 → /page")]);
    assert_eq!(said(&site, "redirect-loop"), [of("/loop", "/", "302 → /loop2, 302 → /loop")]);
    assert_eq!(
        said(&site, "broken-link"),
        [
            of("/nowhere", "/", "301 without a valid target"),
            of("/missing", "/lost", "the server answers 404")
        ]
    );
}

#[test]
fn robots_and_their_delay_are_respected() {
    let mut web = Web::of(&[
        (
            "/robots.txt",
            "User-agent: *\nDisallow: /secret\nCrawl-delay: 3\nSitemap: https://a.test/map.xml\n",
        ),
        (
            "/map.xml",
            "<urlset><url><loc>https://a.test/secret/x</loc></url><url><loc>https://a.test/lone</loc></url>\
            <url><loc>https://b.test/</loc></url></urlset>",
        ),
        ("/", "<title>t</title><a href=/secret>1</a><a href=/open>2</a>"),
        ("/open", "<title>o</title>"),
        ("/lone", "<title>l</title>"),
    ]);
    let site = web.crawl(500);
    assert_eq!(web.asked, ["/robots.txt", "/", "/map.xml", "/open", "/lone"]);
    for pair in web.times[1..].windows(2) {
        assert!(pair[1] - pair[0] >= Duration::from_secs(3), "{:?}", web.times);
    }
    assert_eq!(said(&site, "forbidden-in-sitemap").len(), 1);
    assert_eq!(said(&site, "orphan-page"), [of("/lone", "", "no page links to it")]);
    assert_eq!(said(&site, "not-in-sitemap"), [of("/", "", ""), of("/open", "", "")]);
}

#[test]
fn a_site_with_unknown_rules_is_not_read() {
    let mut web = Web::of(&[("/robots.txt", "-"), ("/", "<title>t</title>")]);
    let site = web.crawl(500);
    assert_eq!(web.asked, ["/robots.txt"]);
    assert_eq!(said(&site, "unreadable-robots"), [of("/", "", "refused")]);
    let mut web =
        Web::of(&[("/robots.txt", "User-agent: *\nDisallow: /\n"), ("/", "<title>t</title>")]);
    assert_eq!(web.crawl(500).pages, 0);
    assert_eq!(web.asked, ["/robots.txt"]);
}

#[test]
fn a_site_that_has_moved_is_read_where_it_is_by_its_own_rules() {
    let mut web = Web::of(&[
        ("/", "301 https://b.test/home"),
        ("https://b.test/robots.txt", "User-agent: *\nDisallow: /no\n"),
        ("https://b.test/home", "<title>t</title><a href=/no>1</a><a href=/yes>2</a>"),
        ("https://b.test/yes", "<title>y</title>"),
    ]);
    let site = web.crawl(500);
    assert_eq!(site.pages, 2);
    let asked = [
        "/robots.txt",
        "/",
        "https://b.test/robots.txt",
        "https://b.test/home",
        "https://b.test/sitemap.xml",
        "https://b.test/yes",
    ];
    assert_eq!(web.asked, asked);
    assert_eq!(said(&site, "redirect"), [of("/", "", "301 → https://b.test/home")]);
    let mut circle =
        Web::of(&[("/", "301 https://b.test/"), ("https://b.test/", "301 https://a.test/")]);
    assert_eq!(circle.crawl(500).pages, 0);
}

#[test]
fn missing_and_repeated_texts_are_found() {
    let whole = |title: &str| {
        format!(
            "<html lang=en><title>{title}</title><meta name=description content='{title}'><h1>h</h1>"
        )
    };
    let (home, twin) =
        (whole("home") + "<a href=/1><a href=/2><a href=/3><a href=/4>", whole("home"));
    let (copy, hidden) =
        (whole("home") + "<link rel=canonical href=/>", "<meta name=robots content=noindex>");
    let mut web = Web::of(&[
        ("/", &home),
        ("/1", &twin),
        ("/2", &copy),
        ("/3", hidden),
        ("/4", "slow <img src=x>"),
    ]);
    let site = web.crawl(500);
    assert_eq!(said(&site, "duplicate-title"), [of("/1", "/", "home")]);
    assert_eq!(said(&site, "duplicate-description"), [of("/1", "/", "home")]);
    for kind in ["missing-title", "missing-description", "missing-heading", "missing-language"] {
        assert_eq!(said(&site, kind), [of("/4", "", "")], "{kind}");
    }
    assert_eq!(said(&site, "missing-alt"), [of("/4", "", "1 picture without a text")]);
    assert_eq!(said(&site, "slow-page"), [of("/4", "", "2500 ms until the headers")]);
}

#[test]
fn an_endless_site_stops_at_the_limit() {
    let mut answers: HashMap<String, String> = HashMap::new();
    for n in 0..100 {
        answers.insert(format!("/{n}"), format!("<a href=/{}><a href=/r{n}>", n + 1));
        answers.insert(format!("/r{n}"), format!("302 /rr{n}"));
    }
    answers.insert("/".into(), "<a href=/0>".into());
    let list: Vec<_> = answers.iter().map(|(url, text)| (url.as_str(), text.as_str())).collect();
    let mut web = Web::of(&list);
    let site = web.crawl(10);
    assert!(site.pages <= 10 && site.is_cut, "{}", site.pages);
    assert!(web.asked.len() <= 32, "{:?}", web.asked);
    assert_eq!(said(&site, "limit-reached").len(), 1);
    assert_eq!(said(&site, "missing-sitemap").len(), 0);
}

#[test]
fn an_overloaded_site_gets_a_pause() {
    let mut web = Web::of(&[
        ("/", "<a href=/busy><a href=/b>"),
        ("/busy", "429"),
        ("/b", "<title>b</title>"),
    ]);
    let began = web.now;
    let site = web.crawl(500);
    assert!(web.now - began >= Duration::from_secs(5));
    assert_eq!(web.asked.iter().filter(|url| *url == "/busy").count(), 2);
    assert_eq!(said(&site, "broken-link").len(), 0);
    assert_eq!(site.pages, 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Random sites: every crawl ends within its limit and requests nothing twice.
    #[test]
    fn every_crawl_ends(
        pages in proptest::collection::vec((0..12usize, proptest::collection::vec(0..14usize, 0..5)), 1..14),
        start in 0..3usize,
        most in 1..20usize,
    ) {
        let name = |n: usize| match n {
            0 => "https://a.test/".to_owned(),
            12.. => format!("https://other{n}.test/"),
            _ => format!("https://a.test/{n}"),
        };
        let mut answers = vec![(name(0), name(start))];
        for (n, (kind, links)) in pages.iter().enumerate() {
            let text = match kind {
                0 => "404".to_owned(),
                1 => "-".to_owned(),
                2 => "503".to_owned(),
                3 | 4 => format!("302 {}", name(links.first().copied().unwrap_or(13))),
                _ => links.iter().map(|link| format!("<a href={}>", name(*link))).collect(),
            };
            answers.push((name(n), text));
        }
        let list: Vec<_> = answers.iter().map(|(url, text)| (url.as_str(), text.as_str())).collect();
        let mut web = Web::of(&list);
        let site = web.crawl(most);
        prop_assert!(site.pages <= most);
        let mut asked = web.asked.clone();
        asked.sort();
        asked.dedup();
        let busy = pages.iter().filter(|(kind, _)| *kind == 2).count();
        prop_assert!(web.asked.len() <= asked.len() + busy + 2, "{:?}", web.asked);
        findings::of(&site, false);
    }
}

#[test]
fn a_page_is_small() {
    // It is kept for every URL of a site.
    assert!(size_of::<Page>() < 512);
}
