//! Copies the files of a snapshot of ArchiveBox. Everything below the data directory is hostile: no link is
//! followed, and only regular files and directories are copied.

use super::layout::{self, Layout};
use crate::client::owner::as_owner;
use archivist_core::model::{ResultState, Verdict};
use archivist_plugin::Directory;
use archivist_plugin::files::beneath::is_file;
use archivist_shared::archivebox::BoxSnapshot;
use archivist_shared::staged::{STAGED_HOOK, StagedPage, StagedResult};
use nix::libc::{S_IFDIR, S_IFLNK, S_IFMT};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::{self, ErrorKind, Write};
use std::path::Path;

/// Mode of the directories of plugins, to which hooks may write, as in that of a page.
const PLUGIN_MODE: u32 = 0o770;
/// Mode of directories in them.
const DIRECTORY_MODE: u32 = 0o750;
/// Mode of files.
const FILE_MODE: u32 = 0o640;
/// Entries of one snapshot that are copied.
const ENTRIES_MAX: u64 = 200_000;
/// Levels of directories that are copied.
const DEPTH_MAX: usize = 60;
/// Faults that are kept as texts.
const FAULTS_MAX: usize = 20;
/// Name of the file with the output of a hook.
const OUTPUT: &str = "stdout.log";

/// What was found in the directory of a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub files: u64,
    pub bytes: u64,
    /// Links, devices and pipes, which are left out.
    pub left_out: u64,
    /// Files that cannot be read.
    pub damaged: u64,
    /// Names of the first of both, with reasons.
    pub faults: Vec<String>,
    /// Files of each plugin.
    by_plugin: BTreeMap<String, u64>,
    /// Plugins of which a file could not be read.
    broken: BTreeSet<String>,
    entries: u64,
}

impl Tally {
    /// Counts a file that cannot be read.
    fn damaged(&mut self, path: &str, error: &io::Error) {
        self.damaged += 1;
        self.fault(path, &error.to_string());
    }

    /// Counts an entry that is left out.
    fn left_out(&mut self, path: &str, why: &str) {
        self.left_out += 1;
        self.fault(path, why);
    }

    fn fault(&mut self, path: &str, why: &str) {
        if self.faults.len() < FAULTS_MAX {
            self.faults.push(format!("{path}: {why}"));
        }
    }
}

/// How a result was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Taken {
    /// As ArchiveBox recorded it.
    Whole,
    /// It is a success without its files.
    WithoutFiles,
    /// Some of its files cannot be read.
    Damaged,
    /// It has a name that no plugin can have.
    Unknown,
}

/// The extractor of each result, and how it was taken.
pub type Results = Vec<(String, Taken)>;

/// The directory in the archive that gets the files of a snapshot.
pub struct Target<'a> {
    /// Root directory of the archive, whose owner gets the files.
    pub archive: &'a Path,
    pub directory: &'a Directory,
}

/// Copies the files of a snapshot to `target`, or counts them if there is none.
///
/// # Errors
/// If the archive cannot be written.
pub fn take(
    snapshot: &BoxSnapshot,
    source: Option<&(Directory, Layout)>,
    target: Option<&Target<'_>>,
) -> io::Result<(Tally, StagedPage, Results)> {
    let extractors: BTreeSet<String> = snapshot
        .results
        .iter()
        .filter_map(|result| layout::plugin(&result.extractor))
        .collect();
    let mut tally = Tally::default();
    if let Some((directory, layout)) = source {
        copy_all(directory, *layout, &extractors, target, &mut tally)?;
    }
    let (page, taken) = results(snapshot, source, &extractors, &tally);
    if let Some(target) = target {
        write_records(&page, target)?;
    }
    Ok((tally, page, taken))
}

/// Writes what hooks of other plugins read of a success: the last line of the output of its hook.
fn write_records(page: &StagedPage, target: &Target<'_>) -> io::Result<()> {
    for result in &page.results {
        let succeeded = result.verdict.state == ResultState::Succeeded;
        let output = result.output.as_deref().unwrap_or_default();
        let Some(path) = output.strip_prefix(&format!("{}/", result.plugin)) else {
            continue;
        };
        if !succeeded || !result.has_files {
            continue;
        }
        let record = json!({"type": "ArchiveResult", "status": "succeeded", "output_str": path});
        let directory = make(target, OsStr::new(&result.plugin), PLUGIN_MODE)?;
        as_owner(target.archive, || {
            match directory.create(OUTPUT, FILE_MODE) {
                // Versions since 0.9 have one of their own.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
                file => writeln!(file?, "{record}"),
            }
        })?;
    }
    Ok(())
}

