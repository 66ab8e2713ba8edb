//! The fleet service: its unit, its program, and what it says of itself.

use crate::client::exit::Failure;
use crate::client::server::Server;
use crate::client::transfer::own_path;
use archivist_config::Scope;
use archivist_config::programs::FLEET;
use archivist_core::fleet::FLEET_USER;
use archivist_shared::bus::client::Address;
use archivist_shared::bus::documents::fleet::{Fleet, NodeState};
use archivist_shared::bus::wire::FleetNodeProxy;
use nix::unistd::User;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;
use tokio::time::timeout;
use zbus::DBusError;
use zbus::proxy::CacheProperties;

const UNIT: &str = "archivist-fleet.service";
/// Limit until the service has connected, or says why not.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(60);

/// Returns the user of the fleet service.
pub fn user() -> Result<User, Failure> {
    User::from_name(FLEET_USER).ok().flatten().ok_or_else(|| {
        Failure::failed(format!("there is no user '{FLEET_USER}'; try: systemd-sysusers"))
    })
}

/// Runs the program of the fleet service with the permissions of the service, and with `input` as
/// standard input. Returns its output.
pub fn program(arguments: &[&str], input: &[u8]) -> Result<String, Failure> {
    let program = FLEET.path_from(&own_path()?);
    let failed = |error: io::Error| {
        Failure::failed(format!("failed to run '{}': {error}", program.display()))
    };
    let user = user()?;
    let mut child = Command::new(&program)
        .args(arguments)
        .env_clear()
        .current_dir("/")
        .uid(user.uid.as_raw())
        .gid(user.gid.as_raw())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that ended says why on standard error.
        let _ = stdin.write_all(input);
    }
    let output = child.wait_with_output().map_err(failed)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.trim();
    let said = said.strip_prefix("archivist-fleet: ").unwrap_or(said);
    Err(match output.status.code() {
        Some(2) => Failure::usage(said),
        Some(_) => Failure::failed(said),
        None => Failure::failed(format!("'{}' {}: {said}", program.display(), output.status)),
    })
}

/// Makes the orchestrator read its configuration, and starts the fleet service now and with every
/// start of the orchestrator.
pub async fn start(scope: &Scope) -> Result<(), Failure> {
    reload(scope).await?;
    systemctl(&["enable", UNIT])?;
    systemctl(&["restart", UNIT])
}

pub fn stop() -> Result<(), Failure> {
    systemctl(&["disable", "--now", UNIT])
}

pub async fn reload(scope: &Scope) -> Result<(), Failure> {
    let server = Server::reach(scope).await?;
    server.call(|| server.proxy().reload()).await
}

fn systemctl(arguments: &[&str]) -> Result<(), Failure> {
    let what = || format!("systemctl {}", arguments.join(" "));
    let output = Command::new("systemctl").arg("--quiet").args(arguments).output();
    let output =
        output.map_err(|error| Failure::failed(format!("failed to run {}: {error}", what())))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Failure::failed(format!("{}: {}", what(), said.trim())))
}

async fn proxy() -> Result<FleetNodeProxy<'static>, Failure> {
    let bus = Address::new(false, None).connect().await?;
    let proxy = FleetNodeProxy::builder(&bus);
    let proxy = proxy.cache_properties(CacheProperties::No).build().await;
    proxy.map_err(|error| explain(&error))
}

/// Returns what the service says when it has connected, or knows why it cannot.
pub async fn settled() -> Result<NodeState, Failure> {
    parse(&answered(proxy().await?.settled()).await?)
}

/// Command that shows why the service does not work.
const SEE: &str = "see: systemctl status archivist-fleet.service";

fn parse<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, Failure> {
    let fail = |error| Failure::failed(format!("failed to parse the answer of {UNIT}: {error}"));
    serde_json::from_str(text).map_err(fail)
}

/// Returns an error of a call to the fleet service as a message for the user.
fn explain(error: &zbus::Error) -> Failure {
    let (name, text) = match error {
        zbus::Error::MethodError(name, text, _) => (name.to_string(), text.clone()),
        zbus::Error::FDO(error) => {
            (error.name().to_string(), error.description().map(str::to_owned))
        }
        error => {
            return Failure::failed(format!("failed to call {UNIT}: {error}; {SEE}"));
        }
    };
    match name.as_str() {
        "org.freedesktop.DBus.Error.ServiceUnknown"
        | "org.freedesktop.DBus.Error.NameHasNoOwner" => {
            Failure::failed(format!("{UNIT} does not run; {SEE}"))
        }
        "org.freedesktop.DBus.Error.AccessDenied" => Failure::failed(
            "access denied: only root and members of group 'archivist' may ask the fleet service",
        ),
        _ => Failure::failed(text.unwrap_or(name)),
    }
}

/// Returns what systemd knows about the service, as lines of systemctl(1) show; empty if unknown.
pub fn unit_state() -> String {
    let output = Command::new("systemctl")
        .args(["show", UNIT, "--property=ActiveState,UnitFileState,Job"])
        .output();
    output.map_or_else(
        |_| String::new(),
        |output| String::from_utf8_lossy(&output.stdout).into_owned(),
    )
}

/// Returns what the service says of itself now.
pub async fn state() -> Result<NodeState, Failure> {
    parse(&answered(proxy().await?.state()).await?)
}

pub async fn fleet() -> Result<Fleet, Failure> {
    parse(&answered(proxy().await?.nodes()).await?)
}

/// Stops or resumes giving hosts to a node. Returns whether a node that drains has stopped starting pages.
pub async fn drain(name: &str, draining: bool) -> Result<bool, Failure> {
    answered(proxy().await?.drain(name, draining)).await
}

/// Removes a node whose machine is gone.
pub async fn remove(name: &str) -> Result<(), Failure> {
    answered(proxy().await?.remove(name)).await
}

/// Declares that the database was restored. Returns the time until hosts are leased again.
pub async fn restored() -> Result<Duration, Failure> {
    Ok(Duration::from_millis(answered(proxy().await?.restored()).await?))
}

/// Removes this node if it holds nothing of the fleet any more. Returns whether it is removed.
pub async fn leave() -> Result<bool, Failure> {
    answered(proxy().await?.leave()).await
}

async fn answered<T>(call: impl Future<Output = zbus::Result<T>>) -> Result<T, Failure> {
    let answer = timeout(SETTLE_TIMEOUT, call).await;
    let late = |_| Failure::failed(format!("{UNIT} does not answer; {SEE}"));
    answer.map_err(late)?.map_err(|error| explain(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_that_does_not_run_is_named() {
        let error = zbus::fdo::Error::ServiceUnknown("no such name".to_owned());
        let failure = explain(&zbus::Error::FDO(Box::new(error)));
        assert!(failure.message().contains("does not run"), "{failure:?}");
        let error = zbus::fdo::Error::Failed("no reply from the server".to_owned());
        let failure = explain(&zbus::Error::FDO(Box::new(error)));
        assert_eq!(failure.message(), "no reply from the server");
    }
}
