//! One run of Debian's chromium for one output: a picture, a PDF, or the page's HTML.
//!
//! It runs headless in the new mode, always inside its own sandbox, with a profile in a temporary
//! directory that goes away with the run.

use super::html::one_line;
use super::invocation::Invocation;
use super::output::Limits;
use super::page;
use super::program::{Ended, Ending, Runner};
use super::record::Finding;
use super::scratch::Scratch;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// What chromium says, and then waits for ever if the URL was a download.
const LOAD_FAILED: &str = "Page load failed: ";
const LOAD_TIMED_OUT: &str = "Page load timed out";
/// Hooks have no bus, by design; chromium complains about that some twenty times a run.
const NOISE: [&str; 2] = ["ERROR:dbus/bus.cc", "ERROR:dbus/object_proxy.cc"];
/// The document before the page has arrived.
const BLANK: &str = "<html><head></head><body></body></html>";
/// HTML that is read to see whether a page arrived, and kept by the plugin `dom`.
pub const MOST_HTML: u64 = 256 << 20;

/// A page that chromium has shown.
pub struct Rendered {
    /// The page's HTML after its scripts ran.
    pub html: Vec<u8>,
    /// Set if the page never finished loading: the output shows it as far as it had come.
    pub note: Option<String>,
}

/// Runs chromium on the hook's URL with arguments for the output that is wanted, and `window` as
/// its size. Fails unless the page has arrived.
pub fn render(
    it: &Invocation,
    wanted: &[String],
    window: &str,
    most: u64,
) -> Result<Rendered, Finding> {
    it.web_url()?;
    let mut runner = Runner::new(it.budget())?;
    if let Some(reason) = page::unviewable(it, &mut runner) {
        return Err(Finding::noresults(reason));
    }
    let scratch = Scratch::new("chromium")?;
    let patience = patience(runner.left());
    let mut command = command(it, &scratch, window, patience)?;
    command.args(wanted).arg(it.web_url()?.as_str());
    let limits = Limits {
        output: usize::try_from(most).unwrap_or(usize::MAX),
        hopeless: Some(LOAD_FAILED),
        noise: &NOISE,
    };
    let ended = runner.run(&mut command, "chromium", limits)?;
    judge(ended, &runner, patience)
}

/// How long a page may take to load: three fifths of the time, at most half a minute. The rest
/// is for its scripts and the output.
fn patience(left: Duration) -> Duration {
    (left * 3 / 5).min(Duration::from_secs(30))
}

fn command(
    it: &Invocation,
    scratch: &Scratch,
    window: &str,
    patience: Duration,
) -> Result<Command, Finding> {
    let settings = &it.settings;
    let mut command = Command::new(settings.text("CHROME_BINARY"));
    // Caches, crash reports and certificates go where HOME and these point.
    let home = scratch.path("home");
    fs::create_dir_all(&home)
        .map_err(|error| Finding::failed(format!("failed to make {}: {error}", home.display())))?;
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
    command.env("HOME", &home).env("TMPDIR", scratch.dir());
    let mut profile = std::ffi::OsString::from("--user-data-dir=");
    profile.push(scratch.path("profile"));
    command.arg("--headless=new").arg(profile);
    command.args([
        "--no-first-run",
        "--no-default-browser-check",
        "--disable-background-networking",
    ]);
    command.args([
        "--disable-component-update",
        "--disable-sync",
        "--disable-default-apps",
        "--disable-breakpad",
    ]);
    command.args([
        "--disable-domain-reliability",
        "--metrics-recording-only",
        "--password-store=basic",
    ]);
    command.args([
        "--mute-audio",
        "--deny-permission-prompts",
        "--hide-scrollbars",
    ]);
    command.arg(format!("--window-size={window}"));
    command.arg(format!("--timeout={}", patience.as_millis()));
    let settle = settings.number("CHROME_SETTLE_MS");
    if settle > 0 {
        command.arg(format!("--virtual-time-budget={settle}"));
    }
    let agent = settings.text("CHROME_USER_AGENT");
    if !agent.is_empty() {
        command.arg(format!("--user-agent={agent}"));
    }
    if !settings.flag("CHECK_SSL_VALIDITY") {
        command.arg("--ignore-certificate-errors");
    }
    command.args(settings.list("CHROME_ARGS_EXTRA"));
    command.args(settings.list(&format!("{}_ARGS_EXTRA", it.prefix())));
    // The HTML shows whether a page has arrived, whatever else is made of it.
    command.arg("--dump-dom");
    Ok(command)
}

