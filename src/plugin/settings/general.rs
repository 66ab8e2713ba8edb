//! Settings without a plugin.

use serde_json::Value;

use crate::catalogue::schema::SettingKind;
use crate::settings::parse::typed;

/// Settings that hooks read, whether or not a schema has them.
pub const HOOK_KEYS: [(&str, SettingKind); 24] = [
    ("ACCEPT_LANGUAGE", SettingKind::String),
    ("ACTIVE_PERSONA", SettingKind::String),
    ("ANTHROPIC_API_KEY", SettingKind::String),
    ("CHECK_SSL_VALIDITY", SettingKind::Boolean),
    ("CHROME_CLOSE_TIMEOUT_MS", SettingKind::Integer),
    ("CHROME_DEBUG_PORT_TIMEOUT_MS", SettingKind::Integer),
    ("CHROME_INSTALL_TIMEOUT", SettingKind::Integer),
    ("CHROME_LAUNCH_LOCK_TIMEOUT_MS", SettingKind::Integer),
    ("CHROME_LOG_SUBPROCESS_OUTPUT", SettingKind::Boolean),
    ("CHROME_PAGE_READY_TIMEOUT_MS", SettingKind::Integer),
    ("CHROME_TAB_TIMEOUT", SettingKind::Integer),
    ("COOKIES_FILE", SettingKind::String),
    ("COOKIES_TXT_FILE", SettingKind::String),
    ("DRY_RUN", SettingKind::Boolean),
    ("FFMPEG_BINARY", SettingKind::String),
    ("HTTPS_PROXY", SettingKind::String),
    ("HTTP_PROXY", SettingKind::String),
    ("JAVA_BINARY", SettingKind::String),
    ("NO_PROXY", SettingKind::String),
    ("RESOLUTION", SettingKind::String),
    ("SEARCH_BACKEND_ENGINE", SettingKind::String),
    ("TESSDATA_PREFIX", SettingKind::String),
    ("TIMEOUT", SettingKind::Integer),
    ("USER_AGENT", SettingKind::String),
];

/// Whether links lead to pages of the same host alone.
pub const SAME_HOST: &str = "CRAWL_SAME_HOST";

/// Settings of the runner itself, including older names.
pub const RUNNER_KEYS: [&str; 9] = [
    "CRAWL_MAX_SIZE",
    "CRAWL_MAX_URLS",
    SAME_HOST,
    "CRAWL_TIMEOUT",
    "SNAPSHOT_MAX_SIZE",
    "URL_ALLOWLIST",
    "URL_BLACKLIST",
    "URL_DENYLIST",
    "URL_WHITELIST",
];

pub fn keys() -> impl Iterator<Item = &'static str> {
    HOOK_KEYS.iter().map(|(key, _)| *key).chain(RUNNER_KEYS)
}

pub fn kind(key: &str) -> Option<SettingKind> {
    HOOK_KEYS.iter().find(|(name, _)| *name == key).map(|(_, kind)| *kind)
}

/// Value of a general setting: of its type if known and valid, else as text.
pub fn value(key: &str, text: &str) -> Value {
    kind(key).and_then(|kind| typed(kind, text)).unwrap_or_else(|| Value::from(text))
}
