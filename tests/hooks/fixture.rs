//! Test bench for hooks: the test site, a snapshot's directory, an ordinary user.

use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// The test site, which stops on drop.
pub struct Site {
    server: Child,
    pub address: String,
}

impl Site {
    pub fn start() -> Site {
        Site::of("server.py")
    }

    /// The page with many kinds of requests.
    pub fn of_kinds() -> Site {
        Site::of("kinds.py")
    }

    fn of(program: &str) -> Site {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/site");
        let program = directory.join(program);
        let mut server = Command::new("python3")
            .args(["-B".as_ref(), program.as_os_str()])
            .args(["--port", "0"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 runs the test site");
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on ").expect(&line).to_string();
        Site { server, address }
    }

    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.address)
    }

    /// The site as `HOST:PORT`.
    pub fn host(&self) -> &str {
        let host = self.address.trim_start_matches("http://");
        host.trim_end_matches('/')
    }

    /// The paths that were requested so far.
    pub fn requests(&self) -> Vec<String> {
        let log = self.log("");
        let paths = log.iter().map(|request| request["path"].as_str().unwrap());
        paths.filter(|path| *path != "/log?").map(str::to_owned).collect()
    }

    /// The requests so far. The page with many kinds of requests waits for one for `path` before.
    pub fn log(&self, path: &str) -> Vec<Value> {
        let log = log_of(self.host(), &format!("?{path}"));
        serde_json::from_str(&log).unwrap()
    }
}

/// The list of requests that a server has at `/log`.
fn log_of(host: &str, query: &str) -> String {
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET /log{query} HTTP/1.0\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (_, log) = answer.split_once("\r\n\r\n").unwrap();
    log.to_owned()
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// A server of `tests/web`, which stops on drop.
pub struct WebServer {
    server: Child,
    port: u16,
}

impl WebServer {
    /// Starts the server of the directory `name` and waits until it accepts connections.
    pub fn start(name: &str) -> WebServer {
        let program =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/web").join(name).join("server.py");
        let free = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let server = Command::new("python3")
            .args(["-B".as_ref(), program.as_os_str()])
            .arg(port.to_string())
            .stdout(Stdio::null())
            .spawn()
            .expect("python3 runs the server");
        let deadline = Instant::now() + Duration::from_secs(10);
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < deadline, "{name} does not listen");
            std::thread::yield_now();
        }
        WebServer { server, port }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// The paths that were requested so far, of a server that lists them.
    pub fn requests(&self) -> Vec<String> {
        let log = log_of(&format!("127.0.0.1:{}", self.port), "");
        serde_json::from_str(&log).unwrap()
    }

    /// The server as `HOST+PORT`, the name of wget's directory.
    pub fn directory(&self) -> String {
        format!("127.0.0.1+{}", self.port)
    }
}

impl Drop for WebServer {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// A snapshot's directory, writable by the user of hooks.
pub struct Snapshot {
    directory: tempfile::TempDir,
    /// Directory of a crawl that has other snapshots, too.
    crawl: OnceLock<PathBuf>,
}

/// Output of a hook.
pub struct Ran {
    pub exit: Option<i32>,
    pub records: Vec<Value>,
    pub elapsed: Duration,
}

impl Ran {
    /// The only ArchiveResult, which is the last line.
    pub fn result(&self) -> &Value {
        let results = self.records.iter().filter(|record| record["type"] == "ArchiveResult");
        assert_eq!(results.count(), 1, "{:?}", self.records);
        self.records.last().unwrap()
    }

    #[track_caller]
    pub fn assert(&self, exit: i32, status: &str, output: &str) {
        let result = self.result();
        let seen = (self.exit, result["status"].as_str(), result["output_str"].as_str());
        assert_eq!(seen, (Some(exit), Some(status), Some(output)));
    }
}

impl Snapshot {
    pub fn new() -> Snapshot {
        let directory = tempfile::tempdir().unwrap();
        open_to_all(directory.path());
        Snapshot { directory, crawl: OnceLock::new() }
    }

