//! `archivist retry`: queues failed and skipped results again.

use crate::client::exit::{Exit, Failure};
use crate::client::fleet::{Fleet, Orders};
use crate::client::paging::{Paging, Source};
use crate::client::server::Server;
use crate::display::style;
use crate::verb::each::each;
use archivist_config::Scope;
use archivist_core::model::Owner;
use archivist_shared::bus::documents::report::{Filter, HookResult};
use clap::Args;
use std::collections::{BTreeMap, BTreeSet};

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
    /// Change a setting of the crawl or page first; a raised limit lets the crawl continue
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = crate::verb::add::setting)]
    set: Vec<(String, String)>,
}

pub async fn run(args: RetryArgs, scope: &Scope) -> Result<Exit, Failure> {
    let server = Server::reach(scope).await?;
    let orders = Orders::begin(scope).await;
    if orders.is_in_fleet() {
        return in_fleet(&args, &orders, &server).await;
    }
    if args.failed {
        let count = server
            .call_once_in_pieces(server.proxy().retry("", &args.hook))
            .await?;
        style::print(&format!("{}\n", summary_of_all(&args.hook, count)))?;
        return Ok(Exit::Done);
    }
    let config: BTreeMap<_, _> = args.set.into_iter().collect();
    let settings = serde_json::to_string(&config).unwrap_or_default();
    let retry = async |id: Owner| {
        let id = id.to_string();
        if !config.is_empty() {
            server.call(|| server.proxy().amend(&id, &settings)).await?;
        }
        let count = if args.all {
            server
                .call_once_in_pieces(server.proxy().retry_all(&id))
                .await?
        } else {
            let call = server.proxy().retry(&id, &args.hook);
            server.call_once_in_pieces(call).await?
        };
        Ok(summary(&id, &args.hook, count))
    };
    each(&args.ids, retry).await
}

/// Queues all hooks of a page again, on any node of a fleet.
pub async fn all_hooks(id: Owner, orders: &Orders, server: &Server) -> Result<(), Failure> {
    let name = id.to_string();
    if orders.is_in_fleet() {
        orders.check(id, server).await?;
        server.call_once(server.proxy().retry(&name, "")).await?;
    } else {
        let call = server.proxy().retry_all(&name);
        server.call_once_in_pieces(call).await?;
    }
    Ok(())
}

/// The fleet runs all hooks of a page again, on any node.
async fn in_fleet(args: &RetryArgs, orders: &Orders, server: &Server) -> Result<Exit, Failure> {
    if !args.hook.is_empty() || !args.set.is_empty() {
        return Err(Failure::usage(
            "a fleet runs all hooks of a page again, with the settings of its crawl: --hook and --set are for a single machine",
        ));
    }
    let retry = async |id: Owner| {
        let id = id.to_string();
        server.call_once(server.proxy().retry(&id, "")).await
    };
    let retry_failed = async |owner: Option<Owner>| {
        let fleet = orders.fleet().ok_or_else(|| {
            Failure::unreachable("failed to reach the fleet, which knows what failed; single pages can be retried: archivist retry s345")
        })?;
        let pages = failed_pages(fleet, owner).await?;
        for page in &pages {
            retry(*page).await?;
        }
        Ok::<_, Failure>(pages.len() as u64)
    };
    if args.failed {
        let count = retry_failed(None).await?;
        style::print(&format!("{}\n", summary_of_pages("the fleet", count)))?;
        return Ok(Exit::Done);
    }
    let each_one = async |id: Owner| {
        let end = orders.check(id, server).await?;
        match id {
            Owner::Snapshot(_) => {
                retry(id).await?;
                Ok(format!("{id} queued again{end}"))
            }
            Owner::Crawl(crawl) => {
                let cancelled = match orders.fleet() {
                    Some(fleet) => fleet.cancelled_pages(crawl).await?,
                    None => 0,
                };
                let failed = retry_failed(Some(id)).await?;
                if cancelled > 0 {
                    retry(id).await?;
                }
                Ok(summary_of_pages(&id.to_string(), failed + cancelled))
            }
        }
    };
    each(&args.ids, each_one).await
}

/// Returns the sealed pages that have failed results, each once.
async fn failed_pages(fleet: &Fleet, owner: Option<Owner>) -> Result<BTreeSet<Owner>, Failure> {
    let filter = Filter {
        status: Some("failed".to_owned()),
        owner,
        ..Filter::default()
    };
    let paging = Paging::of(Source::Fleet(fleet), filter);
    let failed: Vec<HookResult> = paging.collect().await?;
    Ok(failed.into_iter().map(|result| result.owner).collect())
}

fn summary_of_pages(of: &str, count: u64) -> String {
    match count {
        0 => format!("nothing to retry: no page of {of} has a failed result or was cancelled"),
        1 => format!("1 page of {of} queued again"),
        n => format!("{n} pages of {of} queued again"),
    }
}

/// Does not name the hook with the count: a page whose document was not saved is visited again with
/// all hooks.
fn summary(id: &str, hook: &str, count: u32) -> String {
    let of = match hook {
        "" => String::new(),
        hook => format!(" of {hook}"),
    };
    match count {
        0 => format!("nothing to retry: no failed or skipped result{of} in {id}"),
        1 => format!("1 result of {id} queued again"),
        n => format!("{n} results of {id} queued again"),
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
    use super::{summary, summary_of_all, summary_of_pages};

    #[test]
    fn counts_are_printed() {
        assert_eq!(summary("s3", "", 1), "1 result of s3 queued again");
        assert_eq!(summary("c1", "pdf", 7), "7 results of c1 queued again");
        assert!(summary("c1", "pdf", 0).starts_with("nothing to retry"));
        assert_eq!(summary_of_pages("c1", 2), "2 pages of c1 queued again");
        assert!(summary_of_pages("c1", 0).contains("no page of c1 has a failed result"));
        assert_eq!(summary_of_all("", 12), "12 results queued again");
        assert!(summary_of_all("pdf", 0).ends_with("of pdf"));
    }
}
