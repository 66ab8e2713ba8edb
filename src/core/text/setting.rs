//! Names of plugins' settings.

/// Returns whether a plugin setting can have this name, such as `WGET_TIMEOUT`.
pub fn is_value_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_uppercase() || c == '_')
        && name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
}
