//! `import`: says which file of the archive has the recording of a page that `archivist import` added.
//! The file itself is readable for the owner of the archive alone, and this program does not need it.

use crate::process::finding::Finding;
use crate::process::invocation::Invocation;
use crate::{Outcome, page};
use serde_json::json;

/// Writes the name of the file.
pub fn run(invocation: &Invocation) -> Outcome {
    let file = invocation.settings.text("IMPORT_FILE");
    if file.is_empty() {
        let reason = "no file is named: archivist import adds pages of recordings";
        return Err(Finding::skipped(reason));
    }
    let source = invocation.settings.text("IMPORT_SOURCE");
    let document = json!({"file": file, "source": source, "url": invocation.url});
    page::write("recording.json", format!("{document:#}\n").as_bytes())?;
    Ok(Finding::succeeded(format!("from '{source}'")))
}
