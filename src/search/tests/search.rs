//! What is found, and in which order.

use crate::sample::{Sample, ids};
use archivist_core::model::search::{SearchChange, SearchQuestion, SearchState};
use archivist_core::model::{Lifecycle, SnapshotId, Time};
use archivist_plugin::files::remove::remove_tree;
use archivist_search::change;

#[test]
fn words_phrases_and_exclusions_find_pages() {
    let mut sample = Sample::new();
    sample.add("https://a.test/1", "First", "the quick brown fox");
    sample.add("https://a.test/2", "Second", "the brown and quick bear");
    sample.add("https://a.test/3", "Quick", "nothing else");
    for (words, expected) in [
        ("quick brown", vec![2, 1]),
        ("\"quick brown\"", vec![1]),
        ("quick -fox", vec![3, 2]),
        ("QUICK -\"quick brown\" -title:quick", vec![2]),
        ("title:quick", vec![3]),
        ("qui*", vec![3, 2, 1]),
        ("-quick", vec![]),
        ("missing", vec![]),
        ("ｂｒｏｗｎ", vec![2, 1]),
    ] {
        let mut found = sample.found(words);
        if words == "quick brown" || words == "ｂｒｏｗｎ" {
            // Neither is better.
            found.sort_by_key(|id| -id);
        }
        assert_eq!(found, expected, "{words}");
    }
}

#[test]
fn snapshots_that_were_deleted_are_no_hits() {
    let mut sample = Sample::new();
    for url in ["https://a.test/", "https://a.test/", "https://b.test/"] {
        sample.add(url, "Word", "word");
    }
    let found = |without: &[i64]| {
        let answer = sample.ask(&SearchQuestion {
            words: "word".to_owned(),
            without: without.iter().copied().map(SnapshotId).collect(),
            ..SearchQuestion::default()
        });
        let versions = answer.hits.last().map(|hit| hit.versions);
        (ids(&answer.hits), answer.total, versions)
    };
    assert_eq!(found(&[]), (vec![3, 2], 2, Some(2)));
    assert_eq!(found(&[2]), (vec![3, 1], 2, Some(1)), "the other version stands for its page");
    assert_eq!(found(&[1, 2, 3]), (vec![], 0, None));
}

#[test]
fn conditions_with_names_and_alternatives() {
    let mut sample = Sample::new();
    for (url, title, text, tag) in [
        ("https://books.test/git/start", "Start", "clone and merge", "reading"),
        ("https://old.books.test/apt", "Packages", "git is a package", "later"),
        ("https://other.test/digits", "Git", "checksum", "reading"),
        ("https://other.test/failed", "Gone", "clone", "reading"),
    ] {
        let mut entry = sample.page(url, title, "en", text.as_bytes());
        entry.tags = vec![tag.to_owned()];
        entry.is_failure = url.ends_with("failed");
        sample.put(&entry);
    }
    for (words, expected) in [
        ("site:books.test", vec![1, 2]),
        ("site:books.test -site:old.books.test", vec![1]),
        ("site:books.test git", vec![1, 2]),
        ("inurl:git", vec![1]),
        ("inurl:dig*", vec![3]),
        ("intitle:git", vec![3]),
        ("tag:reading -tag:later", vec![1, 3]),
        ("merge OR checksums", vec![1, 3]),
        ("merge | intitle:packages", vec![1, 2]),
        ("git tag:later OR site:other.test", vec![2, 3]),
        ("tag:later OR inurl:start", vec![1, 2]),
        ("is:failed", vec![4]),
        ("clone is:failed OR is:sealed", vec![1, 4]),
        ("clone", vec![1]),
        ("merge OR", vec![1]),
    ] {
        let mut found = sample.found(words);
        found.sort_unstable();
        assert_eq!(found, expected, "{words}");
    }
}

/// `unicode61` of SQLite finds a quarter of these, and says nothing.
#[test]
fn every_part_of_a_text_without_blanks_is_found() {
    let text = "東京都は日本の首都であり、世界最大の都市圏を形成している。한국어 검색";
    let mut sample = Sample::new();
    let entry = sample.page("https://a.test/", "都", "ja", text.as_bytes());
    sample.put(&entry);
    let runs = text.split(|c: char| "、。 ".contains(c));
    for run in runs {
        let letters: Vec<char> = run.chars().collect();
        for length in 1..=letters.len().min(5) {
            for part in letters.windows(length) {
                let part: String = part.iter().collect();
                assert_eq!(sample.found(&part), [1], "{part}");
            }
        }
    }
    for other in ["京東", "本日", "都日", "大世界", "圏形", "首相"] {
        assert_eq!(sample.found(other), [0; 0], "{other}");
    }
}