fn copy_all(
    source: &Directory,
    layout: Layout,
    extractors: &BTreeSet<String>,
    target: Option<&Target<'_>>,
    tally: &mut Tally,
) -> io::Result<()> {
    let names = match source.names() {
        Ok(names) => names,
        Err(error) => {
            tally.damaged(".", &error);
            return Ok(());
        }
    };
    for name in names {
        let shown = name.to_string_lossy();
        let is_directory = source
            .stat(&name)
            .is_ok_and(|found| found.st_mode & S_IFMT == S_IFDIR);
        let (plugin, path) = layout::spot(layout, &shown, is_directory, extractors);
        let before = (tally.files, tally.damaged);
        let made = match target {
            Some(target) => Some(make(target, OsStr::new(&plugin), PLUGIN_MODE)?),
            None => None,
        };
        let into = made.as_ref().zip(target).map(|(directory, target)| Target {
            archive: target.archive,
            directory,
        });
        copy_entry(source, &name, &path, into.as_ref(), tally)?;
        *tally.by_plugin.entry(plugin.clone()).or_default() += tally.files - before.0;
        if tally.damaged > before.1 {
            tally.broken.insert(plugin);
        }
    }
    Ok(())
}

/// Copies an entry of the snapshot's directory. An empty `path` stands for the content of a directory.
fn copy_entry(
    source: &Directory,
    name: &OsStr,
    path: &str,
    target: Option<&Target<'_>>,
    tally: &mut Tally,
) -> io::Result<()> {
    if !path.is_empty() {
        return copy(source, name, target, 0, tally);
    }
    let Ok(inner) = source.enter(name) else {
        return Ok(());
    };
    copy_content(&inner, target, 1, tally)
}

fn copy_content(
    source: &Directory,
    target: Option<&Target<'_>>,
    depth: usize,
    tally: &mut Tally,
) -> io::Result<()> {
    let names = match source.names() {
        Ok(names) => names,
        Err(error) => {
            tally.damaged(&source.path().to_string_lossy(), &error);
            return Ok(());
        }
    };
    for name in names {
        copy(source, &name, target, depth, tally)?;
    }
    Ok(())
}

fn copy(
    source: &Directory,
    name: &OsStr,
    target: Option<&Target<'_>>,
    depth: usize,
    tally: &mut Tally,
) -> io::Result<()> {
    let path = source.path().join(name);
    let shown = path.to_string_lossy();
    tally.entries += 1;
    if tally.entries > ENTRIES_MAX || depth > DEPTH_MAX {
        tally.left_out(&shown, "too many files or levels");
        return Ok(());
    }
    let found = match source.stat(name) {
        Ok(found) => found,
        Err(error) => {
            tally.damaged(&shown, &error);
            return Ok(());
        }
    };
    if is_file(&found) {
        return match copy_file(source, name, target) {
            Ok(bytes) => {
                tally.files += 1;
                tally.bytes += bytes;
                Ok(())
            }
            Err(error) if is_of_archive(&error) => Err(error),
            Err(error) => {
                tally.damaged(&shown, &error);
                Ok(())
            }
        };
    }
    if found.st_mode & S_IFMT != S_IFDIR {
        let is_link = found.st_mode & S_IFMT == S_IFLNK;
        tally.left_out(
            &shown,
            if is_link {
                "a symbolic link"
            } else {
                "no regular file"
            },
        );
        return Ok(());
    }
    let inner = match source.enter(name) {
        Ok(inner) => inner,
        Err(error) => {
            tally.damaged(&shown, &error);
            return Ok(());
        }
    };
    let Some(target) = target else {
        return copy_content(&inner, None, depth + 1, tally);
    };
    let directory = make(target, name, DIRECTORY_MODE)?;
    let into = Target {
        archive: target.archive,
        directory: &directory,
    };
    copy_content(&inner, Some(&into), depth + 1, tally)
}

