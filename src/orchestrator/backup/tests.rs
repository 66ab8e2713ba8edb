//! Backups of a small data directory, and what a restoration makes of them.

use super::complete::{self, Complete};
use super::restore::restore;
use super::take::take;
use super::*;
use crate::database::Database;
use crate::runner::locks::{Lock, RunnerLocks};
use archivist_config::UserDirs;
use archivist_core::model::{CrawlId, Owner, SnapshotId, Time};
use archivist_plugin::files::remove::remove_tree;
use archivist_plugin::sample::{deep, depths, poor};
use archivist_shared::deleted;
use nix::unistd::geteuid;
use rusqlite::Connection;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

const DAY: &str = "archive/20261125/a.test";
/// Id of the user without rights.
const UNPRIVILEGED: u32 = 65534;

struct Bed {
    top: tempfile::TempDir,
    scope: Scope,
}

impl Bed {
    /// Pages s1, which is sealed, and s2, whose hooks run.
    fn new() -> Bed {
        Bed::in_directory(tempfile::tempdir().unwrap())
    }

    fn in_directory(top: tempfile::TempDir) -> Bed {
        let scope = Scope {
            user: true,
            dirs: UserDirs {
                config: "/config".into(),
                data: "/data".into(),
                runtime: "/run".into(),
            },
            ..Scope::system(top.path())
        };
        let bed = Bed { top, scope };
        for (path, text) in [
            (format!("{DAY}/s1/wget/index.html"), "page one"),
            (format!("{DAY}/s1/wget/odd\nname\\"), "odd"),
            (format!("{DAY}/s1/.identity.json"), "{}"),
            (format!("{DAY}/s2/wget/index.html"), "half of page t"),
            (format!("{DAY}/c1/index.jsonl"), "{}"),
            ("archive/.run/1/tmp".to_owned(), "temporary"),
            ("archive/index.html".to_owned(), "list"),
            ("personas/work/Cookies".to_owned(), "secret"),
            ("lib/bin/tool".to_owned(), "#!/bin/sh"),
        ] {
            bed.write(&path, text);
        }
        symlink("bin/tool", bed.data().join("lib/link")).unwrap();
        let config = bed.top.path().join("config/archivist/archivist.conf.d");
        fs::create_dir_all(&config).unwrap();
        fs::write(config.join("60-set-secrets.conf"), "[Config]\nKEY=1\n").unwrap();
        let private = Permissions::from_mode(0o600);
        fs::set_permissions(config.join("60-set-secrets.conf"), private).unwrap();
        let mut database = Database::open(&bed.database()).unwrap();
        database.take_over("unit", "boot", Time(1)).unwrap();
        drop(database);
        RunnerLocks::open(&bed.data()).unwrap();
        let directory = bed.data().join(DAY).join("c1");
        bed.sql(&format!(
            "INSERT INTO host (id, name) VALUES (1, 'a.test');
             INSERT INTO crawl (id, status, url, max_depth, plugins, config, created_at, users, directory)
                 VALUES (1, 'started', 'http://a.test/', 0, '[]', '{{}}', 1, '[]', '{}');",
            directory.display()
        ));
        bed.page(1, "sealed", "succeeded");
        bed.page(2, "started", "succeeded");
        bed
    }

    fn data(&self) -> PathBuf {
        self.scope.data_dir()
    }

    fn database(&self) -> PathBuf {
        self.data().join(DATABASE)
    }

