//! `archivist recorded`: prints from the recording of a page, for hooks of plugins in any language.

use crate::client::exit::{Exit, Failure};
use crate::display::style;
use archivist_core::text::clean;
use archivist_hooks::RecordingDescription;
use archivist_hooks::bodies;
use archivist_warc::wacz::{Entry, StoredAnswer, Wacz};
use clap::Args;
use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal};
use std::path::{Path, PathBuf};

/// Print the response to a request that the browser made for the page
///
/// For hooks of plugins: instead of requesting a URL again, they take the response from the
/// recording that the plugin wacz makes. Exits with 1 if the recording does not have it. While the
/// page is being recorded, the recording has the responses that are complete.
#[derive(Args)]
pub struct RecordedArgs {
    /// The URL as the page requested it; of several responses, the newest is printed
    #[arg(value_name = "URL")]
    url: String,
    /// Print status and headers
    #[arg(long, conflicts_with = "body")]
    headers: bool,
    /// Print the body without content coding (default)
    #[arg(long)]
    body: bool,
    /// The recording.json next to the recording; by default that of the variable RECORDING, which hooks
    /// have
    #[arg(long, value_name = "FILE")]
    recording: Option<PathBuf>,
}

pub fn run(args: RecordedArgs) -> Result<Exit, Failure> {
    let own = std::env::var_os("RECORDING").map(PathBuf::from);
    let recording = args.recording.or(own).ok_or_else(|| {
        Failure::failed(
            "no recording: RECORDING is not set; run this in a hook, or use --recording",
        )
    })?;
    let wacz = open(&recording)?;
    let Some(answer) = find(&wacz, &args.url)? else {
        let url = clean(&args.url);
        return Err(Failure::failed(format!("the recording does not have '{url}'")));
    };
    if args.headers {
        style::print(&head(&answer))?;
        return Ok(Exit::Done);
    }
    print(answer)
}

/// Opens the recording that a `recording.json` describes.
fn open(path: &Path) -> Result<Wacz, Failure> {
    let failed = |path: &Path, why: &dyn std::fmt::Display| {
        Failure::failed(format!("failed to read '{}': {why}", path.display()))
    };
    let description = RecordingDescription::read(path);
    let description = description.ok_or_else(|| failed(path, &"there is no recording"))?;
    let file = path.with_file_name(&description.file);
    let opened = File::open(&file).map_err(|error| failed(&file, &error))?;
    bodies::open(&file, opened).map_err(|error| failed(&file, &error))
}

/// The newest response to a GET, else to another request.
fn find(wacz: &Wacz, url: &str) -> Result<Option<StoredAnswer>, Failure> {
    let url = url.split_once('#').map_or(url, |(start, _)| start);
    let own = wacz.entries().iter().filter(|entry| entry.url == url);
    let newest = own.max_by_key(|entry: &&Entry| (entry.method == "GET", entry.time));
    let read = newest.map(|entry| wacz.read(entry)).transpose();
    read.map_err(|error| Failure::failed(format!("failed to read the recording: {error}")))
}

fn head(answer: &StoredAnswer) -> String {
    let first = format!("{} {}", answer.status, answer.reason);
    let headers = answer.headers.iter();
    let headers = headers.map(|(name, value)| format!("{name}: {value}"));
    let lines = std::iter::once(first.trim_end().to_owned()).chain(headers);
    lines.map(|line| clean(&line) + "\n").collect()
}

fn print(mut answer: StoredAnswer) -> Result<Exit, Failure> {
    let mut out = io::stdout().lock();
    if out.is_terminal() {
        let advice = "a body is not printed on a terminal; redirect the output, or use --headers";
        return Err(Failure::failed(advice));
    }
    match io::copy(&mut answer.body, &mut out) {
        Ok(_) => Ok(Exit::Done),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(Failure::broken_pipe()),
        Err(error) => Err(Failure::failed(format!("failed to print the body: {error}"))),
    }
}
