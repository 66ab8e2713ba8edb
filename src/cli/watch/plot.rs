//! Response time and state of status checks as a picture: a panel for each URL, times that it was
//! down shaded, a strip below that says how each check went.

use crate::bus::watches::Check;
use crate::model::Time;
use jiff::tz::TimeZone;
use std::fmt::Write;

const WIDTH: f64 = 960.0;
const LEFT: f64 = 72.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 56.0;
const PLOT: f64 = 180.0;
const STRIP: f64 = 10.0;
const PANEL: f64 = TOP + PLOT + STRIP + 62.0;
/// Names of fonts, colours, and how lines look.
const STYLE: &str = "text{font:12px system-ui,sans-serif;fill:#444}.t{font-size:15px;font-weight:600;fill:#111}\
.g{stroke:#e3e3e3;stroke-width:1}.a{stroke:#888;stroke-width:1}.l{fill:none;stroke:#2463b0;stroke-width:1.5;\
stroke-linejoin:round}.d{fill:#c8322b;fill-opacity:.14}.ok{fill:#2f8f4e}.bad{fill:#c8322b}.un{fill:#aaa}\
.p{fill:#2463b0}";

/// One check that is over.
struct Point {
    at: Time,
    ok: Option<bool>,
    ms: Option<u64>,
}

/// The picture; `checks` are the oldest first.
pub fn draw(name: &str, checks: &[Check], zone: &TimeZone) -> String {
    let mut urls: Vec<&str> = Vec::new();
    for check in checks.iter().filter(|check| check.ended_at.is_some()) {
        if !urls.contains(&check.url.as_str()) {
            urls.push(&check.url);
        }
    }
    let height = PANEL * urls.len().max(1) as f64;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\" role=\"img\">\n<title>{}</title>\n<style>{STYLE}</style>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
        escape(&format!("watch {name}: response time and state"))
    );
    for (place, url) in urls.iter().enumerate() {
        let of = checks.iter().filter(|check| check.url == *url);
        let points: Vec<Point> = of.filter_map(point).collect();
        panel(&mut out, url, &points, PANEL * place as f64, zone);
    }
    if urls.is_empty() {
        let _ = writeln!(
            out,
            "<text class=\"t\" x=\"{LEFT}\" y=\"34\">watch {}: no results yet</text>",
            escape(name)
        );
    }
    out.push_str("</svg>\n");
    out
}

fn point(check: &Check) -> Option<Point> {
    Some(Point {
        at: check
            .started_at
            .or(check.ended_at)
            .filter(|_| check.ended_at.is_some())?,
        ok: check.ok,
        ms: check.record.response_ms.filter(|_| check.ok == Some(true)),
    })
}

/// Text from the web: what would be markup is escaped, what XML forbids is taken out.
fn escape(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() || ('\u{fffe}'..='\u{ffff}').contains(&c) => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
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

fn panel(out: &mut String, url: &str, points: &[Point], top: f64, zone: &TimeZone) {
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return;
    };
    let slowest = points
        .iter()
        .filter_map(|point| point.ms)
        .max()
        .unwrap_or(0);
    let step = nice(slowest.max(10) as f64 / 4.0);
    let frame = Frame {
        top,
        from: first.at.0,
        to: last.at.0.max(first.at.0 + 60_000),
        most: step * (slowest.max(10) as f64 / step).ceil(),
    };
    let known = points.iter().filter_map(|point| point.ok);
    let (all, good) = known.fold((0u32, 0u32), |(all, good), ok| {
        (all + 1, good + u32::from(ok))
    });
    let uptime = f64::from(good) * 100.0 / f64::from(all.max(1));
    let shown: String = url.chars().take(100).collect();
    let _ = writeln!(
        out,
        "<text class=\"t\" x=\"{LEFT}\" y=\"{:.1}\">{}</text>\n\
         <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">uptime {uptime:.2}% of {all} checks</text>",
        top + 26.0,
        escape(&shown),
        WIDTH - RIGHT,
        top + 44.0
    );
    let (bottom, right) = (top + TOP + PLOT, WIDTH - RIGHT);
    for (from, to) in spans(points, Time(frame.to)) {
        let (x, end) = (frame.x(from), frame.x(to));
        let _ = writeln!(
            out,
            "<rect class=\"d\" x=\"{x:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{PLOT}\"><title>not good from {} to {}</title></rect>",
            top + TOP,
            (end - x).max(1.0),
            clock(from, zone, true),
            clock(to, zone, true)
        );
    }
    let mut ms = 0.0;
    while ms <= frame.most + step / 2.0 {
        let y = frame.y(ms);
        let class = if ms == 0.0 { "a" } else { "g" };
        let _ = writeln!(
            out,
            "<line class=\"{class}\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{ms}</text>",
            LEFT - 8.0,
            y + 4.0
        );
        ms += step;
    }
    let middle = top + TOP + PLOT / 2.0;
    let _ = writeln!(
        out,
        "<text x=\"18\" y=\"{middle:.1}\" text-anchor=\"middle\" transform=\"rotate(-90 18 {middle:.1})\">response time, ms</text>"
    );
    times(out, &frame, bottom, zone);
    lines(out, &frame, points);
    for point in points {
        let (class, word) = match point.ok {
            Some(true) => ("ok", "good"),
            Some(false) => ("bad", "not good"),
            None => ("un", "unknown"),
        };
        let _ = writeln!(
            out,
            "<rect class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" width=\"3\" height=\"{STRIP}\"><title>{} {word}</title></rect>",
            frame.x(point.at) - 1.5,
            bottom + 4.0,
            clock(point.at, zone, true)
        );
    }
}

