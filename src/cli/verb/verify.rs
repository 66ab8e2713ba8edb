//! `archivist verify`: proves that recordings show their pages.

use crate::client::exit::{Exit, Failure};
use crate::client::paging::Paging;
use crate::client::server::Server;
use crate::display::{listing, style};
use crate::recording::recordings::{Located, Target};
use crate::replay::{browser_settings, find_namespace, lines, reader};
use crate::survey::job::ReaderJob;
use crate::survey::verify::Verified;
use archivist_config::Scope;
use archivist_core::model::{Owner, SnapshotId, in_percent};
use archivist_core::text::clean;
use archivist_hooks::replay::proof::Proof;
use archivist_shared::bus::documents::report::{Filter, Snapshot};
use clap::Args;
use serde::Serialize;
use std::io::ErrorKind;

/// Replay recorded pages, and compare them with what was recorded
///
/// The page is replayed as by `archivist replay --headless`. Its requests, its visible text and its
/// picture are compared with those of the recording, of which all parts are compared with their
/// digests and with the list of the recorder. The exit status is 1 if a figure is below `--least`, or
/// if the file contradicts itself.
#[derive(Args)]
pub struct VerifyArgs {
    /// A snapshot (s345), a crawl (c12), a URL of the archive, or a WACZ or WARC file
    ///
    /// The pages of a crawl are verified one after the other, as those of --tag and --all: each has a line
    /// if it has a recording, and the last line has their numbers. The exit status is 1 if one of them
    /// does not hold or cannot be verified; a page without a recording counts for neither. Of a URL, the
    /// newest recording is verified.
    #[arg(value_name = "WHAT", required_unless_present_any = ["tag", "all"])]
    target: Option<Target>,
    /// All snapshots with this tag, or of crawls with it
    #[arg(long, value_name = "TAG", conflicts_with = "target")]
    tag: Option<String>,
    /// All snapshots of this machine
    #[arg(long, conflicts_with_all = ["target", "tag"])]
    all: bool,
    /// Lowest share of answered requests, and lowest similarity of text and picture, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 95.0, value_parser = percent)]
    least: f64,
    /// Rely on options of chromium if this machine has no network namespaces
    #[arg(long)]
    no_namespace: bool,
    /// Print JSON
    ///
    /// Of several pages, one document per line, of which the last has their numbers.
    #[arg(long)]
    json: bool,
}

/// What `--json` prints of a page.
#[derive(Serialize)]
struct Document<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<SnapshotId>,
    url: &'a str,
    recorded: &'a str,
    holds: bool,
    #[serde(flatten)]
    proof: &'a Proof,
}

/// What `--json` prints of a page that was not verified.
#[derive(Serialize)]
struct Unverified<'a> {
    id: SnapshotId,
    url: &'a str,
    error: &'a str,
}

/// Numbers of pages, by what was found.
#[derive(Debug, Default, Serialize)]
struct Tally {
    pages: u64,
    hold: u64,
    /// Of those that hold: without a text or a picture that could be compared.
    hold_in_part: u64,
    do_not_hold: u64,
    failed: u64,
    unrecorded: u64,
}

pub async fn run(args: VerifyArgs, scope: &Scope) -> Result<Exit, Failure> {
    let filter = match &args.target {
        Some(Target::Id(id @ Owner::Crawl(_))) => Filter::of(*id),
        Some(target) => return one(target, &args, scope).await,
        None => Filter { tag: args.tag.clone(), ..Filter::default() },
    };
    several(filter, &args, scope).await
}

async fn one(target: &Target, args: &VerifyArgs, scope: &Scope) -> Result<Exit, Failure> {
    let located = Located::find(target, scope).await?;
    let verified = verify(target, located, args, scope).await?;
    let (proof, holds) = (&verified.proof, verified.proof.holds(args.least / 100.0));
    if args.json {
        let (url, recorded) = (&verified.url, &verified.time);
        style::print_value(&Document { id: None, url, recorded, holds, proof })?;
    } else {
        let most = listing::most(&std::io::stdout());
        style::print(&text(&verified, holds, most))?;
    }
    Ok(if holds { Exit::Done } else { Exit::Failed })
}

