//! What a check found, and how it is printed.

use crate::client::hint::{in_scope, shell_word};
use crate::display::style::{Style, Tone};
use archivist_config::Scope;
use archivist_core::model::{IdMarks, Owner, SnapshotId};
use archivist_core::text::{clean, human_size};
use archivist_worker::lists::ListName;
use serde::{Serialize, Serializer};
use std::path::PathBuf;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The directory of a crawl or page is missing, or that of another one.
    Directory,
    File,
    /// A file has another size than its result says.
    Size,
    /// A file has another SHA-256 than `hashes.json` says.
    Digest,
    /// A copy in the store is missing or damaged, or no row has its page.
    Copy,
    /// A list of the archive, or the page about a snapshot, is missing, damaged or out of date.
    List,
    /// No crawl and no page has this directory.
    Unknown,
    /// A page was deleted, and a database that was restored has it again.
    Deleted,
    /// Ids may be handed out again.
    Ids,
    /// The search index is damaged, lacks a page, or has a deleted one.
    Index,
}

/// What `--repair` does about a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Repair {
    /// All hooks of the page run again.
    Retry(SnapshotId),
    /// New ids are higher than these.
    Ids(IdMarks),
    Page(SnapshotId),
    List(ListName),
    /// The search index is built again.
    Index,
    /// The recording of a page that no row has is imported.
    Import(PathBuf),
}

impl Repair {
    /// Returns the repair as a command or a sentence.
    pub fn text(&self) -> String {
        match self {
            Repair::Retry(id) => format!("archivist retry --all {id}"),
            Repair::Ids(ids) => format!("continue above {ids}: archivist fsck --repair"),
            Repair::Index => "archivist search --rebuild".to_owned(),
            Repair::Import(path) => format!("archivist import {}", shell_word(path)),
            Repair::Page(_) | Repair::List(_) => "rebuild it: archivist fsck --repair".to_owned(),
        }
    }
}

impl Serialize for Repair {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub kind: Kind,
    /// The crawl or page, if a row is known.
    pub id: Option<Owner>,
    /// The file or directory.
    pub path: String,
    /// The problem as a sentence.
    pub what: String,
    /// `None` if `--repair` does nothing about it.
    pub repair: Option<Repair>,
    /// `--repair` has done it.
    pub repaired: bool,
}

