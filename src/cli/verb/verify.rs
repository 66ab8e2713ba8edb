//! `archivist verify`: proves that a recording shows its page.

use super::replay::recordings::{Recording, Target};
use super::replay::{LIMIT, browser_settings, failure, find_wall, lines, print_json};
use crate::client::exit::{Exit, Failure};
use crate::display::{listing, style};
use archivist_config::Scope;
use archivist_core::model::in_percent;
use archivist_core::text::clean;
use archivist_hooks::replay::Replay;
use archivist_hooks::replay::proof::{self, Evidence, Proof, prove};
use clap::Args;
use serde::Serialize;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// Replay a recorded page, and compare it with what was recorded
///
/// The page is replayed as by `archivist replay --headless`. Its requests, its visible text and its
/// picture are compared with those of the recording, of which all parts are compared with their
/// digests and with the list of the recorder. The exit status is 1 if a figure is below `--least`, or
/// if the file contradicts itself.
#[derive(Args)]
pub struct VerifyArgs {
    /// A snapshot (s345), a URL of the archive, or a WACZ or WARC file
    #[arg(value_name = "WHAT")]
    target: Target,
    /// Lowest share of answered requests, and lowest similarity of text and picture, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 95.0, value_parser = percent)]
    least: f64,
    /// Rely on options of chromium if this machine has no network namespaces
    #[arg(long)]
    no_wall: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Document<'a> {
    url: &'a str,
    recorded: String,
    holds: bool,
    #[serde(flatten)]
    proof: &'a Proof,
}

pub async fn run(args: VerifyArgs, scope: &Scope) -> Result<Exit, Failure> {
    let recording = Recording::open(&args.target, scope).await?;
    let evidence = Evidence::read(&recording.file, &recording.url);
    let settings = browser_settings(scope, args.no_wall)?;
    let replay = Replay {
        url: recording.url.clone(),
        time: recording.time,
        seed: recording.seed(),
        wall: find_wall(args.no_wall, &settings)?,
        viewport: evidence.viewport(),
        limit: LIMIT,
        settings,
    };
    let answers = Arc::new(recording.index());
    let mut proof = prove(&replay, answers, &evidence).await.map_err(failure)?;
    proof.flaws.extend(flaws(&recording.path)?);
    let holds = proof.holds(args.least / 100.0);
    if args.json {
        print_json(&Document {
            url: &replay.url,
            recorded: replay.time.to_string(),
            holds,
            proof: &proof,
        })?;
    } else {
        let most = listing::most(&std::io::stdout());
        style::print(&text(&replay, &proof, holds, most))?;
    }
    Ok(if holds { Exit::Done } else { Exit::Failed })
}

/// What in a file contradicts itself.
fn flaws(path: &Path) -> Result<Vec<String>, Failure> {
    let failed = |error: &dyn std::fmt::Display| {
        let reason = clean(&error.to_string());
        Failure::failed(format!("failed to read '{}': {reason}", path.display()))
    };
    let file = File::open(path).map_err(|error| failed(&error))?;
    proof::flaws(path, file).map_err(|error| failed(&error))
}

fn text(replay: &Replay, proof: &Proof, holds: bool, most: usize) -> String {
    let requests = &proof.requests;
    let mut text = format!(
        "{}, recorded {}\n\
         resources: {} answered ({} exactly, {} by a rule, {} not recorded, {} not requested{})\n\
         text:      {}\n\
         picture:   {}\n",
        clean(&replay.url),
        replay.time,
        in_percent(proof.resources),
        requests.exact,
        requests.fuzzy,
        requests.missing,
        proof.not_requested.len(),
        match requests.failed {
            0 => String::new(),
            failed => format!(", {failed} failed as in the recording"),
        },
        similar(proof.text),
        similar(proof.picture),
    );
    text.push_str(&lines("answered by a rule", &requests.by_rule, most));
    text.push_str(&lines("not answered", &requests.not_answered, most));
    let words = [
        ("recorded, but not requested", &proof.not_requested),
        ("errors of scripts", &proof.errors),
        ("contradictions in the file", &proof.flaws),
    ];
    for (head, listed) in words {
        if !listed.is_empty() {
            text.push_str(&format!("{head}:\n"));
        }
        let shown = listing::lines(listed, most, |one| format!("  {}", clean(one)));
        text.push_str(&shown);
    }
    if let Some(note) = &proof.note {
        text.push_str(&format!("note: {}\n", clean(note)));
    }
    text.push_str(if holds {
        "the recording shows the page\n"
    } else {
        "the recording does not show the page\n"
    });
    text
}

fn similar(figure: Option<f64>) -> String {
    figure.map_or("not recorded".to_owned(), |figure| format!("{} similar", in_percent(figure)))
}

fn percent(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.trim_end_matches('%').trim().parse().ok();
    number
        .filter(|number| (0.0..=100.0).contains(number))
        .ok_or_else(|| "a number from 0 to 100 is required".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_hooks::replay::{Requests, Wall, WebUrl};
    use archivist_plugin::Values;

    #[test]
    fn figures_and_contradictions_are_printed() {
        let replay = Replay {
            url: WebUrl::of("http://a.test/").unwrap(),
            time: "2026-11-26T09:00:00Z".parse().unwrap(),
            seed: None,
            wall: Wall::none(),
            viewport: None,
            limit: LIMIT,
            settings: Values::new(),
        };
        let proof = Proof {
            requests: Requests { exact: 9, ..Requests::default() },
            not_requested: vec!["http://a.test/b".to_owned()],
            resources: 0.9,
            picture: Some(0.9999),
            flaws: vec!["archive/data.warc.gz: digest".to_owned()],
            ..Proof::default()
        };
        assert_eq!(
            text(&replay, &proof, false, 20),
            "http://a.test/, recorded 2026-11-26T09:00:00Z\n\
             resources: 90.0 % answered (9 exactly, 0 by a rule, 0 not recorded, 1 not requested)\n\
             text:      not recorded\n\
             picture:   99.9 % similar\n\
             recorded, but not requested:\n  http://a.test/b\n\
             contradictions in the file:\n  archive/data.warc.gz: digest\n\
             the recording does not show the page\n"
        );
    }

    #[test]
    fn threshold_is_a_percentage() {
        assert_eq!(percent("98.5%"), Ok(98.5));
        for bad in ["", "x", "-1", "101", "NaN"] {
            assert!(percent(bad).is_err(), "{bad}");
        }
    }
}
