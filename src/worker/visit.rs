//! Visits of which nothing is kept: the server refused them, or sent an error, and they are repeated;
//! and retries, which must not lose what an earlier visit saved.

use crate::WorkerError;
use crate::drive;
use crate::files::directory;
use crate::page::snapshot_index::SnapshotIndex;
use archivist_core::model::ResultState;
use archivist_core::plan::{became_error, is_lost, kept_note};
use archivist_plugin::Directory;
use archivist_plugin::files::copy::copy_tree;
use archivist_shared::bus::documents::report::HookResult;
use archivist_shared::bus::documents::work::{Assignment, Earlier, HookTask, Known, Standing};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::sync::Arc;
use tokio::task::spawn_blocking;

/// Removes what the hooks of the visit wrote, unless results of an earlier visit stay: the next visit
/// writes over the files of its hooks. The page and the lists of the archive stay as they are.
pub async fn discard(
    assignment: &Assignment,
    own: &Arc<Directory>,
    index: &SnapshotIndex,
) -> Result<(), WorkerError> {
    index.refused()?;
    if !assignment.visit.is_whole {
        return Ok(());
    }
    remove_files(assignment, own).await;
    Ok(())
}

/// Directory in that of a page that holds the files of its plugins during a retry.
const EARLIER: &str = ".earlier";
/// Name of a copy in it that is not complete. No plugin has such a name.
const PART: &str = ".part";

/// Prepares the directory of a page for a retry, before the hooks start: the files of the earlier
/// visit are put aside if the retry must not lose them, and removed otherwise.
pub async fn begin(
    assignment: &Assignment,
    own: &Arc<Directory>,
    standing: &Standing,
) -> Result<(), WorkerError> {
    if let Some(earlier) = &standing.earlier {
        let plugins = retried_plugins(&assignment.hooks, earlier, standing);
        let is_whole = assignment.visit.is_whole;
        in_thread(own, move |own| keep_files(own, &plugins, is_whole)).await?;
    }
    let visit = assignment.visit;
    if visit.is_whole && visit.number > 0 && standing.hooks.iter().all(is_open) {
        remove_files(assignment, own).await;
    }
    Ok(())
}

fn is_open(known: &Known) -> bool {
    matches!(known.state, ResultState::Queued | ResultState::Skipped) && !known.joinable
}

/// The plugins whose hooks will write over files of the earlier visit: those that are open, and those
/// that run again for them.
fn retried_plugins(hooks: &[HookTask], earlier: &Earlier, standing: &Standing) -> BTreeSet<String> {
    let open = standing.hooks.iter().filter(|known| is_open(known));
    let mut open: BTreeSet<&str> = open.map(|known| known.key.as_str()).collect();
    let again = hooks.iter().zip(drive::done(hooks, standing)).filter(|(_, done)| !done);
    open.extend(again.map(|(hook, _)| hook.key.as_str()));
    let results = earlier.results.iter();
    let retried = results
        .filter(|result| open.contains(format!("{}/{}", result.plugin, result.hook).as_str()));
    retried.map(|result| result.plugin.clone()).collect()
}

/// Keeps the directories of plugins: in a whole visit they are moved, so that hooks find nothing; if
/// single hooks are retried, they are copied, because a hook may continue its work. A directory that is kept
/// already is that of the earlier visit, and the files of the plugin are of a part of the retry.
fn keep_files(own: &Directory, plugins: &BTreeSet<String>, is_whole: bool) -> io::Result<()> {
    let kept = directory::make_private(own, EARLIER)?;
    for plugin in plugins {
        let (from, to) = (own.path().join(plugin), kept.path().join(plugin));
        if to.symlink_metadata().is_ok() {
            continue;
        }
        if from.symlink_metadata().is_err() {
            // The plugin had no files.
            fs::create_dir(to)?;
        } else if is_whole {
            fs::rename(from, to)?;
        } else {
            // The copy gets its name when it is complete: a worker that was killed copies again.
            kept.remove(PART)?;
            let beyond = copy_tree(&own.enter(plugin)?, &kept, PART)?;
            if let Some(remark) = beyond.remark() {
                tracing::warn!("'{}': {remark}", from.display());
            }
            fs::rename(kept.path().join(PART), to)?;
        }
    }
    Ok(())
}

