//! Progress of `add --wait`: a line for each running page, and one for the crawl.

use crate::display::text;
use crate::progress::follow::{Follow, Page};
use archivist_core::model::Time;
use archivist_core::text::clean;

/// Returns a line for each running page, as far as the terminal has room for them, and one for the
/// crawl, which is followed since `began`.
pub fn lines(follow: &Follow, began: Time, now: Time, (rows, columns): (u16, u16)) -> String {
    let working = follow.working();
    let room = usize::from(rows).saturating_sub(4).max(1);
    let mut lines = String::new();
    for (id, page) in working.iter().take(room) {
        lines += &format!("{id} {}\n", message(page, now, columns.into()));
    }
    let (done, all) = follow.pages();
    let results = text::counts(&follow.results(), &text::result_states());
    let hidden = match working.len().saturating_sub(room) {
        0 => String::new(),
        n => format!("; {n} more pages running"),
    };
    let elapsed = text::elapsed(Some(began), None, now);
    lines
        + &format!("{elapsed} [{}] {done}/{all} pages results: {results}{hidden}\n", bar(done, all))
}

fn bar(done: u64, all: u64) -> String {
    const CELLS: u64 = 30;
    let full = (done * CELLS).checked_div(all).unwrap_or(0).min(CELLS);
    (0..CELLS).map(|cell| if cell < full { '█' } else { '░' }).collect()
}

/// Returns `12s  screenshot 3s, pdf 1s  https://…` in at most `width` columns.
fn message(page: &Page, now: Time, columns: usize) -> String {
    /// Columns of the id, and one that stays empty.
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
    fn the_bar_grows_with_the_pages() {
        let full = |done, all| bar(done, all).chars().filter(|cell| *cell == '█').count();
        assert_eq!((full(0, 0), full(1, 3), full(3, 3), full(4, 3)), (0, 10, 30, 30));
        assert_eq!(bar(1, 2).chars().count(), 30);
    }
}
