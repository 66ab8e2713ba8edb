//! Reads the database of ArchiveBox, which is hostile input, for `archivist import`: a process without
//! rights that gets the file through standard input, and prints what it has, one JSON object a line.
//! Columns decide what is read, not versions:
//!
//! | versions | tables and columns |
//! |---|---|
//! | 0.4 | `core_snapshot` with tags as a list with commas |
//! | 0.5 to 0.7 | `core_tag`, `core_snapshot_tags`, `core_archiveresult` with `extractor` and `output` |
//! | 0.8 | `bookmarked_at` and `created_at` instead of `added` |
//! | 0.9 | `plugin` and `output_str` instead of `extractor` and `output` |

use archivist_core::model::Time;
use archivist_plugin::files::remove::remove_tree;
use archivist_shared::archivebox::{
    BoxLine, BoxResult, BoxSnapshot, DATABASE_FILES, FIELD_MAX, UNCHANGED, bookmarked_at, moment,
    without_time,
};
use archivist_shared::reader::{READER_MEMORY_MAX_BYTES, confine};
use archivist_shared::staged::RESULTS_MAX;
use nix::unistd::mkdtemp;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Row};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The copy of the database. On disk, and private in a unit.
const COPY: &str = "/var/tmp/archivist-import-XXXXXX";
/// Snapshots that are read.
const SNAPSHOTS_MAX: usize = 5_000_000;
/// The least that a row of three columns takes in a file, in bytes: its place in the page, length, number and header
/// (SQLite's file format, section 1.6). Pages of a damaged file may be children of several others or of themselves,
/// and then a few kilobytes have millions of rows.
const SNAPSHOT_BYTES_MIN: usize = 8;
/// Tags of a snapshot that are read.
const TAGS_MAX: usize = 256;

