use super::*;
use crate::sample;
use archivist_core::model::Accounting;
use archivist_shared::bus::documents::report::Figures;
use serde_json::{Value, json};

fn figures(of: Value) -> Option<Figures> {
    of.as_object().map(Figures::of)
}

/// A run whose unit received and sent 12,345 bytes.
fn with_traffic(run: Run) -> Run {
    Run {
        accounting: Accounting { ip_in: Some(12_000), ip_out: Some(345), ..run.accounting },
        ..run
    }
}

#[test]
fn traffic_beyond_the_recording_is_that_of_other_plugins() {
    let recorded =
        Snapshot { recording: figures(json!({"requests": 1, "kept": 1})), ..sample::snapshot(345) };
    let runs = [
        with_traffic(sample::run(7, "wget", "x")),
        with_traffic(sample::run(8, "chromium", "on_Snapshot__10_chromium_tab")),
        with_traffic(sample::run(9, "wget", "x")),
        with_traffic(sample::run(10, "favicon", "y")),
        sample::run(11, "title", "z"),
    ];
    assert_eq!(
        beyond_recording(&recorded, &runs),
        "favicon: 12.1K, wget: 24.1K beyond the recording"
    );
    assert_eq!(beyond_recording(&recorded, &runs[1..2]), "");
    assert_eq!(beyond_recording(&sample::snapshot(345), &runs), "");
}

#[test]
fn hooks_that_were_skipped_for_the_reason_of_their_page_are_one_line() {
    let skipped = |plugin: &str| HookResult {
        status: ResultState::Skipped,
        error: Some("no answer".into()),
        ..sample::result(345, plugin, plugin)
    };
    let details = Details::Snapshot {
        snapshot: Snapshot { reason: Some("no answer".into()), ..sample::snapshot(345) },
        results: vec![skipped("wget"), sample::result(345, "hashes", "hashes"), skipped("pdf")],
        runs: Vec::new(),
        copy: None,
    };
    let text = long(&details, &Style::plain(sample::NOW));
    assert!(text.ends_with("screenshot.png\n2 hooks skipped: wget, pdf\n"), "{text}");
    assert_eq!(text.matches("no answer").count(), 1, "{text}");
}

