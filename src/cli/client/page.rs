//! A page that an argument names by its id, or by its URL and a time.

use crate::client::exit::Failure;
use crate::client::paging::{Paging, Source};
use crate::client::server::Server;
use archivist_core::model::web::pattern::UrlPattern;
use archivist_core::model::{Lifecycle, Owner, ParseIdError, SnapshotId, Time, Unsaved};
use archivist_core::text::clean;
use archivist_shared::bus::documents::report::{Details, Filter, Snapshot};
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use std::cmp::Reverse;
use std::str::FromStr;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageName {
    /// A crawl or snapshot.
    Id(Owner),
    /// The snapshot of a page that is nearest to a time.
    Url(String, When),
}

/// The time in a name: `@2024`, `@2024-05`, `@2024-05-17`, `@2024-05-17T12:00` or `@now`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// The newest.
    Newest,
    /// A year, month, day or moment: from a time to before another one.
    Within(Time, Time),
}

impl FromStr for PageName {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<PageName, ParseIdError> {
        let is_url = text.starts_with("http://") || text.starts_with("https://");
        if !is_url {
            return text.parse().map(PageName::Id);
        }
        // An `@` without a time is part of the URL: of a user name, or of a path.
        let named = text.rsplit_once('@').and_then(|(url, time)| {
            Some((url.to_owned(), When::parse(time, &TimeZone::system())?))
        });
        let (url, when) = named.unwrap_or_else(|| (text.to_owned(), When::Newest));
        Ok(PageName::Url(url, when))
    }
}

impl When {
    /// Reads a year, month, day or moment; those without an offset are of the time zone.
    pub fn parse(text: &str, zone: &TimeZone) -> Option<When> {
        if text == "now" {
            return Some(When::Newest);
        }
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        if digits != 4 {
            return None;
        }
        let day = |text: &str| text.parse::<Date>().ok();
        let (first, length) = match text.len() {
            4 => (day(&format!("{text}-01-01"))?, Span::new().years(1)),
            7 => (day(&format!("{text}-01"))?, Span::new().months(1)),
            10 => (day(text)?, Span::new().days(1)),
            _ => {
                let local = || {
                    Some(text.parse::<DateTime>().ok()?.to_zoned(zone.clone()).ok()?.timestamp())
                };
                let moment = text.parse::<Timestamp>().ok().or_else(local)?;
                return Some(When::Within(moment.into(), moment.into()));
            }
        };
        let start = |date: Date| Some(Time::from(date.to_zoned(zone.clone()).ok()?.timestamp()));
        Some(When::Within(start(first)?, start(first.checked_add(length).ok()?)?))
    }

    /// Milliseconds between a time and this one; 0 within it.
    fn distance(self, time: Time) -> i64 {
        match self {
            When::Newest => 0,
            When::Within(from, to) => (from.0 - time.0).max(time.0 - to.0 + 1).max(0),
        }
    }
}

/// Returns the snapshot with an id.
///
/// # Errors
/// If there is none on this machine.
pub async fn of_id(id: Owner, server: &Server) -> Result<Snapshot, Failure> {
    let found = Source::Machine(server).find(id).await?;
    found.ok_or_else(|| Failure::failed(format!("there is no {id} on this machine")))
}

/// Whether a page is saved: the orchestrator looks for its files.
pub async fn is_still_saved(id: SnapshotId, server: &Server) -> Result<bool, Failure> {
    let id = id.to_string();
    let shown = server.ask_if_known(|| server.proxy().show(&id)).await?;
    Ok(matches!(shown, Some(Details::Snapshot { snapshot, .. }) if snapshot.is_saved()))
}

