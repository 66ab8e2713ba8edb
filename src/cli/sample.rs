//! Sample documents for tests.

use archivist_core::model::{Accounting, CrawlId, Lifecycle, Outcome, Owner, ResultState, RunId};
use archivist_core::model::{SnapshotId, Time};
use archivist_shared::bus::documents::report::{Counts, Crawl, HookResult, Run, Snapshot, Uses};

/// 2026-11-21T09:25:05.123Z
pub const NOW: Time = Time(1_795_253_105_123);

fn ago(ms: i64) -> Option<Time> {
    Some(Time(NOW.0 - ms))
}

pub fn crawl(id: i64) -> Crawl {
    Crawl {
        id: CrawlId(id),
        status: Lifecycle::Sealed,
        reason: None,
        url: "https://example.com/".into(),
        max_depth: 1,
        tags: vec!["news".into()],
        plugins: Vec::new(),
        config: Default::default(),
        created_at: Time(NOW.0 - 61_000),
        started_at: ago(60_000),
        ended_at: ago(58_800),
        retry_at: None,
        attempts: 1,
        snapshots: Counts::new(),
        incomplete: 0,
        errors: 0,
        partial: 0,
        results: Counts::new(),
        uses: Uses::default(),
        directory: Some("/var/lib/archivist/archive/20261121/example.com/c1".into()),
        nodes: Vec::new(),
        pinned: false,
        users: Default::default(),
    }
}

pub fn snapshot(id: i64) -> Snapshot {
    Snapshot {
        id: SnapshotId(id),
        crawl: CrawlId(1),
        url: "https://example.com/".into(),
        title: Some("Example \x1b[31mDomain".into()),
        depth: 0,
        parent: None,
        status: Lifecycle::Sealed,
        reason: None,
        tags: vec!["news".into()],
        visited_at: Time(NOW.0 - 60_000),
        created_at: Time(NOW.0 - 61_000),
        started_at: ago(60_000),
        ended_at: ago(58_800),
        retry_at: None,
        attempts: 1,
        results: Counts::from([("succeeded".into(), 1), ("failed".into(), 1)]),
        uses: Uses { succeeded: 1, failed: 1 },
        directory: Some("/var/lib/archivist/archive/20261121/example.com/s3".into()),
        current_step: None,
        bookmarked_at: None,
        http_status: Some(200),
        unsaved: None,
        config: Default::default(),
        node: None,
        older_copies: Vec::new(),
        pinned: false,
        recording: None,
        replay: None,
        missing: Vec::new(),
    }
}

pub fn result(snapshot: i64, plugin: &str, hook: &str) -> HookResult {
    HookResult {
        id: None,
        owner: Owner::Snapshot(SnapshotId(snapshot)),
        plugin: plugin.into(),
        hook: hook.into(),
        status: ResultState::Succeeded,
        output: Some("screenshot.png".into()),
        error: None,
        files: Vec::new(),
        size: 12_345,
        attempts: 1,
        started_at: ago(60_000),
        ended_at: ago(58_800),
        figures: Default::default(),
    }
}

pub fn run(id: i64, plugin: &str, hook: &str) -> Run {
    Run {
        id: RunId(id),
        unit: format!("archivist-hook-{plugin}-s3.service"),
        kind: "hook".into(),
        owner: Owner::Snapshot(SnapshotId(3)),
        plugin: Some(plugin.into()),
        hook: Some(hook.into()),
        attempt: 1,
        status: "ended".into(),
        outcome: Some(Outcome::Exit(0)),
        invocation: Some("0123456789abcdef0123456789abcdef".into()),
        started_at: ago(60_000),
        ended_at: ago(58_800),
        argv: vec!["/usr/share/archivist/plugins/x".into()],
        parent: None,
        directory: None,
        limit: None,
        environment: Default::default(),
        accounting: Accounting {
            cpu_usec: Some(1_204_000),
            memory_peak: Some(13_107_200),
            ..Accounting::default()
        },
    }
}
