//! The generator as a program, and the same without effects.

use super::{Context, Generated, generate, report, write};
use archivist_shared::config::Scope;
use archivist_shared::declare::declaration::Problem;
use archivist_shared::declare::files;
use std::path::Path;

/// Where the program is when the process does not say.
const PROGRAM: &str = "/usr/bin/archivist";

/// More do not help: the directory is one.
const THREADS_MAX: usize = 4;

/// A thread for fewer files costs more than it saves.
const SHARE_MIN: usize = 100;

/// What systemd calls (systemd.generator(7)): reads the declarations of `scope`, writes their units
/// into `directory`. `false` when something is wrong with any of them, which was told.
pub fn main(scope: &Scope, directory: &Path) -> bool {
    let problems = write_all(scope, directory);
    report::problems(&problems);
    !problems.iter().any(|problem| problem.fatal)
}

/// The boot waits for this: many files are shared among threads, and each is done with before the
/// next is read, as memory that grows is most of what is left to save.
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

/// What would be written for all declarations of `scope`, or for the one in `file`.
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

/// The version of the systemd that is installed, from the name of its library; a generator may
/// not ask systemd, and 252 tells it nothing.
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
    /// Whether anything was refused.
    pub fn is_good(&self) -> bool {
        !self.problems.iter().any(|problem: &Problem| problem.fatal)
    }
}
