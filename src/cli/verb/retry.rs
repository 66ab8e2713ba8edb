//! `archivist retry`: queues failed and skipped results again.

use crate::client::exit::{Exit, Failure};
use crate::client::fleet::{Fleet, Orders};
use crate::client::paging::{Paging, Source};
use crate::client::server::Server;
use crate::display::batch::for_each;
use crate::display::style;
use archivist_config::Scope;
use archivist_core::model::{Lifecycle, Owner, fidelity, in_percent};
use archivist_shared::bus::documents::report::{Filter, HookResult, Snapshot};
use clap::Args;
use std::collections::{BTreeMap, BTreeSet};

/// Queue failed and skipped results of crawls or snapshots again
///
/// A single page of a cancelled crawl can be retried; the other pages stay cancelled.
///
/// If the document of a page was not saved, because the server sent an HTTP error (see HttpErrors=
/// in archivist.conf(5)) or the browser did not load the page, all hooks of the page run again,
/// also if another one is named, and the files of the earlier visit are replaced. Otherwise, the
/// files of the page would be of different documents.
///
/// A retry loses nothing. If a hook that had succeeded fails in the retry, for example because the
/// site is down, all results and files of the page that were there before stay, and the results
/// that would have been lost have the note "the retry failed" with the reason.
#[derive(Args)]
pub struct RetryArgs {
    /// Crawls (c12) and snapshots (s345)
    #[arg(value_name = "ID", required_unless_present_any = ["failed", "unfaithful"])]
    ids: Vec<Owner>,
    /// Retry all pages of the archive that are incomplete or have a failed result
    ///
    /// Pages that were cancelled by a user or are not yet sealed are left alone.
    /// archivist-retry.timer does this once a week if it is enabled: 'systemctl enable --now
    /// archivist-retry.timer'.
    #[arg(long, conflicts_with_all = ["ids", "set"])]
    failed: bool,
    /// Record pages again whose replay shows less than this share of them, such as 0.95
    ///
    /// It is that of the hook verify (VerifyReplay= in archivist.conf(5)): the lowest of answered
    /// requests, similarity of text and similarity of the picture; 0 if the recording contradicts
    /// itself. All hooks of these pages run, as with --all. With ids, only pages among them, or of
    /// these crawls.
    #[arg(long, value_name = "SHARE", value_parser = share, conflicts_with_all = ["failed", "hook", "set"])]
    unfaithful: Option<f64>,
    /// Do complete pages again: run all hooks, also those that succeeded
    #[arg(long, conflicts_with_all = ["failed", "hook"])]
    all: bool,
    /// Retry only results of this plugin or hook
    ///
    /// With an id, it also runs on pages that have no result of it, such as a plugin that was
    /// installed later; if the crawl selected its plugins, this one is added to them.
    #[arg(long, value_name = "H", default_value = "", hide_default_value = true)]
    hook: String,
    /// First add this setting to those of the crawl
    ///
    /// With the id of a snapshot, it is a setting of that page alone: its hooks use it, and it
    /// takes precedence over those of the crawl; the hooks of the crawl, such as the browser, and
    /// the other pages do not.
    ///
    /// Every crawl has the settings CRAWL_MAX_URLS (maximum number of pages), CRAWL_MAX_SIZE
    /// (maximum number of bytes of all files; accepts the suffixes b, k, m, g and t), CRAWL_TIMEOUT
    /// (number of seconds in which new pages are started) and SNAPSHOT_MAX_SIZE (maximum number of
    /// bytes of one page, after which the remaining hooks of the page are skipped). 0 means no
    /// limit. Pages that a limit leaves out are listed and counted as cancelled, with the limit as
    /// their reason: after a limit such as CRAWL_MAX_URLS is raised, the crawl continues with them.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = crate::queue::setting)]
    set: Vec<(String, String)>,
}

