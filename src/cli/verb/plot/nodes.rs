//! The nodes of a fleet with the pages that each has or ended.

use super::draw::from_first_to_last;
use super::rows::{Row, Shape, State};
use super::scale::offset;
use super::{Kind, Picture, Subject, first};
use crate::client::exit::Failure;
use crate::client::fleet::Fleet;
use crate::client::paging::Source;
use archivist_core::model::{Lifecycle, Owner, SnapshotId, Time};
use archivist_shared::bus::documents::report::{Crawl, Filter, Snapshot};
use std::collections::BTreeMap;

/// Returns the picture of a crawl or page; `None` if the fleet does not know it, or this machine, which
/// also knows its units, has the page.
pub async fn picture(fleet: &Fleet, id: Owner, limit: u32) -> Result<Option<Picture>, Failure> {
    let source = Source::Fleet(fleet);
    let (subject, worked_on) = match id {
        Owner::Crawl(_) => {
            let Some(crawl) = source.find::<Crawl>(id).await? else {
                return Ok(None);
            };
            let count = |status| crawl.snapshots.get(status).copied().unwrap_or(0);
            let worked_on = count("sealed") + count("started");
            (Subject::of_crawl(&crawl), worked_on)
        }
        Owner::Snapshot(_) => {
            let page: Option<Snapshot> = source.find(id).await?;
            match page {
                Some(page) if !fleet.is_here(page.node.as_deref()) => (Subject::of_page(&page), 1),
                _ => return Ok(None),
            }
        }
    };
    let pages = first(source, limit, |after: Option<SnapshotId>, limit| {
        let after_page = after.map(|page| page.0);
        Filter { limit, after_page, ..Filter::of(id) }
    });
    let (pages, more) = pages.await?;
    let left = more.then(|| worked_on.saturating_sub(pages.len() as u64).max(1));
    Ok(Some(of(subject, &pages, left)))
}

/// `left` is the number of pages that are left out, if any.
fn of(subject: Subject, pages: &[Snapshot], left: Option<u64>) -> Picture {
    let nodes = by_node(pages);
    let shown = pages.len();
    let left_out = left.map(|left| {
        let all = left.saturating_add(shown as u64);
        format!("left out: {left} of {all} pages; --limit 0 draws all")
    });
    let mut about = Vec::new();
    if left.is_some() {
        about.push(format!("the first {shown} of them"));
    }
    match nodes.keys().collect::<Vec<_>>()[..] {
        [] => {}
        [name] => about.push(format!("on {name}")),
        ref names => about.push(format!("on {} nodes", names.len())),
    }
    let begin = pages.iter().filter_map(|page| page.started_at).min();
    let end = pages.iter().filter_map(|page| page.ended_at).max();
    if let (Some(begin), Some(end)) = (begin, end) {
        about.push(from_first_to_last(begin, end));
    }
    let mut nodes: Vec<_> = nodes.into_iter().collect();
    nodes.sort_by_key(|(name, pages)| (begin_of(pages[0]), *name));
    let rows = nodes.into_iter().flat_map(|(name, pages)| {
        let head = head(name, &pages);
        std::iter::once(head).chain(pages.into_iter().map(row))
    });
    Picture { kind: Kind::Nodes, subject, about, rows: rows.collect(), left_out }
}

/// When a page enters the picture: a page without a start is at the end.
fn begin_of(page: &Snapshot) -> Time {
    page.started_at.unwrap_or(Time(i64::MAX))
}

/// Returns the pages of each node, in order of their start.
fn by_node(pages: &[Snapshot]) -> BTreeMap<&str, Vec<&Snapshot>> {
    let mut nodes: BTreeMap<&str, Vec<&Snapshot>> = BTreeMap::new();
    for page in pages {
        let node = page.node.as_deref().unwrap_or("no node");
        nodes.entry(node).or_default().push(page);
    }
    for pages in nodes.values_mut() {
        pages.sort_by_key(|page| (begin_of(page), page.id));
    }
    nodes
}

/// Returns the row of a node, from the start of its first page to the end of its last one.
fn head(name: &str, pages: &[&Snapshot]) -> Row {
    let from = pages.iter().filter_map(|page| page.started_at).min();
    let to = pages.iter().filter_map(|page| page.ended_at).max();
    let count = match pages.len() {
        1 => "1 page".to_owned(),
        count => format!("{count} pages"),
    };
    let is_open = pages.iter().any(|page| !page.status.is_final());
    let mut tip = vec![format!("{name}: {count}")];
    tip.extend(times(from, to));
    Row {
        level: 0,
        label: name.to_owned(),
        is_head: true,
        shape: Shape::Worker,
        state: if is_open { State::Running } else { State::Good },
        word: count,
        asked: None,
        from,
        ready: None,
        to: if is_open { None } else { to },
        cpu_usec: None,
        memory: None,
        tip: tip.join("; "),
    }
}

fn row(page: &Snapshot) -> Row {
    let count = |state| page.results.get(state).copied().unwrap_or(0);
    let (failed, succeeded) = (count("failed"), count("succeeded"));
    let (state, word) = match page.status {
        Lifecycle::Sealed if failed > 0 && succeeded == 0 => (State::Bad, "failed".to_owned()),
        Lifecycle::Sealed => (State::Good, page.status.to_string()),
        Lifecycle::Cancelled => (State::Empty, page.status.to_string()),
        _ => (State::Running, page.status.to_string()),
    };
    Row {
        level: 1,
        label: format!("{} {}", page.id, page.url),
        is_head: false,
        shape: Shape::Foreground,
        state,
        word,
        asked: Some(page.created_at),
        from: page.started_at,
        ready: None,
        to: page.ended_at,
        cpu_usec: None,
        memory: None,
        tip: tip(page),
    }
}

