//! Checks that ask over the bus: the service manager, the orchestrator, its plugins.

use super::{Check, health, watches};
use crate::client::exit::Failure;
use crate::client::paging::Paging;
use crate::client::server::{Server, address, systemctl};
use crate::display::text;
use crate::machine::pages::unknown_pages;
use archivist_config::Scope;
use archivist_shared::bus::documents::report::{Filter, Host, Plugins, Status};
use archivist_shared::bus::documents::watches::Watch;
use archivist_shared::bus::wire::{StoreProxy, WatchesProxy};
use nix::unistd::geteuid;
use std::path::PathBuf;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(10);

/// Oldest supported version of systemd.
const SYSTEMD_NEEDED: u32 = 252;

pub async fn checks(scope: &Scope) -> Vec<Check> {
    let address = address(scope);
    let connection = match address.connect().await {
        Ok(connection) => connection,
        Err(error) => {
            let (what, fix) = split(&error.to_string());
            return vec![Check::fail("bus", what, fix)];
        }
    };
    let mut checks = vec![Check::ok("bus", "answers")];
    checks.push(manager(manager_version(&connection).await, scope));
    match ask(scope).await {
        Err(failure) => {
            checks.push(silent_orchestrator(failure.message(), scope));
        }
        Ok(answers) => {
            checks.push(orchestrator(&answers.status, scope));
            checks.push(network(&answers.status, scope));
            checks.extend(store(answers.store, &answers.status));
            checks.extend(plugin_checks(&answers.plugins));
            checks.extend(health::checks(&answers.status, &answers.hosts));
            checks.extend(health::unknown_pages(&answers.unknown));
            checks.extend(watches::checks(&answers.watches, scope).await);
        }
    }
    checks
}

/// Checks the version that the service manager on this bus reports (org.freedesktop.systemd1(5)).
async fn manager_version(connection: &zbus::Connection) -> Result<String, String> {
    let call = connection.call_method(
        Some("org.freedesktop.systemd1"),
        "/org/freedesktop/systemd1",
        Some("org.freedesktop.DBus.Properties"),
        "Get",
        &("org.freedesktop.systemd1.Manager", "Version"),
    );
    let reply = tokio::time::timeout(PATIENCE, call)
        .await
        .map_err(|_| format!("no answer within {} s", PATIENCE.as_secs()))?
        .map_err(|error| error.to_string())?;
    let version: zbus::OwnedVariant =
        reply.body().deserialize().map_err(|error| error.to_string())?;
    String::try_from(version).map_err(|error| error.to_string())
}

fn manager(version: Result<String, String>, scope: &Scope) -> Check {
    const NAME: &str = "service manager";
    let version = match version {
        Ok(version) => version,
        Err(why) => {
            return Check::fail(
                NAME,
                format!("does not answer on this bus: {why}"),
                format!("see: {} status", systemctl(scope)),
            );
        }
    };
    let digits = version.trim_start_matches('v');
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    match digits[..end].parse::<u32>() {
        Ok(number) if number < SYSTEMD_NEEDED => Check::fail(
            NAME,
            format!("systemd {version} is too old"),
            format!("systemd {SYSTEMD_NEEDED} or newer is needed: Debian 12, Ubuntu 24.04"),
        ),
        _ => Check::ok(NAME, format!("systemd {version}")),
    }
}

struct Answers {
    status: Status,
    plugins: Plugins,
    hosts: Vec<Host>,
    watches: Vec<Watch>,
    /// Directories of pages that the database does not know.
    unknown: Vec<PathBuf>,
    /// The tested store, or why the test failed; `None` if it was not tested: there is none, or the caller is
    /// not root.
    store: Option<Result<String, String>>,
}

