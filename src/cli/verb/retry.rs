//! `archivist retry`: queues failed and skipped results again.

use crate::client::exit::{Exit, Failure};
use crate::client::server::Server;
use crate::display::style;
use crate::verb::each::each;
use archivist_core::model::Owner;
use archivist_shared::config::Scope;
use clap::Args;
use std::collections::BTreeMap;

#[derive(Args)]
pub struct RetryArgs {
    /// Crawls (c12) and snapshots (s345)
    #[arg(value_name = "ID", required_unless_present = "failed")]
    ids: Vec<Owner>,
    /// Retry every page with a failed result; cancelled pages are left alone
    #[arg(long, conflicts_with_all = ["ids", "set"])]
    failed: bool,
    /// Run all hooks again, also those that succeeded
    #[arg(long, conflicts_with_all = ["failed", "hook"])]
    all: bool,
    /// Retry only the results of this plugin or hook, which also runs where it has none
    #[arg(long, value_name = "H", default_value = "", hide_default_value = true)]
    hook: String,
    /// Change a setting of the crawl first; a raised limit lets the crawl continue
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = crate::verb::add::setting)]
    set: Vec<(String, String)>,
}

pub async fn run(args: RetryArgs, scope: &Scope) -> Result<Exit, Failure> {
    let server = Server::reach(scope).await?;
    if args.failed {
        let count = server
            .call_once(server.proxy().retry("", &args.hook))
            .await?;
        style::print(&format!("{}\n", summary_of_all(&args.hook, count)))?;
        return Ok(Exit::Done);
    }
    let config: BTreeMap<_, _> = args.set.into_iter().collect();
    let settings = serde_json::to_string(&config).unwrap_or_default();
    let retry = async |id: String| {
        if !config.is_empty() {
            server.call(|| server.proxy().amend(&id, &settings)).await?;
        }
        let count = if args.all {
            server.call_once(server.proxy().retry_all(&id)).await?
        } else {
            let call = server.proxy().retry(&id, &args.hook);
            server.call_once(call).await?
        };
        Ok(summary(&id, &args.hook, count))
    };
    each(&args.ids, retry).await
}

fn summary(id: &str, hook: &str, count: u32) -> String {
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

fn summary_of_all(hook: &str, count: u32) -> String {
    match (hook, count) {
        ("", 0) => "nothing to retry: no page has a failed result".to_owned(),
        (hook, 0) => format!("nothing to retry: no page has a failed result of {hook}"),
        (_, 1) => "1 result queued again".to_owned(),
        (_, n) => format!("{n} results queued again"),
    }
}

#[cfg(test)]
mod tests {
    use super::{summary, summary_of_all};

    #[test]
    fn counts_are_printed() {
        assert_eq!(summary("s3", "", 1), "1 result of s3 queued again");
        assert_eq!(
            summary("c1", "pdf", 7),
            "7 results of pdf of c1 queued again"
        );
        assert!(summary("c1", "pdf", 0).starts_with("nothing to retry"));
        assert_eq!(summary_of_all("", 12), "12 results queued again");
        assert!(summary_of_all("pdf", 0).ends_with("of pdf"));
    }
}
