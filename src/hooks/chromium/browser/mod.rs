//! The browser process: Debian's chromium, headless, always inside its own sandbox, controlled over
//! a pipe. Its profile, a copy of the persona's if there is one, is in a temporary directory that
//! is removed when the process ends.

mod client_certificate;
pub(crate) mod cookies;
pub(crate) mod identity;
pub mod launch;
pub(crate) mod namespace;
pub(crate) mod relay;
mod routes;
pub(crate) mod viewport;
pub(crate) mod world;

use crate::visit::Seed;
use namespace::Namespace;
use viewport::{BARS_HEIGHT, window};

use crate::certificates::{self, authorities};
use crate::page::html::one_line;
use crate::persona::{COPY_BOUNDS, copy};
use crate::process::finding::Finding;
use crate::process::invocation::Invocation;
use crate::process::program::{is_installed, start_failure};
use crate::process::scratch::Scratch;
use archivist_core::lock;
use std::ffi::OsString;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

/// Time that the browser gets to exit after `Browser.close`; then it is killed.
const EXIT_GRACE: Duration = Duration::from_secs(5);
const PROFILE: &str = "profile";
/// Log lines to drop: hooks have no D-Bus by design, and chromium logs that about twenty times a
/// run.
const DROPPED_LOG_TEXTS: [&str; 2] = ["ERROR:dbus/bus.cc", "ERROR:dbus/object_proxy.cc"];
const DISABLE_FEATURES: &str = "--disable-features=";
/// Flags of V8.
const JS_FLAGS: &str = "--js-flags=";
/// Features that change what is archived, or that cost time and are for people only.
const DISABLED_FEATURES: [&str; 6] = [
    // Since version 115, chromium opens `https:` instead of the `http:` URL that it is given, and
    // goes back if nothing answers there: a server may have another site there.
    "HttpsUpgrades",
    // Chromium 156 loads two pages for the suggestions of the address bar of each window, in a
    // process of their own: more CPU time than an ordinary page takes.
    "WebUIOmniboxPopup",
    "WebUIOmniboxAimPopup",
    // Chromium puts a sandboxed frame without a URL into a process of its own, and does not let it wait
    // for programs that attach to it: what it requests first would be neither recorded nor replayed.
    "IsolateSandboxedIframes",
    // Requests to hosts of Google that no page has caused.
    "NetworkTimeServiceQuerying",
    "OptimizationHints",
];
/// An address that chromium opens no connection to, because its port is one of those that a page
/// cannot reach, and whose host needs no name server. It stands for services of Google that
/// chromium asks at its start whatever its other options say.
const NOWHERE: &str = "http://127.0.0.1:1/";
/// Chromium reads commands from descriptor 3 and writes to descriptor 4. The script is a constant, and
/// the shell expands none of its arguments.
const STEERED: &str = "exec \"$@\" 3<&0 4>&1 0</dev/null 1>&2";
/// Arguments of a browser without a window, in addition to its size.
const HEADLESS: &[&str] = &["--headless=new", "--mute-audio", "--hide-scrollbars"];
/// The least size of the screen in pixels. It is larger if a window is: pages look at both.
const SCREEN: (u32, u32) = (1920, 1080);
/// Longest log line in bytes; longer lines are read in parts.
const LOG_LINE_MAX_BYTES: u64 = 16 * 1024;

const VERSION_TIMEOUT: Duration = Duration::from_secs(10);

pub struct Browser {
    child: Child,
    failure: Arc<Mutex<Option<String>>>,
    log: tokio::task::JoinHandle<()>,
    /// Removed after the process has ended.
    _home: Scratch,
}

/// Both directions of the pipe that controls the browser.
pub type Pipe = (ChildStdin, ChildStdout);

impl Browser {
    /// Starts chromium. `seed` is that of its random numbers.
    pub async fn start(
        invocation: &Invocation,
        seed: Option<Seed>,
    ) -> Result<(Browser, Pipe), Finding> {
        let home = Scratch::new("chromium")?;
        if let Some(profile) = cookies::profile(invocation) {
            copy(&profile, &home.path(PROFILE), COPY_BOUNDS).map_err(|error| {
                Finding::failed(format!("failed to copy the profile of the persona: {error}"))
            })?;
        }
        let program = invocation.settings.text("CHROME_BINARY");
        find(&program)?;
        let mut agent = invocation.settings.text("CHROME_USER_AGENT");
        if agent.is_empty() {
            agent = own_agent(&program, &home).await;
        }
        let mut command = Command::new("/bin/sh");
        command.args(["-c", STEERED, "sh", &program]);
        command.args(arguments(invocation, &home.path(PROFILE), &agent, seed, true));
        environment(&mut command, invocation, &home)?;
        Browser::spawn(command, home, true)
    }

