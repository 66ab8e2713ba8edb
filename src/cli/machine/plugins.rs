//! The plugins of this machine, as the command line finds them without the orchestrator.

use crate::client::exit::Failure;
use archivist_config::{Scope, Settings, fragments, inputs};
use archivist_plugin::{Catalogue, Trust};

/// Returns the plugins of the configuration.
///
/// # Errors
/// If the configuration cannot be read.
pub fn plugins(scope: &Scope) -> Result<Catalogue, Failure> {
    let inputs = inputs::collect(&fragments::read(scope)?);
    let settings = Settings::from_inputs(&inputs, &Settings::built_in())?;
    Ok(catalogue(scope, &settings))
}

pub fn catalogue(scope: &Scope, settings: &Settings) -> Catalogue {
    let trust = if scope.user { Trust::User(nix::unistd::geteuid().as_raw()) } else { Trust::Root };
    Catalogue::load(&scope.plugin_roots(settings), trust)
}
