//! Logging: fields to the journal if it listens, otherwise text to standard error.

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// MESSAGE_ID= of the messages that the journal catalog explains (`journalctl -x`).
pub mod message {
    pub const CRAWL_ADDED: &str = "2b7f5a6f0a6b4bbaa378f51b6a600c36";
    pub const CRAWL_SEALED: &str = "817efdd40fab45b1aefbcf4bbd7ccad9";
    pub const CRAWL_CANCELLED: &str = "957f745ba14c47f3842aad98ddf54797";
    pub const SNAPSHOT_FAILURES: &str = "87f0e4bae7024685884848d74dd82176";
    pub const WORKER_DIED: &str = "94d3977a329a4d9db7deb8936a50b937";
    pub const SNAPSHOT_QUARANTINED: &str = "d5b98dcfa97346cf83c280e07938ac29";
    pub const HOOK_TIME_LIMIT: &str = "970a42ee072742a1bea2d453cb6705a6";
    pub const HOOK_OUT_OF_MEMORY: &str = "a966cda2bbdc4db682d2d89f4034734a";
    /// The orchestrator recovered its running units.
    pub const RECOVERED: &str = "414a80aa2153417ebacf3a7aa630d1b8";
    pub const RUN_LOST: &str = "6926c960688a4b81a75bf0adcc209a09";
    pub const TAKEN_OVER: &str = "35a1c1ae3c1c4e2f9d7f0d6a1f5b8a47";
    pub const SITE_DOWN: &str = "90cb609277be460bbb0a61de90e4866c";
    pub const SITE_UP: &str = "7228dd953ada4b919969c25ae027a715";
    /// systemd's address filter has no effect: hooks can reach private networks.
    pub const ADDRESSES_OPEN: &str = "76f9c395f0274ae088057f0ebd788065";
    pub const TRANSFER_FAILED: &str = "5c1d0b7f7b5e4a30a1f4cf3f5b8e9d21";
    pub const DATABASE_REFUSED: &str = "6d386d4e0d6f4758959aada8484f2723";
    /// Rules of `Retention=` would delete too much at once.
    pub const RETENTION_HELD: &str = "6f0f2b6e6cde4f4a9ad7b8e14e2a4c15";
    /// The archive has higher ids than the database.
    pub const IDS_RAISED: &str = "28a8ed6baf394729a5c5648d86e609e3";
}

/// Identifier of all programs of archivist in the journal.
const IDENTIFIER: &str = "archivist";

/// Returns the field that names the unit of a message, for a sender with permission to log about
/// other units (systemd.journal-fields(7)): `journalctl --unit` honours it for root's messages,
/// `--user-unit` for a user's.
pub fn unit_field(user: bool) -> &'static str {
    if user { "OBJECT_SYSTEMD_USER_UNIT" } else { "OBJECT_SYSTEMD_UNIT" }
}

/// Returns the log filter that `asked` describes, if valid. Filters by regular expression or field
/// value are not supported: their code would be resident.
fn filter(asked: Option<&str>) -> Targets {
    let usual =
        || Targets::new().with_default(LevelFilter::INFO).with_target("zbus", LevelFilter::WARN);
    asked.and_then(|asked| asked.parse().ok()).unwrap_or_else(usual)
}

/// Sets up logging for a service. `ARCHIVIST_LOG` holds a filter such as `debug`. Every message
/// gets `field`, if any: journald derives the unit from the sending process, which may be gone
/// after its last message.
pub fn init(field: Option<(&str, String)>) {
    let filter = filter(std::env::var("ARCHIVIST_LOG").ok().as_deref());
    let registry = tracing_subscriber::registry().with(filter);
    let journal = libsystemd::logging::connected_to_journal().then(tracing_journald::layer);
    match journal {
        Some(Ok(layer)) => {
            let layer = layer
                .with_field_prefix(None)
                .with_syslog_identifier(IDENTIFIER.to_owned())
                .with_custom_fields(field);
            registry.with(layer).init();
        }
        _ => {
            let text = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).without_time();
            registry.with(text).init();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing::Level;

    #[test]
    fn the_filter_is_the_requested_one_if_valid() {
        let logs = |asked, target, level| filter(asked).would_enable(target, &level);
        for asked in [None, Some("archivist=nonsense")] {
            assert!(logs(asked, "archivist::daemon", Level::INFO));
            assert!(!logs(asked, "archivist::daemon", Level::DEBUG));
            assert!(!logs(asked, "zbus::connection", Level::INFO));
        }
        assert!(logs(Some("debug"), "zbus::connection", Level::DEBUG));
        let one = Some("warn,archivist::daemon=trace");
        assert!(logs(one, "archivist::daemon", Level::TRACE));
        assert!(!logs(one, "archivist::store", Level::INFO));
    }
}
