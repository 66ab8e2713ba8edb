//! `archivist pool`: workers that systemd keeps running. Everything is requested from systemd; the
//! orchestrator is not involved.

mod attached;
mod control;
mod declare;
mod logs;
mod show;

use crate::client::exit::{Exit, Failure};
use crate::machine::pools::declared;
use archivist_config::{Scope, programs};
use archivist_generator::Pool;
use clap::{Args, Subcommand};

/// Manage pools of workers that systemd keeps running
///
/// The pools are those of archivist.pool(5). This command calls systemd directly, which also
/// authorizes it, as for systemctl(1). The orchestrator need not run. With --user, use the pools of
/// the calling user's service manager. This requires the package archivist-pools.
#[derive(Args)]
pub struct PoolArgs {
    #[command(subcommand)]
    verb: PoolVerb,
}

#[derive(Subcommand)]
enum PoolVerb {
    List(show::ListArgs),
    Status(show::StatusArgs),
    /// Start all workers of pools, including those that systemd no longer restarts
    Start(control::StartArgs),
    Stop(control::StopArgs),
    /// Stop and start all workers of pools
    Restart(control::StartArgs),
    Scale(declare::ScaleArgs),
    Add(declare::PoolAddArgs),
    Remove(declare::RemoveArgs),
    Run(declare::RunArgs),
    Logs(logs::LogsArgs),
}

pub async fn run(args: PoolArgs, scope: &Scope) -> Result<Exit, Failure> {
    if scope.instance.is_some() {
        return Err(Failure::usage("pools do not belong to an instance; omit --instance"));
    }
    if !programs::POOLS.is_installed() {
        let (why, fix) = (programs::POOLS_MISSING, programs::POOLS_FIX);
        return Err(Failure::failed(format!("{why}; {fix}")));
    }
    match args.verb {
        PoolVerb::List(args) => show::list(args, scope).await,
        PoolVerb::Status(args) => show::status(args, scope).await,
        PoolVerb::Start(args) => control::start(args, scope).await,
        PoolVerb::Stop(args) => control::stop(args, scope).await,
        PoolVerb::Restart(args) => control::restart(args, scope).await,
        PoolVerb::Scale(args) => declare::scale(args, scope).await,
        PoolVerb::Add(args) => declare::add(args, scope).await,
        PoolVerb::Remove(args) => declare::remove(args, scope).await,
        PoolVerb::Run(args) => declare::run(args, scope).await,
        PoolVerb::Logs(args) => logs::run(args, scope),
    }
}

fn find(name: &str, scope: &Scope) -> Result<Pool, Failure> {
    let (pools, problems) = declared(scope);
    let names: Vec<_> = pools.iter().map(|pool| pool.name.as_str()).collect();
    let known = if names.is_empty() {
        "there are none; 'archivist pool add' creates one".to_owned()
    } else {
        format!("there are {}", names.join(", "))
    };
    // If the file cannot be read, its problem is the better error.
    let file = format!("/{name}.pool:");
    if let Some(problem) = problems.iter().find(|problem| problem.text().contains(&file)) {
        return Err(Failure::failed(problem.text()));
    }
    let found = pools.into_iter().find(|pool| pool.name == name);
    found.ok_or_else(|| Failure::failed(format!("no pool is named '{name}'; {known}")))
}
