//! The head of `archivist show r678`: one unit, its command line, and what it used.

use super::took;
use crate::display::block::Block;
use crate::display::style::{Style, Tone};
use crate::display::text;
use archivist_core::model::Outcome;
use archivist_core::text::{clean, human_size, human_span};
use archivist_shared::bus::documents::report::{HookResult, Run};
use std::time::Duration;

/// Returns `ended (exit code 1) since Sat …; 3min ago`.
fn status(run: &Run, style: &Style) -> String {
    let outcome = match &run.outcome {
        Some(Outcome::Exit(0)) => " (success)".to_owned(),
        Some(outcome) => format!(" ({outcome})"),
        None => String::new(),
    };
    let since = run
        .ended_at
        .or(run.started_at)
        .map(|time| format!(" since {}", text::stamp_and_age(time, style)));
    format!("{}{outcome}{}", run.status, since.unwrap_or_default())
}

/// Returns `12.5M read, 3.0K written`; empty if neither is known.
fn both(one: (Option<u64>, &str), other: (Option<u64>, &str)) -> String {
    let part = |(bytes, verb): (Option<u64>, &str)| {
        bytes.map(|bytes| format!("{} {verb}", human_size(bytes)))
    };
    let parts: Vec<String> = [part(one), part(other)].into_iter().flatten().collect();
    parts.join(", ")
}

/// Returns `failed: exit code 1`.
fn verdict(result: &HookResult) -> String {
    let what = result.error.as_deref().or(result.output.as_deref());
    match what.filter(|what| !what.is_empty()) {
        Some(what) => format!("{}: {what}", result.status),
        None => result.status.to_string(),
    }
}

/// Returns how many variables the run has; empty for runs of older versions.
fn variables(run: &Run) -> String {
    match run.environment.len() {
        0 => String::new(),
        count => format!("{count}; --json prints them"),
    }
}

/// Returns everything about a run in lines. `result`: the present one of its hook.
pub fn head(run: &Run, result: Option<&HookResult>, style: &Style) -> String {
    let tone = match &run.outcome {
        Some(outcome) if outcome.is_success() => Tone::Good,
        Some(_) => Tone::Bad,
        None => Tone::Busy,
    };
    let used = &run.accounting;
    let mut block = Block::new();
    block.line("Status", status(run, style));
    let of = match (&run.plugin, &run.hook) {
        (Some(plugin), Some(hook)) => format!("{plugin}/{hook} of {}", run.owner),
        _ => format!("worker of {}", run.owner),
    };
    block.line("Runs", of);
    block.line("Attempt", run.attempt.to_string());
    block.line("Took", took(run.started_at, run.ended_at, style));
    block.line("CPU", used.cpu_usec.map(text::cpu).unwrap_or_default());
    let peak = used.memory_peak.map(|peak| format!("{} at most", human_size(peak)));
    block.line("Memory", peak.unwrap_or_default());
    block.line("Disk", both((used.io_read, "read"), (used.io_write, "written")));
    block.line("Network", both((used.ip_in, "received"), (used.ip_out, "sent")));
    block.line("Command", run.argv.join(" "));
    block.line("Directory", run.directory.clone().unwrap_or_default());
    let limit = run.limit.map(|limit| human_span(Duration::from_secs(limit)));
    block.line("Limit", limit.unwrap_or_default());
    let parent = run.parent.map(|parent| parent.to_string());
    block.line("Parent", parent.unwrap_or_default());
    block.line("Variables", variables(run));
    block.line("Invocation", run.invocation.clone().unwrap_or_default());
    block.line("Result", result.map(verdict).unwrap_or_default());
    let dot = style.paint("●", tone);
    format!("{dot} {} {}\n", run.id, clean(&run.unit)) + &block.render()
}
