//! Restores a backup. Everything is copied next to its place and verified first; until then, and if
//! anything is damaged, nothing changes.

use super::complete::{self, Complete};
use super::deleted::Returned;
use super::index::{BackupEntry, EntryKind, IndexEntries, Look};
use super::place::Root;
use super::{
    COMPLETE, CONFIG, DATA, DATABASE, Deleted, INDEX, Problem, Result, What, at, copy, of_store,
    sync,
};
use crate::database::backup::{check_usable, continue_ids_of};
use crate::runner::locks::RunnerLocks;
use archivist_config::Scope;
use archivist_core::text::human_size;
use archivist_plugin::files::remove::remove_tree;
use nix::unistd::{Group, User, geteuid};
use std::collections::HashMap;
use std::fs::{self, File, FileTimes, Permissions};
use std::io::{BufReader, ErrorKind};
use std::os::unix::fs::{PermissionsExt, fchown, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

/// Longest list of damaged files that is printed.
const SHOWN_MAX: usize = 20;

/// Restores the backup `from`, or the newest one in that directory.
pub fn restore(scope: &Scope, from: &Path, what: What, deleted: Deleted) -> Result<ExitCode> {
    let (backup, complete) = choose(from)?;
    let data = scope.data_dir();
    if complete.data != data {
        return Err(Problem(format!(
            "'{}' is a backup of '{}', and its database has paths of that directory; this is '{}'",
            backup.display(),
            complete.data.display(),
            data.display()
        )));
    }
    if !complete.has_index(&backup)? {
        return Err(damaged(&backup, &[format!("{INDEX}: is damaged")], 1));
    }
    let roots = Root::all(scope, what)?;
    let locks = RunnerLocks::open(&data).map_err(at("open the locks in", &data))?;
    if !locks.hold_all() {
        return Err(Problem(format!(
            "failed to restore '{}': an orchestrator works on it; stop it first",
            data.display()
        )));
    }
    for root in &roots {
        root.stage()?;
    }
    let done = fill(&backup, &roots, scope, what, deleted);
    let (differing, returned) = match done {
        Ok(done) => done,
        Err(problem) => {
            for root in &roots {
                // Named by the next restoration if it stays.
                let _ = remove_tree(&root.staging());
            }
            return Err(problem);
        }
    };
    let mut before = Vec::new();
    for root in roots.iter().rev().filter(|root| root.prefix != Path::new(DATA)) {
        before.extend(root.switch()?);
    }
    // With the database, what was restored is in use.
    for root in roots.iter().filter(|root| root.prefix == Path::new(DATA)) {
        before.extend(root.switch()?);
    }
    print(&backup, &complete, scope, what, &before, &differing);
    returned.settle(&data, scope)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the backup that a path names: itself, or the newest one in it.
fn choose(from: &Path) -> Result<(PathBuf, Complete)> {
    let from = from.canonicalize().map_err(at("open", from))?;
    if let Some(complete) = Complete::read(&from)? {
        return Ok((from, complete));
    }
    let missing = || {
        Problem(format!(
            "'{}' is no backup, and has none: there is no file '{COMPLETE}', which is written last; an interrupted backup is not restored",
            from.display()
        ))
    };
    if from.join(INDEX).exists() {
        return Err(missing());
    }
    let newest = complete::backups(&from)?.pop().ok_or_else(missing)?;
    let complete = Complete::read(&newest)?.ok_or_else(missing)?;
    Ok((newest, complete))
}

fn damaged(backup: &Path, what: &[String], count: usize) -> Problem {
    let mut lines: Vec<String> = what.iter().map(|what| format!("  {what}")).collect();
    let more = count - what.len();
    lines.extend((more > 0).then(|| format!("  and {more} more")));
    Problem(format!(
        "the backup '{}' is damaged, nothing was restored:\n{}\nrestore another one, or copy these files from one",
        backup.display(),
        lines.join("\n")
    ))
}

/// Copies and verifies the files. Returns the files of the configuration that differ, if it is not
/// restored, and the pages that were deleted since.
fn fill(
    backup: &Path,
    roots: &[Root],
    scope: &Scope,
    what: What,
    deleted: Deleted,
) -> Result<(Vec<PathBuf>, Returned)> {
    let data = scope.data_dir();
    let path = backup.join(INDEX);
    let index = File::open(&path).map_err(at("read", &path))?;
    let config = scope.config_dirs().pop().unwrap_or_default();
    let mut filler = Filler {
        backup,
        roots,
        config: &config,
        what,
        owners: (!scope.user && geteuid().is_root()).then(Owners::default),
        directories: Vec::new(),
        damaged: Vec::new(),
        damage: 0,
        differing: Vec::new(),
    };
    for entry in IndexEntries(BufReader::new(index)) {
        filler.entry(&entry.map_err(at("read", &path))?)?;
    }
    if filler.damage > 0 {
        return Err(damaged(backup, &filler.damaged, filler.damage));
    }
    filler.close_directories()?;
    let database = data.join(super::RESTORING).join(DATABASE);
    check_usable(&database).map_err(|error| Problem(error.to_string()))?;
    let continued = continue_ids_of(&data.join(DATABASE), &database);
    continued.map_err(of_store(&database))?;
    let returned = Returned::find(&data, &database, deleted)?;
    returned.delete(&database)?;
    for root in roots {
        sync(&root.path)?;
    }
    Ok((filler.differing, returned))
}

struct Filler<'a> {
    backup: &'a Path,
    roots: &'a [Root],
    config: &'a Path,
    what: What,
    /// None if all files belong to this user.
    owners: Option<Owners>,
    /// Directories, whose modes are set when they are full.
    directories: Vec<(PathBuf, BackupEntry)>,
    /// The first damaged files.
    damaged: Vec<String>,
    damage: usize,
    differing: Vec<PathBuf>,
}

impl Filler<'_> {
    /// Where an entry is restored; none if it is not.
    fn target(&self, path: &Path) -> Option<PathBuf> {
        if path == Path::new(DATABASE) {
            let data = self.roots.iter().find(|root| root.prefix == Path::new(DATA))?;
            return Some(data.staging().join(path));
        }
        let mut roots = self.roots.iter();
        roots.find_map(|root| {
            let rest = path.strip_prefix(&root.prefix).ok()?;
            // An empty path would add a slash.
            Some(root.staging().components().chain(rest.components()).collect())
        })
    }

    fn entry(&mut self, entry: &BackupEntry) -> Result<()> {
        if self.what == What::Database && entry.path != Path::new(DATABASE) {
            return Ok(());
        }
        let path = self.target(&entry.path);
        if let EntryKind::File { look, sha256 } = &entry.kind {
            return self.file(entry, look, sha256, path.as_deref());
        }
        let Some(path) = path else {
            return Ok(());
        };
        if let EntryKind::Link(target) = &entry.kind {
            symlink(target, &path).map_err(at("create", &path))?;
            return match self.owner(entry)? {
                None => Ok(()),
                Some((user, group)) => {
                    lchown(&path, Some(user), Some(group)).map_err(at("write", &path))
                }
            };
        }
        match fs::create_dir(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            other => other.map_err(at("create", &path))?,
        }
        self.directories.push((path, entry.clone()));
        Ok(())
    }

    fn file(
        &mut self,
        entry: &BackupEntry,
        look: &Look,
        sha256: &str,
        target: Option<&Path>,
    ) -> Result<()> {
        let from = self.backup.join(&entry.path);
        let file = match File::open(&from) {
            Ok(file) => file,
            Err(error) => {
                self.damage(&entry.path, &error.to_string());
                return Ok(());
            }
        };
        let Some(target) = target else {
            match copy::digest(&file) {
                Ok(sum) if sum == sha256 => self.compare(&entry.path, sha256),
                Ok(_) => self.damage(&entry.path, "is damaged"),
                Err(error) => self.damage(&entry.path, &error.to_string()),
            }
            return Ok(());
        };
        let (copied, sum) = copy::copy(&file, target).map_err(at("write", target))?;
        if sum != *sha256 {
            self.damage(&entry.path, "is damaged");
            return Ok(());
        }
        let dressed = || -> std::io::Result<()> {
            copied.set_permissions(Permissions::from_mode(entry.mode & 0o777))?;
            copied.set_times(FileTimes::new().set_modified(time(look.modified)))
        };
        if let Some((user, group)) = self.owner(entry)? {
            fchown(&copied, Some(user), Some(group)).map_err(at("write", target))?;
        }
        dressed().map_err(at("write", target))
    }

    fn damage(&mut self, path: &Path, what: &str) {
        self.damage += 1;
        if self.damaged.len() < SHOWN_MAX {
            self.damaged.push(format!("{}: {what}", path.display()));
        }
    }

    /// Notes a file of the configuration that is not what it was.
    fn compare(&mut self, path: &Path, sha256: &str) {
        let Ok(rest) = path.strip_prefix(CONFIG) else {
            return;
        };
        let present = self.config.join(rest);
        let sum = File::open(&present).and_then(copy::digest);
        if sum.is_ok_and(|sum| sum != sha256) || !present.exists() {
            self.differing.push(present);
        }
    }

    fn owner(&mut self, entry: &BackupEntry) -> Result<Option<(u32, u32)>> {
        match &mut self.owners {
            None => Ok(None),
            Some(owners) => owners.of(entry).map(Some),
        }
    }

    /// Sets owners and modes of the directories, the deepest first.
    fn close_directories(&mut self) -> Result<()> {
        for (path, entry) in std::mem::take(&mut self.directories).into_iter().rev() {
            // That of the root itself is set, not of where its content is until now.
            let root = self.roots.iter().find(|root| root.prefix == entry.path);
            let path = root.map_or(path, |root| root.path.clone());
            let owner = self.owner(&entry)?;
            let dressed = || -> std::io::Result<()> {
                let open = File::open(&path)?;
                if let Some((user, group)) = owner {
                    fchown(&open, Some(user), Some(group))?;
                }
                open.set_permissions(Permissions::from_mode(entry.mode))
            };
            dressed().map_err(at("write", &path))?;
        }
        Ok(())
    }
}

