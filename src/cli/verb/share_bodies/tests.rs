use super::*;
use archivist_plugin::files::remove::remove_tree;
use archivist_warc::exchange::Exchange;
use archivist_warc::wacz::{About, Page, Recording};
use jiff::Timestamp;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

struct Bed {
    top: tempfile::TempDir,
}

fn body(number: u8) -> Vec<u8> {
    let mut state = u32::from(number) + 1;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    std::iter::repeat_with(&mut next).take(5_000).collect()
}

const URL: &str = "https://a.test/";

impl Bed {
    fn new() -> Bed {
        let top = tempfile::tempdir().unwrap();
        Bed { top }
    }

    fn path(&self, below: &str) -> PathBuf {
        self.top.path().join(below)
    }

    /// A snapshot whose recording has these bodies.
    fn page(&self, name: &str, numbers: &[u8]) -> PathBuf {
        let snapshot = self.path(name);
        fs::create_dir_all(snapshot.join("wacz")).unwrap();
        let mut options = File::options();
        let options = options.read(true).write(true).create_new(true);
        let file = options.open(snapshot.join("wacz/page.wacz")).unwrap();
        let about = About { main_url: URL.to_owned(), ..About::default() };
        let mut recording = Recording::create(file, &about).unwrap();
        for number in numbers {
            let exchange = Exchange {
                url: format!("{URL}{number}"),
                method: "GET".to_owned(),
                time: Timestamp::UNIX_EPOCH,
                request: Vec::new(),
                posted: None,
                status: 200,
                reason: "OK".to_owned(),
                response: vec![("x-page".to_owned(), name.to_owned())],
                protocols: Vec::new(),
                address: None,
                kind: "image".to_owned(),
                truncated: None,
            };
            let body = body(*number);
            let length = body.len() as u64;
            recording.add(&exchange, &mut &body[..], length).unwrap();
        }
        recording.add_page(Page {
            url: format!("{URL}{}", numbers[0]),
            title: String::new(),
            time: Timestamp::UNIX_EPOCH,
            text: None,
        });
        recording.finish().unwrap();
        snapshot
    }

    fn share(&self, snapshot: &Path) -> Result<Exit, Failure> {
        run(&ShareBodiesArgs { pool: self.path(".bodies/0-"), snapshot: snapshot.to_owned() })
    }

    /// A page whose bodies are shared.
    fn shared(&self, name: &str, numbers: &[u8]) -> PathBuf {
        let snapshot = self.page(name, numbers);
        self.share(&snapshot).unwrap();
        snapshot
    }

    /// The file of a body in the archive.
    fn kept(&self, number: u8) -> PathBuf {
        let hex = hex(number);
        let shelf = self.path(".bodies/0-").join(&hex[..2]);
        shelf.join(bodies::name(&hex))
    }
}

fn hex(number: u8) -> String {
    let digest = archivist_warc::digest::of(&body(number));
    digest.trim_start_matches("sha256:").to_owned()
}

fn assert_whole(snapshot: &Path, numbers: &[u8]) {
    let path = snapshot.join("wacz/page.wacz");
    let file = || File::open(&path).unwrap();
    assert_eq!(bodies::check(&path, file()).unwrap().flaws, []);
    let wacz = bodies::open(&path, file()).unwrap();
    let name = snapshot.file_name().unwrap().to_str().unwrap();
    for number in numbers {
        let url = format!("{URL}{number}");
        let entry = wacz.entries().iter().find(|entry| entry.url == url);
        let mut answer = wacz.read(entry.unwrap()).unwrap();
        let mut found = Vec::new();
        answer.body.read_to_end(&mut found).unwrap();
        assert!(found == body(*number), "{number}");
        let own = ("x-page".to_owned(), name.to_owned());
        assert!(answer.headers.contains(&own), "{:?}", answer.headers);
    }
}

