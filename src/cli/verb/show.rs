//! `archivist show`: everything about a crawl, snapshot or run, in the form of `systemctl status`.

use crate::client::exit::{Exit, Failure};
use crate::client::fleet::Local;
use crate::client::server::decode;
use crate::client::{details, journal};
use crate::display::style::{self, Style};
use crate::display::{self, standard_error};
use archivist_config::Scope;
use archivist_core::model::{AnyId, RunId};
use archivist_core::text::clean;
use archivist_shared::bus::documents::report::{Details, Run};
use clap::Args;
use serde_json::Value;
use std::collections::BTreeMap;

/// Show everything about a crawl, snapshot or run
///
/// Show its state and the reason for it, its results with their output or error, and its runs with
/// unit name, CPU time and peak memory. A snapshot has the HTTP status of its document, if a hook
/// reported one, and a recorded one the bytes that plugins sent and received beyond the recording. Of a
/// crawl, show the newest 50 failed results and the newest 50 pages, each in one line; archivist list has
/// all of them, and --json up to 1000 snapshots, results and runs.
#[derive(Args)]
pub struct ShowArgs {
    /// A crawl (c12), a snapshot (s345) or a run (r678)
    #[arg(value_name = "ID")]
    id: AnyId,
    #[command(flatten)]
    local: Local,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub async fn run(args: ShowArgs, scope: &Scope) -> Result<Exit, Failure> {
    let answer = details::fetch(args.id, args.local, scope).await?;
    let details: Details = decode(&answer)?;
    let suppressed = journal::suppressed(details.runs(), scope);
    if args.json {
        let mut document: Value = decode(&answer)?;
        note_of_runs(&mut document, details.runs(), &suppressed);
        style::print_document(&format!("{document:#}\n"))?;
        return Ok(Exit::Done);
    }
    let text = display::details::long(&details, &Style::of_stdout());
    let files = standard_error::lines(details.runs());
    let gap = if files.is_empty() { "" } else { "\n" };
    let suppressed = what_is_suppressed(details.runs(), &suppressed);
    style::say(&(text + gap + &files + &suppressed))?;
    Ok(Exit::Done)
}

/// Adds `suppressed`, and `stderr`, the file with the end of the standard error of a failed hook, to the
/// runs in the document.
fn note_of_runs(document: &mut Value, known: &[Run], suppressed: &BTreeMap<RunId, u64>) {
    let kinds = document.as_object_mut().into_iter().flat_map(|kinds| kinds.values_mut());
    let runs = kinds.filter_map(|kind| kind.get_mut("runs")?.as_array_mut());
    for run in runs.flatten() {
        let id = run.get("id").and_then(Value::as_str).and_then(|id| id.parse().ok());
        if let Some(messages) = id.and_then(|id| suppressed.get(&id)) {
            run["suppressed"] = (*messages).into();
        }
        let known = known.iter().find(|known| Some(known.id) == id);
        if let Some(file) = known.and_then(standard_error::file) {
            run["stderr"] = file.to_string_lossy().into();
        }
    }
}

/// Returns a line for each run whose messages are not all in the journal.
fn what_is_suppressed(runs: &[Run], suppressed: &BTreeMap<RunId, u64>) -> String {
    let line = |run: &Run| {
        let messages = suppressed.get(&run.id)?;
        let (id, unit) = (run.id, clean(&run.unit));
        Some(format!(
            "{id} ({unit}) wrote more than its LogRateLimitBurst= to the journal: {messages} messages suppressed\n"
        ))
    };
    let lines: String = runs.iter().filter_map(line).collect();
    if lines.is_empty() { lines } else { format!("\n{lines}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn suppressed_messages_are_reported_with_their_run() {
        let details = Details::Snapshot {
            snapshot: sample::snapshot(345),
            results: Vec::new(),
            runs: vec![sample::run(7, "wget", "x"), sample::run(8, "pdf", "y")],
            copy: None,
        };
        let suppressed = BTreeMap::from([(RunId(8), 12_345)]);
        let line = "\nr8 (archivist-hook-pdf-s3.service) wrote more than its LogRateLimitBurst= to the journal: 12345 messages suppressed\n";
        assert_eq!(what_is_suppressed(details.runs(), &suppressed), line);
        assert_eq!(what_is_suppressed(details.runs(), &BTreeMap::new()), "");

        let mut document = serde_json::to_value(&details).unwrap();
        note_of_runs(&mut document, &[], &suppressed);
        let dropped =
            |n: usize| document["snapshot"]["runs"][n].get("suppressed").and_then(Value::as_u64);
        assert_eq!((dropped(0), dropped(1)), (None, Some(12_345)));
    }
}
