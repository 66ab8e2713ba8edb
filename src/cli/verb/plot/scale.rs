//! The time axis. Long gaps in which nothing ran are folded, so that a retry on the next day leaves
//! the rest readable.

use archivist_core::model::Time;

/// Width of a fold, in pixels.
const FOLD: f64 = 28.0;
/// A gap is folded if it is longer than this share of the busy time …
const FOLD_PART: i64 = 5;
/// … and than this, in milliseconds.
const FOLD_MIN: i64 = 1000;
/// Most folds, because each takes width.
const FOLDS_MAX: usize = 8;
/// Shortest drawn span, in milliseconds.
const SPAN_MIN: i64 = 10;
/// Least distance between two ticks, in pixels.
const TICK_ROOM: f64 = 72.0;
/// Steps between two ticks, in milliseconds.
const STEPS: [i64; 30] = [
    1,
    2,
    5,
    10,
    20,
    50,
    100,
    200,
    500,
    1_000,
    2_000,
    5_000,
    10_000,
    15_000,
    30_000,
    60_000,
    120_000,
    300_000,
    600_000,
    900_000,
    1_800_000,
    3_600_000,
    7_200_000,
    10_800_000,
    21_600_000,
    43_200_000,
    86_400_000,
    172_800_000,
    432_000_000,
    864_000_000,
];

/// A part of the axis without a fold.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Piece {
    from: i64,
    to: i64,
    x: f64,
}

pub struct Scale {
    pieces: Vec<Piece>,
    /// Pixels per millisecond.
    rate: f64,
    right: f64,
}

/// A gap in which nothing ran: its middle in pixels, and its length in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fold {
    pub x: f64,
    pub length: i64,
}

impl Scale {
    /// Returns the axis from `left` to `right` for units that ran at the `busy` times, in any
    /// order.
    pub fn new(busy: &[(Time, Time)], left: f64, right: f64) -> Scale {
        let mut pieces = fold(union(busy));
        let active: i64 = pieces.iter().map(|piece| piece.to - piece.from).sum();
        let folds = FOLD * (pieces.len() - 1) as f64;
        let rate = (right - left - folds).max(1.0) / active.max(SPAN_MIN) as f64;
        let mut x = left;
        for piece in &mut pieces {
            piece.x = x;
            x += (piece.to - piece.from) as f64 * rate + FOLD;
        }
        Scale { pieces, rate, right }
    }

    pub fn origin(&self) -> Time {
        Time(self.pieces[0].from)
    }

    /// Returns the position of a time. A time within a fold is at its middle, a time outside the
    /// axis at its edge.
    pub fn x(&self, at: Time) -> f64 {
        let next = self.pieces.partition_point(|piece| piece.from <= at.0);
        let Some(piece) = next.checked_sub(1).map(|place| self.pieces[place]) else {
            return self.pieces[0].x;
        };
        let end = piece.x + (piece.to - piece.from) as f64 * self.rate;
        let x = if at.0 <= piece.to {
            piece.x + (at.0 - piece.from) as f64 * self.rate
        } else if next < self.pieces.len() {
            end + FOLD / 2.0
        } else {
            end
        };
        x.min(self.right)
    }

    /// Returns the width of a span of that many milliseconds.
    pub fn width(&self, ms: f64) -> f64 {
        ms * self.rate
    }

    pub fn folds(&self) -> Vec<Fold> {
        let pairs = self.pieces.windows(2);
        pairs
            .map(|pair| Fold { x: pair[1].x - FOLD / 2.0, length: pair[1].from - pair[0].to })
            .collect()
    }

    /// Returns the ticks with their labels; each fold is followed by a tick.
    pub fn ticks(&self) -> Vec<(f64, String)> {
        let enough = |step: &&i64| self.width(**step as f64) >= TICK_ROOM;
        let longest = STEPS[STEPS.len() - 1];
        let step = STEPS.iter().find(enough).copied().unwrap_or_else(|| {
            let days = TICK_ROOM / self.width(longest as f64);
            longest.saturating_mul(crate::display::svg::nice(days) as i64)
        });
        let origin = self.origin().0;
        let mut ticks = vec![(self.pieces[0].x, "0".to_owned())];
        for (place, piece) in self.pieces.iter().enumerate() {
            if place > 0 {
                ticks.push((piece.x, offset(piece.from - origin)));
            }
            let begin = ticks[ticks.len() - 1].0;
            let mut at = ((piece.from - origin) / step + 1) * step;
            while at <= piece.to - origin {
                let x = self.x(Time(origin + at));
                if x - begin >= TICK_ROOM * 0.75 {
                    ticks.push((x, offset(at)));
                }
                at += step;
            }
        }
        ticks
    }
}

