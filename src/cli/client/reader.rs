//! Processes that read files whose content is that of the web or of another program, each in a sandbox: a
//! transient unit of a user that owns nothing, or what this machine has instead. They get the file through
//! standard input, and what they print is all that leaves them.

use super::exit::Failure;
use super::transfer::{own_path, run_words};
use archivist_config::Scope;
use archivist_core::text::clean;
use archivist_shared::reader::{
    COMPARER_MEMORY_MAX_BYTES, READER_MEMORY_MAX_BYTES, READER_UNITS, READER_USER,
};
use nix::unistd::{User, geteuid};
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Time limit of a unit (systemd.time(7)).
const LIMIT: &str = "2h";
/// Bytes of standard error that are kept.
const ERRORS_MAX_BYTES: u64 = 1 << 16;
/// The user of readers of root where no service manager runs and the package is not installed.
const NOBODY: &str = "nobody";
/// Where the service manager of a user listens, below its runtime directory.
const USER_MANAGER: &str = "systemd/private";

/// Directory that exists if systemd is process 1 (sd_booted(3)).
pub const BOOTED: &str = "/run/systemd/system";

/// Number of the next reader of this process.
static NEXT: AtomicU32 = AtomicU32::new(0);

pub struct Reader {
    command: Command,
    /// Bytes of memory that it may use.
    memory: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sandbox {
    /// A unit of the machine with the user of readers. Root always has it where systemd runs.
    SystemUnit,
    /// A unit of the caller's service manager.
    UserUnit,
    /// Namespaces without a network, where no service manager runs; of root, another user.
    Namespaces,
    /// What each reader gives up by itself; of root, another user.
    Process,
}

impl Reader {
    pub fn new(program: &Path, arguments: &[&str], input: Stdio) -> Reader {
        let is_root = geteuid().is_root();
        let words = sandbox().words(is_root, program);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).args(arguments);
        command.stdin(input);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Reader { command, memory: READER_MEMORY_MAX_BYTES }
    }

    /// `archivist survey`, this program as a reader.
    ///
    /// # Errors
    /// If the path of this program is unknown.
    pub fn survey(arguments: &[&str], input: Stdio) -> Result<Reader, Failure> {
        let arguments = [&["survey"], arguments].concat();
        Ok(Reader::new(&own_path()?, &arguments, input))
    }

    /// `archivist survey --job`, which asks for files over this socket (`client/reader_files.rs`).
    ///
    /// # Errors
    /// If the path of this program is unknown.
    pub fn of_job(socket: Stdio) -> Result<Reader, Failure> {
        let reader = Reader::survey(&["--job"], socket)?;
        Ok(Reader { memory: COMPARER_MEMORY_MAX_BYTES, ..reader })
    }

    /// Runs the reader, and passes on the lines of JSON that it prints, at most so many bytes. `serve` runs
    /// in another thread, and gets its standard input if that is a pipe.
    ///
    /// # Errors
    /// If it cannot be started, fails, or prints anything else.
    pub fn lines<T: DeserializeOwned>(
        mut self,
        most: u64,
        serve: impl FnOnce(Option<ChildStdin>) + Send,
        mut found: impl FnMut(T),
    ) -> Result<(), Failure> {
        let mut child = self.command.spawn().map_err(|error| failed(&error))?;
        // The command holds copies of descriptors.
        drop(self.command);
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let errors = child.stderr.take();
        let (read, reason) = std::thread::scope(|scope| {
            scope.spawn(|| serve(input));
            let reason = scope.spawn(|| errors.and_then(last_line));
            let mut read = Ok(());
            // The output is closed at the end, so that the reader and its writer end, too.
            if let Some(output) = output.map(|output| output.take(most)) {
                for line in BufReader::new(output).lines() {
                    read = line.map_err(|error| failed(&error)).and_then(|line| {
                        found(serde_json::from_str(&line).map_err(|error| failed(&error))?);
                        Ok(())
                    });
                    if read.is_err() {
                        break;
                    }
                }
            }
            (read, reason.join().ok().flatten())
        });
        let status = child.wait().map_err(|error| failed(&error))?;
        read?;
        if status.success() {
            return Ok(());
        }
        let reason = reason.map_or(String::new(), |reason| format!(": {reason}"));
        let mib = self.memory >> 20;
        Err(failed(&format!(
            "its reader ended with {status}{reason}; it may use {mib} MiB of memory"
        )))
    }
}

