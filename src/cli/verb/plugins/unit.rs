//! A transient unit with the sandbox of hooks, for programs that root requests, and the output of
//! these programs.
//!
//! Its name starts with `archivist-hook-`, so the drop-ins of hooks apply (units/README.md). The
//! terminal stays with this process: the unit writes into a pipe, and the lines are printed without
//! control characters.

use crate::client::exit::{Exit, Failure};
use crate::client::transfer::run_words;
use archivist_config::Scope;
use archivist_core::text::clean;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use tokio::signal::unix::{SignalKind, signal};

/// Variables of the caller that say where pip and npm download from and which certificates they
/// trust. The unit gets no other variables.
const PASSED: [&str; 33] = [
    "PIP_INDEX_URL",
    "PIP_EXTRA_INDEX_URL",
    "PIP_FIND_LINKS",
    "PIP_NO_INDEX",
    "PIP_TRUSTED_HOST",
    "PIP_CERT",
    "PIP_PROXY",
    "PIP_TIMEOUT",
    "PIP_DEFAULT_TIMEOUT",
    "PIP_RETRIES",
    "PIP_CONSTRAINT",
    "PIP_CONFIG_FILE",
    "npm_config_registry",
    "NPM_CONFIG_REGISTRY",
    "npm_config_cafile",
    "npm_config_strict_ssl",
    "npm_config_proxy",
    "npm_config_https_proxy",
    "npm_config_noproxy",
    "npm_config_globalconfig",
    "NODE_EXTRA_CA_CERTS",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
];

/// Environment of the programs at their start.
const ENVIRONMENT: [&str; 4] = [
    "HOME=/tmp",
    "TMPDIR=/tmp",
    "LANG=C.UTF-8",
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
];

/// What name resolution needs of /run; a missing path is skipped.
const RESOLVERS: &str = "-/run/systemd/resolve -/run/resolvconf -/run/NetworkManager/resolv.conf";
/// Time limit of the unit (systemd.time(7)).
const LIMIT: &str = "1h";
/// Longest line that is printed at once, in bytes.
const LINE_MAX: usize = 4096;

pub(super) struct Sandbox<'a> {
    /// Last part of the unit's name.
    pub name: &'a str,
    /// Its `/tmp`.
    pub tmp: PathBuf,
    /// The library, if the unit may write to it.
    pub library: Option<&'a Path>,
    pub argv: Vec<&'a str>,
}

/// Runs a command in its unit and shows what it prints. SIGINT, SIGTERM and SIGHUP stop the unit.
///
/// # Errors
/// If systemd does not start it, or if it fails.
pub(super) async fn run(sandbox: &Sandbox<'_>, scope: &Scope) -> Result<Exit, Failure> {
    let to_failure =
        |error: std::io::Error| Failure::failed(format!("failed to run systemd-run: {error}"));
    let unit = unit_name(sandbox.name, scope);
    let (output, theirs) = std::io::pipe().map_err(to_failure)?;
    let mut command = Command::new("systemd-run");
    command
        .args(arguments(sandbox, scope, &unit))
        // Ctrl-C is for this process: without its client, the unit would continue.
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(theirs.try_clone().map_err(to_failure)?)
        .stderr(theirs);
    let mut signals = Vec::new();
    for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
        signals.push(signal(kind).map_err(to_failure)?);
    }
    let child = command.spawn().map_err(to_failure)?;
    // The command holds copies of the write end of the pipe.
    drop(command);
    let ended = tokio::task::spawn_blocking(move || wait(child, output));
    let [interrupt, terminate, hangup] = &mut signals[..] else { unreachable!("three signals") };
    let mut ended = std::pin::pin!(ended);
    let status = tokio::select! {
        status = &mut ended => Some(status),
        _ = interrupt.recv() => None,
        _ = terminate.recv() => None,
        _ = hangup.recv() => None,
    };
    if let Some(status) = status {
        return judge(status.map_err(std::io::Error::other).flatten(), &unit);
    }
    eprintln!("interrupted: stopping {unit}");
    let mut stop = Command::new("systemctl");
    stop.args(scope.user.then_some("--user")).args(["stop", &unit]);
    let _ = tokio::task::spawn_blocking(move || stop.stdin(Stdio::null()).status()).await;
    let _ = ended.await;
    Ok(Exit::Interrupted)
}

