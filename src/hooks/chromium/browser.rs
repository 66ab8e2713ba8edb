//! The browser's process: Debian's chromium, headless, always inside its own sandbox, steered
//! over a pipe, with a profile in a temporary directory that goes away with it.

use super::load::window;
use crate::page::html::one_line;
use crate::process::invocation::Invocation;
use crate::process::program::cannot;
use crate::process::record::Finding;
use crate::process::scratch::Scratch;
use std::ffi::OsString;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

/// How long the browser may take to end once it was asked to.
const GRACE: Duration = Duration::from_secs(5);
/// Hooks have no bus, by design; chromium complains about that some twenty times a run.
const NOISE: [&str; 2] = ["ERROR:dbus/bus.cc", "ERROR:dbus/object_proxy.cc"];
/// The longest piece of the log that is looked at as one line, in bytes.
const LINE: u64 = 16 * 1024;

/// A browser that was started.
pub struct Browser {
    child: Child,
    told: Arc<Mutex<Option<String>>>,
    log: tokio::task::JoinHandle<()>,
    /// Removed after the process has ended.
    _home: Scratch,
}

/// Both directions of the pipe on which the browser is steered.
pub type Pipe = (ChildStdin, ChildStdout);

impl Browser {
    /// Starts chromium. To be called within a runtime.
    pub fn start(it: &Invocation) -> Result<(Browser, Pipe), Finding> {
        let home = Scratch::new("chromium")?;
        // Chromium's pipe is the descriptors 3 and 4. The script is fixed text, and what it
        // runs comes as arguments: nothing of it is expanded.
        let steered = "exec \"$@\" 3<&0 4>&1 0</dev/null 1>&2";
        let program = it.settings.text("CHROME_BINARY");
        find(&program)?;
        let mut command = Command::new("/bin/sh");
        command.args(["-c", steered, "sh", &program]);
        command.args(arguments(it, &home)?);
        environment(&mut command, &home)?;
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        let mut child = command
            .spawn()
            .map_err(|error| Finding::failed(format!("failed to start {program}: {error}")))?;
        let (Some(input), Some(output), Some(log)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(Finding::failed("chromium was started without its pipes"));
        };
        let told = Arc::new(Mutex::new(None));
        let browser = Browser {
            child,
            log: tokio::spawn(read_log(log, told.clone())),
            told,
            _home: home,
        };
        Ok((browser, (input, output)))
    }

    /// Waits until the browser has ended; why, in words. By itself it never does.
    pub async fn ended(&mut self) -> String {
        let status = self.child.wait().await;
        // Its children may hold the log open.
        let _ = timeout(Duration::from_millis(500), &mut self.log).await;
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        match (&*told, status) {
            (Some(reason), _) => reason.clone(),
            (None, Ok(status)) => in_words(status),
            (None, Err(error)) => format!("chromium is lost: {error}"),
        }
    }

    /// Waits for the end that it was asked for; then ends it by force.
    pub async fn end(mut self) {
        if timeout(GRACE, self.child.wait()).await.is_err() {
            eprintln!("chromium does not end, killing it");
            let _ = self.child.kill().await;
        }
    }
}

fn in_words(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("chromium ended by itself (exit {code})"),
        (None, Some(signal)) => {
            let name = nix::sys::signal::Signal::try_from(signal);
            let name = name.map_or_else(|_| signal.to_string(), |name| name.to_string());
            format!("chromium was killed ({name})")
        }
        (None, None) => "chromium ended".to_owned(),
    }
}

/// The shell would report a missing program as exit 127: it is looked up first.
fn find(program: &str) -> Result<(), Finding> {
    let there = |path: &std::path::Path| nix::unistd::access(path, nix::unistd::AccessFlags::X_OK);
    let found = if program.contains('/') {
        there(program.as_ref()).is_ok()
    } else {
        std::env::var_os("PATH").is_some_and(|search| {
            std::env::split_paths(&search).any(|dir| there(&dir.join(program)).is_ok())
        })
    };
    if found {
        Ok(())
    } else {
        Err(cannot(
            program,
            &std::io::ErrorKind::NotFound.into(),
            "chromium",
        ))
    }
}

