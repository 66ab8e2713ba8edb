//! The data directory of ArchiveBox. Its snapshots become snapshots of crawls with the plugins `import` and
//! `text`; nothing is requested. This process copies the files of each to a directory in `.importing` of the
//! archive ([`archivist_shared::staged`]), and the worker of the snapshot moves them to that of the snapshot.

mod files;
mod layout;
mod report;
mod survey;

use super::{ImportArgs, failed};
use crate::client::exit::{Exit, Failure};
use crate::display::style;
use crate::staging::copy::{Tally, Target, finish};
use crate::staging::recording::source_name;
use crate::staging::report_faults;
use crate::staging::stage::{Key, Queue, ROUND_MAX, Stage, StagedEntry};
use archivist_config::Scope;
use archivist_core::model::PageUrl;
use archivist_core::text::clean;
use archivist_plugin::Directory;
use archivist_shared::archive::{IMPORT_PLUGIN, IMPORT_SOURCE};
use archivist_shared::archivebox::BoxSnapshot;
use archivist_shared::bus::documents::report::AddOptions;
use report::Report;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;
use survey::Places;
pub use survey::is_box;

/// Faults that are printed.
const FAULTS_MAX: usize = 100;
pub async fn import(path: &Path, args: &ImportArgs, scope: &Scope) -> Result<Exit, Failure> {
    let top = Directory::open(path).map_err(|error| failed("open", path, &error))?;
    let shown = clean(&path.display().to_string());
    if let Err(error) = top.names() {
        return Err(failed("read", path, &error));
    }
    if !survey::is_box(&top) {
        return Err(Failure::usage(format!(
            "'{shown}' is no data directory of ArchiveBox: it has neither index.sqlite3 nor archive/"
        )));
    }
    let (mut found, places) = survey::read(top, scope)?;
    style::print(&format!("'{shown}': {}\n", report::description(&found)))?;
    let faults = std::mem::take(&mut found.faults);
    report_faults(&shown, &faults, FAULTS_MAX);
    let mut report = Report::new(shown, !faults.is_empty());
    let snapshots = usable(found.snapshots, &mut report);
    if args.dry_run {
        for snapshot in &snapshots {
            let source = places.open(snapshot);
            let copied = files::take(snapshot, source.as_ref(), None);
            let (tally, _, results) = copied.map_err(|error| failed("read", path, &error))?;
            report.add(snapshot, source.is_some(), &tally, &results);
        }
        return report.print(None);
    }
    let (stage, known, server) = Stage::open(scope).await?;
    let (rounds, known) = rounds(snapshots, &known);
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let options = AddOptions {
        tags: args.tags.clone(),
        plugins: vec![IMPORT_PLUGIN.to_owned(), "text".to_owned()],
        config: BTreeMap::from([(IMPORT_SOURCE.to_owned(), source_name(&path))]),
        ..AddOptions::default()
    };
    let mut exit = Exit::Done;
    for round in rounds {
        let mut queue = stage.begin()?;
        for snapshot in round {
            copy(snapshot, &places, &mut queue, &mut report)?;
        }
        let Some((added, ended)) = queue.add(options.clone(), args.wait, &server).await? else {
            continue;
        };
        report.queued += added.accepted;
        if ended != Exit::Done {
            exit = ended;
        }
    }
    match report.print(Some(known))? {
        Exit::Done => Ok(exit),
        other => Ok(other),
    }
}

/// The snapshots with a URL that can be archived, in the form in which the archive has it.
fn usable(snapshots: Vec<BoxSnapshot>, report: &mut Report) -> Vec<BoxSnapshot> {
    let mut usable = Vec::with_capacity(snapshots.len());
    for mut snapshot in snapshots {
        match PageUrl::parse(&snapshot.url) {
            Ok(url) => {
                snapshot.url = url.as_str().to_owned();
                usable.push(snapshot);
            }
            Err(error) => report.refuse(&snapshot, &error.to_string()),
        }
    }
    usable
}

