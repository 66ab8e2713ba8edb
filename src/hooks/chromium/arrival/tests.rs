use super::bed::*;
use super::clock::TICK;
use super::*;

const A: &str = "http://a.test/";

#[test]
fn page_is_settled_in_its_own_time_and_revealed() {
    let mut bed = Bed::new();
    bed.commits("L1", A).then(0, answered("")).loads();
    let all = Step::Grant { policy: Policy::PauseForNetwork, budget: LIMITS.settle };
    assert_eq!(bed.steps, [all]);
    bed.runs();
    assert_eq!(bed.page().url, A);
    assert_eq!(bed.page().response.as_ref().unwrap().status, 200);
    assert!(bed.page().notes.is_empty());
    assert!(bed.now < 100, "{} ms", bed.now);
}

#[test]
fn page_without_settling_time_keeps_the_real_clock() {
    let mut bed = Bed::new();
    bed.arrival.limits.settle = Duration::ZERO;
    bed.commits("L1", A).loads().then(5, TabEvent::Revealed);
    bed.page();
    let granted = |step: &Step| matches!(step, Step::Grant { .. });
    assert!(!bed.steps.iter().any(granted));
}

#[test]
fn event_stream_neither_stops_the_clock_nor_is_waited_for() {
    let mut bed = Bed::new();
    bed.commits("L1", A).then(1, began("s", RequestKind::Stream)).loads().runs();
    let note = "ignored 1 request that did not end: http://a.test/s (event stream)";
    assert_eq!(bed.page().notes, [note]);
    assert!(bed.now < 1000, "{} ms", bed.now);
}

#[test]
fn data_next_to_an_event_stream_is_waited_for() {
    let mut bed = Bed::new();
    bed.commits("L1", A)
        .then(1, began("s", RequestKind::Stream))
        .then(1, began("data", RequestKind::Ordinary))
        .loads();
    bed.wait(900);
    assert!(bed.arrival.ending().is_none());
    bed.then(1, ended("data")).runs();
    assert_eq!(bed.page().notes.len(), 1);
}

#[test]
fn long_poll_is_waited_for_during_the_settling_time_only() {
    let mut bed = Bed::new();
    bed.commits("L1", A).then(1, began("poll", RequestKind::Ordinary)).loads();
    bed.wait(2900);
    assert!(bed.arrival.ending().is_none());
    bed.wait(150).runs();
    let note = "ignored 1 request that did not end: http://a.test/poll";
    assert_eq!(bed.page().notes, [note]);
    assert!(bed.now < 4000, "{} ms", bed.now);
}

#[test]
fn parsed_page_does_not_wait_for_a_silent_picture() {
    let mut bed = Bed::new();
    bed.commits("L1", A).then(1, began("picture", RequestKind::Ordinary)).then(1, TabEvent::Parsed);
    bed.wait(2900);
    assert!(bed.steps.is_empty(), "{:?}", bed.steps);
    bed.wait(200).runs();
    assert_eq!(bed.page().notes.len(), 1);
    assert!(bed.now < 4000, "{} ms", bed.now);
}

#[test]
fn page_that_goes_elsewhere_is_there_when_the_last_one_is() {
    let mut bed = Bed::new();
    bed.commits("L1", A).loads();
    bed.then(1, TabEvent::NavigationRequested).then(1, TabEvent::BudgetExpired);
    assert!(bed.arrival.ending().is_none(), "it is about to leave");
    bed.commits("L2", "http://b.test/").loads().runs();
    assert_eq!(bed.page().url, "http://b.test/");
}

#[test]
fn requested_navigation_that_never_starts_is_given_up() {
    let mut bed = Bed::new();
    bed.commits("L1", A).loads();
    bed.then(1, TabEvent::NavigationRequested).wait(1100).runs();
    assert_eq!(bed.page().url, A);
}

