use super::*;
use crate::sample::{about, add, bytes, file, get, noise, post, recorded};
use crate::verify::{check, check_with};
use crate::wacz::entry::REVISIT;
use crate::wacz::{Bodies, Merge, Page};
use std::collections::BTreeMap;
use std::sync::Mutex;

type Kept = Arc<Mutex<BTreeMap<String, Vec<u8>>>>;

/// A shelf in memory.
#[derive(Clone, Default)]
struct Memory(Kept);

impl Shelf for Memory {
    fn find(&mut self, hex: &str) -> io::Result<Option<File>> {
        Ok(self.0.lock().unwrap().get(hex).map(|bytes| file(bytes)))
    }

    fn keep(&mut self, hex: &str, record: &mut dyn Read) -> io::Result<File> {
        let mut bytes = Vec::new();
        record.read_to_end(&mut bytes)?;
        let kept = file(&bytes);
        self.0.lock().unwrap().insert(hex.to_owned(), bytes);
        Ok(kept)
    }
}

impl Memory {
    fn bodies(&self) -> Bodies {
        let kept = self.0.clone();
        Arc::new(move |hex| Ok(kept.lock().unwrap().get(hex).map(|bytes| file(bytes))))
    }

    fn open(&self, of: &File) -> Wacz {
        Wacz::open_with(of.try_clone().unwrap(), self.bodies()).unwrap()
    }
}

const HTML: [(&str, &str); 1] = [("content-type", "text/html")];

/// A page with a long script, a long picture, and what is never shared.
fn page(visit: &str) -> File {
    recorded(|recording| {
        let html = format!("<html>{visit}</html>");
        add(recording, &get("https://page.test/", 200, &HTML), html.as_bytes());
        let script = [("content-type", "text/javascript"), ("x-visit", visit)];
        add(recording, &get("https://page.test/a.js", 200, &script), &noise(9_000));
        add(recording, &get("https://page.test/b.js", 200, &script), &noise(9_000));
        let cookie = [("set-cookie", "a=1")];
        add(recording, &get("https://page.test/own", 200, &cookie), &noise(9_001));
        add(recording, &get("https://page.test/gone", 404, &HTML), &noise(9_002));
        add(recording, &post("https://page.test/api", b"a=1"), &noise(9_003));
        let picture = noise(20_000);
        let time = about().created;
        recording.add_resource("urn:view:https://page.test/", "image/png", time, &picture).unwrap();
        let letters = noise(6_000).into_iter().map(|byte| char::from(b'a' + byte % 26));
        let text: String = letters.collect();
        recording
            .add_resource("urn:text:https://page.test/", "text/plain", time, text.as_bytes())
            .unwrap();
        recording.add_page(Page {
            url: "https://page.test/".to_owned(),
            title: "A page".to_owned(),
            time,
            text: Some(text),
        });
    })
}

fn shared(from: &File, shelf: &mut Memory) -> (File, Option<Shared>) {
    let to = tempfile::tempfile().unwrap();
    let done = share(from.try_clone().unwrap(), to.try_clone().unwrap(), shelf).unwrap();
    (to, done)
}

type Answer = (String, String, u16, Vec<(String, String)>, Vec<u8>);

fn answers(wacz: &Wacz) -> Vec<Answer> {
    assert_eq!(wacz.faults(), []);
    let of = |entry: &crate::wacz::Entry| {
        let answer = wacz.read(entry).unwrap();
        let mut body = Vec::new();
        { answer.body }.read_to_end(&mut body).unwrap();
        let framing = |name: &str| name.eq_ignore_ascii_case("content-length");
        let headers = answer.headers.into_iter();
        let headers = headers.filter(|(name, _)| !framing(name)).collect();
        let (url, method) = (entry.url.clone(), entry.method.clone());
        (url, method, answer.status, headers, body)
    };
    wacz.entries().iter().map(of).collect()
}

#[test]
fn repeated_bodies_are_stored_once_and_every_answer_stays() {
    let mut shelf = Memory::default();
    let (first, second) = (page("one"), page("two"));
    let (first_small, done) = shared(&first, &mut shelf);
    let done = done.unwrap();
    // The two scripts are one body.
    assert_eq!((done.bodies, done.known), (5, 1));
    let (second_small, done) = shared(&second, &mut shelf);
    let done = done.unwrap();
    assert_eq!((done.bodies, done.known), (5, 5));
    assert_eq!(done.before, second.metadata().unwrap().len());
    assert_eq!(done.after, second_small.metadata().unwrap().len());
    assert!(done.after + 45_000 < done.before, "{done:?}");
    assert_eq!(shelf.0.lock().unwrap().len(), 4);
    for (whole, small) in [(&first, &first_small), (&second, &second_small)] {
        let (before, after) = (Wacz::open(whole.try_clone().unwrap()).unwrap(), shelf.open(small));
        assert!(answers(&before) == answers(&after));
        let (page, listed) = (&before.pages()[0], &after.pages()[0]);
        assert_eq!((&page.url, page.time, &page.title), (&listed.url, listed.time, &listed.title));
        assert_eq!((&listed.text, after.text_of(listed)), (&None, page.text.clone()));
        assert_eq!(after.shared_bodies().len(), 4);
        let report = check_with(small.try_clone().unwrap(), shelf.bodies()).unwrap();
        assert_eq!(report.flaws, []);
    }
    // Headers of the second visit are its own.
    let after = shelf.open(&second_small);
    let script = answers(&after).into_iter().find(|answer| answer.0.ends_with("a.js"));
    let visit = ("x-visit".to_owned(), "two".to_owned());
    assert!(script.unwrap().3.contains(&visit));
}

