//! `archivist plot`: draws the units of a crawl or page over time.

mod draw;
mod rows;
mod scale;

use crate::client::exit::{Exit, Failure};
use crate::client::server::Server;
use crate::display::style;
use crate::display::style::Style;
use archivist_core::model::{Lifecycle, Owner, RunId, Time};
use archivist_shared::bus::documents::report::{Crawl, Filter, ROWS_MAX, Snapshot, Span};
use archivist_shared::config::Scope;
use clap::Args;
use serde::de::DeserializeOwned;

#[derive(Args)]
pub struct PlotArgs {
    /// A crawl (c12) or a snapshot (s345)
    #[arg(value_name = "ID")]
    id: Owner,
    /// Draw the first N units; 0 for all
    #[arg(long, value_name = "N", default_value_t = 2000)]
    limit: u32,
}

/// The crawl or page in the picture.
struct Subject {
    id: Owner,
    url: String,
    status: Lifecycle,
    reason: Option<String>,
    /// Pages of a crawl.
    pages: Option<u64>,
    created_at: Time,
}

pub async fn run(args: PlotArgs, scope: &Scope) -> Result<Exit, Failure> {
    let server = Server::reach(scope).await?;
    let subject = subject(&server, args.id).await?;
    let (spans, more) = spans(&server, args.id, args.limit).await?;
    let style = Style::of_stdout();
    style::print(&draw::draw(&subject, &spans, more, &style))?;
    if more {
        let page = match args.id {
            Owner::Crawl(_) => "; archivist plot s345 draws one page",
            Owner::Snapshot(_) => "",
        };
        eprintln!("the first {} units; --limit 0 draws all{page}", spans.len());
    }
    Ok(Exit::Done)
}

async fn list<T: DeserializeOwned>(
    server: &Server,
    what: &str,
    filter: &Filter,
) -> Result<Vec<T>, Failure> {
    let filter = serde_json::to_string(filter)
        .map_err(|error| Failure::failed(format!("failed to write the filter: {error}")))?;
    server.ask(|| server.proxy().list(what, &filter)).await
}

async fn subject(server: &Server, id: Owner) -> Result<Subject, Failure> {
    let filter = Filter {
        owner: Some(id),
        limit: 1,
        ..Filter::default()
    };
    let found = match id {
        Owner::Crawl(_) => {
            let mut crawls: Vec<Crawl> = list(server, "crawls", &filter).await?;
            crawls.pop().map(|crawl| Subject {
                id,
                url: crawl.url,
                status: crawl.status,
                reason: crawl.reason,
                pages: Some(crawl.snapshots.values().sum()),
                created_at: crawl.created_at,
            })
        }
        Owner::Snapshot(_) => {
            let mut pages: Vec<Snapshot> = list(server, "snapshots", &filter).await?;
            pages.pop().map(|page| Subject {
                id,
                url: page.url,
                status: page.status,
                reason: page.reason,
                pages: None,
                created_at: page.created_at,
            })
        }
    };
    found.ok_or_else(|| Failure::failed(format!("there is no {id}")))
}

/// Returns the first units, read batch by batch, and whether there are more.
async fn spans(server: &Server, id: Owner, limit: u32) -> Result<(Vec<Span>, bool), Failure> {
    let limit = match limit {
        0 => usize::MAX,
        limit => limit as usize,
    };
    let mut spans: Vec<Span> = Vec::new();
    let mut after: Option<RunId> = None;
    // One more than requested shows that there are more.
    while spans.len() <= limit {
        let filter = Filter {
            owner: Some(id),
            limit: ROWS_MAX,
            after,
            ..Filter::default()
        };
        let piece: Vec<Span> = list(server, "timeline", &filter).await?;
        let Some(last) = piece.last().map(|span| span.id) else {
            break;
        };
        if Some(last) <= after {
            return Err(Failure::failed(format!(
                "the orchestrator's time line repeats itself after {last}; restart it: see archivist-orchestrator.service(8)"
            )));
        }
        after = Some(last);
        spans.extend(piece);
    }
    let more = spans.len() > limit;
    spans.truncate(limit);
    Ok((spans, more))
}
