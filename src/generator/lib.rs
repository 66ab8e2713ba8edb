//! Declarations (`NAME.pool`, `NAME.watch`) → unit files, as systemd.generator(7) wants it: read by
//! [`files`], judged and turned into [`Units`] here as values, written by [`write`], and what is
//! wrong with them told by [`report`].

mod install;
mod pool;
pub mod report;
mod run;
mod unit_file;
pub mod watch;
pub mod write;

use archivist_shared::declare::{Declaration, Kind, Problem, Reader};
pub use pool::{Pool, WORKERS_MAX, command_line};
pub use run::{dry_run, main, write_all};
pub use unit_file::{Content, UnitFile, Units};

/// What the units depend on besides the declarations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// For a user's own service manager.
    pub user: bool,
    /// Version of systemd; 0 where it is not known, and then nothing newer than 252 is used.
    pub systemd: u32,
    /// Absolute path of the program `archivist`.
    pub program: String,
}

/// What becomes of a set of declarations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Generated {
    pub units: Units,
    pub problems: Vec<Problem>,
}

/// Makes the units of all `declarations`. One with an error gives no unit at all and has no effect
/// on the others.
pub fn generate(declarations: &[Declaration], context: &Context) -> Generated {
    let mut generated = Generated::default();
    for declaration in declarations {
        let (units, problems) = one(declaration, context);
        if !problems.iter().any(|problem| problem.fatal) {
            generated.units.append(units);
        }
        generated.problems.extend(problems);
    }
    generated
}

fn one(declaration: &Declaration, context: &Context) -> (Units, Vec<Problem>) {
    let mut reader = Reader::new(declaration);
    let units = match declaration.kind {
        Kind::Pool => pool::units(&mut reader, context),
        Kind::Watch => watch::units(&mut reader, context),
    };
    (units, reader.finish())
}

#[cfg(test)]
mod tests;