#[test]
fn posted_response_is_paired_with_its_request() {
    let mut shelf = Memory::default();
    let (small, _) = shared(&page("one"), &mut shelf);
    let wacz = shelf.open(&small);
    let api = wacz.entries().iter().find(|entry| entry.method == "POST");
    let api = api.unwrap();
    assert_eq!((api.media_type.as_str(), api.posted.as_deref()), (REVISIT, Some("a=1")));
}

#[test]
fn recording_without_long_bodies_stays() {
    let mut shelf = Memory::default();
    let from = recorded(|recording| {
        add(recording, &get("https://page.test/", 200, &HTML), b"<html>");
    });
    let (to, done) = shared(&from, &mut shelf);
    assert_eq!((done, to.metadata().unwrap().len()), (None, 0));
    // One whose bodies are shared has no others.
    let (small, _) = shared(&page("one"), &mut shelf);
    assert_eq!(shared(&small, &mut shelf).1, None);
}

#[test]
fn record_with_another_body_than_it_claims_is_not_shared() {
    let mut shelf = Memory::default();
    let good = page("one");
    let body = digest::of(&noise(20_000));
    let other = digest::of(&noise(9_000));
    // Heads of long records are stored without compression, so that their digests can be exchanged.
    let mut forged = bytes(&good);
    let places: Vec<usize> = forged
        .windows(body.len())
        .enumerate()
        .filter_map(|(at, text)| (text == body.as_bytes()).then_some(at))
        .collect();
    assert!(!places.is_empty());
    for at in places {
        forged[at..at + other.len()].copy_from_slice(other.as_bytes());
    }
    let to = tempfile::tempfile().unwrap();
    // The sum of the gzip member differs as well, and so nothing is shared.
    let refused = share(file(&forged), to, &mut shelf);
    assert!(refused.is_err(), "{refused:?}");
    let kept = shelf.0.lock().unwrap().clone();
    for (hex, record) in kept {
        assert!(origin(file(&record), &format!("sha256:{hex}")).is_some(), "{hex}");
    }
}

#[test]
fn damaged_body_is_kept_again_and_found_by_the_check() {
    let mut shelf = Memory::default();
    let (small, _) = shared(&page("one"), &mut shelf);
    let picture = digest::of(&noise(20_000));
    let hex = digest::hex(&picture).unwrap().to_owned();
    let whole = shelf.0.lock().unwrap()[&hex].clone();
    let mut damaged = whole.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    shelf.0.lock().unwrap().insert(hex.clone(), damaged);
    let check = |shelf: &Memory| {
        let report = check_with(small.try_clone().unwrap(), shelf.bodies()).unwrap();
        report.flaws.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let flaws = check(&shelf);
    assert!(flaws.len() == 1 && flaws[0].contains("urn:view:"), "{flaws:?}");
    let done = shared(&page("two"), &mut shelf).1.unwrap();
    assert_eq!((done.bodies, done.known), (5, 4));
    assert!(shelf.0.lock().unwrap()[&hex] != whole, "the record of the second visit is kept");
    assert_eq!(check(&shelf), <Vec<String>>::new());
    shelf.0.lock().unwrap().remove(&hex);
    let flaws = check(&shelf);
    assert!(flaws.len() == 1 && flaws[0].contains("refers to a missing one"), "{flaws:?}");
}

#[test]
fn merged_file_has_each_shared_body_once_and_needs_no_other_file() {
    let mut shelf = Memory::default();
    let (first, second) = (page("one"), page("two"));
    let small: Vec<File> =
        [&first, &second].into_iter().map(|whole| shared(whole, &mut shelf).0).collect();
    let to = tempfile::tempfile().unwrap();
    let scratch = || tempfile::tempfile();
    let mut merge = Merge::create(to.try_clone().unwrap(), &about(), &scratch).unwrap();
    for one in &small {
        merge.add(&shelf.open(one)).unwrap();
    }
    merge.finish().unwrap();
    assert_eq!(check(to.try_clone().unwrap()).unwrap().flaws, []);
    // The second alone: the requests of the bodies are in the first.
    let alone = tempfile::tempfile().unwrap();
    let mut merge = Merge::create(alone.try_clone().unwrap(), &about(), &scratch).unwrap();
    merge.add(&shelf.open(&small[1])).unwrap();
    merge.finish().unwrap();
    assert_eq!(check(alone).unwrap().flaws, []);
    let merged = Wacz::open(to.try_clone().unwrap()).unwrap();
    assert!(merged.shared_bodies().is_empty());
    let all = answers(&merged);
    for whole in [&first, &second] {
        for answer in answers(&Wacz::open(whole.try_clone().unwrap()).unwrap()) {
            assert!(all.contains(&answer), "{} {:?}", answer.0, answer.3);
        }
    }
    let bytes = to.metadata().unwrap().len();
    let both = first.metadata().unwrap().len() + second.metadata().unwrap().len();
    assert!(bytes + 40_000 < both, "{bytes} of {both}");
}

#[test]
fn unfinished_and_foreign_files_are_refused() {
    let mut shelf = Memory::default();
    let whole = bytes(&page("one"));
    let to = || tempfile::tempfile().unwrap();
    for cut in [0, 100, whole.len() / 2, whole.len() - 10] {
        let done = share(file(&whole[..cut]), to(), &mut shelf);
        assert!(done.is_err(), "{cut}: {done:?}");
    }
    let warc = &whole[package::DATA_BEGIN as usize..];
    assert!(share(file(warc), to(), &mut shelf).is_err());
}