    /// Makes the directory of a plugin, as a worker does for all plugins that run.
    pub fn select(&self, plugin: &str) {
        let directory = self.file(plugin);
        std::fs::create_dir_all(&directory).unwrap();
        open_to_all(&directory);
    }

    pub fn file(&self, path: &str) -> PathBuf {
        self.directory.path().join(path)
    }

    /// The directory of its crawl.
    pub fn crawl(&self) -> PathBuf {
        self.crawl.get().cloned().unwrap_or_else(|| self.file("crawl"))
    }

    pub fn read(&self, path: &str) -> Vec<u8> {
        std::fs::read(self.file(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    pub fn json(&self, path: &str) -> Value {
        serde_json::from_slice(&self.read(path)).unwrap()
    }

    /// Starts the hook file of a plugin in the plugin's output directory.
    pub fn spawn(&self, hook: &str, url: &str, settings: &[(&str, &str)], stdout: Stdio) -> Child {
        let mut command = self.prepare(as_ordinary_user(&hook_file(hook)), hook, url, settings);
        command.stdin(Stdio::null()).stdout(stdout).spawn().unwrap()
    }

    /// Adds to a command what a hook gets.
    fn prepare(
        &self,
        mut command: Command,
        hook: &str,
        url: &str,
        settings: &[(&str, &str)],
    ) -> Command {
        let directory = self.file(directory_of(hook));
        std::fs::create_dir_all(&directory).unwrap();
        open_to_all(&directory);
        let temporary = self.file("tmp");
        std::fs::create_dir_all(&temporary).unwrap();
        open_to_all(&temporary);
        command.args([
            &format!("--url={url}"),
            "--snapshot-id=7",
            "--depth=1",
            "--event-id=unknown",
        ]);
        command.env_clear().env("PATH", path()).env("HOME", &temporary).env("TMPDIR", &temporary);
        command.env("SNAP_DIR", self.directory.path()).env("CRAWL_DIR", self.crawl());
        command.env("EXTRA_CONTEXT", r#"{"snapshot_id":"7","snapshot_depth":1}"#);
        command.envs(settings.iter().copied()).current_dir(&directory).stderr(Stdio::null());
        command
    }

    /// Runs a hook until it ends. Its standard output goes to `stdout.log`.
    pub fn run(&self, hook: &str, url: &str, settings: &[(&str, &str)]) -> Ran {
        let start = Instant::now();
        std::fs::create_dir_all(self.file(directory_of(hook))).unwrap();
        let log = self.file(&format!("{}/stdout.log", directory_of(hook)));
        let stdout = std::fs::File::create(&log).unwrap();
        let mut child = self.spawn(hook, url, settings, stdout.into());
        let exit = child.wait().unwrap().code();
        self.ran(exit, &std::fs::read_to_string(log).unwrap(), start.elapsed())
    }

    pub fn ran(&self, exit: Option<i32>, stdout: &str, elapsed: Duration) -> Ran {
        let records = stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let ran = Ran { exit, records, elapsed };
        assert_eq!(ran.result()["snapshot_id"], "7");
        ran
    }

    /// Starts a daemon and waits for its first line, which means that it is ready.
    pub fn daemon(&self, hook: &str, url: &str, settings: &[(&str, &str)]) -> Daemon {
        let start = Instant::now();
        let mut child = self.spawn(hook, url, settings, Stdio::piped());
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut text = String::new();
        stdout.read_line(&mut text).unwrap();
        Daemon { child, stdout, text, start }
    }
}

/// Checks that no temporary file is left when the hooks of a snapshot have ended.
impl Drop for Snapshot {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let Ok(left) = std::fs::read_dir(self.file("tmp")) else {
                return;
            };
            let left: Vec<_> = left.map(|entry| entry.unwrap().path()).collect();
            assert!(left.is_empty(), "temporary files are left: {left:?}");
        }
    }
}

/// A hook that runs until it is stopped.
pub struct Daemon {
    child: Child,
    stdout: BufReader<std::process::ChildStdout>,
    /// What it has printed so far.
    pub text: String,
    start: Instant,
}

impl Daemon {
    /// Id of its process.
    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Stops the hook. Returns its exit status and its output.
    pub fn end(self) -> (Option<i32>, String) {
        let pid = nix::unistd::Pid::from_raw(self.pid());
        nix::sys::signal::kill(pid, nix::sys::signal::SIGTERM).unwrap();
        self.ended()
    }

    /// Waits until the hook ends by itself.
    pub fn ended(mut self) -> (Option<i32>, String) {
        self.stdout.read_to_string(&mut self.text).unwrap();
        let exit = self.child.wait().unwrap().code();
        (exit, std::mem::take(&mut self.text))
    }

    /// Stops the hook. Returns its output as that of a hook of this snapshot.
    pub fn stopped(self, snapshot: &Snapshot) -> Ran {
        let start = self.start;
        let (exit, text) = self.end();
        snapshot.ran(exit, &text, start.elapsed())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let pid = nix::unistd::Pid::from_raw(self.pid());
            let _ = nix::sys::signal::kill(pid, nix::sys::signal::SIGTERM);
        }
        let _ = self.child.wait();
    }
}

/// Runs the hook of a browser until standard input is closed, which happens when the tests end, however they do; then
/// closes the browser and removes its directory. A terminal's SIGINT does not reach the hook.
const KEEPER: &str = r#"directory=$1; shift; "$@" & read -r _; kill $!; wait; rm -rf "$directory""#;

/// A browser of several tests. It is closed when the tests have ended.
struct SharedBrowser {
    /// Directory of its crawl.
    crawl: PathBuf,
    /// Its standard streams are open as long as the tests run.
    _keeper: Child,
}

impl SharedBrowser {
    fn start(settings: &[(&str, &str)]) -> SharedBrowser {
        let home = Snapshot::new();
        let hook = as_ordinary_user(&hook_file("chromium_launch"));
        let mut keeper = Command::new("sh");
        keeper.args(["-c", KEEPER, "sh"]).arg(home.directory.path());
        keeper.arg(hook.get_program()).args(hook.get_args()).process_group(0);
        let mut keeper = home.prepare(keeper, "chromium_launch", "", settings);
        let mut keeper = keeper.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut byte = [0];
        while byte != *b"\n" {
            keeper.stdout.as_mut().unwrap().read_exact(&mut byte).unwrap();
        }
        let crawl = home.crawl();
        std::mem::forget(home);
        SharedBrowser { crawl, _keeper: keeper }
    }