fn judge(status: std::io::Result<ExitStatus>, unit: &str) -> Result<Exit, Failure> {
    match status {
        Ok(status) if status.success() => Ok(Exit::Done),
        Ok(_) => Err(Failure::failed(format!("{unit} failed, see its output above"))),
        Err(error) => Err(Failure::failed(format!("failed to wait for {unit}: {error}"))),
    }
}

/// Returns the name of the unit; the drop-ins of hooks apply to further instances too.
fn unit_name(name: &str, scope: &Scope) -> String {
    match &scope.instance {
        Some(instance) => format!("archivist-hook-setup-{name}_{instance}.service"),
        None => format!("archivist-hook-setup-{name}.service"),
    }
}

/// Returns the arguments of systemd-run(1).
fn arguments(sandbox: &Sandbox<'_>, scope: &Scope, unit: &str) -> Vec<OsString> {
    let property = |name: &str, value: String| format!("--property={name}={value}");
    let bind = |path: &Path| path.display().to_string();
    let mut words = run_words(scope);
    words.push(format!("--unit={unit}"));
    words.push(format!("--slice={}.slice", scope.unit_prefix()));
    words.push("--description=archivist: fetch and build plugins".to_owned());
    words.extend(scope.hook_user(0).map(|user| property("User", user)));
    words.push(property("Type", "exec".to_owned()));
    words.push(property("RuntimeMaxSec", LIMIT.to_owned()));
    // The drop-ins hide only the first instance and the homes.
    words.push(property("TemporaryFileSystem", format!("{}:ro", bind(&scope.data_dir()))));
    if !scope.user {
        words.push(property("TemporaryFileSystem", "/var/lib:ro".to_owned()));
        words.push(property("BindReadOnlyPaths", RESOLVERS.to_owned()));
    }
    words.push(property("BindPaths", format!("{}:/tmp", bind(&sandbox.tmp))));
    words.extend(sandbox.library.map(|path| property("BindPaths", bind(path))));
    words.push("--working-directory=/tmp".to_owned());
    words.push("/usr/bin/env".to_owned());
    words.push("-i".to_owned());
    words.extend(ENVIRONMENT.map(str::to_owned));
    words.extend(sandbox.argv.iter().map(|word| (*word).to_owned()));
    words.into_iter().map(OsString::from).collect()
}

/// Returns the inherited variables, one per line. They may contain passwords, so they are not
/// properties of the unit, which every user can read.
fn passed(variable: impl Fn(&str) -> Option<OsString>) -> Vec<u8> {
    let mut text = Vec::new();
    for name in PASSED {
        let value = variable(name).and_then(|value| value.into_string().ok());
        if let Some(value) = value.filter(|value| !value.contains(['\n', '\r'])) {
            text.extend(format!("{name}={value}\n").bytes());
        }
    }
    text
}

fn wait(mut child: Child, output: impl Read) -> std::io::Result<ExitStatus> {
    if let Some(mut stdin) = child.stdin.take() {
        // The unit may have ended; its exit status is read anyway.
        let _ = stdin.write_all(&passed(|name| std::env::var_os(name)));
    }
    // Not locked: this process prints messages in the meantime.
    show(output, &mut std::io::stderr())?;
    child.wait()
}

