//! What callers may set.

use super::bed::Bed;
use archivist_shared::bus::call::{Refusal, Request};
use archivist_shared::bus::documents::report::AddOptions;
use std::sync::Arc;

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
    let refused = bed.request(|reply| Request::Amend {
        id: crawl,
        config: [("TIMEOUT".to_owned(), "3".to_owned())].into(),
        user: 0,
        reply,
    });
    let why = refusal(refused.unwrap().unwrap_err());
    assert!(
        why.ends_with("is an installation, which takes no settings"),
        "{why}"
    );

    bed.engine.settings.members_install = false;
    for user in [0, 1000] {
        let names = vec!["beta".to_owned()];
        let answer = bed.request(|reply| Request::Install { names, user, reply });
        assert_eq!(answer.unwrap().is_ok(), user == 0, "{user}");
    }
    bed.come_to_an_end();
}

#[test]
fn settings_of_the_wrong_type_are_refused() {
    let mut bed = Bed::new();
    let answer = bed.request(|reply| Request::Add {
        lines: Arc::new(b"http://a.example/\n".to_vec()),
        options: AddOptions {
            config: [("TIMEOUT".to_owned(), "abc".to_owned())].into(),
            ..AddOptions::default()
        },
        user: 0,
        joins: false,
        so_far: None,
        reply,
    });
    let why = refusal(answer.unwrap().unwrap_err());
    assert!(
        why.contains("TIMEOUT: 'abc' is not a whole number"),
        "{why}"
    );
}
