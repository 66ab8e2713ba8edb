//! What the program does, and its dry run.

use super::{Context, Generated, Units, generate, report, systemd_version, write};
use archivist_config::declare::{Kind, files};
use archivist_config::{Scope, programs};
use archivist_core::text::Problem;
use std::ffi::OsString;
use std::path::Path;

/// Path of the command if the process does not know it.
const PROGRAM: &str = "/usr/bin/archivist";

/// Returns the scope of the service manager that runs this program, which says it in `SYSTEMD_SCOPE`
/// since systemd 251.
pub fn scope(env: impl Fn(&str) -> Option<OsString>) -> Scope {
    let user = env("SYSTEMD_SCOPE").is_some_and(|scope| scope == "user");
    Scope::from_env(user, None, env)
}

/// Entry point for systemd (systemd.generator(7)): reads the declarations of `scope` and writes
/// their units into `directory`. Logs problems; returns `false` if any is fatal.
pub fn main(scope: &Scope, directory: &Path) -> bool {
    let problems = write_all(scope, directory, programs::POOLS.is_installed());
    report::problems(&problems);
    !problems.iter().any(|problem| problem.fatal)
}

/// Finishes each file before the next one: the boot waits for this, and memory that grows costs most
/// of the time. Starts no thread.
pub fn write_all(scope: &Scope, directory: &Path, pools_installed: bool) -> Vec<Problem> {
    let mut found = files::find(scope);
    let context = context(scope, found.has(Kind::Pool), pools_installed);
    found.problems.extend(write::units(&start_of_user(scope), directory));
    for place in 0..found.count() {
        let (declarations, unread) = found.read(place..place + 1);
        let generated = generate(&declarations, &context);
        found.problems.extend(unread);
        found.problems.extend(generated.problems);
        found.problems.extend(write::units(&generated.units, directory));
    }
    found.problems
}

/// Returns what would be written for all declarations of `scope`, or for the one in `file`.
pub fn dry_run(scope: &Scope, file: Option<&Path>) -> Generated {
    let (declarations, mut problems) = match file.map(files::read_one) {
        None => files::read(scope),
        Some(Ok(declaration)) => (vec![declaration], Vec::new()),
        Some(Err(problem)) => (Vec::new(), vec![problem]),
    };
    let has_pools = declarations.iter().any(|one| one.kind == Kind::Pool);
    let context = context(scope, has_pools, programs::POOLS.is_installed());
    let mut generated = generate(&declarations, &context);
    generated.units.append(start_of_user(scope));
    problems.extend(generated.problems);
    Generated { problems, ..generated }
}

/// Returns the link by which the service manager of a user who has an archive starts the orchestrator, so
/// that queued pages do not wait for a command: at login, or at boot if the user lingers.
fn start_of_user(scope: &Scope) -> Units {
    let mut units = Units::default();
    if scope.user && scope.database().exists() {
        let unit = scope.orchestrator_unit();
        let installed = format!("/usr/lib/systemd/user/{unit}");
        units.link(format!("default.target.wants/{unit}"), installed);
    }
    units
}

/// Only units of pools depend on the version of systemd.
fn context(scope: &Scope, has_pools: bool, pools_installed: bool) -> Context {
    Context {
        user: scope.user,
        systemd: if has_pools && pools_installed { systemd_version::installed() } else { 0 },
        program: PROGRAM.to_owned(),
        lacks_pools: !pools_installed,
    }
}

impl Generated {
    /// Returns whether no problem is fatal.
    pub fn is_good(&self) -> bool {
        !self.problems.iter().any(|problem: &Problem| problem.fatal)
    }
}
