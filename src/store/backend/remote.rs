//! Stores on other hosts, by rclone(1): SFTP and S3 in one client that Debian has, with TLS, host keys
//! and multipart uploads, and neither linked by a process that is uid 0 nor by hooks. Secrets are
//! credentials of the unit (systemd.exec(5)): rclone gets their paths in its environment.

use super::{Content, Reader, Store, StoredEntry, Watched};
use crate::failure::{Result, TransferFailure, at};
use archivist_core::store::{Location, S3_KEYS, S3Location, SSH_HOSTS, SSH_KEY, SshLocation};
use serde::Deserialize;
use std::io::{self, BufWriter, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

const RCLONE: &str = "rclone";
/// Exit status of rclone for a directory that does not exist.
const NO_DIRECTORY: i32 = 3;
/// Bytes of standard error that are kept.
const ERRORS_MAX: usize = 1 << 16;
/// Longest reason of a failure, in characters. It is part of the record.
const REASON_MAX: usize = 2000;
/// Bytes of standard output that are read: a list of some 100,000 objects of one directory.
const OUTPUT_MAX: u64 = 16 << 20;

/// The configuration of rclone that is the same for all stores. A failed request is not repeated:
/// the orchestrator repeats the transfer.
const COMMON: [(&str, &str); 9] = [
    ("HOME", "/tmp"),
    ("RCLONE_CONFIG", "/notfound"),
    ("RCLONE_CACHE_DIR", "/tmp"),
    ("RCLONE_RETRIES", "1"),
    ("RCLONE_LOW_LEVEL_RETRIES", "1"),
    ("RCLONE_CONTIMEOUT", "20s"),
    ("RCLONE_TIMEOUT", "2m"),
    ("RCLONE_LOG_LEVEL", "ERROR"),
    ("RCLONE_BUFFER_SIZE", "4M"),
];

pub struct Remote {
    environment: Vec<(String, String)>,
    /// Part of the location that rclone sees as the first directory.
    root: String,
    location: String,
}

/// Returns the path of a credential.
///
/// # Errors
/// If the unit has none of this name.
fn credential(name: &str, what: &str) -> Result<PathBuf> {
    let directory = std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from);
    let path = directory.map(|directory| directory.join(name));
    path.filter(|path| path.is_file()).ok_or_else(|| {
        TransferFailure::new(format!(
            "failed to open the store: there is no credential '{name}' ({what}); write it to \
             /etc/credstore/{name}"
        ))
    })
}

impl Remote {
    pub fn ssh(ssh: &SshLocation) -> Result<Remote> {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let key = credential(SSH_KEY, "an SSH key without passphrase")?;
        let hosts = credential(SSH_HOSTS, "the output of ssh-keyscan HOST, checked")?;
        let options = [
            ("TYPE", "sftp".to_owned()),
            ("HOST", ssh.host.trim_matches(['[', ']']).to_owned()),
            ("PORT", ssh.port.to_string()),
            ("USER", ssh.user.clone()),
            ("KEY_FILE", text(&key)),
            ("KNOWN_HOSTS_FILE", text(&hosts)),
            // The account may have no shell.
            ("SHELL_TYPE", "none".to_owned()),
            ("DISABLE_HASHCHECK", "true".to_owned()),
            ("SET_MODTIME", "false".to_owned()),
        ];
        Ok(Remote::new(&options, ssh.path.clone(), &Location::Ssh(ssh.clone())))
    }

    pub fn s3(s3: &S3Location) -> Result<Remote> {
        let keys = credential(S3_KEYS, "keys in the format of ~/.aws/credentials")?;
        let options = [
            ("TYPE", "s3".to_owned()),
            ("PROVIDER", "Other".to_owned()),
            ("ENDPOINT", s3.endpoint.clone()),
            ("REGION", s3.region.clone()),
            ("ENV_AUTH", "true".to_owned()),
            ("SHARED_CREDENTIALS_FILE", keys.to_string_lossy().into_owned()),
            // A bucket that is missing is an error, as a missing directory is.
            ("NO_CHECK_BUCKET", "true".to_owned()),
            // 10,000 parts of an object of unknown size: 160 GB.
            ("CHUNK_SIZE", "16M".to_owned()),
        ];
        let root = match s3.prefix.as_str() {
            "" => s3.bucket.clone(),
            prefix => format!("{}/{prefix}", s3.bucket),
        };
        Ok(Remote::new(&options, root, &Location::S3(s3.clone())))
    }

    fn new(options: &[(&str, String)], root: String, location: &Location) -> Remote {
        let option = |(name, value): &(&str, String)| {
            let name = format!("RCLONE_CONFIG_STORE_{name}");
            (name, value.clone())
        };
        Remote {
            environment: options.iter().map(option).collect(),
            root,
            location: location.to_string(),
        }
    }

