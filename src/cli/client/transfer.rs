//! The program of transfers in a unit of its own, with the sandbox of transfers and the keys of the
//! store, for verbs of root: keys are credentials of units, and the orchestrator has no network.

use crate::client::exit::Failure;
use archivist_config::Scope;
use archivist_config::programs::STORE;
use archivist_core::store::Location;
use archivist_core::text::clean;
use archivist_core::unit::Names;
use nix::unistd::geteuid;
use serde::Serialize;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

/// Time limit of the unit (systemd.time(7)): that of a transfer.
const LIMIT: &str = "6h";
/// Bytes of standard error that are kept.
const ERRORS_MAX: u64 = 1 << 16;

pub struct Transfer<'a> {
    pub task: &'a str,
    pub store: &'a Location,
    /// A directory that it may write.
    pub directory: Option<&'a Path>,
}

/// Returns whether this user may start such units.
pub fn is_allowed(scope: &Scope) -> bool {
    scope.user || geteuid().is_root()
}

/// Runs the program with a document as its standard input, and calls `see` with each line of its
/// output. Returns why it failed, if it did.
///
/// # Errors
/// If the unit cannot be started, or `see` returns an error.
pub async fn run(
    transfer: &Transfer<'_>,
    scope: &Scope,
    document: &impl Serialize,
    mut see: impl FnMut(&str) -> Result<(), Failure> + Send + 'static,
) -> Result<Option<String>, Failure> {
    let failed = |error: &dyn std::fmt::Display| {
        Failure::failed(format!("failed to run systemd-run: {error}"))
    };
    let input = serde_json::to_vec(document).map_err(|error| failed(&error))?;
    let mut command = Command::new("systemd-run");
    command
        .args(arguments(transfer, scope)?)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = command.spawn().map_err(|error| failed(&error))?;
    let ended = tokio::task::spawn_blocking(move || wait(child, input, &mut see));
    ended.await.map_err(|error| failed(&error))?
}

fn wait(
    mut child: Child,
    input: Vec<u8>,
    see: &mut dyn FnMut(&str) -> Result<(), Failure>,
) -> Result<Option<String>, Failure> {
    let lost =
        |error: io::Error| Failure::failed(format!("failed to wait for systemd-run: {error}"));
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    // The program may end before it has read all; its exit status says why.
    let writer = thread::spawn(move || stdin.map(|mut stdin| stdin.write_all(&input)));
    let errors = thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(mut stderr) = stderr {
            let _ = (&mut stderr).take(ERRORS_MAX).read_to_end(&mut text);
            let _ = io::copy(&mut stderr, &mut io::sink());
        }
        String::from_utf8_lossy(&text).into_owned()
    });
    for line in stdout.into_iter().flat_map(|out| BufReader::new(out).lines()) {
        see(&line.map_err(lost)?)?;
    }
    let status = child.wait().map_err(lost)?;
    let _ = writer.join();
    let errors = errors.join().unwrap_or_default();
    if status.success() {
        return Ok(None);
    }
    let reason = errors.lines().map(str::trim).rfind(|line| !line.is_empty());
    Ok(Some(clean(reason.unwrap_or("the unit failed without a message"))))
}

/// Returns the arguments of systemd-run(1). The drop-ins of transfers apply to a name with this start,
/// of further instances too.
fn arguments(transfer: &Transfer<'_>, scope: &Scope) -> Result<Vec<String>, Failure> {
    Ok(words(transfer, scope, &STORE.path_from(&own_path()?)))
}

/// Returns the first arguments of systemd-run(1) for a unit that the command waits for.
pub fn run_words(scope: &Scope) -> Vec<String> {
    let user = scope.user.then_some("--user");
    let waiting = ["--quiet", "--pipe", "--wait", "--collect", "--no-ask-password"];
    user.into_iter().chain(waiting).map(str::to_owned).collect()
}

/// Returns the path of this program, next to which the others are.
pub fn own_path() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(|error| {
        Failure::failed(format!("failed to find the path of this program: {error}"))
    })
}

fn words(transfer: &Transfer<'_>, scope: &Scope, program: &Path) -> Vec<String> {
    let property = |name: &str, value: String| format!("--property={name}={value}");
    let bind = |path: PathBuf| property("BindPaths", path.display().to_string());
    let names = Names::new(scope.unit_prefix());
    let mut words = run_words(scope);
    let (task, id) = (transfer.task, std::process::id());
    words.push(format!("--unit=archivist-store-{task}-{id}.service"));
    words.push(format!("--slice={}", names.store_slice()));
    words.push(format!("--description=archivist: {task} (store)"));
    words.push(property("Type", "exec".to_owned()));
    words.push(property("RuntimeMaxSec", LIMIT.to_owned()));
    for name in transfer.store.credentials() {
        words.push(property("LoadCredential", format!("{name}:{name}")));
    }
    let store = transfer.store.directory().map(Path::to_owned);
    words.extend(store.map(bind));
    words.extend(transfer.directory.map(Path::to_owned).map(bind));
    words.push(program.display().to_string());
    words.push(task.to_owned());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_has_the_sandbox_and_keys_of_transfers() {
        let store = Location::parse("ssh://me@nas/srv/pages").unwrap();
        let transfer = Transfer { task: "compare", store: &store, directory: None };
        let scope = Scope::system("/");
        let program = Path::new("/usr/lib/archivist/archivist-store");
        let text = words(&transfer, &scope, program).join(" ");
        let id = std::process::id();
        for part in [
            format!("--unit=archivist-store-compare-{id}.service "),
            "--slice=archivist-store.slice ".to_owned(),
            "--property=LoadCredential=archivist.store.key:archivist.store.key ".to_owned(),
            "--property=LoadCredential=archivist.store.hosts:archivist.store.hosts ".to_owned(),
        ] {
            assert!(text.contains(&part), "{part} in {text}");
        }
        assert!(text.ends_with(" /usr/lib/archivist/archivist-store compare"));
        assert!(!text.contains("BindPaths"));
        let unit = format!("archivist-store-compare-{id}.service");
        assert_eq!(Names::new("archivist").kind_of(&unit), None, "no transfer of a page");
    }

    #[test]
    fn lines_are_seen_and_the_last_message_is_the_reason() {
        let run = |script: &str, see: &mut dyn FnMut(&str) -> Result<(), Failure>| {
            let mut command = Command::new("sh");
            let child = command.args(["-c", script]);
            let child = child.stdin(Stdio::piped()).stdout(Stdio::piped());
            wait(child.stderr(Stdio::piped()).spawn().unwrap(), vec![b'x'; 1 << 20], see)
        };
        let mut lines = Vec::new();
        let mut see = |line: &str| {
            lines.push(line.to_owned());
            Ok(())
        };
        assert!(run("echo one; echo two; cat >/dev/null", &mut see).unwrap().is_none());
        let reason =
            run("echo three; echo first >&2; printf 'last \\033[1m\\n\\n' >&2; exit 1", &mut see);
        assert_eq!(reason.unwrap().unwrap(), "last \u{fffd}[1m");
        assert_eq!(lines, ["one", "two", "three"]);
    }
}
