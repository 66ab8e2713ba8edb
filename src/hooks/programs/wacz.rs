//! `wacz`: ends the recording of the page, which the tab writes to `page.wacz`, and reports it.

use crate::chromium;
use crate::chromium::recorder::{ENDING, FILE, RECORDING};
use crate::chromium::view;
use crate::process::files;
use crate::process::finding::Outcome;
use crate::process::finding::{Finding, progress};
use crate::process::invocation::Invocation;
use crate::process::program::ProgramRunner;
use crate::visit;
use crate::visit::recording::Description;
use std::fs::File;
use std::path::Path;

/// Ends the recording when the page is ready and its other hooks have ended, and waits until the tab has
/// completed the file.
pub fn run(invocation: &Invocation) -> Outcome {
    invocation.web_url()?;
    let mut runner = ProgramRunner::new(invocation.budget())?;
    if described(invocation).is_none() {
        visit::await_tab(invocation, &mut runner)?;
    }
    let Some(begun) = described(invocation) else {
        return Err(Finding::failed(
            "the page was not recorded: its hook chromium_tab did not run, or could not begin",
        ));
    };
    if begun.is_complete && begun.has_answers() {
        return conclude(&begun);
    }
    let ready = view::with_page(invocation, &mut runner, 0, async |_| Ok(()));
    let ended = match ready {
        Ok(_) => {
            files::write(ENDING, b"")?;
            progress("completing the recording");
            let completing = Description::completed(Path::new(RECORDING));
            runner.within("waiting for the tab to complete the recording", completing)
        }
        Err(finding) => Err(finding),
    };
    match ended {
        Ok(description) => conclude(&description),
        Err(finding) => without_tab(invocation, &mut runner, finding),
    }
}

fn described(invocation: &Invocation) -> Option<Description> {
    Description::read(Path::new(RECORDING)).filter(|begun| begun.url == invocation.url)
}

/// Reports the recording of a tab that showed no page or has closed, and completes the file if the
/// tab could not.
fn without_tab(invocation: &Invocation, runner: &mut ProgramRunner, reason: Finding) -> Outcome {
    let file = File::options().read(true).write(true).open(FILE);
    let Ok(file) = file else { return Err(reason) };
    // The tab holds the lock while it writes. A page that cannot be shown closes the tab at once.
    let mut waiting = file.try_lock().is_err();
    if waiting {
        let completing = Description::completed(Path::new(RECORDING));
        waiting =
            runner.within("waiting for the tab to complete the recording", completing).is_err();
    }
    if waiting {
        return Err(Finding::failed("the tab did not complete the recording"));
    }
    let mut description = described(invocation).unwrap_or_default();
    if !description.is_complete {
        let summary = archivist_warc::wacz::recover(file)
            .map_err(|error| Finding::failed(format!("failed to complete {FILE}: {error}")))?;
        description.is_complete = true;
        description.bytes = summary.bytes;
        description.is_recovered = true;
        chromium::recorder::write(Path::new("."), &description)?;
    }
    // What no server has answered is no recording.
    if description.has_answers() { conclude(&description) } else { Err(reason) }
}

fn conclude(description: &Description) -> Outcome {
    if let Some(reason) = &description.error {
        return Err(Finding::failed(reason.clone()));
    }
    let missing = description.missing.iter();
    let missing: Vec<_> =
        missing.map(|missing| format!("{}: {}", missing.url, missing.reason)).collect();
    let figures = [
        ("requests", description.requests.into()),
        ("kept", description.kept.into()),
        ("bytes", description.bytes.into()),
    ];
    Ok(Finding::succeeded(FILE)
        .with_figures(figures.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
        .with("missing", missing)
        .lacking(description.notes()))
}