/// Copies a file with its time, and returns its size. The kernel shares the content, if the file system
/// can do that (copy_file_range(2)).
fn copy_file(source: &Directory, name: &OsStr, target: Option<&Target<'_>>) -> io::Result<u64> {
    let mut file = source.read(name)?;
    let metadata = file.metadata()?;
    let Some(target) = target else {
        return Ok(metadata.len());
    };
    as_owner(target.archive, || {
        let mut copy = target.directory.create(name, FILE_MODE)?;
        match io::copy(&mut file, &mut copy) {
            Ok(bytes) => {
                copy.set_modified(metadata.modified()?)?;
                Ok(bytes)
            }
            Err(error) => {
                target.directory.unlink(name)?;
                Err(error)
            }
        }
    })
}

/// Whether the archive cannot be written, so that no other file can.
fn is_of_archive(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::ReadOnlyFilesystem
    )
}

fn make(target: &Target<'_>, name: &OsStr, mode: u32) -> io::Result<Directory> {
    as_owner(target.archive, || match target.directory.make(name, mode) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => target.directory.enter(name),
    })
}

/// The results of the snapshot as ours, and how each was taken, by extractor.
fn results(
    snapshot: &BoxSnapshot,
    source: Option<&(Directory, Layout)>,
    extractors: &BTreeSet<String>,
    tally: &Tally,
) -> (StagedPage, Results) {
    let mut page = StagedPage::default();
    let mut all = Vec::new();
    for result in &snapshot.results {
        let Some(plugin) = layout::plugin(&result.extractor) else {
            all.push((result.extractor.clone(), Taken::Unknown));
            continue;
        };
        let mut verdict = layout::verdict(&result.status, &result.output);
        let mut output = Some(result.output.trim().to_owned())
            .filter(|text| !text.is_empty() && verdict.error.as_ref() != Some(text));
        let files = tally.by_plugin.get(&plugin).copied().unwrap_or_default();
        let mut taken = Taken::Whole;
        if verdict.state == ResultState::Succeeded {
            let path = source
                .zip(output.as_deref())
                .and_then(|((_, layout), text)| {
                    layout::output_path(*layout, &plugin, text, extractors)
                });
            if files == 0 && layout::requires_files(&plugin) {
                taken = Taken::WithoutFiles;
                verdict = Verdict {
                    state: ResultState::Failed,
                    error: Some(
                        "succeeded in ArchiveBox, whose directory has no file of it".to_owned(),
                    ),
                };
            }
            if let Some(path) = path.filter(|path| !path.is_empty() && files > 0) {
                output = Some(format!("{plugin}/{path}"));
            }
        }
        if taken == Taken::Whole && tally.broken.contains(&plugin) {
            taken = Taken::Damaged;
        }
        all.push((result.extractor.clone(), taken));
        page.results.push(StagedResult {
            plugin,
            hook: STAGED_HOOK.to_owned(),
            verdict,
            output,
            started_at: result.started_at.or(result.ended_at),
            ended_at: result.ended_at.or(result.started_at),
            has_files: false,
        });
    }
    name_hooks(&mut page);
    (page, all)
}

