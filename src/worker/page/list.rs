//! HTML pages that list snapshots: the newest of the archive, those of a day, of a crawl, of a URL.

use super::frame::document;
use super::groups::{self, Group};
use super::versions::{ListedVersion, is_list_of_url};
use super::{href, text};
use archivist_core::model::{CloserLook, PageVersion, SnapshotId, Time, Unsaved, is_http_error};
use archivist_core::text::clean_to;
use archivist_shared::id_marks::is_day;
use maud::{Markup, html};
use serde::{Deserialize, Serialize};

/// Snapshots on one page.
pub const PER_PAGE: usize = 100;
/// Number of days on the first page. A separate page lists all days.
const DAYS_SHOWN: usize = 14;
const TITLE_MAX_CHARS: usize = 160;
const URL_MAX_CHARS: usize = 300;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListEntry {
    pub id: SnapshotId,
    pub url: String,
    pub title: Option<String>,
    /// When it ended. The list of a day begins with those that ended first.
    pub archived_at: Time,
    /// When it was visited; `None` in lists of older versions, for which this was when it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visited_at: Option<Time>,
    /// Path relative to the archive's directory.
    pub directory: String,
    /// Path of its small picture relative to its directory.
    pub screenshot: Option<String>,
    pub succeeded: usize,
    pub failed: usize,
    /// Why it is not a saved page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsaved: Option<Unsaved>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Whether files of the saved page lack parts of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    /// What the list of its URL shows, and other lists do not have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<ListedVersion>,
}

impl ListEntry {
    /// When it was visited.
    pub fn date(&self) -> Time {
        let version = self.version.as_ref();
        let visited = version.map(|version| version.at).or(self.visited_at);
        visited.unwrap_or(self.archived_at)
    }

