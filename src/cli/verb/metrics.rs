//! `archivist metrics`: counts and times for a monitoring system.

use crate::client::exit::{Exit, Failure};
use crate::client::fleet::{Fleet, Local};
use crate::client::server::{Server, decode};
use crate::display::exposition::{Exposition, Format, MetricKind};
use crate::display::style;
use crate::machine::pools::{self, PoolReport};
use archivist_config::Scope;
use archivist_config::declare::{Kind, files};
use archivist_core::model::Time;
use archivist_core::text::clean;
use archivist_plugin::files::whole::{Survives, replace};
use archivist_shared::bus::documents::report::{self, DURATIONS_MS, HookEnds, Metrics, SiteHealth};
use clap::Args;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Print counts and times for Prometheus and other monitoring systems
///
/// Pages and crawls by state, results and durations of hooks, the queue and its hosts, free space,
/// watches, pools, the store and the fleet. No label has the address of a page, and at most 50 hosts
/// are named, those with the most queued pages. archivist-metrics.timer, which is disabled by default,
/// writes them every minute for node exporter.
#[derive(Args)]
pub struct MetricsArgs {
    /// Format of the text
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Write to FILE, which readers see either as it was or complete
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub async fn run(args: MetricsArgs, scope: &Scope) -> Result<Exit, Failure> {
    let server = Server::reach(scope).await?;
    let mut metrics: Metrics = decode(&server.call(|| server.proxy().metrics()).await?)?;
    // The orchestrator keeps the results of a watch for a while after it was removed.
    let watches: BTreeSet<String> = metrics.sites.iter().map(|site| site.watch.clone()).collect();
    let removed = |watch: &&String| files::is_removed(scope, Kind::Watch, watch);
    let removed: BTreeSet<&String> = watches.iter().filter(removed).collect();
    metrics.sites.retain(|site| !removed.contains(&site.watch));
    let mut out = Exposition::new(args.format);
    of_orchestrator(&metrics, &mut out);
    let mut exit = Exit::Done;
    match pools::reports(scope).await {
        Ok(pools) => of_pools(&pools, &mut out),
        Err(failure) => {
            eprintln!("archivist: no metrics of pools: {}", failure.message());
            exit = Exit::Partly;
        }
    }
    of_fleet(fleet(scope).await, &mut out, &mut exit);
    let text = out.finish();
    match &args.output {
        None => style::print(&text)?,
        // Written every minute.
        Some(path) => replace(path, text.as_bytes(), 0o644, Survives::Kill).map_err(|error| {
            let path = clean(&path.display().to_string());
            Failure::failed(format!("failed to write '{path}': {error}"))
        })?,
    }
    Ok(exit)
}

fn seconds(milliseconds: u64) -> f64 {
    milliseconds as f64 / 1000.0
}

/// Seconds since the epoch.
fn timestamp(time: Time) -> f64 {
    time.0 as f64 / 1000.0
}

fn flag(is: bool) -> f64 {
    f64::from(u8::from(is))
}

fn of_orchestrator(metrics: &Metrics, out: &mut Exposition) {
    out.metric(MetricKind::Info, "archivist", "Version of archivist.");
    out.sample(&[("version", metrics.version.as_str())], 1.0);
    let counts = [
        ("archivist_crawls", "status", "Crawls by status.", &metrics.crawls),
        ("archivist_pages", "status", "Pages (snapshots) by status.", &metrics.snapshots),
        ("archivist_units", "kind", "Units that start or run, by kind.", &metrics.running),
    ];
    for (name, label, help, counts) in counts {
        out.metric(MetricKind::Gauge, name, help);
        for (value, count) in counts {
            out.sample(&[(label, value.as_str())], *count as f64);
        }
    }
    of_hooks(&metrics.hooks, out);
    let due = metrics.due_since.map_or(0.0, |since| timestamp(metrics.now) - timestamp(since));
    out.gauge(
        "archivist_oldest_due_page_age_seconds",
        "Time for which the page has been due that has waited for the longest time; 0 if none is due.",
        due,
    );
    out.gauge(
        "archivist_blocked",
        "1 if nothing starts although something is due; archivist status has the reason.",
        flag(metrics.is_blocked),
    );
    out.gauge("archivist_hosts_queued", "Hosts with queued pages.", metrics.hosts_queued as f64);
    out.gauge(
        "archivist_hosts_held",
        "Hosts with queued pages, the next of which waits for a delay of the host.",
        metrics.hosts_delayed as f64,
    );
    out.metric(
        MetricKind::Gauge,
        "archivist_host_queued_pages",
        "Queued pages of the 50 hosts that have the most.",
    );
    for host in &metrics.hosts {
        out.sample(&[("host", host.host.as_str())], host.queued as f64);
    }
    if let Some(free) = metrics.free_bytes {
        out.gauge(
            "archivist_disk_free_bytes",
            "Free space of the archive and the data directory, whichever has less.",
            free as f64,
        );
    }
    out.gauge(
        "archivist_disk_required_bytes",
        "Free space below which nothing starts (MinFreeSpace=).",
        metrics.min_free_bytes as f64,
    );
    out.gauge(
        "archivist_deletions_pending",
        "Deleted crawls and pages whose files are not removed yet.",
        metrics.deleting as f64,
    );
    out.gauge(
        "archivist_pages_unfaithful",
        "Verified pages whose replay shows less than 95 % of them.",
        metrics.unfaithful as f64,
    );
    if let Some(search) = &metrics.search {
        out.gauge(
            "archivist_search_pages_pending",
            "Pages whose changes the search index lacks, counted up to 100,000.",
            f64::from(search.queued),
        );
        out.gauge(
            "archivist_search_building",
            "Whether the search index is being built.",
            flag(search.is_building),
        );
    }
    of_watches(&metrics.sites, out);
    if let Some(store) = &metrics.store {
        out.gauge(
            "archivist_store_copies_waiting",
            "Pages that wait for a transfer to or from the store.",
            store.waiting as f64,
        );
        out.gauge(
            "archivist_store_copies_failed",
            "Of the pages that wait for a transfer, those whose last transfer failed.",
            store.failed as f64,
        );
        out.gauge("archivist_store_transfers_running", "Running transfers.", store.running as f64);
    }
}

/// Writes how hooks ended. The counters begin with the database.
fn of_hooks(ends: &[HookEnds], out: &mut Exposition) {
    let mut plugins: BTreeMap<&str, Vec<&HookEnds>> = BTreeMap::new();
    for end in ends {
        plugins.entry(&end.plugin).or_default().push(end);
    }
    out.metric(
        MetricKind::Counter,
        "archivist_results",
        "Results of hooks, by plugin and status, also of attempts that were retried.",
    );
    for (plugin, ends) in &plugins {
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        for end in ends {
            *counts.entry(&end.status).or_default() += end.count;
        }
        for (status, count) in counts {
            out.sample(&[("plugin", *plugin), ("status", status)], count as f64);
        }
    }
    out.metric(
        MetricKind::Histogram,
        "archivist_hook_duration_seconds",
        "Time from the start of a hook to its result.",
    );
    for (plugin, ends) in &plugins {
        let ran = || ends.iter().filter(|end| end.up_to_ms != Some(0));
        let count = |bound: Option<u64>| {
            let same = ran().filter(|end| end.up_to_ms == bound);
            same.map(|end| end.count).sum::<u64>()
        };
        let bounds = DURATIONS_MS.into_iter().map(Some).chain([None]);
        let buckets: Vec<_> = bounds.map(|bound| (bound.map(seconds), count(bound))).collect();
        let sum = ran().map(|end| end.milliseconds).sum();
        out.histogram(("plugin", *plugin), &buckets, seconds(sum));
    }
    out.metric(
        MetricKind::Counter,
        "archivist_output_bytes",
        "Bytes of the output files of hooks, also of attempts that were retried.",
    );
    for (plugin, ends) in &plugins {
        let bytes: u64 = ends.iter().map(|end| end.bytes).sum();
        out.sample(&[("plugin", *plugin)], bytes as f64);
    }
}

fn of_watches(sites: &[SiteHealth], out: &mut Exposition) {
    let mut watches: BTreeMap<&str, Vec<&SiteHealth>> = BTreeMap::new();
    for site in sites {
        watches.entry(&site.watch).or_default().push(site);
    }
    if watches.is_empty() {
        return;
    }
    let mut add = |name, help: &str, value: &dyn Fn(&[&SiteHealth]) -> Option<f64>| {
        out.metric(MetricKind::Gauge, name, help);
        for (watch, sites) in &watches {
            if let Some(value) = value(sites) {
                out.sample(&[("watch", *watch)], value);
            }
        }
    };
    add("archivist_watch_sites", "Sites of a watch.", &|sites| Some(sites.len() as f64));
    add("archivist_watch_sites_down", "Sites of a watch that are down.", &|sites| {
        Some(sites.iter().filter(|site| site.is_down).count() as f64)
    });
    add("archivist_watch_up", "1 if all sites of a watch are up.", &|sites| {
        Some(flag(sites.iter().all(|site| !site.is_down)))
    });
    add(
        "archivist_watch_response_seconds",
        "Time until the headers of the newest answer of the slowest site of a watch.",
        &|sites| {
            let times = sites.iter().filter_map(|site| site.response_ms);
            times.max().map(seconds)
        },
    );
    add(
        "archivist_watch_certificate_expiry_timestamp_seconds",
        "When the first certificate of the sites of a watch expires, since the epoch.",
        &|sites| {
            let times = sites.iter().filter_map(|site| site.certificate_expires);
            times.min().map(timestamp)
        },
    );
}

fn of_pools(pools: &[PoolReport], out: &mut Exposition) {
    if pools.is_empty() {
        return;
    }
    let mut add = |kind, name, help: &str, value: &dyn Fn(&PoolReport) -> f64| {
        out.metric(kind, name, help);
        for pool in pools {
            out.sample(&[("pool", pool.name.as_str())], value(pool));
        }
    };
    add(MetricKind::Gauge, "archivist_pool_workers", "Declared workers of a pool.", &|pool| {
        f64::from(pool.declared)
    });
    add(
        MetricKind::Gauge,
        "archivist_pool_workers_running",
        "Running workers of a pool.",
        &|pool| pool.running as f64,
    );
    add(
        MetricKind::Counter,
        "archivist_pool_restarts",
        "Restarts of the workers of a pool since they were last started manually.",
        &|pool| pool.restarts as f64,
    );
}

/// Asks the fleet of this machine; `None` if it is in none.
async fn fleet(scope: &Scope) -> Result<Option<report::Fleet>, Failure> {
    match Fleet::reach(scope, Local::default()).await? {
        Some(fleet) => Ok(Some(decode(&fleet.status().await?)?)),
        None => Ok(None),
    }
}

fn of_fleet(fleet: Result<Option<report::Fleet>, Failure>, out: &mut Exposition, exit: &mut Exit) {
    const UP: &str = "archivist_fleet_up";
    const UP_HELP: &str = "1 if the database of the fleet answers.";
    let fleet = match fleet {
        Ok(None) => return,
        Ok(Some(fleet)) => fleet,
        Err(failure) => {
            eprintln!("archivist: no metrics of the fleet: {}", failure.message());
            *exit = Exit::Partly;
            return out.gauge(UP, UP_HELP, 0.0);
        }
    };
    out.gauge(UP, UP_HELP, 1.0);
    out.metric(MetricKind::Gauge, "archivist_fleet_nodes", "Nodes of the fleet by state.");
    for state in ["connected", "draining", "lost", "not seen"] {
        let count = fleet.nodes.iter().filter(|node| node.state() == state);
        let label = state.replace(' ', "_");
        out.sample(&[("state", label.as_str())], count.count() as f64);
    }
    out.gauge("archivist_fleet_hosts_due", "Hosts that wait for a node.", fleet.due_hosts as f64);
    out.metric(MetricKind::Gauge, "archivist_fleet_pages", "Pages of the fleet by status.");
    for (status, count) in &fleet.snapshots {
        out.sample(&[("status", status.as_str())], *count as f64);
    }
}