#[test]
fn other_forms_are_found_after_exact_ones() {
    let mut sample = Sample::new();
    let often = "archives archived archiving ".repeat(20);
    sample.add("https://a.test/forms", "Forms", &often);
    let long = format!("one archive among {}", "many other words ".repeat(300));
    sample.add("https://a.test/exact", "Exact", &long);
    sample.add("https://a.test/none", "None", "architecture");
    assert_eq!(sample.found("archive"), [2, 1]);
    assert_eq!(sample.found("archives"), [1, 2]);
    assert_eq!(sample.found("\"archive\""), [2]);
    let german = sample.page("https://a.test/de", "", "de", "Die Häuser".as_bytes());
    sample.put(&german);
    assert_eq!(sample.found("Häusern"), [4]);
    assert_eq!(sample.found("hauser"), [4]);
}

#[test]
fn titles_with_all_words_come_first() {
    let mut sample = Sample::new();
    sample.add("https://a.test/1", "Other", &"install guide ".repeat(50));
    sample.add("https://a.test/2", "The long guide to install everything on a machine", "x");
    sample.add("https://a.test/3", "Install Guide", "x");
    sample.add("https://a.test/4", "Installing guides", "x");
    sample.add("https://a.test/5", "Guide", &"install ".repeat(50));
    assert_eq!(sample.found("install guide")[..3], [3, 2, 4]);
}

#[test]
fn pasted_url_comes_first_and_signs_are_text() {
    let mut sample = Sample::new();
    sample.add("https://example.com/a_(b)?q=c%2B%2B&utm_source=x", "", "words");
    let other = "https://example.com/a_(b)?q=c++ example com ".repeat(30);
    sample.add("https://a.test/other", "https://example.com/a_(b)?q=c++", &other);
    for url in [
        "https://example.com/a_(b)?q=c%2B%2B",
        "http://www.example.com/a_(b)?q=c%2B%2B#top",
        "example.com/a_(b)?q=c%2B%2B",
    ] {
        assert_eq!(sample.found(url).first(), Some(&1), "{url}");
    }
    sample.add("https://a.test/c", "C", "a+b:c^2~[x TO y] {z} \\/ AND (OR) !not");
    for words in ["a+b:c^2", "[x TO y]", "{z}", "\\/ AND", "(OR) !not", "b:a \\ not"] {
        let found = sample.found(words);
        let expected: &[i64] = if words.starts_with("b:a") { &[] } else { &[3] };
        assert_eq!(found, expected, "{words}");
    }
}

#[test]
fn versions_of_a_page_are_one_hit() {
    let mut sample = Sample::new();
    sample.add("https://a.test/page", "Old", "shared word");
    sample.add("http://www.a.test/page?utm_source=b", "New", "shared word");
    sample.add("https://a.test/page#part", "Newest", "another");
    sample.add("https://b.test/", "Other", "shared");
    let answer = sample.answer("shared word");
    assert_eq!((ids(&answer.hits), answer.total), (vec![2], 1));
    assert_eq!(answer.hits[0].versions, 3);
    assert_eq!(answer.hits[0].title.as_deref(), Some("New"));
    let all = sample.ask(&SearchQuestion {
        words: "shared word".to_owned(),
        all: true,
        ..SearchQuestion::default()
    });
    assert_eq!((ids(&all.hits), all.total), (vec![2, 1], 2));
}