#[test]
fn navigation_to_a_download_leaves_the_page() {
    let mut bed = Bed::new();
    bed.commits("L1", A).loads();
    bed.then(1, TabEvent::NavigationRequested)
        .then(1, navigating("L2", "http://a.test/file.zip"))
        .then(1, failed("L2", "net::ERR_ABORTED"))
        .runs();
    assert_eq!(bed.page().url, A);
}

#[test]
fn navigation_to_a_dead_server_is_a_failure() {
    let mut bed = Bed::new();
    bed.commits("L1", A).loads();
    bed.then(1, navigating("L2", "http://dead.test/"))
        .then(1, failed("L2", "net::ERR_CONNECTION_REFUSED"))
        .then(1, error_page("L2"));
    let reason =
        "the page went to http://dead.test/, which failed to load: net::ERR_CONNECTION_REFUSED";
    assert_eq!(bed.reason(), (reason, true));
}

#[test]
fn a_change_of_the_network_is_no_failure_of_the_page() {
    const CHANGED: &str = "net::ERR_NETWORK_CHANGED";
    let change = |bed: &mut Bed, loader: &str| {
        bed.then(1, navigating(loader, A))
            .then(1, failed(loader, CHANGED))
            .then(1, answered(CHANGED))
            .then(1, error_page(loader))
            .then(1, TabEvent::Loaded);
    };
    let mut bed = Bed::new();
    change(&mut bed, "L1");
    assert!(bed.has(&Step::Navigate));
    bed.commits("L2", A).then(1, answered("")).loads().runs();
    assert_eq!(bed.page().url, A);
    let mut bed = Bed::new();
    for loader in ["L1", "L2", "L3"] {
        change(&mut bed, loader);
        assert_eq!(bed.arrival.ending(), None);
    }
    change(&mut bed, "L4");
    let reason = format!("failed to load the page in chromium: {CHANGED}");
    assert_eq!(bed.reason(), (reason.as_str(), true));
}

#[test]
fn page_that_reloads_itself_is_held() {
    let mut bed = Bed::new();
    for loader in ["L1", "L2", "L3"] {
        bed.commits(loader, A).loads();
    }
    assert!(bed.has(&Step::HoldNavigation));
    bed.then(1, TabEvent::NavigationRequested).then(1, TabEvent::Held { url: A.into() }).runs();
    assert_eq!(bed.page().notes, ["the page was held, it navigates on its own: http://a.test/"]);
}

#[test]
fn cookie_wall_may_reload_once() {
    let mut bed = Bed::new();
    bed.commits("L1", A).commits("L2", A).loads();
    assert!(!bed.has(&Step::HoldNavigation));
    bed.runs();
    assert!(bed.page().notes.is_empty());
}

#[test]
fn every_ready_page_is_held() {
    let mut bed = Bed::new();
    bed.commits("L1", A).loads();
    bed.steps.clear();
    bed.then(1, TabEvent::BudgetExpired);
    bed.then(1, TabEvent::Revealed);
    assert!(bed.has(&Step::HoldNavigation), "{:?}", bed.steps);
}

#[test]
fn answers_without_content_have_a_reason() {
    let refused = |status: u64, error: &str| {
        let mut bed = Bed::new();
        bed.then(1, navigating("L1", A)).then(1, responded("L1", status)).then(1, answered(error));
        let (reason, is_failure) = bed.reason();
        (reason.to_owned(), is_failure)
    };
    let none =
        |status: u64, is_failure| (format!("the answer has no content ({status})"), is_failure);
    assert_eq!(refused(204, "net::ERR_ABORTED"), none(204, false));
    assert_eq!(refused(304, "net::ERR_ABORTED"), none(304, false));
    let no_body = "net::ERR_HTTP_RESPONSE_CODE_FAILURE";
    assert_eq!(refused(404, no_body), none(404, true));
    let download = ("not a page: the server offers a download".to_owned(), false);
    assert_eq!(refused(200, "net::ERR_ABORTED"), download);
    let failed = "failed to load the page in chromium: net::ERR_NAME_NOT_RESOLVED";
    assert_eq!(refused(0, "net::ERR_NAME_NOT_RESOLVED"), (failed.to_owned(), true));
}