/// The snapshots that are not known, in rounds, and the number of the others. A crawl has a URL once, and a
/// directory may have it at several times.
fn rounds(snapshots: Vec<BoxSnapshot>, known: &BTreeSet<Key>) -> (Vec<Vec<BoxSnapshot>>, u64) {
    let mut rounds: Vec<Vec<BoxSnapshot>> = Vec::new();
    let mut next: BTreeMap<String, usize> = BTreeMap::new();
    let mut seen = known.clone();
    let mut count = 0;
    let mut first_open = 0;
    for snapshot in snapshots {
        if !seen.insert(key(&snapshot)) {
            count += 1;
            continue;
        }
        let round = next.entry(snapshot.url.clone()).or_default();
        *round = (*round).max(first_open);
        while rounds.get(*round).is_some_and(|full| full.len() >= ROUND_MAX) {
            *round += 1;
        }
        while rounds.len() <= *round {
            rounds.push(Vec::new());
        }
        rounds[*round].push(snapshot);
        *round += 1;
        while rounds.get(first_open).is_some_and(|full| full.len() >= ROUND_MAX) {
            first_open += 1;
        }
    }
    (rounds, count)
}

fn key(snapshot: &BoxSnapshot) -> Key {
    (snapshot.url.clone(), snapshot.bookmarked_at.clone())
}

fn copy(
    snapshot: BoxSnapshot,
    places: &Places,
    queue: &mut Queue,
    report: &mut Report,
) -> Result<(), Failure> {
    let source = places.open(&snapshot);
    let done = copy_files(&snapshot, source.as_ref(), queue);
    let (tally, results) = done.map_err(|error| queue.failed(&error))?;
    report.add(&snapshot, source.is_some(), &tally, &results);
    queue.entries.push(StagedEntry {
        url: snapshot.url,
        title: snapshot.title,
        tags: snapshot.tags,
        time: snapshot.bookmarked_at,
    });
    Ok(())
}

fn copy_files(
    snapshot: &BoxSnapshot,
    source: Option<&(Directory, layout::Layout)>,
    queue: &Queue,
) -> io::Result<(Tally, files::Results)> {
    let archive = &queue.archive;
    let directory = queue.page(&snapshot.url)?;
    let target = Target { archive, directory: &directory };
    let (tally, page, results) = files::take(snapshot, source, Some(&target))?;
    // Where the page comes from, for a reader of the archive.
    let origin = json!({
        "id": snapshot.id, "timestamp": snapshot.timestamp, "url": snapshot.url,
        "title": snapshot.title, "tags": snapshot.tags, "bookmarked_at": snapshot.bookmarked_at,
        "results": snapshot.results,
    });
    finish(&page, Some(("archivebox.json", &origin)), &target)?;
    Ok((tally, results))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(url: &str, time: &str) -> BoxSnapshot {
        BoxSnapshot {
            url: url.to_owned(),
            bookmarked_at: Some(time.to_owned()),
            ..BoxSnapshot::default()
        }
    }

    #[test]
    fn a_crawl_has_a_url_once_and_known_snapshots_are_left_out() {
        let mut all = vec![
            snapshot("http://a/", "1"),
            snapshot("http://a/", "2"),
            snapshot("http://a/", "2"),
            snapshot("http://b/", "1"),
        ];
        all.extend((0..2500).map(|n| snapshot(&format!("http://c/{n}"), "1")));
        all.push(snapshot("http://a/", "3"));
        let known = BTreeSet::from([key(&all[0])]);
        let count = all.len();
        let (rounds, known) = rounds(all, &known);
        assert_eq!(known, 2);
        let total: usize = rounds.iter().map(Vec::len).sum();
        assert_eq!(total, count - 2);
        for round in &rounds {
            let urls: BTreeSet<&str> = round.iter().map(|page| &*page.url).collect();
            assert_eq!(urls.len(), round.len());
            assert!(!round.is_empty() && round.len() <= ROUND_MAX);
        }
    }
}
