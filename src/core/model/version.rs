//! What changed between two snapshots of a page.

use crate::text::{TextChange, similarity};
use serde::{Deserialize, Serialize};

/// Digits of a SHA-256 in hexadecimal.
const SHA256_DIGITS: usize = 64;
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

#[derive(Clone, Copy, Debug, Default)]
pub struct PageVersion<'a> {
    pub http_status: Option<u16>,
    pub title: Option<&'a str>,
    /// Its text. `None` if it has none, or it cannot be read.
    pub text: Option<&'a TextDigest>,
}

/// What the files of two snapshots show in addition to their digests.
#[derive(Clone, Debug, Default)]
pub struct CloserLook {
    /// Whether their pictures are the same. `None` if one has none, or they cannot be read.
    pub same_picture: Option<bool>,
    /// How their texts differ. `None` if they do not, or cannot be read.
    pub text: Option<TextChange>,
}

impl PageVersion<'_> {
    /// Returns what changed since an older snapshot, as words. The share of the text is an estimate by
    /// its hashes, and one less than all if the texts differ at all. A text of which only numbers and dates
    /// changed makes another picture, which is no news.
    pub fn changes_since(&self, older: &PageVersion<'_>, look: &CloserLook) -> Vec<String> {
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
                let is_identical = changes.is_empty() && look.same_picture == Some(true);
                changes.push(if is_identical { "identical" } else { "same text" }.to_owned());
                changes.extend(picture_changed(look));
                return changes;
            }
            if look.text == Some(TextChange::Figures) {
                changes.push("same text but for numbers and dates".to_owned());
                return changes;
            }
            let share = old.similarity(new);
            changes.extend(share.map(|share| format!("text {}% the same", share.min(99))));
            match &look.text {
                Some(TextChange::New(sentence)) => changes.push(format!("new: “{sentence}”")),
                Some(TextChange::Gone(sentence)) => changes.push(format!("gone: “{sentence}”")),
                _ => {}
            }
        }
        changes.extend(picture_changed(look));
        changes
    }
}

fn picture_changed(look: &CloserLook) -> Option<String> {
    (look.same_picture == Some(false)).then(|| "picture changed".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(sha256: &str, simhash: &str) -> TextDigest {
        TextDigest { sha256: sha256.to_owned(), simhash: simhash.to_owned() }
    }

    #[test]
    fn closer_look_names_pictures_and_sentences() {
        let (one, other) = (digest("a", "ff"), digest("b", "ff"));
        let old = PageVersion { http_status: Some(200), title: None, text: Some(&one) };
        let new = PageVersion { text: Some(&other), ..old };
        let look = |same_picture, text| CloserLook { same_picture, text };
        let same = |picture| old.changes_since(&old, &look(picture, None));
        assert_eq!(same(None), ["same text"]);
        assert_eq!(same(Some(true)), ["identical"]);
        assert_eq!(same(Some(false)), ["same text", "picture changed"]);
        let gone = PageVersion { http_status: Some(404), ..old };
        let changes = gone.changes_since(&old, &look(Some(true), None));
        assert_eq!(changes, ["HTTP 200 to 404", "same text"]);
        let changes = |text| new.changes_since(&old, &look(Some(false), Some(text)));
        assert_eq!(changes(TextChange::Figures), ["same text but for numbers and dates"]);
        assert_eq!(
            changes(TextChange::New("A b.".to_owned())),
            ["text 99% the same", "new: “A b.”", "picture changed"]
        );
        assert_eq!(changes(TextChange::Gone("A b.".to_owned()))[1], "gone: “A b.”");
        let bare = PageVersion::default();
        let changes = bare.changes_since(&bare, &look(Some(false), None));
        assert_eq!(changes, ["picture changed"]);
    }

    #[test]
    fn changes_are_named() {
        let look = &CloserLook::default();
        let (one, other) = (digest("a", "ff"), digest("b", "ff"));
        let older = PageVersion { http_status: Some(200), title: Some("Home"), text: Some(&one) };
        let newer = PageVersion { http_status: Some(404), title: Some("Gone"), text: Some(&other) };
        assert_eq!(
            newer.changes_since(&older, look),
            ["HTTP 200 to 404", "title", "text 99% the same"]
        );
        let same = PageVersion { title: Some(" Home"), ..older };
        assert_eq!(same.changes_since(&older, look), ["same text"]);
        assert_eq!(PageVersion::default().changes_since(&older, look), [""; 0]);
        let damaged = digest("c", "no hash");
        let unknown = PageVersion { text: Some(&damaged), ..older };
        assert_eq!(unknown.changes_since(&older, look), [""; 0]);
    }

    #[test]
    fn digest_of_another_length_is_none() {
        assert!(digest(&"a".repeat(64), &"f".repeat(16)).checked().is_some());
        assert!(digest(&"a".repeat(65), "f").checked().is_none());
        assert!(digest("a", &"f".repeat(17)).checked().is_none());
    }
}
