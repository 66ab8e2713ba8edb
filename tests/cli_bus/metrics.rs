//! `archivist metrics`: what is printed, and what the parsers of others say about it.

use super::{Bus, Cardboard};
use archivist_core::model::Time;
use archivist_shared::bus::documents::report::{
    HookEnds, HostQueue, Metrics, SearchStatus, SiteHealth, StoreStatus,
};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

/// Reads OpenMetrics from standard input, and prints the name and the number of samples of each metric.
const PARSER: &str = "
import sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse
for family in parse(sys.stdin.read()):
    print(family.name, family.type, len(family.samples))
";

pub fn answer() -> Metrics {
    let ends = |plugin: &str, status: &str, up_to_ms, count| HookEnds {
        plugin: plugin.to_owned(),
        status: status.to_owned(),
        up_to_ms,
        count,
        milliseconds: 1_500 * count,
        bytes: 1 << 20,
    };
    let counts = |status: &str, n| [(status.to_owned(), n)].into();
    let site = |watch: &str, is_down| SiteHealth {
        watch: watch.to_owned(),
        is_down,
        response_ms: Some(120),
        certificate_expires: Some(Time(1_900_000_000_000)),
    };
    Metrics {
        version: "1.2.3".to_owned(),
        now: Time(1_800_000_090_000),
        crawls: counts("sealed", 3),
        snapshots: counts("queued", 1_000_000),
        running: counts("hook", 2),
        hooks: vec![
            ends("wacz", "succeeded", Some(2_500), 4),
            ends("wacz", "failed", None, 1),
            ends("pdf", "skipped", Some(0), 7),
        ],
        due_since: Some(Time(1_800_000_000_000)),
        hosts_queued: 2,
        hosts_delayed: 1,
        hosts: vec![HostQueue { host: "xn--\"\\.test".to_owned(), queued: 9 }],
        free_bytes: Some(5 << 30),
        min_free_bytes: 1 << 30,
        is_blocked: true,
        sites: vec![
            site("shop", false),
            site("shop", true),
            site("blog", false),
            site("gone", true),
        ],
        store: Some(StoreStatus { waiting: 4, ..StoreStatus::default() }),
        unfaithful: 2,
        deleting: 0,
        search: Some(SearchStatus { queued: 12, ..SearchStatus::default() }),
    }
}

/// Passes a text to a program, and returns its output; `None` if there is no such program.
fn judged(program: &str, arguments: &[&str], text: &str) -> Option<(bool, String)> {
    let child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.ok()?;
    let mut input = child.stdin.take().unwrap();
    input.write_all(text.as_bytes()).unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    Some((output.status.success(), String::from_utf8(said).unwrap()))
}

