//! Table of hooks on a terminal: one row for each hook of the running pages.

use crate::display::style::{Style, Tone};
use crate::display::text;
use crate::progress::follow::waiting;
use archivist_core::model::{Lifecycle, Owner, ResultState};
use archivist_core::text::clean;
use archivist_shared::bus::documents::report::{CrawlEvent, HookResult, sum_up};
use std::collections::BTreeMap;

/// A page or the crawl itself, with its hooks in order of their start.
#[derive(Debug, Default)]
struct Page {
    url: String,
    hooks: Vec<HookResult>,
}

#[derive(Debug, Default)]
pub struct Board {
    pages: BTreeMap<Owner, Page>,
    urls: BTreeMap<Owner, String>,
}

impl Board {
    /// Applies an event; returns the last lines of a page that has ended.
    pub fn apply(&mut self, event: &CrawlEvent, style: &Style) -> Vec<String> {
        match event {
            CrawlEvent::Crawl { crawl } => {
                let owner = Owner::Crawl(crawl.id);
                self.urls.insert(owner, crawl.url.clone());
                if crawl.status.is_final() { self.ended(owner, "", style) } else { Vec::new() }
            }
            CrawlEvent::Snapshot { snapshot } => {
                let owner = Owner::Snapshot(snapshot.id);
                self.urls.insert(owner, snapshot.url.clone());
                if let Some(why) = waiting(snapshot, style.now) {
                    return self.ended(owner, &why, style);
                }
                match snapshot.status {
                    Lifecycle::Started => {
                        self.pages.entry(owner).or_default().url = snapshot.url.clone();
                    }
                    status if status.is_final() => {
                        let why = match snapshot.reason.as_deref().unwrap_or_default() {
                            "" => status.to_string(),
                            why => format!("{status}: {why}"),
                        };
                        return self.ended(owner, &why, style);
                    }
                    _ => {}
                }
                Vec::new()
            }
            CrawlEvent::Hook { result } => {
                self.hook(result);
                Vec::new()
            }
        }
    }

    fn hook(&mut self, result: &HookResult) {
        let url = self.urls.get(&result.owner).cloned().unwrap_or_default();
        let page = self.pages.entry(result.owner).or_default();
        if page.url.is_empty() {
            page.url = url;
        }
        let same =
            |row: &&mut HookResult| (&row.plugin, &row.hook) == (&result.plugin, &result.hook);
        match page.hooks.iter_mut().find(same) {
            Some(row) => *row = result.clone(),
            None => page.hooks.push(result.clone()),
        }
    }

    fn ended(&mut self, owner: Owner, why: &str, style: &Style) -> Vec<String> {
        self.urls.remove(&owner);
        match self.pages.remove(&owner) {
            Some(page) => lines_of(owner, &page, why, style),
            None => Vec::new(),
        }
    }

    pub fn lines(&self, style: &Style) -> Vec<String> {
        let pages = self.pages.iter();
        pages.flat_map(|(owner, page)| lines_of(*owner, page, "", style)).collect()
    }
}

fn lines_of(owner: Owner, page: &Page, why: &str, style: &Style) -> Vec<String> {
    let width = style.width.unwrap_or(usize::MAX);
    let head = format!("{owner} {}  {}", clean(&page.url), clean(why));
    let mut lines = vec![text::cut_middle(head.trim_end(), width)];
    let (alone, sums) = sum_up(&page.hooks);
    lines.extend(alone.into_iter().map(|hook| row(hook, style, width)));
    let said = |reason: &str| why.ends_with(reason).then(|| reason.to_owned());
    let sums = sums.iter().map(|sum| sum.text("", said(sum.reason).as_deref()));
    let sums = sums.map(|sum| format!("  {}", clean(&sum)));
    lines.extend(sums.map(|sum| text::cut_middle(&sum, width)));
    lines
}

/// `  screenshot        succeeded    1.2s  screenshot.png`
fn row(hook: &HookResult, style: &Style, width: usize) -> String {
    const BESIDE: usize = 44;
    let label = text::cut_middle(&text::hook_label(&hook.plugin, &hook.hook), 20);
    let at = match hook.status {
        ResultState::Started => text::elapsed(hook.started_at, None, style.now),
        ResultState::Queued => String::new(),
        _ => text::elapsed(hook.started_at, hook.ended_at, style.now),
    };
    let text = match hook.status {
        ResultState::Failed | ResultState::Skipped | ResultState::Backoff => {
            hook.error.as_deref().or(hook.output.as_deref())
        }
        _ => hook.output.as_deref(),
    };
    let said = clean(text.unwrap_or_default());
    let status = style.paint(
        &format!("{:<10}", hook.status.as_str()),
        match hook.status {
            ResultState::Started => Tone::Busy,
            status => text::tone_of_result(status),
        },
    );
    let line = format!(
        "  {label:<20}  {status} {at:>7}  {}",
        text::cut_middle(&said, width.saturating_sub(BESIDE))
    );
    line.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{self, NOW};

    fn style() -> Style {
        Style { width: Some(70), ..Style::plain(NOW) }
    }

    fn hook(name: &str, status: ResultState) -> CrawlEvent {
        let mut result = sample::result(3, name, name);
        result.status = status;
        result.error = (status == ResultState::Failed).then(|| "no \x1b[31m luck".into());
        CrawlEvent::Hook { result }
    }

    #[test]
    fn a_row_for_each_hook_until_the_page_is_done() {
        let mut board = Board::default();
        let mut snapshot = sample::snapshot(3);
        snapshot.status = Lifecycle::Started;
        board.apply(&CrawlEvent::Snapshot { snapshot }, &style());
        board.apply(&hook("wget", ResultState::Started), &style());
        board.apply(&hook("pdf", ResultState::Failed), &style());
        assert_eq!(
            board.lines(&style()),
            [
                "s3 https://example.com/",
                "  wget                  started    1min 0s  screenshot.png",
                "  pdf                   failed        1.2s  no \u{fffd}[31m luck",
            ]
        );
        board.apply(&hook("wget", ResultState::Succeeded), &style());
        let snapshot = sample::snapshot(3);
        let stays = board.apply(&CrawlEvent::Snapshot { snapshot }, &style());
        assert_eq!(stays[0], "s3 https://example.com/  sealed");
        assert!(stays[1].contains("succeeded"), "{stays:?}");
        assert!(board.lines(&style()).is_empty());
    }
}
