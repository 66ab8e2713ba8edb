//! `verify`: replays the recording of the page without a network, and compares it with the page.

use crate::Outcome;
use crate::bodies;
use crate::chromium::recorder;
use crate::page;
use crate::process::finding::{Finding, progress};
use crate::process::invocation::Invocation;
use crate::process::program::ProgramRunner;
use crate::replay::proof::{Evidence, Proof, flaws, prove};
use crate::replay::{Home, Replay, Seed, Wall, WebUrl};
use archivist_core::model::{Figures, replay_text};
use archivist_warc::lookup::Index;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::fs::File;
use std::sync::Arc;

/// What the replay showed.
const FILE: &str = "verify.json";

#[derive(Serialize)]
struct Document<'a> {
    url: &'a str,
    recorded: String,
    #[serde(flatten)]
    proof: &'a Proof,
}

/// Replays the recording, and writes and states how much of the page it shows.
pub fn run(invocation: &Invocation) -> Outcome {
    let percent = invocation.settings.number("VERIFY_PERCENT");
    let id = invocation.context.get("snapshot_id");
    let id = id.and_then(Value::as_str).unwrap_or_default();
    if place(id) >= percent {
        return Err(Finding::skipped(format!(
            "the page is not among the {percent} % whose recordings are verified (VERIFY_PERCENT)"
        )));
    }
    let path = invocation.sibling(recorder::PLUGIN, recorder::FILE);
    let failed = |error: &dyn std::fmt::Display| {
        Finding::failed(format!("failed to read '{}': {error}", path.display()))
    };
    let open = || File::open(&path);
    let file = match open() {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(Finding::skipped("the page has no recording"));
        }
        Err(error) => return Err(failed(&error)),
    };
    let wacz = bodies::open(&path, file).map_err(|error| failed(&error))?;
    let wacz = Arc::new(wacz);
    let page = wacz.pages().first();
    let page = page.ok_or_else(|| failed(&"it has no page"))?;
    let url = WebUrl::of(&page.url).ok_or_else(|| failed(&"its page is not of the web"))?;
    let mut runner = ProgramRunner::new(invocation.budget())?;
    let evidence = Evidence::read(&wacz, &page.url);
    let replay = Replay {
        url,
        time: page.time,
        seed: Seed::recorded(&wacz, &page.url, page.time),
        wall: wall()?,
        viewport: evidence.viewport(),
        limit: runner.remaining(),
        settings: invocation.settings.variables().clone(),
    };
    let mut answers = Index::new();
    answers.add(wacz.clone());
    progress("replaying the page without a network");
    let proving = prove(&replay, Arc::new(answers), &evidence);
    let mut proof = runner.within("replaying the page", proving)?;
    let file = open().map_err(|error| failed(&error))?;
    proof.flaws.extend(flaws(&path, file).map_err(|error| failed(&error))?);
    let document = Document { url: &replay.url, recorded: replay.time.to_string(), proof: &proof };
    let text = serde_json::to_vec_pretty(&document)
        .map_err(|error| Finding::failed(format!("failed to write {FILE}: {error}")))?;
    page::write(FILE, &text)?;
    let figures = figures(&proof);
    let flaw = proof.flaws.first();
    Ok(Finding::succeeded(FILE)
        .with_notes([replay_text(&Figures::of(&figures)), flaw.cloned()])
        .with("figures", figures))
}

/// Place of a page among hundred pages, which is the same in each of its attempts.
fn place(id: &str) -> u64 {
    // FNV-1a, because ids of one crawl follow one another.
    let hash = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash ^ (hash >> 32)) % 100
}

/// The network namespace of the unit has no network. Where the service manager cannot make one,
/// this hook makes one for the browser.
fn wall() -> Result<Wall, Finding> {
    let mut reasons = Vec::new();
    for (name, wall) in [
        ("the unit", Wall::of_unit()),
        ("a user namespace", Wall::of_user_namespace(&Home::default())),
    ] {
        match wall.stands() {
            Ok(()) => {
                eprintln!("the network namespace of the browser is that of {name}");
                return Ok(wall);
            }
            Err(reason) => reasons.push(format!("{name}: {reason}")),
        }
    }
    Err(Finding::failed(format!(
        "no wall would keep the page from the network: {}",
        reasons.join("; ")
    )))
}

fn figures(proof: &Proof) -> Map<String, Value> {
    let requests = &proof.requests;
    let mut figures = Map::new();
    let mut state = |name: &str, value: Value| figures.insert(name.to_owned(), value);
    state("fidelity", json!(proof.fidelity()));
    state("resources", json!(proof.resources));
    for (name, share) in [("text", proof.text), ("picture", proof.picture)] {
        if let Some(share) = share {
            state(name, json!(share));
        }
    }
    for (name, count) in [("exact", requests.exact), ("fuzzy", requests.fuzzy)] {
        state(name, json!(count));
    }
    state("missing", json!(requests.missing));
    state("not_requested", json!(proof.not_requested.len()));
    state("errors", json!(proof.errors.len()));
    state("flaws", json!(proof.flaws.len()));
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn share_of_the_pages_is_chosen_evenly() {
        for percent in [1, 10, 50, 100] {
            let chosen = (1..=10_000).filter(|id| place(&format!("s{id}")) < percent);
            let share = chosen.count() as u64 / 100;
            assert!(share.abs_diff(percent) <= 1, "{percent} % of pages: {share} %");
        }
    }
}