fn arguments(it: &Invocation, home: &Scratch) -> Result<Vec<OsString>, Finding> {
    let settings = &it.settings;
    let mut profile = OsString::from("--user-data-dir=");
    profile.push(home.path("profile"));
    let mut arguments = vec![profile];
    let (width, height) = window(&settings.text("RESOLUTION"));
    arguments.push(format!("--window-size={width},{height}").into());
    let agent = settings.text("CHROME_USER_AGENT");
    if !agent.is_empty() {
        arguments.push(format!("--user-agent={agent}").into());
    }
    if !settings.flag("CHECK_SSL_VALIDITY") {
        arguments.push("--ignore-certificate-errors".into());
    }
    let fixed = [
        "--headless=new",
        "--remote-debugging-pipe",
        "--no-first-run",
        "--no-default-browser-check",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--disable-default-apps",
        "--disable-breakpad",
        "--disable-domain-reliability",
        "--metrics-recording-only",
        "--password-store=basic",
        "--mute-audio",
        "--deny-permission-prompts",
        "--hide-scrollbars",
        // Tabs of several snapshots at once: none of them is one in the background.
        "--disable-background-timer-throttling",
        "--disable-backgrounding-occluded-windows",
        "--disable-renderer-backgrounding",
    ];
    arguments.extend(fixed.map(OsString::from));
    arguments.extend(
        settings
            .list("CHROME_ARGS_EXTRA")
            .into_iter()
            .map(OsString::from),
    );
    arguments.push("about:blank".into());
    Ok(arguments)
}

/// Caches, crash reports and certificates go where HOME and these point.
fn environment(command: &mut Command, home: &Scratch) -> Result<(), Finding> {
    let own = home.path("home");
    fs::create_dir_all(&own)
        .map_err(|error| Finding::failed(format!("failed to make {}: {error}", own.display())))?;
    for name in [
        "XDG_CONFIG_HOME",
        "XDG_CACHE_HOME",
        "XDG_DATA_HOME",
        "XDG_RUNTIME_DIR",
        "DISPLAY",
        "WAYLAND_DISPLAY",
    ] {
        command.env_remove(name);
    }
    command.env("HOME", &own).env("TMPDIR", home.dir());
    Ok(())
}

/// Hands the log on line by line, and keeps what it says of the browser's end.
async fn read_log(pipe: ChildStderr, told: Arc<Mutex<Option<String>>>) {
    let mut reader = BufReader::new(pipe);
    loop {
        let mut line = Vec::new();
        match (&mut reader).take(LINE).read_until(b'\n', &mut line).await {
            Ok(1..) => {}
            _ => return,
        }
        let text = String::from_utf8_lossy(&line);
        if NOISE.iter().any(|noise| text.contains(noise)) {
            continue;
        }
        eprintln!("{}", text.trim_end());
        if let Some(reason) = trouble(&text) {
            let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
            told.get_or_insert(reason);
        }
    }
}

/// What a line of chromium's log says in words that an administrator can act on.
fn trouble(line: &str) -> Option<String> {
    if line.contains("Running as root without --no-sandbox") {
        return Some(
            "chromium does not run as root with its sandbox on; run hooks as an ordinary user"
                .to_owned(),
        );
    }
    let sandbox = [
        "No usable sandbox",
        "Failed to move to new namespace",
        "setuid sandbox is not running as root",
    ];
    if sandbox.iter().any(|text| line.contains(text)) {
        return Some(
            "chromium has no sandbox here: user namespaces are missing. Look at RestrictNamespaces= of the unit and the \
             sysctls user.max_user_namespaces, kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns"
                .to_owned(),
        );
    }
    line.contains(":FATAL:")
        .then(|| format!("chromium failed: {}", one_line(line, 300)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn troubles_are_told_in_words() {
        assert_eq!(trouble("ERROR:gpu.cc:1 nothing to see"), None);
        let sandbox = trouble("FATAL:zygote_host_impl_linux.cc(128)] No usable sandbox!").unwrap();
        assert!(sandbox.contains("user namespaces"), "{sandbox}");
        let fatal = trouble("[1:2:FATAL:x.cc(1)] no memory\n").unwrap();
        assert_eq!(fatal, "chromium failed: [1:2:FATAL:x.cc(1)] no memory");
        assert!(
            trouble("Running as root without --no-sandbox is not")
                .unwrap()
                .contains("ordinary user")
        );
    }

    #[test]
    fn ends_are_told_in_words() {
        let words = |raw| in_words(ExitStatus::from_raw(raw));
        assert_eq!(words(9), "chromium was killed (SIGKILL)");
        assert_eq!(words(21 << 8), "chromium ended by itself (exit 21)");
    }
}
