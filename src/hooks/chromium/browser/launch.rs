//! `chromium_launch`: runs the browser of a crawl, from before its first page until after its last.

use super::relay::BrowserServer;
use crate::process::finding::Outcome;

use crate::process::finding::{Finding, progress};
use crate::process::invocation::Invocation;
use crate::process::program::{ProgramRunner, StopSignals};
use crate::visit::{self, BROWSER, CDP_URL, SOCKET};
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::timeout;

/// `CHROMIUM_ISOLATION=`: which pages share a browser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    Crawl,
    /// Every snapshot has its own browser.
    Snapshot,
}

impl Isolation {
    pub fn of(invocation: &Invocation) -> Isolation {
        match invocation.settings.text("CHROMIUM_ISOLATION").trim() {
            "snapshot" => Isolation::Snapshot,
            _ => Isolation::Crawl,
        }
    }
}

/// The working directory: the plugin's output directory, in which other hooks look for the socket.
pub fn working_directory() -> Result<PathBuf, Finding> {
    std::env::current_dir()
        .map_err(|error| Finding::failed(format!("failed to read the working directory: {error}")))
}

/// Starts the browser, publishes its address, and closes it on SIGTERM.
pub fn run(invocation: &Invocation) -> Outcome {
    if Isolation::of(invocation) == Isolation::Snapshot {
        return Err(Finding::skipped(
            "CHROMIUM_ISOLATION=snapshot: every snapshot has its own browser",
        ));
    }
    let mut runner = ProgramRunner::new(invocation.budget())?;
    let budget = invocation.budget();
    let outcome =
        runner.block_on(async |stop_signals| serve(invocation, budget, stop_signals).await);
    visit::remove_files(&[CDP_URL, SOCKET]);
    if let Err(finding) = &outcome {
        let error = Some(finding.output_str.clone());
        visit::write(BROWSER, &visit::BrowserInfo { error, ..Default::default() })?;
    }
    outcome
}

async fn serve(
    invocation: &Invocation,
    budget: Duration,
    stop_signals: &mut StopSignals,
) -> Outcome {
    visit::remove_files(&[CDP_URL, SOCKET, BROWSER]);
    let directory = working_directory()?;
    let mut served = tokio::select! {
        started = timeout(budget, BrowserServer::start(invocation, &directory)) => started.map_err(|_| {
            Finding::failed(format!("chromium did not answer within {} s", budget.as_secs()))
        })??,
        () = stop_signals.wait() => return Err(Finding::failed("the hook received SIGTERM before chromium answered")),
    };
    visit::publish_socket(&served.socket)?;
    visit::write(BROWSER, &served.browser)?;
    let product = served.browser.product.clone();
    progress(&format!("{product} is ready"));
    tokio::select! {
        finding = served.ended() => return Err(finding),
        () = stop_signals.wait() => {}
    }
    visit::remove_files(&[CDP_URL, SOCKET]);
    served.close().await;
    // Hooks of a crawl print no record; browser.json keeps the result.
    Ok(Finding::succeeded(product).without_record())
}
