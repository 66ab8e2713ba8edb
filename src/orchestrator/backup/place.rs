//! Puts restored files into place, and what was there out of the way.

use super::{
    ARCHIVE, BEFORE, CONFIG, DATA, DATABASE, LOCKS, LOST_FOUND, Problem, RESTORING, Result, What,
    at, complete, sync,
};
use crate::machine::clock::now;
use archivist_config::Scope;
use archivist_core::model::Time;
use archivist_plugin::files::remove::remove_tree;
use archivist_shared::deleted;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// A directory whose content is replaced: nothing is renamed from one file system to another.
pub struct Root {
    pub path: PathBuf,
    /// Its path in a backup.
    pub prefix: PathBuf,
    /// The archive is another root.
    is_without_archive: bool,
    /// Everything else stays.
    is_database: bool,
}

impl Root {
    /// Returns the directories of a scope that a restoration replaces, those below others first.
    ///
    /// # Errors
    /// If one cannot be created, or another file system is mounted in it.
    pub fn all(scope: &Scope, what: What) -> Result<Vec<Root>> {
        let data = scope.data_dir();
        fs::create_dir_all(&data).map_err(at("create", &data))?;
        if what == What::Database {
            return Ok(vec![Root {
                path: data,
                prefix: DATA.into(),
                is_without_archive: false,
                is_database: true,
            }]);
        }
        let mut roots = Vec::new();
        let archive = data.join(ARCHIVE);
        let separate = separate(&data, &archive)?;
        roots.extend(separate.map(|path| Root {
            path,
            prefix: Path::new(DATA).join(ARCHIVE),
            is_without_archive: false,
            is_database: false,
        }));
        roots.push(Root {
            path: data,
            prefix: DATA.into(),
            is_without_archive: !roots.is_empty(),
            is_database: false,
        });
        if let Some(path) = scope.config_dirs().pop().filter(|_| what == What::DataAndConfig) {
            fs::create_dir_all(&path).map_err(at("create", &path))?;
            roots.push(Root {
                path,
                prefix: CONFIG.into(),
                is_without_archive: false,
                is_database: false,
            });
        }
        for root in &roots {
            root.refuse_mounts()?;
        }
        Ok(roots)
    }

    /// Where the files are until all are verified.
    pub fn staging(&self) -> PathBuf {
        self.path.join(RESTORING)
    }

    /// Makes that directory, empty.
    pub fn stage(&self) -> Result<()> {
        let path = self.staging();
        remove_tree(&path).map_err(at("remove", &path))?;
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(at("create", &path))
    }

    fn stays(&self, name: &OsStr) -> bool {
        [LOCKS, LOST_FOUND, RESTORING, deleted::FILE].iter().any(|stays| name == *stays)
            || name.as_bytes().starts_with(BEFORE.as_bytes())
            || (self.is_without_archive && name == ARCHIVE)
    }

    /// Names in the directory that are replaced; those of the database last.
    fn replaced(&self) -> Result<Vec<OsString>> {
        let mut names = names(&self.path)?;
        names.retain(|name| !self.stays(name));
        if self.is_database {
            names.retain(|name| name.as_bytes().starts_with(DATABASE.as_bytes()));
        }
        Ok(names)
    }

    fn refuse_mounts(&self) -> Result<()> {
        let own = fs::metadata(&self.path).map_err(at("read", &self.path))?.dev();
        for name in self.replaced()? {
            let path = self.path.join(name);
            let found = fs::symlink_metadata(&path).map_err(at("read", &path))?;
            if found.dev() != own {
                return Err(Problem(format!(
                    "failed to restore '{}': another file system is mounted there; unmount it first",
                    path.display()
                )));
            }
        }
        Ok(())
    }

    /// The present time, or a later one that no earlier restoration used.
    fn free_time(&self) -> String {
        let mut time = now();
        loop {
            let name = complete::name(time);
            if !self.path.join(format!("{BEFORE}{name}")).exists() {
                return name;
            }
            time = Time(time.0 + 1000);
        }
    }

    /// Moves what is in the directory into one with the time in its name, and the restored files into
    /// place; the database last, because with it they are in use. Returns the directory of the
    /// former, if there was something.
    pub fn switch(&self) -> Result<Option<PathBuf>> {
        let old = self.replaced()?;
        let before = self.path.join(format!("{BEFORE}{}", self.free_time()));
        if !old.is_empty() {
            let made = DirBuilder::new().mode(0o700).create(&before);
            made.map_err(at("create", &before))?;
        }
        let is_database = |name: &OsStr| {
            name.as_bytes().starts_with(DATABASE.as_bytes()) && self.prefix == Path::new(DATA)
        };
        let (databases, others): (Vec<_>, Vec<_>) =
            old.into_iter().partition(|name| is_database(name));
        let is_empty = databases.is_empty() && others.is_empty();
        for name in &others {
            rename(&self.path.join(name), &before.join(name))?;
        }
        let staging = self.staging();
        let mut new = names(&staging)?;
        new.sort_by_key(|name| is_database(name));
        for name in new.iter().filter(|name| !is_database(name)) {
            rename(&staging.join(name), &self.path.join(name))?;
        }
        // First a second name for all of them: a database without its log lacks the last transactions.
        for name in &databases {
            let (from, to) = (self.path.join(name), before.join(name));
            fs::hard_link(&from, &to).map_err(at("move", &from))?;
        }
        for name in databases.iter().filter(|name| *name != DATABASE) {
            let path = self.path.join(name);
            fs::remove_file(&path).map_err(at("remove", &path))?;
        }
        for name in new.iter().filter(|name| is_database(name)) {
            rename(&staging.join(name), &self.path.join(name))?;
        }
        remove_tree(&staging).map_err(at("remove", &staging))?;
        sync(&self.path)?;
        Ok((!is_empty).then_some(before))
    }
}

fn rename(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to).map_err(at("move", from))
}

fn names(directory: &Path) -> Result<Vec<OsString>> {
    let entries = fs::read_dir(directory).map_err(at("read", directory))?;
    let names = entries.map(|entry| entry.map(|entry| entry.file_name()));
    names.collect::<std::io::Result<_>>().map_err(at("read", directory))
}

/// The real path of the archive if it is a link or on a file system of its own.
fn separate(data: &Path, archive: &Path) -> Result<Option<PathBuf>> {
    let link = match fs::symlink_metadata(archive) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        other => other.map_err(at("read", archive))?,
    };
    let own = fs::metadata(data).map_err(at("read", data))?.dev();
    if !link.is_symlink() && link.dev() == own {
        return Ok(None);
    }
    let real = archive.canonicalize().map_err(at("open", archive))?;
    Ok(Some(real))
}