/// Copies lines without control characters until the last writer closes the pipe.
fn show(mut from: impl Read, to: &mut impl Write) -> std::io::Result<()> {
    let mut bytes = [0; LINE_MAX];
    let mut used = 0;
    loop {
        let count = from.read(&mut bytes[used..])?;
        used += count;
        let ended = count == 0;
        let mut rest = &bytes[..used];
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            print(&rest[..end], to)?;
            rest = &rest[end + 1..];
        }
        if !rest.is_empty() && (ended || rest.len() == LINE_MAX) {
            print(rest, to)?;
            rest = &[];
        }
        let left = rest.len();
        bytes.copy_within(used - left..used, 0);
        used = left;
        if ended {
            return Ok(());
        }
    }
}

fn print(line: &[u8], to: &mut impl Write) -> std::io::Result<()> {
    writeln!(to, "{}", clean(&String::from_utf8_lossy(line)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_unit_has_the_sandbox_of_hooks() {
        let scope = Scope::system("/");
        let unit = unit_name("abx", &scope);
        assert_eq!(unit, "archivist-hook-setup-abx.service");
        let names = archivist_core::unit::Names::new("archivist");
        assert_eq!(names.kind_of(&unit), None, "no hook of a crawl");
        let library = scope.data_dir().join("lib");
        let mut sandbox = Sandbox {
            name: "abx",
            tmp: "/var/lib/archivist/.setup/x".into(),
            library: Some(&library),
            argv: vec!["/bin/x", "$HOME"],
        };
        let words = |sandbox: &Sandbox<'_>, scope: &Scope| {
            let words = arguments(sandbox, scope, &unit)
                .into_iter()
                .map(|word| word.into_string().unwrap());
            words.collect::<Vec<_>>()
        };
        let text = words(&sandbox, &scope).join(" ");
        for part in [
            "--property=User=archivist-hook ",
            "--property=TemporaryFileSystem=/var/lib:ro",
            "--property=BindReadOnlyPaths=-/run/systemd/resolve ",
            "--property=BindPaths=/var/lib/archivist/.setup/x:/tmp",
            "--property=BindPaths=/var/lib/archivist/lib ",
            "/usr/bin/env -i HOME=/tmp ",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        sandbox.library = None;
        assert!(!words(&sandbox, &scope).join(" ").contains("/lib "));
        let user = Scope { user: true, ..Scope::system("/") };
        let text = words(&sandbox, &user).join(" ");
        assert!(text.starts_with("--user ") && !text.contains("User="));
    }

    #[test]
    fn only_listed_variables_are_passed_and_none_with_two_lines() {
        let value = |name: &str| match name {
            "PIP_INDEX_URL" => Some(OsString::from("https://user:p w@host/simple")),
            "NO_PROXY" => Some(OsString::from("a\nLD_PRELOAD=/x")),
            "PIP_CERT" | "npm_config_registry" => None,
            _ => Some(OsString::from("x")),
        };
        let text = String::from_utf8(passed(value)).unwrap();
        assert!(text.starts_with("PIP_INDEX_URL=https://user:p w@host/simple\nPIP_EXTRA"));
        assert!(!text.contains("LD_PRELOAD") && !text.contains("AWS"));
        assert!(text.lines().all(|line| line.contains('=')));
    }

    proptest! {
        #[test]
        fn control_characters_are_not_printed(bytes in proptest::collection::vec(any::<u8>(), 0..9000), text in "(\\PC|\x1b|\u{9b}|\u{202e}|\r|\n){0,40}") {
            for input in [bytes, text.into_bytes()] {
                let mut shown = Vec::new();
                show(&input[..], &mut shown).unwrap();
                let shown = String::from_utf8(shown).unwrap();
                let obeyed = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
                prop_assert!(!shown.contains(obeyed));
            }
        }

        #[test]
        fn lines_are_complete_and_in_order(lines in proptest::collection::vec("[a-z]{0,300}", 0..40)) {
            let mut shown = Vec::new();
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            show(text.as_bytes(), &mut shown).unwrap();
            prop_assert_eq!(String::from_utf8(shown).unwrap(), text);
        }
    }
}
