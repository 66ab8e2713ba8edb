//! The programs of the packages. Each is searched next to the program that starts it, then where it
//! is installed.

use std::path::{Path, PathBuf};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program {
    name: &'static str,
    installed: &'static str,
}

/// The command, which users, hook files and watches call.
pub const ARCHIVIST: Program = Program { name: "archivist", installed: "/usr/bin/archivist" };

/// The orchestrator and its workers. It links no code for verbs, hooks or checks, because it is
/// resident.
pub const ORCHESTRATOR: Program = Program {
    name: "archivist-orchestrator",
    installed: "/usr/lib/archivist/archivist-orchestrator",
};

/// Another name of the orchestrator's program, which its workers have in ps(1) and in the journal.
const WORKER: &str = "archivist-worker";

/// Returns the path of the program of workers for the orchestrator `own`: its other name next to it, if the
/// package has made that.
pub fn of_workers(own: &Path) -> PathBuf {
    let worker = own.with_file_name(WORKER);
    if worker.is_file() { worker } else { own.to_owned() }
}

/// The launcher of hooks and alerts: it reads their arguments and variables from standard input and
/// executes them, so that no property of the unit contains them.
pub const LAUNCHER: Program =
    Program { name: "archivist-hook-exec", installed: "/usr/lib/archivist/archivist-hook-exec" };

/// The fleet service, the only program that connects to PostgreSQL. It is in a package of its own.
pub const FLEET: Program =
    Program { name: "archivist-fleet", installed: "/usr/lib/archivist/archivist-fleet" };

/// Why nothing of a fleet works on a machine without the fleet service.
pub const FLEET_MISSING: &str = "the package archivist-fleet is not installed";

/// Command that installs the fleet service.
pub const FLEET_FIX: &str = "apt install archivist-fleet";

/// The program that ends unhealthy workers of pools. It is in a package of its own.
pub const POOLS: Program =
    Program { name: "archivist-pools", installed: "/usr/lib/archivist/archivist-pools" };

/// Why a machine without that program has no pools.
pub const POOLS_MISSING: &str = "the package archivist-pools is not installed";

/// Command that installs it.
pub const POOLS_FIX: &str = "apt install archivist-pools";

/// The program of transfers between the archive and its store.
pub const STORE: Program =
    Program { name: "archivist-store", installed: "/usr/lib/archivist/archivist-store" };

/// The program of full text search, which has the code of the index.
pub const SEARCH: Program =
    Program { name: "archivist-search", installed: "/usr/lib/archivist/archivist-search" };

impl Program {
    /// Returns the path of the program for the running program `own`: next to it, as a build leaves
    /// both, otherwise where the package installs it.
    pub fn path_from(self, own: &Path) -> PathBuf {
        let beside = own.with_file_name(self.name);
        if beside.is_file() { beside } else { self.installed.into() }
    }

    /// Returns whether the running program finds this one.
    pub fn is_installed(self) -> bool {
        std::env::current_exe().is_ok_and(|own| self.path_from(&own).is_file())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_from_prefers_the_directory_of_the_running_program() {
        let built = tempfile::tempdir().unwrap();
        let own = built.path().join("archivist");
        let other = built.path().join("archivist-orchestrator");
        assert_eq!(
            ORCHESTRATOR.path_from(&own),
            Path::new("/usr/lib/archivist/archivist-orchestrator")
        );
        std::fs::write(&other, "").unwrap();
        assert_eq!(of_workers(&other), other);
        let worker = built.path().join("archivist-worker");
        std::os::unix::fs::symlink("archivist-orchestrator", &worker).unwrap();
        assert_eq!(of_workers(&other), worker);
        assert_eq!(ORCHESTRATOR.path_from(&own), other);
        assert_eq!(ARCHIVIST.path_from(&other), Path::new("/usr/bin/archivist"));
    }
}
