//! `archivist pool start`, `stop` and `restart`: all workers at once, as jobs of systemd.

use super::find;
use crate::client::exit::{Exit, Failure};
use crate::machine::pools::{connect, failure};
use archivist_config::Scope;
use archivist_generator::Pool;
use archivist_shared::systemd::{Job, SystemdClient, UndoneJob, Whom};
use clap::Args;

#[derive(Args)]
pub struct StartArgs {
    /// Names of pools
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// Do not wait until the jobs have ended
    #[arg(long)]
    no_wait: bool,
}

/// Stop all workers of pools concurrently
///
/// They get SIGTERM, and SIGKILL after StopSec=. No worker is restarted.
#[derive(Args)]
pub struct StopArgs {
    /// Names of pools
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// Send SIGKILL immediately
    #[arg(long)]
    force: bool,
    /// Do not wait until the workers have stopped
    #[arg(long)]
    no_wait: bool,
}

const SIGKILL: i32 = 9;

pub async fn start(args: StartArgs, scope: &Scope) -> Result<Exit, Failure> {
    let pools = find_all(&args.names, scope)?;
    let systemd = connect(scope).await?;
    let undone = begin(&systemd, Job::Start, &pools, !args.no_wait).await?;
    Ok(tell(&undone, &pools))
}

pub async fn restart(args: StartArgs, scope: &Scope) -> Result<Exit, Failure> {
    let pools = find_all(&args.names, scope)?;
    let systemd = connect(scope).await?;
    let undone = begin(&systemd, Job::Restart, &pools, !args.no_wait).await?;
    Ok(tell(&undone, &pools))
}

pub async fn stop(args: StopArgs, scope: &Scope) -> Result<Exit, Failure> {
    let pools = find_all(&args.names, scope)?;
    let systemd = connect(scope).await?;
    let mut undone = Vec::new();
    let mut units = Vec::new();
    for pool in &pools {
        units.extend(units_of(&systemd, pool).await?);
    }
    if args.force {
        // Queue the jobs first: from then on systemd restarts no worker.
        undone.extend(systemd.run(Job::Stop, &units, false).await.map_err(failure)?);
        for unit in units.iter().filter(|unit| unit.ends_with(".service")) {
            systemd.kill(unit, Whom::All, SIGKILL).await.map_err(failure)?;
        }
    }
    let stopped = systemd.run(Job::Stop, &units, !args.no_wait).await;
    undone.extend(stopped.map_err(failure)?);
    if !args.no_wait {
        forget_failures(&systemd, &pools).await?;
    }
    Ok(tell(&undone, &pools))
}

/// Forgets failures and counts of restarts. A worker that waits for its restart is "activating", and
/// a start by hand would not reset its count.
async fn forget_failures(systemd: &SystemdClient, pools: &[Pool]) -> Result<(), Failure> {
    // A health check that the stop interrupted.
    let patterns: Vec<_> = pools.iter().flat_map(|pool| pool.log_patterns(None)).collect();
    let loaded = systemd.loaded(&patterns).await.map_err(failure)?;
    let may_have_failed = |state: &str| matches!(state, "failed" | "activating");
    for unit in loaded.iter().filter(|unit| may_have_failed(&unit.active_state)) {
        systemd.reset_failed(&unit.name).await.map_err(failure)?;
    }
    Ok(())
}

/// Stops a pool and waits until it has stopped.
pub async fn stop_wholly(systemd: &SystemdClient, pool: &Pool) -> Result<(), Failure> {
    let units = units_of(systemd, pool).await?;
    let undone = systemd.run(Job::Stop, &units, true).await;
    match undone.map_err(failure)?.first() {
        None => forget_failures(systemd, std::slice::from_ref(pool)).await,
        Some(undone) => Err(Failure::failed(words(undone, &pool.name))),
    }
}

fn find_all(names: &[String], scope: &Scope) -> Result<Vec<Pool>, Failure> {
    names.iter().map(|name| find(name, scope)).collect()
}

/// Starts or restarts all declared workers, including failed ones.
pub async fn begin(
    systemd: &SystemdClient,
    job: Job,
    pools: &[Pool],
    wait: bool,
) -> Result<Vec<UndoneJob>, Failure> {
    let mut units = Vec::new();
    for pool in pools {
        if let Some(problem) = pool.problems.iter().find(|problem| problem.fatal) {
            return Err(Failure::failed(problem.text()));
        }
        units.extend((0..pool.workers).map(|index| pool.worker(index)));
        if job == Job::Start || pool.workers == 0 {
            units.push(pool.target());
        }
    }
    forget_failures(systemd, pools).await?;
    if job == Job::Restart {
        // Restarting the target would stop the workers a second time.
        let targets: Vec<_> = pools.iter().map(Pool::target).collect();
        let mut undone = systemd.run(Job::Restart, &units, wait).await.map_err(failure)?;
        undone.extend(systemd.run(Job::Start, &targets, wait).await.map_err(failure)?);
        return Ok(undone);
    }
    systemd.run(job, &units, wait).await.map_err(failure)
}

/// Returns the target and every loaded worker, also those above the declared number.
async fn units_of(systemd: &SystemdClient, pool: &Pool) -> Result<Vec<String>, Failure> {
    let loaded = systemd.loaded(&[pool.pattern()]).await.map_err(failure)?;
    let mut units = vec![pool.target()];
    units.extend(loaded.into_iter().map(|unit| unit.name));
    Ok(units)
}

/// Returns an error that names the workers whose jobs failed.
pub fn tell(undone: &[UndoneJob], pools: &[Pool]) -> Exit {
    for undone in undone {
        let owner = pools.iter().find(|pool| pool.index_of(&undone.unit).is_some());
        let name = owner.map_or("NAME", |pool| pool.name.as_str());
        eprintln!("archivist: {}", words(undone, name));
    }
    if undone.is_empty() { Exit::Done } else { Exit::Failed }
}

fn words(undone: &UndoneJob, pool: &str) -> String {
    format!(
        "the job of {} ended as '{}'; see: archivist pool logs {pool}",
        undone.unit, undone.result
    )
}
