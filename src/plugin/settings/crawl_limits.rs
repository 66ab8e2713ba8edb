//! Limits of a crawl and of a snapshot: pages, bytes, time.

use crate::settings::values::Values;
use archivist_core::text::parse_size;
use std::time::Duration;

/// The limits of one crawl. `None` means no limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CrawlLimits {
    /// `CRAWL_MAX_URLS`: number of archived pages.
    pub urls: Option<u64>,
    /// `CRAWL_MAX_SIZE`: bytes of all output files. No page starts when this is reached.
    pub size: Option<u64>,
    /// `CRAWL_TIMEOUT`: time since the start of the crawl after which no page starts.
    pub time: Option<Duration>,
    /// `SNAPSHOT_MAX_SIZE`: bytes of one page's output files. No further hook of the page starts
    /// when this is reached.
    pub snapshot_size: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    pub urls: u64,
    /// Bytes of their files.
    pub size: u64,
    /// Time since the crawl started.
    pub time: Duration,
}

impl CrawlLimits {
    /// Reads the limits from layers of settings, the strongest layer first. 0 and empty values mean
    /// no limit. Errors name the setting and its valid values.
    pub fn read(layers: &[&Values]) -> Result<CrawlLimits, String> {
        let text = |key: &str| {
            let mut found = layers.iter().filter_map(|layer| layer.get(key));
            found.next().map_or("", |text| text.trim())
        };
        let number = |key: &str, what: &str, parse: &dyn Fn(&str) -> Option<u64>| match text(key) {
            "" => Ok(None),
            text => parse(text)
                .map(|number| Some(number).filter(|number| *number > 0))
                .ok_or_else(|| format!("bad value '{text}' of {key}, expected {what}")),
        };
        let count = |text: &str| text.parse().ok();
        let size = "a size such as 500M (b, k, m, g, t)";
        Ok(CrawlLimits {
            urls: number("CRAWL_MAX_URLS", "a number of pages", &count)?,
            size: number("CRAWL_MAX_SIZE", size, &parse_size)?,
            time: number("CRAWL_TIMEOUT", "seconds", &count)?.map(Duration::from_secs),
            snapshot_size: number("SNAPSHOT_MAX_SIZE", size, &parse_size)?,
        })
    }

    /// Why no further page may start.
    pub fn stop_reason(&self, used: &Used) -> Option<String> {
        let urls = self.urls.filter(|most| used.urls >= *most);
        let size = self.size.filter(|most| used.size >= *most);
        let time = self.time.filter(|most| used.time >= *most);
        urls.map(|most| format!("CRAWL_MAX_URLS={most} reached"))
            .or_else(|| size.map(|most| format!("CRAWL_MAX_SIZE={most} reached")))
            .or_else(|| time.map(|most| format!("CRAWL_TIMEOUT={} reached", most.as_secs())))
    }

    /// Why no further hook may start for a page with `size` bytes of output.
    pub fn snapshot_stop_reason(&self, size: u64) -> Option<String> {
        let most = self.snapshot_size.filter(|most| size >= *most)?;
        Some(format!("SNAPSHOT_MAX_SIZE={most} reached"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<CrawlLimits, String> {
        let values = pairs.iter().map(|(k, v)| ((*k).into(), (*v).into()));
        CrawlLimits::read(&[&values.collect(), &Values::new()])
    }

    #[test]
    fn units_are_parsed_and_zero_means_no_limit() {
        let limits = read(&[("CRAWL_MAX_SIZE", "1.5m"), ("CRAWL_TIMEOUT", "90")]).unwrap();
        assert_eq!(limits.size, Some(3 << 19));
        assert_eq!(limits.time, Some(Duration::from_secs(90)));
        assert_eq!(read(&[("CRAWL_MAX_URLS", "0")]).unwrap(), CrawlLimits::default());
        for (key, bad) in
            [("CRAWL_MAX_URLS", "-1"), ("CRAWL_MAX_SIZE", "true"), ("SNAPSHOT_MAX_SIZE", "5x")]
        {
            let error = read(&[(key, bad)]).unwrap_err();
            assert!(error.contains(key) && error.contains(bad), "{error}");
        }
    }

    #[test]
    fn first_reached_limit_is_the_reason() {
        let limits = read(&[("CRAWL_MAX_URLS", "2"), ("CRAWL_TIMEOUT", "10")]).unwrap();
        let used = |urls, seconds| Used { urls, size: 0, time: Duration::from_secs(seconds) };
        assert_eq!(limits.stop_reason(&used(1, 9)), None);
        assert_eq!(limits.stop_reason(&used(2, 0)).unwrap(), "CRAWL_MAX_URLS=2 reached");
        assert_eq!(limits.stop_reason(&used(1, 10)).unwrap(), "CRAWL_TIMEOUT=10 reached");
        assert_eq!(limits.snapshot_stop_reason(u64::MAX), None);
    }
}
