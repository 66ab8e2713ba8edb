//! `archivist list`: crawls, snapshots, results or runs, newest first.

use super::exit::{Exit, Failure};
use super::look::{self, Look};
use super::rows;
use super::server::{Server, decode};
use super::text;
use crate::bus::report::{Crawl, Filter, HookResult, Run, Snapshot};
use crate::config::Scope;
use crate::model::Owner;
use clap::{Args, ValueEnum};

#[derive(Args)]
pub struct ListArgs {
    /// What to list
    #[arg(value_enum)]
    what: What,
    /// Only what belongs to this crawl (c12) or snapshot (s345)
    #[arg(value_name = "ID")]
    owner: Option<Owner>,
    /// Only what is in this state, such as failed
    #[arg(long, value_name = "S")]
    status: Option<String>,
    /// At most so many; 0 for all
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    Crawls,
    Snapshots,
    Results,
    Runs,
}

impl What {
    fn as_str(self) -> &'static str {
        match self {
            What::Crawls => "crawls",
            What::Snapshots => "snapshots",
            What::Results => "results",
            What::Runs => "runs",
        }
    }

    fn states(self) -> Vec<&'static str> {
        match self {
            What::Crawls | What::Snapshots => text::lifecycles().to_vec(),
            What::Results => text::result_states().to_vec(),
            What::Runs => vec!["starting", "running", "ended"],
        }
    }
}

pub async fn run(args: ListArgs, scope: &Scope) -> Result<Exit, Failure> {
    if let Some(status) = &args.status {
        check_status(args.what, status)?;
    }
    let filter = serde_json::to_string(&Filter {
        status: args.status,
        owner: args.owner,
        limit: args.limit,
        ..Filter::default()
    })
    .map_err(|error| Failure::failed(format!("failed to write the filter: {error}")))?;
    let server = Server::reach(scope).await?;
    let call = server.proxy().list(args.what.as_str(), &filter);
    let answer = server.call(call).await?;
    if args.json {
        look::print_json(&answer)?;
        return Ok(Exit::Done);
    }
    let look = Look::of_stdout();
    let table = match args.what {
        What::Crawls => rows::crawls(&decode::<Vec<Crawl>>(&answer)?, &look),
        What::Snapshots => rows::snapshots(&decode::<Vec<Snapshot>>(&answer)?, &look),
        What::Results => rows::results(&decode::<Vec<HookResult>>(&answer)?, &look, true),
        What::Runs => rows::runs(&decode::<Vec<Run>>(&answer)?, &look),
    };
    if table.is_empty() {
        eprintln!("no {}", args.what.as_str());
        return Ok(Exit::Done);
    }
    look::print(&table.render(&look))?;
    if args.limit > 0 && table.len() >= args.limit as usize {
        eprintln!("the newest {}; --limit 0 shows all", args.limit);
    }
    Ok(Exit::Done)
}

fn check_status(what: What, status: &str) -> Result<(), Failure> {
    let states = what.states();
    match states.contains(&status) {
        true => Ok(()),
        false => Err(Failure::usage(format!(
            "'{status}' is not a state of {}; there are {}",
            what.as_str(),
            states.join(", ")
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_checked_before_anybody_is_asked() {
        let error = check_status(What::Crawls, "failed").unwrap_err();
        assert_eq!(error.exit(), Exit::Usage);
        assert_eq!(
            error.message(),
            "'failed' is not a state of crawls; there are queued, started, sealed, paused, cancelled"
        );
        assert!(check_status(What::Results, "failed").is_ok());
        assert!(check_status(What::Runs, "running").is_ok());
    }
}
