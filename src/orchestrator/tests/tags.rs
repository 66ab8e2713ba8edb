//! Tags that change after pages have ended.

use super::bed::Bed;
use crate::calls::tag::{ChangeTags, RenameTag};
use archivist_core::model::{CrawlId, Owner, PAGE_TAGS_MAX, SnapshotId};
use archivist_core::plan::RetentionRule;
use archivist_shared::bus::documents::report::Filter;

const CRAWL: Owner = Owner::Crawl(CrawlId(1));
const PAGE: Owner = Owner::Snapshot(SnapshotId(1));

/// A sealed crawl of two pages.
fn archived() -> Bed {
    let mut bed = Bed::new();
    bed.add(2);
    loop {
        bed.until_quiet();
        let Some(hook) = bed.running_hook() else {
            return bed;
        };
        bed.world.end(&hook, 1, 0, "success");
    }
}

/// Changes tags: `+a` adds, `-a` removes. Returns the number of changes, or the refusal.
fn change(bed: &mut Bed, id: Owner, words: &[&str]) -> Result<String, String> {
    let of = |sign| {
        let own = words.iter().filter_map(|word| word.strip_prefix(sign));
        own.map(str::to_owned).collect()
    };
    let order = ChangeTags { id, add: of('+'), remove: of('-'), user: 0 };
    let answer = bed.request(order).unwrap();
    answer.map_err(|refusal| refusal.to_string())
}

fn rename(bed: &mut Bed, old: &str, new: &str) -> Result<String, String> {
    let order = RenameTag { old: old.to_owned(), new: new.to_owned(), user: 0 };
    let answer = bed.request(order).unwrap();
    answer.map_err(|refusal| refusal.to_string())
}

/// All tags with the number of their pages, the newest first.
fn tags(bed: &mut Bed) -> String {
    let tags = bed.look(|tx| tx.list_tags(&Filter::default()));
    tags.iter().map(|tag| format!("{}={}", tag.name, tag.pages)).collect::<Vec<_>>().join(" ")
}

#[test]
fn tags_of_pages_and_crawls_come_and_go() {
    let mut bed = archived();
    assert_eq!(change(&mut bed, PAGE, &["+reading", "+web"]).unwrap(), "2");
    assert_eq!(change(&mut bed, PAGE, &["+reading", "-never"]).unwrap(), "0");
    assert_eq!(tags(&mut bed), "web=1 reading=1");
    // The page has it already, the other one gets it by its crawl.
    assert_eq!(change(&mut bed, CRAWL, &["+web"]).unwrap(), "1");
    assert_eq!(tags(&mut bed), "web=2 reading=1");
    let refused = change(&mut bed, PAGE, &["-web"]).unwrap_err();
    assert!(refused.contains("archivist tag c1 --remove 'web'"), "{refused}");
    assert_eq!(change(&mut bed, CRAWL, &["-web", "-reading"]).unwrap(), "2");
    assert_eq!(tags(&mut bed), "");
}

#[test]
fn a_tag_gets_another_name() {
    let mut bed = archived();
    change(&mut bed, CRAWL, &["+old", "+other"]).unwrap();
    assert_eq!(rename(&mut bed, "old", "new").unwrap(), "2");
    assert_eq!(tags(&mut bed), "other=2 new=2");
    let refused = rename(&mut bed, "new", "other").unwrap_err();
    assert!(refused.contains("pages with the tag 'other' already"), "{refused}");
    // Also if that is the tag itself.
    assert!(rename(&mut bed, "new", "new").is_err());
    assert_eq!(tags(&mut bed), "other=2 new=2");
    let refused = rename(&mut bed, "never", "x").unwrap_err();
    assert!(refused.contains("archivist list tags"), "{refused}");
    // Nothing has it any more.
    change(&mut bed, CRAWL, &["-other"]).unwrap();
    assert_eq!(rename(&mut bed, "new", "other").unwrap(), "2");
    assert_eq!(tags(&mut bed), "other=2");
    bed.engine.settings.retention.push(RetentionRule::parse("tag:other forever").unwrap());
    for (old, new) in [("other", "x"), ("x", "other")] {
        let refused = rename(&mut bed, old, new).unwrap_err();
        assert!(refused.contains("Retention= in archivist.conf(5)"), "{refused}");
    }
    assert_eq!(tags(&mut bed), "other=2");
}

#[test]
fn bad_tags_change_nothing() {
    let mut bed = archived();
    let long = format!("+{}", "x".repeat(201));
    for (words, expected) in [
        (&["+good", "+"][..], "is not a tag"),
        (&["+good", "+a\nb"], "control character"),
        (&["+good", "+ a"], "a space at its begin"),
        (&["+good", &long], "at most 200 bytes, this one has 201"),
        (&["+good", "+a", "-a"], "to be added and removed"),
    ] {
        let refused = change(&mut bed, PAGE, words).unwrap_err();
        assert!(refused.contains(expected), "{refused}");
    }
    let many: Vec<String> = (0..10_000).map(|n| format!("+{n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let refused = change(&mut bed, PAGE, &many).unwrap_err();
    assert!(refused.contains(&format!("s1 has {PAGE_TAGS_MAX} tags")), "{refused}");
    let refused = change(&mut bed, Owner::Snapshot(SnapshotId(9)), &["+a"]).unwrap_err();
    assert!(refused.contains("there is no snapshot s9"), "{refused}");
    bed.engine.settings.fleet_database = "postgresql://db.test/archive".to_owned();
    for refused in [change(&mut bed, PAGE, &["+a"]), rename(&mut bed, "a", "b")] {
        let refused = refused.unwrap_err();
        assert!(refused.contains("a node of a fleet"), "{refused}");
    }
    bed.engine.settings.fleet_database.clear();
    assert_eq!(tags(&mut bed), "");
}
