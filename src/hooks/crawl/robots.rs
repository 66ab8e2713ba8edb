//! How much time a host asks for between two pages: Crawl-delay of its robots.txt. Asked for once
//! for each crawl and host; nothing else in that file is heeded, as people choose their pages.

use crate::page::fetch;
use crate::process::invocation::Invocation;
use crate::process::program::Runner;
use archivist_core::model::Robots;
use std::fs::OpenOptions;
use std::path::Path;
use std::time::Duration;
use url::Url;

/// Bytes of a robots.txt that are read.
const MOST: u64 = 64 << 10;
const WITHIN: Duration = Duration::from_secs(5);
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
        200 => Robots::parse(&String::from_utf8_lossy(&fetched.body), OUR_NAME).delay,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_origin_is_asked_once() {
        let crawl = tempfile::tempdir().unwrap();
        assert!(is_first(crawl.path(), "http://a.test:8080"));
        assert!(!is_first(crawl.path(), "http://a.test:8080"));
        assert!(is_first(crawl.path(), "http://a.test:8081"));
        assert!(!is_first(Path::new("/nonexistent"), "http://a.test"));
    }

    proptest::proptest! {
        /// A host cannot have itself left alone for longer, or us fall over it.
        #[test]
        fn any_file_is_survived_and_no_delay_is_too_long(text in r"(?s).{0,200}",
            near in "((User-agent: (archivist|\\*)|Crawl-delay: ?[-+0-9.eE]{0,12}|Disallow: /)[ #\r]?\n){0,12}") {
            for text in [text, near] {
                if let Some(delay) = Robots::parse(&text, OUR_NAME).delay {
                    assert!(delay <= Duration::from_secs(3600), "{delay:?}");
                }
            }
        }
    }
}
