use super::*;
use crate::sample;

fn event(text: &str) -> CrawlEvent {
    serde_json::from_str(text).unwrap()
}

fn snapshot(status: Lifecycle, reason: Option<&str>) -> CrawlEvent {
    let snapshot = Snapshot { status, reason: reason.map(str::to_owned), ..sample::snapshot(3) };
    CrawlEvent::Snapshot { snapshot }
}

fn hook(status: ResultState, error: Option<&str>) -> CrawlEvent {
    let result = HookResult {
        status,
        error: error.map(str::to_owned),
        ..sample::result(3, "screenshot", "on_Snapshot__51_screenshot")
    };
    CrawlEvent::Hook { result }
}

fn crawl(status: Lifecycle) -> CrawlEvent {
    let crawl = Crawl { status, ..sample::crawl(1) };
    CrawlEvent::Crawl { crawl }
}

/// Applies `events` and returns the lines and the exit status.
fn follow(events: Vec<CrawlEvent>) -> (Vec<String>, Follow) {
    let mut follow = Follow::new(CrawlId(1));
    let lines = events
        .into_iter()
        .flat_map(|event| follow.apply(event, sample::NOW))
        .map(|note| note.text)
        .collect();
    (lines, follow)
}

#[test]
fn lines_name_page_status_and_duration() {
    use Lifecycle::{Sealed, Started};
    let (lines, follow) = follow(vec![
        crawl(Started),
        snapshot(Started, None),
        hook(ResultState::Started, None),
        hook(ResultState::Succeeded, None),
        snapshot(Sealed, None),
        crawl(Sealed),
    ]);
    assert_eq!(
        lines,
        [
            "c1 started",
            "s3 https://example.com/ started",
            "s3 https://example.com/ screenshot succeeded 1.2s",
            "s3 https://example.com/ sealed",
            "c1 sealed",
        ]
    );
    assert!(follow.is_final());
    assert_eq!(follow.exit(), Exit::Done);
    assert_eq!(
        follow.summary(Time(0)),
        "c1 sealed: 1 page, results: 1 succeeded, in 1.2s\nsee: archivist show c1\n"
    );
}

#[test]
fn page_with_an_http_error_is_no_success() {
    let page = |id, http_status| CrawlEvent::Snapshot {
        snapshot: Snapshot { http_status, ..sample::snapshot(id) },
    };
    let (lines, one) = follow(vec![page(3, Some(404)), crawl(Lifecycle::Sealed)]);
    assert_eq!(lines[0], "s3 https://example.com/ sealed: http 404");
    assert_eq!(one.exit(), Exit::Partly);
    let summary = one.summary(Time(0));
    assert!(summary.contains("\nthe page answered 404\n"), "{summary}");

    let mut events: Vec<_> = (1..=40).map(|id| page(id, Some(200))).collect();
    events[6] = page(7, Some(404));
    events[8] = page(9, Some(503));
    events[9] = page(10, Some(503));
    events.push(crawl(Lifecycle::Sealed));
    let (_, many) = follow(events);
    let summary = many.summary(Time(0));
    assert!(
        summary.contains("\n1 of 40 pages answered 404\n2 of 40 pages answered 503\n"),
        "{summary}"
    );
    assert_eq!(many.exit(), Exit::Partly);

    let (_, good) = follow(vec![page(3, Some(200)), crawl(Lifecycle::Sealed)]);
    assert_eq!(good.exit(), Exit::Done);
}

#[test]
fn a_page_that_is_visited_again_says_when() {
    let waits = Snapshot {
        retry_at: Some(Time(sample::NOW.0 + 30_000)),
        status: Lifecycle::Queued,
        reason: Some("http 429; visit 1 of 5 was refused".to_owned()),
        ..sample::snapshot(3)
    };
    let refused = "the visit ended: http 429; the page is visited again";
    let (lines, follow) = follow(vec![
        snapshot(Lifecycle::Started, None),
        hook(ResultState::Skipped, Some(refused)),
        CrawlEvent::Snapshot { snapshot: waits },
    ]);
    assert_eq!(
        lines[1..],
        [
            format!("s3 https://example.com/ screenshot skipped 1.2s: {refused}"),
            "s3 https://example.com/ queued: http 429; visit 1 of 5 was refused; next attempt in 30s"
                .to_owned(),
        ]
    );
    assert_eq!(follow.problems().len(), 0);
}

