//! `archivist-search change` is the program of `archivist-index-pages.service`: it reads its work from
//! standard input as JSON. `archivist-search answer DIRECTORY` reads a question and prints an answer, and
//! `check DIRECTORY` compares the files of the index with their checksums, and prints the numbers of the
//! snapshots that the index has. The exit status is 75 if there is no index that it can read.

use archivist_core::model::search::{REBUILD, SearchQuestion, SearchWork};
use archivist_search::{Problem, answer, check, perform};
use serde::de::DeserializeOwned;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Longest question in bytes: what is longer is cut.
const QUESTION_MAX: u64 = 8 << 20;
/// Exit status if the engine fails (sysexits.h).
const SOFTWARE: u8 = 70;
/// Most bytes of a work: its entries have URLs and titles.
const WORK_MAX: u64 = 64 << 20;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let task = arguments.next().unwrap_or_default();
    let directory = arguments.next().map(PathBuf::from);
    report_panics(if task == "answer" { SOFTWARE } else { REBUILD });
    let done = match (task.to_str(), directory) {
        (Some("change"), None) => read(WORK_MAX).and_then(|work: SearchWork| perform(&work)),
        (Some("answer"), Some(directory)) => print_answer(&directory),
        (Some("check"), Some(directory)) => print_snapshots(&directory),
        _ => {
            eprintln!(
                "usage: archivist-search change, or: archivist-search answer|check DIRECTORY"
            );
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{problem}");
            match problem {
                Problem::Rebuild(_) => ExitCode::from(REBUILD),
                Problem::Failed(_) => ExitCode::FAILURE,
            }
        }
    }
}

/// Ends the program with a status if the engine panics, as it does for some damaged files. Only a check of
/// all files says whether a question has met one.
fn report_panics(status: u8) {
    std::panic::set_hook(Box::new(move |panic| {
        let place = panic.location().map(ToString::to_string);
        let place = place.unwrap_or_default();
        eprintln!("the engine cannot read the search index ({place})");
        std::process::exit(status.into());
    }));
}

fn unreadable(error: impl std::fmt::Display) -> Problem {
    Problem::Failed(format!("failed to read standard input: {error}"))
}

fn read<T: DeserializeOwned>(most: u64) -> Result<T, Problem> {
    let mut text = String::new();
    let mut stdin = std::io::stdin().lock().take(most);
    stdin.read_to_string(&mut text).map_err(unreadable)?;
    serde_json::from_str(&text).map_err(unreadable)
}

fn print_snapshots(directory: &Path) -> Result<(), Problem> {
    let ids = check(directory)?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    let written = ids.iter().try_for_each(|id| writeln!(out, "{id}"));
    written
        .and_then(|()| out.flush())
        .map_err(|error| Problem::Failed(format!("failed to write the numbers: {error}")))
}

fn print_answer(directory: &Path) -> Result<(), Problem> {
    let question: SearchQuestion = read(QUESTION_MAX)?;
    let answer = answer(directory, &question)?;
    let written = serde_json::to_string(&answer)
        .map_err(std::io::Error::from)
        .and_then(|text| writeln!(std::io::stdout(), "{text}"));
    written.map_err(|error| Problem::Failed(format!("failed to write the answer: {error}")))
}
