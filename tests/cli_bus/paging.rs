//! Long lists come in pieces.

use super::{Bus, Cardboard, hook};
use archivist_core::model::{CrawlId, Owner, ResultState};
use archivist_shared::bus::documents::report::{Filter, HookResult, ROWS_MAX};
use std::sync::Arc;

/// A crawl with more results than one answer has.
pub const LONG: Owner = Owner::Crawl(CrawlId(7));

const ALL: i64 = 2500;

/// The piece that was asked for, the newest first.
pub fn piece(filter: &Filter) -> Vec<HookResult> {
    assert!((1..=ROWS_MAX).contains(&filter.limit), "{}", filter.limit);
    let end = filter.before.map_or(ALL, |before| before - 1);
    let begin = (end - i64::from(filter.limit)).max(0);
    let result = |id| HookResult { id: Some(id), ..hook(ResultState::Failed) };
    (begin + 1..=end).rev().map(result).collect()
}

#[test]
fn a_list_has_every_row_once_and_respects_the_limit() {
    let Some(bus) = Bus::start(&Arc::<Cardboard>::default()) else {
        return;
    };
    for (limit, told) in [("0", 2500), ("1000", 1000), ("1001", 1001), ("2500", 2500), ("2", 2)] {
        let (code, stdout, stderr) =
            bus.run(&["list", "results", "c7", "--limit", limit, "--json"]);
        assert_eq!((code, stderr.as_str()), (0, ""), "{limit}");
        let results: Vec<HookResult> = serde_json::from_str(&stdout).unwrap();
        let ids: Vec<i64> = results.iter().filter_map(|result| result.id).collect();
        let want: Vec<i64> = (ALL - told + 1..=ALL).rev().collect();
        assert_eq!(ids, want, "{limit}");
    }
    let (code, stdout, stderr) = bus.run(&["list", "results", "c7", "--limit", "0"]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert_eq!(stdout.lines().count(), 2501);
    let (_, _, stderr) = bus.run(&["list", "results", "c7", "--limit", "1200"]);
    assert_eq!(stderr, "the newest 1200; --limit 0 shows all\n");
}
