//! `chromium_launch`: the crawl's browser, from before its first page until after its last.

use super::super::Outcome;
use super::relay::Served;
use super::session::{BROWSER, CDP_URL, SOCKET};
use super::{Isolation, here};
use crate::chromium::session;
use crate::process::invocation::Invocation;
use crate::process::program::{Runner, Told};
use crate::process::record::{Finding, progress};
use std::time::Duration;
use tokio::time::timeout;

/// Starts the browser, says where it is, and closes it when told to end.
pub fn run(it: &Invocation) -> Outcome {
    if Isolation::of(it) == Isolation::Snapshot {
        return Err(Finding::skipped(
            "CHROMIUM_ISOLATION=snapshot: every snapshot has a browser of its own",
        ));
    }
    let mut runner = Runner::new(it.budget())?;
    let budget = it.budget();
    let outcome = runner.carry_out(async |told| attend(it, budget, told).await);
    session::withdraw(&[CDP_URL, SOCKET]);
    if let Err(finding) = &outcome {
        let error = Some(finding.output_str.clone());
        session::write(
            BROWSER,
            &session::Browser {
                error,
                ..Default::default()
            },
        )?;
    }
    outcome
}

async fn attend(it: &Invocation, budget: Duration, told: &mut Told) -> Outcome {
    session::withdraw(&[CDP_URL, SOCKET, BROWSER]);
    let directory = here()?;
    let mut served = tokio::select! {
        started = timeout(budget, Served::start(it, &directory)) => started.map_err(|_| {
            Finding::failed(format!("chromium did not answer within {} s", budget.as_secs()))
        })??,
        () = told.wait() => return Err(Finding::failed("told to end before chromium answered")),
    };
    session::announce(&served.socket)?;
    session::write(BROWSER, &served.browser)?;
    let product = served.browser.product.clone();
    progress(&format!("{product} is ready"));
    tokio::select! {
        finding = served.ended() => return Err(finding),
        () = told.wait() => {}
    }
    session::withdraw(&[CDP_URL, SOCKET]);
    served.close().await;
    // The hooks of a crawl have no record of their own; browser.json is what is left.
    Ok(Finding::succeeded(product).without_record())
}
