//! `archivist-generator NORMAL EARLY LATE`: the program that service managers run (systemd.generator(7)).

use archivist_config::Scope;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

/// Exit status for wrong usage, as of `archivist`.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    // The other two are for units of higher and lower priority, of which there are none.
    let Some(directory) = arguments.next() else {
        eprintln!(
            "archivist-generator: missing argument DIRECTORY; `archivist generate --dry-run` prints the units"
        );
        return ExitCode::from(USAGE);
    };
    let env = |name: &str| std::env::var_os(name);
    if archivist_generator::main(&scope(env), Path::new(&directory)) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Returns the scope of the service manager that runs this program, which says it in `SYSTEMD_SCOPE`
/// since systemd 251.
fn scope(env: impl Fn(&str) -> Option<OsString>) -> Scope {
    let user = env("SYSTEMD_SCOPE").is_some_and(|scope| scope == "user");
    Scope::from_env(user, None, env)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manager_names_its_scope() {
        let said = |value: Option<&'static str>| {
            scope(|name| value.filter(|_| name == "SYSTEMD_SCOPE").map(OsString::from)).user
        };
        assert!(said(Some("user")));
        assert!(!said(Some("system")));
        assert!(!said(None));
    }
}