    fn backups(&self) -> PathBuf {
        self.top.path().join("backups")
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.data().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn sql(&self, sql: &str) {
        let connection = Connection::open(self.database()).unwrap();
        connection.execute_batch(sql).unwrap();
    }

    fn number(&self, sql: &str) -> i64 {
        let connection = Connection::open(self.database()).unwrap();
        connection.query_row(sql, [], |row| row.get(0)).unwrap()
    }

    fn text(&self, sql: &str) -> Option<String> {
        let connection = Connection::open(self.database()).unwrap();
        connection.query_row(sql, [], |row| row.get(0)).unwrap()
    }

    fn page(&self, id: i64, status: &str, result: &str) {
        let directory = self.data().join(DAY).join(format!("s{id}"));
        let directory = directory.display();
        self.sql(&format!(
            "INSERT INTO snapshot
                 (id, crawl_id, host_id, url, url_key, depth, status, created_at, directory)
                 VALUES ({id}, 1, 1, 'http://u:p@a.test/{id}', 'test,a)/{id}', 0, '{status}', 1, '{directory}');
             INSERT INTO result (owner, crawl_id, snapshot_id, plugin, hook, status)
                 VALUES ('s{id}', 1, {id}, 'wget', 'wget', '{result}');"
        ));
    }

    fn take(&self) -> PathBuf {
        let code = take(&self.scope, &self.backups(), None).unwrap();
        assert_eq!(format!("{code:?}"), format!("{:?}", ExitCode::SUCCESS));
        complete::backups(&self.backups()).unwrap().pop().unwrap()
    }

    fn restore(&self) -> Result<()> {
        restore(&self.scope, &self.backups(), What::Data, Deleted::Ask).map(|_| ())
    }

    /// Removes everything that a lost disk has.
    fn lose(&self) {
        remove_tree(&self.data()).unwrap();
    }

    /// Content and mode of all files below a path of the data directory.
    fn files(&self, below: &str) -> BTreeMap<PathBuf, (Vec<u8>, u32)> {
        let mut found = BTreeMap::new();
        let mut open = vec![self.data().join(below)];
        while let Some(directory) = open.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                let about = fs::symlink_metadata(&path).unwrap();
                if about.is_dir() {
                    found.insert(path.clone(), (Vec::new(), about.mode()));
                    open.push(path);
                } else if about.is_symlink() {
                    let target = fs::read_link(&path).unwrap();
                    found.insert(path, (target.into_os_string().into_encoded_bytes(), 0));
                } else {
                    let content = fs::read(&path).unwrap();
                    found.insert(path, (content, about.mode()));
                }
            }
        }
        found
    }
}

/// What the lines for sha256sum(1) say of the files of a backup.
fn assert_sums(backup: &Path) {
    let sums = fs::read_to_string(backup.join(SUMS)).unwrap();
    assert!(sums.lines().count() > 5, "{sums}");
    for line in sums.lines() {
        let (is_escaped, line) = match line.strip_prefix('\\') {
            Some(line) => (true, line.replace("\\n", "\n").replace("\\\\", "\\")),
            None => (false, line.to_owned()),
        };
        let (sum, name) = line.split_once("  ").unwrap();
        assert_eq!(is_escaped, name.contains('\\'), "{name}");
        let content = fs::read(backup.join(name)).unwrap();
        let hash = Sha256::digest(content);
        let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hash, sum, "{name}");
    }
}

#[test]
fn backup_has_everything_but_what_runs() {
    let bed = Bed::new();
    let backup = bed.take();
    assert_sums(&backup);
    let has = |path: &str| backup.join(path).exists();
    assert!(has(&format!("data/{DAY}/s1/wget/index.html")) && has("data/personas/work/Cookies"));
    assert!(has(&format!("data/{DAY}/c1/index.jsonl")) && has(DATABASE));
    let secrets = backup.join("config/archivist.conf.d/60-set-secrets.conf");
    assert_eq!(secrets.metadata().unwrap().mode() & 0o777, 0o600);
    assert_eq!(backup.metadata().unwrap().mode() & 0o777, 0o700);
    for path in [
        &format!("data/{DAY}/s2"),
        "data/archive/.run",
        "data/runner.lock",
        "archivist.sqlite3-wal",
    ] {
        assert!(!has(path), "{path}");
    }
    let complete = Complete::read(&backup).unwrap().unwrap();
    let left_out = &complete.left_out[0];
    let named = (left_out.what.as_str(), left_out.url.as_str());
    assert_eq!(named, ("s2", "http://a.test/2"), "without the password");
    assert_eq!(complete.left_out.len(), 1);
}

