//! Log lines: fields to the journal when it listens, text to stderr otherwise.

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// MESSAGE_ID= of the events that the journal catalog explains (`journalctl -x`).
pub mod message {
    pub const CRAWL_ADDED: &str = "2b7f5a6f0a6b4bbaa378f51b6a600c36";
    pub const CRAWL_SEALED: &str = "817efdd40fab45b1aefbcf4bbd7ccad9";
    pub const CRAWL_CANCELLED: &str = "957f745ba14c47f3842aad98ddf54797";
    pub const SNAPSHOT_FAILURES: &str = "87f0e4bae7024685884848d74dd82176";
    pub const WORKER_DIED: &str = "94d3977a329a4d9db7deb8936a50b937";
    pub const SNAPSHOT_QUARANTINED: &str = "d5b98dcfa97346cf83c280e07938ac29";
    pub const HOOK_TIME_LIMIT: &str = "970a42ee072742a1bea2d453cb6705a6";
    pub const HOOK_OUT_OF_MEMORY: &str = "a966cda2bbdc4db682d2d89f4034734a";
    pub const RECOVERED: &str = "414a80aa2153417ebacf3a7aa630d1b8";
    pub const RUN_LOST: &str = "6926c960688a4b81a75bf0adcc209a09";
    pub const TAKEN_OVER: &str = "35a1c1ae3c1c4e2f9d7f0d6a1f5b8a47";
    pub const SITE_DOWN: &str = "90cb609277be460bbb0a61de90e4866c";
    pub const SITE_UP: &str = "7228dd953ada4b919969c25ae027a715";
    pub const ADDRESSES_OPEN: &str = "76f9c395f0274ae088057f0ebd788065";
    pub const DATABASE_REFUSED: &str = "6d386d4e0d6f4758959aada8484f2723";
}

/// What a line begins with in the journal, whichever of our programs wrote it.
const IDENTIFIER: &str = "archivist";

/// The field that names the unit that a message is about, of whoever is entitled to write about others
/// (systemd.journal-fields(7)); `journalctl --unit` takes it for root's messages, `--user-unit` for a user's own.
pub fn unit_field(user: bool) -> &'static str {
    if user {
        "OBJECT_SYSTEMD_USER_UNIT"
    } else {
        "OBJECT_SYSTEMD_UNIT"
    }
}

/// What is logged: what `asked` says, if it makes sense. Regular expressions
/// and values of fields, as others have them in such filters, would be resident all the time.
fn filter(asked: Option<&str>) -> Targets {
    let usual = || {
        Targets::new()
            .with_default(LevelFilter::INFO)
            .with_target("zbus", LevelFilter::WARN)
    };
    asked
        .and_then(|asked| asked.parse().ok())
        .unwrap_or_else(usual)
}

/// Sets up logging for a service. `ARCHIVIST_LOG` holds a filter such as `debug`. Every message has `field`, if any: journald finds
/// out a sender's unit by its process, which after a last word may be gone.
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
            let text = tracing_subscriber::fmt::layer()
                .with_writer(std::io::stderr)
                .without_time();
            registry.with(text).init();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing::Level;

    #[test]
    fn what_is_logged_is_what_was_asked_for_if_it_makes_sense() {
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
