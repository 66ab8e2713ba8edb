//! Jobs of readers that need several files, see `client/room.rs`. Each is a function of its job and of the caller,
//! which opens the files.

use super::{export, html, pictures, print, replay, texts, verify};
use crate::client::exit::Failure;
use crate::client::room::{Caller, Said, Wanted};
use serde::{Deserialize, Serialize};
use std::io;
use std::sync::Arc;

/// What a reader does.
#[derive(Debug, Serialize, Deserialize)]
pub enum Job {
    /// Proves that a recording shows its page.
    Verify(replay::Job),
    /// Shows a page without a window.
    Replay(replay::Job),
    /// Writes recordings into one file.
    Export(export::Job),
    /// Writes recorded pages as files that any browser opens.
    Html(html::Job),
    /// Compares two texts.
    Texts,
    /// Compares two pictures.
    Pictures,
}

/// Does the job of the caller behind standard input.
pub fn run() -> Result<(), Failure> {
    let done = Caller::of_stdin().map_err(failed).and_then(|caller| {
        let job = caller.document(&Wanted::Job).map_err(failed)?;
        let caller = Arc::new(caller);
        match job {
            Job::Verify(job) => verify::verify(job, &caller),
            Job::Replay(job) => replay::replay(job, &caller),
            Job::Export(job) => export::export(&job, &caller),
            Job::Html(job) => html::write(&job, &caller),
            Job::Texts => texts::compare(&caller),
            Job::Pictures => pictures::compare(&caller),
        }
    });
    done.or_else(|reason| print(&Said::<()>::Failed(reason)))
}

fn failed(error: io::Error) -> String {
    format!("failed to read the job: {error}")
}

/// Prints a part of the result.
pub fn say(part: impl Serialize) -> Result<(), String> {
    print(&Said::Part(part)).map_err(|failure| failure.message().to_owned())
}
