//! `verify`: replays the recording of the page without a network, and compares it with the page.

use crate::bodies;
use crate::chromium::recorder;
use crate::process::files;
use crate::process::finding::Outcome;
use crate::process::finding::{Finding, progress};
use crate::process::invocation::Invocation;
use crate::process::program::ProgramRunner;
use crate::replay::proof::{Evidence, Proof, flaws};
use crate::replay::{Home, Namespace, Replay, WebUrl, World, load};
use archivist_core::model::{Figures, replay_text};
use archivist_warc::lookup::Index;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::fs::File;
use std::sync::Arc;

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
        world: World::recorded(&wacz, &page.url, page.time),
        namespace: namespace()?,
        viewport: evidence.viewport(),
        picture: evidence.picture(),
        limit: runner.remaining(),
        settings: invocation.settings.variables().clone(),
    };
    let mut answers = Index::new();
    answers.add(wacz.clone());
    progress("replaying the page without a network");
    let loading = load(&replay, Arc::new(answers));
    let mut proof = evidence.compare(runner.within("replaying the page", loading)?);
    let file = open().map_err(|error| failed(&error))?;
    let report = bodies::check(&path, file).map_err(|error| failed(&error))?;
    proof.flaws.extend(flaws(report));
    let document = Document { url: &replay.url, recorded: replay.time.to_string(), proof: &proof };
    let text = serde_json::to_vec_pretty(&document)
        .map_err(|error| Finding::failed(format!("failed to write {FILE}: {error}")))?;
    files::write(FILE, &text)?;
    let figures = figures(&proof);
    let flaw = proof.flaws.first();
    Ok(Finding::succeeded(FILE)
        .with_notes([replay_text(&Figures::of(&figures)), flaw.cloned()])
        .with_figures(figures))
}

/// The network namespace of the unit has no network. Where the service manager cannot make one,
/// this hook makes one for the browser.
fn namespace() -> Result<Namespace, Finding> {
    let mut reasons = Vec::new();
    for (name, namespace) in [
        ("the unit", Namespace::of_unit()),
        ("a user namespace", Namespace::of_user_namespace(&Home::default())),
    ] {
        match namespace.check() {
            Ok(()) => {
                eprintln!("the network namespace of the browser is that of {name}");
                return Ok(namespace);
            }
            Err(reason) => reasons.push(format!("{name}: {reason}")),
        }
    }
    Err(Finding::failed(format!(
        "no namespace would keep the page from the network: {}",
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
