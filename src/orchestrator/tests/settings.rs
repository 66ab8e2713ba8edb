//! What callers may set.

use super::bed::Bed;
use crate::bus::call::Refusal;
use crate::calls::requests::Request;
use crate::main_loop::rooms::Which;
use crate::programs::Install;
use archivist_core::model::{Owner, SnapshotId};
use archivist_shared::bus::documents::report::{AddOptions, Filter};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// The text of a refusal that is the fault of the caller.
fn refusal(refusal: Refusal) -> String {
    match refusal {
        Refusal::Invalid(why) => why,
        other => panic!("{other:?}"),
    }
}

/// What an installation writes runs in the crawls of all users.
#[test]
fn installations_take_no_settings_and_may_be_for_root_alone() {
    let mut bed = Bed::new();
    bed.install();
    let crawl = bed.crawl(0).unwrap();
    let refused = bed.request(Request::Amend {
        id: Owner::Crawl(crawl),
        config: [("TIMEOUT".to_owned(), "3".to_owned())].into(),
        user: 0,
    });
    let why = refusal(refused.unwrap().unwrap_err());
    assert!(why.ends_with("is an installation, which takes no settings"), "{why}");

    bed.engine.settings.members_install = false;
    for user in [0, 1000] {
        let names = vec!["beta".to_owned()];
        let answer = bed.request(Install { names, user });
        assert_eq!(answer.unwrap().is_ok(), user == 0, "{user}");
    }
    bed.come_to_an_end();
}

#[test]
fn settings_of_the_wrong_type_are_refused() {
    let mut bed = Bed::new();
    let answer = bed.request(Request::Add {
        lines: Arc::new(b"http://a.example/\n".to_vec()),
        options: AddOptions {
            config: [("TIMEOUT".to_owned(), "abc".to_owned())].into(),
            ..AddOptions::default()
        },
        user: 0,
        joins: false,
        so_far: None,
    });
    let why = refusal(answer.unwrap().unwrap_err());
    assert!(why.contains("TIMEOUT: 'abc' is not a whole number"), "{why}");
}

impl Bed {
    fn amend(&mut self, id: Owner, setting: (&str, &str)) -> Result<(), Refusal> {
        let (key, value) = setting;
        let amended = self.request(Request::Amend {
            id,
            config: [(key.to_owned(), value.to_owned())].into(),
            user: 0,
        });
        amended.unwrap().map(drop)
    }

    /// The time limits of the hooks of a page.
    fn limits_of(&mut self, page: Owner) -> BTreeSet<Option<Duration>> {
        let runs = self.look(|tx| tx.list_runs(&Filter::default()));
        let hooks = runs.iter().filter(|run| run.hook.is_some());
        hooks
            .filter(|run| run.owner == page)
            .map(|run| run.limit.map(Duration::from_secs))
            .collect()
    }
}

#[test]
fn a_page_has_settings_of_its_own() {
    let mut bed = Bed::new();
    bed.add(2);
    bed.come_to_an_end();
    let [page, other] = [1, 2].map(|id| Owner::Snapshot(SnapshotId(id)));
    let before = bed.limits_of(page);
    bed.amend(page, ("TIMEOUT", "7")).unwrap();
    let why = refusal(bed.amend(page, ("CRAWL_MAX_URLS", "7")).unwrap_err());
    assert!(why.ends_with("of the crawl: archivist retry c1 --set CRAWL_MAX_URLS="), "{why}");
    assert!(bed.amend(page, ("TIMEOUT", "abc")).is_err());
    for id in [page, other] {
        bed.retry_some(Some(id), Which::All);
        bed.come_to_an_end();
    }
    let own: BTreeSet<_> = before.iter().copied().chain([Some(Duration::from_secs(7))]).collect();
    assert_eq!(bed.limits_of(page), own);
    assert_eq!(bed.limits_of(other), before);
    let pages = bed.look(|tx| tx.list_snapshots(&Filter::default()));
    let settings = pages.iter().map(|page| page.config.len());
    assert_eq!(settings.collect::<Vec<_>>(), [0, 1], "newest first");
}
