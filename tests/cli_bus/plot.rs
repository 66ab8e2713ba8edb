//! `archivist plot`: the time line comes in pieces, and is bounded.

use super::{Bus, Cardboard};
use archivist_core::model::{Outcome, Owner, RunId, SnapshotId, Time};
use archivist_shared::bus::documents::report::{Filter, ROWS_MAX, Span};
use std::sync::Arc;

/// Units of the crawl, more than one piece has.
const ALL: i64 = 1500;

/// The piece that was asked for.
pub fn piece(filter: &Filter) -> Vec<Span> {
    let after = filter.after.map_or(0, |run| run.0);
    let end = (after + i64::from(filter.limit.min(ROWS_MAX))).min(ALL);
    (after + 1..=end).map(span).collect()
}

fn span(id: i64) -> Span {
    Span {
        id: RunId(id),
        unit: format!("archivist-hook-wget-s{id}.service"),
        kind: "hook".into(),
        owner: Owner::Snapshot(SnapshotId(id / 10 + 1)),
        plugin: Some("wget".into()),
        hook: Some("on_Snapshot__06_</text><script>.finite.bg".into()),
        attempt: 1,
        status: "ended".into(),
        outcome: Some(Outcome::Exit(0)),
        verdict: None,
        recorded_at: Some(Time(1000 + id)),
        started_at: Some(Time(1001 + id)),
        ready_at: Some(Time(1002 + id)),
        ended_at: Some(Time(1010 + id)),
        cpu_usec: Some(5000),
        memory_peak: None,
        page: None,
    }
}

#[test]
fn the_picture_has_all_units_or_says_what_is_left_out() {
    let Some(bus) = Bus::start(&Arc::<Cardboard>::default()) else {
        return;
    };
    let units = |svg: &str| svg.matches("class=\"hit\"").count();
    let (code, svg, stderr) = bus.run(&["plot", "c1"]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    assert!(!svg.contains("<script"), "{svg}");
    assert_eq!(units(&svg), 1500);
    for (limit, shown) in [("0", 1500), ("1500", 1500), ("1001", 1001), ("7", 7)] {
        let (code, svg, stderr) = bus.run(&["plot", "--limit", limit, "c1"]);
        assert_eq!((code, units(&svg)), (0, shown), "{limit}");
        let want = if shown < 1500 {
            format!(
                "the first {shown} units; --limit 0 draws all; archivist plot s345 draws one page\n"
            )
        } else {
            String::new()
        };
        assert_eq!(stderr, want);
    }
    let (code, _, stderr) = bus.run(&["plot", "c9"]);
    assert_eq!((code, stderr.as_str()), (1, "archivist: there is no c9\n"));
    let (code, _, stderr) = bus.run(&["plot", "nonsense"]);
    assert_eq!(code, 2, "{stderr}");
}
