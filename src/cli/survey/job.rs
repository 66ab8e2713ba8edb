//! Jobs of readers that need several files, see `client/reader_files.rs`. Each is a function of its job and of the caller,
//! which opens the files.

use super::{export, html, pictures, print, replay, texts, verify};
use crate::client::exit::Failure;
use crate::client::reader_files::{Caller, Said, Wanted};
use serde::{Deserialize, Serialize};
use std::io;
use std::sync::Arc;

/// What a reader does.
#[derive(Debug, Serialize, Deserialize)]
pub enum ReaderJob {
    /// Proves that a recording shows its page.
    Verify(replay::ReplayJob),
    /// Shows a page without a window.
    Replay(replay::ReplayJob),
    /// Writes recordings into one file.
    Export(export::ExportJob),
    /// Writes recorded pages as files that any browser opens.
    Html(html::HtmlJob),
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
            ReaderJob::Verify(job) => verify::verify(job, &caller),
            ReaderJob::Replay(job) => replay::replay(job, &caller),
            ReaderJob::Export(job) => export::export(&job, &caller),
            ReaderJob::Html(job) => html::write(&job, &caller),
            ReaderJob::Texts => texts::compare(&caller),
            ReaderJob::Pictures => pictures::compare(&caller),
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
