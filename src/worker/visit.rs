//! Visits of which nothing is kept: the server refused them, or sent an error, and they are repeated.

use crate::WorkerError;
use crate::files::directory;
use crate::page::snapshot_index::SnapshotIndex;
use archivist_core::model::ResultState;
use archivist_plugin::Directory;
use archivist_shared::bus::documents::work::{Assignment, Known, Standing};
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

/// Removes the files of an earlier visit of which nothing is kept, before the hooks of the next one
/// start: a retry of a page whose document was an error.
pub async fn begin(assignment: &Assignment, own: &Arc<Directory>, standing: &Standing) {
    let is_open = |known: &Known| {
        matches!(known.state, ResultState::Queued | ResultState::Skipped) && !known.joinable
    };
    let visit = assignment.visit;
    if visit.is_whole && visit.number > 0 && standing.hooks.iter().all(is_open) {
        remove_files(assignment, own).await;
    }
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
    use archivist_shared::bus::documents::work::HookTask;
    use std::os::unix::fs::symlink;

    /// Files of a whole visit are removed, and nothing else.
    #[tokio::test]
    async fn refused_visit_leaves_no_file_of_its_hooks() {
        for is_whole in [true, false] {
            let top = tempfile::tempdir().unwrap();
            let outside = top.path().join("outside");
            let page = top.path().join("s1");
            for directory in [
                outside.join("kept"),
                page.join("wget/a/b"),
                page.join("other"),
            ] {
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
