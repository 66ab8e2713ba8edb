//! Response time and state of status checks as a picture: a panel for each URL, with down times
//! shaded, above a strip with the result of each check.

use crate::display::svg::{Anchor, Svg, nice};
use archivist_core::model::Time;
use archivist_shared::bus::documents::watches::Check;
use jiff::tz::TimeZone;

const WIDTH: f64 = 960.0;
const LEFT: f64 = 72.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 56.0;
const PLOT: f64 = 180.0;
const STRIP: f64 = 10.0;
const PANEL: f64 = TOP + PLOT + STRIP + 62.0;
const STYLE: &str = "text{font:12px system-ui,sans-serif;fill:#444}.paper{fill:#fff}.t{font-size:15px;font-weight:600;fill:#111}\
.g{stroke:#e3e3e3;stroke-width:1}.a{stroke:#888;stroke-width:1}.l{fill:none;stroke:#2463b0;stroke-width:1.5;\
stroke-linejoin:round}.d{fill:#c8322b;fill-opacity:.14}.ok{fill:#2f8f4e}.bad{fill:#c8322b}.un{fill:#aaa}\
.p{fill:#2463b0}@media(prefers-color-scheme:dark){text{fill:#c3cad4}.paper{fill:#15181c}.t{fill:#f3f5f7}\
.g{stroke:#2a3037}.a{stroke:#717c89}.l{stroke:#6aa5ee}.p{fill:#6aa5ee}.d{fill-opacity:.25}.ok{fill:#46b06b}\
.bad{fill:#e5625a}.un{fill:#717c89}}";

struct Point {
    at: Time,
    ok: Option<bool>,
    ms: Option<u64>,
}

/// Returns the picture; `checks` are in order of time.
pub fn draw(name: &str, checks: &[Check], zone: &TimeZone) -> String {
    let mut urls: Vec<&str> = Vec::new();
    for check in checks.iter().filter(|check| check.ended_at.is_some()) {
        if !urls.contains(&check.url.as_str()) {
            urls.push(&check.url);
        }
    }
    let height = PANEL * urls.len().max(1) as f64;
    let title = format!("watch {name}: response time and state");
    let mut svg = Svg::new(&title, WIDTH, height, STYLE);
    for (place, url) in urls.iter().enumerate() {
        let of = checks.iter().filter(|check| check.url == *url);
        let points: Vec<Point> = of.filter_map(point).collect();
        panel(&mut svg, url, &points, PANEL * place as f64, zone);
    }
    if urls.is_empty() {
        let words = format!("watch {name}: no results yet");
        svg.text("t", (LEFT, 34.0), Anchor::Start, &words);
    }
    svg.finish()
}

fn point(check: &Check) -> Option<Point> {
    Some(Point {
        at: check.started_at.or(check.ended_at).filter(|_| check.ended_at.is_some())?,
        ok: check.ok,
        ms: check.record.response_ms.filter(|_| check.ok == Some(true)),
    })
}

struct Frame {
    top: f64,
    from: i64,
    to: i64,
    most: f64,
}

impl Frame {
    fn x(&self, at: Time) -> f64 {
        let share = (at.0 - self.from) as f64 / (self.to - self.from) as f64;
        LEFT + share * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, ms: f64) -> f64 {
        self.top + TOP + PLOT * (1.0 - ms / self.most)
    }
}

fn panel(svg: &mut Svg, url: &str, points: &[Point], top: f64, zone: &TimeZone) {
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return;
    };
    let times_ms = points.iter().filter_map(|point| point.ms);
    let slowest = times_ms.max().unwrap_or(0);
    let step = nice(slowest.max(10) as f64 / 4.0);
    let frame = Frame {
        top,
        from: first.at.0,
        to: last.at.0.max(first.at.0 + 60_000),
        most: step * (slowest.max(10) as f64 / step).ceil(),
    };
    let known = points.iter().filter_map(|point| point.ok);
    let (all, good) = known.fold((0u32, 0u32), |(all, good), ok| (all + 1, good + u32::from(ok)));
    let uptime = f64::from(good) * 100.0 / f64::from(all.max(1));
    let shown: String = url.chars().take(100).collect();
    svg.text("t", (LEFT, top + 26.0), Anchor::Start, &shown);
    let words = format!("uptime {uptime:.2}% of {all} checks");
    svg.text("", (WIDTH - RIGHT, top + 44.0), Anchor::End, &words);
    let bottom = top + TOP + PLOT;
    for (from, to) in spans(points, Time(frame.to)) {
        let (x, end) = (frame.x(from), frame.x(to));
        let (from, to) = (clock(from, zone, true), clock(to, zone, true));
        svg.group(&format!("failing from {from} to {to}"), |svg| {
            svg.rect("d", (x, top + TOP), ((end - x).max(1.0), PLOT), 0.0);
        });
    }
    levels(svg, &frame, step);
    times(svg, &frame, bottom, zone);
    lines(svg, &frame, points);
    for point in points {
        let (class, word) = match point.ok {
            Some(true) => ("ok", "good"),
            Some(false) => ("bad", "not good"),
            None => ("un", "unknown"),
        };
        let tip = format!("{} {word}", clock(point.at, zone, true));
        svg.group(&tip, |svg| {
            let at = (frame.x(point.at) - 1.5, bottom + 4.0);
            svg.rect(class, at, (3.0, STRIP), 0.0);
        });
    }
}

