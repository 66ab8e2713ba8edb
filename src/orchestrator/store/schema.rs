//! The schema as a list of migrations. A database's `user_version` is the number of migrations that
//! it has been through.

use rusqlite::Connection;

/// Step `n` of the list brings a database from schema `n` to schema `n + 1`. Steps are appended;
/// the text of a released step never changes.
pub const MIGRATIONS: &[&str] = &[
    include_str!("schema/1.sql"),
    include_str!("schema/2.sql"),
    include_str!("schema/3.sql"),
    include_str!("schema/4.sql"),
];

/// Returns the number of the schema that the database has; 0 for an empty one.
pub fn version(connection: &Connection) -> rusqlite::Result<usize> {
    connection.pragma_query_value(None, "user_version", |row| {
        row.get::<_, u32>(0).map(|version| version as usize)
    })
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
        step.pragma_update(None, "user_version", place as u32 + 1)?;
        step.commit()?;
    }
    Ok(())
}
