//! What can be asked: the bus, the orchestrator, its plugins.

use super::super::exit::Failure;
use super::super::server::{Server, address};
use super::Check;
use crate::bus::report::{Plugins, Status};
use crate::config::Scope;

pub async fn checks(scope: &Scope) -> Vec<Check> {
    if let Err(error) = address(scope).connect().await {
        let (what, fix) = split(&error.to_string());
        return vec![Check::fail("bus", what, fix)];
    }
    let bus = Check::ok("bus", "answers");
    match ask(scope).await {
        Err(failure) => {
            let (what, fix) = split(failure.message());
            vec![bus, Check::fail("orchestrator", what, fix)]
        }
        Ok((status, plugins)) => {
            let mut checks = vec![bus, orchestrator(&status)];
            checks.extend(plugin_checks(&plugins));
            checks
        }
    }
}

async fn ask(scope: &Scope) -> Result<(Status, Plugins), Failure> {
    let server = Server::reach(scope).await?;
    let status = server.ask(server.proxy().status()).await?;
    let plugins = server.ask(server.proxy().plugins()).await?;
    Ok((status, plugins))
}

/// An error's first line, and the hint in the rest.
fn split(message: &str) -> (String, String) {
    let (what, fix) = message.split_once('\n').unwrap_or((message, ""));
    (what.to_owned(), fix.replace('\n', "; "))
}

fn orchestrator(status: &Status) -> Check {
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
        "systemctl restart archivist-orchestrator.service (running work goes on)",
    )
}

fn plugin_checks(plugins: &Plugins) -> Vec<Check> {
    const NAME: &str = "plugins";
    let mut checks = Vec::new();
    let usable = plugins
        .plugins
        .iter()
        .filter(|plugin| plugin.skipped.is_none());
    let usable = usable.filter(|plugin| !plugin.hooks.is_empty()).count();
    checks.push(match usable {
        0 => Check::fail(
            NAME,
            "not one can be run: nothing would be archived",
            "see 'archivist plugins', and PluginPath= and Plugins= in archivist.conf(5)",
        ),
        n => Check::ok(NAME, format!("{n} can be run")),
    });
    for plugin in &plugins.plugins {
        if let Some(why) = &plugin.skipped {
            checks.push(Check::warn(
                NAME,
                format!("{} is not run: {why}", plugin.name),
                fix(why),
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

/// The command that a reason names, if it does.
fn fix(why: &str) -> &str {
    match why.find("apt install ") {
        Some(at) => why[at..].trim_end_matches([')', '.', '\'']),
        None => "see 'archivist plugins' and archivist-hooks(7)",
    }
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;
    use crate::bus::report::{Plugin, Problem};

    #[test]
    fn a_missing_program_names_its_package() {
        let plugin = |name: &str, skipped: Option<&str>| Plugin {
            name: name.into(),
            directory: String::new(),
            description: String::new(),
            hooks: vec!["on_Snapshot__1_x".into()],
            skipped: skipped.map(str::to_owned),
        };
        let mut plugins = Plugins {
            plugins: vec![
                plugin("wget", None),
                plugin("pdf", Some("chromium is missing (apt install chromium)")),
            ],
            problems: vec![Problem {
                path: "/etc/archivist/plugins/x".into(),
                what: "is writable by others".into(),
            }],
        };
        let checks = plugin_checks(&plugins);
        assert_eq!(checks[0], Check::ok("plugins", "1 can be run"));
        assert_eq!(checks[1].fix.as_deref(), Some("apt install chromium"));
        assert_eq!(
            checks[2].what,
            "/etc/archivist/plugins/x: is writable by others"
        );
        plugins.plugins.remove(0);
        assert_eq!(plugin_checks(&plugins)[0].verdict, Verdict::Fail);
    }

    #[test]
    fn hints_are_the_lines_after_the_first() {
        assert_eq!(split("a\nb\nc"), ("a".into(), "b; c".into()));
        assert_eq!(split("a"), ("a".into(), String::new()));
    }
}