async fn ask(scope: &Scope) -> Result<Answers, Failure> {
    let server = Server::reach(scope).await?;
    let status: Status = server.ask(|| server.proxy().status()).await?;
    let store = match status.store {
        Some(_) if scope.user || geteuid().is_root() => Some(tested(&server).await),
        _ => None,
    };
    Ok(Answers {
        unknown: unknown_pages(&server, &status, scope).await?,
        status,
        store,
        plugins: server.ask(|| server.proxy().plugins()).await?,
        hosts: hosts(&server).await,
        watches: server
            .ask(|| async { server.feature::<WatchesProxy<'_>>().await?.list("").await })
            .await?,
    })
}

/// Has a transfer test the store. Its own time limit ends it.
async fn tested(server: &Server) -> Result<String, String> {
    let tested =
        server.wait_for(|| async { server.feature::<StoreProxy<'_>>().await?.test().await }).await;
    tested.map_err(|failure| failure.message().to_owned())
}

fn store(tested: Option<Result<String, String>>, status: &Status) -> Vec<Check> {
    const NAME: &str = "store";
    let fix = "see Store= in archivist.conf(5), and: journalctl -u 'archivist-store-*'";
    let mut checks = match tested {
        None if status.store.is_some() => {
            vec![Check::skipped(NAME, "only root may have it tested")]
        }
        None => Vec::new(),
        Some(Ok(store)) => vec![Check::ok(NAME, format!("{store} can be written and read"))],
        Some(Err(why)) => vec![Check::fail(NAME, why, fix)],
    };
    let failed = status.store.iter().filter(|store| store.failed > 0);
    checks.extend(failed.map(|store| {
        let why = store.reason.clone().unwrap_or_default();
        let what = format!("{} pages are not copied yet; {why}", store.failed);
        Check::warn(NAME, what, fix)
    }));
    checks
}

/// Returns the web hosts of the newest results; none if the orchestrator is older than this list.
async fn hosts(server: &Server) -> Vec<Host> {
    let hosts = Paging::new(server, Filter::default()).collect().await;
    hosts.unwrap_or_default()
}

/// Returns the first line of an error, and the rest as its hint.
fn split(message: &str) -> (String, String) {
    let (what, fix) = message.split_once('\n').unwrap_or((message, ""));
    (what.to_owned(), fix.replace('\n', "; "))
}

/// Returns the check for an orchestrator that does not answer, with the fix that the message has.
fn silent_orchestrator(message: &str, scope: &Scope) -> Check {
    let (what, fix) = split(message);
    let unit = scope.orchestrator_unit();
    let fix = match &fix[..] {
        "" => format!("see: {} status {unit}", systemctl(scope)),
        _ => fix,
    };
    Check::fail("orchestrator", what, fix)
}

fn orchestrator(status: &Status, scope: &Scope) -> Check {
    let ours = env!("CARGO_PKG_VERSION");
    if status.version == ours {
        return Check::ok(
            "orchestrator",
            format!("{} with systemd {}", status.version, status.systemd),
        );
    }
    Check::warn(
        "orchestrator",
        format!("is version {}, this command is {ours}", status.version),
        format!(
            "{} restart {} (running work continues)",
            systemctl(scope),
            scope.orchestrator_unit()
        ),
    )
}

fn network(status: &Status, scope: &Scope) -> Check {
    const NAME: &str = "network";
    if let Some(outage) = &status.network_outage {
        const FIX: &str = "pages wait and continue by themselves; see: resolvectl status; ip route";
        return Check::fail(NAME, outage.clone(), FIX);
    }
    let what = text::network(status);
    match status.address_filter {
        Some(false) if scope.user => Check::warn(
            NAME,
            what,
            "a user's service manager cannot refuse addresses: hooks reach what you reach, see Network= in archivist.conf(5)",
        ),
        Some(false) => Check::warn(
            NAME,
            what,
            "hooks in the machine's network, and checks, reach private networks and metadata services: apt install passt iproute2, and see Network= in archivist.conf(5)",
        ),
        _ => Check::ok(NAME, what),
    }
}

fn plugin_checks(plugins: &Plugins) -> Vec<Check> {
    const NAME: &str = "plugins";
    let mut checks = Vec::new();
    let usable = plugins.plugins.iter().filter(|plugin| plugin.skipped.is_none());
    let usable = usable.filter(|plugin| !plugin.hooks.is_empty()).count();
    checks.push(match usable {
        0 => Check::fail(
            NAME,
            "none can run: nothing would be archived",
            "see 'archivist plugins', and PluginPath= and Plugins= in archivist.conf(5)",
        ),
        n => Check::ok(NAME, format!("{n} can run")),
    });
    for plugin in &plugins.plugins {
        if let Some(why) = &plugin.skipped
            && !plugin.by_choice
        {
            checks.push(Check::warn(
                NAME,
                format!("{} does not run: {why}", plugin.name),
                plugin.fix.as_deref().unwrap_or("see 'archivist plugins' and archivist-hooks(7)"),
            ));
        }
    }
    for problem in &plugins.problems {
        checks.push(Check::warn(
            NAME,
            format!("{}: {}", problem.path, problem.what),
            "see archivist-hooks(7)",
        ));
    }
    checks
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;
    use archivist_shared::bus::documents::report::{Plugin, PluginProblem, Uses};

    #[test]
    fn a_missing_program_names_its_package() {
        let plugin = |name: &str, skipped: Option<&str>| Plugin {
            name: name.into(),
            directory: String::new(),
            description: String::new(),
            hooks: vec!["on_Snapshot__1_x".into()],
            skipped: skipped.map(str::to_owned),
            by_choice: skipped == Some("not selected"),
            fix: skipped.map(|_| "apt install chromium".to_owned()),
            uses: Uses::default(),
        };
        let mut plugins = Plugins {
            plugins: vec![
                plugin("wget", None),
                plugin("dom", Some("not selected")),
                plugin("pdf", Some("program 'chromium' not found: apt install chromium")),
            ],
            problems: vec![PluginProblem {
                path: "/etc/archivist/plugins/x".into(),
                what: "is writable by others".into(),
            }],
        };
        let checks = plugin_checks(&plugins);
        assert_eq!(checks[0], Check::ok("plugins", "1 can run"));
        assert_eq!(checks[1].fix(), Some("apt install chromium"));
        assert_eq!(checks[2].what, "/etc/archivist/plugins/x: is writable by others");
        plugins.plugins.remove(0);
        assert_eq!(plugin_checks(&plugins)[0].verdict(), Verdict::Fail);
    }

    #[test]
    fn versions_of_systemd() {
        let verdict = |text: &str| manager(Ok(text.into()), &Scope::system("/")).verdict();
        assert_eq!(verdict("252.39-1~deb12u1"), Verdict::Ok);
        assert_eq!(verdict("257"), Verdict::Ok);
        assert_eq!(verdict("v249.11"), Verdict::Fail);
        let silent = manager(Err("no answer".into()), &Scope::system("/"));
        assert_eq!(silent.verdict(), Verdict::Fail);
    }

    #[test]
    fn hints_are_the_lines_after_the_first() {
        assert_eq!(split("a\nb\nc"), ("a".into(), "b; c".into()));
        assert_eq!(split("a"), ("a".into(), String::new()));
        let fix = |message: &str| {
            let check = silent_orchestrator(message, &Scope::system("/"));
            check.fix().unwrap().to_owned()
        };
        assert_eq!(fix("a\nsee: b"), "see: b");
        assert_eq!(fix("a"), "see: systemctl status archivist-orchestrator.service");
    }
}