    /// Starts chromium with an empty profile in a namespace. Call this within a tokio runtime.
    pub fn start_in(
        namespace: &Namespace,
        invocation: &Invocation,
        seed: Option<Seed>,
        is_headless: bool,
    ) -> Result<(Browser, Pipe), Finding> {
        let home = Scratch::new("replay")?;
        let inside = namespace.directory().unwrap_or(home.dir());
        let program = invocation.settings.text("CHROME_BINARY");
        find(&program)?;
        let agent = invocation.settings.text("CHROME_USER_AGENT");
        let mut command = namespace.command(inside)?;
        command.arg(&program);
        let profile = inside.join(PROFILE);
        command.args(arguments(invocation, &profile, &agent, seed, is_headless));
        command.args(namespace.flags());
        Browser::spawn(command, home, false)
    }

    /// Starts chromium. `is_logged` says whether its log is copied to standard error.
    fn spawn(
        mut command: Command,
        home: Scratch,
        is_logged: bool,
    ) -> Result<(Browser, Pipe), Finding> {
        let program = command.as_std().get_program().to_owned();
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| {
            Finding::failed(format!("failed to start {}: {error}", program.display()))
        })?;
        let (Some(input), Some(output), Some(log)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(Finding::failed("failed to open the pipes of chromium"));
        };
        let failure = Arc::new(Mutex::new(None));
        let browser = Browser {
            child,
            log: tokio::spawn(read_log(log, failure.clone(), is_logged)),
            failure,
            _home: home,
        };
        Ok((browser, (input, output)))
    }

    /// Waits until the browser exits and returns the reason. A browser that works never exits by
    /// itself.
    pub async fn ended(&mut self) -> String {
        let status = self.child.wait().await;
        // Child processes of the browser may keep the log open.
        let _ = timeout(Duration::from_millis(500), &mut self.log).await;
        let failure = lock(&self.failure);
        match (&*failure, status) {
            (Some(reason), _) => reason.clone(),
            (None, Ok(status)) => exit_reason(status),
            (None, Err(error)) => format!("failed to wait for chromium: {error}"),
        }
    }

    /// Waits for the browser to exit after `Browser.close`, and kills it when the grace period
    /// ends.
    pub async fn end(mut self) {
        if timeout(EXIT_GRACE, self.child.wait()).await.is_err() {
            eprintln!("chromium did not exit within {} s, killing it", EXIT_GRACE.as_secs());
            let _ = self.child.kill().await;
        }
    }
}

fn exit_reason(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("chromium exited unexpectedly (exit {code})"),
        (None, Some(signal)) => {
            let known = nix::sys::signal::Signal::try_from(signal);
            let name = known.map_or_else(|_| signal.to_string(), |name| name.to_string());
            format!("chromium was killed ({name})")
        }
        (None, None) => "chromium exited unexpectedly".to_owned(),
    }
}

/// Looks the program up in PATH first: the shell would report a missing program as exit status 127.
fn find(program: &str) -> Result<(), Finding> {
    if is_installed(program) {
        Ok(())
    } else {
        Err(start_failure(program, &std::io::ErrorKind::NotFound.into(), "chromium"))
    }
}

/// The user agent that this chromium has with a window: without one, it names itself HeadlessChrome in
/// the requests for the scripts of service workers, which no override of a tab reaches. Empty if the
/// program does not say its version.
async fn own_agent(program: &str, home: &Scratch) -> String {
    let asked = Command::new(program)
        .arg("--product-version")
        .env("HOME", home.dir())
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .output();
    let answered = timeout(VERSION_TIMEOUT, asked).await;
    let version = answered.ok().and_then(Result::ok);
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let agent = version.as_deref().and_then(identity::with_window);
    agent.unwrap_or_default()
}

/// Arguments of chromium, which has its own user agent if `agent` is empty. A window of a desktop has
/// the size that chromium chooses for the screen.
fn arguments(
    invocation: &Invocation,
    profile: &Path,
    agent: &str,
    seed: Option<Seed>,
    is_headless: bool,
) -> Vec<OsString> {
    let settings = &invocation.settings;
    let mut user_data = OsString::from("--user-data-dir=");
    user_data.push(profile);
    let mut arguments = vec![user_data];
    if is_headless {
        let (width, height) = window(&settings.text("RESOLUTION"));
        arguments.push(format!("--window-size={width},{height}").into());
        let (across, down) = (SCREEN.0.max(width), SCREEN.1.max(height + BARS_HEIGHT));
        arguments.push(format!("--screen-info={{{across}x{down}}}").into());
        arguments.extend(HEADLESS.iter().map(OsString::from));
    }
    if !agent.is_empty() {
        arguments.push(format!("--user-agent={agent}").into());
    }
    if !settings.flag("CHECK_SSL_VALIDITY") {
        arguments.push("--ignore-certificate-errors".into());
    }
    let fixed = [
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
        "--deny-permission-prompts",
        // Each tab has a window of its own. The browser runs without one until its pipe is closed.
        "--no-startup-window",
        // Several snapshots have a tab each: throttle none of them as a background tab.
        "--disable-background-timer-throttling",
        "--disable-backgrounding-occluded-windows",
        "--disable-renderer-backgrounding",
    ];
    arguments.extend(fixed.iter().map(OsString::from));
    // The list of accounts of the profile; updates of components that are loaded on demand.
    arguments.push(format!("--gaia-url={NOWHERE}").into());
    arguments.push(format!("--component-updater=url-source={NOWHERE}").into());
    let extra = settings.list("CHROME_ARGS_EXTRA");
    let features = joined(DISABLE_FEATURES, &DISABLED_FEATURES, &extra);
    let flags = seed.map(|seed| joined(JS_FLAGS, &[&seed.flag()], &extra));
    arguments.extend(extra.into_iter().map(OsString::from));
    arguments.push(features.into());
    arguments.extend(flags.map(OsString::from));
    arguments
}

