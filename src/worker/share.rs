//! Has the long bodies of a page's recording stored once for all its visits, when the recording is complete.
//! The program that does it reads compressed files of hooks, so it is not part of this one, which root
//! runs, too.

use archivist_core::model::Owner;
use archivist_plugin::Directory;
use archivist_shared::archive::BODIES;
use archivist_shared::bus::documents::work::Assignment;
use std::process::Stdio;
use tokio::process::Command;

/// Runs the program and waits for its end. If it fails, the recording is whole as it is.
pub async fn share(assignment: &Assignment, own: &Directory) {
    let (Some(sharing), Owner::Snapshot(_)) = (&assignment.sharing, assignment.owner) else {
        return;
    };
    let archive = &assignment.about.archive;
    if !archive.is_absolute() {
        return;
    }
    let ended = Command::new(&sharing.program)
        .arg("share-bodies")
        .arg(archive.join(BODIES).join(&sharing.directory))
        .arg(own.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .status()
        .await;
    match ended {
        Ok(status) if status.success() => {}
        Ok(status) => tracing::warn!("failed to share bodies of the recording: {status}, ignoring"),
        Err(error) => {
            tracing::warn!("failed to run '{} share-bodies': {error}, ignoring", sharing.program)
        }
    }
}
