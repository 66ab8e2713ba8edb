//! Draws rows as SVG, for light and dark backgrounds.

use super::rows::{Row, Shape, State};
use super::scale::{Scale, offset};
use super::{Kind, Picture};
use crate::display::style::Style;
use crate::display::svg::{Anchor, Svg};
use crate::display::text;
use archivist_core::model::Time;
use archivist_core::text::{clean, human_size, human_span};

const WIDTH: f64 = 1280.0;
/// Right edge of the labels, left edge of the bars.
const LEFT: f64 = 300.0;
const RIGHT: f64 = 960.0;
/// Right edges of the columns right of the bars; the state starts left of them.
const STATE: f64 = 984.0;
const COLUMNS: [(f64, &str); 3] = [(1140.0, "time"), (1196.0, "CPU"), (1264.0, "memory")];
const TOP: f64 = 118.0;
const ROW: f64 = 20.0;
const BAR: f64 = 12.0;
/// Radius of the ends of bars of background hooks.
const ROUND: f64 = 5.0;
const THIN: f64 = 5.0;
const BOTTOM: f64 = 34.0;
const INDENT: f64 = 14.0;
const MARGIN: f64 = 16.0;
/// Approximate width of a character.
const LETTER: f64 = 6.4;

/// Each colour is given twice, for viewers without CSS variables too.
const STYLE: &str = "text{font:12px system-ui,sans-serif;fill:#3a3f47;white-space:pre}\
.paper{fill:#fff}.head{fill:#f1f4f7}.title{font-size:15px;font-weight:600;fill:#111}.strong{font-weight:600}\
.label{clip-path:url(#labels)}.dim{fill:#7b8490;font-size:11px}.num{font-variant-numeric:tabular-nums}\
.grid{stroke:#e2e6ea}.fold{fill:#e3e7ec}.wait{stroke:#9aa4b0;stroke-width:1.5;stroke-dasharray:1.5 2.5}\
.worker{fill:#8b97a5}.good{fill:#3f7fcb}.empty{fill:#fff;stroke:#8b97a5}.bad{fill:#cf3d35}.running{fill:#d6901f}\
.unknown{fill:#fff;stroke:#cf3d35;stroke-dasharray:3 2}.early{fill-opacity:.35}.cpu{fill:#173e6e}\
.cross{stroke:#cf3d35;stroke-width:2}.cut{fill:#cf3d35;font-size:11px}.hit{fill:none;pointer-events:all}\
@media(prefers-color-scheme:dark){text{fill:#c3cad4}.paper{fill:#15181c}.head{fill:#1f242a}.title{fill:#f3f5f7}\
.dim{fill:#8d97a4}.grid{stroke:#2a3037}.fold{fill:#2e353d}.wait{stroke:#717c89}.worker{fill:#75818f}\
.good{fill:#4f8fdc}.empty{fill:#15181c;stroke:#75818f}.bad{fill:#e5625a}.running{fill:#e5a63a}\
.unknown{fill:#15181c;stroke:#e5625a}.cpu{fill:#cfe2fa}.cross{stroke:#e5625a}.cut{fill:#e5625a}}";

/// Returns the picture as SVG.
pub fn draw(picture: &Picture, style: &Style) -> String {
    let (subject, rows) = (&picture.subject, &picture.rows);
    let scale = Scale::new(&busy(picture, style.now), LEFT, RIGHT);
    let height = TOP + ROW * rows.len().max(1) as f64 + BOTTOM;
    let title = format!("{} {}", subject.id, subject.url);
    let mut svg = Svg::new(&format!("archivist: {title}"), WIDTH, height, STYLE);
    svg.clip("labels", (0.0, 0.0), (LEFT - 6.0, height));
    let shown = text::cut_middle(&title, 150);
    svg.text("title", (MARGIN, 28.0), Anchor::Start, &shown);
    let about = about(picture, style);
    svg.text("", (MARGIN, 48.0), Anchor::Start, &about);
    legend(&mut svg, picture.kind);
    for (place, _) in rows.iter().enumerate().filter(|(_, row)| row.is_head) {
        let y = TOP + ROW * place as f64;
        svg.rect("head", (0.0, y), (WIDTH, ROW), 0.0);
    }
    axis(&mut svg, &scale, height, columns(picture));
    for (place, row) in rows.iter().enumerate() {
        let y = TOP + ROW * place as f64;
        svg.group(&row.tip, |svg| draw_row(svg, row, &scale, y, style.now));
    }
    if rows.is_empty() {
        svg.text("dim", (MARGIN, TOP + 14.0), Anchor::Start, "nothing has started yet");
    }
    svg.finish()
}

