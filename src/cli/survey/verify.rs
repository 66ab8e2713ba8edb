//! Replays a recording, and compares it with what was recorded.

use super::job::say;
use super::replay::{ReplayJob, load};
use crate::client::reader_files::{Caller, Wanted};
use archivist_hooks::replay::Replay;
use archivist_hooks::replay::proof::{Evidence, Proof, flaws};
use archivist_warc::verify::check_with;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What was found.
#[derive(Debug, Serialize, Deserialize)]
pub struct Verified {
    /// URL of the page.
    pub url: String,
    /// When it was recorded.
    pub time: String,
    /// How its replay compares with it.
    pub proof: Proof,
}

/// Verifies a recording.
pub fn verify(job: ReplayJob, caller: &Arc<Caller>) -> Result<(), String> {
    let recording = job.open(caller)?;
    let evidence = Evidence::read(&recording.file, &recording.url);
    let replay = Replay {
        viewport: evidence.viewport(),
        picture: evidence.picture(),
        ..job.replay(&recording)
    };
    load(&replay, Arc::new(recording.index()), caller, |loaded| {
        let mut proof = evidence.compare(loaded);
        let file = caller.file(&Wanted::File(0)).map_err(|error| job.unreadable(&error))?;
        let report = check_with(file, caller.bodies(0)).map_err(|error| job.unreadable(&error))?;
        proof.flaws.extend(flaws(report));
        say(Verified { url: (*replay.url).to_owned(), time: replay.time.to_string(), proof })
    })
}
