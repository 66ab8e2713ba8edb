//! The table of hooks on a terminal: a row for each hook of the pages that are worked on.

use crate::display::look::{Look, Tone};
use crate::display::text;
use archivist_core::model::{Lifecycle, Owner, ResultState, Time};
use archivist_core::text::clean;
use archivist_shared::bus::documents::report::{Event, HookResult};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use std::collections::BTreeMap;

/// A page, or the crawl itself, with its hooks in the order in which they began.
#[derive(Debug, Default)]
struct Page {
    url: String,
    hooks: Vec<HookResult>,
}

/// What is on the table: pure.
#[derive(Debug, Default)]
pub struct Board {
    pages: BTreeMap<Owner, Page>,
    urls: BTreeMap<Owner, String>,
}

/// Lines for which there is room; the rest is counted.
fn fit(mut lines: Vec<String>, room: usize) -> Vec<String> {
    if lines.len() > room {
        let hidden = lines.len() - room.saturating_sub(1);
        lines.truncate(room.saturating_sub(1));
        lines.push(format!("… and {hidden} more"));
    }
    lines
}

impl Board {
    /// Takes an event in. What stays of a page that has ended comes back.
    pub fn apply(&mut self, event: &Event, look: &Look) -> Vec<String> {
        match event {
            Event::Crawl { crawl } => {
                let owner = Owner::Crawl(crawl.id);
                self.urls.insert(owner, crawl.url.clone());
                if crawl.status.is_final() {
                    self.ended(owner, "", look)
                } else {
                    Vec::new()
                }
            }
            Event::Snapshot { snapshot } => {
                let owner = Owner::Snapshot(snapshot.id);
                self.urls.insert(owner, snapshot.url.clone());
                match snapshot.status {
                    Lifecycle::Started => {
                        self.pages.entry(owner).or_default().url = snapshot.url.clone();
                    }
                    status if status.is_final() => {
                        let why = snapshot.reason.as_deref().unwrap_or_default();
                        let why = match why {
                            "" => status.to_string(),
                            why => format!("{status}: {why}"),
                        };
                        return self.ended(owner, &why, look);
                    }
                    _ => {}
                }
                Vec::new()
            }
            Event::Hook { result } => {
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

    fn ended(&mut self, owner: Owner, why: &str, look: &Look) -> Vec<String> {
        self.urls.remove(&owner);
        match self.pages.remove(&owner) {
            Some(page) => lines_of(owner, &page, why, look),
            None => Vec::new(),
        }
    }

    /// What is drawn now.
    pub fn lines(&self, look: &Look, room: usize) -> Vec<String> {
        let pages = self.pages.iter();
        let lines = pages.flat_map(|(owner, page)| lines_of(*owner, page, "", look));
        fit(lines.collect(), room)
    }
}

fn lines_of(owner: Owner, page: &Page, why: &str, look: &Look) -> Vec<String> {
    let width = look.width.unwrap_or(usize::MAX);
    let head = format!("{owner} {}  {}", clean(&page.url), clean(why));
    let mut lines = vec![text::cut_middle(head.trim_end(), width)];
    lines.extend(page.hooks.iter().map(|hook| row(hook, look, width)));
    lines
}

/// `  screenshot        succeeded    1.2s  screenshot.png`
fn row(hook: &HookResult, look: &Look, width: usize) -> String {
    const BESIDE: usize = 44;
    let label = text::cut_middle(&text::hook_label(&hook.plugin, &hook.hook), 20);
    let at = match hook.status {
        ResultState::Started => text::elapsed(hook.started_at, None, look.now),
        ResultState::Queued => String::new(),
        _ => text::elapsed(hook.started_at, hook.ended_at, look.now),
    };
    let said = match hook.status {
        ResultState::Failed | ResultState::Skipped | ResultState::Backoff => {
            hook.error.as_deref().or(hook.output.as_deref())
        }
        _ => hook.output.as_deref(),
    };
    let said = clean(said.unwrap_or_default());
    let status = look.paint(
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
    /// Somebody is being asked: nothing is drawn, and what is to stay waits.
    quiet: bool,
    waiting: Vec<String>,
}

impl Screen {
    pub fn new() -> Screen {
        Screen {
            multi: MultiProgress::new(),
            bars: Vec::new(),
            quiet: false,
            waiting: Vec::new(),
        }
    }

    /// The look of the terminal now.
    pub fn look(now: Time) -> Look {
        let (_, columns) = console::Term::stderr().size();
        Look {
            width: Some(usize::from(columns).saturating_sub(1)),
            color: console::colors_enabled_stderr(),
            now,
            ..Look::of_stdout()
        }
    }

    /// Lines above the table that stay.
    pub fn print(&mut self, lines: Vec<String>) {
        if self.quiet {
            return self.waiting.extend(lines);
        }
        for line in lines {
            // Only a terminal that is gone cannot be written to; then nobody reads it anyway.
            let _ = self.multi.println(line);
        }
    }

    pub fn draw(&mut self, board: &Board, now: Time) {
        if self.quiet {
            return;
        }
        let (rows, _) = console::Term::stderr().size();
        let room = usize::from(rows).saturating_sub(2).max(1);
        let lines = board.lines(&Screen::look(now), room);
        while self.bars.len() > lines.len() {
            if let Some(bar) = self.bars.pop() {
                bar.finish_and_clear();
                self.multi.remove(&bar);
            }
        }
        while self.bars.len() < lines.len() {
            let style = ProgressStyle::with_template("{msg}");
            let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
            let bar = ProgressBar::new_spinner().with_style(style);
            self.bars.push(self.multi.add(bar));
        }
        for (bar, line) in self.bars.iter().zip(lines) {
            bar.set_message(line);
            bar.tick();
        }
    }

    /// Makes room for a question.
    pub fn ask(&mut self, question: &str) {
        self.clear();
        self.quiet = true;
        eprint!("{question}");
    }

    /// The question is answered.
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

    fn look() -> Look {
        Look {
            width: Some(70),
            ..Look::plain(NOW)
        }
    }

    fn hook(name: &str, status: ResultState) -> Event {
        let mut result = sample::result(3, name, name);
        result.status = status;
        result.error = (status == ResultState::Failed).then(|| "no \x1b[31m luck".into());
        Event::Hook { result }
    }

    #[test]
    fn a_row_for_each_hook_until_the_page_is_done() {
        let mut board = Board::default();
        let mut snapshot = sample::snapshot(3);
        snapshot.status = Lifecycle::Started;
        board.apply(&Event::Snapshot { snapshot }, &look());
        board.apply(&hook("wget", ResultState::Started), &look());
        board.apply(&hook("pdf", ResultState::Failed), &look());
        assert_eq!(
            board.lines(&look(), 10),
            [
                "s3 https://example.com/",
                "  wget                  started    1min 0s  screenshot.png",
                "  pdf                   failed        1.2s  no \u{fffd}[31m luck",
            ]
        );
        assert_eq!(board.lines(&look(), 2)[1], "… and 2 more");
        board.apply(&hook("wget", ResultState::Succeeded), &look());
        let snapshot = sample::snapshot(3);
        let stays = board.apply(&Event::Snapshot { snapshot }, &look());
        assert_eq!(stays[0], "s3 https://example.com/  sealed");
        assert!(stays[1].contains("succeeded"), "{stays:?}");
        assert!(board.lines(&look(), 10).is_empty());
    }
}
