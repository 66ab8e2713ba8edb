//! Lists of users as snapshots.

use super::bed::Bed;
use crate::calls::requests::Request;
use archivist_core::model::{List, SnapshotId};
use archivist_shared::bus::documents::report::{AddOptions, Filter, Snapshot};
use std::sync::Arc;

#[test]
fn pages_of_a_bookmark_file_have_its_titles_tags_and_times() {
    let mut bed = Bed::new();
    let file = include_bytes!("../../../tests/web/03-bookmark-export/bookmarks.html");
    let file = String::from_utf8_lossy(file).replace("PORT", "80");
    let list = List::read(file.as_bytes()).unwrap();
    let lines: Vec<&[u8]> = list.lines().map(|(_, line)| line).collect();
    let request = Request::Add {
        lines: Arc::new(lines.join(&b'\n')),
        options: AddOptions { tags: vec!["all".to_owned()], ..AddOptions::default() },
        user: 0,
        joins: false,
        so_far: None,
    };
    bed.call(request);
    let mut pages = bed.look(|tx| tx.list_snapshots(&Default::default()));
    pages.sort_by_key(|page| page.id);
    let shown = |page: &Snapshot| {
        let (title, time) = (page.title.clone(), page.bookmarked_at.clone());
        (title.unwrap(), page.tags.clone(), time.unwrap())
    };
    let shown: Vec<_> = pages.iter().map(shown).collect();
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let right: [(String, Vec<String>, String); 2] = [
        ("Soup & bread".into(), words(&["all", "food", "later"]), "2023-11-14T22:13:20Z".into()),
        ("Repair a bike".into(), words(&["all"]), "2023-11-14T22:15:00Z".into()),
    ];
    assert_eq!(shown, right);
    bed.come_to_an_end();
}

#[test]
fn pages_are_listed_by_tag_and_url() {
    let mut bed = Bed::new();
    let tagged = AddOptions { tags: vec!["later".to_owned()], ..AddOptions::default() };
    bed.add_with("http://a.test/x\nhttp://a.test/xy\nhttp://b.test/x", tagged);
    bed.add_with("http://a.test/x", AddOptions::default());
    let mut ids = |filter: Filter| -> Vec<i64> {
        let pages = bed.look(|tx| tx.list_snapshots(&filter));
        pages.into_iter().map(|page| page.id.0).collect()
    };
    let of = |text: &str| Some(text.to_owned());
    let tag = of("later");
    let same = of("http://a.test/x");
    let all = Filter::default;
    assert_eq!(ids(Filter { tag: tag.clone(), ..all() }), [3, 2, 1]);
    assert_eq!(ids(Filter { tag: of("late"), ..all() }), [0; 0]);
    assert_eq!(ids(Filter { exact_url: same.clone(), ..all() }), [4, 1]);
    assert_eq!(ids(Filter { url_prefix: same.clone(), ..all() }), [4, 2, 1]);
    assert_eq!(ids(Filter { url_prefix: of("http://a"), tag, ..all() }), [2, 1]);
    let older = Filter { exact_url: same, before: Some(SnapshotId(4).0), ..all() };
    assert_eq!(ids(older), [1]);
    let oldest_first = Filter { after_page: Some(1), limit: 2, ..all() };
    assert_eq!(ids(oldest_first), [2, 3]);
    bed.come_to_an_end();
}