fn judge(ended: Ended, runner: &Runner, patience: Duration) -> Result<Rendered, Finding> {
    let Ended {
        ending,
        output,
        log,
    } = ended;
    if let Some(finding) = known_trouble(&log) {
        return Err(finding);
    }
    if ending != Ending::Exited(0) {
        let reason = ending.reason("chromium", runner.budget);
        let fatal = log
            .lines()
            .find(|line| line.contains(":FATAL:"))
            .map(|line| one_line(line, 300));
        return Err(Finding::failed(
            fatal.map_or(reason.clone(), |fatal| format!("{reason}: {fatal}")),
        ));
    }
    let late = log.contains(LOAD_TIMED_OUT);
    if late && output.trim_ascii() == BLANK.as_bytes() {
        return Err(Finding::failed(format!(
            "the page did not answer within {} s",
            patience.as_secs()
        )));
    }
    let note = late.then(|| format!("still loading after {} s", patience.as_secs()));
    Ok(Rendered { html: output, note })
}

/// What chromium's log says in words that an administrator can act on.
fn known_trouble(log: &str) -> Option<Finding> {
    if let Some((_, rest)) = log.split_once(LOAD_FAILED) {
        let error = one_line(rest.lines().next().unwrap_or_default(), 100);
        return Some(match error.as_str() {
            "net::ERR_ABORTED" => Finding::noresults("not a page: the server offers a download"),
            _ => Finding::failed(format!("chromium could not load the page: {error}")),
        });
    }
    if log.contains("Running as root without --no-sandbox") {
        return Some(Finding::failed(
            "chromium does not run as root with its sandbox on; run hooks as an ordinary user",
        ));
    }
    let sandbox = [
        "No usable sandbox",
        "Failed to move to new namespace",
        "setuid sandbox is not running as root",
    ];
    sandbox.iter().any(|text| log.contains(text)).then(|| {
        Finding::failed(
            "chromium has no sandbox here: user namespaces are missing. Look at RestrictNamespaces= of the unit and the \
             sysctls user.max_user_namespaces, kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns",
        )
    })
}

/// The window size `WIDTH,HEIGHT`, made sane.
pub fn window(text: &str) -> String {
    let side = |part: Option<&str>, default: u32| {
        part.and_then(|text| text.trim().parse().ok())
            .unwrap_or(default)
            .clamp(100, 16_384)
    };
    let mut parts = text.split([',', 'x']);
    let (width, height) = (side(parts.next(), 1440), side(parts.next(), 2000));
    format!("{width},{height}")
}

/// Puts the output in its place if it is what it should be; otherwise it is removed.
pub fn keep(part: &str, name: &str, is_whole: fn(&[u8]) -> bool) -> Result<(), Finding> {
    let checked = fs::read(part).map_err(|error| format!("chromium made no {name}: {error}"));
    let checked = checked.and_then(|bytes| match is_whole(&bytes) {
        true => fs::rename(part, name).map_err(|error| format!("failed to write {name}: {error}")),
        false => Err(format!(
            "chromium made a broken {name} ({} bytes)",
            bytes.len()
        )),
    });
    checked.map_err(|reason| {
        discard(part);
        Finding::failed(reason)
    })
}

/// Removes a partial output.
pub fn discard(part: &str) {
    if Path::new(part).exists() {
        let _ = fs::remove_file(part);
    }
}

/// `--OPTION=FILE` with the file in the working directory, which chromium may have left by then.
pub fn file_option(option: &str, part: &str) -> Result<String, Finding> {
    let here = std::env::current_dir()
        .map_err(|error| Finding::failed(format!("no working directory: {error}")))?;
    Ok(format!("--{option}={}", here.join(part).display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn window_sizes_are_made_sane() {
        assert_eq!(window("1440,2000"), "1440,2000");
        assert_eq!(window(" 800x600 "), "800,600");
        assert_eq!(window("0,99999999"), "100,16384");
        assert_eq!(window("$(reboot)"), "1440,2000");
    }

    #[test]
    fn troubles_are_told_in_words() {
        let text =
            |log| known_trouble(log).map(|finding| (finding.exit_code(), finding.output_str));
        assert_eq!(text("ERROR:gpu.cc:1 nothing to see"), None);
        let (code, words) =
            text("x:ERROR:h.cc:403] Page load failed: net::ERR_NAME_NOT_RESOLVED\nmore").unwrap();
        assert_eq!(
            (code, words.as_str()),
            (
                1,
                "chromium could not load the page: net::ERR_NAME_NOT_RESOLVED"
            )
        );
        assert_eq!(text("] Page load failed: net::ERR_ABORTED").unwrap().0, 0);
        assert!(
            text("FATAL:zygote_host_impl_linux.cc(128)] No usable sandbox!")
                .unwrap()
                .1
                .contains("user namespaces")
        );
    }
}