/// Reads the database that is standard input.
pub fn main() -> ExitCode {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut print = |line: &BoxLine| {
        let text = serde_json::to_string(line).map_err(io::Error::other)?;
        writeln!(out, "{text}")
    };
    let copied =
        confine(READER_MEMORY_MAX_BYTES).and_then(|()| CopiedDatabase::receive(io::stdin().lock()));
    let done = match copied {
        Err(error) => print(&BoxLine::Unusable(format!("failed to copy it: {error}"))),
        // It changed, and is sent again.
        Ok(None) => Ok(()),
        Ok(Some(copy)) => match Source::open(&copy.database()) {
            Err(why) => print(&BoxLine::Unusable(why)),
            Ok(source) => source.read(&mut print),
        },
    };
    match done.and_then(|()| out.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("archivist-orchestrator: failed to write: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A copy of the database and its write-ahead log, which may be changed. Removed on drop.
struct CopiedDatabase {
    directory: PathBuf,
}

impl CopiedDatabase {
    /// Copies the files; `None` if they changed while they were sent.
    fn receive(mut input: impl Read) -> io::Result<Option<CopiedDatabase>> {
        let copy = CopiedDatabase { directory: mkdtemp(COPY)? };
        match copy.fill(&mut input) {
            Ok(UNCHANGED) => Ok(Some(copy)),
            Ok(_) => Ok(None),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes the files, and returns the byte after them.
    fn fill(&self, input: &mut impl Read) -> io::Result<u8> {
        let mut part = vec![0; 64 << 10];
        for name in DATABASE_FILES {
            let mut left = [0; 8];
            input.read_exact(&mut left)?;
            let mut left = u64::from_le_bytes(left);
            if left == 0 {
                continue;
            }
            let mut file = File::create_new(self.directory.join(name))?;
            while left > 0 {
                let bytes = part.len().min(usize::try_from(left).unwrap_or(part.len()));
                input.read_exact(&mut part[..bytes])?;
                file.write_all(&part[..bytes])?;
                left -= bytes as u64;
            }
        }
        let mut last = [0];
        input.read_exact(&mut last)?;
        Ok(last[0])
    }

    fn database(&self) -> PathBuf {
        self.directory.join(DATABASE_FILES[0])
    }
}

impl Drop for CopiedDatabase {
    fn drop(&mut self) {
        let _ = remove_tree(&self.directory);
    }
}

struct Source {
    connection: Connection,
    /// The most snapshots that a file of its size has.
    snapshots_max: usize,
    /// Query of the snapshots.
    snapshots: String,
    /// Query of the results of a snapshot, if they are in the database.
    results: Option<String>,
    /// Query of the tags of a snapshot, if they are in tables.
    tags: Option<String>,
}

impl Source {
    fn open(path: &Path) -> Result<Source, String> {
        let text = |error: rusqlite::Error| error.to_string();
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(text)?;
        for (config, on) in [
            (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
            (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
            (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
            (DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false),
        ] {
            connection.set_db_config(config, on).map_err(text)?;
        }
        connection
            .execute_batch(
                "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0;
                 PRAGMA cache_size = -16384; PRAGMA temp_store = FILE",
            )
            .map_err(text)?;
        let snapshots_max = snapshots_max(&connection).map_err(text)?;
        let columns = |table: &str| columns(&connection, table);
        let of_snapshot = columns("core_snapshot").map_err(text)?;
        if !["id", "url", "timestamp"].iter().all(|name| of_snapshot.contains(*name)) {
            return Err(
                "it has no table 'core_snapshot' with 'id', 'url' and 'timestamp'".to_owned()
            );
        }
        let of_result = columns("core_archiveresult").map_err(text)?;
        let of_tag = columns("core_tag").map_err(text)?;
        let of_link = columns("core_snapshot_tags").map_err(text)?;
        let snapshots = snapshots_query(&of_snapshot);
        let results = results_query(&of_result);
        if results.is_some() && !is_indexed(&connection) {
            // The file is a copy. Without an index each snapshot would read all results.
            let _ = connection.execute_batch(
                "CREATE INDEX archivist_results ON core_archiveresult (snapshot_id)",
            );
        }
        let has_tags = ["id", "name"].iter().all(|name| of_tag.contains(*name))
            && ["snapshot_id", "tag_id"].iter().all(|name| of_link.contains(*name));
        let tags = has_tags.then(|| {
            format!(
                "SELECT {} FROM core_snapshot_tags AS link JOIN core_tag AS tag
                 ON tag.id = link.tag_id WHERE link.snapshot_id IN (?1, ?2, ?3)
                 ORDER BY tag.id LIMIT {TAGS_MAX}",
                cut("tag.name")
            )
        });
        Ok(Source { connection, snapshots_max, snapshots, results, tags })
    }

    /// Prints all snapshots. A fault of the file ends the list, and is printed.
    fn read(&self, print: &mut dyn FnMut(&BoxLine) -> io::Result<()>) -> io::Result<()> {
        let mut count = 0_usize;
        let fault = |count: usize, error: &dyn std::fmt::Display| {
            let text = format!("the database is damaged after {count} snapshots: {error}");
            BoxLine::Fault(text)
        };
        let mut statement = match self.connection.prepare(&self.snapshots) {
            Ok(statement) => statement,
            Err(error) => return print(&fault(0, &error)),
        };
        let mut rows = match statement.query([]) {
            Ok(rows) => rows,
            Err(error) => return print(&fault(0, &error)),
        };
        loop {
            let row = match rows.next() {
                Ok(Some(row)) => row,
                Ok(None) => return Ok(()),
                Err(error) => return print(&fault(count, &error)),
            };
            if count == SNAPSHOTS_MAX {
                let text = format!("it has more than {SNAPSHOTS_MAX} snapshots");
                return print(&BoxLine::Fault(text));
            }
            if count == self.snapshots_max {
                let error = "a file of this size does not have more";
                return print(&fault(count, &error));
            }
            count += 1;
            let id = text(row, 0);
            let mut snapshot = snapshot_of(row, &id);
            let faults = [self.add_tags(&id, &mut snapshot), self.add_results(&id, &mut snapshot)];
            for error in faults.into_iter().filter_map(Result::err) {
                let name = &snapshot.timestamp;
                let text = format!("snapshot {name}: its tags or results cannot be read: {error}");
                print(&BoxLine::Fault(text))?;
            }
            print(&BoxLine::Snapshot(snapshot))?;
        }
    }

    fn add_tags(&self, id: &str, snapshot: &mut BoxSnapshot) -> rusqlite::Result<()> {
        let Some(query) = &self.tags else {
            return Ok(());
        };
        let mut statement = self.connection.prepare_cached(query)?;
        let mut rows = statement.query(forms(id))?;
        while let Some(row) = rows.next()? {
            let name = text(row, 0).trim().to_owned();
            if !name.is_empty() && !snapshot.tags.contains(&name) {
                snapshot.tags.push(name);
            }
        }
        Ok(())
    }

    fn add_results(&self, id: &str, snapshot: &mut BoxSnapshot) -> rusqlite::Result<()> {
        let Some(query) = &self.results else {
            return Ok(());
        };
        let mut statement = self.connection.prepare_cached(query)?;
        let mut rows = statement.query(forms(id))?;
        while let Some(row) = rows.next()? {
            let time = |column| moment(&text(row, column)).map(Time::from);
            snapshot.results.push(BoxResult {
                extractor: text(row, 0),
                status: text(row, 1),
                output: text(row, 2),
                started_at: time(3),
                ended_at: time(4),
            });
        }
        Ok(())
    }
}

/// The most snapshots that fit into the file.
fn snapshots_max(connection: &Connection) -> rusqlite::Result<usize> {
    let bytes: i64 = connection.query_row(
        "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()",
        [],
        |row| row.get(0),
    )?;
    Ok(usize::try_from(bytes).unwrap_or(0) / SNAPSHOT_BYTES_MIN)
}

/// The names of the columns of a table. Views and virtual tables have none.
fn columns(connection: &Connection, table: &str) -> rusqlite::Result<BTreeSet<String>> {
    let is_table: bool = connection.query_row(
        "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1
             AND sql NOT LIKE 'CREATE VIRTUAL%')",
        [table],
        |row| row.get(0),
    )?;
    if !is_table {
        return Ok(BTreeSet::new());
    }
    // Without generated columns, which call functions of the schema.
    let mut statement =
        connection.prepare("SELECT name FROM pragma_table_xinfo(?1) WHERE hidden = 0")?;
    let names = statement.query_map([table], |row| row.get::<_, String>(0))?;
    names.collect()
}

/// Whether an index of the results begins with the snapshot.
fn is_indexed(connection: &Connection) -> bool {
    connection
        .query_row(
            "SELECT EXISTS (SELECT 1 FROM pragma_index_list('core_archiveresult') AS list,
                 pragma_index_info(list.name) AS info
                 WHERE info.seqno = 0 AND info.name = 'snapshot_id' AND list.partial = 0)",
            [],
            |row| row.get(0),
        )
        .unwrap_or(false)
}

/// A column as text of limited length.
fn cut(column: &str) -> String {
    format!("substr(CAST({column} AS TEXT), 1, {FIELD_MAX})")
}

/// The first of these columns that a table has, or NULL.
fn first(columns: &BTreeSet<String>, names: &[&str]) -> String {
    let found = names.iter().find(|name| columns.contains(**name));
    found.map_or("NULL".to_owned(), |name| cut(name))
}

fn snapshots_query(columns: &BTreeSet<String>) -> String {
    let [bookmarked, added, title, tags] = [
        first(columns, &["bookmarked_at"]),
        first(columns, &["added", "created_at"]),
        first(columns, &["title"]),
        first(columns, &["tags"]),
    ];
    format!(
        "SELECT {}, {}, {}, {title}, {bookmarked}, {added}, {tags} FROM core_snapshot",
        cut("id"),
        cut("url"),
        cut("timestamp")
    )
}

fn results_query(columns: &BTreeSet<String>) -> Option<String> {
    if !columns.contains("snapshot_id") || !columns.contains("status") {
        return None;
    }
    let extractor = match ["plugin", "extractor"].map(|name| columns.contains(name)) {
        [true, true] => "coalesce(nullif(plugin, ''), extractor)".to_owned(),
        _ => first(columns, &["plugin", "extractor"]),
    };
    let output = match ["output_str", "output"].map(|name| columns.contains(name)) {
        [true, true] => "coalesce(nullif(output_str, ''), output)".to_owned(),
        _ => first(columns, &["output_str", "output"]),
    };
    let [start, end, created] =
        ["start_ts", "end_ts", "created_at"].map(|name| first(columns, &[name]));
    Some(format!(
        "SELECT {}, {}, {}, coalesce({start}, {created}), coalesce({end}, {start}, {created})
         FROM core_archiveresult
         WHERE snapshot_id IN (?1, ?2, ?3) ORDER BY 4, rowid LIMIT {RESULTS_MAX}",
        cut(&extractor),
        cut("status"),
        cut(&output)
    ))
}

/// A value as text. Bytes that are not UTF-8 become U+FFFD.
fn text(row: &Row<'_>, column: usize) -> String {
    let bytes = row.get_ref(column).ok().and_then(|value| match value {
        rusqlite::types::ValueRef::Text(bytes) | rusqlite::types::ValueRef::Blob(bytes) => {
            Some(bytes.to_owned())
        }
        _ => None,
    });
    String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
}

/// The forms in which versions write an id: as it is, without dashes, and with them.
fn forms(id: &str) -> [String; 3] {
    let plain = id.replace('-', "");
    let cuts = [0, 8, 12, 16, 20, 32];
    let parts = cuts.windows(2).map(|cut| plain.get(cut[0]..cut[1]));
    let dashed = parts.collect::<Option<Vec<_>>>().map(|parts| parts.join("-"));
    let dashed = dashed.filter(|_| plain.len() == 32);
    [id.to_owned(), plain, dashed.unwrap_or_else(|| id.to_owned())]
}

fn snapshot_of(row: &Row<'_>, id: &str) -> BoxSnapshot {
    let timestamp = text(row, 2);
    let title = text(row, 3).trim().to_owned();
    let date = |column| moment(&text(row, column));
    let tags = text(row, 6);
    let tags = tags.split(',').map(str::trim).filter(|tag| !tag.is_empty());
    BoxSnapshot {
        id: id.replace('-', "").to_ascii_lowercase(),
        url: without_time(text(row, 1).trim()).to_owned(),
        title: Some(title).filter(|title| !title.is_empty()),
        bookmarked_at: bookmarked_at(date(4), &timestamp)
            .or_else(|| date(5).map(|time| time.to_string())),
        timestamp,
        tags: tags.take(TAGS_MAX).map(str::to_owned).collect(),
        results: Vec::new(),
    }
}

#[cfg(test)]
mod tests;