fn bodies_of(snapshot: &Path) -> Vec<PathBuf> {
    let directory = snapshot.join("wacz/bodies");
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn body_has_a_name_in_each_snapshot_that_needs_it() {
    let bed = Bed::new();
    let first = bed.shared("s1", &[1, 2]);
    let second = bed.shared("s2", &[2, 3]);
    assert_whole(&first, &[1, 2]);
    assert_whole(&second, &[2, 3]);
    let links = |number| fs::metadata(bed.kept(number)).unwrap().nlink();
    assert_eq!([1, 2, 3].map(links), [2, 3, 2]);
    let found = fs::metadata(bed.kept(2)).unwrap();
    assert_eq!(found.mode() & 0o777, BODY_MODE, "hooks write to no body");
    for made in [".bodies", ".bodies/0-"] {
        let mode = fs::metadata(bed.path(made)).unwrap().mode();
        assert_eq!(mode & 0o777, POOL_MODE, "{made}");
    }
    // The first snapshot is gone in whatever way; the second needs nothing of it.
    remove_tree(&first).unwrap();
    remove_tree(&bed.path(".bodies")).unwrap();
    assert_whole(&second, &[2, 3]);
}

#[test]
fn second_run_changes_nothing() {
    let bed = Bed::new();
    let page = bed.shared("s1", &[1]);
    let before = fs::metadata(page.join("wacz/page.wacz")).unwrap();
    bed.share(&page).unwrap();
    let after = fs::metadata(page.join("wacz/page.wacz")).unwrap();
    assert_eq!(before.ino(), after.ino());
    assert_whole(&page, &[1]);
    assert_eq!(bodies_of(&page).len(), 1);
}

#[test]
fn new_recording_of_a_page_loses_the_bodies_of_the_earlier_one() {
    let bed = Bed::new();
    let page = bed.shared("s1", &[1, 2]);
    fs::remove_file(page.join("wacz/page.wacz")).unwrap();
    bed.page("s1", &[2, 3]);
    bed.share(&page).unwrap();
    assert_whole(&page, &[2, 3]);
    assert_eq!(bodies_of(&page).len(), 2);
    assert_eq!(fs::metadata(bed.kept(1)).unwrap().nlink(), 1);
}

#[test]
fn damaged_body_of_the_archive_is_not_taken() {
    let bed = Bed::new();
    bed.shared("s1", &[1]);
    let kept = bed.kept(1);
    fs::set_permissions(&kept, fs::Permissions::from_mode(0o600)).unwrap();
    let mut bytes = fs::read(&kept).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&kept, bytes).unwrap();
    let second = bed.shared("s2", &[1]);
    assert_whole(&second, &[1]);
    // The next one takes the body that is whole.
    let third = bed.shared("s3", &[1]);
    assert_whole(&third, &[1]);
    assert_eq!(fs::metadata(&kept).unwrap().nlink(), 3);
}

#[test]
fn what_hooks_left_in_the_way_is_not_followed() {
    let bed = Bed::new();
    let page = bed.page("s1", &[1]);
    let outside = bed.path("outside");
    fs::create_dir(&outside).unwrap();
    symlink(&outside, page.join("wacz/bodies")).unwrap();
    symlink(outside.join("part"), page.join("wacz").join(PART)).unwrap();
    bed.share(&page).unwrap();
    assert_whole(&page, &[1]);
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    // A link instead of the recording.
    let other = bed.page("s2", &[2]);
    fs::rename(other.join("wacz/page.wacz"), bed.path("moved")).unwrap();
    symlink(bed.path("moved"), other.join("wacz/page.wacz")).unwrap();
    assert!(bed.share(&other).is_err());
    assert_eq!(bodies_of(&other), <Vec<PathBuf>>::new());
}

#[test]
fn recording_stays_whole_if_nothing_can_be_kept() {
    let bed = Bed::new();
    let page = bed.page("s1", &[1, 2]);
    let before = fs::read(page.join("wacz/page.wacz")).unwrap();
    fs::write(bed.path(".bodies"), "").unwrap();
    let error = bed.share(&page).err().unwrap();
    assert!(error.message().contains("failed to share bodies of"));
    assert!(fs::read(page.join("wacz/page.wacz")).unwrap() == before);
    let names = fs::read_dir(page.join("wacz")).unwrap();
    assert_eq!(names.count(), 1, "nothing is left but the recording");
    // A snapshot without a recording, or without the plugin.
    fs::create_dir_all(bed.path("s2/wacz")).unwrap();
    fs::create_dir_all(bed.path("s3")).unwrap();
    for name in ["s2", "s3"] {
        bed.share(&bed.path(name)).unwrap();
    }
}
