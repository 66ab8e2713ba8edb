//! How the tests run hooks: the test site, a snapshot's directory, an ordinary user.

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// The test site, stopped with its owner.
pub struct Site {
    server: Child,
    pub address: String,
}

impl Site {
    pub fn start() -> Site {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/site/server.py");
        let mut server = Command::new("python3")
            .args(["-B".as_ref(), program.as_os_str()])
            .args(["--port", "0"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 runs the test site");
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let address = line
            .trim()
            .strip_prefix("listening on ")
            .expect(&line)
            .to_string();
        Site { server, address }
    }

    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.address)
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// A snapshot's directory, writable by the user that hooks run as.
pub struct Snapshot(tempfile::TempDir);

/// What a hook left behind.
pub struct Ran {
    pub exit: Option<i32>,
    pub records: Vec<Value>,
    pub elapsed: Duration,
}

impl Ran {
    /// The one ArchiveResult, which is the last line.
    pub fn result(&self) -> &Value {
        let results = self
            .records
            .iter()
            .filter(|record| record["type"] == "ArchiveResult");
        assert_eq!(results.count(), 1, "{:?}", self.records);
        self.records.last().unwrap()
    }

    #[track_caller]
    pub fn assert(&self, exit: i32, status: &str, output: &str) {
        let result = self.result();
        let seen = (
            self.exit,
            result["status"].as_str(),
            result["output_str"].as_str(),
        );
        assert_eq!(seen, (Some(exit), Some(status), Some(output)));
    }
}

impl Snapshot {
    pub fn new() -> Snapshot {
        let dir = tempfile::tempdir().unwrap();
        open_to_all(dir.path());
        Snapshot(dir)
    }

    pub fn file(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    pub fn read(&self, path: &str) -> Vec<u8> {
        std::fs::read(self.file(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    pub fn json(&self, path: &str) -> Value {
        serde_json::from_slice(&self.read(path)).unwrap()
    }

    /// Starts a plugin's own hook file in its directory.
    pub fn spawn(
        &self,
        plugin: &str,
        url: &str,
        settings: &[(&str, &str)],
        stdout: Stdio,
    ) -> Child {
        let directory = self.file(plugin);
        std::fs::create_dir_all(&directory).unwrap();
        open_to_all(&directory);
        let temporary = self.file("tmp");
        std::fs::create_dir_all(&temporary).unwrap();
        open_to_all(&temporary);
        let mut command = as_ordinary_user(&hook_file(plugin));
        command.args([
            &format!("--url={url}"),
            "--snapshot-id=7",
            "--depth=1",
            "--event-id=unknown",
        ]);
        command
            .env_clear()
            .env("PATH", path())
            .env("HOME", &temporary)
            .env("TMPDIR", &temporary);
        command
            .env("SNAP_DIR", self.0.path())
            .env("CRAWL_DIR", self.0.path());
        command.env("EXTRA_CONTEXT", r#"{"snapshot_id":"7","snapshot_depth":1}"#);
        command
            .envs(settings.iter().copied())
            .current_dir(&directory)
            .stdin(Stdio::null());
        command
            .stdout(stdout)
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    /// Runs a hook to its end, its standard output in `stdout.log`.
    pub fn run(&self, plugin: &str, url: &str, settings: &[(&str, &str)]) -> Ran {
        let start = Instant::now();
        std::fs::create_dir_all(self.file(plugin)).unwrap();
        let log = self.file(&format!("{plugin}/stdout.log"));
        let stdout = std::fs::File::create(&log).unwrap();
        let mut child = self.spawn(plugin, url, settings, stdout.into());
        let exit = child.wait().unwrap().code();
        self.ran(
            exit,
            &std::fs::read_to_string(log).unwrap(),
            start.elapsed(),
        )
    }

    pub fn ran(&self, exit: Option<i32>, stdout: &str, elapsed: Duration) -> Ran {
        let records = stdout
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        let ran = Ran {
            exit,
            records,
            elapsed,
        };
        assert_eq!(ran.result()["snapshot_id"], "7");
        let left = std::fs::read_dir(self.file("tmp")).unwrap().count();
        assert_eq!(left, 0, "temporary files are left");
        ran
    }
}

fn open_to_all(path: &Path) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
}

fn hook_file(plugin: &str) -> PathBuf {
    let plugin = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("plugins")
        .join(plugin);
    let mut files = std::fs::read_dir(plugin)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    files
        .find(|path| path.extension().is_some_and(|it| it == "sh"))
        .unwrap()
}

fn path() -> String {
    let built = Path::new(env!("CARGO_BIN_EXE_archivist")).parent().unwrap();
    format!("{}:/usr/bin:/bin", built.display())
}

fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// Hooks do not run as root: `nobody` stands for the hooks' user, if it can reach the program.
static AS_NOBODY: LazyLock<bool> = LazyLock::new(|| {
    let reach = |program: &Path| nobody(Path::new("test")).arg("-x").arg(program).status();
    let programs = [
        Path::new(env!("CARGO_BIN_EXE_archivist")),
        &hook_file("wget"),
    ];
    is_root()
        && programs
            .into_iter()
            .all(|program| reach(program).is_ok_and(|it| it.success()))
});

fn nobody(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args([
        "--reuid=nobody",
        "--regid=nogroup",
        "--clear-groups",
        "--no-new-privs",
        "--",
    ]);
    command.arg(program);
    command
}

fn as_ordinary_user(program: &Path) -> Command {
    if *AS_NOBODY {
        nobody(program)
    } else {
        Command::new(program)
    }
}

/// Whether the test can run; otherwise it says why not.
pub fn has(programs: &[&str]) -> bool {
    if programs.contains(&"chromium") && is_root() && !*AS_NOBODY {
        println!(
            "skipped: chromium refuses to run as root, and nobody cannot reach the built program"
        );
        return false;
    }
    let missing = programs
        .iter()
        .find(|name| !Path::new("/usr/bin").join(name).exists());
    if let Some(name) = missing {
        println!("skipped: {name} is not installed");
    }
    missing.is_none()
}
