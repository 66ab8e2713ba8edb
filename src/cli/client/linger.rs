//! Logout of a user: the service manager of a user ends with the last session unless the user
//! lingers (loginctl(1)), and all work of `--user` with it.

use archivist_config::Scope;
use nix::unistd::{Uid, User};

/// Directory with a file for each user who lingers.
const LINGER: &str = "/var/lib/systemd/linger";
/// Directory with a file for each user whom systemd-logind knows.
const USERS: &str = "/run/systemd/users";

const ENABLE: &str = "loginctl enable-linger";
/// The daemon of polkit, in Debian 12 and later, and before.
const POLKIT: [&str; 2] = ["/usr/lib/polkit-1/polkitd", "/usr/libexec/polkitd"];

/// Returns what a logout does to the work of `--user`, and the command against it. `None` if the user
/// lingers or systemd-logind does not know the user, and for the machine's orchestrator.
pub fn logout_hint(scope: &Scope) -> Option<(&'static str, String)> {
    let user = User::from_uid(Uid::effective()).ok().flatten()?;
    hint_for(&user.name, user.uid, scope)
}

fn hint_for(user: &str, uid: Uid, scope: &Scope) -> Option<(&'static str, String)> {
    let has_session = scope.rooted(USERS).join(uid.to_string()).exists();
    let lingers = scope.rooted(LINGER).join(user).exists();
    let is_ending = scope.user && has_session && !lingers;
    let what = "at logout, all work stops until the next login";
    is_ending.then(|| (what, command(user, scope)))
}

/// Returns the command that keeps the service manager of the caller running, and starts it.
pub fn enable_linger(scope: &Scope) -> String {
    let user = User::from_uid(Uid::effective()).ok().flatten();
    command(user.as_ref().map_or("NAME", |user| &user.name), scope)
}

fn command(user: &str, scope: &Scope) -> String {
    // Without polkit, systemd-logind lets root alone change that.
    let has_polkit = POLKIT.iter().any(|daemon| scope.rooted(daemon).exists());
    if has_polkit { ENABLE.to_owned() } else { format!("sudo {ENABLE} {user}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_users_who_do_not_linger_get_the_hint() {
        let root = tempfile::tempdir().unwrap();
        let system = Scope::system(root.path());
        let user = Scope { user: true, ..Scope::system(root.path()) };
        let hint = |name: &str, uid| hint_for(name, Uid::from_raw(uid), &user);
        assert_eq!(hint("ann", 1000), None, "without systemd-logind");
        for directory in [LINGER, USERS] {
            std::fs::create_dir_all(user.rooted(directory)).unwrap();
        }
        for uid in ["1000", "1001"] {
            std::fs::write(user.rooted(USERS).join(uid), "").unwrap();
        }
        assert_eq!(hint("ann", 1000).unwrap().1, "sudo loginctl enable-linger ann");
        let polkit = user.rooted(POLKIT[0]);
        std::fs::create_dir_all(polkit.parent().unwrap()).unwrap();
        std::fs::write(polkit, "").unwrap();
        assert_eq!(hint("ann", 1000).unwrap().1, "loginctl enable-linger");
        assert_eq!(hint_for("ann", Uid::from_raw(1000), &system), None);
        std::fs::write(user.rooted(LINGER).join("ann"), "").unwrap();
        assert_eq!(hint("ann", 1000), None);
        assert!(hint("bob", 1001).is_some());
    }
}