/// Draws grid lines with their milliseconds, `step` apart.
fn levels(svg: &mut Svg, frame: &Frame, step: f64) {
    let mut ms = 0.0;
    while ms <= frame.most + step / 2.0 {
        let y = frame.y(ms);
        let class = if ms == 0.0 { "a" } else { "g" };
        svg.line(class, (LEFT, y), (WIDTH - RIGHT, y));
        svg.text("", (LEFT - 8.0, y + 4.0), Anchor::End, &ms.to_string());
        ms += step;
    }
    let words = (18.0, frame.top + TOP + PLOT / 2.0);
    svg.upward(words, "response time, ms");
}

/// Draws response times, interrupted where checks had none.
fn lines(svg: &mut Svg, frame: &Frame, points: &[Point]) {
    for run in points.split(|point| point.ms.is_none()) {
        let at = |point: &Point| (frame.x(point.at), frame.y(point.ms.unwrap_or(0) as f64));
        match run {
            [] => {}
            [alone] => svg.circle("p", at(alone), 2.0),
            run => svg.polyline("l", run.iter().map(at)),
        }
    }
}

/// Draws six times along the lower edge, with the day if there is more than one.
fn times(svg: &mut Svg, frame: &Frame, bottom: f64, zone: &TimeZone) {
    let days = frame.to - frame.from > 86_400_000;
    for n in 0..=5 {
        let at = Time(frame.from + (frame.to - frame.from) * n / 5);
        let x = frame.x(at);
        let anchor = match n {
            0 => Anchor::Start,
            5 => Anchor::End,
            _ => Anchor::Middle,
        };
        let y = bottom + STRIP;
        svg.line("a", (x, y + 6.0), (x, y + 11.0));
        svg.text("", (x, y + 26.0), anchor, &clock(at, zone, days));
    }
}

fn clock(at: Time, zone: &TimeZone, with_day: bool) -> String {
    let stamp = jiff::Timestamp::from_millisecond(at.0).unwrap_or_default();
    let form = if with_day { "%m-%d %H:%M" } else { "%H:%M:%S" };
    stamp.to_zoned(zone.clone()).strftime(form).to_string()
}

/// Returns the spans from a failed check to the next success, or to the end.
fn spans(points: &[Point], end: Time) -> Vec<(Time, Time)> {
    let (mut spans, mut since) = (Vec::new(), None);
    for point in points {
        match (point.ok, since) {
            (Some(false), None) => since = Some(point.at),
            (Some(true), Some(from)) => {
                spans.push((from, point.at));
                since = None;
            }
            _ => {}
        }
    }
    spans.extend(since.map(|from| (from, end)));
    spans
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_core::model::{CheckKind, CheckRecord, RunId};

    fn check(minute: i64, ok: Option<bool>, ms: u64) -> Check {
        Check {
            id: RunId(minute),
            watch: "w".into(),
            kind: CheckKind::Status,
            url: "http://a.example/?<script>&".into(),
            state: "ended".into(),
            queued_at: Time(minute * 60_000),
            started_at: Some(Time(minute * 60_000)),
            ended_at: Some(Time(minute * 60_000 + 50)),
            unit: None,
            outcome: None,
            ok,
            record: CheckRecord { response_ms: Some(ms), ..CheckRecord::default() },
        }
    }

    #[test]
    fn the_picture_has_titles_rows_and_legend() {
        let checks = [
            check(0, Some(true), 40),
            check(3, Some(true), 90),
            check(6, Some(false), 10_000),
            check(9, None, 0),
            check(12, Some(false), 10_000),
            check(15, Some(true), 60),
        ];
        let svg = draw("w", &checks, &TimeZone::UTC);
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        assert!(svg.contains("&lt;script&gt;&amp;") && !svg.contains("<script"));
        assert_eq!(svg.matches("class=\"d\"").count(), 1, "one time it was down");
        assert_eq!(svg.matches("<polyline").count(), 1);
        assert_eq!(svg.matches("<circle").count(), 1);
        assert!(svg.contains("uptime 60.00% of 5 checks"));
        assert!(svg.contains(">100</text>") && !svg.contains(">10000</text>"));
        assert!(draw("w", &[], &TimeZone::UTC).contains("no results yet"));
    }
}