impl Finding {
    pub fn new(kind: Kind, path: impl Into<String>, what: impl Into<String>) -> Finding {
        Finding {
            kind,
            id: None,
            path: path.into(),
            what: what.into(),
            repair: None,
            repaired: false,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Checked {
    pub crawls: u64,
    /// Pages whose work is over.
    pub pages: u64,
    /// Of these, the ones whose files are in the store alone.
    pub stored: u64,
    pub files: u64,
    pub copies: u64,
    /// Of these, the ones on other hosts whose size alone was compared.
    pub unread: u64,
    /// Bytes of the latter.
    pub unread_bytes: u64,
    /// Copies on other hosts that were not compared.
    pub elsewhere: u64,
    /// Files whose SHA-256 was compared.
    pub digests: u64,
    /// Bytes of the latter.
    pub bytes: u64,
    /// Pages of the search index. `None`: there is none, or it is behind the rows.
    pub indexed: Option<u64>,
    /// Whether the search index was being changed.
    pub index_is_behind: bool,
}

impl Checked {
    pub fn add(&mut self, other: &Checked) {
        self.crawls += other.crawls;
        self.pages += other.pages;
        self.stored += other.stored;
        self.files += other.files;
        self.copies += other.copies;
        self.unread += other.unread;
        self.unread_bytes += other.unread_bytes;
        self.elsewhere += other.elsewhere;
        self.digests += other.digests;
        self.bytes += other.bytes;
        self.indexed = self.indexed.or(other.indexed);
        self.index_is_behind |= other.index_is_behind;
    }
}

/// The document of `--json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    pub checked: Checked,
    pub findings: Vec<Finding>,
}

impl Report {
    pub fn add(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    pub fn extend(&mut self, findings: Vec<Finding>) {
        self.findings.extend(findings);
    }

    /// Returns whether nothing was found, or all of it was repaired.
    pub fn is_clean(&self) -> bool {
        self.findings.iter().all(|finding| finding.repaired)
    }

    /// Returns the findings as lines, and a last line with what was compared.
    pub fn listed(&self, style: &Style, scope: &Scope) -> String {
        let mut out = String::new();
        for finding in &self.findings {
            if let Some(id) = finding.id {
                out.push_str(&style.paint(&id.to_string(), Tone::Bad));
                out.push_str("  ");
            }
            out.push_str(&format!("{}: {}\n", clean(&finding.path), clean(&finding.what)));
            if let Some(repair) = &finding.repair {
                let fix = in_scope(&repair.text(), scope);
                out.push_str(&format!("    → {fix}\n"));
            }
        }
        out.push_str(&self.summary());
        out
    }

    fn summary(&self) -> String {
        let Checked {
            crawls,
            pages,
            stored,
            files,
            copies,
            unread,
            unread_bytes,
            elsewhere,
            digests,
            bytes,
            indexed,
            index_is_behind,
        } = self.checked;
        let found = match self.findings.len() {
            0 => "no problem".to_owned(),
            n => counted(n as u64, "problem", "problems"),
        };
        let pages_of = |count| counted(count, "page", "pages");
        let mut parts = vec![
            counted(crawls, "crawl", "crawls"),
            pages_of(pages),
            counted(files, "file", "files"),
        ];
        if stored > 0 {
            parts.push(format!("{} in the store alone", pages_of(stored)));
        }
        if copies > 0 {
            parts.push(counted(copies, "copy", "copies"));
        }
        if digests > 0 {
            let digests = counted(digests, "digest", "digests");
            parts.push(format!("{digests} ({})", human_size(bytes)));
        }
        if let Some(indexed) = indexed {
            parts.push(format!("{} of the search index", pages_of(indexed)));
        }
        let mut out = format!("compared {}: {found}\n", parts.join(", "));
        if index_is_behind {
            out.push_str("the search index was being changed, and its pages were not compared\n");
        }
        if unread > 0 {
            let size = human_size(unread_bytes);
            out.push_str(&format!(
                "{unread} copies ({size}) are on other hosts, and only their sizes were compared; to read them: archivist fsck --download\n"
            ));
        }
        if elsewhere > 0 {
            out.push_str(&format!(
                "{elsewhere} copies are on other hosts, and were not compared\n"
            ));
        }
        out
    }
}

/// A number and what it counts.
fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_core::model::Time;

    #[test]
    fn findings_are_listed_with_their_repair() {
        let mut report = Report::default();
        let scope = Scope::system("/");
        let style = Style::plain(Time(0));
        assert!(report.is_clean());
        assert_eq!(
            report.listed(&style, &scope),
            "compared 0 crawls, 0 pages, 0 files: no problem\n"
        );
        report.checked = Checked { crawls: 1, pages: 1, digests: 1, ..Checked::default() };
        assert_eq!(
            report.listed(&style, &scope),
            "compared 1 crawl, 1 page, 0 files, 1 digest (0B): no problem\n"
        );
        report.checked = Checked { digests: 3, bytes: 2048, ..Checked::default() };
        report.add(Finding {
            id: Some(Owner::Snapshot(SnapshotId(3))),
            repair: Some(Repair::Retry(SnapshotId(3))),
            ..Finding::new(Kind::Directory, "/a/s3", "its directory is missing")
        });
        report.add(Finding {
            repair: Some(Repair::Import("/a b/s4/wacz/page.wacz".into())),
            ..Finding::new(Kind::Unknown, "/a/\u{1b}s4", "no row has this directory")
        });
        assert!(!report.is_clean());
        assert_eq!(
            report.listed(&style, &scope),
            "s3  /a/s3: its directory is missing\n    → archivist retry --all s3\n\
             /a/\u{fffd}s4: no row has this directory\n    → archivist import '/a b/s4/wacz/page.wacz'\n\
             compared 0 crawls, 0 pages, 0 files, 3 digests (2.0K): 2 problems\n"
        );
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["findings"][0]["repair"], "archivist retry --all s3");
        assert_eq!(json["findings"][1]["kind"], "unknown");
        for finding in &mut report.findings {
            finding.repaired = true;
        }
        assert!(report.is_clean());
    }
}
