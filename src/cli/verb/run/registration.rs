//! The registration of this command, so that `archivist status` shows it. Archiving does not depend
//! on it.

use crate::client::server::Server;
use crate::client::stream::{CrawlJob, until_released};
use archivist_core::model::{Owner, Time};
use archivist_shared::bus::documents::report::Registration;
use std::convert::Infallible;
use std::time::{Duration, Instant};

/// A registration that ends earlier is short: the orchestrator restarted, or does not keep it.
const SHORT: Duration = Duration::from_secs(1);
/// Short registrations in a row after which the command does not register again.
const SHORT_MAX: u32 = 5;

/// Returns what this command says about itself. `since`: when it started.
pub fn of(jobs: &[CrawlJob], since: Time) -> Registration {
    let directory = std::env::current_dir().unwrap_or_default();
    Registration {
        verb: "run".to_owned(),
        targets: jobs.iter().flat_map(targets).collect(),
        directory: directory.to_string_lossy().into_owned(),
        since: Some(since),
    }
}

fn targets(job: &CrawlJob) -> Vec<Owner> {
    if job.only.is_empty() {
        vec![Owner::Crawl(job.crawl)]
    } else {
        job.only.iter().copied().map(Owner::Snapshot).collect()
    }
}

/// Keeps the command registered, also with later orchestrators, until the caller drops this future.
pub async fn keep(server: &Server, command: Registration) -> Infallible {
    let document = serde_json::to_string(&command).unwrap_or_default();
    let mut short = 0;
    while short < SHORT_MAX {
        let begin = Instant::now();
        match server.rejoin(|| server.proxy().register(&document), drop).await {
            Ok(descriptor) => until_released(descriptor.into()).await,
            Err(failure) => tracing::debug!("{}, ignoring", failure.message()),
        }
        short = if begin.elapsed() < SHORT { short + 1 } else { 0 };
    }
    std::future::pending().await
}
