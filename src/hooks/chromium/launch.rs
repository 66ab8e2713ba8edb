//! `chromium_launch`: runs the browser of a crawl, from before its first page until after its last.

use super::super::Outcome;
use super::relay::BrowserServer;
use super::session::{BROWSER, CDP_URL, SOCKET};
use super::{Isolation, working_directory};
use crate::chromium::session;
use crate::process::finding::{Finding, progress};
use crate::process::invocation::Invocation;
use crate::process::program::{ProgramRunner, StopSignals};
use std::time::Duration;
use tokio::time::timeout;

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
    session::remove_files(&[CDP_URL, SOCKET]);
    if let Err(finding) = &outcome {
        let error = Some(finding.output_str.clone());
        session::write(BROWSER, &session::BrowserInfo { error, ..Default::default() })?;
    }
    outcome
}

async fn serve(
    invocation: &Invocation,
    budget: Duration,
    stop_signals: &mut StopSignals,
) -> Outcome {
    session::remove_files(&[CDP_URL, SOCKET, BROWSER]);
    let directory = working_directory()?;
    let mut served = tokio::select! {
        started = timeout(budget, BrowserServer::start(invocation, &directory)) => started.map_err(|_| {
            Finding::failed(format!("chromium did not answer within {} s", budget.as_secs()))
        })??,
        () = stop_signals.wait() => return Err(Finding::failed("the hook received SIGTERM before chromium answered")),
    };
    session::publish_socket(&served.socket)?;
    session::write(BROWSER, &served.browser)?;
    let product = served.browser.product.clone();
    progress(&format!("{product} is ready"));
    tokio::select! {
        finding = served.ended() => return Err(finding),
        () = stop_signals.wait() => {}
    }
    session::remove_files(&[CDP_URL, SOCKET]);
    served.close().await;
    // Hooks of a crawl print no record; browser.json keeps the result.
    Ok(Finding::succeeded(product).without_record())
}
