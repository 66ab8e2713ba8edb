//! The wall between a replayed page and the network: a network namespace, of a unit or of a user.

use crate::client::exit::Failure;
use crate::client::transfer::run_words;
use archivist_config::Scope;
use archivist_hooks::replay::Wall;
use nix::unistd::geteuid;
use std::path::Path;

/// Directory for the browser's files in a unit of the machine, whose /tmp is private.
const DIRECTORY: &str = "/tmp/replay";
/// Variables by which a browser finds the display and the language of its user.
const OF_THE_DISPLAY: [&str; 6] = [
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_RUNTIME_DIR",
    "LANG",
    "HOME",
];

/// Finds a wall that stands on this machine: for root a unit with a user of its own, for others a
/// unit of their service manager or a user namespace.
///
/// # Errors
/// Why there is none.
pub fn find() -> Result<Wall, Failure> {
    let mut reasons = Vec::new();
    for kind in kinds(geteuid().is_root()) {
        // Each unit has a name of its own: systemd may still know the one that was tried.
        match kind.wall("test").stands() {
            Ok(()) => return Ok(kind.wall("page")),
            Err(reason) => reasons.push(format!("{}: {reason}", kind.name())),
        }
    }
    Err(Failure::failed(format!(
        "no wall would keep the page from the network:\n{}\n\
         to trust the options of chromium instead, add --no-wall",
        reasons.join("\n")
    )))
}

/// A way to get a network namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    SystemUnit,
    UserUnit,
    UserNamespace,
}

fn kinds(is_root: bool) -> &'static [Kind] {
    if is_root {
        &[Kind::SystemUnit]
    } else {
        &[Kind::UserUnit, Kind::UserNamespace]
    }
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::SystemUnit => "a unit",
            Kind::UserUnit => "a unit of the user's service manager",
            Kind::UserNamespace => "a user namespace",
        }
    }

    fn wall(self, purpose: &str) -> Wall {
        match self {
            Kind::SystemUnit => Wall::of(
                words(&Scope::system("/"), purpose, &[]),
                Some(Path::new(DIRECTORY).to_owned()),
            ),
            Kind::UserUnit => {
                let user = Scope {
                    user: true,
                    ..Scope::system("/")
                };
                let variables = OF_THE_DISPLAY.iter().filter_map(|name| {
                    let value = std::env::var(name).ok()?;
                    Some(format!("{name}={value}"))
                });
                Wall::of(words(&user, purpose, &variables.collect::<Vec<_>>()), None)
            }
            Kind::UserNamespace => Wall::of_user_namespace(),
        }
    }
}

/// Returns the start of a command line of systemd-run(1). The drop-ins of replays apply to the name
/// of the unit, and make the sandbox; the wall does not depend on them.
fn words(scope: &Scope, purpose: &str, variables: &[String]) -> Vec<String> {
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
    let variables = variables.iter();
    words.extend(variables.map(|variable| format!("--setenv={variable}")));
    words.push("--".to_owned());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_have_no_network_whatever_their_drop_ins_say() {
        let system = words(&Scope::system("/"), "page", &[]).join(" ");
        assert!(
            system.starts_with("systemd-run --quiet --pipe --wait "),
            "{system}"
        );
        let unit = format!(
            "--unit=archivist-replay-page-{}.service",
            std::process::id()
        );
        assert!(system.contains(&unit), "{system}");
        assert!(
            system.contains(" --property=PrivateNetwork=yes "),
            "{system}"
        );
        assert!(system.ends_with(" --"), "{system}");
        let user = Scope {
            user: true,
            ..Scope::system("/")
        };
        let user = words(&user, "page", &["DISPLAY=:0".to_owned()]).join(" ");
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