/// Returns the number of columns. Not every kernel and service manager accounts for memory.
fn columns(picture: &Picture) -> usize {
    match picture.kind {
        Kind::Units if picture.rows.iter().any(|row| row.memory.is_some()) => 3,
        Kind::Units => 2,
        Kind::Nodes => 1,
    }
}

/// Times at which anything ran, and the moment from which time counts.
fn busy(picture: &Picture, now: Time) -> Vec<(Time, Time)> {
    let rows = picture.rows.iter();
    let ran = rows.clone().filter_map(|row| {
        let from = row.from?;
        Some((from, row.to.unwrap_or(now)))
    });
    let added = picture.subject.created_at;
    let first = rows.filter_map(|row| row.from).min();
    let origin = first.map_or(added, |at| at.min(added));
    ran.chain([(origin, origin)]).collect()
}

fn about(picture: &Picture, style: &Style) -> String {
    let subject = &picture.subject;
    let mut words = vec![match &subject.reason {
        Some(reason) => format!("{} ({})", subject.status, text::cut_middle(reason, 80)),
        None => subject.status.to_string(),
    }];
    words.push(format!("added {}", text::stamp(subject.created_at, style)));
    match subject.pages {
        Some(1) => words.push("1 page".to_owned()),
        Some(pages) => words.push(format!("{pages} pages")),
        None => {}
    }
    words.extend_from_slice(&picture.about);
    words.join(" · ")
}

pub fn from_first_to_last(begin: Time, end: Time) -> String {
    format!("{} from first to last", long(begin, end))
}

/// `43ms`, `1.2s`, `3min 4s`.
fn long(from: Time, to: Time) -> String {
    let ms = to.0.saturating_sub(from.0).max(0);
    match ms {
        0..1000 => offset(ms),
        _ => human_span(std::time::Duration::from_millis(ms.unsigned_abs())),
    }
}

fn legend(svg: &mut Svg, kind: Kind) {
    let y = 62.0;
    let (middle, base) = (y + ROW / 2.0, y + 14.0);
    let top = middle - BAR / 2.0;
    let mut x = MARGIN;
    let mut item = |svg: &mut Svg, words: &str, draw: &dyn Fn(&mut Svg, f64)| {
        draw(svg, x);
        svg.text("dim", (x + 36.0, base), Anchor::Start, words);
        x += 54.0 + words.chars().count() as f64 * 5.8;
    };
    let bar = |class: &'static str, radius: f64| {
        move |svg: &mut Svg, x: f64| svg.rect(class, (x, top), (30.0, BAR), radius)
    };
    let is_of_units = kind == Kind::Units;
    let [thin, thick, empty] = match kind {
        Kind::Units => ["worker", "hook", "no result"],
        Kind::Nodes => ["node", "page", "cancelled"],
    };
    item(svg, thin, &|svg, x| {
        svg.rect("worker", (x, middle - THIN / 2.0), (30.0, THIN), 0.0);
    });
    item(svg, thick, &bar("good", 0.0));
    if is_of_units {
        item(svg, "in the background, pale until ready", &|svg, x| {
            svg.rect("good early", (x, top), (30.0, BAR), ROUND);
            svg.rect("good", (x + 10.0, top), (20.0, BAR), ROUND);
        });
    }
    item(svg, empty, &bar("empty", 0.0));
    item(svg, "failed", &|svg, x| {
        svg.rect("bad", (x, top), (22.0, BAR), 0.0);
        cross(svg, x + 28.0, middle);
    });
    if is_of_units {
        item(svg, "lost", &bar("unknown", 0.0));
    }
    item(svg, "running", &|svg, x| {
        svg.rect("running", (x, top), (22.0, BAR), 0.0);
        arrow(svg, x + 22.0, middle);
    });
    item(svg, "waiting", &|svg, x| {
        svg.line("wait", (x, middle), (x + 30.0, middle));
    });
    if is_of_units {
        item(svg, "CPU time", &|svg, x| {
            svg.rect("good", (x, top), (30.0, BAR), 0.0);
            svg.rect("cpu", (x, top + BAR - 3.0), (18.0, 2.0), 0.0);
        });
    }
    item(svg, "left out: nothing ran", &|svg, x| {
        svg.rect("fold", (x + 4.0, y), (20.0, ROW), 0.0);
    });
}