/// Ends a retry whose hooks have ended. If it lost a result, the files and records of the earlier visit
/// return. Otherwise they are removed.
pub async fn end_retry(
    own: &Arc<Directory>,
    index: &SnapshotIndex,
    standing: &Standing,
) -> Result<(), WorkerError> {
    let Some(earlier) = &standing.earlier else {
        return Ok(());
    };
    let is_error = became_error(earlier.answer.as_ref(), index.known().answer.as_ref());
    if is_error {
        index.failed()?;
    }
    let returning = returning(earlier, &index.known().results);
    let returns = returning.is_some();
    in_thread(own, move |own| release_files(own, returns)).await?;
    // The records say that nothing is lost, so they are written last: a worker that continues after a
    // crash then restores the rest of the files.
    match returning {
        Some(results) => index.restored(&results, earlier.answer.as_ref()),
        None => Ok(()),
    }
}

/// The results of the earlier visit, with notes, if the retry lost one of them.
fn returning(earlier: &Earlier, now: &[HookResult]) -> Option<Vec<HookResult>> {
    let mut is_one_lost = false;
    let results = earlier.results.iter().map(|before| {
        let same = |after: &&HookResult| after.plugin == before.plugin && after.hook == before.hook;
        let after = now.iter().find(same);
        let lost = after.filter(|after| is_lost(before.status, after.status));
        is_one_lost |= lost.is_some();
        let note = lost.map(|after| kept_note(after.error.as_deref()));
        HookResult { error: note.or_else(|| before.error.clone()), ..before.clone() }
    });
    let results = results.collect();
    is_one_lost.then_some(results)
}

fn release_files(own: &Directory, returns: bool) -> io::Result<()> {
    let kept = directory::make_private(own, EARLIER)?;
    if returns {
        for entry in fs::read_dir(kept.path())? {
            let plugin = entry?.file_name();
            let Some(plugin) = plugin.to_str().filter(|plugin| *plugin != PART) else {
                continue;
            };
            directory::remove_plugin(own, plugin);
            fs::rename(kept.path().join(plugin), own.path().join(plugin))?;
        }
    }
    own.remove(EARLIER)
}

/// Does slow work with files, while the worker keeps notifying systemd's watchdog.
async fn in_thread(
    own: &Arc<Directory>,
    work: impl FnOnce(&Directory) -> io::Result<()> + Send + 'static,
) -> Result<(), WorkerError> {
    let path = own.path().join(EARLIER);
    let own = own.clone();
    let done = spawn_blocking(move || work(&own)).await;
    let done = done.unwrap_or_else(|error| Err(io::Error::other(error)));
    done.map_err(|source| WorkerError::File { verb: "keep earlier files in", path, source })
}

