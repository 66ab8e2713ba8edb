//! `standalone`: writes the page as files that any browser opens from disk, from its recording and the HTML
//! that the browser saved of it. The site is not visited.

use crate::bodies;
use crate::process::files::read_start;
use crate::process::finding::Finding;
use crate::process::finding::Outcome;
use crate::process::invocation::Invocation;
use crate::source::results::{RecordingFile, saved_dom};
use crate::standalone::{FIRST, Page, Site};
use crate::visit;
use serde_json::Map;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Longest HTML of the browser in bytes that is read.
const DOM_MAX_BYTES: u64 = 64 << 20;

/// Writes the files below the working directory, the one that leads to all others last.
pub fn run(invocation: &Invocation) -> Outcome {
    let until = Instant::now() + invocation.budget();
    let RecordingFile { path, is_of_browser } = RecordingFile::of(&invocation.snap_dir);
    // The recording of such a visit may have an answer, such as an error without content.
    if is_of_browser && let Some(finding) = visit::without_page(invocation) {
        return Err(finding);
    }
    let failed = |error: &dyn std::fmt::Display| {
        Finding::failed(format!("failed to read '{}': {error}", path.display()))
    };
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Ok(Finding::noresults("the page has no recording"));
        }
        Err(error) => return Err(failed(&error)),
    };
    let recording = Arc::new(bodies::open(&path, file).map_err(|error| failed(&error))?);
    let shown = recording.first_page().ok_or_else(|| failed(&"it has no page"))?;
    let dom = saved_dom(invocation).filter(|_| is_of_browser);
    let dom = dom.and_then(|dom| read_start(&dom, DOM_MAX_BYTES));
    let dom = dom.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let page = Page {
        id: "",
        title: "",
        url: &shown.url,
        time: shown.time,
        recording: &recording,
        dom: dom.as_deref(),
    };
    let create = |name: &str| create(Path::new(name), until);
    let room = match invocation.settings.size("STANDALONE_MAX_SIZE") {
        0 => u64::MAX,
        room => room,
    };
    let mut site = Site::new(&create, 1, room);
    let plan = site.plan(&page).map_err(|reason| failed(&reason))?;
    if !plan.is_first() {
        return Ok(Finding::noresults("the page is no HTML, so it opens as the file that it is"));
    }
    let written = site.write(&page, &plan).and_then(|faults| Ok((faults, site.finish("")?)));
    let (faults, counts) =
        written.map_err(|error| Finding::failed(format!("failed to write the page: {error}")))?;
    let left_out = (counts.left_out > 0).then(|| {
        let plural = if counts.left_out == 1 { "" } else { "s" };
        format!(
            "{} file{plural} of the page left out, for which STANDALONE_MAX_SIZE has no room",
            counts.left_out
        )
    });
    let figures = [("files", counts.files.into()), ("absent", counts.absent.into())];
    let figures = figures.into_iter().map(|(name, count)| (name.to_owned(), count));
    Ok(Finding::succeeded(FIRST)
        .with_figures(Map::from_iter(figures))
        .lacking([faults.first().cloned()])
        // The recording has them.
        .with_note(left_out))
}

/// Creates a file, which replaces that of an earlier run.
fn create(name: &Path, until: Instant) -> io::Result<File> {
    if Instant::now() > until {
        return Err(io::Error::other("time limit reached"));
    }
    if let Some(above) = name.parent() {
        fs::create_dir_all(above)?;
    }
    File::create(name)
}
