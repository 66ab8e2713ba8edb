//! What administrators and users write: settings in three steps, files ([`fragments`]), assignments
//! ([`inputs`]) and typed [`Settings`]; declarations of pools and watches ([`declare`]); and the
//! [`Scope`] that they belong to. The generator, which runs as root at each boot, links this room, so
//! it has neither bus nor threads.

use archivist_core::text::Problem;

pub mod alert;
pub mod declare;
mod fleet;
pub mod fragments;
pub mod ini;
pub mod inputs;
pub mod keys;
pub mod network;
pub mod programs;
pub mod sandbox;
mod scope;
mod settings;

pub use fleet::host_name;
pub use network::NetworkMode;
pub use scope::{DATABASE, HOOK_USERS, INSTANCE_ALLOWED, Scope, UserDirs, is_instance_name};
pub use settings::Settings;

/// Errors of the configuration, each with its file and, if known, its line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", lines(problems))]
pub struct ConfigError {
    /// Every problem, by file and line.
    pub problems: Vec<Problem>,
}

impl ConfigError {
    fn one(problem: Problem) -> ConfigError {
        ConfigError { problems: vec![problem] }
    }
}

fn lines(problems: &[Problem]) -> String {
    let lines: Vec<_> = problems.iter().map(Problem::text).collect();
    lines.join("\n")
}

/// Returns the settings of `scope` and the ignored lines. A bad value of a known key is an error,
/// an unknown key is a warning.
pub fn load(scope: &Scope) -> Result<(Settings, Vec<Problem>), ConfigError> {
    let inputs = inputs::collect(&fragments::read(scope)?);
    let settings = Settings::from_inputs(&inputs, &Settings::built_in())?;
    Ok((settings, inputs.warnings))
}

#[cfg(test)]
mod tests;
