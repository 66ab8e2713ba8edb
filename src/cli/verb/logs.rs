//! `archivist logs`: the journal, selected by the fields that every line of a worker or hook
//! carries.

use crate::client::exit::{Exit, Failure};
use crate::client::server::{Server, address, decode};
use crate::display::text::short_hook;
use crate::verb::show;
use archivist_core::model::{AnyId, Owner, RunId};
use archivist_shared::bus::documents::report::{Details, Run};
use archivist_shared::config::Scope;
use archivist_shared::journal::unit_field;
use clap::Args;
use std::collections::BTreeSet;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

/// Deadline for the list of runs. Without it, only lines of journald itself and short names of
/// hooks are missed.
const RUNS_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Args)]
pub struct LogsArgs {
    /// A crawl (c12), a snapshot (s345) or a run (r678)
    #[arg(value_name = "ID")]
    id: AnyId,
    /// Show only what this plugin or hook wrote
    #[arg(long, value_name = "H")]
    hook: Option<String>,
    /// Show new lines as they arrive
    #[arg(short, long)]
    follow: bool,
    /// Show only the last N lines
    #[arg(short = 'n', long, value_name = "N")]
    lines: Option<u32>,
}

pub async fn run(args: LogsArgs, scope: &Scope) -> Result<Exit, Failure> {
    let arguments = match args.id {
        AnyId::Owner(id) => {
            let runs = known_runs(id, scope).await;
            of_owner(id, &args, &runs, scope)
        }
        AnyId::Run(id) => of_run(&known_run(id, &args, scope).await?, &args, scope),
    };
    let error = Command::new("journalctl").args(arguments).exec();
    Err(Failure::failed(format!(
        "failed to run journalctl: {error}; it is part of the package systemd"
    )))
}

/// Returns the runs of `id` if an orchestrator is up and answers soon. The journal is readable
/// without it, and explains why it is down.
async fn known_runs(id: Owner, scope: &Scope) -> Vec<Run> {
    let ask = async {
        if !address(scope).is_up().await {
            return None;
        }
        let server = Server::reach(scope).await.ok()?;
        let id = id.to_string();
        let details: Details = server.ask(|| server.proxy().show(&id)).await.ok()?;
        Some(details.runs().to_vec())
    };
    let answer = tokio::time::timeout(RUNS_TIMEOUT, ask).await;
    answer.ok().flatten().unwrap_or_default()
}

/// Returns the run of this id. Its unit is known to the orchestrator alone.
async fn known_run(id: RunId, args: &LogsArgs, scope: &Scope) -> Result<Run, Failure> {
    if args.hook.is_some() {
        let why = format!("--hook selects hooks of a crawl or snapshot; {id} is a single run");
        return Err(Failure::usage(why));
    }
    match decode(&show::fetch(AnyId::Run(id), scope).await?)? {
        Details::Run { run, .. } => Ok(*run),
        _ => Err(Failure::failed(format!("there is no run {id}"))),
    }
}

/// Returns the options of journalctl(1) that follow from those of the command line.
fn options(args: &LogsArgs, scope: &Scope) -> Vec<String> {
    let mut out = Vec::new();
    if scope.user {
        out.push("--user".to_owned());
    }
    if args.follow {
        out.push("--follow".to_owned());
    }
    if let Some(lines) = args.lines {
        out.push(format!("--lines={lines}"));
    }
    out
}

/// Returns the arguments of journalctl(1) for one run: by its invocation, or until that is recorded
/// at the end of the run, by the unit since its start. Matches of the lines of the unit, of the
/// service manager and of journald, see systemd.journal-fields(7).
fn of_run(run: &Run, args: &LogsArgs, scope: &Scope) -> Vec<String> {
    let manager = if scope.user { "USER_" } else { "" };
    let mut out = options(args, scope);
    let matches = match &run.invocation {
        Some(invocation) => [
            format!("_SYSTEMD_INVOCATION_ID={invocation}"),
            format!("{manager}INVOCATION_ID={invocation}"),
        ],
        None => {
            if let Some(start) = run.started_at {
                out.push(format!("--since=@{}", start.0.div_euclid(1000)));
            }
            let unit = &run.unit;
            [
                format!("_SYSTEMD_{manager}UNIT={unit}"),
                format!("{manager}UNIT={unit}"),
            ]
        }
    };
    let [of_unit, about_unit] = matches;
    out.extend([of_unit, "+".to_owned(), about_unit]);
    out
}

/// Returns whether `--hook` selects `run`: by plugin, or by the full or short name of the hook.
fn is_of(run: &Run, asked: &str) -> bool {
    run.plugin.as_deref() == Some(asked)
        || run
            .hook
            .as_deref()
            .is_some_and(|hook| hook == asked || short_hook(hook) == asked)
}

