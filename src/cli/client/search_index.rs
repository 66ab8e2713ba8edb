//! The index of full text search, which a program of its own reads for the caller.

use crate::client::exit::Failure;
use crate::client::server::Server;
use archivist_config::programs::SEARCH;
use archivist_core::model::SnapshotId;
use archivist_core::model::search::{REBUILD, SearchAnswer, SearchQuestion};
use archivist_core::text::clean;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{ErrorKind, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Directory of the index, below that of the data.
pub const INDEX: &str = "index/search";
/// Link to the part of it that is read.
const CURRENT: &str = "current";

/// Asks the index. Returns the answer, or why the index must be built again.
pub fn ask(
    directory: &Path,
    question: &SearchQuestion,
) -> Result<Result<SearchAnswer, String>, Failure> {
    need_access(directory)?;
    let document = serde_json::to_vec(question)
        .map_err(|error| Failure::failed(format!("failed to write the question: {error}")))?;
    let output = run("answer", directory, &document)?;
    if output.status.success() {
        return serde_json::from_slice(&output.stdout)
            .map(Ok)
            .map_err(|error| Failure::failed(format!("failed to read the answer: {error}")));
    }
    let reason = reason(&output);
    if output.status.code() == Some(REBUILD.into()) {
        return Ok(Err(reason));
    }
    if output.status.code() != Some(1) {
        // What a damaged file makes of a program is not foreseen: its checksums say whether it is one.
        if let Err(reason) = check(directory)? {
            return Ok(Err(reason));
        }
    }
    Err(Failure::failed(reason))
}

/// Compares the files of the index with their checksums. Returns the snapshots that it has, or why it must
/// be built again.
pub fn check(directory: &Path) -> Result<Result<BTreeSet<SnapshotId>, String>, Failure> {
    let output = run("check", directory, b"")?;
    if output.status.success() {
        let ids = String::from_utf8_lossy(&output.stdout);
        let ids = ids.lines().map(|id| id.parse().map(SnapshotId));
        let ids: Result<_, _> = ids.collect();
        return ids
            .map(Ok)
            .map_err(|error| Failure::failed(format!("failed to read the answer: {error}")));
    }
    let is_unusable = output.status.code() == Some(REBUILD.into());
    let reason = reason(&output);
    if is_unusable || output.status.signal().is_some() {
        return Ok(Err(reason));
    }
    Err(Failure::failed(reason))
}

/// Asks the orchestrator to build the index again.
pub async fn rebuild(server: &Server) -> Result<(), Failure> {
    server.call(|| server.proxy().rebuild_search()).await
}

/// Reports that the caller may not read the index, which has the texts of all pages.
fn need_access(directory: &Path) -> Result<(), Failure> {
    match directory.join(CURRENT).symlink_metadata() {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            let directory = directory.display();
            Err(Failure::failed(format!(
                "failed to read the search index '{directory}': {error}\n\
                 the archive is not readable by all users: run this with sudo"
            )))
        }
        _ => Ok(()),
    }
}

fn program() -> Result<PathBuf, Failure> {
    let own = std::env::current_exe().map_err(|error| {
        Failure::failed(format!("failed to find the path of this program: {error}"))
    })?;
    Ok(SEARCH.path_from(&own))
}

fn run(task: &str, directory: &Path, document: &[u8]) -> Result<Output, Failure> {
    let program = program()?;
    let failed = |error: std::io::Error| {
        Failure::failed(format!("failed to run '{}': {error}", program.display()))
    };
    let mut child = Command::new(&program)
        .args([OsStr::new(task), directory.as_os_str()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    if let Some(mut stdin) = child.stdin.take() {
        write(&mut stdin, document)?;
    }
    child.wait_with_output().map_err(failed)
}

/// The last line of what a program said, or how it ended.
fn reason(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    let last = errors.lines().rfind(|line| !line.trim().is_empty());
    last.map_or_else(|| format!("archivist-search failed ({})", output.status), clean)
}

/// Writes to a program. One that has ended says itself why.
fn write(stdin: &mut impl Write, bytes: &[u8]) -> Result<(), Failure> {
    match stdin.write_all(bytes) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::failed(format!("failed to write to archivist-search: {error}")))
        }
        _ => Ok(()),
    }
}