#[test]
fn options_restrict_hits() {
    let mut sample = Sample::new();
    let mut entry = sample.page("https://blog.a.test/x/1", "", "en", b"word");
    entry.tags = vec!["Lesen".to_owned(), "über uns".to_owned()];
    sample.put(&entry);
    let mut entry = sample.page("https://a.test/x/2", "", "en", b"word");
    entry.status = Lifecycle::Cancelled;
    std::fs::create_dir(entry.directory.join("pdf")).unwrap();
    std::fs::write(entry.directory.join("pdf/output.pdf"), "x").unwrap();
    sample.put(&entry);
    let entry = sample.page("https://ba.test/x", "", "en", b"word");
    sample.put(&entry);
    let mut entry = sample.page("https://b.test/x", "", "en", b"word");
    entry.is_failure = true;
    sample.put(&entry);
    let ask = |change: &dyn Fn(&mut SearchQuestion)| {
        let mut question = SearchQuestion { words: "word".to_owned(), ..SearchQuestion::default() };
        change(&mut question);
        let mut found = ids(&sample.ask(&question).hits);
        found.sort_unstable();
        found
    };
    assert_eq!(ask(&|_| {}), [1, 2, 3]);
    assert_eq!(ask(&|q| q.tags = vec!["lesen".to_owned()]), [1]);
    assert_eq!(ask(&|q| q.words = "word #lesen".to_owned()), [1]);
    assert_eq!(ask(&|q| q.words = "word -#lesen".to_owned()), [2, 3]);
    assert_eq!(ask(&|q| q.words = "#lesen".to_owned()), [1]);
    assert_eq!(ask(&|q| q.tags = vec!["über uns".to_owned()]), [1]);
    assert_eq!(ask(&|q| q.site = Some("a.test".to_owned())), [1, 2]);
    assert_eq!(ask(&|q| q.site = Some("blog.a.test".to_owned())), [1]);
    assert_eq!(ask(&|q| q.url = Some("a.test/x/*".parse().unwrap())), [2]);
    assert_eq!(ask(&|q| q.url = Some("*.a.test".parse().unwrap())), [1, 2]);
    assert_eq!(ask(&|q| q.plugins = vec!["pdf".to_owned()]), [2]);
    assert_eq!(ask(&|q| q.plugins = vec!["text".to_owned()]), [1, 2, 3]);
    assert_eq!(ask(&|q| q.status = Some(SearchState::Cancelled)), [2]);
    assert_eq!(ask(&|q| q.status = Some(SearchState::Sealed)), [1, 3, 4]);
    assert_eq!(ask(&|q| q.status = Some(SearchState::Unsaved)), [4]);
    let second = Time(1_700_000_002_000);
    assert_eq!(ask(&|q| q.since = Some(second)), [2, 3]);
    assert_eq!(ask(&|q| q.until = Some(second)), [1]);
    assert_eq!(ask(&|q| (q.since, q.until) = (Some(second), Some(second))), [0; 0]);
}

#[test]
fn changes_replace_and_delete_pages() {
    let mut sample = Sample::new();
    let mut entry = sample.add("https://a.test/", "Before", "first text");
    std::fs::write(entry.directory.join("text/text.txt"), "second text").unwrap();
    entry.tags = vec!["new".to_owned()];
    let twice = [SearchChange::Put(entry.clone()), SearchChange::Put(entry.clone())];
    change(&sample.index(), &twice).unwrap();
    assert_eq!(sample.found("first"), [0; 0]);
    assert_eq!(sample.found("second #new"), [1]);
    assert_eq!(sample.answer("second").hits[0].versions, 1);
    // Its files are in the store now.
    remove_tree(&entry.directory.join("text")).unwrap();
    std::fs::write(entry.directory.join(".stored.json"), "{}").unwrap();
    sample.put(&entry);
    assert_eq!(sample.found("second"), [1]);
    change(&sample.index(), &[SearchChange::Delete(entry.id)]).unwrap();
    assert_eq!(sample.found("second"), [0; 0]);
    assert_eq!(sample.found("#new"), [0; 0]);
}

#[test]
fn nearest_words_are_proposed() {
    let mut sample = Sample::new();
    sample.add("https://a.test/", "Title", "archive of pages, parchment");
    let meant = |words: &str| sample.answer(words).meant;
    assert_eq!(meant("archvie").as_deref(), Some("archive"));
    assert_eq!(meant("archvie of pagse").as_deref(), Some("archive of pages"));
    assert_eq!(meant("titel").as_deref(), Some("title"));
    assert_eq!(meant("zzzzzz"), None);
    assert_eq!(meant("pages parchment -of"), None);
    assert_eq!(meant("archive"), None);
}

#[test]
fn snippets_mark_words() {
    let mut sample = Sample::new();
    sample.add("https://a.test/", "T", "All about archives and pages");
    let hit = &sample.answer("archive pages").hits[0];
    let marked: Vec<_> = hit.snippet.iter().filter(|part| part.marked).collect();
    let marked: Vec<_> = marked.iter().map(|part| part.text.as_str()).collect();
    assert_eq!(marked, ["archives", "pages"]);
}