fn tip(page: &Snapshot) -> String {
    let mut words = vec![page.id.to_string()];
    words.extend(page.title.clone().filter(|title| !title.is_empty()));
    words.push(format!("{}, depth {}", page.url, page.depth));
    words.extend(page.node.as_ref().map(|node| format!("on {node}")));
    words.extend(times(page.started_at, page.ended_at));
    if page.attempts > 1 {
        words.push(format!("attempt {}", page.attempts));
    }
    let results = page.results.iter();
    words.extend(results.map(|(state, count)| format!("{count} {state}")));
    words.extend(page.reason.clone());
    words.join("; ")
}

fn times(from: Option<Time>, to: Option<Time>) -> Vec<String> {
    let started = from.map(|from| format!("started {from}"));
    let ended = from.zip(to).map(|(from, to)| {
        let took = to.0.saturating_sub(from.0).max(0);
        format!("ended after {}", offset(took))
    });
    started.into_iter().chain(ended).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::display::style::Style;
    use crate::verb::plot::draw::draw;
    use archivist_core::model::{CrawlId, Uses};
    use std::path::Path;

    /// A page that ran from `from` to `to` seconds; without an end, it is open.
    fn page(id: i64, node: &str, status: Lifecycle, span: Option<(i64, i64)>) -> Snapshot {
        let time = |seconds: i64| Time(seconds * 1000);
        Snapshot {
            http_status: None,
            unsaved: None,
            config: Default::default(),
            id: SnapshotId(id),
            crawl: CrawlId(12),
            url: format!("https://a/{id}?<script>\u{202e}"),
            title: None,
            depth: 1,
            parent: None,
            status,
            reason: None,
            tags: Vec::new(),
            bookmarked_at: None,
            visited_at: time(1),
            created_at: time(1),
            started_at: span.map(|(from, _)| time(from)),
            ended_at: span.map(|(_, to)| time(to)),
            retry_at: None,
            attempts: 1,
            results: [("succeeded".to_owned(), 2)].into(),
            uses: Uses::default(),
            directory: None,
            older_copies: Vec::new(),
            pinned: false,
            current_step: None,
            node: Some(node.to_owned()),
            recording: None,
            replay: None,
            missing: Vec::new(),
        }
    }

    fn subject() -> Subject {
        Subject {
            id: Owner::Crawl(CrawlId(12)),
            url: "https://a/".to_owned(),
            status: Lifecycle::Started,
            reason: None,
            pages: Some(9),
            created_at: Time(0),
        }
    }

    fn pages() -> Vec<Snapshot> {
        let mut failed = page(4, "web1", Lifecycle::Sealed, Some((12, 15)));
        failed.results = [("failed".to_owned(), 1)].into();
        vec![
            page(1, "web2", Lifecycle::Sealed, Some((4, 9))),
            page(2, "web1", Lifecycle::Sealed, Some((2, 6))),
            page(3, "web2", Lifecycle::Cancelled, Some((3, 4))),
            failed,
            page(5, "web1", Lifecycle::Started, None),
        ]
    }

    #[test]
    fn pages_are_below_the_node_that_had_them_in_order_of_start() {
        let picture = of(subject(), &pages(), None);
        let shown: Vec<_> = picture
            .rows
            .iter()
            .map(|row| {
                let second = |time: Option<Time>| time.map_or(-1, |time| time.0 / 1000);
                let name = row.label.split(' ').next().unwrap_or_default();
                let (from, to) = (second(row.from), second(row.to));
                format!("{}{name} {from} {to} {}", "-".repeat(row.level), row.word)
            })
            .collect();
        let want = [
            "web1 2 -1 3 pages",
            "-s2 2 6 sealed",
            "-s4 12 15 failed",
            "-s5 -1 -1 started",
            "web2 3 9 2 pages",
            "-s3 3 4 cancelled",
            "-s1 4 9 sealed",
        ];
        assert_eq!(shown, want);
        assert_eq!(picture.rows[4].state, State::Good);
        assert_eq!(picture.about, ["on 2 nodes", "13s from first to last"]);
        assert_eq!(picture.left_out, None);
    }

    #[test]
    fn picture_of_many_pages_says_how_many_are_left_out() {
        let picture = of(subject(), &pages(), Some(999_995));
        assert_eq!(picture.about[0], "the first 5 of them");
        assert_eq!(
            picture.left_out.as_deref(),
            Some("left out: 999995 of 1000000 pages; --limit 0 draws all")
        );
    }

    /// `UPDATE_GOLDEN=1` rewrites the picture.
    #[test]
    fn picture_of_a_fleet_is_the_golden_one() {
        let picture = of(subject(), &pages(), None);
        let drawn = draw(&picture, &Style::plain(Time(20_000)));
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cli/verb/plot/nodes.svg");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, &drawn).unwrap();
        }
        assert_eq!(drawn, std::fs::read_to_string(&path).unwrap());
    }
}