#[test]
fn unchanged_files_are_not_read_again() {
    let bed = Bed::new();
    let first = bed.take();
    let one = format!("{DAY}/s1/wget/index.html");
    let other = format!("{DAY}/s1/.identity.json");
    // The same size and time of modification, as wget sets it from the answer of a server.
    let path = bed.data().join(&one);
    let modified = path.metadata().unwrap().modified().unwrap();
    fs::write(&path, "page two").unwrap();
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.set_modified(modified).unwrap();
    let second = bed.take();
    assert_sums(&second);
    let inode =
        |backup: &Path, path: &str| backup.join("data").join(path).metadata().unwrap().ino();
    assert_eq!(inode(&first, &other), inode(&second, &other));
    assert_ne!(inode(&first, &one), inode(&second, &one));
    let read = |backup: &Path| fs::read_to_string(backup.join("data").join(&one)).unwrap();
    assert_eq!((read(&first), read(&second)), ("page one".to_owned(), "page two".to_owned()));
    assert_ne!(inode(&second, &one), path.metadata().unwrap().ino(), "no link with the archive");
    take(&bed.scope, &bed.backups(), Some(1)).unwrap();
    let left = complete::backups(&bed.backups()).unwrap();
    assert_eq!(left.len(), 1);
    assert_sums(&left[0]);
}

/// Older versions sealed such pages, and hooks may write to the library.
#[test]
fn what_is_nested_too_deeply_is_left_out_and_named() {
    poor(module_path!(), "what_is_nested_too_deeply_is_left_out_and_named", || {
        for (levels, name) in depths() {
            let bed = Bed::in_directory(tempfile::tempdir_in("/dev/shm").unwrap());
            bed.page(3, "sealed", "succeeded");
            bed.write(&format!("{DAY}/s3/wget/z"), "kept");
            for (below, after) in [(format!("{DAY}/s3/wget"), "z"), ("lib/a/b/c/d".to_owned(), "z")]
            {
                bed.write(&format!("{below}/{after}"), "kept");
                deep(&bed.data().join(below), levels, &name);
            }
            // Its row is gone.
            let deleted = bed.data().join(DAY).join(".deleted-s9");
            fs::create_dir(&deleted).unwrap();
            deep(&deleted, levels, &name);
            let status = take(&bed.scope, &bed.backups(), None).unwrap();
            let fits = levels < 200 && levels * (name.len() + 1) < 2_900;
            let expected = if fits { ExitCode::SUCCESS } else { ExitCode::from(PARTLY) };
            assert_eq!(format!("{status:?}"), format!("{expected:?}"), "{levels} {}", name.len());
            let backup = complete::backups(&bed.backups()).unwrap().remove(0);
            assert_sums(&backup);
            for path in [format!("{DAY}/s3/wget/z"), "lib/a/b/c/d/z".to_owned()] {
                assert_eq!(fs::read_to_string(backup.join(DATA).join(path)).unwrap(), "kept");
            }
            assert!(!backup.join(DATA).join(DAY).join(".deleted-s9").exists());
            let complete = Complete::read(&backup).unwrap().unwrap();
            let left_out = complete.left_out.iter().filter(|left| left.why != "it is running");
            let left_out: Vec<_> = left_out.map(|left| left.what.clone()).collect();
            if fits {
                assert!(left_out.is_empty(), "{left_out:?}");
            } else {
                assert_eq!(left_out.len(), 2, "{left_out:?}");
                assert_eq!(left_out[0], "s3");
                assert!(left_out[1].starts_with("data/lib/a/b/c/d/"), "{left_out:?}");
            }
            remove_tree(&bed.data()).unwrap();
            bed.restore().unwrap();
            let restored = bed.data().join(DAY).join("s3/wget/z");
            assert_eq!(fs::read_to_string(restored).unwrap(), "kept");
        }
    });
}

