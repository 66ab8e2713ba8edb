//! The schema as a list of migrations, all in the PostgreSQL schema `archivist`.
//!
//! Nodes are upgraded one after the other, so each step says which older programs may continue with the
//! schema that it makes. A step may leave them in if it only adds: tables, indexes, functions, and
//! columns that have a default or may be NULL; if rows that older programs write mean the same to newer
//! ones; and if older programs find no state in a column that they do not know. It ends the sessions
//! of all other programs, which then keep what they hold until they are upgraded.

use crate::connect::{Link, Problem};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error, Row, Transaction};

#[derive(Clone, Copy, Debug)]
pub struct Migration {
    pub text: &'static str,
    /// Oldest version whose programs may use the schema after this step; never less than that of the
    /// step before.
    pub programs_from: i32,
}

/// Step `n` of the list brings a database from version `n` to version `n + 1`. Steps are appended;
/// a released step never changes.
pub const MIGRATIONS: &[Migration] = &[
    Migration { text: include_str!("schema/1.sql"), programs_from: 1 },
    // Rows of older programs would not say which pages users gave.
    Migration { text: include_str!("schema/2.sql"), programs_from: 2 },
];

/// Version that this program requires.
pub const VERSION: i32 = MIGRATIONS.len() as i32;

/// Key of the advisory lock of migrations: "archivis" in ASCII. PostgreSQL releases it at the end of
/// the transaction, so a connection pooler or a lost session cannot keep it.
const LOCK: i64 = 0x6172_6368_6976_6973;

const TABLE: &str = "
    CREATE SCHEMA IF NOT EXISTS archivist;
    CREATE TABLE IF NOT EXISTS archivist.migration (
        version integer PRIMARY KEY,
        programs_from integer NOT NULL,
        applied_at timestamptz NOT NULL DEFAULT now()
    )";

const LATEST: &str =
    "SELECT version, programs_from FROM archivist.migration ORDER BY version DESC LIMIT 1";

/// Ends the sessions of all nodes: each must say hello again, and check the schema before.
const END_SESSIONS: &str = "UPDATE archivist.node SET incarnation = incarnation + 1";

/// A version of the schema in a database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Found {
    version: i32,
    programs_from: i32,
}

impl Found {
    fn of(row: Option<Row>) -> Found {
        row.map_or_else(Found::default, |row| Found {
            version: row.get(0),
            programs_from: row.get(1),
        })
    }

    /// Returns whether programs that know the schema up to a version may not use it.
    fn excludes(self, known: i32) -> bool {
        self.version > known && self.programs_from > known
    }
}

/// Brings the database to the version of this program, in one transaction. Returns the version that
/// the database had; 0 if it was empty.
///
/// # Errors
/// If the schema is newer and excludes this program, or a step fails. The database is then unchanged.
pub async fn migrate(link: &mut Link, migrations: &[Migration]) -> Result<i32, Problem> {
    let known = migrations.len() as i32;
    match apply(&mut link.client, migrations).await {
        Ok(found) if found.excludes(known) => Err(newer(link, found, known)),
        Ok(found) => Ok(found.version),
        Err(error) => Err(link.problem(&error)),
    }
}

async fn apply(client: &mut Client, migrations: &[Migration]) -> Result<Found, Error> {
    let work = client.transaction().await?;
    work.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
    let found = latest(&work).await?;
    let done = usize::try_from(found.version).unwrap_or_default();
    if done < migrations.len() {
        // Only now, because CREATE requires more rights than a node has to have.
        work.batch_execute(TABLE).await?;
    }
    for (place, step) in migrations.iter().enumerate().skip(done) {
        work.batch_execute(step.text).await?;
        let number = place as i32 + 1;
        let note = "INSERT INTO archivist.migration (version, programs_from) VALUES ($1, $2)";
        work.execute(note, &[&number, &step.programs_from]).await?;
    }
    let oldest = migrations[done.min(migrations.len())..].iter().map(|step| step.programs_from);
    if oldest.max() > Some(found.version) {
        work.execute(END_SESSIONS, &[]).await?;
    }
    work.commit().await?;
    Ok(found)
}

/// Returns the version of the schema, 0 without one.
async fn latest(work: &Transaction<'_>) -> Result<Found, Error> {
    let query = "SELECT to_regclass('archivist.migration') IS NOT NULL";
    if !work.query_one(query, &[]).await?.get::<_, bool>(0) {
        return Ok(Found::default());
    }
    Ok(Found::of(work.query_opt(LATEST, &[]).await?))
}

/// Returns without an error if this program can use the schema of the database.
///
/// # Errors
/// If the schema is missing, older, or newer in a way that excludes this program, each with what to do.
pub async fn check(link: &Link) -> Result<(), Problem> {
    check_as(link, VERSION).await
}

/// The same for a program that knows the schema up to a version.
///
/// # Errors
/// As for [`check`].
pub async fn check_as(link: &Link, known: i32) -> Result<(), Problem> {
    let server = link.server();
    let found = match link.client.query_opt(LATEST, &[]).await {
        Ok(row) => Found::of(row),
        Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => Found::default(),
        Err(error) => return Err(link.problem(&error)),
    };
    match found.version {
        0 => Err(Problem::NoFleet { server }),
        _ if found.excludes(known) => Err(newer(link, found, known)),
        older if older < known => Err(Problem::Older { server, found: older, known }),
        _ => Ok(()),
    }
}

fn newer(link: &Link, found: Found, known: i32) -> Problem {
    Problem::Newer { server: link.server(), found: found.version, known }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_names_the_oldest_programs_that_may_continue() {
        let mut least = 1;
        for (place, step) in MIGRATIONS.iter().enumerate() {
            let version = place as i32 + 1;
            assert!((least..=version).contains(&step.programs_from), "{version}");
            least = step.programs_from;
        }
    }

    #[test]
    fn newer_schema_excludes_programs_by_its_oldest_version() {
        let found = Found { version: 4, programs_from: 2 };
        let excluded: Vec<i32> = (1..=5).filter(|known| found.excludes(*known)).collect();
        assert_eq!(excluded, [1]);
    }
}
