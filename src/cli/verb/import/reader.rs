//! The process without rights that reads a file, whose content is that of the web or of another program.

use super::Surveyed;
use crate::client::exit::Failure;
use archivist_core::text::clean;
use nix::unistd::{User, geteuid};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// The user that reads the file if root imports it, and one that every system has.
const READERS: [&str; 2] = ["archivist-hook", "nobody"];
/// Bytes that the reader may print.
const SURVEY_MAX_BYTES: u64 = 256 << 20;

/// Lets a process without rights read the file (`archivist survey`), and passes on what it found.
pub fn read(
    mut file: &File,
    arguments: &[&str],
    mut found: impl FnMut(Surveyed),
) -> Result<(), Failure> {
    let failed = |error: &dyn std::fmt::Display| {
        Failure::failed(format!("failed to read the file: {error}"))
    };
    file.rewind().map_err(|error| failed(&error))?;
    let input = file.try_clone().map_err(|error| failed(&error))?;
    let mut command = Command::new("/proc/self/exe");
    command
        .arg("survey")
        .args(arguments)
        .env_clear()
        .stdin(input);
    command.stdout(Stdio::piped());
    if geteuid().is_root() {
        let find = |name: &&str| User::from_name(name).ok().flatten();
        let user = READERS.iter().find_map(find);
        let user = user.ok_or_else(|| failed(&"there is no user 'archivist-hook'"))?;
        command.uid(user.uid.as_raw()).gid(user.gid.as_raw());
    }
    let mut child = command.spawn().map_err(|error| failed(&error))?;
    let mut unusable = None;
    let output = child
        .stdout
        .take()
        .map(|output| output.take(SURVEY_MAX_BYTES));
    for line in output
        .into_iter()
        .flat_map(|output| BufReader::new(output).lines())
    {
        let line = line.map_err(|error| failed(&error))?;
        match serde_json::from_str(&line).map_err(|error| failed(&error))? {
            Surveyed::Unusable(reason) => unusable = Some(reason),
            line => found(line),
        }
    }
    let status = child.wait().map_err(|error| failed(&error))?;
    match unusable {
        Some(reason) => Err(failed(&clean(&reason))),
        None if status.success() => Ok(()),
        None => Err(failed(&format!(
            "its reader ended with {status}; it may use 256 MiB of memory"
        ))),
    }
}
