//! Configuration in three steps: files ([`fragments`]) → assignments ([`inputs`]) → typed
//! [`Settings`]; and the [`Scope`] that says whose configuration it is.

pub mod fragments;
pub mod ini;
pub mod inputs;
pub mod keys;
pub mod network;
pub mod programs;
pub mod sandbox;
mod scope;
mod settings;

pub use inputs::Warning;
pub use network::NetworkMode;
pub use scope::{HOOK_USERS, INSTANCE_ALLOWED, Scope, UserDirs, is_instance_name};
pub use settings::Settings;

/// Why there are no settings; every problem names its file, and its line where there is one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", problems.join("\n"))]
pub struct ConfigError {
    pub problems: Vec<String>,
}

impl ConfigError {
    fn one(problem: String) -> ConfigError {
        ConfigError {
            problems: vec![problem],
        }
    }
}

/// The settings of `scope`, and what was ignored on the way. A bad value of a known key is an
/// error, an unknown key is a warning.
pub fn load(scope: &Scope) -> Result<(Settings, Vec<Warning>), ConfigError> {
    let inputs = inputs::collect(&fragments::read(scope)?);
    let settings = Settings::from_inputs(&inputs)?;
    Ok((settings, inputs.warnings))
}

#[cfg(test)]
mod tests;
