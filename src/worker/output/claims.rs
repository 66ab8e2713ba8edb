//! Assigns files to hooks where several hooks write to one directory: each byte counts once, for
//! the hook that ended first after it was written.

use archivist_plugin::OutputFile;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Counted bytes by directory and path in it: the hook's key and the size of the file.
#[derive(Debug, Default)]
pub struct Claims(HashMap<PathBuf, HashMap<String, (String, u64)>>);

impl Claims {
    /// Bytes of a directory's files that count for the hook `key`. A hook that runs again counts
    /// its files again. Of a file that counts for another hook, only the growth counts.
    pub fn take(&mut self, directory: &Path, key: &str, files: &[OutputFile]) -> u64 {
        let known = self.0.entry(directory.to_owned()).or_default();
        let mut own = 0u64;
        for file in files {
            let (owner, size) =
                known.entry(file.path.clone()).or_insert_with(|| (key.to_owned(), 0));
            let counted = if owner == key { 0 } else { *size };
            own = own.saturating_add(file.size.saturating_sub(counted));
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
    fn each_byte_counts_for_one_hook() {
        let mut claims = Claims::default();
        let mut take = |directory: &str, key: &str, files: &[(&str, u64)]| {
            let files: Vec<OutputFile> =
                files.iter().map(|(path, size)| file(path, *size)).collect();
            claims.take(Path::new(directory), key, &files)
        };
        assert_eq!(take("/s/chrome", "launch", &[("a", 10)]), 10);
        assert_eq!(take("/s/chrome", "tab", &[("a", 10), ("b", 5)]), 5);
        assert_eq!(take("/s/chrome", "wait", &[("a", 10), ("b", 5)]), 0);
        assert_eq!(take("/s/chrome", "log", &[("a", 12), ("b", 5)]), 2);
        assert_eq!(take("/s/title", "title", &[("a", 7)]), 7, "another directory");
        assert_eq!(take("/s/chrome", "tab", &[("a", 12), ("b", 9)]), 9, "runs again");
    }
}