/// Response times, interrupted where there are none.
fn lines(out: &mut String, frame: &Frame, points: &[Point]) {
    for run in points.split(|point| point.ms.is_none()) {
        let at = |point: &Point| (frame.x(point.at), frame.y(point.ms.unwrap_or(0) as f64));
        match run {
            [] => {}
            [alone] => {
                let (x, y) = at(alone);
                let _ = writeln!(
                    out,
                    "<circle class=\"p\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2\"/>"
                );
            }
            run => {
                let pairs = run.iter().map(at).map(|(x, y)| format!("{x:.1},{y:.1}"));
                let pairs: Vec<_> = pairs.collect();
                let _ = writeln!(
                    out,
                    "<polyline class=\"l\" points=\"{}\"/>",
                    pairs.join(" ")
                );
            }
        }
    }
}

/// Six times along the lower edge, with the day where there is more than one.
fn times(out: &mut String, frame: &Frame, bottom: f64, zone: &TimeZone) {
    let days = frame.to - frame.from > 86_400_000;
    for n in 0..=5 {
        let at = Time(frame.from + (frame.to - frame.from) * n / 5);
        let x = frame.x(at);
        let anchor = match n {
            0 => "start",
            5 => "end",
            _ => "middle",
        };
        let _ = writeln!(
            out,
            "<line class=\"a\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{:.1}\" y2=\"{:.1}\"/>\
             <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>",
            bottom + STRIP + 6.0,
            bottom + STRIP + 11.0,
            bottom + STRIP + 26.0,
            clock(at, zone, days)
        );
    }
}

fn clock(at: Time, zone: &TimeZone, with_day: bool) -> String {
    let stamp = jiff::Timestamp::from_millisecond(at.0).unwrap_or_default();
    let form = if with_day { "%m-%d %H:%M" } else { "%H:%M:%S" };
    stamp.to_zoned(zone.clone()).strftime(form).to_string()
}

/// From the first check that was not good to the next that was, or to the end.
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

/// The next of 1, 2, 5, 10, 20 … that is not below.
fn nice(step: f64) -> f64 {
    let power = 10f64.powf(step.max(1.0).log10().floor());
    let times = [1.0, 2.0, 5.0, 10.0].into_iter();
    times
        .map(|n| n * power)
        .find(|n| *n >= step)
        .unwrap_or(step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{CheckKind, CheckRecord, RunId};

    fn check(minute: i64, ok: Option<bool>, ms: u64) -> Check {
        Check {
            id: RunId(minute),
            watch: "w".into(),
            kind: CheckKind::Status,
            url: "http://a.example/?<script>&".into(),
            state: "done".into(),
            queued_at: Time(minute * 60_000),
            started_at: Some(Time(minute * 60_000)),
            ended_at: Some(Time(minute * 60_000 + 50)),
            unit: None,
            outcome: None,
            ok,
            record: CheckRecord {
                response_ms: Some(ms),
                ..CheckRecord::default()
            },
        }
    }

    #[test]
    fn what_is_in_the_picture() {
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
        assert_eq!(
            svg.matches("class=\"d\"").count(),
            1,
            "one time it was down"
        );
        assert_eq!(svg.matches("<polyline").count(), 1);
        assert_eq!(svg.matches("<circle").count(), 1);
        assert!(svg.contains("uptime 60.00% of 5 checks"));
        assert!(svg.contains(">100</text>") && !svg.contains(">10000</text>"));
        assert!(draw("w", &[], &TimeZone::UTC).contains("no results yet"));
    }

    #[test]
    fn steps_people_can_count_in() {
        for (step, want) in [(0.2, 1.0), (7.0, 10.0), (21.0, 50.0), (250.0, 500.0)] {
            assert_eq!(nice(step), want, "{step}");
        }
    }
}
