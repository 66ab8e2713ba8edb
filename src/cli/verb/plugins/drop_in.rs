//! Drop-ins of archivist.conf(5) that name a directory of plugins.

use crate::client::exit::{Exit, Failure};
use crate::client::server::{Server, systemctl};
use archivist_config::Scope;
use std::io;
use std::path::{Path, PathBuf};

/// Returns the path of the drop-in for the plugins called `name`.
pub(super) fn drop_in_path(name: &str, scope: &Scope) -> Result<PathBuf, Failure> {
    let directory = scope.config_dirs().pop();
    let directory =
        directory.ok_or_else(|| Failure::failed("found no directory for configuration files"))?;
    let directory = directory.join(format!("{}.d", scope.config_name()));
    Ok(directory.join(format!("50-{name}.conf")))
}

/// Returns the error of a file operation, with a hint if the permission is missing.
pub(super) fn failed(verb: &str, path: &Path, error: &io::Error) -> Failure {
    let hint = match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "\nonly root can change the machine's plugins: use sudo, or --user"
        }
        _ => "",
    };
    Failure::failed(format!("failed to {verb} '{}': {error}{hint}", path.display()))
}

/// Makes the orchestrator read its configuration again.
pub(super) async fn reload(scope: &Scope) -> Result<Exit, Failure> {
    let server = Server::reach(scope).await?;
    server.call(|| server.proxy().reload()).await.inspect_err(|_| {
        eprintln!("see: {} status {}", systemctl(scope), scope.orchestrator_unit());
    })?;
    Ok(Exit::Done)
}
