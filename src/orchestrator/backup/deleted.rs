//! Pages of a backup that were deleted since: a restoration lists them and asks.

use super::{Deleted, Problem, Result, at, of_store};
use crate::database::backup::{ReturnedPage, delete_again, returned};
use crate::machine::clock::now;
use archivist_config::Scope;
use archivist_core::model::{Owner, SnapshotId, without_userinfo};
use archivist_core::text::clean;
use archivist_shared::deleted;
use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::path::Path;

/// Longest list of pages that is printed.
const SHOWN_MAX: usize = 20;

/// The pages of a restored database that were deleted after its backup.
pub struct Returned {
    ids: Vec<Owner>,
    pages: BTreeMap<SnapshotId, ReturnedPage>,
    /// The first of them, as a user sees them.
    shown: Vec<String>,
    /// Whether they are deleted again.
    again: bool,
}

impl Returned {
    /// Finds the pages that the restored database has and the data directory says to be deleted, and asks
    /// what becomes of them. An unreadable record of deletions is reported and ignored.
    ///
    /// # Errors
    /// If the database cannot be read, or if the user does not answer.
    pub fn find(data: &Path, database: &Path, what: Deleted) -> Result<Returned> {
        let known = deleted::read(data).unwrap_or_else(|error| {
            let file = data.join(deleted::FILE);
            eprintln!("failed to read '{}': {error}, ignoring", file.display());
            BTreeMap::new()
        });
        let pages = returned(database, &known).map_err(of_store(database))?;
        let shown = pages.iter().take(SHOWN_MAX).map(|(id, page)| {
            let time = page.deleted_at.to_string();
            let url = clean(&without_userinfo(&page.url));
            format!("  {id}  deleted {}  {url}", &time[..10])
        });
        let shown = shown.collect();
        let mut found = Returned {
            ids: known.into_keys().collect(),
            shown,
            again: what == Deleted::Again,
            pages,
        };
        if what == Deleted::Ask && !found.pages.is_empty() {
            found.again = found.ask()?;
        }
        Ok(found)
    }

    fn count(&self) -> String {
        match self.pages.len() {
            1 => "1 page".to_owned(),
            n => format!("{n} pages"),
        }
    }

    fn were(&self) -> &'static str {
        if self.pages.len() == 1 { "was" } else { "were" }
    }

    fn list(&self) -> String {
        let more = self.pages.len() - self.shown.len();
        let more = (more > 0).then(|| format!("\n  and {more} more"));
        format!("{}{}", self.shown.join("\n"), more.unwrap_or_default())
    }

    fn ask(&self) -> Result<bool> {
        let what = format!(
            "the backup has {} that {} deleted since:\n{}",
            self.count(),
            self.were(),
            self.list()
        );
        let refuse = |why: &str| Problem(format!("{why}; nothing was restored"));
        if !std::io::stdin().is_terminal() {
            return Err(refuse(&format!(
                "{what}\n--yes deletes them again, --keep-deleted keeps them"
            )));
        }
        eprint!("{what}\nDelete them again? [y/n] ");
        let mut answer = String::new();
        let read = std::io::stderr().flush();
        let read = read.and_then(|()| std::io::stdin().read_line(&mut answer));
        read.map_err(|error| refuse(&format!("failed to ask: {error}")))?;
        match answer.trim() {
            "y" | "Y" | "yes" => Ok(true),
            "n" | "N" | "no" => Ok(false),
            _ => Err(refuse("expected y or n")),
        }
    }

    /// Deletes them in the restored database, if that was asked for.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn delete(&self, database: &Path) -> Result<()> {
        if !self.again || self.pages.is_empty() {
            return Ok(());
        }
        delete_again(database, &self.pages, now()).map_err(Problem)
    }

    /// What is printed if they are kept.
    fn kept(&self, scope: &Scope) -> String {
        let (count, options) = (self.count(), scope.options());
        format!(
            "{count} of the backup had been deleted since, and are there again; to delete them: archivist {options}delete ID\n{}",
            self.list()
        )
    }

    /// After the restoration: forgets the deletion of pages that are kept, and prints what became of them.
    ///
    /// # Errors
    /// If the record of deletions cannot be written.
    pub fn settle(&self, data: &Path, scope: &Scope) -> Result<()> {
        if self.pages.is_empty() {
            return Ok(());
        }
        let count = self.count();
        if self.again {
            let were = self.were();
            println!("{count} of the backup had been deleted since, and {were} deleted again");
            return Ok(());
        }
        println!("{}", self.kept(scope));
        let is_back = |owner: &Owner| match owner {
            Owner::Snapshot(id) => self.pages.contains_key(id),
            Owner::Crawl(id) => self.pages.values().any(|page| page.crawl == *id),
        };
        let back: Vec<Owner> = self.ids.iter().copied().filter(is_back).collect();
        let forgotten = deleted::forget(data, &back);
        forgotten.map_err(at("write", &data.join(deleted::FILE)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_core::model::{CrawlId, Time};

    #[test]
    fn command_that_deletes_again_is_that_of_the_archive() {
        let page = || ReturnedPage { crawl: CrawlId(1), url: String::new(), deleted_at: Time(0) };
        let pages = BTreeMap::from_iter([2, 3].map(|id| (SnapshotId(id), page())));
        let found = Returned { ids: Vec::new(), pages, shown: Vec::new(), again: false };
        let own = Scope { user: true, instance: Some("b".to_owned()), ..Scope::system("/") };
        assert!(found.kept(&own).contains("archivist --user --instance b delete ID"));
        assert!(found.kept(&Scope::system("/")).contains(": archivist delete ID"));
    }
}
