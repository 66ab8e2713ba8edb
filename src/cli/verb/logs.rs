//! `archivist logs`: the journal, selected by the fields that every line of a worker or hook
//! carries, or for the units of a user, whose lines have no such fields, by unit and slice.

use crate::client::details;
use crate::client::exit::{Exit, Failure};
use crate::client::fleet::{Fleet, Local};
use crate::client::journal::believed;
use crate::client::server::{Server, address, decode};
use crate::display::standard_error;
use crate::display::text::short_hook;
use archivist_config::Scope;
use archivist_core::model::{AnyId, Owner, RunId, Time};
use archivist_core::unit::Names;
use archivist_shared::bus::documents::report::{Details, Plugins, Run};
use archivist_shared::journal::unit_field;
use clap::Args;
use std::collections::BTreeSet;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

/// Deadline for the list of runs. Without it, only lines of journald itself, lines that it processed
/// after the end of their unit, and short names of hooks are missed, and with `--user` those of hooks.
const RUNS_TIMEOUT: Duration = Duration::from_secs(5);

/// Show the journal of all units of a crawl or snapshot, or of a single run
#[derive(Args)]
pub struct LogsArgs {
    /// A crawl (c12), a snapshot (s345) or a run (r678)
    #[arg(value_name = "ID")]
    id: AnyId,
    /// Show only the output of this plugin or hook; not with a run
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
            let mut known = known(id, scope).await;
            if known.runs.is_empty() {
                elsewhere(id, scope).await?;
            }
            if !(scope.user && args.follow) {
                known.hooks.clear();
            }
            eprint!("{}", standard_error::lines(&known.runs));
            of_owner(id, &args, &known, &believed(scope), scope)
        }
        AnyId::Run(id) => {
            let run = known_run(id, &args, scope).await?;
            eprint!("{}", standard_error::lines(std::slice::from_ref(&run)));
            of_run(&run, &args, scope)
        }
    };
    let error = Command::new("journalctl").args(arguments).exec();
    Err(Failure::failed(format!(
        "failed to run journalctl: {error}; it is part of the package systemd"
    )))
}

/// What the orchestrator knows about a crawl or snapshot.
#[derive(Default)]
struct Known {
    /// When it was added. Older lines with its id are of an archive that was deleted, or of the time after
    /// the backup that was restored.
    since: Option<Time>,
    runs: Vec<Run>,
    /// Plugin and file name, without the last extension, of the hooks that may start.
    hooks: Vec<(String, String)>,
}

/// Returns what is known about `id` if an orchestrator is up and answers soon. The journal is
/// readable without it, and explains why it is down.
async fn known(id: Owner, scope: &Scope) -> Known {
    let ask = async {
        if !address(scope).is_up().await {
            return None;
        }
        let server = Server::reach(scope).await.ok()?;
        let id = id.to_string();
        let details: Details = server.ask(|| server.proxy().show(&id)).await.ok()?;
        let plugins: Plugins = server.ask(|| server.proxy().plugins()).await.ok()?;
        let hooks = plugins.plugins.into_iter().flat_map(|plugin| {
            let name = plugin.name;
            let hooks = plugin.hooks.into_iter();
            hooks.map(move |hook| (name.clone(), hook))
        });
        let added_at = match &details {
            Details::Crawl { crawl, .. } => Some(crawl.created_at),
            Details::Snapshot { snapshot, .. } => Some(snapshot.created_at),
            Details::Run { .. } => None,
        };
        let runs = details.runs().to_vec();
        // The clock of the node that added it, or of this machine, may have been set back.
        let since = added_at.into_iter().chain(runs.iter().filter_map(|run| run.started_at)).min();
        Some(Known { since, runs, hooks: hooks.collect() })
    };
    let answer = tokio::time::timeout(RUNS_TIMEOUT, ask).await;
    answer.ok().flatten().unwrap_or_default()
}