/// Opens a file again, for reading alone and at its start: a descriptor for a reader.
///
/// # Errors
/// If this user may not read it any more.
pub fn reopened(file: &File) -> std::io::Result<File> {
    File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

fn failed(error: &dyn std::fmt::Display) -> Failure {
    Failure::failed(format!("failed to read the file: {error}"))
}

/// The last line of standard error, which is foreign, too.
fn last_line(mut errors: ChildStderr) -> Option<String> {
    let mut text = Vec::new();
    let _ = (&mut errors).take(ERRORS_MAX_BYTES).read_to_end(&mut text);
    let _ = std::io::copy(&mut errors, &mut std::io::sink());
    let text = String::from_utf8_lossy(&text);
    let last = text.lines().map(str::trim).rfind(|line| !line.is_empty());
    last.map(clean)
}

/// The sandbox of the readers of this process, which is found once.
fn sandbox() -> Sandbox {
    static FOUND: OnceLock<Sandbox> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let is_root = geteuid().is_root();
        if is_root && Path::new(BOOTED).is_dir() {
            // No trial: root's readers have this sandbox or do not run.
            return Sandbox::SystemUnit;
        }
        let manager = std::env::var_os("XDG_RUNTIME_DIR")
            .is_some_and(|directory| PathBuf::from(directory).join(USER_MANAGER).exists());
        let unit = (!is_root && manager).then_some(Sandbox::UserUnit);
        let mut kinds = unit.into_iter().chain([Sandbox::Namespaces]);
        kinds.find(|kind| kind.works(is_root)).unwrap_or(Sandbox::Process)
    })
}

impl Sandbox {
    /// Whether a program runs in it on this machine.
    fn works(self, is_root: bool) -> bool {
        let words = self.words(is_root, Path::new("/bin/true"));
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(Stdio::null());
        let ended = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
        ended.is_ok_and(|status| status.success())
    }

    /// Returns the command line with which the program begins.
    fn words(self, is_root: bool, program: &Path) -> Vec<String> {
        let mut words = match self {
            Sandbox::SystemUnit => unit(false),
            Sandbox::UserUnit => unit(true),
            Sandbox::Namespaces => namespaces(is_root),
            Sandbox::Process => process(is_root),
        };
        words.extend(["/usr/bin/env", "-i"].map(str::to_owned));
        words.push(program.display().to_string());
        words
    }
}

/// The start of a command line of systemd-run(1). The drop-ins of readers apply to the name of the unit,
/// and make the sandbox; without them, it has still neither rights nor a network.
fn unit(user: bool) -> Vec<String> {
    let mut words = vec!["systemd-run".to_owned()];
    words.extend(run_words(&Scope { user, ..Scope::system("/") }));
    let (id, number) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    words.push(format!("--unit={READER_UNITS}{id}-{number}.service"));
    words.push("--slice=archivist.slice".to_owned());
    words.push("--description=archivist: reader of a foreign file".to_owned());
    let own = if user { "PrivateUsers=yes".to_owned() } else { format!("User={READER_USER}") };
    let limit = format!("RuntimeMaxSec={LIMIT}");
    let properties = ["Type=exec", "NoNewPrivileges=yes", "PrivateNetwork=yes"];
    let properties = properties.map(str::to_owned).into_iter();
    words.extend(properties.chain([own, limit]).map(|property| format!("--property={property}")));
    words.push("--".to_owned());
    words
}