fn time(nanos: i128) -> SystemTime {
    let (whole, part) =
        (nanos.unsigned_abs() / 1_000_000_000, nanos.unsigned_abs() % 1_000_000_000);
    let whole = u64::try_from(whole).unwrap_or(u64::MAX);
    let span = Duration::new(whole, u32::try_from(part).unwrap_or_default());
    let epoch = SystemTime::UNIX_EPOCH;
    let time = if nanos < 0 { epoch.checked_sub(span) } else { epoch.checked_add(span) };
    time.unwrap_or(epoch)
}

/// Ids of users and groups on this machine, which may differ from those of the backup's.
#[derive(Default)]
struct Owners {
    users: HashMap<String, u32>,
    groups: HashMap<String, u32>,
}

impl Owners {
    fn of(&mut self, entry: &BackupEntry) -> Result<(u32, u32)> {
        // The database has none: root.
        if entry.user.is_empty() {
            return Ok((0, 0));
        }
        let user_of = |name: &str| Some(User::from_name(name).ok()??.uid.as_raw());
        let group_of = |name: &str| Some(Group::from_name(name).ok()??.gid.as_raw());
        let user = id("user", &entry.user, &mut self.users, user_of)?;
        let group = id("group", &entry.group, &mut self.groups, group_of)?;
        Ok((user, group))
    }
}

