//! Pages whose files `archivist import` copies to `.importing` of the archive ([`archivist_shared::staged`]), from
//! where the worker of each page takes its own.

use super::failed;
use crate::client::exit::{Exit, Failure};
use crate::client::fleet::{Fleet, Local};
use crate::client::owner::as_owner;
use crate::client::paging::Paging;
use crate::client::server::{Server, decode};
use crate::display::{listing, style};
use crate::machine::orchestrator::need_root;
use crate::progress::wait::{self, Form};
use crate::queue::summary;
use crate::queue::urls::Urls;
use archivist_config::Scope;
use archivist_core::model::{Lifecycle, Owner, Place};
use archivist_core::text::clean;
use archivist_plugin::Directory;
use archivist_plugin::files::remove::remove_tree;
use archivist_shared::archive::IMPORT_FILE;
use archivist_shared::bus::documents::report::{AddOptions, Added, Crawl, Filter, Snapshot};
use archivist_shared::staged::{STAGED, STAGED_SETTING, is_name, name_of};
use nix::sys::stat::{Mode, umask};
use serde_json::json;
use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Pages of one crawl. A command that is killed leaves what it had queued, and the next one copies the
/// files of the others.
pub const ROUND_MAX: usize = 1000;
/// File whose lock a command holds that imports files.
const LOCK: &str = ".lock";
/// Mode of the directories above those of plugins.
const MODE: u32 = 0o750;

