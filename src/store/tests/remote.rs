//! The program with stores on other hosts.

mod bed;
mod hostile;

use archivist_core::store::{StoredObject, Task};
use bed::Bed;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::fs;
use std::time::Duration;

/// A page goes to the store, its files are removed, and come back.
fn there_and_back(bed: &Bed) {
    let tested = bed.run(Task::Test, None);
    assert_eq!(tested.error, None);
    let object = bed.run(Task::Put, None).object.unwrap();
    assert_eq!(bed.run(Task::Put, None).object.as_ref(), Some(&object), "it is there");
    assert_eq!(bed.run(Task::Drop, Some(&object)).error, None);
    assert!(!bed.page().join("wget").exists());
    assert_eq!(bed.run(Task::Get, Some(&object)).error, None);
    assert_eq!(fs::read(bed.page().join("wget/warc.gz")).unwrap(), vec![7; 3_000_000]);
    let other = StoredObject { name: object.name.replace("s7-", "s7-0"), ..object.clone() };
    let record = bed.run(Task::Drop, Some(&other));
    assert!(record.differs, "{record:?}");
    assert!(bed.page().join("wget").exists());
    page_of_a_new_database(bed, &object);
}

/// A page has the path of one that an earlier database copied: each row has the copy of its own page.
fn page_of_a_new_database(bed: &Bed, earlier: &StoredObject) {
    let index = bed.page().join("index.html");
    let text = fs::read_to_string(&index).unwrap();
    fs::write(&index, "<p>another page").unwrap();
    let later = bed.run(Task::Put, None).object.unwrap();
    for (copy, text) in [(earlier, text.as_str()), (&later, "<p>another page")] {
        assert_eq!(bed.run(Task::Get, Some(copy)).error, None);
        assert_eq!(fs::read_to_string(&index).unwrap(), text);
    }
}

#[test]
fn page_goes_to_a_host_over_ssh_and_back() {
    let Some(bed) = Bed::ssh() else { return };
    there_and_back(&bed);
    let directory = bed.place.path().join("remote/pages/20261123/a.test");
    let names: Vec<_> = fs::read_dir(&directory).unwrap().collect();
    // That of the page, and that of the other page of its path.
    assert_eq!(names.len(), 2, "{names:?}");
}

#[test]
fn page_goes_to_openssh_and_back() {
    let Some(bed) = Bed::openssh() else { return };
    there_and_back(&bed);
}

#[test]
fn page_goes_to_s3_and_back() {
    let Some(bed) = Bed::s3() else { return };
    there_and_back(&bed);
}

#[test]
fn page_goes_to_another_server_of_s3_and_back() {
    let Some(bed) = Bed::s3rver() else { return };
    there_and_back(&bed);
}

/// The keys of another user, of another host, and none.
#[test]
fn wrong_keys_are_errors_and_change_nothing() {
    let Some(bed) = Bed::ssh() else { return };
    let keys = bed.place.path().join("keys");
    let fails = |part: &str| {
        let record = bed.run(Task::Put, None);
        let error = record.error.unwrap();
        assert!(error.contains(part) && !record.differs, "{error}");
    };
    let key = keys.join("archivist.store.key");
    let own = fs::read(&key).unwrap();
    fs::copy(keys.join("host"), &key).unwrap();
    fails("unable to authenticate");
    fs::write(&key, own).unwrap();
    let hosts = keys.join("archivist.store.hosts");
    let own = fs::read_to_string(keys.join("archivist.store.key.pub")).unwrap();
    let known = fs::read_to_string(&hosts).unwrap();
    let address = known.split(' ').next().unwrap();
    fs::write(&hosts, format!("{address} {own}")).unwrap();
    fails("key mismatch");
    fs::remove_file(&hosts).unwrap();
    fails("/etc/credstore/archivist.store.hosts");
    assert_eq!(fs::read_dir(bed.place.path().join("remote")).unwrap().count(), 0);
    assert!(bed.page().join("wget/warc.gz").exists());
}

/// Kills at several moments of a transfer: no visible name is incomplete, and the next one succeeds.
#[test]
fn killed_transfer_leaves_nothing_visible() {
    let Some(bed) = Bed::ssh() else { return };
    let directory = bed.place.path().join("remote/pages/20261123/a.test");
    let names = || -> Vec<String> {
        let list = fs::read_dir(&directory).into_iter().flatten();
        list.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    for part in 0..6 {
        let mut child = bed.start(Task::Put, None);
        std::thread::sleep(Duration::from_millis(part * 120));
        // With rclone, as systemd kills the whole unit.
        let group = Pid::from_raw(i32::try_from(child.id()).unwrap());
        let _ = killpg(group, Signal::SIGKILL);
        let _ = child.wait();
        for name in names().iter().filter(|name| name.ends_with(".tar")) {
            let size = fs::metadata(directory.join(name)).unwrap().len();
            assert!(size > 3_000_000, "{name} has {size} bytes");
        }
    }
    assert_eq!(bed.run(Task::Put, None).error, None);
    assert_eq!(names().len(), 1, "{:?}", names());
}
