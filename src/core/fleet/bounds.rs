//! Longest texts in the rows of a fleet's database, in bytes of UTF-8. Every node reads the rows of all
//! others. Nodes send no longer texts, and the schema refuses them; a test compares it with [`COLUMNS`].

use crate::model::TEXT_MAX;
pub use crate::model::{TIME_MAX, URL_MAX};

/// Names of nodes and servers, identities of machines and boots.
pub const IDENTITY_MAX: usize = 200;
/// Names of plugins and hooks, which are names of files.
pub const FILE_NAME_MAX: usize = 255;
/// Paths of directories, as for the kernel (PATH_MAX).
pub const PATH_MAX: usize = 4096;
/// Texts that nodes shorten, with `…`.
pub const CUT_MAX: usize = TEXT_MAX + '…'.len_utf8();

/// Tags of a page as JSON. Those of its crawl and those of its list fit, unless most of them are escapes.
pub const TAGS_BYTES_MAX: usize = 32 << 10;
/// What orchestrators know of a crawl. Its settings and names of plugins are bounded, too.
pub const DOCUMENT_MAX: usize = 512 << 10;
pub const URL_KEY_MAX: usize = 16;
/// Most nodes with older copies of a page.
pub const COPIES_MAX: usize = 100;

/// Columns with texts: table, column and bound. Further columns have a vocabulary.
pub const COLUMNS: [(&str, &str, usize); 19] = [
    ("fleet", "server", IDENTITY_MAX),
    ("node", "name", IDENTITY_MAX),
    ("node", "former", IDENTITY_MAX),
    ("node", "machine", IDENTITY_MAX),
    ("node", "boot", IDENTITY_MAX),
    ("crawl", "document", DOCUMENT_MAX),
    ("host", "key", URL_MAX),
    ("page", "host", URL_MAX),
    ("page", "url", URL_MAX),
    ("page", "url_key", URL_KEY_MAX),
    ("page", "title", CUT_MAX),
    ("page", "bookmarked_at", TIME_MAX),
    ("page", "tags", TAGS_BYTES_MAX),
    ("page", "reason", CUT_MAX),
    ("page", "directory", PATH_MAX),
    ("result", "plugin", FILE_NAME_MAX),
    ("result", "hook", FILE_NAME_MAX),
    ("result", "output", CUT_MAX),
    ("result", "error", CUT_MAX),
];

/// Returns the first tags that fit, as JSON.
pub fn tags(names: &[String]) -> String {
    let mut json = "[".to_owned();
    for name in names {
        let name = serde_json::Value::from(name.as_str()).to_string();
        let comma = if json.len() > 1 { "," } else { "" };
        if json.len() + comma.len() + name.len() + "]".len() > TAGS_BYTES_MAX {
            break;
        }
        json = json + comma + &name;
    }
    json + "]"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{TAG_MAX, TAGS_MAX};
    use proptest::prelude::*;

    #[test]
    fn tags_of_a_crawl_and_a_list_fit() {
        let names = |prefix: char| (0..TAGS_MAX).map(move |n| format!("{prefix}{n:x>199}"));
        let all: Vec<String> = names('a').chain(names('b')).collect();
        assert_eq!(all[0].len(), TAG_MAX);
        let read: Vec<String> = serde_json::from_str(&tags(&all)).unwrap();
        assert_eq!(read, all);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn any_tags_become_short_json(names in proptest::collection::vec("[\u{0}a\"é]{0,200}", 0..400)) {
            let json = tags(&names);
            prop_assert!(json.len() <= TAGS_BYTES_MAX);
            let read: Vec<String> = serde_json::from_str(&json).unwrap();
            prop_assert_eq!(&read[..], &names[..read.len()]);
        }
    }
}
