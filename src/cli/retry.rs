//! `archivist retry`: queues failed and skipped results once more.

use super::each::each;
use super::exit::{Exit, Failure};
use super::server::Server;
use crate::config::Scope;
use crate::model::Owner;
use clap::Args;
use std::collections::BTreeMap;

#[derive(Args)]
pub struct RetryArgs {
    /// Crawls (c12) and snapshots (s345)
    #[arg(value_name = "ID", required = true)]
    ids: Vec<Owner>,
    /// Only the results of this plugin or hook
    #[arg(long, value_name = "H", default_value = "", hide_default_value = true)]
    hook: String,
    /// Lay a setting over those of the crawl first; a limit that is raised lets it go on
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = super::add::setting)]
    set: Vec<(String, String)>,
}

pub async fn run(args: RetryArgs, scope: &Scope) -> Result<Exit, Failure> {
    let server = Server::reach(scope).await?;
    let config: BTreeMap<_, _> = args.set.into_iter().collect();
    let settings = serde_json::to_string(&config).unwrap_or_default();
    let retry = async |id: String| {
        if !config.is_empty() {
            server.call(server.proxy().amend(&id, &settings)).await?;
        }
        let count = server.call(server.proxy().retry(&id, &args.hook)).await?;
        Ok(told(&id, &args.hook, count))
    };
    each(&args.ids, retry).await
}

fn told(id: &str, hook: &str, count: u32) -> String {
    let of = match hook {
        "" => String::new(),
        hook => format!(" of {hook}"),
    };
    match count {
        0 => format!("nothing to retry: no failed or skipped result{of} in {id}"),
        1 => format!("1 result{of} of {id} queued again"),
        n => format!("{n} results{of} of {id} queued again"),
    }
}

#[cfg(test)]
mod tests {
    use super::told;

    #[test]
    fn counts_are_told() {
        assert_eq!(told("s3", "", 1), "1 result of s3 queued again");
        assert_eq!(told("c1", "pdf", 7), "7 results of pdf of c1 queued again");
        assert!(told("c1", "pdf", 0).starts_with("nothing to retry"));
    }
}