    /// What is compared with the snapshot before.
    fn as_version(&self) -> PageVersion<'_> {
        let version = self.version.as_ref();
        PageVersion {
            http_status: version.and_then(|version| version.http_status),
            title: self.title.as_deref(),
            text: version.and_then(|version| version.text.as_ref()),
        }
    }

    /// Shortens texts to the length that is shown, because list files are read often.
    pub fn cut(mut self) -> ListEntry {
        self.title = self.title.map(|title| clean_to(&title, TITLE_MAX_CHARS));
        self.url = clean_to(&self.url, URL_MAX_CHARS);
        self
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Day {
    /// Path relative to the archive's directory, such as `20261121`.
    pub directory: String,
    pub snapshots: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListKind {
    /// The whole archive. Newest days first; the page [`days`] lists all of them. The groups are those with lists.
    Archive(Vec<Day>, Vec<Group>),
    Day(String),
    Crawl(String),
    /// Those of a site or with a tag.
    Of(Group, String),
    Url,
}

impl ListKind {
    /// The subject of the list with a name: that of a day, crawl, site, tag or URL.
    pub fn of_name(name: &str) -> ListKind {
        if is_day(name) {
            ListKind::Day(name.to_owned())
        } else if let Some((_, kind, _)) = groups::of_name(name) {
            kind
        } else if is_list_of_url(name) {
            ListKind::Url
        } else {
            ListKind::Crawl(name.to_owned())
        }
    }
}

#[derive(Clone, Debug)]
pub struct ListPage {
    pub kind: ListKind,
    /// Directory of the page, relative to the archive's directory; empty for the archive itself.
    pub directory: String,
    /// Number of snapshots in the whole list.
    pub total: usize,
    /// Snapshots in display order.
    pub entries: Vec<ListEntry>,
    /// On the page of a URL, the snapshot before the oldest one of the page.
    pub before: Option<ListEntry>,
    /// File names of the adjacent pages in the same directory.
    pub newer: Option<String>,
    pub older: Option<String>,
}

impl ListPage {
    /// Number of levels between the page and the archive's directory.
    fn ups(&self) -> usize {
        self.directory.split('/').filter(|name| !name.is_empty()).count()
    }

    fn heading(&self) -> String {
        match &self.kind {
            ListKind::Archive(..) => "Archive".to_owned(),
            ListKind::Day(day) => text::day(day),
            ListKind::Crawl(id) => format!("Crawl {id}"),
            ListKind::Of(_, text) => clean_to(text, TITLE_MAX_CHARS),
            ListKind::Url => {
                let newest = self.entries.first();
                let address = newest.map(|entry| text::address(&entry.url, TITLE_MAX_CHARS));
                newest.and_then(title_of).or(address).unwrap_or_default()
            }
        }
    }

    /// The address that all entries have.
    fn address(&self) -> Option<String> {
        let newest = self.entries.first().filter(|_| self.kind == ListKind::Url)?;
        Some(clean_to(&newest.url, URL_MAX_CHARS))
    }

    pub fn render(&self) -> String {
        let heading = self.heading();
        let is_archive = matches!(self.kind, ListKind::Archive(..));
        let body = html! {
            @if !is_archive { (self.crumbs(&heading)) }
            main {
                header class="head" {
                    h1 { bdi { (heading) } }
                    @if let Some(address) = self.address() { p class="url" { bdi { (address) } } }
                    p class="dim" {
                        (text::count(self.total, "snapshot"))
                        @if is_archive && self.total > self.entries.len() {
                            ", the newest " (self.entries.len())
                        }
                    }
                }
                @if let ListKind::Archive(days, groups) = &self.kind { (recent(days, groups)) }
                div class="grid" {
                    @for (at, entry) in self.entries.iter().enumerate() {
                        @let older = self.entries.get(at + 1).or(self.before.as_ref());
                        (card(entry, self.ups(), &self.said(entry, older)))
                    }
                }
                (self.pager())
            }
        };
        document(&heading, body)
    }

    fn crumbs(&self, heading: &str) -> Markup {
        let day = self.directory.split('/').next().unwrap_or_default();
        let above = match self.kind {
            ListKind::Crawl(_) => Some((format!("{day}/index.html"), text::day(day))),
            ListKind::Of(group, _) => Some((group.page().to_owned(), group.title().to_owned())),
            _ => None,
        };
        html! {
            nav {
                @if let Some(up) = href::relative(self.ups(), "index.html") {
                    a href=(up) rel="up" { "Archive" }
                }
                @if let Some((page, name)) = above
                    && let Some(up) = href::relative(self.ups(), &page) {
                    a href=(up) rel="up" { (name) }
                }
                span { bdi { (heading) } }
            }
        }
    }

    /// The words of a card. `older` is the snapshot before it.
    fn said(&self, entry: &ListEntry, older: Option<&ListEntry>) -> CardText {
        let title = title_of(entry);
        if self.kind != ListKind::Url {
            let address = text::address(&entry.url, TITLE_MAX_CHARS);
            let host = title.is_some().then(|| address.clone());
            return CardText {
                anchor: None,
                title: html! { bdi { (title.unwrap_or(address)) } },
                below: html! { @if let Some(host) = host { span class="host" { bdi { (host) } } } },
                row: text::stamp(entry.date()),
            };
        }
        let now = entry.as_version();
        let changes =
            older.map(|older| now.changes_since(&older.as_version(), &CloserLook::default()));
        let changes = changes.unwrap_or_default().join(", ");
        CardText {
            anchor: Some(entry.id.to_string()),
            title: text::stamp(entry.date()),
            below: html! { @if let Some(title) = title { span class="host" { bdi { (title) } } } },
            row: html! {
                span { (changes) }
                @if let Some(status) = now.http_status {
                    span class=[is_http_error(status).then_some("pill failed")] { "HTTP " (status) }
                }
            },
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

fn recent(days: &[Day], groups: &[Group]) -> Markup {
    html! {
        ul class="days" {
            @for day in days.iter().take(DAYS_SHOWN) {
                @if let Some(link) = href::relative(0, &format!("{}/index.html", day.directory)) {
                    li { a href=(link) { (text::day(&day.directory)) } " " span { (day.snapshots) } }
                }
            }
            @if days.len() > DAYS_SHOWN { li { a href="./days.html" { "All days" } } }
            @for group in groups {
                @if let Some(link) = href::relative(0, group.page()) {
                    li { a href=(link) { (group.title()) } }
                }
            }
        }
    }
}

/// The title of a snapshot; `None` if it is empty.
fn title_of(entry: &ListEntry) -> Option<String> {
    let title = entry.title.as_deref().unwrap_or_default();
    Some(clean_to(title, TITLE_MAX_CHARS)).filter(|title| !title.is_empty())
}

struct CardText {
    /// The part of its address behind `#`.
    anchor: Option<String>,
    title: Markup,
    below: Markup,
    row: Markup,
}

/// A snapshot as a card. `ups` is the number of levels up to the archive's directory.
fn card(entry: &ListEntry, ups: usize, said: &CardText) -> Markup {
    let page = href::relative(ups, &format!("{}/index.html", entry.directory));
    let picture = entry
        .screenshot
        .as_ref()
        .and_then(|path| href::relative(ups, &format!("{}/{path}", entry.directory)));
    let host = text::host(&entry.url);
    let initial: String = host.chars().take(1).flat_map(char::to_uppercase).collect();
    html! {
        a class="card" id=[&said.anchor] href=[page] {
            @match picture {
                Some(picture) => img class="thumb" src=(picture) alt="" loading="lazy" width="320" height="200";,
                None => span class="thumb none" aria-hidden="true" { (initial) },
            }
            span class="text" {
                span class="title" { (said.title) }
                (said.below)
                span class="row" {
                    (said.row)
                    @if let Some(unsaved) = entry.unsaved.filter(|unsaved| unsaved.is_failure()) {
                        span class="pill failed" { "not saved: " (unsaved.text()) }
                    } @else if entry.partial { span class="pill partial" { "parts are missing" } }
                    @else if entry.failed > 0 { span class="pill failed" { (entry.failed) " failed" } }
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
