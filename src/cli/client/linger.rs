//! Logout of a user: the service manager of a user ends with the last session unless the user
//! lingers (loginctl(1)), and all work of `--user` with it.

use archivist_shared::config::Scope;
use nix::unistd::{Uid, User};

/// Directory with a file for each user who lingers.
const LINGER: &str = "/var/lib/systemd/linger";

/// Returns what a logout does to the work of `--user`, and the command against it. `None` if the user
/// lingers, and for the machine's orchestrator.
pub fn logout_hint(scope: &Scope) -> Option<(&'static str, &'static str)> {
    let user = User::from_uid(Uid::effective()).ok().flatten()?;
    hint_for(&user.name, scope)
}

fn hint_for(user: &str, scope: &Scope) -> Option<(&'static str, &'static str)> {
    let lingers = scope.rooted(LINGER).join(user).exists();
    (scope.user && !lingers).then_some((
        "at logout, all work stops until a command is run after the next login",
        "loginctl enable-linger",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_users_who_do_not_linger_get_the_hint() {
        let root = tempfile::tempdir().unwrap();
        let system = Scope::system(root.path());
        assert_eq!(hint_for("ann", &system), None);
        let user = Scope {
            user: true,
            ..Scope::system(root.path())
        };
        assert_eq!(hint_for("ann", &user).unwrap().1, "loginctl enable-linger");
        let directory = user.rooted(LINGER);
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("ann"), "").unwrap();
        assert_eq!(hint_for("ann", &user), None);
        assert!(hint_for("bob", &user).is_some());
    }
}