async fn verify(
    target: &Target,
    located: Located,
    args: &VerifyArgs,
    scope: &Scope,
) -> Result<Verified, Failure> {
    let more = |_| Err(ErrorKind::NotFound.into());
    reader::read(target, located, scope, args.no_namespace, ReaderJob::Verify, more).await
}

/// Verifies the pages of a list, the oldest first.
async fn several(filter: Filter, args: &VerifyArgs, scope: &Scope) -> Result<Exit, Failure> {
    let server = Server::reach(scope).await?;
    // What no page can do without.
    find_namespace(args.no_namespace, &browser_settings(scope, args.no_namespace)?)?;
    let mut pages = Paging::new(&server, Filter { after_page: Some(0), ..filter });
    let mut tally = Tally::default();
    loop {
        let batch = pages.next::<Snapshot>().await?.rows;
        if batch.is_empty() {
            break;
        }
        for page in batch {
            let line = page_line(&page, &mut tally, args, &server, scope).await?;
            style::print(&line)?;
        }
    }
    if tally.pages == 0 {
        return Err(Failure::failed("there is no such page on this machine"));
    }
    style::print(&if args.json { json_line(&tally)? } else { summary(&tally) })?;
    Ok(if tally.do_not_hold + tally.failed > 0 { Exit::Failed } else { Exit::Done })
}

/// Verifies a page of a list, counts it, and returns its line.
async fn page_line(
    page: &Snapshot,
    tally: &mut Tally,
    args: &VerifyArgs,
    server: &Server,
    scope: &Scope,
) -> Result<String, Failure> {
    tally.pages += 1;
    let (id, url) = (page.id, &page.url);
    let located = match Located::of_listed(page, server).await? {
        Ok(located) => located,
        Err(error) => {
            tally.unrecorded += 1;
            // Such as links that a limit left out, of which there may be very many.
            if args.json {
                return json_line(&Unverified { id, url, error: &error });
            }
            return Ok(String::new());
        }
    };
    let target = Target::Id(Owner::Snapshot(id));
    match verify(&target, located, args, scope).await {
        Ok(Verified { time, proof, .. }) => {
            let holds = proof.holds(args.least / 100.0);
            let count = if holds { &mut tally.hold } else { &mut tally.do_not_hold };
            *count += 1;
            let unknown = not_compared(&proof);
            tally.hold_in_part += u64::from(holds && unknown.is_some());
            if args.json {
                let proof = &proof;
                return json_line(&Document { id: Some(id), url, recorded: &time, holds, proof });
            }
            let found = match unknown {
                _ if !holds => lacks(&proof),
                None => "holds".to_owned(),
                Some(parts) => format!("holds as far as compared: {parts} not recorded"),
            };
            Ok(format!("{id} {}: {found}\n", clean(url)))
        }
        Err(failure) => {
            tally.failed += 1;
            let error = failure.message();
            if args.json {
                return json_line(&Unverified { id, url, error });
            }
            Ok(format!("{id} {}: not verified: {}\n", clean(url), clean(error)))
        }
    }
}

fn json_line(document: &impl Serialize) -> Result<String, Failure> {
    let json = serde_json::to_string(document);
    json.map(|json| json + "\n")
        .map_err(|error| Failure::failed(format!("failed to write JSON: {error}")))
}

/// Why a recording does not hold, in one line.
fn lacks(proof: &Proof) -> String {
    let flaws = match proof.flaws.len() {
        0 => String::new(),
        1 => ", 1 contradiction in the file".to_owned(),
        n => format!(", {n} contradictions in the file"),
    };
    format!(
        "does not hold: resources {} answered, text {}, picture {}{flaws}",
        in_percent(proof.resources),
        similar(proof.text),
        similar(proof.picture),
    )
}

