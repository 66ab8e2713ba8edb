//! Our programs. Each is looked for next to the program that starts it, then where it is installed.

use std::path::{Path, PathBuf};

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program {
    name: &'static str,
    installed: &'static str,
}

/// What people, hook files, watches and generators call: everything but what is below.
pub const ARCHIVIST: Program = Program {
    name: "archivist",
    installed: "/usr/bin/archivist",
};

/// The orchestrator, and the workers that it starts: nothing that only a verb, a hook or a check
/// needs is in it, because it is there all the time.
pub const ORCHESTRATOR: Program = Program {
    name: "archivist-orchestrator",
    installed: "/usr/lib/archivist/archivist-orchestrator",
};

/// What hooks and alerts are started by: it reads their arguments and variables from standard input
/// and executes them, so that no property of the unit has them.
pub const LAUNCHER: Program = Program {
    name: "archivist-hook-exec",
    installed: "/usr/lib/archivist/archivist-hook-exec",
};

impl Program {
    /// Where it is, for the program `own`: beside it, as a build leaves both, else where the
    /// package has it.
    pub fn beside(self, own: &Path) -> PathBuf {
        let beside = own.with_file_name(self.name);
        if beside.is_file() {
            beside
        } else {
            self.installed.into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_has_both_in_one_place_and_the_package_each_in_its_own() {
        let built = tempfile::tempdir().unwrap();
        let own = built.path().join("archivist");
        let other = built.path().join("archivist-orchestrator");
        assert_eq!(
            ORCHESTRATOR.beside(&own),
            Path::new("/usr/lib/archivist/archivist-orchestrator")
        );
        std::fs::write(&other, "").unwrap();
        assert_eq!(ORCHESTRATOR.beside(&own), other);
        assert_eq!(ARCHIVIST.beside(&other), Path::new("/usr/bin/archivist"));
    }
}