async fn remove_files(assignment: &Assignment, own: &Arc<Directory>) {
    let hooks = assignment.hooks.iter().chain(&assignment.last_hooks);
    let plugins: Vec<String> = hooks.map(|hook| hook.plugin.clone()).collect();
    let own = own.clone();
    let removing = spawn_blocking(move || {
        for plugin in plugins {
            directory::remove_plugin(&own, &plugin);
        }
    });
    if let Err(error) = removing.await {
        tracing::warn!("failed to remove the files of an earlier visit: {error}, ignoring");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_core::plan::VisitRules;
    use archivist_shared::bus::documents::work::HookMode;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    fn saved(plugin: &str, status: ResultState) -> HookResult {
        HookResult {
            id: None,
            owner: "s1".parse().unwrap(),
            plugin: plugin.to_owned(),
            hook: plugin.to_owned(),
            status,
            output: None,
            error: (status == ResultState::Failed).then(|| "connection refused".to_owned()),
            files: Vec::new(),
            size: 0,
            attempts: 1,
            started_at: None,
            ended_at: None,
            figures: Default::default(),
        }
    }

    fn hook(page: &std::path::Path, plugin: &str, text: &str) {
        let directory = page.join(plugin);
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("file"), text).unwrap();
    }

    /// A retry of two plugins, of which the second has no files, and the outcome of the first in the
    /// retry. The worker is restarted when the hooks have ended, `restart`. All hooks of the page are
    /// retried, `is_whole`, or some.
    async fn retried(
        outcome: ResultState,
        restart: bool,
        is_whole: bool,
    ) -> (tempfile::TempDir, Vec<HookResult>) {
        let top = tempfile::tempdir().unwrap();
        let page = top.path().join("s1");
        hook(&page, "wget", "THE ARTICLE");
        fs::create_dir(page.join("wget/warc")).unwrap();
        fs::write(page.join("wget/warc/a"), "RECORD").unwrap();
        symlink("file", page.join("wget/link")).unwrap();
        hook(&page, "other", "not retried");
        std::os::unix::fs::symlink("/etc", page.join(EARLIER)).unwrap();
        let tasks = ["wget", "favicon"].map(|plugin| HookTask::sonic(plugin, Default::default()));
        let text = serde_json::json!({
            "token": "", "bus_name": "", "user_scope": true, "owner": "s1", "url": "http://a/",
            "depth": 0, "max_depth": 0, "directory": page, "crawl_directory": page,
            "hooks": tasks,
            "last_hooks": [], "ready_limit": {"secs": 0, "nanos": 0},
            "stop_limit": {"secs": 0, "nanos": 0}, "output_limit": 0,
            "visit": VisitRules { is_whole, number: 1, ..VisitRules::default() },
        });
        let assignment: Assignment = serde_json::from_value(text).unwrap();
        let own = Arc::new(Directory::open(&page).unwrap());
        let index = SnapshotIndex::open(&assignment, &own).unwrap();
        let known = |plugin: &str, state| Known {
            key: format!("{plugin}/{plugin}"),
            state,
            joinable: false,
        };
        let mut results =
            vec![saved("wget", ResultState::Succeeded), saved("favicon", ResultState::Failed)];
        results.push(saved("other", ResultState::Succeeded));
        let answer = None;
        let standing = |state| Standing {
            hooks: vec![known("wget", state), known("favicon", state)],
            earlier: Some(Earlier { results: results.clone(), answer: answer.clone() }),
        };
        begin(&assignment, &own, &standing(ResultState::Queued)).await.unwrap();
        // A hook that is retried alone may continue its work.
        assert_eq!(page.join("wget").exists(), !is_whole);
        hook(&page, "wget", "connection refused");
        hook(&page, "favicon", "an icon");
        let standing = standing(ResultState::Failed);
        if restart {
            begin(&assignment, &own, &standing).await.unwrap();
        }
        let mut now = vec![saved("wget", outcome), saved("favicon", ResultState::Succeeded)];
        index.restored(&now, None).unwrap();
        for again in [false, true] {
            if again && !restart {
                break;
            }
            let index = SnapshotIndex::open(&assignment, &own).unwrap();
            end_retry(&own, &index, &standing).await.unwrap();
            now = index.known().results.clone();
        }
        assert!(!page.join(EARLIER).exists());
        (top, now)
    }

    fn text(top: &tempfile::TempDir, file: &str) -> Option<String> {
        std::fs::read_to_string(top.path().join("s1").join(file)).ok()
    }

    #[tokio::test]
    async fn files_return_if_the_retry_lost_a_result() {
        for (restart, is_whole) in [(false, true), (true, true), (false, false), (true, false)] {
            let (top, results) = retried(ResultState::Failed, restart, is_whole).await;
            assert_eq!(text(&top, "wget/file").as_deref(), Some("THE ARTICLE"));
            assert_eq!(text(&top, "wget/warc/a").as_deref(), Some("RECORD"));
            let link = top.path().join("s1/wget/link");
            assert_eq!(fs::read_link(link).unwrap(), Path::new("file"));
            assert_eq!(text(&top, "favicon/file"), None, "of the visit that failed");
            assert_eq!(text(&top, "other/file").as_deref(), Some("not retried"));
            let mut results = results.iter();
            let wget = results.find(|result| result.plugin == "wget").unwrap();
            assert_eq!(wget.status, ResultState::Succeeded);
            let note = "the retry failed: connection refused";
            assert_eq!(wget.error.as_deref(), Some(note));
            let (top, _) = retried(ResultState::Succeeded, restart, is_whole).await;
            let text = |file: &str| text(&top, file);
            assert_eq!(text("wget/file").as_deref(), Some("connection refused"));
            assert_eq!(text("favicon/file").as_deref(), Some("an icon"));
        }
    }

    /// A tab loads the page again for a hook that is retried alone, and writes its files again.
    #[tokio::test]
    async fn files_of_a_daemon_that_runs_again_return_as_well() {
        let top = tempfile::tempdir().unwrap();
        let page = top.path().join("s1");
        hook(&page, "chromium", "loaded");
        let task = |plugin: &str, mode| HookTask {
            key: format!("{plugin}/{plugin}"),
            mode,
            ..HookTask::sonic(plugin, Default::default())
        };
        let hooks = [task("chromium", HookMode::Daemon), task("title", HookMode::Foreground)];
        let known = |plugin: &str, state| Known {
            key: format!("{plugin}/{plugin}"),
            state,
            joinable: false,
        };
        use ResultState::{Failed, Queued, Succeeded};
        let results = vec![saved("chromium", Succeeded), saved("title", Succeeded)];
        let earlier = Earlier { results, answer: None };
        let standing = Standing {
            hooks: vec![known("chromium", Succeeded), known("title", Queued)],
            earlier: Some(earlier.clone()),
        };
        let own = Directory::open(&page).unwrap();
        keep_files(&own, &retried_plugins(&hooks, &earlier, &standing), false).unwrap();
        hook(&page, "chromium", "connection refused");
        let now = [saved("chromium", Failed), saved("title", Failed)];
        release_files(&own, returning(&earlier, &now).is_some()).unwrap();
        assert_eq!(text(&top, "chromium/file").as_deref(), Some("loaded"));
    }

    /// Files of a whole visit are removed, and nothing else.
    #[tokio::test]
    async fn refused_visit_leaves_no_file_of_its_hooks() {
        for is_whole in [true, false] {
            let top = tempfile::tempdir().unwrap();
            let outside = top.path().join("outside");
            let page = top.path().join("s1");
            for directory in [outside.join("kept"), page.join("wget/a/b"), page.join("other")] {
                std::fs::create_dir_all(directory).unwrap();
            }
            for file in ["wget/a/b/index.html", "wget/warc", "other/file"] {
                std::fs::write(page.join(file), "SLOW DOWN").unwrap();
            }
            symlink(&outside, page.join("wget/link")).unwrap();
            symlink(&outside, page.join("title")).unwrap();
            let tasks = ["wget", "title", "none"];
            let tasks = tasks.map(|plugin| HookTask::sonic(plugin, Default::default()));
            let text = serde_json::json!({
                "token": "", "bus_name": "", "user_scope": true, "owner": "s1", "url": "http://a/",
                "depth": 0, "max_depth": 0, "directory": page, "crawl_directory": page,
                "hooks": tasks, "last_hooks": [], "ready_limit": {"secs": 0, "nanos": 0},
                "stop_limit": {"secs": 0, "nanos": 0}, "output_limit": 0,
                "visit": VisitRules { is_whole, ..VisitRules::default() },
            });
            let assignment: Assignment = serde_json::from_value(text).unwrap();
            let own = Arc::new(Directory::open(&page).unwrap());
            let index = SnapshotIndex::open(&assignment, &own).unwrap();
            discard(&assignment, &own, &index).await.unwrap();
            assert_eq!(page.join("wget").exists(), !is_whole);
            assert_eq!(page.join("title").is_symlink(), !is_whole);
            assert!(page.join("other/file").exists() && outside.join("kept").exists());
        }
    }
}