pub async fn run(args: RetryArgs, scope: &Scope) -> Result<Exit, Failure> {
    let server = Server::reach(scope).await?;
    let orders = Orders::begin(scope).await;
    if orders.is_in_fleet() {
        return in_fleet(&args, &orders, &server).await;
    }
    if let Some(least) = args.unfaithful {
        let pages = unfaithful_pages(&server, &args.ids, least).await?;
        if pages.is_empty() {
            style::print(&format!(
                "nothing to retry: no verified page shows less than {}\n",
                in_percent(least)
            ))?;
            return Ok(Exit::Done);
        }
        let retry = async |id: Owner| {
            let name = id.to_string();
            let call = server.proxy().retry_all(&name);
            let count = server.call_once_in_pieces(call).await?;
            Ok(summary(&name, "", count))
        };
        return for_each(&pages, retry).await;
    }
    if args.failed {
        let count = server.call_once_in_pieces(server.proxy().retry("", &args.hook)).await?;
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
            server.call_once_in_pieces(server.proxy().retry_all(&id)).await?
        } else {
            let call = server.proxy().retry(&id, &args.hook);
            server.call_once_in_pieces(call).await?
        };
        Ok(summary(&id, &args.hook, count))
    };
    for_each(&args.ids, retry).await
}

/// Returns the sealed pages whose replay shows less than `least` of them, among `ids` if there are any.
async fn unfaithful_pages(
    server: &Server,
    ids: &[Owner],
    least: f64,
) -> Result<Vec<Owner>, Failure> {
    let owners = ids.iter().copied().map(Some);
    let owners: Vec<_> = if ids.is_empty() { vec![None] } else { owners.collect() };
    let mut pages = Vec::new();
    for owner in owners {
        let filter = Filter {
            status: Some(Lifecycle::Sealed.as_str().to_owned()),
            owner,
            ..Filter::default()
        };
        let sealed: Vec<Snapshot> = Paging::new(server, filter).collect().await?;
        let below = sealed.iter().filter(|page| is_unfaithful(page, least));
        pages.extend(below.map(|page| Owner::Snapshot(page.id)));
    }
    pages.sort_unstable();
    pages.dedup();
    Ok(pages)
}

fn is_unfaithful(page: &Snapshot, least: f64) -> bool {
    let shown = page.replay.as_ref().and_then(fidelity);
    shown.is_some_and(|shown| shown < least)
}

/// The fleet runs all hooks of a page again, on any node.
async fn in_fleet(args: &RetryArgs, orders: &Orders, server: &Server) -> Result<Exit, Failure> {
    if args.unfaithful.is_some() {
        return Err(Failure::usage(
            "a fleet does not know what pages replay: --unfaithful is for a single machine",
        ));
    }
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
    let retry_owner = async |id: Owner| {
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
    for_each(&args.ids, retry_owner).await
}

/// Returns the sealed pages that have failed results, each once.
async fn failed_pages(fleet: &Fleet, owner: Option<Owner>) -> Result<BTreeSet<Owner>, Failure> {
    let filter = Filter { status: Some("failed".to_owned()), owner, ..Filter::default() };
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

/// A share from 0 to 1, or in percent.
fn share(text: &str) -> Result<f64, String> {
    let number = |text: &str| text.trim().parse::<f64>().ok();
    let share = match text.strip_suffix('%') {
        Some(percent) => number(percent).map(|percent| percent / 100.0),
        None => number(text),
    };
    share
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| "a share from 0 to 1 is required, such as 0.95".to_owned())
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
    use super::{is_unfaithful, share, summary, summary_of_all, summary_of_pages};
    use crate::sample;
    use archivist_shared::bus::documents::report::{Figures, Snapshot};
    use serde_json::json;

    #[test]
    fn pages_below_the_share_are_recorded_again() {
        let page = |figures: Option<serde_json::Value>| Snapshot {
            replay: figures.map(|figures| Figures::of(figures.as_object().unwrap())),
            ..sample::snapshot(3)
        };
        assert!(is_unfaithful(&page(Some(json!({"fidelity": 0.9499}))), 0.95));
        assert!(!is_unfaithful(&page(Some(json!({"fidelity": 0.95}))), 0.95));
        assert!(!is_unfaithful(&page(None), 1.0), "it was not verified");
        assert_eq!((share("0.95"), share("95%")), (Ok(0.95), Ok(0.95)));
        for bad in ["", "95", "-1", "x", "NaN", "101%"] {
            assert!(share(bad).is_err(), "{bad}");
        }
    }

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
