//! Rows of the outbox: requests that must reach the database of the fleet, in order. The reference
//! is `tests/fleet-model/outbox.rs`.

use crate::database::column::column;
use crate::database::{Result, Tx};
use archivist_core::fleet::{NodeRequest, OutboxEntry, is_kept_long};
use archivist_core::model::Time;
use rusqlite::Row;

/// Size of the entries in one answer as JSON, in bytes. The bus ends the connection of a sender of 32 MiB.
const BYTES_MAX: usize = 4 << 20;

impl Tx<'_> {
    pub fn add_to_outbox(&self, request: &NodeRequest) -> Result<()> {
        self.execute(
            "INSERT INTO outbox (is_command, is_kept_long, request) VALUES (?1, ?2, ?3)",
            (
                matches!(request, NodeRequest::Command(_)),
                is_kept_long(request),
                serde_json::to_string(request)?,
            ),
        )
    }

    /// Returns the first unanswered entries, at most `limit`, and as many as fit into [`BYTES_MAX`], but at
    /// least one.
    pub fn unanswered_entries(&self, limit: u32) -> Result<Vec<OutboxEntry>> {
        let mut statement = self.inner.prepare_cached(
            "SELECT number, request FROM outbox WHERE answered_at IS NULL ORDER BY number LIMIT ?1",
        )?;
        let read = |row: &Row<'_>| Ok((column(row, 0)?, row.get::<_, String>(1)?));
        let mut entries = Vec::new();
        let mut size = 0;
        for row in statement.query_map([limit], read)? {
            let (number, request) = row?;
            size += request.len();
            if size > BYTES_MAX && !entries.is_empty() {
                break;
            }
            entries.push(OutboxEntry { number, request: serde_json::from_str(&request)? });
        }
        Ok(entries)
    }

    pub fn is_in_outbox(&self, request: &NodeRequest) -> Result<bool> {
        self.one(
            "SELECT EXISTS (SELECT 1 FROM outbox
             WHERE answered_at IS NULL AND request = ?1)",
            [serde_json::to_string(request)?],
        )
    }

    /// Returns the number of the last entry; 0 if there is none.
    pub fn last_entry(&self) -> Result<u64> {
        self.one("SELECT max(number) FROM outbox", [])
    }

    pub fn has_unanswered_command(&self) -> Result<bool> {
        self.one(
            "SELECT EXISTS (SELECT 1 FROM outbox INDEXED BY outbox_queue
             WHERE answered_at IS NULL AND is_command)",
            [],
        )
    }

    pub fn entry_answered(&self, entry: u64, now: Time) -> Result<()> {
        let entry = i64::try_from(entry).unwrap_or(i64::MAX);
        self.execute(
            "UPDATE outbox SET answered_at = ?2 WHERE number = ?1 AND answered_at IS NULL",
            (entry, now.0),
        )
    }

    /// Removes an entry that must not be sent again.
    pub fn remove_entry(&self, entry: u64) -> Result<()> {
        let entry = i64::try_from(entry).unwrap_or(i64::MAX);
        self.execute("DELETE FROM outbox WHERE number = ?1", [entry])
    }

    /// Returns the request of an entry, if it is kept.
    pub fn entry(&self, entry: u64) -> Result<Option<NodeRequest>> {
        let entry = i64::try_from(entry).unwrap_or(i64::MAX);
        let text: Option<String> =
            self.first("SELECT request FROM outbox WHERE number = ?1", [entry])?;
        Ok(text.map(|text| serde_json::from_str(&text)).transpose()?)
    }

    /// Removes entries that were answered before `before`, or before `long_before` if they are kept for
    /// long, but for the last one: numbers only grow.
    pub fn prune_outbox(&self, before: Time, long_before: Time) -> Result<()> {
        for (is_kept_long, before) in [(false, before), (true, long_before)] {
            self.execute(
                "DELETE FROM outbox WHERE is_kept_long = ?1 AND answered_at < ?2
                 AND number < (SELECT max(number) FROM outbox)",
                (is_kept_long, before.0),
            )?;
        }
        Ok(())
    }

    /// Queues the entries again that were answered since `since`: the database may have lost them.
    pub fn send_again(&self, since: Time) -> Result<()> {
        self.execute("UPDATE outbox SET answered_at = NULL WHERE answered_at >= ?1", [since.0])
    }

    /// Removes this request: it is no longer true.
    pub fn withdraw(&self, request: &NodeRequest) -> Result<()> {
        self.execute("DELETE FROM outbox WHERE request = ?1", [serde_json::to_string(request)?])
    }
}
