//! Which crawls and pages were deleted, in a file of the data directory. It is in no backup, and no
//! restoration replaces it: a backup that is older than a deletion has the page again, and the file says
//! so. It has ids and times alone, so that a deleted address is not kept. Ids are never given again
//! ([`crate::id_marks`]).

use archivist_core::model::{Owner, Time};
use archivist_plugin::files::whole::{self, Survives};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

pub const FILE: &str = "deleted";
/// Mode of the file: only the user of the orchestrator needs it.
const MODE: u32 = 0o600;
/// Most deletions that are kept, the last ones. A line has 30 to 40 bytes.
const KEPT_MAX: usize = 100_000;
/// Size from which the file is written again with these alone.
const SIZE_MAX: u64 = 8 << 20;

/// Deleted crawls and pages, with the time in milliseconds since the epoch.
pub type DeletedIds = BTreeMap<Owner, i64>;

/// Adds deletions to the file of a data directory. They are on the disk when this returns.
///
/// # Errors
/// If the file cannot be written.
pub fn add(data: &Path, ids: &[Owner], now: Time) -> io::Result<()> {
    let path = data.join(FILE);
    if fs::metadata(&path).is_ok_and(|found| found.len() > SIZE_MAX) {
        let mut known = Vec::from_iter(read(data)?);
        known.sort_by_key(|(_, time)| *time);
        let newest = known.split_off(known.len().saturating_sub(KEPT_MAX));
        replace(data, newest)?;
    }
    let is_new = !path.exists();
    let mut options = OpenOptions::new();
    let mut file = options.append(true).create(true).mode(MODE).open(&path)?;
    file.write_all(lines(ids.iter().map(|id| (*id, now.0))).as_bytes())?;
    file.sync_data()?;
    if is_new {
        File::open(data)?.sync_all()?;
    }
    Ok(())
}

/// Returns the deletions that the file has. A line that an interrupted write cut off is none.
///
/// # Errors
/// If the file exists and cannot be read.
pub fn read(data: &Path) -> io::Result<DeletedIds> {
    let mut text = String::new();
    match File::open(data.join(FILE)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(DeletedIds::new()),
        // A write that was interrupted adds at most its lines.
        other => other?.take(2 * SIZE_MAX).read_to_string(&mut text)?,
    };
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let line = |line: &str| {
        let (id, time) = line.split_once(' ')?;
        Some((id.parse().ok()?, time.parse().ok()?))
    };
    Ok(whole.lines().filter_map(line).collect())
}

/// Removes deletions from the file: the pages are kept.
///
/// # Errors
/// If the file cannot be read or written.
pub fn forget(data: &Path, ids: &[Owner]) -> io::Result<()> {
    let mut known = read(data)?;
    for id in ids {
        known.remove(id);
    }
    replace(data, known)
}

fn replace(data: &Path, known: impl IntoIterator<Item = (Owner, i64)>) -> io::Result<()> {
    whole::replace(&data.join(FILE), lines(known).as_bytes(), MODE, Survives::PowerCut)
}

fn lines(known: impl IntoIterator<Item = (Owner, i64)>) -> String {
    let line = |(id, time)| format!("{id} {time}\n");
    known.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_core::model::{CrawlId, SnapshotId};
    use std::os::unix::fs::PermissionsExt;

    const PAGE: Owner = Owner::Snapshot(SnapshotId(3));
    const CRAWL: Owner = Owner::Crawl(CrawlId(1));

    #[test]
    fn deletions_are_added_and_forgotten() {
        let data = tempfile::tempdir().unwrap();
        assert!(read(data.path()).unwrap().is_empty());
        add(data.path(), &[PAGE], Time(5)).unwrap();
        add(data.path(), &[CRAWL, PAGE], Time(7)).unwrap();
        let known = read(data.path()).unwrap();
        assert_eq!(Vec::from_iter(known), [(CRAWL, 7), (PAGE, 7)]);
        forget(data.path(), &[PAGE]).unwrap();
        assert_eq!(Vec::from_iter(read(data.path()).unwrap()), [(CRAWL, 7)]);
    }

    #[test]
    fn only_the_owner_reads_the_file() {
        let data = tempfile::tempdir().unwrap();
        let mode = || fs::metadata(data.path().join(FILE)).unwrap().permissions().mode() & 0o777;
        add(data.path(), &[PAGE, CRAWL], Time(5)).unwrap();
        assert_eq!(mode(), 0o600, "a new file");
        forget(data.path(), &[PAGE]).unwrap();
        assert_eq!(mode(), 0o600, "a file that was written again");
    }

    #[test]
    fn interrupted_write_leaves_no_other_id() {
        let data = tempfile::tempdir().unwrap();
        add(data.path(), &[PAGE], Time(5)).unwrap();
        let path = data.path().join(FILE);
        let mut file = OpenOptions::new().append(true).open(path).unwrap();
        file.write_all(b"nonsense\ns1").unwrap();
        assert_eq!(Vec::from_iter(read(data.path()).unwrap()), [(PAGE, 5)]);
    }

    #[test]
    fn file_is_bounded() {
        let data = tempfile::tempdir().unwrap();
        let ids = |from: i64| {
            Vec::from_iter((from..from + 150_000).map(|id| Owner::Snapshot(SnapshotId(id))))
        };
        for round in 0..4 {
            add(data.path(), &ids(1 + round * 150_000), Time(1_795_000_000_000 + round)).unwrap();
        }
        let size = fs::metadata(data.path().join(FILE)).unwrap().len();
        assert!(size < 2 * SIZE_MAX, "{size}");
        let known = read(data.path()).unwrap();
        let newest = Owner::Snapshot(SnapshotId(600_000));
        assert!(known.contains_key(&newest), "the last deletion");
    }
}