/// Gives the results of a plugin hooks of their own, and the files to the newest success, or to the newest
/// result if there is none: an extractor that runs again writes over its files.
fn name_hooks(page: &mut StagedPage) {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut with_files: BTreeMap<String, (bool, usize)> = BTreeMap::new();
    for (at, result) in page.results.iter_mut().enumerate() {
        let count = counts.entry(result.plugin.clone()).or_default();
        *count += 1;
        if *count > 1 {
            result.hook = format!("{STAGED_HOOK}-{count}");
        }
        let succeeded = result.verdict.state == ResultState::Succeeded;
        let best = with_files
            .entry(result.plugin.clone())
            .or_insert((succeeded, at));
        if succeeded >= best.0 {
            *best = (succeeded, at);
        }
    }
    for (_, at) in with_files.into_values() {
        page.results[at].has_files = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_shared::archivebox::BoxResult;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn result(extractor: &str, status: &str, output: &str) -> BoxResult {
        BoxResult {
            extractor: extractor.to_owned(),
            status: status.to_owned(),
            output: output.to_owned(),
            ..BoxResult::default()
        }
    }

    #[test]
    fn files_get_their_plugins_and_links_stay_outside() {
        let top = tempfile::tempdir().unwrap();
        let (from, to) = (top.path().join("1618912800"), top.path().join("archive"));
        for directory in ["warc", "a.test/deep", "media"] {
            fs::create_dir_all(from.join(directory)).unwrap();
        }
        fs::create_dir(&to).unwrap();
        fs::write(top.path().join("secret"), "SECRET").unwrap();
        for file in [
            "warc/1.warc.gz",
            "a.test/deep/index.html",
            "output.html",
            "notes.txt",
        ] {
            fs::write(from.join(file), file).unwrap();
        }
        fs::set_permissions(from.join("output.html"), PermissionsExt::from_mode(0o4777)).unwrap();
        symlink("../secret", from.join("output.pdf")).unwrap();
        symlink("..", from.join("a.test/up")).unwrap();
        symlink("/etc", from.join("git")).unwrap();
        nix::unistd::mkfifo(&from.join("favicon.ico"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let snapshot = BoxSnapshot {
            results: vec![
                result("wget", "failed", "Boom"),
                result("wget", "succeeded", "a.test/deep/index.html"),
                result("wget", "failed", "Boom again"),
                result("dom", "succeeded", "output.html"),
                result("pdf", "succeeded", "output.pdf"),
                result("title", "succeeded", "A title"),
                result("../x", "succeeded", ""),
            ],
            ..BoxSnapshot::default()
        };
        let source = (Directory::open(&from).unwrap(), Layout::Flat);
        let into = Directory::open(&to).unwrap();
        let target = Target {
            archive: &to,
            directory: &into,
        };
        let (tally, page, taken) = take(&snapshot, Some(&source), Some(&target)).unwrap();
        assert_eq!((tally.files, tally.left_out, tally.damaged), (4, 4, 0));
        let text = |path: &str| fs::read_to_string(to.join(path)).unwrap();
        assert_eq!(text("wget/warc/1.warc.gz"), "warc/1.warc.gz");
        assert_eq!(
            text("wget/a.test/deep/index.html"),
            "a.test/deep/index.html"
        );
        assert_eq!(text("import/notes.txt"), "notes.txt");
        assert_eq!(
            text("dom/stdout.log"),
            "{\"type\":\"ArchiveResult\",\"status\":\"succeeded\",\"output_str\":\"output.html\"}\n"
        );
        let mode = fs::metadata(to.join("dom/output.html"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o7137, 0, "{mode:o}");
        for link in [
            "pdf/output.pdf",
            "wget/a.test/up",
            "import/git",
            "import/favicon.ico",
        ] {
            assert!(to.join(link).symlink_metadata().is_err(), "{link}");
        }
        let kinds: Vec<Taken> = taken.iter().map(|(_, taken)| *taken).collect();
        let mut expected = vec![Taken::Whole; 7];
        (expected[4], expected[6]) = (Taken::WithoutFiles, Taken::Unknown);
        assert_eq!(kinds, expected);
        let rows: Vec<_> = page
            .results
            .iter()
            .map(|row| (row.plugin.as_str(), row.hook.as_str(), row.has_files))
            .collect();
        assert_eq!(
            rows,
            [
                ("wget", "archivebox", false),
                ("wget", "archivebox-2", true),
                ("wget", "archivebox-3", false),
                ("dom", "archivebox", true),
                ("pdf", "archivebox", true),
                ("title", "archivebox", true),
            ]
        );
        assert_eq!(
            page.results[1].output.as_deref(),
            Some("wget/a.test/deep/index.html")
        );
        assert_eq!(page.results[5].output.as_deref(), Some("A title"));
        assert_eq!(page.results[4].verdict.state, ResultState::Failed);
        let (counted, same, _) = take(&snapshot, Some(&source), None).unwrap();
        assert_eq!((counted.files, counted.bytes), (tally.files, tally.bytes));
        assert_eq!(same, page);
    }
}
