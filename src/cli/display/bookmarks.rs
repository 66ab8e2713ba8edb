//! Pages as a bookmark file, which browsers and other programs import.

use archivist_core::text::escape_markup;
use archivist_shared::bus::documents::report::Snapshot;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use std::fmt::Write;

const HEAD: &str = "<!DOCTYPE NETSCAPE-Bookmark-file-1>\n\
    <META HTTP-EQUIV=\"Content-Type\" CONTENT=\"text/html; charset=UTF-8\">\n\
    <TITLE>Bookmarks</TITLE>\n<H1>Bookmarks</H1>\n<DL><p>\n";

/// Returns the file with these pages: their addresses, titles, tags, and the dates of their bookmarks, or
/// else when they were added.
pub fn netscape<'a>(pages: impl IntoIterator<Item = &'a Snapshot>) -> String {
    let mut text = HEAD.to_owned();
    for page in pages {
        let bookmarked = page.bookmarked_at.as_deref().and_then(seconds);
        let time = bookmarked.unwrap_or(page.created_at.0.div_euclid(1000));
        let tags = page.tags.join(",");
        let title = page.title.as_deref().unwrap_or_default();
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "<DT><A HREF=\"{}\" ADD_DATE=\"{time}\" TAGS=\"{}\">{}</A>",
            escaped(&page.url),
            escaped(&tags),
            escaped(title)
        );
    }
    text + "</DL><p>\n"
}

/// Seconds since 1970 of a time or date.
fn seconds(text: &str) -> Option<i64> {
    let day = || {
        let day: Date = text.parse().ok()?;
        Some(day.to_zoned(TimeZone::UTC).ok()?.timestamp())
    };
    let time = text.parse().ok().or_else(day);
    time.map(Timestamp::as_second)
}

/// Text of HTML, also of an attribute, on one line.
fn escaped(text: &str) -> String {
    escape_markup(&text.replace(char::is_control, " "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use archivist_core::model::{List, parse_line};
    use proptest::prelude::*;

    proptest! {
        /// What is written is read again by the reader of bookmark files.
        #[test]
        fn any_page_survives(title in "[a-zé&<>\"'#; ]{0,20}", tag in "x[a-zé&<>\"'# ]{0,10}", query in "[a-z&;=]{0,12}", seconds in 1_000_000_000..2_000_000_000_i64) {
            let time = Timestamp::from_second(seconds).unwrap().to_string();
            let page = Snapshot {
                url: format!("http://a.test/?{query}"),
                title: Some(title.clone()),
                tags: vec![tag.trim().to_owned(), "second".to_owned()],
                bookmarked_at: Some(time.clone()),
                ..sample::snapshot(1)
            };
            let text = netscape([&page]);
            let list = List::read(text.as_bytes()).unwrap();
            let (_, line) = list.lines().next().unwrap();
            let entry = parse_line(line).unwrap().unwrap();
            prop_assert_eq!(entry.url.as_str(), &page.url);
            let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            prop_assert_eq!(words(entry.title.as_deref().unwrap_or_default()), words(&title));
            let mut tags = page.tags.clone();
            tags.dedup();
            prop_assert_eq!(entry.tags, tags);
            prop_assert_eq!(entry.bookmarked_at, Some(time));
        }
    }
}
