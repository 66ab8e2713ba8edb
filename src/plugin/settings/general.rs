//! Settings without a plugin.

use serde_json::Value;

use crate::catalogue::schema::Kind;
use crate::settings::parse::typed;

/// Settings that hooks read, whether or not a schema has them.
pub const HOOK_KEYS: [(&str, Kind); 23] = [
    ("ACTIVE_PERSONA", Kind::String),
    ("ANTHROPIC_API_KEY", Kind::String),
    ("CHECK_SSL_VALIDITY", Kind::Boolean),
    ("CHROME_CLOSE_TIMEOUT_MS", Kind::Integer),
    ("CHROME_DEBUG_PORT_TIMEOUT_MS", Kind::Integer),
    ("CHROME_INSTALL_TIMEOUT", Kind::Integer),
    ("CHROME_LAUNCH_LOCK_TIMEOUT_MS", Kind::Integer),
    ("CHROME_LOG_SUBPROCESS_OUTPUT", Kind::Boolean),
    ("CHROME_PAGE_READY_TIMEOUT_MS", Kind::Integer),
    ("CHROME_TAB_TIMEOUT", Kind::Integer),
    ("COOKIES_FILE", Kind::String),
    ("COOKIES_TXT_FILE", Kind::String),
    ("DRY_RUN", Kind::Boolean),
    ("FFMPEG_BINARY", Kind::String),
    ("HTTPS_PROXY", Kind::String),
    ("HTTP_PROXY", Kind::String),
    ("JAVA_BINARY", Kind::String),
    ("NO_PROXY", Kind::String),
    ("RESOLUTION", Kind::String),
    ("SEARCH_BACKEND_ENGINE", Kind::String),
    ("TESSDATA_PREFIX", Kind::String),
    ("TIMEOUT", Kind::Integer),
    ("USER_AGENT", Kind::String),
];

/// Settings of the runner itself, including older names.
pub const RUNNER_KEYS: [&str; 8] = [
    "CRAWL_MAX_SIZE",
    "CRAWL_MAX_URLS",
    "CRAWL_TIMEOUT",
    "SNAPSHOT_MAX_SIZE",
    "URL_ALLOWLIST",
    "URL_BLACKLIST",
    "URL_DENYLIST",
    "URL_WHITELIST",
];

/// Names of all general settings.
pub fn keys() -> impl Iterator<Item = &'static str> {
    HOOK_KEYS.iter().map(|(key, _)| *key).chain(RUNNER_KEYS)
}

/// Type of a general setting.
pub fn kind(key: &str) -> Option<Kind> {
    HOOK_KEYS
        .iter()
        .find(|(name, _)| *name == key)
        .map(|(_, kind)| *kind)
}

/// Value of a general setting: of its type if known and valid, else as text.
pub fn value(key: &str, text: &str) -> Value {
    kind(key)
        .and_then(|kind| typed(kind, text))
        .unwrap_or_else(|| Value::from(text))
}