#[test]
fn response_may_be_reported_after_the_answer() {
    let mut bed = Bed::new();
    bed.then(1, navigating("L1", A)).then(1, answered("net::ERR_ABORTED"));
    assert!(bed.arrival.ending().is_none());
    bed.then(1, responded("L1", 304));
    assert_eq!(bed.reason(), ("the answer has no content (304)", false));
    let mut bed = Bed::new();
    bed.then(1, navigating("L1", A)).then(1, answered("net::ERR_ABORTED")).wait(2100);
    let download = "not a page: the server offers a download";
    assert_eq!(bed.reason(), (download, false));
}

#[test]
fn response_may_be_reported_after_the_error_page() {
    let mut bed = Bed::new();
    bed.then(1, navigating("L1", A))
        .then(1, answered("net::ERR_HTTP_RESPONSE_CODE_FAILURE"))
        .then(1, error_page("L1"))
        .then(1, responded("L1", 404));
    assert_eq!(bed.reason(), ("the answer has no content (404)", true));
}

#[test]
fn empty_document_is_no_page() {
    let mut bed = Bed::new();
    bed.then(1, navigating("L1", A))
        .then(1, responded("L1", 200))
        .then(1, committed("L1", A))
        .then(1, ended("L1"))
        .loads();
    assert_eq!(bed.reason(), ("the answer has no content (200)", false));
}

#[test]
fn document_that_was_cut_off_is_a_page_with_a_note() {
    let mut bed = Bed::new();
    bed.then(1, navigating("L1", A))
        .then(1, responded("L1", 200))
        .then(1, committed("L1", A))
        .then(1, received("L1", 30))
        .then(1, failed("L1", "net::ERR_CONTENT_LENGTH_MISMATCH"))
        .runs();
    let note = "the answer ended early, after 30 bytes: net::ERR_CONTENT_LENGTH_MISMATCH";
    assert_eq!(bed.page().notes, [note]);
}

#[test]
fn document_that_is_no_page_is_refused_by_its_type() {
    let mut bed = Bed::new();
    bed.then(1, navigating("L1", A)).then(
        1,
        TabEvent::Committed {
            loader: "L1".into(),
            url: A.into(),
            mime_type: "application/pdf".into(),
            is_error_page: false,
        },
    );
    assert_eq!(bed.reason(), ("not a page: application/pdf", false));
}

#[test]
fn server_that_does_not_answer_is_a_failure() {
    let mut bed = Bed::new();
    bed.then(1, navigating("L1", A)).wait(31_000);
    let reason = "the page did not answer within 30 s (ANSWER_TIMEOUT= allows more)";
    assert_eq!(bed.reason(), (reason, true));
}

#[test]
fn endless_body_is_a_page_with_a_note() {
    let mut bed = Bed::new();
    bed.then(1, navigating("L1", A)).then(1, responded("L1", 200)).then(1, committed("L1", A));
    for _ in 0..31 {
        bed.then(1000, received("L1", 10));
    }
    assert!(bed.has(&Step::StopLoading));
    bed.runs();
    assert_eq!(bed.page().notes, ["still loading after 30 s (ANSWER_TIMEOUT= allows more)"]);
}

#[test]
fn endless_scripts_are_stopped() {
    let mut bed = Bed::new();
    bed.commits("L1", A).wait(10_100);
    assert!(bed.has(&Step::StopScripts), "before the load event");
    bed.loads().runs();
    let note = "a script that did not end was stopped";
    assert_eq!(bed.page().notes, [note]);
    let mut bed = Bed::new();
    bed.commits("L1", A).loads();
    // The grant never expires.
    bed.wait(4000);
    bed.then(1, TabEvent::Reached).wait(1900);
    assert!(bed.has(&Step::Probe) && !bed.has(&Step::StopScripts));
    bed.wait(100);
    assert!(bed.has(&Step::StopScripts), "after the load event");
}