fn summary(tally: &Tally) -> String {
    let Tally { pages, hold, hold_in_part, do_not_hold, failed, unrecorded } = tally;
    let plural = if *pages == 1 { "" } else { "s" };
    let in_part = match hold_in_part {
        0 => String::new(),
        n => format!(" ({n} not compared as a whole)"),
    };
    let mut text = format!("{pages} page{plural}: {hold} hold{in_part}, {do_not_hold} do not hold");
    if *failed > 0 {
        text.push_str(&format!(", {failed} could not be verified"));
    }
    if *unrecorded > 0 {
        text.push_str(&format!(", {unrecorded} without a recording"));
    }
    text + "\n"
}

fn text(verified: &Verified, holds: bool, most: usize) -> String {
    let Verified { url, time, proof } = verified;
    let requests = &proof.requests;
    let mut text = format!(
        "{}, recorded {}\n\
         resources: {} answered ({} exactly, {} by a rule, {} not recorded, {} not requested{})\n\
         text:      {}\n\
         picture:   {}\n",
        clean(url),
        clean(time),
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
    text.push_str(&match not_compared(proof) {
        _ if !holds => "the recording does not show the page\n".to_owned(),
        None => "the recording shows the page\n".to_owned(),
        Some(parts) => {
            format!("the recording shows the page as far as compared: {parts} not recorded\n")
        }
    });
    text
}

/// What the recording has not, so that its replay was not compared with it.
fn not_compared(proof: &Proof) -> Option<&'static str> {
    match (proof.text, proof.picture) {
        (Some(_), Some(_)) => None,
        (None, Some(_)) => Some("text"),
        (Some(_), None) => Some("picture"),
        (None, None) => Some("text and picture"),
    }
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
    use archivist_hooks::replay::Requests;

    #[test]
    fn figures_and_contradictions_are_printed() {
        let proof = Proof {
            requests: Requests { exact: 9, ..Requests::default() },
            not_requested: vec!["http://a.test/b".to_owned()],
            resources: 0.9,
            picture: Some(0.9999),
            flaws: vec!["archive/data.warc.gz: digest".to_owned()],
            ..Proof::default()
        };
        let url = "http://a.test/".to_owned();
        let time = "2026-11-26T09:00:00Z".to_owned();
        assert_eq!(
            text(&Verified { url, time, proof }, false, 20),
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
    fn pages_are_counted_by_what_was_found() {
        let all =
            Tally { pages: 9, hold: 4, do_not_hold: 2, failed: 1, unrecorded: 2, hold_in_part: 1 };
        assert_eq!(
            summary(&all),
            "9 pages: 4 hold (1 not compared as a whole), 2 do not hold, 1 could not be verified, 2 without a recording\n"
        );
        let one = Tally { pages: 1, hold: 1, ..Tally::default() };
        assert_eq!(summary(&one), "1 page: 1 hold, 0 do not hold\n");
        let proof = Proof {
            resources: 0.5,
            text: Some(0.25),
            flaws: vec!["a: b".to_owned()],
            ..Proof::default()
        };
        assert_eq!(
            lacks(&proof),
            "does not hold: resources 50.0 % answered, text 25.0 % similar, picture not recorded, \
             1 contradiction in the file"
        );
    }

    #[test]
    fn recording_without_text_or_picture_is_not_called_whole() {
        let end = |text_share, picture| {
            let proof = Proof { resources: 1.0, text: text_share, picture, ..Proof::default() };
            let (url, time) = ("http://a.test/".to_owned(), "2026-11-26T09:00:00Z".to_owned());
            let text = text(&Verified { url, time, proof }, true, 20);
            text.lines().last().unwrap().to_owned()
        };
        assert_eq!(end(Some(1.0), Some(1.0)), "the recording shows the page");
        assert_eq!(
            end(None, None),
            "the recording shows the page as far as compared: text and picture not recorded"
        );
        assert_eq!(
            end(Some(1.0), None),
            "the recording shows the page as far as compared: picture not recorded"
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
