//! Pages whose files `archivist import` has copied into the archive: the worker moves them to the
//! directory of its page, and reports the results that the other program had recorded. A worker that is
//! killed leaves the rest to the next one.

use crate::WorkerError;
use crate::files::directory::failed;
use crate::link::Link;
use crate::output::report;
use crate::page::snapshot_index::SnapshotIndex;
use archivist_core::model::{Outcome, cut};
use archivist_plugin::Directory;
use archivist_plugin::files::output;
use archivist_plugin::files::remove::remove_tree;
use archivist_plugin::files::tidy;
use archivist_shared::bus::documents::bounds;
use archivist_shared::bus::documents::report::File as OutputFile;
use archivist_shared::bus::documents::work::{Assignment, Ended, HookMode, HookTask, Report};
use archivist_shared::staged::{RECORD, RECORD_MAX, RESULTS_MAX, StagedPage, StagedResult};
use std::fs;
use std::io::{self, ErrorKind, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::spawn_blocking;

/// Takes over what was staged for the page, if anything is left of it.
pub async fn take(
    assignment: &Assignment,
    own: &Arc<Directory>,
    link: &Link,
    index: &SnapshotIndex,
) -> Result<(), WorkerError> {
    let Some(staged) = assignment.staged.clone() else {
        return Ok(());
    };
    let (path, into) = (staged.clone(), own.clone());
    let moved = in_thread(&staged, move || move_files(&path, &into)).await?;
    let Some(page) = moved else {
        return Ok(());
    };
    for result in page.results.into_iter().take(RESULTS_MAX) {
        let task = task(&result);
        let times = result.started_at.zip(result.ended_at);
        let from = own.clone();
        let mut report = in_thread(&staged, move || report_of(&from, result)).await?;
        report.verdict = link.report(&report).await?;
        let ended = Ended {
            started_at: times.map(|(start, _)| start),
            ended_at: times.map(|(_, end)| end),
            ..Ended::without_run(Outcome::Exit(0))
        };
        index.result(&task, &report, &ended)?;
    }
    let path = staged.clone();
    in_thread(&staged, move || remove(&path)).await
}

/// Moves the directories of the plugins, and returns the record; `None` if an earlier worker took all.
fn move_files(staged: &Path, own: &Directory) -> io::Result<Option<StagedPage>> {
    let from = match Directory::open(staged) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let mut text = String::new();
    match from.read(RECORD) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        file => file?.take(RECORD_MAX).read_to_string(&mut text)?,
    };
    let page = serde_json::from_str(&text)?;
    for name in from.names()? {
        if name == RECORD {
            continue;
        }
        match from.move_into(&name, own) {
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => {}
            moved => {
                moved?;
                continue;
            }
        }
        // A hook of the page has files there already.
        let (from, into) = (from.enter(&name)?, own.enter(&name)?);
        for name in from.names()? {
            if into.stat(&name).is_err() {
                from.move_into(&name, &into)?;
            }
        }
    }
    Ok(Some(page))
}

fn report_of(own: &Directory, result: StagedResult) -> io::Result<Report> {
    let mut files = Vec::new();
    if result.has_files
        && let Ok(directory) = own.enter(&result.plugin)
    {
        tidy::tidy(&directory, own)?;
        files = output::scan(&directory, |_| false)?;
    }
    let size = files.iter().map(|file| file.size).sum();
    let files = files.into_iter().map(|file| OutputFile {
        path: file.path,
        mimetype: file.mimetype,
        size: file.size,
    });
    let key = format!("{}/{}", result.plugin, result.hook);
    Ok(Report {
        files: bounds::files(files),
        size,
        recorded: result.started_at.zip(result.ended_at),
        ..report::not_started(&key, result.verdict, result.output.map(cut))
    })
}

fn task(result: &StagedResult) -> HookTask {
    HookTask {
        key: format!("{}/{}", result.plugin, result.hook),
        plugin: result.plugin.clone(),
        hook: result.hook.clone(),
        mode: HookMode::Foreground,
        limit: Duration::ZERO,
        patience: Duration::ZERO,
        alongside: Vec::new(),
        after_background: false,
        uses_daemon: false,
        awaits: Vec::new(),
        needs: None,
    }
}

/// Removes the directory of the page, and that of its crawl after the last one.
fn remove(staged: &Path) -> io::Result<()> {
    remove_tree(staged)?;
    let parents = staged.ancestors().skip(1).take(2);
    for parent in parents {
        if fs::remove_dir(parent).is_err() {
            break;
        }
    }
    Ok(())
}

/// Does slow work with files, while the worker keeps notifying systemd's watchdog.
async fn in_thread<T: Send + 'static>(
    staged: &Path,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, WorkerError> {
    let done = spawn_blocking(work).await.map_err(io::Error::other);
    done.flatten().map_err(failed("take over", staged))
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_core::model::{ResultState, Time, Verdict};

    fn result(plugin: &str, has_files: bool) -> StagedResult {
        StagedResult {
            plugin: plugin.to_owned(),
            hook: "archivebox".to_owned(),
            verdict: Verdict { state: ResultState::Succeeded, error: None },
            output: None,
            started_at: Some(Time(1)),
            ended_at: Some(Time(2)),
            has_files,
        }
    }

    /// A worker was killed after it had moved a part; the next one moves the rest, and a third finds
    /// nothing.
    #[test]
    fn files_of_a_page_are_moved_in_pieces() {
        let top = tempfile::tempdir().unwrap();
        let (staged, page) = (top.path().join("x/y/z"), top.path().join("s1"));
        for directory in ["wget/a", "import", "dom"] {
            fs::create_dir_all(staged.join(directory)).unwrap();
        }
        fs::create_dir_all(page.join("import")).unwrap();
        fs::create_dir_all(page.join("dom")).unwrap();
        fs::write(staged.join("wget/a/index.html"), "<p>").unwrap();
        fs::write(staged.join("import/index.json"), "{}").unwrap();
        fs::write(staged.join("dom/output.html"), "new").unwrap();
        fs::write(staged.join("dom/other.html"), "new").unwrap();
        fs::write(page.join("dom/output.html"), "moved before").unwrap();
        let record = StagedPage { results: vec![result("wget", true), result("title", false)] };
        fs::write(staged.join(RECORD), serde_json::to_string(&record).unwrap()).unwrap();
        let own = Directory::open(&page).unwrap();
        assert_eq!(move_files(&staged, &own).unwrap(), Some(record.clone()));
        assert_eq!(move_files(&staged, &own).unwrap(), Some(record));
        let text = |path: &str| fs::read_to_string(page.join(path)).unwrap();
        assert_eq!(text("wget/a/index.html"), "<p>");
        assert_eq!(text("import/index.json"), "{}");
        assert_eq!(text("dom/output.html"), "moved before");
        assert_eq!(text("dom/other.html"), "new");
        let report = report_of(&own, result("wget", true)).unwrap();
        let paths: Vec<&str> = report.files.iter().map(|file| &*file.path).collect();
        assert_eq!((paths, report.size), (vec!["a/index.html"], 3));
        assert_eq!(report.recorded, Some((Time(1), Time(2))));
        assert!(report_of(&own, result("title", false)).unwrap().files.is_empty());
        remove(&staged).unwrap();
        assert_eq!(move_files(&staged, &own).unwrap(), None);
        assert!(!top.path().join("x").exists(), "the last page of its crawl");
    }
}
