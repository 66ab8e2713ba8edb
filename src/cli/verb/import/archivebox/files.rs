//! Copies the files of a snapshot of ArchiveBox.

use super::layout::{self, Layout};
use crate::staging::copy::{PLUGIN_MODE, Tally, Target, copy, copy_content, make, write_records};
use archivist_core::model::{ResultState, Verdict};
use archivist_plugin::Directory;
use archivist_shared::archivebox::BoxSnapshot;
use archivist_shared::staged::{STAGED_HOOK, StagedPage, StagedResult};
use nix::libc::{S_IFDIR, S_IFMT, S_IFREG};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Copied {
    /// As ArchiveBox recorded it.
    Whole,
    /// It is a success without its files.
    WithoutFiles,
    /// Some of its files cannot be read.
    Damaged,
    /// It has a name that no plugin can have.
    Unknown,
}

/// The extractor of each result, and how it was copied.
pub type Results = Vec<(String, Copied)>;

/// Copies the files of a snapshot to `target`, or counts them if there is none.
///
/// # Errors
/// If the archive cannot be written.
pub fn take(
    snapshot: &BoxSnapshot,
    source: Option<&(Directory, Layout)>,
    target: Option<&Target<'_>>,
) -> io::Result<(Tally, StagedPage, Results)> {
    let extractors: BTreeSet<String> =
        snapshot.results.iter().filter_map(|result| layout::plugin(&result.extractor)).collect();
    let mut tally = Tally::default();
    if let Some((directory, layout)) = source {
        copy_all(directory, *layout, &extractors, target, &mut tally)?;
    }
    let (page, copied) = results(snapshot, source, &extractors, &tally);
    if let Some(target) = target {
        write_records(&page, target)?;
    }
    Ok((tally, page, copied))
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
        let is_directory = source.stat(&name).is_ok_and(|found| found.st_mode & S_IFMT == S_IFDIR);
        let (plugin, path) = layout::plugin_path(layout, &shown, is_directory, extractors);
        let before = (tally.files, tally.damaged);
        let made = match target {
            Some(target) => Some(make(target, OsStr::new(&plugin), PLUGIN_MODE)?),
            None => None,
        };
        let into = made
            .as_ref()
            .zip(target)
            .map(|(directory, target)| Target { archive: target.archive, directory });
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

/// Whether the output of a result names a file or directory of the snapshot, rather than being a text such
/// as a number of links.
fn has_output(source: &Directory, extractor: &str, output: &str) -> bool {
    let path = output.trim_end_matches('/');
    let found = source.find(path).or_else(|| source.find(&format!("{extractor}/{path}")));
    found.is_some_and(|found| [S_IFREG, S_IFDIR].contains(&(found.st_mode & S_IFMT)))
}

/// The results of the snapshot as ours, and how each was copied, by extractor.
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
            all.push((result.extractor.clone(), Copied::Unknown));
            continue;
        };
        let mut verdict = layout::verdict(&result.status, &result.output);
        let mut output = Some(result.output.trim().to_owned())
            .filter(|text| !text.is_empty() && verdict.error.as_ref() != Some(text));
        let files = tally.by_plugin.get(&plugin).copied().unwrap_or_default();
        let mut copied = Copied::Whole;
        if verdict.state == ResultState::Succeeded {
            let path = source
                .zip(output.as_deref())
                .filter(|((directory, _), text)| has_output(directory, &result.extractor, text))
                .and_then(|((_, layout), text)| {
                    layout::output_path(*layout, &result.extractor, text, extractors)
                });
            if files == 0 && layout::requires_files(&plugin) {
                copied = Copied::WithoutFiles;
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
        if copied == Copied::Whole && tally.broken.contains(&plugin) {
            copied = Copied::Damaged;
        }
        all.push((result.extractor.clone(), copied));
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
        let best = with_files.entry(result.plugin.clone()).or_insert((succeeded, at));
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

    /// Version 0.9 writes a sentence or a file into the same field.
    #[test]
    fn outputs_are_paths_if_there_is_such_a_file() {
        let top = tempfile::tempdir().unwrap();
        for directory in ["hashes", "wget/a.test"] {
            fs::create_dir_all(top.path().join(directory)).unwrap();
        }
        for file in ["hashes/hashes.json", "wget/a.test/index.html"] {
            fs::write(top.path().join(file), file).unwrap();
        }
        symlink("hashes.json", top.path().join("hashes/link")).unwrap();
        let source = (Directory::open(top.path()).unwrap(), Layout::Plugins);
        for (extractor, output, expected) in [
            ("hashes", "4.2MB ed87c7c77735", "4.2MB ed87c7c77735"),
            ("hashes", "hashes/hashes.json", "archivebox_hashes/hashes.json"),
            ("hashes", "hashes.json", "archivebox_hashes/hashes.json"),
            ("hashes", "hashes/link", "hashes/link"),
            ("hashes", "hashes/hashes.json/x", "hashes/hashes.json/x"),
            ("wget", "wget/a.test/index.html", "wget/a.test/index.html"),
            ("wget", "wget/a.test/", "wget/a.test"),
            ("wget", "a.test/index.html", "wget/a.test/index.html"),
            ("wget", "../hashes/hashes.json", "../hashes/hashes.json"),
        ] {
            let snapshot = BoxSnapshot {
                results: vec![result(extractor, "succeeded", output)],
                ..BoxSnapshot::default()
            };
            let (_, page, _) = take(&snapshot, Some(&source), None).unwrap();
            assert_eq!(page.results[0].output.as_deref(), Some(expected));
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
        for file in ["warc/1.warc.gz", "a.test/deep/index.html", "output.html", "notes.txt"] {
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
        let target = Target { archive: &to, directory: &into };
        let (tally, page, copied) = take(&snapshot, Some(&source), Some(&target)).unwrap();
        assert_eq!((tally.files, tally.left_out, tally.damaged), (4, 4, 0));
        let text = |path: &str| fs::read_to_string(to.join(path)).unwrap();
        assert_eq!(text("wget/warc/1.warc.gz"), "warc/1.warc.gz");
        assert_eq!(text("wget/a.test/deep/index.html"), "a.test/deep/index.html");
        assert_eq!(text("import/notes.txt"), "notes.txt");
        assert_eq!(
            text("dom/stdout.log"),
            "{\"type\":\"ArchiveResult\",\"status\":\"succeeded\",\"output_str\":\"output.html\"}\n"
        );
        let mode = fs::metadata(to.join("dom/output.html")).unwrap().permissions().mode();
        assert_eq!(mode & 0o7137, 0, "{mode:o}");
        for link in ["pdf/output.pdf", "wget/a.test/up", "import/git", "import/favicon.ico"] {
            assert!(to.join(link).symlink_metadata().is_err(), "{link}");
        }
        let kinds: Vec<Copied> = copied.iter().map(|(_, copied)| *copied).collect();
        let mut expected = vec![Copied::Whole; 7];
        (expected[4], expected[6]) = (Copied::WithoutFiles, Copied::Unknown);
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
        assert_eq!(page.results[1].output.as_deref(), Some("wget/a.test/deep/index.html"));
        assert_eq!(page.results[5].output.as_deref(), Some("A title"));
        assert_eq!(page.results[4].verdict.state, ResultState::Failed);
        let (counted, same, _) = take(&snapshot, Some(&source), None).unwrap();
        assert_eq!((counted.files, counted.bytes), (tally.files, tally.bytes));
        assert_eq!(same, page);
    }
}