fn namespaces(is_root: bool) -> Vec<String> {
    let mut words = vec!["unshare".to_owned()];
    if !is_root {
        words.extend(["--user", "--map-current-user"].map(str::to_owned));
    }
    words.extend(["--net", "--ipc", "--"].map(str::to_owned));
    words.extend(process(is_root));
    words
}

fn process(is_root: bool) -> Vec<String> {
    let mut words = vec!["setpriv".to_owned(), "--no-new-privs".to_owned()];
    if is_root {
        let known = |name| User::from_name(name).ok().flatten();
        let user = known(READER_USER).or_else(|| known(NOBODY));
        let (uid, gid) = user.map_or((65534, 65534), |user| (user.uid.as_raw(), user.gid.as_raw()));
        words.push(format!("--reuid={uid}"));
        words.push(format!("--regid={gid}"));
        words.extend(
            ["--clear-groups", "--inh-caps=-all", "--bounding-set=-all"].map(str::to_owned),
        );
    }
    words.push("--".to_owned());
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_core::unit::Names;

    #[test]
    fn readers_of_root_are_units_of_a_user_of_their_own() {
        let words = Sandbox::SystemUnit.words(true, Path::new("/usr/bin/archivist"));
        let text = words.join(" ");
        let start = format!("--unit=archivist-import-{}-", std::process::id());
        for part in [
            "systemd-run --quiet --pipe --wait --collect ",
            &start,
            " --property=User=archivist-import ",
            " --property=NoNewPrivileges=yes ",
            " --property=PrivateNetwork=yes ",
            " -- /usr/bin/env -i /usr/bin/archivist",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        let name = words.iter().find_map(|word| word.strip_prefix("--unit="));
        assert_eq!(Names::new("archivist").kind_of(name.unwrap()), None);
        let again = Sandbox::SystemUnit.words(true, Path::new("/usr/bin/archivist"));
        assert_ne!(words, again, "systemd may still know the last one");
        let text = Sandbox::UserUnit.words(false, Path::new("/x")).join(" ");
        assert!(text.starts_with("systemd-run --user ") && !text.contains("User=a"));
    }

    #[test]
    fn readers_without_a_unit_are_another_user_of_root_too() {
        for kind in [Sandbox::Namespaces, Sandbox::Process] {
            let text = kind.words(true, Path::new("/x")).join(" ");
            assert!(text.contains("--no-new-privs --reuid="), "{text}");
            assert!(text.contains(" --clear-groups "), "{text}");
            assert!(text.ends_with(" -- /usr/bin/env -i /x"), "{text}");
        }
    }

    #[test]
    fn a_reader_is_no_process_of_its_caller() {
        let script =
            "echo $(grep -E '^(Uid|Groups|CapBnd|NoNewPrivs)' /proc/self/status) >&2; exit 3";
        let reader = Reader::new(Path::new("/bin/sh"), &["-c", script], Stdio::null());
        let failure = reader.lines(1 << 20, drop, |_: String| {}).unwrap_err();
        let text = failure.message();
        assert!(text.contains("exit status: 3: Uid"), "{text}");
        assert!(text.contains(" NoNewPrivs: 1;"), "{text}");
        if geteuid().is_root() {
            let rights = " Groups: CapBnd: 0000000000000000 ";
            assert!(text.contains(rights) && !text.contains("Uid: 0"), "{text}");
        }
    }

    #[test]
    fn what_it_writes_for_the_terminal_is_cleaned() {
        let script = "printf 'first\\n\\033]0;x\\007\\n\\n' >&2; echo '\"a\"'; exit 1";
        let reader = Reader::new(Path::new("/bin/sh"), &["-c", script], Stdio::null());
        let mut lines = Vec::new();
        let failure = reader.lines(1 << 20, drop, |line: String| lines.push(line));
        assert_eq!(lines, ["a"]);
        let text = failure.unwrap_err().message().to_owned();
        assert!(!text.contains('\x1b') && text.contains("]0;x"), "{text}");
    }
}
