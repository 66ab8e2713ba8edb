//! The copy of a page that another node of the fleet has made: documents between `archivist` and the program
//! of transfers, and what names say.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A copy of a page of which this machine has no row: another node of the fleet has made it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Foreign {
    /// The store, as [`super::Location`] displays it.
    pub store: String,
    /// Path of the page below the archive of the other node, from which the name of the copy is made.
    pub path: String,
    /// Directory for the files, which must exist.
    pub directory: PathBuf,
    /// Largest copy that is read, in bytes.
    pub size_max: u64,
}

/// Returns the SHA-256, in hex, in the name of a copy of the page at `path`, both without directories;
/// `None` if it is no copy of that page.
pub fn digest_in_name<'n>(page: &str, file: &'n str) -> Option<&'n str> {
    let digest = file.strip_prefix(page)?.strip_prefix('-')?;
    let digest = digest.strip_suffix(".tar")?;
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    (digest.len() == 64 && digest.bytes().all(is_hex)).then_some(digest)
}

/// Returns the path of a page below the archive of its node: `DAY/HOST/ID`, from the path of its
/// directory, which another machine gave; `None` if it is none.
pub fn path_of_page(directory: &str) -> Option<String> {
    let mut parts = directory.rsplit('/');
    let (id, host, day) = (parts.next()?, parts.next()?, parts.next()?);
    let is_name = |name: &str| !name.is_empty() && !name.starts_with('.');
    let is_plain = [id, host, day].into_iter().all(is_name);
    (is_plain && !directory.chars().any(char::is_control)).then(|| format!("{day}/{host}/{id}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_is_that_of_the_page_alone() {
        let digest = "0123456789abcdef".repeat(4);
        let of = |file: &str| digest_in_name("s7", file).map(str::to_owned);
        assert_eq!(of(&format!("s7-{digest}.tar")), Some(digest.clone()));
        for other in [
            format!("s77-{digest}.tar"),
            format!("s7-1f0c9a3e-{digest}.tar"),
            format!("s7-{digest}.tar.part"),
            format!(".s7-{digest}.tar"),
            format!("s7-{}.tar", &digest[1..]),
            format!("s7-{}.tar", digest.to_uppercase()),
        ] {
            assert_eq!(of(&other), None, "{other}");
        }
    }

    #[test]
    fn path_of_a_page_cannot_leave_the_archive() {
        let path = path_of_page("/var/lib/archivist/archive/20261125/a.lan/s3");
        assert_eq!(path.as_deref(), Some("20261125/a.lan/s3"));
        for bad in ["", "s3", "a/s3", "/a/../s3", "/20261125/a.lan/", "/d/h\n/s3", "/d/./s3"] {
            assert_eq!(path_of_page(bad), None, "{bad}");
        }
    }
}