/// Returns the sealed snapshot of a page on this machine that is nearest to a time; of several, the
/// newest. One that was not saved is returned only if none was.
///
/// # Errors
/// If no snapshot of the page is sealed.
pub async fn nearest(url: &str, when: When, server: &Server) -> Result<Snapshot, Failure> {
    let filter = Filter {
        url: Some(UrlPattern::of_page(url)),
        status: Some(Lifecycle::Sealed.as_str().to_owned()),
        ..Filter::default()
    };
    let mut versions: Vec<Snapshot> = Paging::new(server, filter).collect().await?;
    let chosen = loop {
        let chosen = choose(&mut versions, when).ok_or_else(|| {
            let url = clean(url);
            Failure::failed(format!(
                "no snapshot of '{url}' is archived on this machine; see: archivist versions '{url}'"
            ))
        })?;
        if !chosen.is_saved() || is_still_saved(chosen.id, server).await? {
            break chosen.clone();
        }
        chosen.unsaved = Some(Unsaved::Files);
    };
    let newest = versions.iter().max_by_key(|page| (page.visited_at, page.id));
    let newest = newest.filter(|_| when == When::Newest);
    if let Some(newest) = newest.filter(|newest| !newest.is_saved()) {
        let lack = clean(newest.lack().unwrap_or_default());
        if chosen.id == newest.id {
            eprintln!("{}: {lack}", newest.id);
        } else {
            eprintln!("{}, which is newer, was not saved: {lack}", newest.id);
        }
    }
    Ok(chosen)
}

fn choose(versions: &mut [Snapshot], when: When) -> Option<&mut Snapshot> {
    let order = |page: &Snapshot| {
        let time = page.visited_at;
        (!page.is_saved(), when.distance(time), Reverse(time), Reverse(page.id))
    };
    versions.iter_mut().min_by_key(|page| order(page))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn name_is_an_id_or_a_url_with_a_time() {
        let name = |text: &str| text.parse::<PageName>();
        assert_eq!(name("s3"), Ok(PageName::Id(Owner::Snapshot(SnapshotId(3)))));
        assert!(name("example.com").is_err());
        for (text, url) in [
            ("https://a.test/x", "https://a.test/x"),
            ("https://a.test/@user", "https://a.test/@user"),
            ("https://me@a.test/2024", "https://me@a.test/2024"),
            ("https://a.test/x@now", "https://a.test/x"),
        ] {
            assert_eq!(name(text), Ok(PageName::Url(url.to_owned(), When::Newest)), "{text}");
        }
        let Ok(PageName::Url(url, When::Within(..))) = name("https://a.test/@user@2024") else {
            panic!("no time");
        };
        assert_eq!(url, "https://a.test/@user");
    }

    #[test]
    fn times_are_years_months_days_and_moments() {
        let within = |text: &str| match When::parse(text, &TimeZone::UTC) {
            Some(When::Within(from, to)) => Some(format!("{from} {to}")),
            _ => None,
        };
        let at = |text: &str| format!("{text}T00:00:00.000Z");
        assert_eq!(within("2024"), Some([at("2024-01-01"), at("2025-01-01")].join(" ")));
        assert_eq!(within("2024-12"), Some([at("2024-12-01"), at("2025-01-01")].join(" ")));
        assert_eq!(within("2024-02-29"), Some([at("2024-02-29"), at("2024-03-01")].join(" ")));
        let noon = "2024-05-17T12:00:00.000Z";
        for text in ["2024-05-17T12:00", "2024-05-17T14:00:00+02:00"] {
            assert_eq!(within(text), Some(format!("{noon} {noon}")), "{text}");
        }
        for text in ["", "24", "2024-13", "2024-02-30", "20240517", "user", "2024-05-17Tx"] {
            assert_eq!(When::parse(text, &TimeZone::UTC), None, "{text}");
        }
    }

    #[test]
    fn nearest_version_is_within_the_time_or_next_to_it() {
        let page = |id: i64, day: &str| Snapshot {
            visited_at: format!("{day}T12:00:00Z").parse::<Timestamp>().unwrap().into(),
            ..sample::snapshot(id)
        };
        let versions = [
            page(1, "2023-12-31"),
            page(2, "2024-01-03"),
            page(3, "2024-05-20"),
            page(5, "2024-05-25"),
            page(4, "2025-07-01"),
        ];
        for (time, id) in [
            ("2024-05", 5),
            ("2024-05-20", 3),
            ("2024", 5),
            ("2024-06", 5),
            ("1999", 1),
            ("2030-01-01T00:00", 4),
            ("now", 4),
            ("2024-01-01", 1),
        ] {
            let when = When::parse(time, &TimeZone::UTC).unwrap();
            let found = choose(&mut versions.to_vec(), when).unwrap().id;
            assert_eq!(found, SnapshotId(id), "{time}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in "(https?://)?.{0,20}@?[0-9T:.Z-]{0,24}") {
            let _ = text.parse::<PageName>();
        }
    }
}
