//! HTML pages that list snapshots: the newest of the archive, those of a day, those of a crawl.

use super::frame::document;
use super::{href, text};
use archivist_core::model::{SnapshotId, Time};
use archivist_core::text::clean_to;
use maud::{Markup, html};
use serde::{Deserialize, Serialize};

/// Snapshots on one page.
pub const PER_PAGE: usize = 100;
/// Number of days on the first page. A separate page lists all days.
const DAYS_SHOWN: usize = 14;
const TITLE_MAX_CHARS: usize = 160;

/// One snapshot of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListEntry {
    pub id: SnapshotId,
    pub url: String,
    pub title: Option<String>,
    pub archived_at: Time,
    /// Path relative to the archive's directory.
    pub directory: String,
    /// Path of its small picture relative to its directory.
    pub screenshot: Option<String>,
    pub succeeded: usize,
    pub failed: usize,
}

impl ListEntry {
    /// Shortens texts to the length that is shown, because list files are read often.
    pub fn cut(mut self) -> ListEntry {
        self.title = self.title.map(|title| clean_to(&title, TITLE_MAX_CHARS));
        self.url = clean_to(&self.url, 300);
        self
    }
}

/// One day of the archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Day {
    /// Path relative to the archive's directory, such as `20261121`.
    pub directory: String,
    pub snapshots: usize,
}

/// Subject of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListKind {
    /// The whole archive. Newest days first; the page [`days`] lists all of them.
    Archive(Vec<Day>),
    Day(String),
    Crawl(String),
}

/// One page of a list.
#[derive(Clone, Debug)]
pub struct ListPage {
    pub kind: ListKind,
    /// Directory of the page, relative to the archive's directory; empty for the archive itself.
    pub directory: String,
    /// Number of snapshots in the whole list.
    pub total: usize,
    /// Snapshots in display order.
    pub entries: Vec<ListEntry>,
    /// File names of the adjacent pages in the same directory.
    pub newer: Option<String>,
    pub older: Option<String>,
}

impl ListPage {
    /// Number of levels between the page and the archive's directory.
    fn ups(&self) -> usize {
        self.directory
            .split('/')
            .filter(|name| !name.is_empty())
            .count()
    }

    fn heading(&self) -> String {
        match &self.kind {
            ListKind::Archive(_) => "Archive".to_owned(),
            ListKind::Day(day) => text::day(day),
            ListKind::Crawl(id) => format!("Crawl {id}"),
        }
    }

    pub fn render(&self) -> String {
        let heading = self.heading();
        let is_archive = matches!(self.kind, ListKind::Archive(_));
        let body = html! {
            @if !is_archive { (self.crumbs(&heading)) }
            main {
                header class="head" {
                    h1 { (heading) }
                    p class="dim" {
                        (text::count(self.total, "snapshot"))
                        @if is_archive && self.total > self.entries.len() {
                            ", the newest " (self.entries.len())
                        }
                    }
                }
                @if let ListKind::Archive(days) = &self.kind { (recent(days)) }
                div class="grid" { @for entry in &self.entries { (card(entry, self.ups())) } }
                (self.pager())
            }
        };
        document(&heading, body)
    }

    fn crumbs(&self, heading: &str) -> Markup {
        let day = self.directory.split('/').next().unwrap_or_default();
        let above = matches!(self.kind, ListKind::Crawl(_)).then_some(day);
        html! {
            nav {
                @if let Some(up) = href::relative(self.ups(), "index.html") {
                    a href=(up) rel="up" { "Archive" }
                }
                @if let Some(day) = above
                    && let Some(up) = href::relative(self.ups(), &format!("{day}/index.html")) {
                    a href=(up) rel="up" { (text::day(day)) }
                }
                span { (heading) }
            }
        }
    }

    fn pager(&self) -> Markup {
        let link = |name: &Option<String>| name.as_ref().and_then(|name| href::relative(0, name));
        let (newer, older) = (link(&self.newer), link(&self.older));
        html! {
            @if newer.is_some() || older.is_some() {
                p class="pager" {
                    @if let Some(newer) = newer { a href=(newer) rel="prev" { "← Newer" } }
                    @if let Some(older) = older { a href=(older) rel="next" { "Older →" } }
                }
            }
        }
    }
}

fn recent(days: &[Day]) -> Markup {
    html! {
        ul class="days" {
            @for day in days.iter().take(DAYS_SHOWN) {
                @if let Some(link) = href::relative(0, &format!("{}/index.html", day.directory)) {
                    li { a href=(link) { (text::day(&day.directory)) } " " span { (day.snapshots) } }
                }
            }
            @if days.len() > DAYS_SHOWN { li { a href="./days.html" { "All days" } } }
        }
    }
}

/// A snapshot as a card. `ups` is the number of levels up to the archive's directory.
fn card(entry: &ListEntry, ups: usize) -> Markup {
    let page = href::relative(ups, &format!("{}/index.html", entry.directory));
    let picture = entry
        .screenshot
        .as_ref()
        .and_then(|path| href::relative(ups, &format!("{}/{path}", entry.directory)));
    let address = text::address(&entry.url, TITLE_MAX_CHARS);
    let full_title = entry.title.as_deref().unwrap_or_default();
    let title = Some(clean_to(full_title, TITLE_MAX_CHARS)).filter(|title| !title.is_empty());
    let host = text::host(&entry.url);
    let initial: String = host.chars().take(1).flat_map(char::to_uppercase).collect();
    html! {
        a class="card" href=[page] {
            @match picture {
                Some(picture) => img class="thumb" src=(picture) alt="" loading="lazy" width="320" height="200";,
                None => span class="thumb none" aria-hidden="true" { (initial) },
            }
            span class="text" {
                span class="title" { bdi { (title.as_deref().unwrap_or(&address)) } }
                @if title.is_some() { span class="host" { bdi { (address) } } }
                span class="row" {
                    (text::stamp(entry.archived_at))
                    @if entry.failed > 0 { span class="pill failed" { (entry.failed) " failed" } }
                    @else if entry.succeeded == 0 { span class="pill skipped" { "nothing saved" } }
                }
            }
        }
    }
}

/// Renders `days.html` of the archive, which lists all days, newest first.
pub fn days(days: &[String]) -> String {
    let months = days.chunk_by(|a, b| a.get(..6) == b.get(..6));
    let body = html! {
        nav { a href="./index.html" rel="up" { "Archive" } span { "Days" } }
        main {
            header class="head" {
                h1 { "Days" }
                p class="dim" { (text::count(days.len(), "day")) }
            }
            @for month in months {
                @let name = text::day(&month[0]);
                h2 { (name.get(..7).unwrap_or(&name)) }
                ul class="days" {
                    @for day in month {
                        @if let Some(link) = href::relative(0, &format!("{day}/index.html")) {
                            li { a href=(link) { (text::day(day)) } }
                        }
                    }
                }
            }
        }
    };
    document("Days", body)
}
