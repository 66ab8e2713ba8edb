//! Ids: small integers with a letter for the kind, short enough to type.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// Error that names the expected kind of id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not {expected}")]
pub struct ParseIdError {
    text: String,
    expected: &'static str,
}

fn number(text: &str, letter: char, expected: &'static str) -> Result<i64, ParseIdError> {
    text.strip_prefix(letter)
        .filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()) && !digits.starts_with('0'))
        .and_then(|digits| digits.parse().ok())
        .ok_or_else(|| ParseIdError { text: text.to_owned(), expected })
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $letter:literal, $expected:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(
            /// Number in the database, from 1.
            pub i64,
        );

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}{}", $letter, self.0)
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;
            fn from_str(text: &str) -> Result<Self, ParseIdError> {
                number(text, $letter, $expected).map($name)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

id!(
    /// A crawl: one `archivist add`.
    CrawlId, 'c', "the id of a crawl (such as c12)"
);
id!(
    /// A snapshot: one page of a crawl.
    SnapshotId, 's', "the id of a snapshot (such as s345)"
);
id!(
    /// A run: one unit, past, running or planned.
    RunId, 'r', "the id of a run (such as r678)"
);

/// Owner of a worker or hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// The crawl itself: its setup, its last hooks.
    Crawl(CrawlId),
    Snapshot(SnapshotId),
}

impl Owner {
    /// Returns the crawl or snapshot of a directory of this name in the archive: `s345`, or
    /// `s345-1f0c9a3e` if its first directory was taken. `None` for other names.
    pub fn of_directory(name: &str) -> Option<Owner> {
        let id = name.split_once('-').map_or(name, |(id, _)| id);
        id.parse().ok()
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Owner::Crawl(id) => id.fmt(f),
            Owner::Snapshot(id) => id.fmt(f),
        }
    }
}

impl FromStr for Owner {
    type Err = ParseIdError;
    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        let expected = "an id (c12 is a crawl, s345 a snapshot)";
        CrawlId::from_str(text)
            .map(Owner::Crawl)
            .or_else(|_| SnapshotId::from_str(text).map(Owner::Snapshot))
            .map_err(|_| ParseIdError { text: text.to_owned(), expected })
    }
}

/// What a user names by its id: a crawl, a snapshot, or a single run of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AnyId {
    /// A crawl or snapshot (c12, s345).
    Owner(Owner),
    /// A run (r678).
    Run(RunId),
}

impl fmt::Display for AnyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AnyId::Owner(id) => id.fmt(f),
            AnyId::Run(id) => id.fmt(f),
        }
    }
}

impl FromStr for AnyId {
    type Err = ParseIdError;
    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        let owner = Owner::from_str(text).map(AnyId::Owner);
        let expected = "an id (c12 is a crawl, s345 a snapshot, r678 a run)";
        owner
            .or_else(|_| RunId::from_str(text).map(AnyId::Run))
            .map_err(|_| ParseIdError { text: text.to_owned(), expected })
    }
}

impl Serialize for Owner {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Owner {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_round_trip() {
        assert_eq!("c12".parse(), Ok(Owner::Crawl(CrawlId(12))));
        assert_eq!("s345".parse(), Ok(Owner::Snapshot(SnapshotId(345))));
        assert_eq!(Owner::Snapshot(SnapshotId(345)).to_string(), "s345");
        assert_eq!("r678".parse(), Ok(AnyId::Run(RunId(678))));
        assert_eq!("c12".parse(), Ok(AnyId::Owner(Owner::Crawl(CrawlId(12)))));
        assert!("r678".parse::<Owner>().is_err());
    }

    #[test]
    fn directories_begin_with_the_id() {
        let page = Some(Owner::Snapshot(SnapshotId(345)));
        for name in ["s345", "s345-1f0c9a3e"] {
            assert_eq!(Owner::of_directory(name), page, "{name}");
        }
        for name in [".new-00", "s345.tmp", "notes", "", "r7"] {
            assert_eq!(Owner::of_directory(name), None, "{name}");
        }
    }

    #[test]
    fn errors_name_the_expected_id() {
        for bad in ["", "12", "c", "c-1", "c012", "x3", "c1 ", "c99999999999999999999", "s٣"] {
            let error = bad.parse::<Owner>().unwrap_err();
            assert!(error.to_string().starts_with(&format!("'{bad}' is not an id")), "{error}");
            assert!(bad.parse::<AnyId>().is_err(), "{bad}");
        }
    }

    proptest::proptest! {
        #[test]
        fn what_is_read_is_what_would_be_written(id in 1i64.., text in ".{0,24}", near in "[csr]?[0-9+-]{0,21}") {
            let owner = Owner::Snapshot(SnapshotId(id));
            assert_eq!(owner.to_string().parse(), Ok(owner));
            for text in [text, near] {
                if let Ok(any) = text.parse::<AnyId>() {
                    assert_eq!(any.to_string(), text);
                }
                if let Ok(owner) = text.parse::<Owner>() {
                    assert_eq!(owner.to_string(), text);
                }
            }
        }
    }
}
