//! Checks of watches and pools: files with problems, timers and pools that are not started.

use super::{Check, lighthouse};
use crate::client::hint::shell_word;
use crate::client::server::systemctl;
use crate::client::timers::{self, Timers, start_command};
use archivist_config::declare::watch::Watch;
use archivist_config::declare::{Kind, files};
use archivist_config::{Scope, programs};
use archivist_generator::Pool;
use archivist_shared::bus::documents::watches;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

const NAME: &str = "watches";

pub async fn checks(watches: &[watches::Watch], scope: &Scope) -> Vec<Check> {
    let mut checks = Vec::new();
    if !watches.is_empty() {
        let timers = timers::all(scope).await;
        checks.extend(watch_checks(watches, timers.as_ref(), scope));
        checks.extend(lighthouse::check(watches, scope));
    }
    checks.extend(pool_checks(scope).await);
    checks
}

fn watch_checks(watches: &[watches::Watch], timers: Option<&Timers>, scope: &Scope) -> Vec<Check> {
    let problems = watches.iter().flat_map(|watch| &watch.problems);
    let mut checks: Vec<_> =
        problems.map(|problem| Check::warn(NAME, problem, "see archivist.watch(5)")).collect();
    let Some(timers) = timers else {
        checks.push(Check::warn(
            NAME,
            "failed to read their timers",
            "see the checks of bus and service manager",
        ));
        return checks;
    };
    checks.extend(open_files(scope));
    for watch in watches {
        let idle = timers.not_started(watch);
        if let Some(command) = start_command(&idle, scope) {
            let what = format!("{}: timers not started", watch.name);
            checks.push(Check::warn(NAME, what, command));
        }
    }
    if checks.is_empty() {
        let what = format!("{}, all timers started", watches.len());
        checks.push(Check::ok(NAME, what));
    }
    checks
}

/// Returns a check for each watch whose secrets all users of the machine can read: in its files, or
/// the key of its certificate.
fn open_files(scope: &Scope) -> Vec<Check> {
    let (declarations, _) = files::read(scope);
    let declared = declarations.iter().filter(|it| it.kind == Kind::Watch);
    let mut checks = Vec::new();
    for declaration in declared {
        let (watch, _) = Watch::of(declaration);
        let key = watch.probe.identity.iter().map(|own| PathBuf::from(&own.key));
        let mut secret: Vec<PathBuf> = key.filter(|path| path.is_absolute()).collect();
        if watch.has_secret() {
            // A secret may be in the file itself or in a drop-in.
            let files = declaration.entries.iter().map(|entry| entry.location.file.clone());
            secret.extend(files);
        }
        secret.sort();
        secret.dedup();
        let is_open =
            |path: &PathBuf| std::fs::metadata(path).is_ok_and(|file| file.mode() & 0o004 != 0);
        for path in secret.iter().filter(|path| is_open(path)) {
            checks.push(Check::warn(
                NAME,
                format!("{}: all users can read secrets in '{}'", watch.name, path.display()),
                format!("chmod 0600 {}", shell_word(path)),
            ));
        }
    }
    checks
}

/// Returns a check for each pool that starts at boot and is not started.
async fn pool_checks(scope: &Scope) -> Vec<Check> {
    const NAME: &str = "pools";
    let (declarations, _) = files::read(scope);
    let declared = Pool::all(&declarations);
    let pools: Vec<_> = declared.iter().filter(|pool| pool.at_boot).collect();
    if pools.is_empty() {
        return Vec::new();
    }
    if !programs::POOLS.is_installed() {
        return vec![Check::warn(NAME, programs::POOLS_MISSING, programs::POOLS_FIX)];
    }
    let targets: Vec<_> = pools.iter().map(|pool| pool.target()).collect();
    let Ok(systemd) = timers::connect(scope).await else {
        return Vec::new();
    };
    let Ok(loaded) = systemd.loaded(&targets).await else {
        return Vec::new();
    };
    let is_active = |target: &String| {
        let mut loaded = loaded.iter();
        loaded.any(|unit| unit.name == *target && unit.active_state == "active")
    };
    let idle = pools.iter().zip(&targets).filter(|(_, target)| !is_active(target));
    let checks: Vec<_> = idle
        .map(|(pool, _)| {
            let user = if scope.user { " --user" } else { "" };
            Check::warn(
                NAME,
                format!("{}: not started, although it starts at boot", pool.name),
                format!(
                    "{} daemon-reload && archivist{user} pool start {}",
                    systemctl(scope),
                    pool.name
                ),
            )
        })
        .collect();
    if checks.is_empty() {
        return vec![Check::ok(NAME, format!("{}, all started", pools.len()))];
    }
    checks
}
