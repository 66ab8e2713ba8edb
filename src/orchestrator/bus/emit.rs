//! Sending the signals of the interface for users.

use archivist_core::plan::Notice;
use archivist_shared::bus::signals::Signal;
use archivist_shared::bus::wire::PATH;
use zbus::Connection;
use zbus::names::BusName;

/// The interface that declares them.
const INTERFACE: &str = "org.archivist1.Manager";

pub async fn emit(connection: &Connection, signal: &Signal) -> zbus::Result<()> {
    let (name, subject) = match signal {
        Signal::Crawl { notice, id, document } => {
            let name = match notice {
                Notice::Added => "CrawlAdded",
                Notice::Started => "CrawlStarted",
                Notice::Sealed => "CrawlSealed",
                Notice::Cancelled => "CrawlCancelled",
                Notice::Changed => "CrawlChanged",
            };
            (name, Some((id.to_string(), document)))
        }
        Signal::Pages { crawl, document } => {
            ("SnapshotsAdded", Some((crawl.to_string(), document)))
        }
        Signal::Snapshot { notice, id, document } => {
            let name = match notice {
                Notice::Started => "SnapshotStarted",
                Notice::Sealed => "SnapshotSealed",
                Notice::Cancelled => "SnapshotCancelled",
                Notice::Added | Notice::Changed => "SnapshotChanged",
            };
            (name, Some((id.to_string(), document)))
        }
        Signal::Idle => ("Idle", None),
        Signal::Stopping => ("Stopping", None),
    };
    let to = None::<BusName<'_>>;
    match subject {
        Some(subject) => connection.emit_signal(to, PATH, INTERFACE, name, &subject).await,
        None => connection.emit_signal(to, PATH, INTERFACE, name, &()).await,
    }
}