/// An option with a list of our own and the lists that `extra` has for it, because chromium reads the last
/// option of a name alone.
fn joined(option: &str, own: &[&str], extra: &[String]) -> String {
    let own = own.iter().copied();
    let others = extra.iter().filter_map(|word| word.strip_prefix(option));
    let all: Vec<_> = own.chain(others).collect();
    format!("{option}{}", all.join(","))
}

/// Redirects HOME and the temporary directory, where chromium puts caches, crash reports and
/// certificates.
fn environment(
    command: &mut Command,
    invocation: &Invocation,
    home: &Scratch,
) -> Result<(), Finding> {
    let own = home.path("home");
    fs::create_dir_all(&own).map_err(|error| {
        Finding::failed(format!("failed to create '{}': {error}", own.display()))
    })?;
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
    let local = authorities::local(Path::new(authorities::DIRECTORY));
    if !local.is_empty()
        && let Err(error) = authorities::add(&local, &own)
    {
        eprintln!("failed to add the authorities of the machine to chromium: {error}, ignoring");
    }
    if let Some(certificate) = certificates::client_certificate::of(invocation)? {
        client_certificate::add(&certificate, &own, &home.path(PROFILE)).map_err(|error| {
            Finding::failed(format!("failed to add the client certificate to chromium: {error}"))
        })?;
    }
    Ok(())
}

/// Copies chromium's log to standard error line by line if `is_logged`, and stores the first line that
/// explains a failure.
async fn read_log(pipe: ChildStderr, failure: Arc<Mutex<Option<String>>>, is_logged: bool) {
    let mut reader = BufReader::new(pipe);
    loop {
        let mut line = Vec::new();
        match (&mut reader).take(LOG_LINE_MAX_BYTES).read_until(b'\n', &mut line).await {
            Ok(1..) => {}
            _ => return,
        }
        let text = String::from_utf8_lossy(&line);
        if DROPPED_LOG_TEXTS.iter().any(|noise| text.contains(noise)) {
            continue;
        }
        if is_logged {
            eprintln!("{}", text.trim_end());
        }
        if let Some(reason) = failure_reason(&text) {
            let mut failure = lock(&failure);
            failure.get_or_insert(reason);
        }
    }
}

/// Reason for an administrator when a line of chromium's log reports a fatal problem.
fn failure_reason(line: &str) -> Option<String> {
    if line.contains("Running as root without --no-sandbox") {
        return Some(
            "chromium refuses to run as root with its sandbox on; run hooks as an ordinary user"
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
            "chromium's sandbox needs user namespaces, which are not available. Check RestrictNamespaces= of the unit and the \
              sysctls user.max_user_namespaces, kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns"
                .to_owned(),
        );
    }
    if let Some((_, reason)) = line.split_once(namespace::REFUSAL) {
        return Some(reason.trim().to_owned());
    }
    line.contains(":FATAL:").then(|| format!("chromium failed: {}", one_line(line, 300)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_lines_that_report_failures_get_a_reason() {
        assert_eq!(failure_reason("ERROR:gpu.cc:1 nothing to see"), None);
        let sandbox =
            failure_reason("FATAL:zygote_host_impl_linux.cc(128)] No usable sandbox!").unwrap();
        assert!(sandbox.contains("user namespaces"), "{sandbox}");
        let fatal = failure_reason("[1:2:FATAL:x.cc(1)] no memory\n").unwrap();
        assert_eq!(fatal, "chromium failed: [1:2:FATAL:x.cc(1)] no memory");
        assert!(
            failure_reason("Running as root without --no-sandbox is not")
                .unwrap()
                .contains("ordinary user")
        );
    }

    #[test]
    fn exit_reason_names_signal_or_status() {
        let words = |raw| exit_reason(ExitStatus::from_raw(raw));
        assert_eq!(words(9), "chromium was killed (SIGKILL)");
        assert_eq!(words(21 << 8), "chromium exited unexpectedly (exit 21)");
    }

    #[test]
    fn disabled_features_are_in_one_option() {
        let option = |words: &[&str]| {
            let words: Vec<_> = words.iter().map(|word| word.to_string()).collect();
            joined(DISABLE_FEATURES, &DISABLED_FEATURES, &words)
        };
        let own = DISABLED_FEATURES.join(",");
        assert_eq!(option(&["--foo"]), format!("--disable-features={own}"));
        assert_eq!(
            option(&["--disable-features=A,B", "--foo", "--disable-features=C"]),
            format!("--disable-features={own},A,B,C")
        );
    }
}
