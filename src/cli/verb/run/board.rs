//! Table of hooks on a terminal: one row for each hook of the running pages.

use crate::display::style::{Style, Tone};
use crate::display::text;
use archivist_core::model::{Lifecycle, Owner, ResultState, Time};
use archivist_core::text::clean;
use archivist_shared::bus::documents::report::{CrawlEvent, HookResult};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use std::collections::BTreeMap;

/// A page or the crawl itself, with its hooks in order of their start.
#[derive(Debug, Default)]
struct Page {
    url: String,
    hooks: Vec<HookResult>,
}

/// Content of the table. Pure.
#[derive(Debug, Default)]
pub struct Board {
    pages: BTreeMap<Owner, Page>,
    urls: BTreeMap<Owner, String>,
}

/// Returns at most `room` lines; the last one counts the rest.
fn fit(mut lines: Vec<String>, room: usize) -> Vec<String> {
    if lines.len() > room {
        let hidden = lines.len() - room.saturating_sub(1);
        lines.truncate(room.saturating_sub(1));
        lines.push(format!("… and {hidden} more"));
    }
    lines
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

    /// Returns the lines to draw.
    pub fn lines(&self, style: &Style, room: usize) -> Vec<String> {
        let pages = self.pages.iter();
        let lines = pages.flat_map(|(owner, page)| lines_of(*owner, page, "", style));
        fit(lines.collect(), room)
    }
}

fn lines_of(owner: Owner, page: &Page, why: &str, style: &Style) -> Vec<String> {
    let width = style.width.unwrap_or(usize::MAX);
    let head = format!("{owner} {}  {}", clean(&page.url), clean(why));
    let mut lines = vec![text::cut_middle(head.trim_end(), width)];
    lines.extend(page.hooks.iter().map(|hook| row(hook, style, width)));
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

/// The board on the terminal at standard error.
pub struct Screen {
    multi: MultiProgress,
    bars: Vec<ProgressBar>,
    /// A question is open: nothing is drawn, and lines that stay are held back.
    quiet: bool,
    waiting: Vec<String>,
}

impl Screen {
    pub fn new() -> Screen {
        Screen { multi: MultiProgress::new(), bars: Vec::new(), quiet: false, waiting: Vec::new() }
    }

    /// Returns the style of the terminal.
    pub fn style(now: Time) -> Style {
        let (_, columns) = console::Term::stderr().size();
        Style {
            width: Some(usize::from(columns).saturating_sub(1)),
            color: console::colors_enabled_stderr(),
            now,
            ..Style::of_stdout()
        }
    }

    /// Prints lines above the table.
    pub fn print(&mut self, lines: Vec<String>) {
        if self.quiet {
            return self.waiting.extend(lines);
        }
        for line in lines {
            // Writing fails only if the terminal is gone; ignoring.
            let _ = self.multi.println(line);
        }
    }

    pub fn draw(&mut self, board: &Board, now: Time) {
        if self.quiet {
            return;
        }
        let (rows, _) = console::Term::stderr().size();
        let room = usize::from(rows).saturating_sub(2).max(1);
        let lines = board.lines(&Screen::style(now), room);
        while self.bars.len() > lines.len() {
            if let Some(bar) = self.bars.pop() {
                bar.finish_and_clear();
                self.multi.remove(&bar);
            }
        }
        while self.bars.len() < lines.len() {
            let style = ProgressStyle::with_template("{msg}")
                .unwrap_or_else(|_| ProgressStyle::default_spinner());
            let bar = ProgressBar::new_spinner().with_style(style);
            self.bars.push(self.multi.add(bar));
        }
        for (bar, line) in self.bars.iter().zip(lines) {
            bar.set_message(line);
            bar.tick();
        }
    }

    /// Clears the table for a question.
    pub fn ask(&mut self, question: &str) {
        self.clear();
        self.quiet = true;
        eprint!("{question}");
    }

    /// Draws the table again after the answer.
    pub fn resume(&mut self) {
        self.quiet = false;
        let waiting = std::mem::take(&mut self.waiting);
        self.print(waiting);
    }

    pub fn clear(&mut self) {
        for bar in self.bars.drain(..) {
            bar.finish_and_clear();
            self.multi.remove(&bar);
        }
        let _ = self.multi.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use crate::sample::NOW;

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
            board.lines(&style(), 10),
            [
                "s3 https://example.com/",
                "  wget                  started    1min 0s  screenshot.png",
                "  pdf                   failed        1.2s  no \u{fffd}[31m luck",
            ]
        );
        assert_eq!(board.lines(&style(), 2)[1], "… and 2 more");
        board.apply(&hook("wget", ResultState::Succeeded), &style());
        let snapshot = sample::snapshot(3);
        let stays = board.apply(&CrawlEvent::Snapshot { snapshot }, &style());
        assert_eq!(stays[0], "s3 https://example.com/  sealed");
        assert!(stays[1].contains("succeeded"), "{stays:?}");
        assert!(board.lines(&style(), 10).is_empty());
    }
}
