//! The generator as a program, and its dry run.

use super::{Context, Generated, generate, report, write};
use archivist_config::Scope;
use archivist_config::declare::files;
use archivist_core::text::Problem;
use std::path::Path;

/// Path of the command if the process does not know it.
const PROGRAM: &str = "/usr/bin/archivist";

/// Most threads: they all write into one directory.
const THREADS_MAX: usize = 4;

/// Least number of files for a further thread.
const SHARE_MIN: usize = 100;

/// Entry point for systemd (systemd.generator(7)): reads the declarations of `scope` and writes
/// their units into `directory`. Logs problems; returns `false` if any is fatal.
pub fn main(scope: &Scope, directory: &Path) -> bool {
    let problems = write_all(scope, directory);
    report::problems(&problems);
    !problems.iter().any(|problem| problem.fatal)
}

/// The boot waits for this: threads share many files, and finish each before the next one, because
/// memory that grows costs most of the remaining time.
pub fn write_all(scope: &Scope, directory: &Path) -> Vec<Problem> {
    let mut found = files::find(scope);
    let context = context(scope);
    let count = found.count();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let share = (count / cores.min(THREADS_MAX) + 1).max(SHARE_MIN);
    let part = &|begin: usize| {
        let mut problems = Vec::new();
        for place in begin..count.min(begin + share) {
            let (declarations, unread) = found.read(place..place + 1);
            let generated = generate(&declarations, &context);
            problems.extend(unread);
            problems.extend(generated.problems);
            problems.extend(write::units(&generated.units, directory));
        }
        problems
    };
    let problems: Vec<Problem> = if count <= share {
        part(0)
    } else {
        std::thread::scope(|threads| {
            let begins = (0..count).step_by(share);
            let parts: Vec<_> = begins
                .map(|begin| threads.spawn(move || part(begin)))
                .collect();
            let done = parts.into_iter().filter_map(|part| part.join().ok());
            done.flatten().collect()
        })
    };
    found.problems.extend(problems);
    found.problems
}

/// Returns what would be written for all declarations of `scope`, or for the one in `file`.
pub fn dry_run(scope: &Scope, file: Option<&Path>) -> Generated {
    let (declarations, mut problems) = match file.map(files::read_one) {
        None => files::read(scope),
        Some(Ok(declaration)) => (vec![declaration], Vec::new()),
        Some(Err(problem)) => (Vec::new(), vec![problem]),
    };
    let generated = generate(&declarations, &context(scope));
    problems.extend(generated.problems);
    Generated {
        problems,
        ..generated
    }
}

fn context(scope: &Scope) -> Context {
    Context {
        user: scope.user,
        systemd: installed_version(&scope.root),
        program: PROGRAM.to_owned(),
    }
}

/// Returns the version of the installed systemd from the name of its library: a generator must not
/// call systemd, and systemd 252 passes no version.
fn installed_version(root: &Path) -> u32 {
    let triplet = format!("usr/lib/{}-linux-gnu/systemd", std::env::consts::ARCH);
    let version = |file: std::fs::DirEntry| -> Option<u32> {
        let name = file.file_name().into_string().ok()?;
        let rest = name.strip_prefix("libsystemd-shared-")?;
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        rest[..digits].parse().ok()
    };
    let directories = [triplet.as_str(), "usr/lib/systemd"];
    let entries = directories
        .iter()
        .filter_map(|directory| std::fs::read_dir(root.join(directory)).ok())
        .flatten()
        .flatten();
    entries.filter_map(version).max().unwrap_or(0)
}

impl Generated {
    /// Returns whether no problem is fatal.
    pub fn is_good(&self) -> bool {
        !self.problems.iter().any(|problem: &Problem| problem.fatal)
    }
}
