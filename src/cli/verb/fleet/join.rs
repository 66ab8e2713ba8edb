//! `archivist fleet init` and `archivist fleet join`.

use super::authorities::{self, Authorities};
use super::files::Files;
use super::password;
use crate::client::exit::{Exit, Failure};
use crate::client::fleet_service;
use crate::client::paging::Paging;
use crate::client::server::Server;
use crate::display::style;
use archivist_config::{Scope, host_name, load};
use archivist_core::fleet::{NODE_NAME_ALLOWED, is_node_name};
use archivist_core::model::Lifecycle;
use archivist_shared::bus::documents::report::{Crawl, Filter, Snapshot, Status};
use clap::Args;
use std::path::PathBuf;

#[derive(Args)]
pub struct JoinArgs {
    /// The database: postgresql://USER@HOST/DATABASE, without a password
    #[arg(value_name = "URL")]
    url: String,
    /// Name of this machine in the fleet, by default its host name
    #[arg(long, value_name = "NAME", value_parser = node_name)]
    name: Option<String>,
    /// Read the password of the database user from the only line of FILE, - for standard input
    ///
    /// Without it, the command asks on the terminal; for a Unix socket, and without a terminal,
    /// there is no password.
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Trust the authorities whose certificates FILE has (PEM), instead of those of this machine
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
}

/// What the program of the fleet service prints if the database was empty, or there was nothing to create.
const CREATED: &str = "created";
const EXISTED: &str = "existed";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Init,
    Join,
}

fn node_name(text: &str) -> Result<String, String> {
    if is_node_name(text) {
        Ok(text.to_owned())
    } else {
        Err(format!("expected {NODE_NAME_ALLOWED}"))
    }
}

pub(super) async fn run(args: &JoinArgs, kind: Kind, scope: &Scope) -> Result<Exit, Failure> {
    let name = name(args)?;
    if !nix::unistd::geteuid().is_root() {
        return Err(Failure::failed("only root can make this machine a node of a fleet: use sudo"));
    }
    let is_known = is_known(&args.url, scope)?;
    if !is_known {
        refuse_open_crawls(scope).await?;
    }
    let given = args.ca.as_deref();
    let given = given.map(|file| authorities::read(file, &args.url));
    let given = given.transpose()?;
    let password = password::read(args.password_file.as_deref(), &args.url)?;
    let files = Files::of(scope);
    let before = files.read()?;
    // Without --ca, the service uses those of the credential.
    let stored = before.authorities().map(|pem| Authorities {
        name: files.authorities().display().to_string(),
        pem: pem.to_vec(),
    });
    let trusted = given.as_ref().or(stored.as_ref());
    let verb = match kind {
        Kind::Init => "create",
        Kind::Join => "check",
    };
    // A node that repairs its name or password has ids of the fleet.
    let (crawl, page) = if is_known { (0, 0) } else { own_ids(scope).await? };
    let (crawl, page) = (crawl.to_string(), page.to_string());
    let mut arguments = vec![verb, args.url.as_str(), crawl.as_str(), page.as_str()];
    arguments.extend(trusted.map(|authorities| authorities.name.as_str()));
    let done = fleet_service::program(&arguments, &input(password.as_deref(), trusted))?;
    if done == EXISTED && !is_known {
        return Err(Failure::failed(format!(
            "this database has a fleet already; to become a node of it: archivist fleet join {} --name {name}",
            args.url
        )));
    }
    let written = files.write(&args.url, &name, password.as_deref(), given.as_ref());
    let joined = match written {
        Ok(()) if is_known && done == CREATED => begin_again(scope).await,
        Ok(()) => connect(scope).await,
        Err(failure) => Err(failure),
    };
    if joined.is_err() && !is_known {
        // As if nothing had happened.
        let _ = fleet_service::stop();
        files.restore(&before)?;
        let _ = fleet_service::reload(scope).await;
    }
    joined?;
    style::print(&format!(
        "this machine is node '{name}' of the fleet; see: archivist fleet status\n"
    ))?;
    Ok(Exit::Done)
}