/// URL and time of a page.
pub type Key = (String, Option<String>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StagedEntry {
    pub url: String,
    pub title: Option<String>,
    pub tags: Vec<String>,
    /// Time of the page, as in RFC 3339.
    pub time: Option<String>,
}

/// The directory of staged pages, which this command has locked.
pub struct Stage {
    archive: PathBuf,
    path: PathBuf,
    _lock: File,
}

impl Stage {
    /// Locks the directory, removes what commands have left in it that were killed before they queued it, and
    /// returns the pages that were imported before.
    ///
    /// # Errors
    /// If this process cannot write to the archive, another command imports, or this machine is a node of a
    /// fleet.
    pub async fn open(scope: &Scope) -> Result<(Stage, BTreeSet<Key>, Server), Failure> {
        need_root(scope, "import into")?;
        if Fleet::reach(scope, Local::default()).await?.is_some() {
            return Err(Failure::failed(
                "a node of a fleet imports nothing: other nodes would not have the files",
            ));
        }
        let server = Server::reach(scope).await?;
        umask(Mode::from_bits_truncate(0o007));
        let stage = Stage::lock(&scope.data_dir().join("archive"))?;
        let crawls: Vec<Crawl> = Paging::new(&server, Filter::default()).collect().await?;
        let crawls: Vec<&Crawl> =
            crawls.iter().filter(|crawl| crawl.config.contains_key(STAGED_SETTING)).collect();
        stage.remove_abandoned(&crawls)?;
        let known = imported(&crawls, &server).await?;
        Ok((stage, known, server))
    }

    fn lock(archive: &Path) -> Result<Stage, Failure> {
        let path = archive.join(STAGED);
        let locked = as_owner(archive, || {
            let mut builder = DirBuilder::new();
            builder.mode(MODE).recursive(true).create(&path)?;
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(false).mode(0o640);
            let file = options.open(path.join(LOCK))?;
            file.try_lock()
                .map_err(|_| io::Error::other("another command imports files at the moment"))?;
            Ok(file)
        });
        let lock = locked.map_err(|error| failed("lock", &path, &error))?;
        Ok(Stage { archive: archive.to_owned(), path, _lock: lock })
    }

    fn remove_abandoned(&self, crawls: &[&Crawl]) -> Result<(), Failure> {
        let open: BTreeSet<&str> = crawls
            .iter()
            .filter(|crawl| !crawl.status.is_final())
            .filter_map(|crawl| crawl.config.get(STAGED_SETTING).map(String::as_str))
            .collect();
        let removed = as_owner(&self.archive, || {
            for entry in fs::read_dir(&self.path)? {
                let name = entry?.file_name();
                let name = name.to_string_lossy();
                if is_name(&name) && !open.contains(&*name) {
                    remove_tree(&self.path.join(&*name))?;
                }
            }
            Ok(())
        });
        removed.map_err(|error| failed("clean", &self.path, &error))
    }

    pub fn begin(&self) -> Result<Queue, Failure> {
        let made = as_owner(&self.archive, || {
            let mut random = [0; 16];
            getrandom::fill(&mut random).map_err(|error| io::Error::other(error.to_string()))?;
            let name: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
            let path = self.path.join(&name);
            DirBuilder::new().mode(MODE).create(&path)?;
            Ok((Directory::open(&path)?, path, name))
        });
        let (directory, path, name) =
            made.map_err(|error| failed("write to", &self.path, &error))?;
        Ok(Queue {
            archive: self.archive.clone(),
            path,
            directory,
            name,
            entries: Vec::new(),
            is_queued: false,
        })
    }
}

/// URL and time of the pages that were imported before.
async fn imported(crawls: &[&Crawl], server: &Server) -> Result<BTreeSet<Key>, Failure> {
    let mut known = BTreeSet::new();
    // The pages of a recording are known by its tag.
    for crawl in crawls.iter().filter(|crawl| !crawl.config.contains_key(IMPORT_FILE)) {
        let filter = Filter::of(Owner::Crawl(crawl.id));
        let pages: Vec<Snapshot> = Paging::new(server, filter).collect().await?;
        // The files of a cancelled page are gone.
        let pages = pages.into_iter().filter(|page| page.status != Lifecycle::Cancelled);
        known.extend(pages.map(|page| (page.url, page.bookmarked_at)));
    }
    Ok(known)
}

/// The pages of a crawl. What is not queued is removed.
pub struct Queue {
    pub archive: PathBuf,
    path: PathBuf,
    directory: Directory,
    name: String,
    pub entries: Vec<StagedEntry>,
    is_queued: bool,
}

impl Queue {
    pub fn page(&self, url: &str) -> io::Result<Directory> {
        let name = name_of(url);
        as_owner(&self.archive, || {
            self.directory.make(&name, MODE)?;
            self.directory.enter(&name)
        })
    }

    pub fn failed(&self, error: &io::Error) -> Failure {
        failed("write to", self.directory.path(), error)
    }

    /// Queues the pages with these options, and waits for them if the user wants it. Returns what the
    /// orchestrator added, and the exit status; `None` if there is no page.
    pub async fn add(
        mut self,
        mut options: AddOptions,
        waits: bool,
        server: &Server,
    ) -> Result<Option<(Added, Exit)>, Failure> {
        if self.entries.is_empty() {
            return Ok(None);
        }
        let synced = nix::unistd::syncfs(&self.directory);
        synced.map_err(|error| failed("sync", self.directory.path(), &error.into()))?;
        let mut urls = Urls::default();
        for (number, entry) in (1..).zip(&self.entries) {
            let line = json!({
                "url": entry.url, "title": entry.title, "tags": entry.tags,
                "bookmarked_at": entry.time,
            });
            urls.add_line(Place::Line(number), &line.to_string());
        }
        let setting = (STAGED_SETTING.to_owned(), self.name.clone());
        options.config.extend([setting]);
        let failed =
            |error: serde_json::Error| Failure::failed(format!("failed to write: {error}"));
        let options = serde_json::to_string(&options).map_err(failed)?;
        let memfd = urls.to_memfd()?;
        let call = server.proxy().add(memfd.as_fd().into(), &options);
        // From here on a crawl may have them, also if no answer arrives.
        self.is_queued = true;
        let added: Added = decode(&server.call_with_urls(urls.len(), call).await?)?;
        listing::report(&added.refused, |refused| {
            format!("'{}' refused: {}", clean(&refused.text), refused.why)
        });
        let mut exit = if added.refused.is_empty() { Exit::Done } else { Exit::Partly };
        style::print(&format!("{}\n", summary(&added)))?;
        if waits && added.accepted > 0 {
            match wait::wait(server, None, added.crawl, Form::Lines).await? {
                Exit::Done => {}
                other => exit = other,
            }
        }
        Ok(Some((added, exit)))
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        if !self.is_queued {
            let _ = as_owner(&self.archive, || remove_tree(&self.path));
        }
    }
}
