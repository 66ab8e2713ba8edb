//! The index of full text search, which a program of its own reads for the caller: for root, in the unit of searches.

use crate::client::exit::Failure;
use crate::client::reader::BOOTED;
use crate::client::server::{Server, address};
use crate::client::transfer::{own_path, run_words};
use archivist_config::Scope;
use archivist_config::programs::SEARCH;
use archivist_core::model::SnapshotId;
use archivist_core::model::search::{REBUILD, SearchAnswer, SearchQuestion};
use archivist_core::text::clean;
use archivist_shared::bus::wire::SearchProxy;
use nix::unistd::geteuid;
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
/// Exit status of systemd-run(1) if a signal ended the unit.
const KILLED: i32 = 255;
/// Time limit of a unit (systemd.time(7)).
const LIMIT: &str = "1h";

/// Asks the orchestrator, which leaves out what was deleted a moment ago, or without one the index. Returns
/// the answer, or why the index must be built again.
pub async fn ask(
    scope: &Scope,
    question: &SearchQuestion,
) -> Result<Result<SearchAnswer, String>, Failure> {
    need_access(&scope.data_dir().join(INDEX))?;
    // The others that may read the archive are refused there.
    if (geteuid().is_root() || scope.user) && address(scope).is_up().await {
        let server = Server::reach(scope).await?;
        let document = serde_json::to_string(question)
            .map_err(|error| Failure::failed(format!("failed to write the question: {error}")))?;
        let ask = || async { server.feature::<SearchProxy<'_>>().await?.search(&document).await };
        match server.ask(ask).await {
            Ok(answer) => return Ok(Ok(answer)),
            Err(failure) if failure.is_unreachable() => {}
            // What a damaged file makes of a program is not foreseen: its checksums say whether it is one.
            Err(failure) => return check(scope)?.map_or_else(|why| Ok(Err(why)), |_| Err(failure)),
        }
    }
    let document = serde_json::to_vec(question)
        .map_err(|error| Failure::failed(format!("failed to write the question: {error}")))?;
    let output = run("answer", scope, &document)?;
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
        if let Err(reason) = check(scope)? {
            return Ok(Err(reason));
        }
    }
    Err(Failure::failed(reason))
}

/// Compares the files of the index with their checksums. Returns the snapshots that it has, or why it must
/// be built again.
pub fn check(scope: &Scope) -> Result<Result<BTreeSet<SnapshotId>, String>, Failure> {
    let output = run("check", scope, b"")?;
    if output.status.success() {
        let ids = String::from_utf8_lossy(&output.stdout);
        let ids = ids.lines().map(|id| id.parse().map(SnapshotId));
        let ids: Result<_, _> = ids.collect();
        return ids
            .map(Ok)
            .map_err(|error| Failure::failed(format!("failed to read the answer: {error}")));
    }
    let is_unusable = output.status.code() == Some(REBUILD.into());
    let is_killed = output.status.signal().is_some() || output.status.code() == Some(KILLED);
    let reason = reason(&output);
    if is_unusable || is_killed {
        return Ok(Err(reason));
    }
    Err(Failure::failed(reason))
}

/// Asks the orchestrator to build the index again.
pub async fn rebuild(server: &Server) -> Result<(), Failure> {
    server.call(|| async { server.feature::<SearchProxy<'_>>().await?.rebuild().await }).await
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
    Ok(SEARCH.path_from(&own_path()?))
}

fn run(task: &str, scope: &Scope, document: &[u8]) -> Result<Output, Failure> {
    let program = program()?;
    let failed = |error: std::io::Error| {
        Failure::failed(format!("failed to run '{}': {error}", program.display()))
    };
    let directory = scope.data_dir().join(INDEX);
    let mut words = Vec::new();
    if geteuid().is_root() && !scope.user && Path::new(BOOTED).is_dir() {
        words = unit(&[&directory, &scope.data_dir().join("archive")]);
    }
    words.push(program.display().to_string());
    let mut child = Command::new(&words[0])
        .args(&words[1..])
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

/// The start of a command line of systemd-run(1). The drop-ins of searches apply to the name of the unit, which is
/// none of the orchestrator.
fn unit(visible: &[&Path]) -> Vec<String> {
    let mut words = vec!["systemd-run".to_owned()];
    words.extend(run_words(&Scope::system("/")));
    words.push(format!("--unit=archivist-search-caller-{}.service", std::process::id()));
    words.push("--slice=archivist.slice".to_owned());
    words.push("--description=archivist: search".to_owned());
    words.push(format!("--property=RuntimeMaxSec={LIMIT}"));
    let bind = |path: &&Path| format!("--property=BindReadOnlyPaths=-{}", path.display());
    words.extend(visible.iter().map(bind));
    words.push("--".to_owned());
    words
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