#[test]
fn the_reason_of_a_page_is_printed_for_its_hooks_together() {
    let why = Some("no answer");
    let other = |plugin: &str, status| CrawlEvent::Hook {
        result: HookResult {
            status,
            error: why.map(str::to_owned),
            ..sample::result(3, plugin, &format!("on_Snapshot__50_{plugin}"))
        },
    };
    let (lines, follow) = follow(vec![
        snapshot(Lifecycle::Started, None),
        other("pdf", ResultState::Skipped),
        hook(ResultState::Skipped, why),
        other("text", ResultState::Skipped),
        other("text", ResultState::Started),
        other("chromium", ResultState::Failed),
        snapshot(Lifecycle::Sealed, why),
    ]);
    assert_eq!(
        lines[1..],
        [
            "s3 https://example.com/ chromium failed 1.2s: no answer",
            "s3 https://example.com/ 2 hooks skipped: pdf, screenshot",
            "s3 https://example.com/ sealed: no answer",
        ]
    );
    assert_eq!(follow.problems(), ["s3 https://example.com/ sealed: no answer"]);
}

#[test]
fn a_restarted_stream_repeats_without_news() {
    let again = || {
        vec![
            crawl(Lifecycle::Started),
            snapshot(Lifecycle::Started, None),
            hook(ResultState::Succeeded, None),
        ]
    };
    let (lines, _) = follow(again().into_iter().chain(again()).collect());
    assert_eq!(lines.len(), 3);
}

#[test]
fn one_failed_result_exits_with_partly() {
    let (lines, follow) = follow(vec![
        hook(ResultState::Failed, Some("time limit reached")),
        snapshot(Lifecycle::Sealed, None),
        crawl(Lifecycle::Sealed),
    ]);
    assert_eq!(lines[0], "s3  screenshot failed 1.2s: time limit reached");
    assert_eq!(follow.exit(), Exit::Partly);
    assert_eq!(follow.problems().len(), 1);
}

#[test]
fn a_retried_result_that_succeeds_counts_as_success() {
    let (_, follow) = follow(vec![
        snapshot(Lifecycle::Started, None),
        hook(ResultState::Failed, None),
        hook(ResultState::Succeeded, None),
        snapshot(Lifecycle::Sealed, None),
        crawl(Lifecycle::Sealed),
    ]);
    assert_eq!(follow.exit(), Exit::Done);
}

#[test]
fn cancelled_and_quarantined_pages_are_reported() {
    for end in [
        snapshot(Lifecycle::Cancelled, None),
        snapshot(Lifecycle::Sealed, Some("its worker died 3 times")),
    ] {
        let (_, follow) = follow(vec![end, crawl(Lifecycle::Sealed)]);
        assert_eq!(follow.exit(), Exit::Partly);
        assert!(follow.summary(Time(0)).contains("s3 https://example.com/ "));
    }
    let (_, follow) = follow(vec![crawl(Lifecycle::Cancelled)]);
    assert_eq!(follow.exit(), Exit::Partly);
}

#[test]
fn running_hooks_are_listed_by_page() {
    let (_, follow) =
        follow(vec![snapshot(Lifecycle::Started, None), hook(ResultState::Started, None)]);
    let page = &follow.working()[&SnapshotId(3)];
    assert_eq!(page.hooks.keys().collect::<Vec<_>>(), ["screenshot"]);
    assert_eq!(follow.pages(), (0, 1));
}

#[test]
fn gaps_in_the_streams_are_detected() {
    let ended = Crawl {
        snapshots: Counts::from([("sealed".into(), 1)]),
        results: Counts::from([("failed".into(), 1)]),
        ..sample::crawl(1)
    };
    let (_, mut follow) = follow(vec![CrawlEvent::Crawl { crawl: ended }]);
    assert!(follow.has_gaps());
    follow.apply(snapshot(Lifecycle::Started, None), sample::NOW);
    assert!(follow.has_gaps());
    follow.stream_begins();
    assert!(follow.working().is_empty());
    follow.apply(snapshot(Lifecycle::Sealed, None), sample::NOW);
    follow.apply(hook(ResultState::Failed, None), sample::NOW);
    assert!(!follow.has_gaps());
}

#[test]
fn events_have_the_shape_of_the_bus() {
    let text = serde_json::to_string(&crawl(Lifecycle::Queued)).unwrap();
    assert!(text.starts_with(r#"{"event":"crawl","crawl":{"id":"c1""#), "{text}");
    assert!(matches!(event(&text), CrawlEvent::Crawl { .. }));
}
