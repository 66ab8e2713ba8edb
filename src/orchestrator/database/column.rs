//! How columns store the values of the model, and how rows are read.

use super::RunState;
use archivist_core::fleet::{Epoch, Generation, HostKey, NodeId, Release};
use archivist_core::model::{CheckKind, CheckRecord, CrawlId, Figures, Lifecycle, Outcome};
use archivist_core::model::{OutputFile, Owner, ResultState, RunId, SnapshotId, Time, Unsaved};
use archivist_core::plan::HostId;
use archivist_core::store::{CopyStatus, StoredObject, Task};
use archivist_core::unit::UnitKind;
use rusqlite::Row;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ValueRef};
use std::collections::{BTreeMap, BTreeSet};

/// A value that is read from a column. rusqlite's trait cannot be implemented for types of another
/// package.
pub trait Column: Sized {
    /// Reads the value.
    ///
    /// # Errors
    /// If the column is NULL or stores no such value, which only damage can cause.
    fn read(value: ValueRef<'_>) -> FromSqlResult<Self>;

    /// Reads the value; `None` for NULL.
    fn read_optional(value: ValueRef<'_>) -> FromSqlResult<Option<Self>> {
        match value {
            ValueRef::Null => Ok(None),
            value => Self::read(value).map(Some),
        }
    }
}

impl<T: Column> Column for Option<T> {
    fn read(value: ValueRef<'_>) -> FromSqlResult<Option<T>> {
        T::read_optional(value)
    }
}

/// A counter: 0 for NULL and for a negative number, which `Option<u64>` reads as `None`.
impl Column for u64 {
    fn read(value: ValueRef<'_>) -> FromSqlResult<u64> {
        Ok(u64::read_optional(value)?.unwrap_or(0))
    }

    fn read_optional(value: ValueRef<'_>) -> FromSqlResult<Option<u64>> {
        let value: Option<i64> = FromSql::column_result(value)?;
        Ok(value.and_then(|value| u64::try_from(value).ok()))
    }
}

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
    parse: fn(&str) -> Option<T>,
) -> FromSqlResult<T> {
    let text = value.as_str()?;
    let unknown = || UnknownValue { what, text: text.to_owned() };
    parse(text).ok_or_else(|| FromSqlError::Other(Box::new(unknown())))
}

macro_rules! stored_as_text {
    ($($type:ty, $what:literal, $parse:expr;)*) => {$(
        impl Column for $type {
            fn read(value: ValueRef<'_>) -> FromSqlResult<$type> {
                parse(value, $what, $parse)
            }
        }
    )*};
}

macro_rules! stored_as_inner {
    ($($type:ident)*) => {$(
        impl Column for $type {
            fn read(value: ValueRef<'_>) -> FromSqlResult<$type> {
                FromSql::column_result(value).map($type)
            }
        }
    )*};
}

macro_rules! stored_as_such {
    ($($type:ty)*) => {$(
        impl Column for $type {
            fn read(value: ValueRef<'_>) -> FromSqlResult<$type> {
                FromSql::column_result(value)
            }
        }
    )*};
}

