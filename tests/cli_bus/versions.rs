//! Versions of a page: what is asked for, what is printed, which one is opened.

use super::{Bus, Cardboard, snapshot};
use archivist_core::model::{Lifecycle, SnapshotId, Time};
use archivist_shared::bus::documents::report::{Filter, Snapshot, Version};
use std::sync::Arc;

/// 2024-05-17T00:00:00Z
const DAY: i64 = 1_715_904_000_000;
const YEAR: i64 = 31_536_000_000;

/// Snapshots of a page, one a year, the newest first.
pub fn snapshots() -> Vec<Snapshot> {
    let of_year = |year: i64| Snapshot {
        id: SnapshotId(3 + year),
        visited_at: Time(DAY + year * YEAR),
        directory: Some(format!("/archive/20240517/a.test/s{}", 3 + year)),
        http_status: Some(200),
        title: Some(format!("Title {}", year / 2)),
        ..snapshot(Lifecycle::Sealed)
    };
    (0..3).rev().map(of_year).collect()
}

pub fn all() -> Vec<Version> {
    let version = |snapshot| Version { snapshot, bytes: 4096, plugins: vec!["wget".to_owned()] };
    snapshots().into_iter().map(version).collect()
}

fn filter(cardboard: &Cardboard) -> Filter {
    serde_json::from_str(&cardboard.filter.lock().unwrap()).unwrap()
}

#[test]
fn versions_show_what_changed_and_the_nearest_one_is_opened() {
    let cardboard = Arc::<Cardboard>::default();
    let Some(bus) = Bus::start(&cardboard) else {
        return;
    };
    let (code, stdout, stderr) = bus.run(&["versions", "a.test/x", "--limit", "2"]);
    assert_eq!((code, stderr.as_str()), (0, "the newest 2; --limit 0 shows all\n"));
    assert!(filter(&cardboard).url.is_some());
    let lines: Vec<Vec<&str>> =
        stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines.len(), 3, "{stdout}");
    assert!(lines[1].starts_with(&["s5"]) && stdout.contains("365d 0h"), "{stdout}");
    assert!(lines[1].contains(&"title") && !lines[2].contains(&"title"), "{stdout}");

    let (code, stdout, _) = bus.run(&["versions", "https://a.test/x", "--json"]);
    assert_eq!(code, 0);
    let documents: Vec<serde_json::Value> = serde_json::from_str(&stdout).unwrap();
    let first = &documents[0];
    assert_eq!((&first["id"], &first["bytes"]), (&"s5".into(), &4096.into()));
    assert_eq!(first["changes"], serde_json::json!(["title"]));
    assert!(documents[2]["after_ms"].is_null());

    for (time, id) in [("", "s5"), ("@2025", "s4"), ("@2000-01-01", "s3"), ("@now", "s5")] {
        // The page is not there, and the error names it.
        let (code, _, stderr) = bus.run(&["open", &format!("https://a.test/x{time}")]);
        assert_eq!(code, 1);
        assert!(stderr.contains(&format!("{id} has no page")), "{time}: {stderr}");
    }

    let (code, _, _) = bus.run(&["list", "snapshots", "--url", "*.a.test"]);
    assert_eq!(code, 0);
    let sent: String = filter(&cardboard).url.unwrap().into();
    assert_eq!(sent, "*.a.test");
    for (args, part) in [
        (&["list", "snapshots", "--url", "*."], "names no pages"),
        (&["list", "crawls", "--url", "a.test"], "crawls are not listed by tag or URL"),
    ] {
        let (code, _, stderr) = bus.run(args);
        assert_eq!(code, 2);
        assert!(stderr.contains(part), "{stderr}");
    }
}

#[test]
fn snapshots_without_files_cannot_be_compared() {
    let Some(bus) = Bus::start(&Arc::<Cardboard>::default()) else {
        return;
    };
    let (code, _, stderr) = bus.run(&["diff", "https://a.test/x@2024", "https://a.test/x"]);
    assert_eq!(code, 1);
    assert!(stderr.contains("s3 has no page"), "{stderr}");
    let (code, _, stderr) = bus.run(&["diff", "c1", "s3"]);
    assert_eq!(code, 2);
    assert!(stderr.contains("c1 is a crawl"), "{stderr}");
}