/// Runs `archivist metrics` where two of the watches are declared.
fn run(bus: &Bus) -> (Option<i32>, String, String) {
    let top = tempfile::tempdir().unwrap();
    let declarations = top.path().join("archivist");
    std::fs::create_dir(&declarations).unwrap();
    for watch in ["shop", "blog"] {
        let file = declarations.join(format!("{watch}.watch"));
        std::fs::write(file, "[Watch]\nURL=http://a.test/\n").unwrap();
    }
    let mut command = bus.command(&["metrics"]);
    let output = command.env("XDG_CONFIG_HOME", top.path()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn metrics_are_printed_without_urls() {
    let Some(bus) = Bus::start(&Arc::new(Cardboard::default())) else {
        return;
    };
    let (code, text, stderr) = run(&bus);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert!(!text.contains("gone"), "a watch that was removed: {text}");
    for line in [
        "# TYPE archivist info",
        "archivist_info{version=\"1.2.3\"} 1",
        "archivist_pages{status=\"queued\"} 1000000",
        "archivist_results_total{plugin=\"pdf\",status=\"skipped\"} 7",
        "archivist_hook_duration_seconds_bucket{plugin=\"wacz\",le=\"1.0\"} 0",
        "archivist_hook_duration_seconds_bucket{plugin=\"wacz\",le=\"2.5\"} 4",
        "archivist_hook_duration_seconds_bucket{plugin=\"wacz\",le=\"+Inf\"} 5",
        "archivist_hook_duration_seconds_sum{plugin=\"wacz\"} 7.5",
        "archivist_hook_duration_seconds_count{plugin=\"pdf\"} 0",
        "archivist_oldest_due_page_age_seconds 90",
        "archivist_host_queued_pages{host=\"xn--\\\"\\\\.test\"} 9",
        "archivist_watch_up{watch=\"shop\"} 0",
        "archivist_watch_up{watch=\"blog\"} 1",
        "archivist_watch_sites_down{watch=\"shop\"} 1",
        "archivist_watch_response_seconds{watch=\"shop\"} 0.12",
        "archivist_watch_certificate_expiry_timestamp_seconds{watch=\"blog\"} 1900000000",
        "archivist_search_pages_pending 12",
        "archivist_search_building 0",
        "archivist_store_copies_waiting 4",
        "# UNIT archivist_disk_free_bytes bytes",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    assert!(text.ends_with("\n# EOF\n"), "{text}");
    assert!(!text.contains("://"), "{text}");
}

#[test]
fn metrics_are_those_that_prometheus_reads() {
    let Some(bus) = Bus::start(&Arc::new(Cardboard::default())) else {
        return;
    };
    let older = bus.run(&["metrics", "--format=prometheus"]).1;
    match judged("promtool", &["check", "metrics"], &older) {
        Some(said) => assert_eq!(said, (true, String::new())),
        None => eprintln!("skipped: there is no promtool (Debian: prometheus)"),
    }
    let text = bus.run(&["metrics"]).1;
    match judged("python3", &["-c", "import prometheus_client"], "") {
        Some((true, _)) => {
            let (is_read, said) = judged("python3", &["-c", PARSER], &text).unwrap();
            assert!(is_read, "{said}");
            assert!(said.contains("archivist_hook_duration_seconds histogram 26"), "{said}");
            assert!(said.contains("archivist_results counter 3"), "{said}");
        }
        _ => eprintln!("skipped: there is no prometheus_client (PyPI)"),
    }
}

#[test]
fn metrics_replace_a_file_as_a_whole() {
    let Some(bus) = Bus::start(&Arc::new(Cardboard::default())) else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("archivist.prom");
    std::fs::write(&file, "old").unwrap();
    let before = std::fs::File::open(&file).unwrap();
    let output = file.to_str().unwrap();
    let (code, text, _) = bus.run(&["metrics", "--format=prometheus", "-o", output]);
    assert_eq!((code, text.as_str()), (0, ""));
    let new = std::fs::read_to_string(&file).unwrap();
    assert!(new.contains("\narchivist_blocked 1\n") && !new.contains("EOF"), "{new}");
    // A reader that had opened it has the old file.
    assert_eq!(std::io::read_to_string(before).unwrap(), "old");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    let missing = directory.path().join("missing/archivist.prom");
    let (code, _, stderr) = bus.run(&["metrics", "-o", missing.to_str().unwrap()]);
    assert_eq!(code, 1);
    assert!(stderr.contains("failed to write '"), "{stderr}");
}

/// The alerts of the examples name metrics that exist, and fire as their tests say.
#[test]
fn alerts_of_the_examples_fire() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/examples/prometheus");
    let Some(bus) = Bus::start(&Arc::new(Cardboard::default())) else {
        return;
    };
    let text = run(&bus).1;
    for file in ["archivist.rules.yml", "dashboard.json"] {
        let example = std::fs::read_to_string(root.join(file)).unwrap();
        let words = example.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        for name in words.filter(|word| word.starts_with("archivist_")) {
            assert!(text.contains(&format!("\n{name}")), "{file}: {name}");
        }
    }
    for (verb, file) in [("check", "archivist.rules.yml"), ("test", "archivist.rules.test.yml")] {
        let path = root.join(file);
        match judged("promtool", &[verb, "rules", path.to_str().unwrap()], "") {
            Some((is_good, said)) => assert!(is_good, "{said}"),
            None => eprintln!("skipped: there is no promtool (Debian: prometheus)"),
        }
    }
}