    /// The hook removes the address of a browser that has ended.
    fn is_running(&self) -> bool {
        self.crawl.join("chromium/cdp_url.txt").exists()
    }
}

/// By the settings with which they were started.
static SHARED_BROWSERS: Mutex<BTreeMap<String, SharedBrowser>> = Mutex::new(BTreeMap::new());

/// A browser and a tab. The tab is closed on drop, and the browser, unless other tests use it.
pub struct Session {
    browser: Option<Daemon>,
    tab: Option<Daemon>,
}

impl Session {
    /// Starts a browser for this snapshot's crawl alone.
    pub fn start(snapshot: &Snapshot, settings: &[(&str, &str)]) -> Session {
        Session { browser: Some(snapshot.daemon("chromium_launch", "", settings)), tab: None }
    }

    /// Puts the snapshot into a crawl of other tests, whose browser has these settings. Their pages share its processes,
    /// and neither cookies nor caches.
    pub fn shared(snapshot: &Snapshot, settings: &[(&str, &str)]) -> Session {
        let mut browsers = SHARED_BROWSERS.lock().unwrap_or_else(PoisonError::into_inner);
        let of_settings = browsers.entry(format!("{settings:?}"));
        let browser = of_settings.or_insert_with(|| SharedBrowser::start(settings));
        if !browser.is_running() {
            *browser = SharedBrowser::start(settings);
        }
        snapshot.crawl.set(browser.crawl.clone()).ok();
        Session { browser: None, tab: None }
    }

    /// The browser's hook, of a session that has the browser alone.
    pub fn browser(&self) -> &Daemon {
        self.browser.as_ref().unwrap()
    }

