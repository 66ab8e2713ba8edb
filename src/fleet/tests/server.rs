//! A PostgreSQL of Debian in a temporary directory, for tests: nothing of it is durable.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;

/// The PostgreSQL of Debian, one directory for each version.
const VERSIONS: &str = "/usr/lib/postgresql";
/// User of the server if the tests run as root, which PostgreSQL refuses.
const USER: &str = "postgres";
/// Last line of a server that has started.
const READY: &str = "database system is ready to accept connections";

/// Makes the files of a server, or copies those of another. Runs until its standard input ends, also
/// if the test was killed, and removes the directory.
const SCRIPT: &str = r#"
dir=$1 bin=$2 copy=$3
shift 3
cd "$dir" || exit 1
if [ -n "$copy" ]; then
    cp -a "$copy" data
else
    "$bin/initdb" -D fresh -U postgres -A trust --no-sync --locale=C.UTF-8 2>&1 </dev/null || exit 1
    cp -a fresh data
fi
"$bin/postgres" -D data -k "$dir" -c fsync=off -c full_page_writes=off "$@" 2>&1 </dev/null &
pid=$!
read -r _
kill -INT "$pid"
wait "$pid"
cd / && rm -rf "$dir"
"#;

/// A running server. Stops when it is dropped, or with the process of the test.
pub struct Server {
    directory: PathBuf,
    pub port: u16,
    control: Option<ChildStdin>,
    shell: Child,
}

/// Directory of the programs of the newest PostgreSQL, or why there is none.
pub fn programs() -> Result<PathBuf, String> {
    let versions =
        fs::read_dir(VERSIONS).map_err(|error| format!("PostgreSQL: {VERSIONS}: {error}"))?;
    let version = |path: &Path| path.file_name()?.to_str()?.parse::<u32>().ok();
    let paths = versions.filter_map(|entry| Some(entry.ok()?.path()));
    let bins = paths.filter(|path| path.join("bin/initdb").exists());
    let newest = bins.max_by_key(|path| version(path));
    newest
        .map(|path| path.join("bin"))
        .ok_or_else(|| format!("PostgreSQL: no initdb in {VERSIONS}"))
}

/// The server that tests share; `None` with the reason on standard error if there is no PostgreSQL.
#[allow(dead_code)]
pub fn shared() -> Option<&'static Server> {
    static SERVER: OnceLock<Server> = OnceLock::new();
    match programs() {
        Ok(bin) => Some(SERVER.get_or_init(|| Server::run(&bin, None, 5432, &[], &[]))),
        Err(reason) => {
            eprintln!("skipped: {reason}");
            None
        }
    }
}

impl Server {
    /// Starts a server for a program.
    #[allow(dead_code)]
    pub fn alone(port: u16, settings: &[&str]) -> Server {
        Server::run(&programs().unwrap(), None, port, settings, &[])
    }

    /// Starts another server with further settings (`name=value`) and files in its directory, which
    /// settings name as `@/FILE`. `port` also names the socket.
    #[allow(dead_code)]
    pub fn start(&self, port: u16, settings: &[&str], files: &[(&str, &str)]) -> Server {
        let bin = programs().unwrap();
        Server::run(&bin, Some(&self.file("fresh")), port, settings, files)
    }

    fn run(
        bin: &Path,
        copy: Option<&Path>,
        port: u16,
        settings: &[&str],
        files: &[(&str, &str)],
    ) -> Server {
        let directory = tempfile::tempdir().unwrap().keep();
        let mut names = vec![directory.clone()];
        for (name, content) in files {
            let path = directory.join(name);
            fs::write(&path, content).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            names.push(path);
        }
        let mut command = shell(&names);
        let args = [directory.as_path(), bin, copy.unwrap_or(Path::new(""))];
        command.args(["-c", SCRIPT, "sh"]).args(args);
        let quiet = ["listen_addresses=", &format!("port={port}")].map(str::to_owned);
        let place = directory.to_str().unwrap();
        let further = settings.iter().map(|setting| setting.replace('@', place));
        for setting in quiet.into_iter().chain(further) {
            command.arg("-c").arg(setting);
        }
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut shell = command.spawn().unwrap();
        let mut output = BufReader::new(shell.stdout.take().unwrap()).lines();
        let mut seen = Vec::new();
        while !seen.last().is_some_and(|line: &String| line.contains(READY)) {
            match output.next() {
                Some(line) => seen.push(line.unwrap()),
                None => panic!("PostgreSQL did not start:\n{}", seen.join("\n")),
            }
        }
        // A full pipe would stop the server.
        std::thread::spawn(move || output.for_each(drop));
        Server { directory, port, control: shell.stdin.take(), shell }
    }

    /// URL of a database of the server, by its socket.
    pub fn url(&self, database: &str) -> String {
        let socket = self.directory.to_str().unwrap().replace('/', "%2F");
        format!("postgresql://postgres@{socket}:{}/{database}", self.port)
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

/// Waits for the server, so that no process is left.
impl Drop for Server {
    fn drop(&mut self) {
        drop(self.control.take());
        drop(self.shell.wait());
    }
}

/// A shell of the user of the server, which owns the files.
fn shell(files: &[PathBuf]) -> Command {
    if !nix::unistd::geteuid().is_root() {
        return Command::new("sh");
    }
    let user = nix::unistd::User::from_name(USER).unwrap().unwrap();
    for file in files {
        nix::unistd::chown(file, Some(user.uid), Some(user.gid)).unwrap();
    }
    let mut command = Command::new("setpriv");
    command.args([
        &format!("--reuid={}", user.uid),
        &format!("--regid={}", user.gid),
        "--clear-groups",
        "sh",
    ]);
    command
}
