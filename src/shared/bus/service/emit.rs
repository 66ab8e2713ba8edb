//! Sending the signals of the interface for users.

use super::Manager;
use crate::bus::signals::Signal;
use crate::bus::wire::PATH;
use archivist_core::plan::Notice;
use zbus::Connection;
use zbus::object_server::SignalEmitter;

/// Sends a signal on the bus.
pub async fn emit(connection: &Connection, signal: &Signal) -> zbus::Result<()> {
    let to = SignalEmitter::new(connection, PATH)?;
    match signal {
        Signal::Crawl { notice, id, document } => {
            let id = &id.to_string();
            match notice {
                Notice::Added => Manager::crawl_added(&to, id, document).await,
                Notice::Started => Manager::crawl_started(&to, id, document).await,
                Notice::Sealed => Manager::crawl_sealed(&to, id, document).await,
                Notice::Cancelled => Manager::crawl_cancelled(&to, id, document).await,
                Notice::Changed => Manager::crawl_changed(&to, id, document).await,
            }
        }
        Signal::Pages { crawl, document } => {
            Manager::snapshots_added(&to, &crawl.to_string(), document).await
        }
        Signal::Snapshot { notice, id, document } => {
            let id = &id.to_string();
            match notice {
                Notice::Started => Manager::snapshot_started(&to, id, document).await,
                Notice::Sealed => Manager::snapshot_sealed(&to, id, document).await,
                Notice::Cancelled => Manager::snapshot_cancelled(&to, id, document).await,
                Notice::Added | Notice::Changed => {
                    Manager::snapshot_changed(&to, id, document).await
                }
            }
        }
        Signal::Idle => Manager::idle(&to).await,
        Signal::Stopping => Manager::stopping(&to).await,
    }
}
