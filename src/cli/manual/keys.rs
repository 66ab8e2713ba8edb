//! What the configuration says about its keys.

use archivist_config::declare::{KeyText, Kind, watch};
use archivist_config::{Settings, keys};
use archivist_generator::{POOL_KEYS, POOL_TEXTS};

/// A key of a file, as its page describes it.
pub struct Key {
    /// Section of the file.
    pub section: &'static str,
    /// Name without `=`.
    pub name: &'static str,
    /// Plain text, in paragraphs.
    pub text: &'static str,
    /// The default as the file has it; empty if only the text can say what it is.
    pub default: String,
}

/// Returns the keys of all files, those of a file in the order of its table.
pub fn all() -> Vec<Vec<Key>> {
    let pools = declared(Kind::Pool, POOL_KEYS, POOL_TEXTS);
    let watches = declared(Kind::Watch, watch::KEYS, watch::TEXTS);
    vec![settings(), pools, watches]
}

fn declared(kind: Kind, names: &[&'static str], texts: &[KeyText]) -> Vec<Key> {
    let keys = names.iter().zip(texts).map(|(name, text)| Key {
        section: kind.section(),
        name,
        text: text.text,
        default: (text.default)(),
    });
    keys.collect()
}

/// Keys of archivist.conf(5).
fn settings() -> Vec<Key> {
    let built_in = Settings::default();
    let keys = keys::KEYS.iter().zip(keys::TEXTS);
    let keys = keys.map(|(key, text)| Key {
        section: key.section,
        name: key.name,
        text,
        default: (key.show)(&built_in),
    });
    keys.collect()
}