/// Returns the standard input of the program: the password, then on a line of their own the
/// authorities.
fn input(password: Option<&str>, authorities: Option<&Authorities>) -> Vec<u8> {
    let mut input = password.unwrap_or_default().as_bytes().to_vec();
    if let Some(authorities) = authorities {
        input.push(b'\n');
        input.extend_from_slice(&authorities.pem);
    }
    input
}

/// Starts the service and waits until the database has welcomed the node.
async fn connect(scope: &Scope) -> Result<(), Failure> {
    fleet_service::start(scope).await?;
    let state = fleet_service::settled().await?;
    match state.fault {
        None => Ok(()),
        Some(fault) => Err(Failure::failed(fault)),
    }
}

/// Makes an empty database that of the fleet, which has lost its own. The node is refused once, so that
/// the database learns which ids the node remembers.
async fn begin_again(scope: &Scope) -> Result<(), Failure> {
    fleet_service::start(scope).await?;
    fleet_service::settled().await?;
    fleet_service::restored().await?;
    connect(scope).await
}

fn name(args: &JoinArgs) -> Result<String, Failure> {
    let name = args.name.clone().or_else(host_name);
    name.ok_or_else(|| {
        Failure::usage(format!(
            "the host name cannot be the name of a node; use --name with {NODE_NAME_ALLOWED}"
        ))
    })
}

/// Returns whether the machine is a node of the fleet in this database: the same URL again repairs
/// its name and password. A node of another fleet leaves that one first.
fn is_known(url: &str, scope: &Scope) -> Result<bool, Failure> {
    let (settings, _) = load(scope)?;
    if !settings.is_in_fleet() || settings.fleet_database == url {
        return Ok(settings.is_in_fleet());
    }
    Err(Failure::failed(format!(
        "this machine is in the fleet of {} already; leave it first: archivist fleet leave",
        settings.fleet_database
    )))
}

/// Returns the highest ids of a crawl and a page of this machine; 0 without any.
async fn own_ids(scope: &Scope) -> Result<(i64, i64), Failure> {
    let server = Server::reach(scope).await?;
    let newest = Filter { limit: 1, ..Filter::default() };
    let pages: Vec<Snapshot> = Paging::new(&server, newest).collect().await?;
    // The newest crawl need not have the highest id.
    let crawls: Vec<Crawl> = Paging::new(&server, Filter::default()).collect().await?;
    let crawl = crawls.iter().map(|crawl| crawl.id.0).max().unwrap_or(0);
    Ok((crawl, pages.first().map_or(0, |page| page.id.0)))
}

/// The hosts of crawls that run here have no leases, so they end first.
async fn refuse_open_crawls(scope: &Scope) -> Result<(), Failure> {
    let server = Server::reach(scope).await?;
    let status = server.call(|| server.proxy().status()).await?;
    let status: Status = serde_json::from_str(&status)
        .map_err(|error| Failure::failed(format!("failed to parse the status: {error}")))?;
    let open = Lifecycle::ALL.iter().filter(|status| !status.is_final());
    let open: u64 = open.filter_map(|one| status.crawls.get(one.as_str())).sum();
    if open == 0 {
        return Ok(());
    }
    Err(Failure::failed(format!(
        "{open} crawls of this machine are not finished: wait for them, or cancel them; see: archivist list crawls"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_of_another_fleet_leaves_that_one_first() {
        let root = tempfile::tempdir().unwrap();
        let scope = Scope::system(root.path());
        let url = "postgresql://db.example/archive";
        assert!(!is_known(url, &scope).unwrap());
        Files::of(&scope).write(url, "web2", None, None).unwrap();
        assert!(is_known(url, &scope).unwrap());
        let other = is_known("postgresql://other.example/x", &scope);
        assert!(other.unwrap_err().message().contains("archivist fleet leave"));
    }
}