#[test]
fn everything_is_restored_on_an_empty_disk() {
    let bed = Bed::new();
    let sealed = format!("{DAY}/s1");
    let parts = [sealed.as_str(), "lib", "personas"];
    let before = parts.map(|part| bed.files(part));
    bed.take();
    bed.lose();
    bed.restore().unwrap();
    assert_eq!(parts.map(|part| bed.files(part)), before);
    assert!(!bed.data().join(DAY).join("s2").exists());
    assert!(!bed.data().join(RESTORING).exists());
    // The page that ran starts again, with all of its hooks.
    assert_eq!(bed.text("SELECT status FROM snapshot WHERE id = 2").unwrap(), "started");
    assert_eq!(bed.text("SELECT status FROM result WHERE owner = 's2'").unwrap(), "queued");
    assert_eq!(bed.text("SELECT status FROM result WHERE owner = 's1'").unwrap(), "succeeded");
    Database::open(&bed.database()).unwrap();
}

#[test]
fn what_was_there_is_moved_away_and_its_ids_are_not_given_again() {
    let bed = Bed::new();
    bed.take();
    bed.page(90, "sealed", "succeeded");
    bed.write(&format!("{DAY}/s90/wget/index.html"), "later");
    bed.restore().unwrap();
    assert!(!bed.data().join(DAY).join("s90").exists());
    assert_eq!(bed.number("SELECT count(*) FROM snapshot WHERE id = 90"), 0);
    assert_eq!(bed.number("SELECT seq FROM sqlite_sequence WHERE name = 'snapshot'"), 90);
    let names = fs::read_dir(bed.data()).unwrap();
    let names = names.map(|entry| entry.unwrap().path());
    let moved = |path: &PathBuf| path.to_string_lossy().contains(BEFORE);
    let moved: Vec<PathBuf> = names.filter(moved).collect();
    assert_eq!(moved.len(), 1);
    let later = moved[0].join(DAY).join("s90/wget/index.html");
    assert_eq!(fs::read_to_string(later).unwrap(), "later");
    let old = Connection::open(moved[0].join(DATABASE)).unwrap();
    let count = "SELECT count(*) FROM snapshot WHERE id = 90";
    let count: i64 = old.query_row(count, [], |row| row.get(0)).unwrap();
    assert_eq!(count, 1);
    // It is no part of the next backup.
    let next = bed.take();
    let name = moved[0].file_name().unwrap();
    assert!(!next.join("data").join(name).exists());
}

const PAGE: Owner = Owner::Snapshot(SnapshotId(1));

#[test]
fn deleted_page_is_deleted_again() {
    for what in [What::Data, What::Database] {
        let bed = Bed::new();
        let backup = bed.take();
        deleted::add(&bed.data(), &[PAGE], Time(7)).unwrap();
        restore(&bed.scope, &bed.backups(), what, Deleted::Again).unwrap();
        assert_eq!(bed.number("SELECT sum(id) FROM snapshot"), 2);
        assert_eq!(bed.number("SELECT count(*) FROM result WHERE owner = 's1'"), 0);
        let removed = bed.text("SELECT directory FROM deletion WHERE owner = 's1'");
        let directory = bed.data().join(DAY).join("s1");
        assert_eq!(removed.as_deref(), directory.to_str(), "its files are removed later");
        assert_eq!(bed.number("SELECT count(*) FROM crawl"), 1);
        assert!(deleted::read(&bed.data()).unwrap().contains_key(&PAGE));
        assert!(!backup.join(DATA).join(deleted::FILE).exists());
    }
}

#[test]
fn pages_of_a_deleted_crawl_are_deleted_again() {
    let bed = Bed::new();
    bed.take();
    deleted::add(&bed.data(), &[Owner::Crawl(CrawlId(1))], Time(7)).unwrap();
    restore(&bed.scope, &bed.backups(), What::Data, Deleted::Again).unwrap();
    for table in ["crawl", "snapshot", "result"] {
        assert_eq!(bed.number(&format!("SELECT count(*) FROM {table}")), 0, "{table}");
    }
    assert_eq!(bed.number("SELECT count(*) FROM deletion"), 3);
}

