//! The wall round a browser that shows recordings: a network namespace without a network.
//!
//! No option of chromium is such a wall. The script that starts the browser compares the namespace
//! with that of this process, because a service manager that cannot make one starts its units
//! without it (`PrivateNetwork=` in systemd.exec(5)).

use crate::process::finding::Finding;
use crate::process::scratch::Scratch;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command as Plain, Stdio};
use tokio::process::Command;

/// Start of the line by which the script says why it does not start the browser.
pub const REFUSAL: &str = "replay refused: ";
const SCRIPT: &str = include_str!("wall.sh");

/// How a browser gets a network namespace of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wall {
    /// A program that runs the words after it in the namespace; none without a wall.
    words: Vec<String>,
    /// Directory for the files of the browser, if it cannot write into those of this process.
    directory: Option<PathBuf>,
    /// Whether this process is behind it.
    is_round_us: bool,
}

impl Wall {
    /// A wall by a program that runs the words after it in an empty network namespace. `directory`
    /// is one for the files of the browser, if that process has another user or file system.
    pub fn of(words: Vec<String>, directory: Option<PathBuf>) -> Wall {
        Wall {
            words,
            directory,
            is_round_us: false,
        }
    }

    /// A wall by unshare(1), for users that may create user namespaces.
    pub fn of_user_namespace() -> Wall {
        let words = ["unshare", "--user", "--map-current-user", "--net", "--"];
        Wall::of(words.map(str::to_owned).to_vec(), None)
    }

    /// A wall that is round this process: its unit has a network namespace of its own.
    pub fn of_unit() -> Wall {
        Wall {
            is_round_us: true,
            ..Wall::none()
        }
    }

    /// No wall: options of chromium alone keep it from the network.
    pub fn none() -> Wall {
        Wall::of(Vec::new(), None)
    }

    /// Tries the wall with a program that does nothing.
    ///
    /// # Errors
    /// Why a browser would not start behind it.
    pub fn stands(&self) -> Result<(), String> {
        let home = Scratch::new("wall").map_err(|error| error.output_str)?;
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

    /// Options of chromium: without a wall, it gets no name and no proxy.
    pub(super) fn flags(&self) -> &[&str] {
        if self.words.is_empty() && !self.is_round_us {
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
        let outside = if self.is_round_us {
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
        Ok(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_without_a_namespace_is_no_wall() {
        let no_wall = Wall::of(vec!["env".to_owned()], None);
        let reason = no_wall.stands().unwrap_err();
        assert_eq!(reason, "the browser would have the network of the machine");
        let missing = Wall::of(vec!["/nowhere/unshare".to_owned()], None);
        let reason = missing.stands().unwrap_err();
        assert!(
            reason.starts_with("failed to start /nowhere/unshare"),
            "{reason}"
        );
        assert_eq!(Wall::none().stands(), Ok(()));
        let reason = Wall::of_unit().stands().unwrap_err();
        assert!(
            reason.starts_with("the network namespace of the browser has"),
            "{reason}"
        );
    }
}
