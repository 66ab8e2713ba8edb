//! Compares the imported recordings, whose names are their digests, with the crawls of their pages.

use super::finding::{Checked, Finding, Kind};
use archivist_core::model::{CrawlId, Owner};
use archivist_plugin::Directory;
use archivist_plugin::files::digest::sha256;
use archivist_shared::archive::{IMPORT_FILE, IMPORT_SOURCE, IMPORTED};
use archivist_shared::bus::documents::report::Crawl;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

pub struct Imported {
    directory: PathBuf,
    /// Names of the files that were there before the rows were read.
    there: BTreeSet<String>,
    /// Names that crawls have, with a crawl and the name of the file that was imported.
    wanted: BTreeMap<String, (CrawlId, String)>,
}

impl Imported {
    /// Lists the files. A file that is being imported has no name yet.
    ///
    /// # Errors
    /// If the directory cannot be read; a missing one is empty.
    pub fn read(archive: &Path) -> io::Result<Imported> {
        let directory = archive.join(IMPORTED);
        let there = match directory.read_dir() {
            Err(error) if error.kind() == ErrorKind::NotFound => BTreeSet::new(),
            entries => {
                let name = |entry: io::Result<std::fs::DirEntry>| {
                    Ok(entry?.file_name().to_string_lossy().into_owned())
                };
                entries?.map(name).collect::<io::Result<_>>()?
            }
        };
        Ok(Imported {
            directory,
            there: there.into_iter().filter(|name: &String| !name.starts_with('.')).collect(),
            wanted: BTreeMap::new(),
        })
    }

    /// Notes a crawl, which may be one of imported pages.
    pub fn add_crawl(&mut self, crawl: &Crawl) {
        if let Some(name) = crawl.config.get(IMPORT_FILE) {
            let source = crawl.config.get(IMPORT_SOURCE).cloned();
            let about = (crawl.id, source.unwrap_or_default());
            self.wanted.entry(name.clone()).or_insert(about);
        }
    }

    /// Compares the files with the crawls, and their content with their names.
    ///
    /// # Errors
    /// If this user has no permission to read the files.
    pub fn compare(
        &self,
        reads_content: bool,
        reports_unknown: bool,
        checked: &mut Checked,
    ) -> io::Result<Vec<Finding>> {
        let mut findings = Vec::new();
        let path = |name: &str| self.directory.join(name).to_string_lossy().into_owned();
        for (name, (crawl, source)) in &self.wanted {
            if self.there.contains(name) {
                continue;
            }
            let what = format!(
                "the recording that was imported from '{source}' is missing: its pages cannot be replayed until it is imported again"
            );
            findings.push(Finding {
                id: Some(Owner::Crawl(*crawl)),
                ..Finding::new(Kind::File, path(name), what)
            });
        }
        for name in &self.there {
            let crawl = self.wanted.get(name).map(|(crawl, _)| Owner::Crawl(*crawl));
            if crawl.is_none() {
                if reports_unknown {
                    let what = "no crawl has this imported recording";
                    findings.push(Finding::new(Kind::Unknown, path(name), what));
                }
                continue;
            }
            checked.files += 1;
            if !reads_content {
                continue;
            }
            let differs = match digest_of(&self.directory, name) {
                Ok((digest, bytes)) => {
                    checked.digests += 1;
                    checked.bytes += bytes;
                    let is_same = name.split('.').next() == Some(digest.as_str());
                    (!is_same).then(|| format!("its SHA-256 is {digest}"))
                }
                Err(error) if error.kind() == ErrorKind::PermissionDenied => return Err(error),
                Err(error) => Some(format!("it cannot be read: {error}")),
            };
            findings.extend(
                differs.map(|what| Finding {
                    id: crawl,
                    ..Finding::new(Kind::Digest, path(name), what)
                }),
            );
        }
        Ok(findings)
    }
}

fn digest_of(directory: &Path, name: &str) -> io::Result<(String, u64)> {
    sha256(Directory::open(directory)?.read(name)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use std::fs;

    /// SHA-256 of no bytes.
    const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855.wacz";

    fn found(archive: &Path, crawls: &[Crawl]) -> Vec<String> {
        let mut imported = Imported::read(archive).unwrap();
        crawls.iter().for_each(|crawl| imported.add_crawl(crawl));
        let findings = imported.compare(true, true, &mut Checked::default());
        let shown = |finding: Finding| {
            let name = Path::new(&finding.path).file_name().unwrap();
            format!("{} {}", name.to_str().unwrap(), finding.what)
        };
        findings.unwrap().into_iter().map(shown).collect()
    }

    #[test]
    fn missing_damaged_and_unknown_files_are_found() {
        let archive = tempfile::tempdir().unwrap();
        let mut crawl = sample::crawl(3);
        crawl.config.insert(IMPORT_FILE.into(), EMPTY.into());
        crawl.config.insert(IMPORT_SOURCE.into(), "old.wacz".into());
        let crawls = [sample::crawl(2), crawl];
        assert_eq!(found(archive.path(), &[]), [""; 0]);
        let missing = found(archive.path(), &crawls);
        assert!(missing[0].contains("imported from 'old.wacz' is missing"), "{missing:?}");
        let directory = archive.path().join(IMPORTED);
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join(".partial"), "x").unwrap();
        fs::write(directory.join(EMPTY), "").unwrap();
        assert_eq!(found(archive.path(), &crawls), [""; 0]);
        assert!(found(archive.path(), &[])[0].ends_with("no crawl has this imported recording"));
        fs::write(directory.join(EMPTY), "x").unwrap();
        assert!(found(archive.path(), &crawls)[0].contains("its SHA-256 is "));
    }
}