    fn path(&self, name: &str) -> String {
        match name {
            "" => format!("store:{}", self.root),
            name => format!("store:{}/{name}", self.root),
        }
    }

    fn start(&self, arguments: &[&str], stdin: Stdio, stdout: Stdio) -> Result<Running> {
        let child = Command::new(RCLONE)
            .args(arguments)
            .env_clear()
            .envs(COMMON)
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(stdin)
            .stdout(stdout)
            .stderr(Stdio::piped())
            .spawn();
        let mut child = child.map_err(|error| match error.kind() {
            ErrorKind::NotFound => TransferFailure::new(
                "failed to open the store: rclone is not installed: apt install rclone",
            ),
            _ => at("execute", Path::new(RCLONE))(error),
        })?;
        let stderr = child.stderr.take();
        let errors = std::thread::spawn(move || {
            let mut text = Vec::new();
            if let Some(mut stderr) = stderr {
                let _ = (&mut stderr).take(ERRORS_MAX as u64).read_to_end(&mut text);
                let _ = std::io::copy(&mut stderr, &mut std::io::sink());
            }
            String::from_utf8_lossy(&text).into_owned()
        });
        Ok(Running { child, errors })
    }

    /// Runs a command without input, and returns its output.
    fn run(&self, verb: &str, name: &str, arguments: &[&str]) -> Result<(i32, Vec<u8>)> {
        let mut running = self.start(arguments, Stdio::null(), Stdio::piped())?;
        let output = running.child.stdout.take().map(|stdout| bounded(stdout, OUTPUT_MAX));
        let output = match output.transpose() {
            Ok(output) => output.unwrap_or_default(),
            Err(error) => {
                let _ = running.child.kill();
                let _ = running.finish();
                return Err(self.failed(verb, name, &error.to_string()));
            }
        };
        match running.finish() {
            Ok(()) => Ok((0, output)),
            Err((Some(NO_DIRECTORY), _)) => Ok((NO_DIRECTORY, output)),
            Err((_, why)) => Err(self.failed(verb, name, &why)),
        }
    }

    fn failed(&self, verb: &str, name: &str, why: &str) -> TransferFailure {
        TransferFailure::new(format!(
            "failed to {verb} '{name}' in store '{}': {why}",
            self.location
        ))
    }

    fn done(&self, verb: &str, name: &str, arguments: &[&str]) -> Result<()> {
        match self.run(verb, name, arguments)? {
            (0, _) => Ok(()),
            _ => Err(self.failed(verb, name, "there is no such directory")),
        }
    }
}

/// Reads a stream to its end, which is an error if it has more than `max` bytes.
fn bounded(stream: impl Read, max: u64) -> io::Result<Vec<u8>> {
    let mut output = Vec::new();
    stream.take(max.saturating_add(1)).read_to_end(&mut output)?;
    if output.len() as u64 > max {
        return Err(io::Error::other(format!("the answer is longer than {max} bytes")));
    }
    Ok(output)
}

/// A file as rclone lists it; other fields are skipped.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Listed {
    name: String,
    /// -1 if it is unknown.
    size: i64,
}

/// The files in a list of rclone. A name with a slash, which only a hostile server gives, would be a
/// file of another directory when it is removed.
fn listed(output: &[u8]) -> serde_json::Result<Vec<StoredEntry>> {
    let list: Vec<Listed> = serde_json::from_slice(output)?;
    let entry = |file: Listed| {
        let size = u64::try_from(file.size).ok()?;
        let is_plain = !file.name.contains(['/', '\0']);
        is_plain.then_some(StoredEntry { name: file.name, size })
    };
    Ok(list.into_iter().filter_map(entry).collect())
}

struct Running {
    child: Child,
    errors: JoinHandle<String>,
}

impl Running {
    /// Waits for the end. Otherwise than with success, returns the exit status and the reason.
    fn finish(mut self) -> std::result::Result<(), (Option<i32>, String)> {
        let status = self.child.wait().map_err(|error| (None, error.to_string()))?;
        let errors = self.errors.join().unwrap_or_default();
        if status.success() {
            return Ok(());
        }
        eprint!("{errors}");
        Err((status.code(), reason(&errors)))
    }
}

/// The last line that rclone wrote, without its time: `2026/11/23 23:25:17 Failed to …: REASON`.
fn reason(errors: &str) -> String {
    let mut lines = errors.lines().map(str::trim);
    let last = lines.rfind(is_message);
    let last = last.unwrap_or("rclone failed without a reason");
    let text = last.splitn(3, ' ').nth(2).filter(|_| starts_with_date(last));
    text.unwrap_or(last).chars().take(REASON_MAX).collect()
}

fn starts_with_date(line: &str) -> bool {
    line.split(' ').next().is_some_and(|word| word.split('/').count() == 3)
}

/// Further lines of an error of S3 name the request.
fn is_message(line: &&str) -> bool {
    !line.is_empty() && !line.starts_with("status code:")
}

