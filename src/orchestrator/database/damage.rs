//! Finds damage that a disk did to the database, before the database is used.
//!
//! SQLite notices a damaged page only when it reads it. It takes a damaged write-ahead log for one
//! that ends at the damage, and so loses the transactions after it silently.

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::time::Duration;

/// Sizes in a write-ahead log (sqlite.org/fileformat2.html, section 4).
const HEADER: usize = 32;
const FRAME: usize = 24;
/// Magic number of a log with little-endian checksums; with big-endian checksums it is one higher.
const MAGIC: u32 = 0x377f_0682;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileCheck {
    Whole,
    Damaged(String),
    /// It could not be read at the moment, or is no database at all.
    Unknown,
}

/// Reads the whole database on a connection of its own. Writes nothing, not even what is left to do
/// in the write-ahead log.
pub fn check(path: &Path) -> FileCheck {
    match integrity(path) {
        Ok(report) if report == "ok" => FileCheck::Whole,
        Ok(report) => FileCheck::Damaged(report),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) => {
            FileCheck::Damaged(error.to_string())
        }
        Err(_) => FileCheck::Unknown,
    }
}

fn integrity(path: &Path) -> rusqlite::Result<String> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(Duration::from_secs(5))?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.pragma_update(None, "query_only", true)?;
    connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))
}

/// Whether acknowledged transactions are lost with a damaged part of the write-ahead log at `path`.
/// A transaction that was being written when the machine stopped does not count. Neither does the
/// last transaction if it is the damaged one, because both look the same.
///
/// # Errors
/// If the file cannot be read. A file that does not exist is not damaged.
pub fn log_is_damaged(path: &Path) -> io::Result<bool> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        other => other?,
    };
    let mut log = BufReader::new(file);
    let mut header = [0; HEADER];
    if !fills(&mut log, &mut header)? {
        return Ok(false);
    }
    let magic = word(&header, 0);
    let big_endian = magic & 1 == 1;
    let mut sum = Checksum::default();
    sum.add(&header[..24], big_endian);
    let size = word(&header, 8) as usize;
    let good = magic & !1 == MAGIC
        && size.is_power_of_two()
        && (512..=65536).contains(&size)
        && sum == Checksum(word(&header, 24), word(&header, 28));
    let salts = &header[16..24];
    let mut frame = [0; FRAME];
    if !good {
        // Without a frame after the header, the header was being written.
        return fills(&mut log, &mut frame);
    }
    let mut page = vec![0; size];
    let (mut is_whole, mut commits_behind, mut foreign) = (true, 0, 0);
    while fills(&mut log, &mut frame)? && fills(&mut log, &mut page)? {
        let is_ours = frame[8..16] == *salts;
        if is_whole {
            sum.add(&frame[..8], big_endian);
            sum.add(&page, big_endian);
            is_whole = is_ours && sum == Checksum(word(&frame, 16), word(&frame, 20));
        }
        // After the damage. Frames that an earlier log left have other salts, and no current frames
        // follow them. A frame with other salts before a current frame therefore is a current one
        // with damaged salts.
        if is_whole || word(&frame, 4) == 0 {
            continue;
        }
        if is_ours { commits_behind += 1 + std::mem::take(&mut foreign) } else { foreign += 1 }
    }
    Ok(commits_behind >= 2)
}

/// Running checksum of a write-ahead log.
#[derive(Default, PartialEq)]
struct Checksum(u32, u32);

impl Checksum {
    fn add(&mut self, bytes: &[u8], big_endian: bool) {
        for pair in bytes.as_chunks::<8>().0 {
            let word = |at: usize| {
                let word = [pair[at], pair[at + 1], pair[at + 2], pair[at + 3]];
                if big_endian { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) }
            };
            self.0 = self.0.wrapping_add(word(0)).wrapping_add(self.1);
            self.1 = self.1.wrapping_add(word(4)).wrapping_add(self.0);
        }
    }
}

/// Returns the big-endian number at `at`.
fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Fills the buffer; returns false if the file ends before that.
fn fills(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match from.read_exact(buffer) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        other => other.map(|()| true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_shared::database::log_of;
    use proptest::prelude::*;
    use std::path::PathBuf;

    /// Returns a database and its log of ten transactions, as a killed process leaves them.
    fn killed(directory: &Path) -> (PathBuf, Vec<u8>) {
        let path = directory.join("db");
        let connection = Connection::open(&path).unwrap();
        connection.pragma_update(None, "journal_mode", "wal").unwrap();
        connection.execute_batch("CREATE TABLE t (a TEXT UNIQUE)").unwrap();
        for n in 0..10 {
            connection.execute("INSERT INTO t VALUES (?1)", [format!("row {n}")]).unwrap();
        }
        let left = directory.join("left");
        std::fs::copy(&path, &left).unwrap();
        std::fs::copy(log_of(&path), log_of(&left)).unwrap();
        let log = std::fs::read(log_of(&left)).unwrap();
        (left, log)
    }

    fn rows(path: &Path) -> i64 {
        let connection = Connection::open(path).unwrap();
        let count = connection.query_row("SELECT count(*) FROM t", [], |row| row.get(0));
        count.unwrap_or(0)
    }

    #[test]
    fn whole_and_truncated_logs_are_accepted() {
        let directory = tempfile::tempdir().unwrap();
        let (left, log) = killed(directory.path());
        assert!(!log_is_damaged(&log_of(&left)).unwrap());
        for end in [0, 20, HEADER, log.len() / 2, log.len() - 1] {
            std::fs::write(log_of(&left), &log[..end]).unwrap();
            assert!(!log_is_damaged(&log_of(&left)).unwrap(), "{end} bytes");
        }
        assert!(!log_is_damaged(&directory.path().join("none")).unwrap());
    }

    #[test]
    fn damaged_index_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("db");
        let connection = Connection::open(&path).unwrap();
        connection
            .execute_batch("CREATE TABLE t (a TEXT UNIQUE); INSERT INTO t VALUES ('needle')")
            .unwrap();
        drop(connection);
        assert_eq!(check(&path), FileCheck::Whole);
        let mut bytes = std::fs::read(&path).unwrap();
        let place = bytes.windows(6).position(|w| w == b"needle").unwrap();
        bytes[place] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert!(matches!(check(&path), FileCheck::Damaged(_)));
        assert_eq!(check(&directory.path().join("none")), FileCheck::Unknown);
        std::fs::write(&path, "This is no database at all.".repeat(99)).unwrap();
        assert_eq!(check(&path), FileCheck::Unknown, "others refuse it");
    }

    #[test]
    fn check_leaves_a_log_as_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let (left, log) = killed(directory.path());
        let before = std::fs::read(&left).unwrap();
        assert_eq!(check(&left), FileCheck::Whole);
        assert_eq!(std::fs::read(&left).unwrap(), before);
        assert_eq!(std::fs::read(log_of(&left)).unwrap(), log);
        assert_eq!(rows(&left), 10);
    }

    proptest! {
        /// Whatever bit of a log changes: a loss of more than the last transaction is reported.
        #[test]
        fn loss_of_acknowledged_transactions_is_reported(place in any::<prop::sample::Index>(), bit in 0..8u32) {
            let directory = tempfile::tempdir().unwrap();
            let (left, mut log) = killed(directory.path());
            let place = place.index(log.len());
            log[place] ^= 1 << bit;
            std::fs::write(log_of(&left), &log).unwrap();
            let damaged = log_is_damaged(&log_of(&left)).unwrap();
            prop_assert!(damaged || rows(&left) >= 9, "byte {place}: {} rows", rows(&left));
        }
    }
}
