//! `archivist logs`: the journal by the fields that every line of a worker and a hook carries.

use super::exit::{Exit, Failure};
use super::server::decode;
use super::show;
use super::text::short_hook;
use crate::bus::report::Details;
use crate::config::Scope;
use crate::model::Owner;
use clap::Args;
use std::os::unix::process::CommandExt;
use std::process::Command;

#[derive(Args)]
pub struct LogsArgs {
    /// A crawl (c12) or a snapshot (s345)
    #[arg(value_name = "ID")]
    id: Owner,
    /// Only what this plugin or hook wrote
    #[arg(long, value_name = "H")]
    hook: Option<String>,
    /// Go on with new lines as they come
    #[arg(short, long)]
    follow: bool,
    /// Only the last N lines
    #[arg(short = 'n', long, value_name = "N")]
    lines: Option<u32>,
}

pub async fn run(args: LogsArgs, scope: &Scope) -> Result<Exit, Failure> {
    let hooks = match &args.hook {
        Some(hook) => full_names(hook, args.id, scope).await,
        None => Vec::new(),
    };
    let error = Command::new("journalctl")
        .args(arguments(&args, &hooks, scope))
        .exec();
    Err(Failure::failed(format!(
        "failed to run journalctl: {error}; it is part of the package systemd"
    )))
}

/// The names that the journal has for `hook`: it knows hooks by their file names, people by the
/// short ones. Without an orchestrator to ask, the name as it was typed has to do.
async fn full_names(hook: &str, id: Owner, scope: &Scope) -> Vec<String> {
    let mut names = vec![hook.to_owned()];
    let Ok(answer) = show::fetch(id, scope).await else {
        return names;
    };
    let runs = match decode(&answer) {
        Ok(Details::Crawl { runs, .. } | Details::Snapshot { runs, .. }) => runs,
        Err(_) => Vec::new(),
    };
    names.extend(runs.into_iter().filter_map(|run| run.hook));
    names.retain(|name| name == hook || short_hook(name) == hook);
    names.sort();
    names.dedup();
    names
}

/// Arguments of journalctl(1): matches of one group are a conjunction, `+` separates groups.
fn arguments(args: &LogsArgs, hooks: &[String], scope: &Scope) -> Vec<String> {
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
    if scope.instance.is_some() {
        // Ids of two instances are alike.
        out.push(format!("--unit={}-*", scope.unit_prefix()));
    }
    let owner = match args.id {
        Owner::Crawl(id) => format!("ARCHIVIST_CRAWL_ID={}", id.0),
        Owner::Snapshot(id) => format!("ARCHIVIST_SNAPSHOT_ID={}", id.0),
    };
    let Some(hook) = &args.hook else {
        out.push(owner);
        return out;
    };
    let plugin = std::iter::once(format!("ARCHIVIST_PLUGIN={hook}"));
    let hooks = hooks.iter().map(|name| format!("ARCHIVIST_HOOK={name}"));
    for (at, matching) in plugin.chain(hooks).enumerate() {
        if at > 0 {
            out.push("+".to_owned());
        }
        out.extend([owner.clone(), matching]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{CrawlId, SnapshotId};

    fn args(id: Owner) -> LogsArgs {
        LogsArgs {
            id,
            hook: None,
            follow: false,
            lines: None,
        }
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
            arguments(&snapshot, &["on_Snapshot__06_wget".to_owned()], &user).join(" "),
            "--user --follow --lines=5 --unit=archivist-news-* \
             ARCHIVIST_SNAPSHOT_ID=345 ARCHIVIST_PLUGIN=wget \
             + ARCHIVIST_SNAPSHOT_ID=345 ARCHIVIST_HOOK=on_Snapshot__06_wget"
        );
    }
}