fn cross(svg: &mut Svg, x: f64, y: f64) {
    svg.line("cross", (x - 3.5, y - 3.5), (x + 3.5, y + 3.5));
    svg.line("cross", (x - 3.5, y + 3.5), (x + 3.5, y - 3.5));
}

fn arrow(svg: &mut Svg, x: f64, y: f64) {
    let half = BAR / 2.0;
    let points = [(x, y - half), (x + half, y), (x, y + half)];
    svg.polyline("running", points.into_iter());
}

/// Grid lines with times above and below, folds, and the column headings.
fn axis(svg: &mut Svg, scale: &Scale, height: f64, columns: usize) {
    let (top, bottom) = (TOP - 4.0, height - BOTTOM + 4.0);
    for fold in scale.folds() {
        let length = offset(fold.length);
        svg.group(&format!("{length} in which nothing ran"), |svg| {
            svg.rect("fold", (fold.x - 10.0, top), (20.0, bottom - top), 0.0);
        });
    }
    for (x, words) in scale.ticks() {
        svg.line("grid", (x, top), (x, bottom));
        for y in [TOP - 10.0, height - BOTTOM + 18.0] {
            svg.text("dim num", (x, y), Anchor::Middle, &words);
        }
    }
    svg.text("dim", (STATE, TOP - 10.0), Anchor::Start, "state");
    for (x, head) in COLUMNS.into_iter().take(columns) {
        svg.text("dim", (x, TOP - 10.0), Anchor::End, head);
    }
}

fn draw_row(svg: &mut Svg, row: &Row, scale: &Scale, y: f64, now: Time) {
    let (middle, base) = (y + ROW / 2.0, y + 14.0);
    let x = MARGIN + INDENT * row.level as f64;
    // The whole row shows the tip of its bar.
    svg.rect("hit", (0.0, y), (WIDTH, ROW), 0.0);
    let room = (LEFT - 12.0 - x) / LETTER;
    let label = text::cut_middle(&clean(&row.label), room as usize);
    let class = if row.is_head { "label strong" } else { "label" };
    svg.text(class, (x, base), Anchor::Start, &label);
    if let (Some(asked), Some(from)) = (row.asked, row.from.or(Some(now))) {
        let (begin, end) = (scale.x(asked), scale.x(from));
        if end - begin > 1.0 {
            svg.line("wait", (begin, middle), (end, middle));
        }
    }
    if row.from.is_some() {
        bar(svg, row, scale, middle, now);
    }
    let word = text::cut_middle(&row.word, 15);
    let class = match row.state {
        State::Bad | State::Unknown => "cut",
        _ => "dim",
    };
    svg.text(class, (STATE, base), Anchor::Start, &word);
    let took = row.from.map(|from| long(from, row.to.unwrap_or(now)));
    let values = [took, row.cpu_usec.map(text::cpu), row.memory.map(human_size)];
    for ((x, _), value) in COLUMNS.into_iter().zip(values) {
        if let Some(value) = value {
            svg.text("num", (x, base), Anchor::End, &value);
        }
    }
}

