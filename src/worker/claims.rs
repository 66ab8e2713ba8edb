//! Whose files are whose, where several hooks write to one directory: each byte counts once, for
//! the hook that ended first with it.

use crate::plugin::OutputFile;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// What was counted, by directory and path in it: for which hook, and how many bytes.
#[derive(Debug, Default)]
pub struct Claims(HashMap<PathBuf, HashMap<String, (String, u64)>>);

/// What a hook left that nobody before it did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Own {
    /// Whether there is any such file, be it empty.
    pub any: bool,
    /// Bytes.
    pub size: u64,
}

impl Claims {
    /// Counts the files of a directory for the hook `key`. One that runs again counts anew; of a
    /// file that was counted for another hook, only what has been added since.
    pub fn take(&mut self, directory: &Path, key: &str, files: &[OutputFile]) -> Own {
        let known = self.0.entry(directory.to_owned()).or_default();
        let mut own = Own::default();
        for file in files {
            let counted = match known.get(&file.path) {
                Some((other, size)) if other != key => *size,
                _ => {
                    own.any = true;
                    0
                }
            };
            if file.size > counted {
                own.any = true;
                own.size = own.size.saturating_add(file.size - counted);
            }
            let (owner, size) = known.entry(file.path.clone()).or_default();
            if counted == 0 {
                key.clone_into(owner);
            }
            *size = file.size.max(counted);
        }
        own
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, size: u64) -> OutputFile {
        OutputFile {
            path: path.to_owned(),
            extension: String::new(),
            mimetype: String::new(),
            size,
        }
    }

    #[test]
    fn each_byte_counts_once() {
        let mut claims = Claims::default();
        let mut take = |directory: &str, key: &str, files: &[(&str, u64)]| {
            let files: Vec<OutputFile> =
                files.iter().map(|(path, size)| file(path, *size)).collect();
            let own = claims.take(Path::new(directory), key, &files);
            (own.any, own.size)
        };
        assert_eq!(take("/s/chrome", "launch", &[("a", 10)]), (true, 10));
        assert_eq!(take("/s/chrome", "tab", &[("a", 10), ("b", 5)]), (true, 5));
        assert_eq!(
            take("/s/chrome", "wait", &[("a", 10), ("b", 5)]),
            (false, 0)
        );
        assert_eq!(take("/s/chrome", "log", &[("a", 12), ("b", 5)]), (true, 2));
        assert_eq!(
            take("/s/title", "title", &[("a", 7)]),
            (true, 7),
            "another directory"
        );
        assert_eq!(
            take("/s/chrome", "tab", &[("a", 12), ("b", 9)]),
            (true, 9),
            "once more"
        );
        assert_eq!(take("/s/chrome", "mark", &[("empty", 0)]), (true, 0));
    }
}
