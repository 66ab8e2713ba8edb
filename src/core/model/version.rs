//! What changed between two snapshots of a page.

use crate::text::similarity;
use serde::{Deserialize, Serialize};

/// Digits of a SHA-256 in hexadecimal.
const SHA256_DIGITS: usize = 64;
/// Digits of a SimHash in hexadecimal.
const SIMHASH_DIGITS: usize = 16;

/// Digests by which the texts of two snapshots are compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextDigest {
    /// SHA-256 of the text in hexadecimal.
    pub sha256: String,
    /// SimHash of its words in hexadecimal.
    pub simhash: String,
}

impl TextDigest {
    /// Returns the digest if it has the length of one: hooks can write to the file with it.
    pub fn checked(self) -> Option<TextDigest> {
        let is_digest = self.sha256.len() <= SHA256_DIGITS && self.simhash.len() <= SIMHASH_DIGITS;
        is_digest.then_some(self)
    }

    /// How similar two texts are in percent, by their words. `None` if a hash is none.
    fn similarity(&self, other: &TextDigest) -> Option<u32> {
        let hash = |text: &str| u64::from_str_radix(text, 16).ok();
        Some(similarity(hash(&self.simhash)?, hash(&other.simhash)?))
    }
}

/// What is compared of a snapshot.
#[derive(Clone, Copy, Debug, Default)]
pub struct PageVersion<'a> {
    /// HTTP status of its document.
    pub http_status: Option<u16>,
    /// Its title.
    pub title: Option<&'a str>,
    /// Its text. `None` if it has none, or it cannot be read.
    pub text: Option<&'a TextDigest>,
}

impl PageVersion<'_> {
    /// Returns what changed since an older snapshot, as words. The share of the text is an estimate by
    /// its hashes, and one less than all if the texts differ at all.
    pub fn changes_since(&self, older: &PageVersion<'_>) -> Vec<String> {
        let mut changes = Vec::new();
        if let (Some(old), Some(new)) = (older.http_status, self.http_status)
            && old != new
        {
            changes.push(format!("HTTP {old} to {new}"));
        }
        if let (Some(old), Some(new)) = (older.title, self.title)
            && old.trim() != new.trim()
        {
            changes.push("title".to_owned());
        }
        if let (Some(old), Some(new)) = (older.text, self.text) {
            if old.sha256 == new.sha256 {
                changes.push("same text".to_owned());
            } else if let Some(share) = old.similarity(new) {
                changes.push(format!("text {}% the same", share.min(99)));
            }
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(sha256: &str, simhash: &str) -> TextDigest {
        TextDigest { sha256: sha256.to_owned(), simhash: simhash.to_owned() }
    }

    #[test]
    fn changes_are_named() {
        let (one, other) = (digest("a", "ff"), digest("b", "ff"));
        let older = PageVersion { http_status: Some(200), title: Some("Home"), text: Some(&one) };
        let newer = PageVersion { http_status: Some(404), title: Some("Gone"), text: Some(&other) };
        assert_eq!(newer.changes_since(&older), ["HTTP 200 to 404", "title", "text 99% the same"]);
        let same = PageVersion { title: Some(" Home"), ..older };
        assert_eq!(same.changes_since(&older), ["same text"]);
        assert_eq!(PageVersion::default().changes_since(&older), [""; 0]);
        let damaged = digest("c", "no hash");
        let unknown = PageVersion { text: Some(&damaged), ..older };
        assert_eq!(unknown.changes_since(&older), [""; 0]);
    }

    #[test]
    fn digest_of_another_length_is_none() {
        assert!(digest(&"a".repeat(64), &"f".repeat(16)).checked().is_some());
        assert!(digest(&"a".repeat(65), "f").checked().is_none());
        assert!(digest("a", &"f".repeat(17)).checked().is_none());
    }
}
