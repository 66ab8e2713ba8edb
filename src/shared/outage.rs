//! Why a machine can do no work at all, apart from its archive ([`crate::archive`]) and from free space:
//! each start would fail, and none of the failures would be that of a page.

use crate::disk::FreeSpace;
use archivist_config::Scope;
use archivist_core::model::Time;
use nix::unistd::geteuid;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Clocks without a battery begin in 1970, or with the date of a file of the system. No archivist was
/// started before 2020, in milliseconds since 1970.
const CLOCK_MIN: Time = Time(1_577_836_800_000);
/// Free bytes of the file system of the runtime directory, for the input of units.
const RUN_BYTES_MIN: u64 = 1 << 20;
/// The same for inodes: each unit has a few files in `/run`.
const RUN_INODES_MIN: u64 = 200;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outage {
    pub what: String,
    pub fix: String,
}

impl Outage {
    fn new(what: String, fix: String) -> Option<Outage> {
        Some(Outage { what, fix })
    }
}

/// Returns why the clock cannot be right, if so. Pages would get directories of 1970, certificates would
/// not be valid yet, and all delays would end when the clock is set.
pub fn clock(now: Time) -> Option<Outage> {
    if now >= CLOCK_MIN {
        return None;
    }
    Outage::new(
        format!("the clock of the machine was not set: it is {now}"),
        "systemctl enable --now systemd-timesyncd, or: timedatectl set-time".to_owned(),
    )
}

/// Returns why the orchestrator cannot use its data directory, if so. A user's orchestrator creates it.
pub fn data_directory(scope: &Scope) -> Option<Outage> {
    let path = scope.data_dir();
    let shown = path.display();
    let owner = if scope.user { geteuid().as_raw() } else { 0 };
    match fs::metadata(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound && !scope.user => Outage::new(
            format!("the data directory '{shown}' does not exist; is its file system mounted?"),
            "mount its file system, or for a new one: systemd-tmpfiles --create archivist.conf"
                .to_owned(),
        ),
        Err(_) => None,
        Ok(found) if !found.is_dir() => Outage::new(
            format!("the data directory '{shown}' is no directory"),
            format!("move it away, then: systemd-tmpfiles --create archivist.conf ({shown})"),
        ),
        // Its owner could replace the database.
        Ok(found) if found.uid() != owner => Outage::new(
            format!(
                "the data directory '{shown}' belongs to uid {}, not to {owner}; is its file system mounted?",
                found.uid()
            ),
            format!("mount its file system, or: chown {owner} {shown}"),
        ),
        Ok(_) => None,
    }
}

/// Returns why no unit can get its input, if so.
pub fn runtime_directory(scope: &Scope) -> Option<Outage> {
    let path = scope.runtime_dir();
    let existing = path.ancestors().find(|path| path.is_dir())?;
    let space = FreeSpace::at(existing).ok()?;
    let what = lack_of_run(&path, &space)?;
    Outage::new(what, format!("see: df {0}; df -i {0}", existing.display()))
}

fn lack_of_run(path: &Path, space: &FreeSpace) -> Option<String> {
    let path = path.display();
    let few = space.inodes.filter(|free| *free < RUN_INODES_MIN);
    if space.is_read_only {
        Some(format!("the file system of '{path}' is read-only"))
    } else if space.bytes < RUN_BYTES_MIN {
        let free = space.bytes >> 10;
        Some(format!("the file system of '{path}' is full: {free} KiB are free"))
    } else {
        few.map(|free| format!("the file system of '{path}' has only {free} free inodes"))
    }
}

/// Returns whether the runtime directory was removed that systemd made for this process. Only another
/// process gets a new one.
pub fn has_lost_runtime_directory(scope: &Scope) -> bool {
    // In the mount namespace of the service, the path still leads to the removed directory.
    fs::metadata(scope.runtime_dir()).is_ok_and(|found| found.nlink() == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_before_2020_was_not_set() {
        let what = |now: i64| clock(Time(now)).map(|found| found.what);
        assert_eq!(
            what(0).as_deref(),
            Some("the clock of the machine was not set: it is 1970-01-01T00:00:00.000Z")
        );
        assert!(what(CLOCK_MIN.0 - 1).is_some());
        assert_eq!(what(CLOCK_MIN.0), None);
    }

    #[test]
    fn data_directory_is_missing_or_a_file() {
        let root = tempfile::tempdir().unwrap();
        let scope = Scope::system(root.path());
        let what = |scope: &Scope| data_directory(scope).map(|found| found.what);
        assert!(what(&scope).unwrap().contains("does not exist"));
        let own = Scope { user: true, ..scope.clone() };
        assert_eq!(what(&own), None, "the first start creates it");
        fs::create_dir_all(scope.data_dir().parent().unwrap()).unwrap();
        fs::write(scope.data_dir(), "").unwrap();
        assert!(what(&scope).unwrap().ends_with("is no directory"));
        fs::remove_file(scope.data_dir()).unwrap();
        fs::create_dir(scope.data_dir()).unwrap();
        let mut own = scope.clone();
        own.user = true;
        own.dirs.data = "/var/lib".into();
        assert_eq!(what(&own), None);
        let is_root = geteuid().is_root();
        assert_eq!(what(&scope).is_none(), is_root);
        if is_root {
            std::os::unix::fs::chown(scope.data_dir(), Some(1), None).unwrap();
            for scope in [&scope, &own] {
                assert!(what(scope).unwrap().contains("belongs to uid 1, not to 0"));
            }
        }
    }

    #[test]
    fn run_is_full_or_read_only() {
        let lack = |bytes, inodes, is_read_only| {
            let space = FreeSpace { bytes, inodes, is_read_only };
            let lack = lack_of_run(Path::new("/run/archivist"), &space);
            lack.map(|lack| lack.replace("the file system of '/run/archivist' ", ""))
        };
        assert_eq!(lack(RUN_BYTES_MIN, Some(RUN_INODES_MIN), false), None);
        assert_eq!(lack(RUN_BYTES_MIN, None, false), None);
        let said = |what: &str| Some(what.to_owned());
        assert_eq!(lack(5 << 10, None, false), said("is full: 5 KiB are free"));
        assert_eq!(lack(1 << 30, Some(7), false), said("has only 7 free inodes"));
        assert_eq!(lack(1 << 30, None, true), said("is read-only"));
    }

    #[test]
    fn removed_runtime_directory_is_noticed_where_it_is_mounted() {
        let root = tempfile::tempdir().unwrap();
        let scope = Scope::system(root.path());
        assert!(!has_lost_runtime_directory(&scope), "made on demand");
        fs::create_dir_all(scope.runtime_dir()).unwrap();
        assert!(!has_lost_runtime_directory(&scope));
        // A descriptor leads to a removed directory as a mount does.
        let open = fs::File::open(scope.runtime_dir()).unwrap();
        fs::remove_dir(scope.runtime_dir()).unwrap();
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&open));
        std::os::unix::fs::symlink(path, scope.runtime_dir()).unwrap();
        assert!(has_lost_runtime_directory(&scope));
    }
}
