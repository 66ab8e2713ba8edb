//! Lists of users as snapshots.

use super::bed::Bed;
use crate::main_loop::event::Event;
use archivist_core::model::List;
use archivist_shared::bus::call::{Reply, Request};
use archivist_shared::bus::documents::report::{AddOptions, Snapshot};
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
        options: AddOptions {
            tags: vec!["all".to_owned()],
            ..AddOptions::default()
        },
        user: 0,
        joins: false,
        so_far: None,
        reply: Reply::new().0,
    };
    bed.turn(vec![Event::Request(request)]);
    let mut pages = bed.look(|tx| tx.list_snapshots(&Default::default()));
    pages.sort_by_key(|page| page.id);
    let shown = |page: &Snapshot| {
        let (title, time) = (page.title.clone(), page.bookmarked_at.clone());
        (title.unwrap(), page.tags.clone(), time.unwrap())
    };
    let shown: Vec<_> = pages.iter().map(shown).collect();
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let right: [(String, Vec<String>, String); 2] = [
        (
            "Soup & bread".into(),
            words(&["all", "food", "later"]),
            "1700000000".into(),
        ),
        ("Repair a bike".into(), words(&["all"]), "1700000100".into()),
    ];
    assert_eq!(shown, right);
    bed.come_to_an_end();
}
