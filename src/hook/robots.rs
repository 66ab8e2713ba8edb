//! How much time a host asks for between two pages: Crawl-delay of its robots.txt. Asked for once
//! for each crawl and host; nothing else in that file is heeded, as people choose their pages.

use super::fetch;
use super::invocation::Invocation;
use super::program::Runner;
use std::fs::OpenOptions;
use std::path::Path;
use std::time::Duration;
use url::Url;

/// Bytes of a robots.txt that are read.
const MOST: u64 = 64 << 10;
const WITHIN: Duration = Duration::from_secs(5);
/// No more than this is believed.
const LONGEST: f64 = 3600.0;
const OUR_NAME: &str = "archivist";

/// What the host of `url` asks for; nothing when it was asked in this crawl, or does not say.
pub fn crawl_delay(runner: &mut Runner, it: &Invocation, url: &Url) -> Option<Duration> {
    let crawl = std::env::var_os("CRAWL_DIR")?;
    if !is_first(Path::new(&crawl), &url.origin().ascii_serialization()) {
        return None;
    }
    let robots = url.join("/robots.txt").ok()?;
    let within = runner.left().min(WITHIN);
    let fetched = fetch::get(runner, it, &robots, MOST, within).ok()?;
    match fetched.last().status {
        200 => parse(&String::from_utf8_lossy(&fetched.body)),
        _ => None,
    }
}

/// Whether nobody asked this origin before in the crawl: the first one makes a file.
fn is_first(crawl: &Path, origin: &str) -> bool {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || c == '.' {
            c
        } else {
            '_'
        }
    };
    let name: String = origin.chars().map(plain).take(200).collect();
    let directory = crawl.join(".robots");
    let _ = std::fs::create_dir(&directory);
    let mut options = OpenOptions::new();
    let made = options
        .write(true)
        .create_new(true)
        .open(directory.join(name));
    made.is_ok()
}

/// Crawl-delay of the group for us, or else of the group for everybody.
fn parse(text: &str) -> Option<Duration> {
    let (mut ours, mut anybodys) = (None, None);
    let (mut for_us, mut for_all, mut in_rules) = (false, false, true);
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default();
        let Some((key, value)) = line.split_once(':') else {
            continue;
        };
        let (key, value) = (key.trim().to_ascii_lowercase(), value.trim());
        if key == "user-agent" {
            // Rules end the list of those that a group is for.
            if in_rules {
                (for_us, for_all, in_rules) = (false, false, false);
            }
            for_us |= value.to_ascii_lowercase().starts_with(OUR_NAME);
            for_all |= value == "*";
            continue;
        }
        in_rules = true;
        if key == "crawl-delay" {
            let seconds = value
                .parse::<f64>()
                .ok()
                .filter(|s| s.is_finite() && *s >= 0.0);
            let delay = seconds.map(|s| Duration::from_secs_f64(s.min(LONGEST)));
            ours = ours.or(delay.filter(|_| for_us));
            anybodys = anybodys.or(delay.filter(|_| for_all));
        }
    }
    ours.or(anybodys)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_for_us_comes_first() {
        let text = "User-agent: other\nCrawl-delay: 9\n\nUser-Agent: *\nDisallow: /x\nCrawl-Delay: 2.5 # s\n";
        assert_eq!(parse(text), Some(Duration::from_millis(2500)));
        let ours = format!("{text}User-agent: a\nUser-agent: Archivist/1\nCrawl-delay: 1\n");
        assert_eq!(parse(&ours), Some(Duration::from_secs(1)));
    }

    #[test]
    fn nonsense_is_no_delay() {
        for value in ["-1", "NaN", "inf", "soon", ""] {
            assert_eq!(
                parse(&format!("User-agent: *\nCrawl-delay: {value}\n")),
                None
            );
        }
        assert_eq!(parse("Crawl-delay: 5"), None);
        let long = parse("User-agent: *\nCrawl-delay: 1e300").unwrap();
        assert_eq!(long, Duration::from_secs(3600));
    }

    #[test]
    fn each_origin_is_asked_once() {
        let crawl = tempfile::tempdir().unwrap();
        assert!(is_first(crawl.path(), "http://a.test:8080"));
        assert!(!is_first(crawl.path(), "http://a.test:8080"));
        assert!(is_first(crawl.path(), "http://a.test:8081"));
        assert!(!is_first(Path::new("/nonexistent"), "http://a.test"));
    }
}
