//! Follows redirects up to a limit.

use super::http::{CheckAnswer, Fault};
use archivist_hooks::page::html::one_line;
use std::time::{Duration, Instant};
use url::Url;

/// Requests `url` with `ask`, and follows its redirects. Fails after `most` redirects, and starts
/// no request after `longest`.
pub fn follow(
    url: &Url,
    most: usize,
    longest: Duration,
    mut ask: impl FnMut(&Url) -> Result<CheckAnswer, Fault>,
) -> Result<(Url, CheckAnswer), Fault> {
    let begun = Instant::now();
    let mut url = url.clone();
    for _ in 0..=most {
        let answer = ask(&url)?;
        let Some(location) = answer.location() else {
            return Ok((url, answer));
        };
        url = target(&url, location)?;
        if begun.elapsed() > longest {
            let reason = format!("redirects took more than {} s", longest.as_secs());
            return Err(Fault::Late(reason));
        }
    }
    Err(Fault::Other(format!("more than {most} redirects")))
}

/// Returns the target of a redirect; the fragment is kept, as browsers do.
pub fn target(from: &Url, location: &str) -> Result<Url, Fault> {
    let astray =
        || Fault::Other(format!("a redirect has no valid target: {}", one_line(location, 200)));
    let mut url = from.join(location).map_err(|_| astray())?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(astray());
    }
    if url.fragment().is_none() {
        url.set_fragment(from.fragment());
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_lead_to_web_pages_only() {
        let from = Url::parse("https://a.test/x#top").unwrap();
        assert_eq!(target(&from, "/y").unwrap().as_str(), "https://a.test/y#top");
        assert_eq!(target(&from, "//b.test/#z").unwrap().as_str(), "https://b.test/#z");
        for astray in ["file:///etc/passwd", "ftp://a.test/", "http://[x", "javascript:1"] {
            assert!(
                target(&from, astray).unwrap_err().to_string().contains("has no valid target"),
                "{astray}"
            );
        }
    }
}