/// Returns the arguments of journalctl(1): matches of one group are a conjunction, `+` separates
/// groups.
fn of_owner(id: Owner, args: &LogsArgs, runs: &[Run], scope: &Scope) -> Vec<String> {
    let mut out = options(args, scope);
    if scope.instance.is_some() {
        // Two instances may use the same ids.
        out.push(format!("--unit={}-*", scope.unit_prefix()));
    }
    let owner = match id {
        Owner::Crawl(id) => format!("ARCHIVIST_CRAWL_ID={}", id.0),
        Owner::Snapshot(id) => format!("ARCHIVIST_SNAPSHOT_ID={}", id.0),
    };
    match &args.hook {
        None => out.push(owner),
        Some(asked) => {
            // The journal has the file names of hooks, users type the short ones. The hook of an
            // unknown run is matched as typed.
            let hooks: BTreeSet<&str> = runs
                .iter()
                .filter(|run| is_of(run, asked))
                .filter_map(|run| run.hook.as_deref())
                .chain([asked.as_str()])
                .collect();
            out.extend([owner.clone(), format!("ARCHIVIST_PLUGIN={asked}")]);
            for hook in hooks {
                out.extend(["+".into(), owner.clone(), format!("ARCHIVIST_HOOK={hook}")]);
            }
        }
    }
    // Lines of journald itself, such as suppressed messages, carry no field of ours but the name of
    // the unit.
    let field = unit_field(scope.user);
    let mut units = runs
        .iter()
        .filter(|run| args.hook.as_deref().is_none_or(|asked| is_of(run, asked)))
        .map(|run| format!("{field}={}", run.unit))
        .peekable();
    if units.peek().is_some() {
        out.extend(["+".to_owned(), "_UID=0".to_owned()]);
        out.extend(units);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use archivist_core::model::{CrawlId, SnapshotId};

    fn args(id: Owner) -> LogsArgs {
        LogsArgs {
            id: AnyId::Owner(id),
            hook: None,
            follow: false,
            lines: None,
        }
    }

    /// The arguments for the id that `args` name.
    fn arguments(args: &LogsArgs, runs: &[Run], scope: &Scope) -> Vec<String> {
        match args.id {
            AnyId::Owner(id) => of_owner(id, args, runs, scope),
            AnyId::Run(_) => of_run(&runs[0], args, scope),
        }
    }

    #[test]
    fn a_run_is_selected_by_its_invocation_or_by_its_unit() {
        let scope = Scope::system("/");
        let mut run = sample::run(7, "wget", "on_Snapshot__06_wget");
        let asked = LogsArgs {
            id: AnyId::Run(RunId(7)),
            ..args(Owner::Crawl(CrawlId(1)))
        };
        let id = "0123456789abcdef0123456789abcdef";
        assert_eq!(
            arguments(&asked, &[run.clone()], &scope),
            [
                format!("_SYSTEMD_INVOCATION_ID={id}"),
                "+".to_owned(),
                format!("INVOCATION_ID={id}")
            ]
        );
        run.invocation = None;
        let unit = &run.unit.clone();
        let user = Scope {
            user: true,
            ..scope
        };
        assert_eq!(
            arguments(&asked, &[run], &user),
            [
                "--user".to_owned(),
                "--since=@1795253045".to_owned(),
                format!("_SYSTEMD_USER_UNIT={unit}"),
                "+".to_owned(),
                format!("USER_UNIT={unit}")
            ]
        );
    }

    #[test]
    fn fields_and_flags_of_journalctl() {
        let scope = Scope::system("/");
        let crawl = args(Owner::Crawl(CrawlId(12)));
        assert_eq!(arguments(&crawl, &[], &scope), ["ARCHIVIST_CRAWL_ID=12"]);
        let snapshot = LogsArgs {
            hook: Some("wget".into()),
            follow: true,
            lines: Some(5),
            ..args(Owner::Snapshot(SnapshotId(345)))
        };
        let user = Scope {
            user: true,
            instance: Some("news".into()),
            ..scope
        };
        assert_eq!(
            arguments(&snapshot, &[], &user).join(" "),
            "--user --follow --lines=5 --unit=archivist-news-* \
             ARCHIVIST_SNAPSHOT_ID=345 ARCHIVIST_PLUGIN=wget \
             + ARCHIVIST_SNAPSHOT_ID=345 ARCHIVIST_HOOK=wget"
        );
    }

    #[test]
    fn a_short_hook_name_selects_its_lines_and_those_of_journald() {
        let scope = Scope::system("/");
        let runs = [
            sample::run(1, "wget", "on_Snapshot__06_wget"),
            sample::run(2, "title", "on_Snapshot__54_title"),
        ];
        let [wget, title] = [&runs[0].unit, &runs[1].unit];
        let asked = LogsArgs {
            hook: Some("wget".into()),
            ..args(Owner::Snapshot(SnapshotId(345)))
        };
        assert_eq!(
            arguments(&asked, &runs, &scope).join(" "),
            format!(
                "ARCHIVIST_SNAPSHOT_ID=345 ARCHIVIST_PLUGIN=wget \
                 + ARCHIVIST_SNAPSHOT_ID=345 ARCHIVIST_HOOK=on_Snapshot__06_wget \
                 + ARCHIVIST_SNAPSHOT_ID=345 ARCHIVIST_HOOK=wget \
                 + _UID=0 OBJECT_SYSTEMD_UNIT={wget}"
            )
        );
        let all = args(Owner::Snapshot(SnapshotId(345)));
        assert_eq!(
            arguments(&all, &runs, &scope).join(" "),
            format!(
                "ARCHIVIST_SNAPSHOT_ID=345 \
                 + _UID=0 OBJECT_SYSTEMD_UNIT={wget} OBJECT_SYSTEMD_UNIT={title}"
            )
        );
    }
}
