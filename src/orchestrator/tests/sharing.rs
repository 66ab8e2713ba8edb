//! With which recordings that of a page shares its bodies.

use super::bed::Bed;
use crate::calls::requests::Request;
use archivist_plugin::sample;
use archivist_shared::bus::documents::report::AddOptions;
use archivist_shared::bus::documents::work::{Assignment, Sharing};
use serde_json::json;
use std::sync::Arc;

const PAGE: &str = "archivist-snapshot-1.service";

/// What the assignment of a page says, of a crawl of this user with or without the setting.
fn sharing(user: u32, is_on: Option<bool>, plugin: &str) -> Option<Sharing> {
    let mut bed = Bed::new();
    let config = json!({"properties": {"WACZ_DEDUPE": {"type": "boolean", "default": false}}});
    let recorder = sample::plugin(plugin, config, &["on_Snapshot__80_wacz.sh"]);
    let settings = bed.engine.settings.clone();
    bed.engine.replace(settings, sample::catalogue([recorder]));
    let setting = is_on.map(|is_on| ("WACZ_DEDUPE".to_owned(), is_on.to_string()));
    let answer = bed.request(Request::Add {
        lines: Arc::new(b"http://a.example/\n".to_vec()),
        options: AddOptions { config: setting.into_iter().collect(), ..AddOptions::default() },
        user,
        joins: false,
        so_far: None,
    });
    assert!(answer.unwrap().is_ok());
    bed.until_quiet();
    let stdin = bed.world.units[PAGE].stdin.as_ref().unwrap();
    let assignment: Assignment = serde_json::from_slice(stdin).unwrap();
    assignment.sharing
}

#[test]
fn bodies_are_shared_among_recordings_of_one_user_if_the_user_says_so() {
    for (user, directory) in [(0, "0-"), (1000, "1000-")] {
        let expected =
            Sharing { program: "/usr/bin/archivist".to_owned(), directory: directory.to_owned() };
        assert_eq!(sharing(user, Some(true), "wacz"), Some(expected));
    }
    assert_eq!(sharing(0, Some(false), "wacz"), None);
    assert_eq!(sharing(0, None, "wacz"), None);
    assert_eq!(sharing(0, Some(true), "other"), None, "nothing is recorded");
}