/// Refuses to show the journal of this machine for what ran on another node.
async fn elsewhere(id: Owner, scope: &Scope) -> Result<(), Failure> {
    let Ok(Some(fleet)) = Fleet::reach(scope, Local::default()).await else {
        return Ok(());
    };
    let nodes = match fleet.show(id).await {
        Ok(Details::Crawl { crawl, .. }) => crawl.nodes,
        Ok(Details::Snapshot { snapshot, .. }) => snapshot.node.into_iter().collect(),
        _ => Vec::new(),
    };
    if nodes.is_empty() || nodes.iter().any(|node| fleet.is_here(Some(node))) {
        return Ok(());
    }
    Err(Failure::failed(on_nodes(id, &nodes)))
}

fn on_nodes(id: Owner, nodes: &[String]) -> String {
    let nodes = nodes.join(", ");
    format!("the journal of {id} is on {nodes}; run there: archivist logs {id}")
}

/// Returns the run of this id. Its unit is known to the orchestrator alone.
async fn known_run(id: RunId, args: &LogsArgs, scope: &Scope) -> Result<Run, Failure> {
    if args.hook.is_some() {
        let why = format!("--hook selects hooks of a crawl or snapshot; {id} is a single run");
        return Err(Failure::usage(why));
    }
    match decode(&details::fetch(AnyId::Run(id), Local::default(), scope).await?)? {
        Details::Run { run, .. } => Ok(*run),
        _ => Err(Failure::failed(format!("there is no run {id}"))),
    }
}

/// Lines that journalctl(1) shows first with `--follow` and without `--since`.
const LINES_BEFORE: u32 = 10;

/// Returns the options of journalctl(1) that follow from those of the command line, for lines since this
/// time.
fn options(args: &LogsArgs, since: Option<Time>, scope: &Scope) -> Vec<String> {
    let mut out = Vec::new();
    if scope.user {
        out.push("--user".to_owned());
    }
    if args.follow {
        out.push("--follow".to_owned());
    }
    let lines = args.lines.or(args.follow.then_some(LINES_BEFORE));
    out.extend(lines.map(|lines| format!("--lines={lines}")));
    out.extend(since.map(|time| format!("--since=@{}", time.0.div_euclid(1000))));
    out
}

/// Returns the arguments of journalctl(1) for one run: by its invocation, or until that is recorded
/// at the end of the run, by the unit since its start. Matches of the lines of the unit, of the
/// service manager and of journald, see systemd.journal-fields(7).
fn of_run(run: &Run, args: &LogsArgs, scope: &Scope) -> Vec<String> {
    let manager = if scope.user { "USER_" } else { "" };
    let since = run.started_at.filter(|_| run.invocation.is_none());
    let mut out = options(args, since, scope);
    let matches = match &run.invocation {
        Some(invocation) => [
            format!("_SYSTEMD_INVOCATION_ID={invocation}"),
            format!("{manager}INVOCATION_ID={invocation}"),
        ],
        None => {
            let unit = &run.unit;
            [format!("_SYSTEMD_{manager}UNIT={unit}"), format!("{manager}UNIT={unit}")]
        }
    };
    let [of_unit, about_unit] = matches;
    out.extend([of_unit, "+".to_owned(), about_unit]);
    out
}

/// Returns whether `--hook` selects a hook: by plugin, or by the full or short name of the hook.
fn is_of(plugin: Option<&str>, hook: Option<&str>, asked: &str) -> bool {
    plugin == Some(asked) || hook.is_some_and(|hook| hook == asked || short_hook(hook) == asked)
}

