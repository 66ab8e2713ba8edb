//! Processes without rights that read files whose content is that of the web or of another program.

use super::Surveyed;
use crate::client::exit::Failure;
use archivist_core::text::clean;
use nix::unistd::{User, geteuid};
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek};
use std::os::unix::process::CommandExt;
use std::process::{ChildStdin, Command, Stdio};

/// The user that reads the file if root imports it, and one that every system has.
const READERS: [&str; 2] = ["archivist-hook", "nobody"];
/// Bytes that the reader may print about a file.
const SURVEY_MAX_BYTES: u64 = 256 << 20;

fn failed(error: &dyn std::fmt::Display) -> Failure {
    Failure::failed(format!("failed to read the file: {error}"))
}

/// Lets a process without rights read the file (`archivist survey`), and passes on what it found.
pub fn read(
    mut file: &File,
    arguments: &[&str],
    mut found: impl FnMut(Surveyed),
) -> Result<(), Failure> {
    file.rewind().map_err(|error| failed(&error))?;
    let input = file.try_clone().map_err(|error| failed(&error))?;
    let mut command = Command::new("/proc/self/exe");
    command.arg("survey").args(arguments).stdin(input);
    let mut unusable = None;
    lines(
        command,
        SURVEY_MAX_BYTES,
        |_| {},
        |line| match line {
            Surveyed::Unusable(reason) => unusable = Some(reason),
            line => found(line),
        },
    )?;
    unusable.map_or(Ok(()), |reason| Err(failed(&clean(&reason))))
}

/// The user that reads files for root; `None` if the caller is not root.
pub fn user() -> Result<Option<User>, Failure> {
    if !geteuid().is_root() {
        return Ok(None);
    }
    let find = |name: &&str| User::from_name(name).ok().flatten();
    let user = READERS.iter().find_map(find);
    user.map(Some)
        .ok_or_else(|| failed(&"there is no user 'archivist-hook'"))
}

/// Runs a command without rights, and passes on the lines of JSON that it prints, at most so many bytes.
/// `write` gets its standard input in another thread, if that is a pipe.
pub fn lines<T: DeserializeOwned>(
    mut command: Command,
    most: u64,
    write: impl FnOnce(ChildStdin) + Send,
    mut found: impl FnMut(T),
) -> Result<(), Failure> {
    command.env_clear().stdout(Stdio::piped());
    if let Some(user) = user()? {
        command.uid(user.uid.as_raw()).gid(user.gid.as_raw());
    }
    let mut child = command.spawn().map_err(|error| failed(&error))?;
    let (input, output) = (child.stdin.take(), child.stdout.take());
    let read: Result<(), Failure> = std::thread::scope(|scope| {
        if let Some(input) = input {
            scope.spawn(|| write(input));
        }
        // The output is closed at the end, so that the reader and its writer end, too.
        let output = output.map(|output| output.take(most));
        for line in output
            .into_iter()
            .flat_map(|output| BufReader::new(output).lines())
        {
            let line = line.map_err(|error| failed(&error))?;
            found(serde_json::from_str(&line).map_err(|error| failed(&error))?);
        }
        Ok(())
    });
    let status = child.wait().map_err(|error| failed(&error))?;
    read?;
    if status.success() {
        return Ok(());
    }
    Err(failed(&format!(
        "its reader ended with {status}; it may use 256 MiB of memory"
    )))
}
