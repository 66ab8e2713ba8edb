//! The namespace of a browser that shows recordings: a network namespace without a network.
//!
//! No option of chromium is as good. The script that starts the browser compares the namespace
//! with that of this process, because a service manager that cannot make one starts its units
//! without it (`PrivateNetwork=` in systemd.exec(5)).

use crate::process::finding::Finding;
use crate::process::scratch::Scratch;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command as Plain, Stdio};
use tokio::process::Command;

/// Start of the line by which the script says why it does not start the browser.
pub const REFUSAL: &str = "replay refused: ";
const SCRIPT: &str = include_str!("namespace.sh");
const HIDE: &str = include_str!("hide.sh");

/// How a browser gets a network namespace of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace {
    /// A program that runs the words after it in the namespace; empty without a namespace.
    words: Vec<String>,
    /// Directory for the files of the browser, if it cannot write into those of this process.
    directory: Option<PathBuf>,
    /// Whether this process is in it.
    is_own: bool,
    /// The home directory that the browser must not see.
    hidden: Option<PathBuf>,
}

/// The home directory of a user, which a browser that shows foreign files does not see, and what of it the
/// browser needs nevertheless.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Home {
    /// The directory; `None` if the user has none.
    pub directory: Option<PathBuf>,
    /// Files and directories below it that stay readable: of the browser and the display.
    pub kept: Vec<PathBuf>,
    /// Directories below it that stay writable: for temporary files.
    pub kept_writable: Vec<PathBuf>,
}

impl Namespace {
    /// The namespace of a program that runs the words after it without a network. `directory`
    /// is one for the files of the browser, if that process has another user or file system.
    pub fn of(words: Vec<String>, directory: Option<PathBuf>) -> Namespace {
        Namespace { words, directory, is_own: false, hidden: None }
    }

    /// Also hides a home directory, which the program of the namespace does: the browser does not start otherwise.
    #[must_use]
    pub fn hiding(self, home: Option<PathBuf>) -> Namespace {
        Namespace { hidden: home, ..self }
    }

    /// The namespace of unshare(1), for users that may create user namespaces.
    pub fn of_user_namespace(home: &Home) -> Namespace {
        let unshare = ["unshare", "--user", "--map-current-user", "--net"];
        let mut words = unshare.map(str::to_owned).to_vec();
        if let Some(directory) = &home.directory {
            // Only root of the namespace may mount; the script gives this right up.
            words.extend(["--keep-caps", "--mount", "--"].map(str::to_owned));
            words.extend(["/bin/sh", "-c", HIDE, "sh"].map(str::to_owned));
            let text = |path: &PathBuf| path.to_string_lossy().into_owned();
            words.push(text(directory));
            words.extend(home.kept.iter().chain(&home.kept_writable).map(text));
        }
        words.push("--".to_owned());
        Namespace::of(words, None).hiding(home.directory.clone())
    }

    /// The namespace of this process, whose unit has one of its own.
    pub fn of_unit() -> Namespace {
        Namespace { is_own: true, ..Namespace::none() }
    }

    /// No namespace: options of chromium alone keep it from the network.
    pub fn none() -> Namespace {
        Namespace::of(Vec::new(), None)
    }

    /// Runs a program in the namespace that does nothing.
    ///
    /// # Errors
    /// Why a browser would not start in it.
    pub fn check(&self) -> Result<(), String> {
        let home = Scratch::new("namespace").map_err(|error| error.output_str)?;
        let directory = self.directory().unwrap_or(home.dir());
        let mut command = self.plain(directory).map_err(|error| error.output_str)?;
        let output = command.arg("true").stdin(Stdio::null()).output();
        let program = &self.words.first().map_or("sh", String::as_str);
        let output = output.map_err(|error| format!("failed to start {program}: {error}"))?;
        if output.status.success() {
            return Ok(());
        }
        let log = String::from_utf8_lossy(&output.stderr).into_owned();
        let reason = log.lines().map(str::trim).rfind(|line| !line.is_empty());
        Err(match reason {
            Some(reason) => reason.trim_start_matches(REFUSAL).to_owned(),
            None => format!("{program} failed without a message"),
        })
    }

    /// Directory for the files of the browser, if it cannot write into those of this process.
    pub(super) fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// The command that starts the browser, to which its words must be added.
    pub(super) fn command(&self, directory: &Path) -> Result<Command, Finding> {
        self.plain(directory).map(Command::from)
    }

    /// Options of chromium: without a namespace, it gets no name and no proxy.
    pub(super) fn flags(&self) -> &[&str] {
        if self.words.is_empty() && !self.is_own {
            &[
                "--host-resolver-rules=MAP * ~NOTFOUND",
                "--proxy-server=127.0.0.1:1",
                "--proxy-bypass-list=<-loopback>",
                "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
            ]
        } else {
            &[]
        }
    }

    fn plain(&self, directory: &Path) -> Result<Plain, Finding> {
        let outside = if self.is_own {
            PathBuf::from("unknown")
        } else if self.words.is_empty() {
            PathBuf::new()
        } else {
            fs::read_link("/proc/self/ns/net").map_err(|error| {
                Finding::failed(format!("failed to read /proc/self/ns/net: {error}"))
            })?
        };
        let shell = ["/bin/sh", "-c", SCRIPT, "sh"].map(str::to_owned);
        let mut words = self.words.iter().chain(&shell);
        let mut command = Plain::new(words.next().map_or("/bin/sh", String::as_str));
        command.args(words).arg(outside).arg(directory);
        let hidden = self.hidden.as_deref().unwrap_or(Path::new(""));
        command.arg(hidden).arg(identity(hidden));
        Ok(command)
    }
}

/// Which file a path leads to here, as stat(1) prints it; nothing if there is none.
fn identity(path: &Path) -> String {
    let found = fs::metadata(path);
    found.map_or_else(|_| String::new(), |file| format!("{}:{}", file.dev(), file.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_without_a_namespace_is_refused() {
        let without = Namespace::of(vec!["env".to_owned()], None);
        let reason = without.check().unwrap_err();
        assert_eq!(reason, "the browser would have the network of the machine");
        let missing = Namespace::of(vec!["/nowhere/unshare".to_owned()], None);
        let reason = missing.check().unwrap_err();
        assert!(reason.starts_with("failed to start /nowhere/unshare"), "{reason}");
        assert_eq!(Namespace::none().check(), Ok(()));
        let home = tempfile::tempdir().unwrap();
        let seen = Namespace::none().hiding(Some(home.path().to_owned())).check();
        assert_eq!(seen.unwrap_err(), "the browser would see the home directory");
        let reason = Namespace::of_unit().check().unwrap_err();
        assert!(reason.starts_with("the network namespace of the browser has"), "{reason}");
    }
}