#[test]
fn a_snapshot_like_systemctl_status() {
    let style = Style::plain(sample::NOW);
    let running = Run {
        status: "running".into(),
        ended_at: None,
        outcome: None,
        ..sample::run(8, "pdf", "on_Snapshot__52_pdf")
    };
    let details = Details::Snapshot {
        snapshot: Snapshot {
            reason: Some("1 of 2 hooks failed".into()),
            recording: figures(json!({"requests": 53, "kept": 52})),
            replay: figures(json!({"resources": 0.99, "exact": 51, "fuzzy": 1})),
            ..sample::snapshot(345)
        },
        results: vec![sample::result(345, "verify", "on_Snapshot__85_verify")],
        runs: vec![with_traffic(sample::run(7, "wget", "x")), running],
        copy: None,
    };
    let want = "\
● s345 https://example.com/
     Title: Example \u{fffd}[31mDomain
    Status: sealed (1 of 2 hooks failed) since Sat 2026-11-21 09:24:06 UTC; 58s ago
   Visited: Sat 2026-11-21 09:24:05 UTC; 1min 0s ago
     Added: Sat 2026-11-21 09:24:04 UTC; 1min 1s ago
      Took: 1.2s
      HTTP: 200
  Recorded: 52 of 53 requests
   Network: wget: 12.1K beyond the recording
    Replay: 99.0 % of resources answered (51 exactly, 1 by a rule, 0 not recorded), text not recorded, picture not recorded; Sat 2026-11-21 09:24:06 UTC; 58s ago
     Crawl: c1, depth 0
      Tags: news
   Results: 1 succeeded, 1 failed
    Health: 50%: 1 of 2 failed
 Directory: /var/lib/archivist/archive/20261121/example.com/s3
   Running: 1
            └─ archivist-hook-pdf-s3.service 1min 0s

HOOK    STATUS     TIME  SIZE   OUTPUT
verify  succeeded  1.2s  12.1K  screenshot.png

ID  UNIT                            TRY  STATUS   OUTCOME  TIME     CPU     MEMORY
r7  archivist-hook-wget-s3.service  1    ended    success  1.2s     1.204s  12.5M
r8  archivist-hook-pdf-s3.service   1    running           1min 0s  1.204s  12.5M
";
    assert_eq!(long(&details, &style), want);
}

#[test]
fn a_crawl_that_waits() {
    let style = Style::plain(sample::NOW);
    let details = Details::Crawl {
        crawl: Crawl {
            status: Lifecycle::Queued,
            retry_at: Some(Time(sample::NOW.0 + 120_000)),
            attempts: 2,
            users: [0, 4_000_000_000].into(),
            started_at: None,
            ended_at: None,
            ..sample::crawl(12)
        },
        snapshots: Vec::new(),
        results: Vec::new(),
        runs: Vec::new(),
    };
    let text = long(&details, &style);
    assert!(text.starts_with("● c12 https://example.com/\n    Status: queued\n"), "{text}");
    assert!(text.contains("  Next try: Sat 2026-11-21 09:27:05 UTC; in 2min 0s\n"), "{text}");
    assert!(text.contains("  Attempts: 2\n"), "{text}");
    assert!(text.contains("     Pages: none\n"), "{text}");
    assert!(text.contains("     Users: root, 4000000000\n"), "{text}");
}

#[test]
fn a_long_crawl_is_its_failures_and_its_newest_pages() {
    let failed = |page| HookResult {
        status: ResultState::Failed,
        output: Some(format!("reason {page}")),
        ..sample::result(page, "pdf", "on_Snapshot__52_pdf")
    };
    let details = Details::Crawl {
        crawl: Crawl {
            snapshots: [("sealed".to_owned(), 166)].into(),
            results: [("succeeded".to_owned(), 166), ("failed".to_owned(), 80)].into(),
            ..sample::crawl(2)
        },
        snapshots: (1..=166).map(sample::snapshot).collect(),
        results: (1..=166)
            .flat_map(|page| [sample::result(page, "dom", "x"), failed(page)])
            .collect(),
        runs: (1..=166).map(|id| sample::run(id, "pdf", "on_Snapshot__52_pdf")).collect(),
    };
    let text = long(&details, &Style::plain(sample::NOW));
    let head = short(&details, &Style::plain(sample::NOW)).lines().count();
    // Two tables with their headings, and the hints.
    assert_eq!(text.lines().count(), head + 2 * (2 + 50) + 3, "{text}");
    assert!(text.contains("reason 117") && !text.contains("reason 116"), "{text}");
    assert!(text.contains("\ns117 ") && !text.contains("\ns116 "), "{text}");
    assert!(!text.contains(".service"), "{text}");
    assert!(
        text.ends_with(
            "\nthe newest 50 of 80 failed results; all: archivist list results c2 --status failed --limit 0\n\
             the newest 50 of 166 pages; all: archivist list snapshots c2 --limit 0\n"
        ),
        "{text}"
    );
}

#[test]
fn a_run_with_its_command_and_the_result_of_its_hook() {
    let style = Style::plain(sample::NOW);
    let details = Details::Run {
        run: Box::new(sample::run(7, "wget", "on_Snapshot__06_wget")),
        result: Some(Box::new(sample::result(3, "wget", "on_Snapshot__06_wget"))),
    };
    let want = "\
● r7 archivist-hook-wget-s3.service
    Status: ended (success) since Sat 2026-11-21 09:24:06 UTC; 58s ago
      Runs: wget/on_Snapshot__06_wget of s3
   Attempt: 1
      Took: 1.2s
       CPU: 1.204s
    Memory: 12.5M at most
   Command: /usr/share/archivist/plugins/x
Invocation: 0123456789abcdef0123456789abcdef
    Result: succeeded: screenshot.png
";
    assert_eq!(long(&details, &style), want);
    let document = serde_json::to_value(&details).unwrap();
    assert_eq!(document["run"]["run"]["id"], "r7");
}