/// Returns the arguments of journalctl(1): matches of one group are a conjunction, `+` separates
/// groups.
fn of_owner(
    id: Owner,
    args: &LogsArgs,
    known: &Known,
    believed: &[String],
    scope: &Scope,
) -> Vec<String> {
    let asked = args.hook.as_deref();
    let is_asked = |plugin: Option<&str>, hook: Option<&str>| {
        asked.is_none_or(|asked| is_of(plugin, hook, asked))
    };
    let runs = known.runs.iter();
    let runs: Vec<&Run> =
        runs.filter(|run| is_asked(run.plugin.as_deref(), run.hook.as_deref())).collect();
    let mut groups = Vec::new();
    for owner in of_instance(id, scope) {
        let groups_of_hook = of_hook(owner, asked, &runs).into_iter();
        groups.extend(groups_of_hook.map(|group| [group, believed.to_vec()].concat()));
    }
    if scope.user {
        let names = Names::new(scope.unit_prefix());
        let planned = known.hooks.iter();
        let planned = planned
            .filter(|(plugin, hook)| is_asked(Some(plugin), Some(hook)))
            .map(|(plugin, hook)| names.hook(plugin, short_hook(hook), id));
        let mut units: BTreeSet<String> = runs.iter().map(|run| run.unit.clone()).collect();
        units.extend(planned);
        groups.push(matches("_SYSTEMD_USER_UNIT", units));
        if let (Owner::Crawl(id), None) = (id, asked) {
            groups.push(vec![format!("_SYSTEMD_USER_SLICE={}", names.crawl_slice(id))]);
        }
    } else {
        // journald looks the fields of a line up when it processes the line. If the unit is gone by
        // then, the line has none of ours, but still the name of the unit.
        let units: BTreeSet<String> = runs.iter().map(|run| run.unit.clone()).collect();
        groups.push(matches("_SYSTEMD_UNIT", units));
    }
    // Lines of journald itself, such as suppressed messages, carry no field of ours but the name of
    // the unit.
    let suppressed = matches(unit_field(scope.user), runs.iter().map(|run| run.unit.clone()));
    if !suppressed.is_empty() {
        groups.push([vec!["_UID=0".to_owned()], suppressed].concat());
    }
    groups.retain(|group| !group.is_empty());
    let mut out = options(args, known.since, scope);
    out.extend(groups.join(&"+".to_owned()));
    out
}

fn matches(field: &str, values: impl IntoIterator<Item = String>) -> Vec<String> {
    let values = values.into_iter();
    values.map(|value| format!("{field}={value}")).collect()
}

/// Returns the matches of the lines with this id. Two instances may use the same ids: units of an
/// instance have a field with its name, and the messages of its orchestrator the name of its unit.
fn of_instance(id: Owner, scope: &Scope) -> Vec<Vec<String>> {
    let owner = match id {
        Owner::Crawl(id) => format!("ARCHIVIST_CRAWL_ID={}", id.0),
        Owner::Snapshot(id) => format!("ARCHIVIST_SNAPSHOT_ID={}", id.0),
    };
    let Some(instance) = &scope.instance else {
        return vec![vec![owner]];
    };
    let manager = if scope.user { "USER_" } else { "" };
    let orchestrator = scope.orchestrator_unit();
    vec![
        vec![owner.clone(), format!("ARCHIVIST_INSTANCE={instance}")],
        vec![owner, format!("_SYSTEMD_{manager}UNIT={orchestrator}")],
    ]
}

/// Returns the matches of the lines of one hook, or the given ones.
fn of_hook(owner: Vec<String>, asked: Option<&str>, runs: &[&Run]) -> Vec<Vec<String>> {
    let Some(asked) = asked else {
        return vec![owner];
    };
    // The journal has the file names of hooks, users type the short ones. The hook of an unknown
    // run is matched as typed.
    let hooks = runs.iter().filter_map(|run| run.hook.as_deref());
    let hooks: BTreeSet<&str> = hooks.chain([asked]).collect();
    let hooks = hooks.iter().map(|hook| format!("ARCHIVIST_HOOK={hook}"));
    [format!("ARCHIVIST_PLUGIN={asked}")]
        .into_iter()
        .chain(hooks)
        .map(|hook| [&owner[..], &[hook]].concat())
        .collect()
}

#[cfg(test)]
mod tests;
