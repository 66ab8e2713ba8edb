//! `archivist plot`: draws the units of a crawl or page over time, or the nodes of a fleet.

mod draw;
mod nodes;
mod rows;
mod scale;
mod units;

use crate::client::exit::{Exit, Failure};
use crate::client::fleet::{Fleet, Local};
use crate::client::paging::Source;
use crate::client::server::Server;
use crate::display::style::{self, Style};
use archivist_config::Scope;
use archivist_core::model::{Lifecycle, Owner, RunId, SnapshotId, Time};
use archivist_shared::bus::documents::report::{Crawl, Filter, ROWS_MAX, Snapshot, Span};
use clap::Args;
use serde::de::DeserializeOwned;
use std::fmt::Display;

/// Draw the units of a crawl or snapshot over time, as SVG on standard output
///
/// The SVG is for browsers in light or dark mode: 'archivist plot c12 >c12.svg'. Each worker, hook
/// and daemon is a bar from its start to its end, below the page that it belongs to; each attempt
/// is a bar of its own. Background hooks are pale until their first line of output, at which point
/// the hooks that wait for a daemon continue. A dotted line is the time a unit waited for its
/// start; a strip at the bottom of a bar is its CPU time. State, run time, CPU time and peak memory
/// are printed next to the bar; a tooltip has the details. Long periods without any running unit
/// are cut out of the axis.
#[derive(Args)]
pub struct PlotArgs {
    /// A crawl (c12) or a snapshot (s345)
    #[arg(value_name = "ID")]
    id: Owner,
    /// Draw the first N units, or in a fleet pages; 0 draws all
    #[arg(short = 'n', long, value_name = "N", default_value_t = 2000)]
    limit: u32,
    #[command(flatten)]
    local: Local,
}

/// The crawl or page in the picture.
struct Subject {
    id: Owner,
    url: String,
    status: Lifecycle,
    reason: Option<String>,
    pages: Option<u64>,
    created_at: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Units,
    Nodes,
}

struct Picture {
    kind: Kind,
    subject: Subject,
    /// What the line below the title says of the rows.
    about: Vec<String>,
    rows: Vec<rows::Row>,
    /// What the picture does not show, if there is more.
    left_out: Option<String>,
}

pub async fn run(args: PlotArgs, scope: &Scope) -> Result<Exit, Failure> {
    let fleet = Fleet::reach(scope, args.local).await?;
    let of_fleet = match &fleet {
        Some(fleet) => nodes::picture(fleet, args.id, args.limit).await?,
        None => None,
    };
    let picture = match of_fleet {
        Some(picture) => picture,
        None => units::picture(&Server::reach(scope).await?, args.id, args.limit).await?,
    };
    style::print(&draw::draw(&picture, &Style::of_stdout()))?;
    if let Some(left_out) = &picture.left_out {
        eprintln!("{left_out}");
    }
    Ok(Exit::Done)
}

/// What a time line has, in the order of its ids.
trait Listed: DeserializeOwned {
    type Id: Copy + Ord + Display;
    fn id(&self) -> Self::Id;
}

impl Listed for Span {
    type Id = RunId;
    fn id(&self) -> RunId {
        self.id
    }
}

impl Listed for Snapshot {
    type Id = SnapshotId;
    fn id(&self) -> SnapshotId {
        self.id
    }
}

/// Returns the first entries of a time line, and whether there are more. It is read in batches:
/// `filter` gets the last id that was read, and the number of entries of the next batch. A `limit`
/// of 0 means all.
async fn first<T: Listed>(
    source: Source<'_>,
    limit: u32,
    filter: impl Fn(Option<T::Id>, u32) -> Filter,
) -> Result<(Vec<T>, bool), Failure> {
    let limit = match limit {
        0 => usize::MAX,
        limit => limit as usize,
    };
    let mut entries: Vec<T> = Vec::new();
    let mut after: Option<T::Id> = None;
    // One more than requested shows that there are more.
    while entries.len() <= limit {
        let wanted = limit.saturating_add(1) - entries.len();
        let batch = u32::try_from(wanted).unwrap_or(ROWS_MAX).min(ROWS_MAX);
        let batch: Vec<T> = source.list("timeline", &filter(after, batch)).await?;
        let Some(last) = batch.last().map(T::id) else {
            break;
        };
        if Some(last) <= after {
            let program = match source {
                Source::Machine(_) => "archivist-orchestrator.service",
                Source::Fleet(_) => "archivist-fleet.service",
            };
            return Err(Failure::failed(format!(
                "the time line repeats itself after {last}; restart {program}"
            )));
        }
        after = Some(last);
        entries.extend(batch);
    }
    let more = entries.len() > limit;
    entries.truncate(limit);
    Ok((entries, more))
}

impl Subject {
    fn of_crawl(crawl: &Crawl) -> Subject {
        Subject {
            id: Owner::Crawl(crawl.id),
            url: crawl.url.clone(),
            status: crawl.status,
            reason: crawl.reason.clone(),
            pages: Some(crawl.snapshots.values().sum()),
            created_at: crawl.created_at,
        }
    }

    fn of_page(page: &Snapshot) -> Subject {
        Subject {
            id: Owner::Snapshot(page.id),
            url: page.url.clone(),
            status: page.status,
            reason: page.reason.clone(),
            pages: None,
            created_at: page.created_at,
        }
    }
}