/// Returns the busy times in order, none touching another; never empty.
fn union(busy: &[(Time, Time)]) -> Vec<(i64, i64)> {
    let mut all: Vec<_> = busy.iter().map(|(from, to)| (from.0, to.0.max(from.0))).collect();
    all.sort_unstable();
    let mut merged: Vec<(i64, i64)> = Vec::new();
    for (from, to) in all {
        match merged.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => merged.push((from, to)),
        }
    }
    if merged.is_empty() {
        merged.push((0, SPAN_MIN));
    }
    merged
}

/// Joins busy times without a long gap between them. If there are too many gaps, only the longest
/// stay.
fn fold(busy: Vec<(i64, i64)>) -> Vec<Piece> {
    let active: i64 = busy.iter().map(|(from, to)| to - from).sum();
    let least = (active / FOLD_PART).max(FOLD_MIN);
    let gap = |place: usize| busy[place].0 - busy[place - 1].1;
    let mut long: Vec<usize> = (1..busy.len()).filter(|place| gap(*place) > least).collect();
    long.sort_by_key(|place| std::cmp::Reverse(gap(*place)));
    long.truncate(FOLDS_MAX);
    let mut pieces: Vec<Piece> = Vec::new();
    for (place, (from, to)) in busy.iter().copied().enumerate() {
        match pieces.last_mut() {
            Some(last) if !long.contains(&place) => last.to = to,
            _ => pieces.push(Piece { from, to, x: 0.0 }),
        }
    }
    pieces
}

/// `0`, `250ms`, `1.5s`, `2min 30s`, `1h 5min`, `3d`.
pub fn offset(ms: i64) -> String {
    if ms < 1000 {
        return format!("{ms}ms");
    }
    if ms < 60_000 {
        let text = format!("{:.3}", ms as f64 / 1000.0);
        return format!("{}s", text.trim_end_matches('0').trim_end_matches('.'));
    }
    let seconds = ms / 1000;
    let parts = [
        (seconds / 86_400, "d"),
        (seconds % 86_400 / 3600, "h"),
        (seconds % 3600 / 60, "min"),
        (seconds % 60, "s"),
    ];
    let words: Vec<_> = parts
        .iter()
        .filter(|(count, _)| *count > 0)
        .take(2)
        .map(|(count, unit)| format!("{count}{unit}"))
        .collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn scale(busy: &[(i64, i64)]) -> Scale {
        let busy: Vec<_> = busy.iter().map(|(a, b)| (Time(*a), Time(*b))).collect();
        Scale::new(&busy, 100.0, 900.0)
    }

    #[test]
    fn a_run_without_gaps_fills_the_axis() {
        let scale = scale(&[(500, 1000), (1000, 3000), (1200, 8500)]);
        assert_eq!(scale.origin(), Time(500));
        assert_eq!((scale.x(Time(500)), scale.x(Time(8500))), (100.0, 900.0));
        assert_eq!(scale.x(Time(4500)), 500.0);
        assert!(scale.folds().is_empty());
        let ticks = scale.ticks();
        let words: Vec<_> = ticks.iter().map(|(_, text)| text.as_str()).collect();
        let want = ["0", "1s", "2s", "3s", "4s", "5s", "6s", "7s", "8s"];
        assert_eq!(words, want);
    }

    #[test]
    fn a_retry_on_the_next_day_is_next_to_the_first_attempt() {
        let day = 86_400_000;
        let scale = scale(&[(0, 4000), (day, day + 4000)]);
        let folds = scale.folds();
        assert_eq!((folds.len(), folds[0].length), (1, day - 4000));
        assert_eq!(folds[0].x, 500.0);
        assert_eq!(scale.x(Time(day / 2)), 500.0);
        assert_eq!(scale.x(Time(day + 4000)), 900.0);
        assert!(scale.ticks().iter().any(|(_, text)| text == "1d"));
    }

    #[test]
    fn offsets_have_at_most_two_units() {
        let words = [0, 250, 1500, 60_000, 150_000, 3_900_000, 259_200_000].map(offset);
        let want = ["0ms", "250ms", "1.5s", "1min", "2min 30s", "1h 5min", "3d"];
        assert_eq!(words, want);
    }

    proptest! {
        /// For any runs, time increases from left to right, inside the frame, with few ticks.
        #[test]
        fn any_times_are_in_order_and_inside(busy in prop::collection::vec((0i64..1_000_000_000_000, 0i64..1_000_000_000), 0..40), mut at in prop::collection::vec(0i64..1_001_000_000_000, 2..20)) {
            let busy: Vec<_> = busy.iter().map(|(from, length)| (*from, from + length)).collect();
            let scale = scale(&busy);
            at.sort_unstable();
            let places: Vec<f64> = at.iter().map(|at| scale.x(Time(*at))).collect();
            prop_assert!(places.is_sorted());
            prop_assert!(places.iter().all(|x| (100.0..=900.0).contains(x)));
            let ticks = scale.ticks();
            prop_assert!(ticks.len() < 40, "{}", ticks.len());
            prop_assert!(ticks.iter().all(|(x, _)| (99.9..=900.1).contains(x)));
        }
    }
}