impl Store for Remote {
    fn list(&self, directory: &str) -> Result<Vec<StoredEntry>> {
        let path = self.path(directory);
        let arguments = ["lsjson", "--files-only", "--no-modtime", "--no-mimetype", &path];
        let (status, output) = self.run("list", directory, &arguments)?;
        if status == NO_DIRECTORY {
            return Ok(Vec::new());
        }
        let bad = |error: serde_json::Error| self.failed("list", directory, &error.to_string());
        listed(&output).map_err(bad)
    }

    /// rclone cannot continue an upload.
    fn resumes(&self) -> bool {
        false
    }

    fn write(&self, name: &str, _size: u64, content: Content<'_>) -> Result<()> {
        let path = self.path(name);
        let mut running = self.start(&["rcat", &path], Stdio::piped(), Stdio::null())?;
        let Some(stdin) = running.child.stdin.take() else {
            return Err(self.failed("write", name, "rclone has no standard input"));
        };
        let mut writer = Watched::new(BufWriter::with_capacity(1 << 20, stdin));
        let written = content(&mut writer).and_then(|()| {
            let flushed = writer.flush();
            flushed.map_err(|error| self.failed("write", name, &error.to_string()))
        });
        if written.is_err() {
            // The end of its input would complete the file.
            let _ = running.child.kill();
        }
        let broke = writer.error.take();
        drop(writer);
        match (running.finish(), broke) {
            (Ok(()), _) => written,
            // rclone says why it has closed the pipe.
            (Err((Some(_), why)), _) => Err(self.failed("write", name, &why)),
            (Err((None, why)), Some(_)) => Err(self.failed("write", name, &why)),
            (Err((None, why)), None) => {
                written.and_then(|()| Err(self.failed("write", name, &why)))
            }
        }
    }

    fn read(&self, name: &str, reader: Reader<'_>) -> Result<()> {
        let path = self.path(name);
        let mut running = self.start(&["cat", &path], Stdio::null(), Stdio::piped())?;
        let Some(mut stdout) = running.child.stdout.take() else {
            return Err(self.failed("read", name, "rclone has no standard output"));
        };
        let read = reader(&mut stdout);
        // The reader needs no more of an object that is longer than expected, or refuses it.
        if stdout.read(&mut [0]).is_ok_and(|count| count > 0) {
            let _ = running.child.kill();
            drop(stdout);
            let _ = running.finish();
            return read;
        }
        drop(stdout);
        match running.finish() {
            Ok(()) => read,
            Err((Some(_), why)) => Err(self.failed("read", name, &why)),
            Err((None, why)) => read.and_then(|()| Err(self.failed("read", name, &why))),
        }
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        let (old, new) = (self.path(from), self.path(to));
        // Also over a damaged object of the same size.
        self.done("create", to, &["moveto", "--ignore-times", &old, &new])
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.done("remove", name, &["deletefile", &self.path(name)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reason_is_the_last_message_without_its_time() {
        let ssh = "2026/11/23 23:25:17 Failed to create file system for \"store:/a\": NewFs: \
                   couldn't connect SSH: ssh: handshake failed\n";
        let want = "Failed to create file system for \"store:/a\": NewFs: couldn't connect SSH: \
                    ssh: handshake failed";
        assert_eq!(reason(ssh), want);
        let s3 = "2026/11/23 23:28:27 ERROR : x: y\n2026/11/23 23:28:27 Failed to rcat: Bad \
                  Request\n\tstatus code: 400, request id: abc\n";
        assert_eq!(reason(s3), "Failed to rcat: Bad Request");
        assert_eq!(reason(""), "rclone failed without a reason");
        assert_eq!(reason("panic: out of memory"), "panic: out of memory");
    }

    #[test]
    fn answer_without_end_is_an_error() {
        let failure = bounded(io::repeat(b'['), 1 << 20).unwrap_err();
        assert_eq!(failure.to_string(), "the answer is longer than 1048576 bytes");
        assert_eq!(bounded(&b"[]"[..], 2).unwrap(), b"[]");
        let long = format!("Failed to cat: {}", "x".repeat(ERRORS_MAX));
        assert_eq!(reason(&long).len(), REASON_MAX);
    }

    #[test]
    fn list_has_files_of_its_directory_alone() {
        let list = br#"[{"Path":"a","Name":"a.tar","Size":5,"IsDir":false},
            {"Name":".s7-/../../b/.s7-0.part","Size":1},{"Name":"unknown","Size":-1}]"#;
        let want = StoredEntry { name: "a.tar".to_owned(), size: 5 };
        assert_eq!(listed(list).unwrap(), [want]);
    }

    #[test]
    fn missing_credential_names_its_file() {
        let failure = credential("archivist.store.none", "a key").unwrap_err();
        assert!(failure.text.ends_with("/etc/credstore/archivist.store.none"), "{failure}");
    }
}
