//! Documents between `archivist` and the program of transfers about copies that are compared with their
//! rows.

use super::StoredObject;
use serde::{Deserialize, Serialize};

/// Copies in one store, which are compared with what their rows say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comparison {
    /// The store, as [`super::Location`] displays it.
    pub store: String,
    /// What the rows say. Those in the same directory stand together.
    pub objects: Vec<StoredObject>,
    /// Bytes that may be read. Of the other copies, the size is compared.
    pub read_max: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compared {
    /// Name below the location.
    pub name: String,
    pub found: Found,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Found {
    /// A file of the right size, which was not read.
    Sized,
    /// A file with the right SHA-256.
    Intact,
    /// What differs, as a sentence.
    Differs(String),
    /// A file next to copies of the comparison which is none of them.
    Extra,
}

impl StoredObject {
    /// Returns how a copy of this size and, if it was read, with this SHA-256 in hex differs from the row,
    /// as a sentence.
    pub fn difference(&self, size: u64, sha256: Option<&str>) -> Option<String> {
        if size != self.size {
            let expected = self.size;
            return Some(format!("the copy has {size} bytes, its row says {expected}"));
        }
        let sum = sha256.filter(|sum| *sum != self.sha256)?;
        Some(format!("the SHA-256 of the copy is {sum}, its row says {}", self.sha256))
    }
}

/// What a row says of a copy that is not there.
pub const COPY_MISSING: &str = "the copy is missing in the store";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_is_compared_before_the_digest() {
        let row = StoredObject { sha256: "ab".to_owned(), size: 5, ..StoredObject::default() };
        assert_eq!(row.difference(5, None), None);
        assert_eq!(row.difference(5, Some("ab")), None);
        let size = row.difference(6, Some("00")).unwrap();
        assert_eq!(size, "the copy has 6 bytes, its row says 5");
        assert!(row.difference(5, Some("00")).unwrap().contains("SHA-256"));
    }
}
