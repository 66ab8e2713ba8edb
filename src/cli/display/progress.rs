//! Progress bars of `add --wait`: one for each running page, and one for the crawl.

use crate::client::follow::{Follow, Page};
use crate::display::text;
use archivist_core::model::{SnapshotId, Time};
use archivist_core::text::clean;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use std::collections::BTreeMap;

/// Bars on the terminal at standard error.
pub struct Bars {
    multi: MultiProgress,
    overall: ProgressBar,
    pages: BTreeMap<SnapshotId, ProgressBar>,
    /// Most bars of pages.
    room: usize,
    columns: usize,
}

impl Bars {
    pub fn new() -> Bars {
        let multi = MultiProgress::new();
        let overall = multi.add(ProgressBar::new(0));
        overall.set_style(style("{elapsed_precise} [{bar:30}] {pos}/{len} pages {wide_msg}"));
        let (rows, columns) = console::Term::stderr().size();
        Bars {
            multi,
            overall,
            pages: BTreeMap::new(),
            room: usize::from(rows).saturating_sub(4).max(1),
            columns: usize::from(columns),
        }
    }

    /// Prints a line above the bars.
    pub fn print(&self, line: &str) {
        // Writing fails only if the terminal is gone; ignoring.
        let _ = self.multi.println(line);
    }

    pub fn draw(&mut self, follow: &Follow, now: Time) {
        let working = follow.working();
        self.pages.retain(|id, bar| {
            let keep = working.contains_key(id);
            if !keep {
                bar.finish_and_clear();
                self.multi.remove(bar);
            }
            keep
        });
        for (id, page) in working.iter().take(self.room) {
            let bar = self.pages.entry(*id).or_insert_with(|| {
                let bar =
                    ProgressBar::new_spinner().with_style(style("{spinner} {prefix} {wide_msg}"));
                self.multi.insert_before(&self.overall, bar)
            });
            bar.set_prefix(id.to_string());
            bar.set_message(message(page, now, self.columns));
            bar.tick();
        }
        let (done, all) = follow.pages();
        self.overall.set_length(all);
        self.overall.set_position(done);
        let hidden = working.len().saturating_sub(self.pages.len());
        let results = text::counts(&follow.results(), &text::result_states());
        self.overall.set_message(match hidden {
            0 => format!("results: {results}"),
            n => format!("results: {results}; {n} more pages running"),
        });
        self.overall.tick();
    }

    pub fn clear(self) {
        // Ignoring errors as in `print`.
        let _ = self.multi.clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner())
}

/// Returns `12s  screenshot 3s, pdf 1s  https://…` in at most `width` columns.
fn message(page: &Page, now: Time, columns: usize) -> String {
    /// Columns of spinner and id, and one that stays empty.
    const BESIDE: usize = 12;
    let hooks: Vec<_> = page
        .hooks
        .iter()
        .map(|(hook, since)| format!("{} {}", clean(hook), text::elapsed(*since, None, now)))
        .collect();
    let work =
        format!("{:>5}  {:<30}  ", text::elapsed(page.started_at, None, now), hooks.join(", "));
    let room = columns.saturating_sub(work.chars().count() + BESIDE);
    work + &text::cut_middle(&clean(&page.url), room)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::NOW;

    #[test]
    fn a_page_shows_its_hooks_and_their_times() {
        let page = Page {
            url: "https://example.com/".into(),
            started_at: Some(Time(NOW.0 - 12_000)),
            hooks: [("pdf".to_owned(), Some(Time(NOW.0 - 1_500)))].into(),
        };
        let text = message(&page, NOW, 80);
        assert!(text.starts_with("  12s  pdf 1.5s "), "{text}");
        assert!(text.ends_with("  https://example.com/"), "{text}");
        let text = message(&page, NOW, 60);
        assert!(text.ends_with("  http…com/"), "{text}");
    }

    #[test]
    fn the_templates_are_valid() {
        for template in [
            "{elapsed_precise} [{bar:30}] {pos}/{len} pages {wide_msg}",
            "{spinner} {prefix} {wide_msg}",
        ] {
            assert!(ProgressStyle::with_template(template).is_ok());
        }
    }
}
