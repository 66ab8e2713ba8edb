//! The namespace without a network in which a page is replayed: of a unit or of a user.

use crate::client::exit::Failure;
use crate::client::transfer::run_words;
use archivist_config::Scope;
use archivist_hooks::replay::{Home, Namespace};
use nix::unistd::{User, geteuid};
use std::path::{Path, PathBuf};

/// Directory for the browser's files in a unit of the machine, whose /tmp is private.
const DIRECTORY: &str = "/tmp/replay";
/// Variables by which a browser finds the display and the language of its user.
const OF_THE_DISPLAY: [&str; 6] =
    ["DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR", "LANG", "HOME"];

/// Finds a namespace that works on this machine: for root a unit with a user of its own, for others a
/// unit of their service manager or a user namespace, which hides their home directory. `browser` is the
/// program of the settings.
///
/// # Errors
/// Why there is none.
pub fn find(browser: &str) -> Result<Namespace, Failure> {
    let home = home(browser);
    let mut reasons = Vec::new();
    for kind in kinds(geteuid().is_root()) {
        // Each unit has a name of its own: systemd may still know the one that was tried.
        match kind.namespace("test", &home).check() {
            Ok(()) => return Ok(kind.namespace("page", &home)),
            Err(reason) => reasons.push(format!("{}: {reason}", kind.name())),
        }
    }
    Err(Failure::failed(format!(
        "no namespace would keep the page from the network:\n{}\n\
         to trust the options of chromium instead, add --no-namespace",
        reasons.join("\n")
    )))
}

/// The home directory of the caller, and what of it the browser needs: its own files, the key of the display
/// and temporary files.
fn home(browser: &str) -> Home {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let account = User::from_uid(geteuid()).ok().flatten();
    let directory = variable("HOME").or_else(|| account.map(|account| account.dir));
    let directory = directory.and_then(|home| home.canonicalize().ok());
    // The root directory is the home directory of users that have none.
    let Some(directory) = directory.filter(|home| home.parent().is_some()) else {
        return Home::default();
    };
    let mut kept = Vec::new();
    for program in program(browser) {
        kept.extend(program.parent().map(Path::to_owned));
        kept.extend(program.canonicalize().ok().and_then(|own| Some(own.parent()?.to_owned())));
    }
    kept.push(variable("XAUTHORITY").unwrap_or_else(|| directory.join(".Xauthority")));
    let is_below =
        |path: &PathBuf| path.starts_with(&directory) && *path != directory && path.exists();
    kept.retain(is_below);
    let temporary = std::env::temp_dir();
    Home {
        kept,
        kept_writable: Some(temporary).filter(is_below).into_iter().collect(),
        directory: Some(directory),
    }
}

/// The path of a program, or those where PATH has one of this name.
fn program(name: &str) -> Vec<PathBuf> {
    if name.contains('/') {
        return vec![PathBuf::from(name)];
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = std::env::split_paths(&path).map(|directory| directory.join(name));
    all.filter(|program| program.is_file()).take(1).collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    SystemUnit,
    UserUnit,
    UserNamespace,
}

fn kinds(is_root: bool) -> &'static [Kind] {
    if is_root { &[Kind::SystemUnit] } else { &[Kind::UserUnit, Kind::UserNamespace] }
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::SystemUnit => "a unit",
            Kind::UserUnit => "a unit of the user's service manager",
            Kind::UserNamespace => "a user namespace",
        }
    }

    fn namespace(self, purpose: &str, home: &Home) -> Namespace {
        match self {
            Kind::SystemUnit => Namespace::of(
                words(&Scope::system("/"), purpose, &[], &Home::default()),
                Some(Path::new(DIRECTORY).to_owned()),
            ),
            Kind::UserUnit => {
                let user = Scope { user: true, ..Scope::system("/") };
                let variables = OF_THE_DISPLAY.iter().filter_map(|name| {
                    let value = std::env::var(name).ok()?;
                    Some(format!("{name}={value}"))
                });
                let variables: Vec<String> = variables.collect();
                Namespace::of(words(&user, purpose, &variables, home), None)
                    .hiding(home.directory.clone())
            }
            Kind::UserNamespace => Namespace::of_user_namespace(home),
        }
    }
}

/// Returns the start of a command line of systemd-run(1). The drop-ins of replays apply to the name
/// of the unit, and make the sandbox; the namespace does not depend on them.
fn words(scope: &Scope, purpose: &str, variables: &[String], home: &Home) -> Vec<String> {
    let mut words = vec!["systemd-run".to_owned()];
    words.extend(run_words(scope));
    let id = std::process::id();
    words.push(format!("--unit=archivist-replay-{purpose}-{id}.service"));
    words.push("--description=archivist: browser without a network".to_owned());
    words.push("--property=Type=exec".to_owned());
    words.push("--property=PrivateNetwork=yes".to_owned());
    if scope.user {
        words.push("--property=PrivateUsers=yes".to_owned());
    }
    if let Some(directory) = &home.directory {
        let mut mount = |property: &str, path: &Path, options: &str| {
            let path = quoted(path);
            words.push(format!("--property={property}={path}{options}"));
        };
        mount("TemporaryFileSystem", directory, ":mode=0755");
        home.kept.iter().for_each(|path| mount("BindReadOnlyPaths", path, ""));
        home.kept_writable.iter().for_each(|path| mount("BindPaths", path, ""));
    }
    let variables = variables.iter();
    words.extend(variables.map(|variable| format!("--setenv={variable}")));
    words.push("--".to_owned());
    words
}

/// A path as systemd-run(1) reads it in a list of paths.
fn quoted(path: &Path) -> String {
    let mut text = String::new();
    for c in path.to_string_lossy().chars() {
        if c.is_whitespace() || ['"', '\'', '\\', ':'].contains(&c) {
            text.push('\\');
        }
        text.push(c);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_have_no_network_whatever_their_drop_ins_say() {
        let system = words(&Scope::system("/"), "page", &[], &Home::default()).join(" ");
        assert!(system.starts_with("systemd-run --quiet --pipe --wait "), "{system}");
        let unit = format!("--unit=archivist-replay-page-{}.service", std::process::id());
        assert!(system.contains(&unit), "{system}");
        assert!(system.contains(" --property=PrivateNetwork=yes "), "{system}");
        assert!(system.ends_with(" --"), "{system}");
        let user = Scope { user: true, ..Scope::system("/") };
        let home = Home {
            directory: Some("/home/a b".into()),
            kept: vec!["/home/a b/.Xauthority".into()],
            kept_writable: vec!["/home/a b/tmp".into()],
        };
        let user = words(&user, "page", &["DISPLAY=:0".to_owned()], &home).join(" ");
        for property in [
            r"TemporaryFileSystem=/home/a\ b:mode=0755",
            r"BindReadOnlyPaths=/home/a\ b/.Xauthority",
            r"BindPaths=/home/a\ b/tmp",
        ] {
            assert!(user.contains(&format!(" --property={property} ")), "{user}");
        }
        assert!(user.starts_with("systemd-run --user "), "{user}");
        assert!(user.contains(" --property=PrivateNetwork=yes "), "{user}");
        assert!(user.ends_with(" --setenv=DISPLAY=:0 --"), "{user}");
    }

    #[test]
    fn root_gets_a_unit_with_another_user_only() {
        assert_eq!(kinds(true), [Kind::SystemUnit]);
        assert_eq!(kinds(false), [Kind::UserUnit, Kind::UserNamespace]);
    }
}