#[test]
fn deleted_page_that_is_kept_is_not_named_again() {
    let bed = Bed::new();
    bed.take();
    let other = Owner::Snapshot(SnapshotId(9));
    let later = Owner::Snapshot(SnapshotId(2));
    deleted::add(&bed.data(), &[PAGE, other], Time(7)).unwrap();
    // Another page had the number.
    deleted::add(&bed.data(), &[later], Time(0)).unwrap();
    restore(&bed.scope, &bed.backups(), What::Data, Deleted::Keep).unwrap();
    assert_eq!(bed.number("SELECT count(*) FROM snapshot"), 2);
    let known = deleted::read(&bed.data()).unwrap();
    assert_eq!(Vec::from_iter(known), [(later, 0), (other, 7)]);
}

#[test]
fn database_alone_is_restored_while_the_archive_stays() {
    let bed = Bed::new();
    let backup = bed.take();
    bed.write(&format!("{DAY}/s90/wget/index.html"), "later");
    bed.page(90, "sealed", "succeeded");
    let before = bed.files("archive");
    // What is not restored need not be intact.
    fs::remove_file(backup.join("data/lib/bin/tool")).unwrap();
    restore(&bed.scope, &bed.backups(), What::Database, Deleted::Ask).unwrap();
    assert!(bed.files("archive") == before);
    assert_eq!(bed.number("SELECT count(*) FROM snapshot WHERE id = 90"), 0);
    assert_eq!(bed.number("SELECT seq FROM sqlite_sequence WHERE name = 'snapshot'"), 90);
    assert!(bed.data().join("lib/bin/tool").exists());
}

#[test]
fn damaged_backup_is_refused_and_names_its_file() {
    let bed = Bed::new();
    let backup = bed.take();
    let page = format!("data/{DAY}/s1/wget/index.html");
    for (path, named) in [
        (page.as_str(), page.as_str()),
        (DATABASE, DATABASE),
        (INDEX, INDEX),
        ("config/archivist.conf.d/60-set-secrets.conf", "60-set-secrets.conf"),
    ] {
        let path = backup.join(path);
        let good = fs::read(&path).unwrap();
        let mut bad = good.clone();
        let middle = bad.len() / 2;
        bad[middle] ^= 1;
        fs::write(&path, bad).unwrap();
        let before = bed.files("");
        let error = bed.restore().unwrap_err().to_string();
        assert!(error.contains(named) && error.contains("damaged"), "{error}");
        assert!(bed.files("") == before, "nothing changed"); // too long to print
        fs::write(&path, good).unwrap();
    }
    fs::remove_file(backup.join(&page)).unwrap();
    let error = bed.restore().unwrap_err().to_string();
    assert!(error.contains(&format!("{page}: No such file")), "{error}");
}

#[test]
fn interrupted_backup_is_none() {
    let bed = Bed::new();
    let whole = bed.take();
    let partial = bed.backups().join(".20261125T000000Z.partial");
    fs::rename(&whole, &partial).unwrap();
    fs::remove_file(partial.join(COMPLETE)).unwrap();
    for from in [&partial, &bed.backups()] {
        let error = restore(&bed.scope, from, What::Data, Deleted::Ask).unwrap_err().to_string();
        assert!(error.contains("is no backup"), "{error}");
    }
    bed.take();
    assert!(!partial.exists(), "the next backup removes it");
}

#[test]
fn configuration_is_restored_if_it_is_asked_for() {
    let bed = Bed::new();
    bed.take();
    let path = bed.top.path().join("config/archivist/archivist.conf.d/60-set-secrets.conf");
    fs::write(&path, "[Config]\nKEY=2\n").unwrap();
    bed.restore().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "[Config]\nKEY=2\n");
    restore(&bed.scope, &bed.backups(), What::DataAndConfig, Deleted::Ask).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "[Config]\nKEY=1\n");
    assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
}