#[test]
fn scripts_of_a_page_that_is_busy_are_not_stopped() {
    let waiting = || {
        let mut bed = Bed::new();
        // The browser passes on a large body meanwhile.
        bed.commits("L1", A).loads().wait(4000);
        assert!(bed.has(&Step::Probe));
        bed
    };
    let mut alive = waiting();
    alive.then(500, TabEvent::Probed);
    let mut late = waiting();
    late.then(500, TabEvent::BudgetExpired);
    let mut unreached = waiting();
    unreached.wait(10_000);
    let mut busy = waiting();
    busy.then(1, TabEvent::Reached);
    busy.then(1, began("2", RequestKind::Ordinary));
    for _ in 0..20 {
        busy.then(900, received("2", 1000));
    }
    for mut bed in [alive, late, unreached, busy] {
        assert!(bed.has(&Step::Reveal));
        bed.runs().wait(5000);
        assert!(!bed.has(&Step::StopScripts));
        let notes = &bed.page().notes;
        assert!(!notes.iter().any(|note| note.contains("script")), "{notes:?}");
    }
}

#[test]
fn endless_dialogs_stop_the_scripts() {
    let mut bed = Bed::new();
    bed.commits("L1", A);
    for _ in 0..60 {
        bed.then(1, TabEvent::Dialog);
    }
    assert!(bed.has(&Step::StopScripts));
    bed.loads().runs();
    let note = "its scripts were stopped, they opened 20 dialogs";
    assert_eq!(bed.page().notes, [note]);
}

fn granted(steps: &[Step]) -> Duration {
    let budget = |step: &Step| match step {
        Step::Grant { policy, budget } if *policy == Policy::Advance => *budget,
        _ => Duration::ZERO,
    };
    steps.iter().map(budget).sum()
}

#[test]
fn clock_follows_real_time_while_the_next_document_loads() {
    let mut bed = Bed::new();
    bed.commits("L1", A).loads();
    bed.then(1, navigating("L2", "http://b.test/"));
    bed.steps.clear();
    for _ in 0..50 {
        bed.wait(19).then(1, TabEvent::BudgetExpired);
    }
    let (all, count) = (granted(&bed.steps), bed.steps.len());
    let second = Duration::from_millis(940)..=Duration::from_millis(1000);
    assert!(second.contains(&all) && count >= 20, "{count}: {all:?}");
}

#[test]
fn clock_that_fell_behind_catches_up() {
    let mut bed = Bed::new();
    bed.commits("L1", A).loads();
    bed.then(1, navigating("L2", "http://b.test/"));
    bed.steps.clear();
    // A script runs, in which no grant expires.
    bed.wait(1000);
    assert_eq!(granted(&bed.steps), TICK);
    bed.then(0, TabEvent::BudgetExpired);
    let all = granted(&bed.steps);
    assert!(all >= Duration::from_millis(990), "{all:?}");
}

#[test]
fn reveal_that_does_not_end_is_given_up() {
    let mut bed = Bed::new();
    bed.commits("L1", A).loads();
    bed.then(1, TabEvent::BudgetExpired).wait(24_000);
    assert_eq!(bed.page().notes, ["it could not be scrolled to its end"]);
}

#[test]
fn page_settles_again_while_it_is_revealed() {
    let rest = |budget| TabEvent::Resting { budget };
    let second = Duration::from_secs(1);
    let mut bed = Bed::new();
    bed.commits("L1", A).loads().then(1, TabEvent::BudgetExpired);
    bed.then(1, began("script", RequestKind::Ordinary)).then(1, rest(second));
    assert_eq!(
        bed.steps.pop(),
        Some(Step::Grant { policy: Policy::PauseForNetwork, budget: second })
    );
    bed.then(1, TabEvent::BudgetExpired).wait(100);
    assert!(!bed.has(&Step::Resume), "a request is open");
    bed.then(1, ended("script"));
    assert!(bed.has(&Step::Resume));
    // A navigation that leads nowhere stops neither the work nor the rest.
    bed.then(1, TabEvent::NavigationRequested).then(1, rest(second)).wait(1000);
    // The first is that of the navigation's time.
    bed.then(1, TabEvent::BudgetExpired);
    bed.steps.clear();
    bed.then(1, TabEvent::BudgetExpired);
    assert_eq!(bed.steps, [Step::Resume]);
    bed.then(1, TabEvent::NavigationRequested).then(1, TabEvent::Revealed).wait(1100).runs();
    bed.page();
}

