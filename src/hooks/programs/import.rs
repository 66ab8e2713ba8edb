//! `import`: says from which file or directory `archivist import` added a page. A recording is readable for
//! the owner of the archive alone, and this program does not need it.

use crate::process::files;
use crate::process::finding::Finding;
use crate::process::finding::Outcome;
use crate::process::invocation::Invocation;
use archivist_core::model::kept_entry;
use serde_json::json;
use std::path::Path;

/// What `archivist import` writes about a page of ArchiveBox, or one that was saved as a file.
const RECORDS: [&str; 2] = ["archivebox.json", "saved.json"];

/// Writes the name of the file of a recording.
pub fn run(invocation: &Invocation) -> Outcome {
    let file = invocation.settings.text("IMPORT_FILE");
    let source = invocation.settings.text("IMPORT_SOURCE");
    // The worker has moved the files of the page, this one among them.
    if RECORDS.iter().any(|name| Path::new(name).is_file()) {
        return Ok(Finding::succeeded(format!("from '{source}'")));
    }
    if invocation.settings.flag("IMPORT_KEEP") {
        return Ok(Finding::noresults(kept_entry(&source)));
    }
    if file.is_empty() && !invocation.settings.text("IMPORT_STAGED").is_empty() {
        let reason = "its files are gone; import it again";
        return Err(Finding::failed(reason));
    }
    if file.is_empty() {
        let reason = "no file is named: archivist import adds pages of recordings";
        return Err(Finding::skipped(reason));
    }
    let document = json!({"file": file, "source": source, "url": invocation.url});
    files::write("recording.json", format!("{document:#}\n").as_bytes())?;
    Ok(Finding::succeeded(format!("from '{source}'")))
}