/// Returns the id of a user or group by its name, or by a number in place of a name.
fn id(
    what: &str,
    name: &str,
    known: &mut HashMap<String, u32>,
    find: impl Fn(&str) -> Option<u32>,
) -> Result<u32> {
    if let Some(id) = known.get(name) {
        return Ok(*id);
    }
    let id = find(name).or_else(|| name.parse().ok()).ok_or_else(|| {
        Problem(format!(
            "{what} '{name}' does not exist on this machine: install the same version of archivist, or create the {what}, and restore again"
        ))
    })?;
    known.insert(name.to_owned(), id);
    Ok(id)
}

fn print(
    backup: &Path,
    complete: &Complete,
    scope: &Scope,
    what: What,
    before: &[PathBuf],
    differing: &[PathBuf],
) {
    let which = match what {
        What::Database => "the database alone".to_owned(),
        _ => format!("{} files, {}", complete.files, human_size(complete.bytes)),
    };
    println!(
        "restored: {}\nof {} on '{}': {which}, all intact",
        backup.display(),
        complete.taken_at,
        complete.host,
    );
    for path in before {
        println!("what was there is in '{}'; remove it when you do not need it", path.display());
    }
    let left_out = complete.left_out.len();
    if left_out > 0 {
        println!(
            "{left_out} pages were not in the backup, or not whole, see '{}'; those that ran start again, for others: archivist {}retry --failed",
            backup.join(COMPLETE).display(),
            scope.options()
        );
    }
    if !differing.is_empty() {
        println!("the configuration differs and was not restored (restore --config does that):");
        for path in differing {
            println!("  {}", path.display());
        }
    }
}