#[test]
fn working_orchestrator_and_foreign_directories_are_refused() {
    let bed = Bed::new();
    bed.take();
    let locks = RunnerLocks::open(&bed.data()).unwrap();
    assert!(locks.hold(Lock::Rank(3)));
    let error = bed.restore().unwrap_err().to_string();
    assert!(error.contains("an orchestrator works on it"), "{error}");
    let inside = bed.data().join("backups");
    let error = take(&bed.scope, &inside, None).unwrap_err().to_string();
    assert!(error.contains("outside of the data directory"), "{error}");
    let mut other = bed.scope.clone();
    other.instance = Some("news".to_owned());
    let error = restore(&other, &bed.backups(), What::Data, Deleted::Ask).unwrap_err().to_string();
    assert!(error.contains("is a backup of"), "{error}");
}

/// What a hook, or user archivist, can put into the archive.
#[test]
fn hostile_names_and_links_stay_what_they_are() {
    let bed = Bed::new();
    let secret = bed.top.path().join("shadow");
    fs::write(&secret, "root:x").unwrap();
    let page = bed.data().join(DAY).join("s1");
    symlink(&secret, page.join("passwords")).unwrap();
    symlink(bed.top.path(), page.join("outside")).unwrap();
    nix::unistd::mkfifo(&page.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let mut deep = page.clone();
    for _ in 0..150 {
        deep.push("d");
    }
    fs::create_dir_all(&deep).unwrap();
    let backup = bed.take();
    let copy = backup.join("data").join(DAY).join("s1");
    assert!(fs::symlink_metadata(copy.join("passwords")).is_err());
    assert!(!copy.join("pipe").exists());
    bed.lose();
    bed.restore().unwrap();
    assert_eq!(fs::read_link(page.join("passwords")).unwrap(), secret);
    assert!(deep.is_dir());
}

/// In a process that is not root's, which could read everything.
#[test]
fn page_that_cannot_be_copied_is_named_and_counts_as_incomplete() {
    let name = "page_that_cannot_be_copied_is_named_and_counts_as_incomplete";
    poor(module_path!(), name, || {
        if geteuid().is_root() {
            nix::unistd::setuid(UNPRIVILEGED.into()).unwrap();
        }
        let bed = Bed::in_directory(tempfile::tempdir_in("/dev/shm").unwrap());
        let closed = bed.data().join(DAY).join("s1/wget");
        fs::set_permissions(&closed, Permissions::from_mode(0o000)).unwrap();
        let code = take(&bed.scope, &bed.backups(), None).unwrap();
        assert_eq!(format!("{code:?}"), format!("{:?}", ExitCode::from(PARTLY)));
        bed.lose();
        bed.restore().unwrap();
        assert!(!bed.data().join(DAY).join("s1").exists());
        let reason = bed.text("SELECT reason FROM snapshot WHERE id = 1").unwrap();
        assert!(reason.contains("not in the backup"), "{reason}");
        assert_eq!(bed.text("SELECT status FROM result WHERE owner = 's1'").unwrap(), "failed");
    });
}

#[test]
fn archive_on_another_disk_stays_there() {
    let bed = Bed::new();
    let disk = bed.top.path().join("disk");
    fs::rename(bed.data().join(ARCHIVE), &disk).unwrap();
    symlink(&disk, bed.data().join(ARCHIVE)).unwrap();
    let backup = bed.take();
    assert_sums(&backup);
    let page = format!("{DAY}/s1/wget/index.html");
    assert_eq!(fs::read_to_string(backup.join("data").join(&page)).unwrap(), "page one");
    fs::write(bed.data().join(&page), "overwritten").unwrap();
    bed.restore().unwrap();
    assert!(bed.data().join(ARCHIVE).is_symlink());
    assert_eq!(fs::read_to_string(bed.data().join(&page)).unwrap(), "page one");
}
