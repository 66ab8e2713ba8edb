//! Makes unit files from declarations (`NAME.pool`, `NAME.watch`), as systemd.generator(7)
//! requires. [`archivist_config::declare::files`] reads them, this crate makes [`Units`] as values,
//! [`write`] writes them and [`report`] logs problems.

mod install;
mod pool;
pub mod report;
mod run;
mod systemd_version;
mod unit_file;
pub mod watch;
pub mod write;

use archivist_config::declare::{Declaration, Kind, Reader};
use archivist_config::programs;
use archivist_core::text::Problem;
pub use pool::{KEYS as POOL_KEYS, TEXTS as POOL_TEXTS};
pub use pool::{Pool, WORKERS_MAX, command_line};
pub use run::{dry_run, main, scope, write_all};
pub use unit_file::{Content, UnitFile, Units};

/// What the units depend on in addition to the declarations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// Make units for a user's service manager.
    pub user: bool,
    /// Version of systemd; 0 if unknown, which means that only features of systemd 252 are used.
    pub systemd: u32,
    /// Absolute path of the program `archivist`.
    pub program: String,
    /// Whether the machine lacks the program of pools: it has none then.
    pub lacks_pools: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Generated {
    pub units: Units,
    pub problems: Vec<Problem>,
}

/// Makes the units of all `declarations`. A declaration with an error gets no unit and does not
/// affect the others.
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
    if declaration.kind == Kind::Pool && context.lacks_pools {
        let what = format!("{}; {}", programs::POOLS_MISSING, programs::POOLS_FIX);
        return (Units::default(), vec![Problem::of(&declaration.path, what).ignored()]);
    }
    let mut reader = Reader::new(declaration);
    let units = match declaration.kind {
        Kind::Pool => pool::units(&mut reader, context),
        Kind::Watch => watch::units(&mut reader, context),
    };
    (units, reader.finish())
}

#[cfg(test)]
mod tests;
