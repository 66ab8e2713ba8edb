//! `archivist versions`: all snapshots of a page, and what changed between them.

use crate::client::exit::{Exit, Failure};
use crate::client::paging::Paging;
use crate::client::server::Server;
use crate::display::rows;
use crate::display::style::{self, Style};
use crate::display::table::{Cell, Table};
use crate::display::text;
use crate::survey::compare::{Part, compare_texts};
use crate::survey::texts::LineChange;
use archivist_config::Scope;
use archivist_core::model::web::pattern::UrlPattern;
use archivist_core::model::{CloserLook, PageVersion, TextDigest};
use archivist_core::text::{TextChange, clean, human_size, human_span, text_change};
use archivist_hooks::TextDescription;
use archivist_shared::bus::documents::report::{Filter, Snapshot, Version};
use clap::Args;
use serde::Serialize;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

/// Versions whose files are compared with those of the one before: each takes a process.
const LOOKS_MAX: usize = 20;

/// List all snapshots of a page, newest first, and what changed between them
///
/// A page is the same whatever the scheme, `www.`, a fragment, the order of arguments and those of
/// campaigns (utm_source, fbclid and the like) are. A fleet does not know it, so this is about this
/// machine alone. Texts and screenshots are compared if the plugins text and screenshot have saved them and the
/// caller can read the archive. Two snapshots are identical if both are the same. Of the newest 20, the first new
/// sentence is shown; numbers, dates and times make none.
#[derive(Args)]
pub struct VersionsArgs {
    /// URL of the page
    #[arg(value_name = "URL")]
    url: String,
    /// List at most N snapshots; 0 lists all
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
    limit: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub async fn run(args: VersionsArgs, scope: &Scope) -> Result<Exit, Failure> {
    let server = Server::reach(scope).await?;
    let filter = Filter { url: Some(UrlPattern::of_page(&args.url)), ..Filter::default() };
    let versions: Vec<Version> = Paging::new(&server, filter).collect().await?;
    if versions.is_empty() {
        let url = clean(&args.url);
        return Err(Failure::failed(format!(
            "there is no snapshot of '{url}' on this machine; to archive it: archivist add '{url}'"
        )));
    }
    let mut changes = compared(newest(versions, args.limit));
    let is_cut = args.limit > 0 && changes.len() > args.limit as usize;
    if is_cut {
        changes.pop();
    }
    if args.json {
        style::print_value(&changes)?;
        return Ok(Exit::Done);
    }
    let style = Style::of_stdout();
    style::print(&table(&changes, &style).render(&style))?;
    if is_cut {
        eprintln!("the newest {}; --limit 0 shows all", args.limit);
    }
    Ok(Exit::Done)
}

/// A version and how it differs from the one before.
#[derive(Serialize)]
struct Change {
    #[serde(flatten)]
    version: Version,
    /// Milliseconds since the one before; `None` for the first.
    after_ms: Option<u64>,
    /// What changed; empty for the first.
    changes: Vec<String>,
}

/// Returns the digest of the text of a snapshot. `None` if it has none on this machine, or the caller
/// may not read it.
fn text_of(snapshot: &Snapshot) -> Option<TextDigest> {
    let directory = snapshot.directory.as_deref()?;
    TextDescription::of_snapshot(Path::new(directory)).map(TextDescription::digest)
}

fn compared_of<'a>(snapshot: &'a Snapshot, text: Option<&'a TextDigest>) -> PageVersion<'a> {
    PageVersion { http_status: snapshot.http_status, title: snapshot.title.as_deref(), text }
}

/// Returns the newest versions in the order of their visits, and the one before them, with which the
/// first is compared. Ids have another order: pages are imported, and nodes of a fleet reserve blocks.
fn newest(mut versions: Vec<Version>, limit: u32) -> Vec<Version> {
    versions.sort_by_key(|version| (version.snapshot.visited_at, version.snapshot.id));
    if limit > 0 {
        let older = versions.len().saturating_sub(limit as usize + 1);
        versions.drain(..older);
    }
    versions
}

/// Compares the files of two versions. A reader that fails says nothing about the page.
fn look_at(before: &Snapshot, now: &Snapshot, differ_in_text: bool) -> CloserLook {
    let directories = [before, now].map(|page| page.directory.as_deref().map(Path::new));
    let [Some(before), Some(now)] = directories else {
        return CloserLook::default();
    };
    let open = |part: Part| Some([part.open(before).ok()?, part.open(now).ok()?]);
    let pictures = open(Part::Picture);
    let texts = if differ_in_text { open(Part::Text) } else { None };
    let changes = texts.and_then(|texts| compare_texts(&texts).ok());
    CloserLook {
        same_picture: pictures.and_then(|[one, other]| is_same(one, other).ok()),
        text: changes.map(|changes| change_of(&changes)),
    }
}

fn is_same(one: File, other: File) -> io::Result<bool> {
    if one.metadata()?.len() != other.metadata()?.len() {
        return Ok(false);
    }
    let (mut one, mut other) = (BufReader::new(one), BufReader::new(other));
    loop {
        let (part, same) = (one.fill_buf()?, other.fill_buf()?);
        let length = part.len().min(same.len());
        if length == 0 || part[..length] != same[..length] {
            return Ok(part.is_empty() && same.is_empty());
        }
        one.consume(length);
        other.consume(length);
    }
}

fn change_of(changes: &[LineChange]) -> TextChange {
    let joined = |parts: &[(bool, String)]| -> String {
        parts.iter().map(|(_, part)| part.as_str()).collect()
    };
    let (mut removed, mut added) = (Vec::new(), Vec::new());
    for change in changes {
        match change {
            LineChange::Removed(parts) => removed.push(joined(parts)),
            LineChange::Added(parts) => added.push(joined(parts)),
            _ => {}
        }
    }
    text_change(removed.iter().map(String::as_str), added.iter().map(String::as_str))
}

/// Compares each version with the one before, and returns the newest first.
fn compared(versions: Vec<Version>) -> Vec<Change> {
    let mut compared: Vec<Change> = Vec::with_capacity(versions.len());
    let mut text_before: Option<TextDigest> = None;
    let first_look = versions.len().saturating_sub(LOOKS_MAX);
    for (number, version) in versions.into_iter().enumerate() {
        let text = text_of(&version.snapshot);
        let before = compared.last().map(|change| &change.version.snapshot);
        let now = &version.snapshot;
        let after = before.map(|before| now.visited_at.until(before.visited_at));
        compared.push(Change {
            after_ms: after.map(|after| u64::try_from(after.as_millis()).unwrap_or(u64::MAX)),
            changes: before.map_or_else(Vec::new, |before| {
                let differ = matches!((&text_before, &text), (Some(a), Some(b)) if a != b);
                let look = if number >= first_look {
                    look_at(before, now, differ)
                } else {
                    CloserLook::default()
                };
                let before = compared_of(before, text_before.as_ref());
                compared_of(now, text.as_ref()).changes_since(&before, &look)
            }),
            version,
        });
        text_before = text;
    }
    compared.reverse();
    compared
}

fn table(changes: &[Change], style: &Style) -> Table {
    let mut table =
        Table::new("ID  TIME  AFTER?  STATUS  HTTP  SIZE?  CHANGES…  TITLE…?  KEPT BY…?  REASON…");
    for Change { version, after_ms, changes } in changes {
        let snapshot = &version.snapshot;
        let tone = text::tone_of_lifecycle(snapshot.status, snapshot.lack());
        let after = after_ms.map(|millis| human_span(std::time::Duration::from_millis(millis)));
        table.row([
            snapshot.id.to_string().into(),
            text::when(Some(snapshot.visited_at), style).into(),
            after.unwrap_or_default().into(),
            Cell::toned(snapshot.status.as_str(), tone),
            rows::http(snapshot.http_status),
            match version.bytes {
                0 => Cell::default(),
                bytes => human_size(bytes).into(),
            },
            changes.join(", ").into(),
            snapshot.title.as_deref().unwrap_or_default().into(),
            version.plugins.join(" ").into(),
            snapshot.lack().unwrap_or_default().into(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use archivist_core::model::Time;

    fn version(id: i64, second: i64, http: u16, title: &str) -> Version {
        Version {
            snapshot: Snapshot {
                visited_at: Time(second * 1000),
                http_status: Some(http),
                title: Some(title.to_owned()),
                ..sample::snapshot(id)
            },
            bytes: 2048,
            plugins: vec!["dom".to_owned(), "wget".to_owned()],
        }
    }

    #[test]
    fn texts_are_compared_with_the_one_before() {
        let archive = tempfile::tempdir().unwrap();
        let with_text = |id: i64, sha256: &str, simhash: &str| {
            let directory = archive.path().join(format!("s{id}"));
            let description = serde_json::json!({
                "language": "en", "title": null, "source": "dom", "characters": 9,
                "truncated": false, "sha256": sha256, "simhash": simhash,
            });
            std::fs::create_dir_all(directory.join("text")).unwrap();
            std::fs::write(directory.join("text/text.json"), description.to_string()).unwrap();
            let mut version = version(id, id, 200, "Home");
            version.snapshot.directory = Some(directory.to_str().unwrap().to_owned());
            version
        };
        let compared = compared(newest(
            vec![
                with_text(1, "a", "00000000000000ff"),
                with_text(2, "b", "00000000000000ff"),
                with_text(3, "b", "00000000000000ff"),
                with_text(4, "c", "000000000000ff0f"),
                version(5, 5, 200, "Home"),
                with_text(6, "d", "ffffffffffffff0f"),
                with_text(7, "e", "no hash"),
            ],
            0,
        ));
        let changes: Vec<String> = compared.iter().rev().map(|c| c.changes.join(", ")).collect();
        let near = "text 99% the same";
        assert_eq!(changes, ["", near, "same text", "text 83% the same", "", "", ""]);
    }

    #[test]
    fn pictures_are_compared_by_their_bytes() {
        let archive = tempfile::tempdir().unwrap();
        let with_picture = |id: i64, bytes: &[u8]| {
            let directory = archive.path().join(format!("s{id}"));
            std::fs::create_dir_all(directory.join("screenshot")).unwrap();
            std::fs::write(directory.join("screenshot/screenshot.png"), bytes).unwrap();
            let mut version = version(id, id, 200, "Home");
            version.snapshot.directory = Some(directory.to_str().unwrap().to_owned());
            version
        };
        let large = vec![7; 100_000];
        let mut other = large.clone();
        other[99_999] = 8;
        let versions = [&large, &large, &other, &vec![8; 100_001]];
        let versions = (1..).zip(versions).map(|(id, bytes)| with_picture(id, bytes)).collect();
        let compared = compared(newest(versions, 0));
        let changes: Vec<String> = compared.iter().rev().map(|c| c.changes.join(", ")).collect();
        assert_eq!(changes, ["", "", "picture changed", "picture changed"]);
    }

    #[test]
    fn lines_of_a_comparison_are_sentences() {
        let old = "Heading\nOne. Two.\n1 visitor\n";
        let change = |new: &str| change_of(&crate::survey::texts::changes(old, new));
        assert_eq!(
            change("Heading\nOne. Two.\n2 visitors\n"),
            TextChange::New("2 visitors".to_owned())
        );
        assert_eq!(change("Heading\nOne. Two.\n2 visitor\n"), TextChange::Figures);
        assert_eq!(change("Heading\nOne. 2.\n1 visitor\n"), TextChange::Gone("Two.".to_owned()));
    }

    #[test]
    fn imported_versions_are_no_newer_than_their_visit() {
        let versions =
            vec![version(3, 1, 200, "2013"), version(2, 9, 200, ""), version(1, 8, 200, "")];
        let newest = newest(versions, 1);
        let ids: Vec<i64> = newest.iter().map(|version| version.snapshot.id.0).collect();
        assert_eq!(ids, [1, 2]);
    }

    #[test]
    fn versions_are_compared_in_the_order_of_time() {
        let compared = compared(newest(
            vec![
                version(8, 90_000, 404, "Gone"),
                version(3, 60, 200, "Home"),
                // Of another node, whose ids are higher.
                version(9, 70, 200, "Home "),
            ],
            0,
        ));
        let table = table(&compared, &Style::plain(Time(0))).render(&Style::plain(Time(0)));
        let lines: Vec<&str> = table.lines().collect();
        assert!(lines[0].starts_with("ID  TIME"), "{table}");
        assert!(lines[1].starts_with("s8"), "{table}");
        for part in ["1d 0h", "404", "2.0K", "HTTP 200 to 404, title", "dom wget"] {
            assert!(lines[1].contains(part), "{part}: {table}");
        }
        assert!(lines[2].starts_with("s9") && lines[2].contains("10s"), "{table}");
        assert!(!lines[2].contains("title"), "{table}");
        assert!(lines[3].starts_with("s3"), "{table}");
    }
}
