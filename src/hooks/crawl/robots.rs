//! Delay between two pages that a host requests with Crawl-delay in its robots.txt, which is
//! fetched once for each crawl and host. Other rules of the file are ignored, because users choose
//! their pages.

use crate::page::charset;
use crate::process::invocation::Invocation;
use crate::process::program::ProgramRunner;
use crate::source::fetch;
use archivist_core::model::Robots;
use std::fs::OpenOptions;
use std::path::Path;
use std::time::Duration;
use url::Url;

/// Largest part of a robots.txt that is read, in bytes.
const ROBOTS_MAX_BYTES: u64 = 64 << 10;
const FETCH_TIMEOUT: Duration = Duration::from_secs(5);
const USER_AGENT_TOKEN: &str = "archivist";

/// Delay that the host of `url` requests. `None` if another hook has fetched the file in this
/// crawl, or if the file sets no delay.
pub fn crawl_delay(
    runner: &mut ProgramRunner,
    invocation: &Invocation,
    url: &Url,
) -> Option<Duration> {
    let crawl = std::env::var_os("CRAWL_DIR")?;
    if !is_first(Path::new(&crawl), &url.origin().ascii_serialization()) {
        return None;
    }
    let robots = url.join("/robots.txt").ok()?;
    let within = runner.remaining().min(FETCH_TIMEOUT);
    let fetched = fetch::get(runner, invocation, &robots, ROBOTS_MAX_BYTES, within).ok()?;
    match fetched.last().status {
        200 => {
            let text = charset::decode(&fetched.body, "text/plain", Some(url)).text;
            Robots::parse(&text, USER_AGENT_TOKEN).delay
        }
        _ => None,
    }
}

/// Whether this is the first request for this origin in the crawl. The first hook creates a marker
/// file.
fn is_first(crawl: &Path, origin: &str) -> bool {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || c == '.' { c } else { '_' }
    };
    let name: String = origin.chars().map(plain).take(200).collect();
    let directory = crawl.join(".robots");
    let _ = std::fs::create_dir(&directory);
    let mut options = OpenOptions::new();
    let made = options.write(true).create_new(true).open(directory.join(name));
    made.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_origin_is_fetched_once() {
        let crawl = tempfile::tempdir().unwrap();
        assert!(is_first(crawl.path(), "http://a.test:8080"));
        assert!(!is_first(crawl.path(), "http://a.test:8080"));
        assert!(is_first(crawl.path(), "http://a.test:8081"));
        assert!(!is_first(Path::new("/nonexistent"), "http://a.test"));
    }

    proptest::proptest! {
        /// A host can request no delay above the limit, and no file makes the parser panic.
        #[test]
        fn any_robots_txt_is_parsed_and_delays_are_bounded(text in r"(?s).{0,200}",
            near in "((User-agent: (archivist|\\*)|Crawl-delay: ?[-+0-9.eE]{0,12}|Disallow: /)[ #\r]?\n){0,12}") {
            for text in [text, near] {
                if let Some(delay) = Robots::parse(&text, USER_AGENT_TOKEN).delay {
                    assert!(delay <= Duration::from_secs(3600), "{delay:?}");
                }
            }
        }
    }
}
