//! How columns store the values of the model.

use archivist_core::model::{CheckKind, CrawlId, Lifecycle, Owner, ResultState, RunId};
use archivist_core::model::{SnapshotId, Time};
use archivist_core::plan::HostId;
use archivist_core::store::{CopyStatus, Task};
use archivist_core::unit::UnitKind;
use rusqlite::Row;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ValueRef};
use serde::de::DeserializeOwned;

/// A value that is read from a column. It wraps the types of the model because rusqlite's traits
/// cannot be implemented for types of another package.
pub struct Stored<T>(T);

/// A value that a column stores as JSON.
struct Json<T>(T);

/// A text in the database that names no value of its type.
#[derive(Debug, thiserror::Error)]
#[error("'{text}' is not a {what}")]
struct UnknownValue {
    what: &'static str,
    text: String,
}

fn parse<T>(
    value: ValueRef<'_>,
    what: &'static str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> FromSqlResult<Stored<T>> {
    let text = value.as_str()?;
    let unknown = || UnknownValue {
        what,
        text: text.to_owned(),
    };
    let value = parse(text).ok_or_else(|| FromSqlError::Other(Box::new(unknown())))?;
    Ok(Stored(value))
}

macro_rules! stored_as_text {
    ($($type:ty, $what:literal, $parse:expr;)*) => {$(
        impl FromSql for Stored<$type> {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                parse(value, $what, $parse)
            }
        }
    )*};
}

macro_rules! stored_as_number {
    ($($type:ident)*) => {$(
        impl FromSql for Stored<$type> {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                Ok(Stored($type(value.as_i64()?)))
            }
        }
    )*};
}

stored_as_text! {
    CheckKind, "kind of check", CheckKind::parse;
    CopyStatus, "status of a copy", CopyStatus::parse;
    Task, "task of a transfer", Task::parse;
    Lifecycle, "status", Lifecycle::parse;
    Owner, "id of a crawl or snapshot", |text| text.parse().ok();
    ResultState, "status of a result", ResultState::parse;
    UnitKind, "kind of unit", UnitKind::parse;
    super::RunState, "status of a run", super::RunState::parse;
}

stored_as_number! { CrawlId HostId RunId SnapshotId Time }

impl<T: DeserializeOwned> FromSql for Json<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let value = serde_json::from_str(value.as_str()?);
        value
            .map(Json)
            .map_err(|error| FromSqlError::Other(Box::new(error)))
    }
}

/// Reads a value of the model.
///
/// # Errors
/// If the column is NULL or stores no such value, which only damage can cause.
pub fn column<T>(row: &Row<'_>, index: usize) -> rusqlite::Result<T>
where
    Stored<T>: FromSql,
{
    row.get(index).map(|Stored(value)| value)
}

/// Reads a value of the model; `None` for NULL.
pub fn optional<T>(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<T>>
where
    Stored<T>: FromSql,
{
    let value: Option<Stored<T>> = row.get(index)?;
    Ok(value.map(|Stored(value)| value))
}

/// Reads a value that the column stores as JSON.
pub fn json<T: DeserializeOwned>(row: &Row<'_>, index: usize) -> rusqlite::Result<T> {
    row.get(index).map(|Json(value)| value)
}

/// Reads a value that the column stores as JSON; `None` for NULL.
pub fn optional_json<T: DeserializeOwned>(
    row: &Row<'_>,
    index: usize,
) -> rusqlite::Result<Option<T>> {
    let value: Option<Json<T>> = row.get(index)?;
    Ok(value.map(|Json(value)| value))
}

/// Reads a counter; `None` for NULL and for a negative number.
pub fn counter(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<u64>> {
    let value: Option<i64> = row.get(index)?;
    Ok(value.and_then(|value| u64::try_from(value).ok()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::StoreError;
    use archivist_core::model::Outcome;
    use rusqlite::Connection;

    fn select<T>(
        value: &str,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let connection = Connection::open_in_memory().unwrap();
        let sql = format!("SELECT {value}");
        Ok(connection.query_row(&sql, [], |row| read(row))?)
    }

    #[test]
    fn stored_values_are_read() {
        let owner = select("'s7'", |row| column::<Owner>(row, 0)).unwrap();
        assert_eq!(owner, Owner::Snapshot(SnapshotId(7)));
        let time = select("NULL", |row| optional::<Time>(row, 0)).unwrap();
        assert_eq!(time, None);
        let text = serde_json::to_string(&Outcome::Signal(9)).unwrap();
        let outcome = select(&format!("'{text}'"), |row| optional_json::<Outcome>(row, 0));
        assert_eq!(outcome.unwrap(), Some(Outcome::Signal(9)));
        let counts = ["7", "-1", "NULL"].map(|value| select(value, |row| counter(row, 0)).unwrap());
        assert_eq!(counts, [Some(7), None, None]);
    }

    #[test]
    fn unknown_value_is_damage_and_is_named() {
        let error = select("'frozzen'", |row| column::<Lifecycle>(row, 0)).unwrap_err();
        assert!(error.damage().is_some());
        assert!(
            error
                .damage()
                .unwrap()
                .contains("'frozzen' is not a status"),
            "{error:?}"
        );
        let error = select("'{'", |row| json::<Vec<String>>(row, 0)).unwrap_err();
        assert!(error.damage().is_some(), "{error:?}");
        let error = select("NULL", |row| column::<Lifecycle>(row, 0)).unwrap_err();
        assert!(error.damage().is_some(), "{error:?}");
    }
}