fn bar(svg: &mut Svg, row: &Row, scale: &Scale, middle: f64, now: Time) {
    let from = row.from.unwrap_or(now);
    let to = row.to.unwrap_or(now).max(from);
    let (begin, end) = (scale.x(from), scale.x(to));
    let width = (end - begin).max(1.5);
    let class = match row.state {
        _ if row.shape == Shape::Worker && row.state == State::Good => "worker",
        State::Good => "good",
        State::Empty => "empty",
        State::Bad => "bad",
        State::Running => "running",
        State::Unknown => "unknown",
    };
    let thick = if row.shape == Shape::Worker { THIN } else { BAR };
    let radius = match row.shape {
        Shape::Background => ROUND.min(width / 2.0),
        _ => 0.0,
    };
    let top = middle - thick / 2.0;
    match row.ready.filter(|ready| *ready >= from && *ready <= to) {
        None => svg.rect(class, (begin, top), (width, thick), radius),
        Some(ready) => {
            let ready = scale.x(ready).min(begin + width);
            let early = format!("{class} early");
            svg.rect(&early, (begin, top), (width, thick), radius);
            let rest = begin + width - ready;
            svg.rect(class, (ready, top), (rest, thick), radius.min(rest / 2.0));
        }
    }
    if let Some(cpu) = row.cpu_usec.filter(|_| row.shape != Shape::Worker) {
        // Inside the round ends.
        let inset = radius * 0.3;
        let cpu = scale.width(cpu as f64 / 1000.0).min(width - 2.0 * inset);
        if cpu >= 0.5 {
            let at = (begin + inset, top + thick - 3.0);
            svg.rect("cpu", at, (cpu, 2.0), 0.0);
        }
    }
    match row.state {
        State::Running => arrow(svg, begin + width, middle),
        State::Bad => cross(svg, begin + width + 7.0, middle),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::super::Subject;
    use super::super::rows::tests::{CRAWL, page, span};
    use super::super::units;
    use super::*;
    use archivist_core::model::{Lifecycle, Outcome, ResultState};
    use archivist_shared::bus::documents::report::Span;

    fn drawn(spans: &[Span], more: bool) -> String {
        let subject = Subject {
            id: CRAWL,
            url: "https://a/?<b>&c=\"d\"\u{1b}[31m\u{202e}".into(),
            status: Lifecycle::Started,
            reason: None,
            pages: Some(1),
            created_at: Time(0),
        };
        draw(&units::of(subject, spans, more), &style())
    }

    fn style() -> Style {
        Style::plain(Time(2000))
    }

    #[test]
    fn the_picture_has_titles_rows_and_legend() {
        let mut spans = [
            span(1, "crawl", CRAWL, 100, 1900),
            span(2, "snapshot", page(1), 200, 1500),
            span(3, "hook", page(1), 300, 900),
            span(4, "hook", page(1), 950, 1300),
        ];
        spans[2].ready_at = Some(Time(500));
        spans[3].verdict = Some(ResultState::Failed);
        spans[3].outcome = Some(Outcome::TimeLimit);
        (spans[0].status, spans[0].ended_at, spans[0].outcome) = ("running".into(), None, None);
        let svg = drawn(&spans, true);
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        assert!(svg.contains("c1 https://a/?&lt;b&gt;&amp;c=&quot;d&quot;"));
        assert!(!svg.contains(['\u{1b}', '\u{202e}']) && !svg.contains("<script"));
        for words in [
            ">wget (attempt 2)<",
            ">time limit<",
            " · the first 4 units · ",
            "ready after 200ms",
            "A &amp; B; https://a/&lt;script&gt;",
            "prefers-color-scheme:dark",
        ] {
            assert!(svg.contains(words), "{words} is not in {svg}");
        }
        let count = |what: &str| svg.matches(what).count();
        // One in the legend, one for the hook.
        assert_eq!(count("class=\"good early\""), 2);
        assert_eq!(count("class=\"cross\""), 4);
        assert_eq!(count("<polyline class=\"running\""), 2);
        assert_eq!(count("class=\"head\""), 2);
        // From 0 to 2000 over 660 pixels: the hook began at 300.
        assert!(svg.contains("class=\"good early\" x=\"399.0\""), "{svg}");
    }

    #[test]
    fn an_empty_and_a_large_picture() {
        let svg = drawn(&[], false);
        assert!(svg.contains("nothing has started yet"));
        let spans: Vec<_> =
            (0..10_000).map(|n| span(n, "hook", page(n / 20 + 1), n * 30, n * 30 + 100)).collect();
        let svg = drawn(&spans, false);
        assert_eq!(svg.matches("class=\"hit\"").count(), 10_000);
        assert!(svg.len() < 12_000_000, "{} bytes", svg.len());
    }
}
