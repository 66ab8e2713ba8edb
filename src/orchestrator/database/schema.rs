//! The schema as a list of migrations. A database's `user_version` is the number of migrations that
//! it has been through.

use rusqlite::Connection;
use std::ops::RangeInclusive;

/// Step `n` of the list brings a database from schema `n` to schema `n + 1`. Steps are appended;
/// the text of a released step never changes.
pub const MIGRATIONS: &[&str] = &[
    include_str!("schema/1.sql"),
    include_str!("schema/2.sql"),
    include_str!("schema/3.sql"),
    include_str!("schema/4.sql"),
    include_str!("schema/5.sql"),
    include_str!("schema/6.sql"),
    include_str!("schema/7.sql"),
    include_str!("schema/8.sql"),
    include_str!("schema/9.sql"),
    include_str!("schema/10.sql"),
];

/// `application_id` of a database of archivist, "arch". Those of development versions have none.
const APPLICATION: i32 = i32::from_be_bytes(*b"arch");
/// Versions of the schemas before the first one.
const DEVELOPMENT: RangeInclusive<usize> = 1..=4;

/// Returns the number of the schema that the database has; 0 for an empty one.
pub fn version(connection: &Connection) -> rusqlite::Result<usize> {
    connection.pragma_query_value(None, "user_version", |row| {
        row.get::<_, u32>(0).map(|version| version as usize)
    })
}

/// Whether a database was written by a development version, whose schemas had the first numbers and
/// other tables.
pub fn is_of_development(connection: &Connection) -> rusqlite::Result<bool> {
    let application: i32 =
        connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    Ok(application != APPLICATION && DEVELOPMENT.contains(&version(connection)?))
}

/// Brings a database to the schema at the end of `migrations`, with one transaction per step.
///
/// # Errors
/// If a step fails. The database then has the schema of the last step that succeeded, and all rows.
pub fn migrate(connection: &mut Connection, migrations: &[&str]) -> rusqlite::Result<()> {
    let found = version(connection)?;
    for (place, migration) in migrations.iter().enumerate().skip(found) {
        let step = connection.transaction()?;
        step.execute_batch(migration)?;
        step.pragma_update(None, "application_id", APPLICATION)?;
        step.pragma_update(None, "user_version", place as u32 + 1)?;
        step.commit()?;
    }
    Ok(())
}