    /// Removes and returns the browser's hook, so that the test stops it.
    pub fn take_browser(&mut self) -> Daemon {
        self.browser.take().unwrap()
    }

    /// Opens a page in a tab, replacing the previous one. Returns the output of its hook up to its
    /// first line.
    pub fn open(&mut self, snapshot: &Snapshot, url: &str, settings: &[(&str, &str)]) -> String {
        self.tab.take().map(|tab| tab.end());
        let tab = snapshot.daemon("chromium_tab", url, settings);
        let text = tab.text.clone();
        self.tab = Some(tab);
        text
    }

    /// Removes and returns the tab, so that the test stops it.
    pub fn tab(&mut self) -> Daemon {
        self.tab.take().unwrap()
    }
}

pub fn open_to_all(path: &Path) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
}

/// Output directory of a hook: the crawl's directory is below that of the snapshot.
fn directory_of(hook: &str) -> &str {
    match hook {
        "chromium_launch" => "crawl/chromium",
        other => plugin_of(other),
    }
}

fn plugin_of(hook: &str) -> &str {
    if hook.starts_with("chromium_") { "chromium" } else { hook }
}

fn hook_file(hook: &str) -> PathBuf {
    let plugin = TREE.join("plugins").join(plugin_of(hook));
    let part = format!("_{hook}.");
    let mut files = std::fs::read_dir(plugin).unwrap().map(|entry| entry.unwrap().path());
    files.find(|path| path.to_string_lossy().contains(&part)).unwrap()
}

fn path() -> String {
    format!("{}:/usr/bin:/bin", archivist().parent().unwrap().display())
}

/// The source tree, and the program that was built from it.
const BUILT: (&str, &str) = (env!("CARGO_MANIFEST_DIR"), env!("CARGO_BIN_EXE_archivist"));

/// The program, where the user of hooks can execute it.
pub fn archivist() -> PathBuf {
    if *TREE == Path::new(BUILT.0) { BUILT.1.into() } else { TREE.join("archivist") }
}

/// What hooks read of the source tree. If the caller is root, and a directory above the tree or the program is closed to others,
/// a copy with the program, which stays: no test is known to be the last one.
pub static TREE: LazyLock<PathBuf> = LazyLock::new(|| {
    let (tree, built) = (Path::new(BUILT.0), Path::new(BUILT.1));
    let is_reachable = |path: &Path| unprivileged(Path::new("test")).arg("-x").arg(path).status();
    let plugins = tree.join("plugins");
    let mut paths = [built, &plugins].into_iter();
    if !is_root() || paths.all(|path| is_reachable(path).is_ok_and(|it| it.success())) {
        return tree.to_owned();
    }
    let copy = tempfile::tempdir().unwrap().keep();
    open_to_all(&copy);
    let parts = ["plugins", "autoconsent"].map(|name| tree.join(name));
    let parts = parts.iter().filter(|part| part.exists());
    let copied = Command::new("cp").args(["-r", "--"]).arg(built).args(parts).arg(&copy).status();
    assert!(copied.unwrap().success(), "a copy for the user of hooks in {}", copy.display());
    copy
});

fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

fn unprivileged(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid=nobody", "--regid=nogroup", "--clear-groups", "--no-new-privs", "--"]);
    command.arg(program);
    command
}

/// The command that runs a program as the user of hooks: user 65534 instead of root, as which Chromium refuses to run.
pub fn as_ordinary_user(program: &Path) -> Command {
    if is_root() { unprivileged(program) } else { Command::new(program) }
}

/// The longest time of what takes up to `seconds` on a quiet machine: in a run, others share the processors.
pub fn busy(seconds: u64) -> Duration {
    Duration::from_secs(4 * seconds)
}

/// Whether the programs are installed; otherwise prints why the test is skipped.
pub fn has(programs: &[&str]) -> bool {
    let missing = programs.iter().find(|name| !Path::new("/usr/bin").join(name).exists());
    if let Some(name) = missing {
        println!("skipped: {name} is not installed");
    }
    missing.is_none()
}