macro_rules! stored_as_json {
    ($($type:ty)*) => {$(
        impl Column for $type {
            fn read(value: ValueRef<'_>) -> FromSqlResult<$type> {
                let value = serde_json::from_str(value.as_str()?);
                value.map_err(|error| FromSqlError::Other(Box::new(error)))
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
    Unsaved, "lack of a page", Unsaved::parse;
    UnitKind, "kind of unit", UnitKind::parse;
    RunState, "status of a run", RunState::parse;
}

stored_as_inner! { CrawlId Epoch Generation HostId HostKey NodeId RunId SnapshotId Time }

stored_as_such! { bool i64 u16 u32 String }

stored_as_json! {
    BTreeMap<String, String> BTreeSet<u32> CheckRecord Figures Outcome Release StoredObject Vec<OutputFile>
    Vec<String>
}

pub trait FromRow: Sized {
    /// Reads the columns in their order.
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self>;
}

/// One column.
impl<T: Column> FromRow for T {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<T> {
        column(row, 0)
    }
}

macro_rules! tuples {
    ($($($name:ident $index:literal),*;)*) => {$(
        impl<$($name: Column),*> FromRow for ($($name,)*) {
            fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
                Ok(($(column::<$name>(row, $index)?,)*))
            }
        }
    )*};
}

tuples! {
    A 0, B 1;
    A 0, B 1, C 2;
    A 0, B 1, C 2, D 3;
    A 0, B 1, C 2, D 3, E 4;
}

pub trait Columns: FromRow {
    /// The columns for `SELECT`, in the order of [`FromRow`].
    const COLUMNS: &str;
}

/// Implements [`Columns`] for a struct: each field is the column of the same name, or the SQL expression
/// behind it. Fields behind `;` are no columns.
macro_rules! columns {
    ($type:ident: $first:ident $($first_sql:literal)?, $($field:ident $($sql:literal)?),*
        $(; $($other:ident: $value:expr),*)?
    ) => {
        impl $crate::database::column::FromRow for $type {
            fn from_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<$type> {
                let mut columns = 0..;
                let mut next = || columns.next().unwrap_or_default();
                Ok($type {
                    $first: $crate::database::column::column(row, next())?,
                    $($field: $crate::database::column::column(row, next())?,)*
                    $($($other: $value,)*)?
                })
            }
        }

        impl $crate::database::column::Columns for $type {
            const COLUMNS: &str = concat!(
                $crate::database::column::columns!(@sql $first $($first_sql)?),
                $(", ", $crate::database::column::columns!(@sql $field $($sql)?)),*
            );
        }
    };
    (@sql $field:ident) => { stringify!($field) };
    (@sql $field:ident $sql:literal) => { $sql };
}

pub(crate) use columns;

struct Read<T>(T);

impl<T: Column> FromSql for Read<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        T::read(value).map(Read)
    }
}

/// Reads a column.
///
/// # Errors
/// As [`Column::read`].
pub fn column<T: Column>(row: &Row<'_>, index: usize) -> rusqlite::Result<T> {
    row.get(index).map(|Read(value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::DatabaseError;
    use rusqlite::Connection;

    fn select<T: Column>(value: &str) -> Result<T, DatabaseError> {
        let connection = Connection::open_in_memory().unwrap();
        let sql = format!("SELECT {value}");
        Ok(connection.query_row(&sql, [], T::from_row)?)
    }

    #[test]
    fn stored_values_are_read() {
        let owner: Owner = select("'s7'").unwrap();
        assert_eq!(owner, Owner::Snapshot(SnapshotId(7)));
        let time: Option<Time> = select("NULL").unwrap();
        assert_eq!(time, None);
        let text = serde_json::to_string(&Outcome::Signal(9)).unwrap();
        let outcome = select::<Option<Outcome>>(&format!("'{text}'"));
        assert_eq!(outcome.unwrap(), Some(Outcome::Signal(9)));
        let counts = ["7", "-1", "NULL"].map(|value| select::<Option<u64>>(value).unwrap());
        assert_eq!(counts, [Some(7), None, None]);
        let counts = ["7", "-1", "NULL"].map(|value| select::<u64>(value).unwrap());
        assert_eq!(counts, [7, 0, 0]);
    }

    #[test]
    fn unknown_value_is_damage_and_is_named() {
        let error = select::<Lifecycle>("'frozzen'").unwrap_err();
        assert!(error.damage().is_some());
        assert!(error.damage().unwrap().contains("'frozzen' is not a status"), "{error:?}");
        let error = select::<Vec<String>>("'{'").unwrap_err();
        assert!(error.damage().is_some(), "{error:?}");
        let error = select::<Lifecycle>("NULL").unwrap_err();
        assert!(error.damage().is_some(), "{error:?}");
    }
}