/// Chromium does not say which grant has expired.
#[test]
fn rest_begins_when_no_other_grant_is_open() {
    let second = Duration::from_secs(1);
    let mut bed = Bed::new();
    bed.commits("L1", A).loads().then(1, TabEvent::BudgetExpired).wait(30);
    assert!(matches!(bed.steps.pop(), Some(Step::Grant { policy: Policy::Advance, .. })));
    bed.steps.clear();
    bed.then(1, TabEvent::Resting { budget: second });
    assert_eq!(bed.steps, []);
    bed.then(1, TabEvent::BudgetExpired);
    let all = Step::Grant { policy: Policy::PauseForNetwork, budget: second };
    assert_eq!(bed.steps, [all]);
    bed.then(1, TabEvent::BudgetExpired);
    assert_eq!(bed.steps.last(), Some(&Step::Resume));
    // One that is lost is repeated.
    bed.wait(30).steps.clear();
    bed.then(1, TabEvent::Resting { budget: second }).wait(3100);
    assert!(
        matches!(bed.steps[..], [Step::Grant { policy: Policy::Advance, .. }]),
        "{:?}",
        bed.steps
    );
}

#[test]
fn next_document_is_revealed_from_the_beginning() {
    let mut bed = Bed::new();
    bed.commits("L1", A).loads().then(1, TabEvent::BudgetExpired);
    bed.then(1, TabEvent::Resting { budget: LIMITS.settle });
    bed.commits("L2", "http://b.test/").loads();
    bed.steps.clear();
    bed.then(1, TabEvent::BudgetExpired);
    assert_eq!(bed.steps, [Step::Reveal]);
}

fn any_event() -> impl proptest::strategy::Strategy<Value = TabEvent> {
    use proptest::prelude::*;
    let id = prop_oneof![Just("L1"), Just("L2"), Just("r1"), Just("r2")];
    let kind = prop_oneof![
        Just(RequestKind::Ordinary),
        Just(RequestKind::Stream),
        Just(RequestKind::Uncounted)
    ];
    prop_oneof![
        id.clone().prop_map(|id| navigating(id, A)),
        id.clone().prop_map(|id| committed(id, A)),
        id.clone().prop_map(|id| responded(id, 200)),
        (id.clone(), kind).prop_map(|(id, kind)| began(id, kind)),
        id.clone().prop_map(|id| received(id, 5)),
        id.clone().prop_map(ended),
        id.prop_map(|id| failed(id, "net::ERR_ABORTED")),
        Just(TabEvent::NavigationRequested),
        Just(TabEvent::Parsed),
        Just(TabEvent::Loaded),
        Just(TabEvent::BudgetExpired),
        Just(TabEvent::Dialog),
        Just(TabEvent::Resting { budget: LIMITS.settle }),
        Just(TabEvent::Revealed),
        Just(TabEvent::Held { url: A.into() }),
        Just(answered("")),
    ]
}

proptest::proptest! {
    /// Whatever a tab reports, the arrival ends by its time limit, and alarms do not pile up.
    #[test]
    fn any_tab_ends(events in proptest::collection::vec((0u64..3000, any_event()), 0..60)) {
        let mut bed = Bed::new();
        for (after, event) in events {
            bed.then(after, event);
        }
        bed.wait(60_000);
        proptest::prop_assert!(bed.arrival.ending().is_some());
    }
}
