//! `archivist diff`: what changed in the text or in the picture between two snapshots.

use crate::client::exit::{Exit, Failure};
use crate::client::location::place_of;
use crate::client::page::{self, PageName};
use crate::client::reader_files;
use crate::client::server::Server;
use crate::display::style::{self, Style, Tone};
use crate::survey::compare::{Part, compare_texts, file_of};
use crate::survey::job::ReaderJob;
use crate::survey::texts::LineChange;
use archivist_config::Scope;
use archivist_core::model::{Owner, SnapshotId};
use archivist_core::text::clean;
use archivist_plugin::files::whole::{Survives, replace};
use clap::Args;
use std::fs::File;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};

/// Bytes that the reader of two pictures may print.
const SUMMARY_MAX_BYTES: u64 = 4096;

/// Show what changed in the text of a page between two snapshots
///
/// The result is a unified diff of the texts that the plugin text has saved, in which a line is a
/// paragraph, a heading or an entry of a list. On a terminal, the words that changed stand out;
/// elsewhere, a file that patch(1) can read is written. --pictures compares the screenshots instead.
#[derive(Args)]
pub struct DiffArgs {
    /// The older one: a snapshot (s345), or a URL with a time (https://example.com/@2024)
    #[arg(value_name = "ID|URL[@TIME]")]
    from: PageName,
    /// The newer one
    #[arg(value_name = "ID|URL[@TIME]")]
    to: PageName,
    /// Compare the screenshots, and write a picture of both and of their difference to FILE (PNG)
    ///
    /// The older screenshot is on the left, the newer one next to it, and rows that both have stand
    /// side by side. On the right, pixels that changed and rows that are gone are red, rows that are
    /// new are green, and all else is pale.
    #[arg(long, value_name = "FILE")]
    pictures: Option<PathBuf>,
}

pub async fn run(args: DiffArgs, scope: &Scope) -> Result<Exit, Failure> {
    let from = Version::find(&args.from, scope).await?;
    let to = Version::find(&args.to, scope).await?;
    if from.id == to.id {
        let why = format!("both are {}; archivist versions URL lists the others", from.id);
        return Err(Failure::usage(why));
    }
    if let Some(path) = &args.pictures {
        return compare_pictures(&from, &to, path);
    }
    let files = [from.open(Part::Text)?, to.open(Part::Text)?];
    let changes = compare_texts(&files)?;
    let text = unified(&changes, (&from.name, &to.name), &Style::of_stdout());
    if text.is_empty() {
        let (from, to) = (from.id, to.id);
        eprintln!("the texts of {from} and {to} are the same");
    }
    style::print(&text)?;
    Ok(Exit::Done)
}

/// Writes a picture of the two screenshots and of what differs.
fn compare_pictures(from: &Version, to: &Version, path: &Path) -> Result<Exit, Failure> {
    let files = [from.open(Part::Picture)?, to.open(Part::Picture)?];
    let failed = |error: std::io::Error| {
        let path = clean(&path.display().to_string());
        Failure::failed(format!("failed to write '{path}': {error}"))
    };
    let mut png = reader_files::scratch().map_err(failed)?;
    let mut summary = String::new();
    let open = file_of(&files, Some(&png));
    reader_files::read(&ReaderJob::Pictures, SUMMARY_MAX_BYTES, open, |text: String| {
        summary = text
    })?;
    let mut bytes = Vec::new();
    png.rewind().and_then(|()| png.read_to_end(&mut bytes)).map_err(failed)?;
    replace(path, &bytes, 0o644, Survives::PowerCut).map_err(failed)?;
    let summary = clean(&summary);
    style::print(&format!("screenshots of {} and {}: {summary}\n", from.id, to.id))?;
    Ok(Exit::Done)
}

struct Version {
    id: SnapshotId,
    /// URL and time of the snapshot.
    name: String,
    directory: PathBuf,
}

impl Version {
    async fn find(name: &PageName, scope: &Scope) -> Result<Version, Failure> {
        let server = Server::reach(scope).await?;
        let snapshot = match name {
            PageName::Id(Owner::Crawl(id)) => {
                return Err(Failure::usage(format!(
                    "{id} is a crawl; snapshots are compared, see: archivist list snapshots {id}"
                )));
            }
            PageName::Id(id) => page::of_id(*id, &server).await?,
            PageName::Url(url, when) => page::nearest(url, *when, &server).await?,
        };
        let id = snapshot.id;
        // Restores the files if only the store has them.
        let place = place_of(Owner::Snapshot(id), scope).await?;
        let (url, time) = (clean(&snapshot.url), snapshot.visited_at);
        Ok(Version { id, name: format!("{id} {url}\t{time}"), directory: place.directory })
    }

    /// Opens the file of a plugin.
    fn open(&self, part: Part) -> Result<File, Failure> {
        let (id, (plugin, name)) = (self.id, part.place());
        part.open(&self.directory).map_err(|error| {
            let path = self.directory.join(plugin).join(name);
            let path = path.display();
            Failure::failed(format!(
                "there is no {plugin} of {id} that you can read: '{path}': {error}\n\
                 it is saved by the plugin '{plugin}', see archivist-hooks(7); to make it: archivist retry {id} --hook {plugin}"
            ))
        })
    }
}

/// Returns a unified diff of what a reader found; empty if there is no change.
fn unified(changes: &[LineChange], (from, to): (&str, &str), style: &Style) -> String {
    if changes.is_empty() {
        return String::new();
    }
    let mut text = style.paint(&format!("--- {from}"), Tone::Bad) + "\n";
    text += &(style.paint(&format!("+++ {to}"), Tone::Good) + "\n");
    for change in changes {
        let (sign, tone, parts) = match change {
            LineChange::At { old, new } => {
                let [old, new] = [old, new].map(|(start, end)| range(*start, *end));
                text += &(style.paint(&format!("@@ -{old} +{new} @@"), Tone::Dim) + "\n");
                continue;
            }
            LineChange::Removed(parts) => ("-", Tone::Bad, parts),
            LineChange::Added(parts) => ("+", Tone::Good, parts),
            LineChange::Same(parts) => (" ", Tone::Plain, parts),
        };
        let words =
            parts.iter().map(|(is_changed, part)| word(&clean(part), *is_changed, tone, style));
        text += &(style.paint(sign, tone) + &words.collect::<String>() + "\n");
    }
    text
}

/// A part of a line; a changed one stands out on a terminal.
fn word(part: &str, is_changed: bool, tone: Tone, style: &Style) -> String {
    if is_changed && style.color {
        let part = console::style(part).force_styling(true).reverse();
        return style.paint(&part.to_string(), tone);
    }
    style.paint(part, tone)
}

/// First line and number of lines, as diff(1) writes them.
fn range(start: usize, end: usize) -> String {
    match end.saturating_sub(start) {
        0 => format!("{start},0"),
        1 => (start + 1).to_string(),
        length => format!("{},{length}", start + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::survey::texts::changes;
    use archivist_core::model::Time;
    use std::io::Write;
    use std::process::{Command, Stdio};

    fn diff(old: &str, new: &str, color: bool) -> String {
        let style = Style { color, ..Style::plain(Time(0)) };
        unified(&changes(old, new), ("s1", "s2"), &style)
    }

    #[test]
    fn changed_lines_are_shown_with_their_context() {
        let old = "a\nb\nc\nd\ne\nf\nThe old end\n";
        let new = "a\nb\nc\nd\ne\nf\nThe new end\n";
        assert_eq!(
            diff(old, new, false),
            "--- s1\n+++ s2\n@@ -4,4 +4,4 @@\n d\n e\n f\n-The old end\n+The new end\n"
        );
        assert_eq!(diff(old, old, false), "");
        assert_eq!(diff("", "a\n", false), "--- s1\n+++ s2\n@@ -0,0 +1 @@\n+a\n");
        let colored = diff(old, new, true);
        assert!(colored.contains("\u{1b}[7mold"), "{colored:?}");
        assert!(!colored.contains("\u{1b}[7mThe"), "{colored:?}");
    }

    #[test]
    fn text_of_the_web_reaches_no_terminal() {
        let shown = diff("a\u{1b}[2J\n", "b\u{202e}\n", false);
        assert!(!shown.contains(['\u{1b}', '\u{202e}']), "{shown:?}");
    }

    /// patch(1) makes the new text of the old one.
    #[test]
    fn result_is_a_patch() {
        let lines = |step: usize| -> String {
            let line =
                |n: usize| format!("line {}\n", if n.is_multiple_of(step) { n * 7 } else { n });
            (0..200).map(line).collect()
        };
        let (old, new) = (lines(13) + "last\n", lines(17));
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("text.txt");
        std::fs::write(&file, &old).unwrap();
        let patch = Command::new("patch")
            .args(["--quiet", file.to_str().unwrap()])
            .stdin(Stdio::piped())
            .spawn();
        let Ok(mut patch) = patch else {
            eprintln!("skipped: patch is not installed");
            return;
        };
        let text = diff(&old, &new, false);
        patch.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        assert!(patch.wait().unwrap().success());
        assert_eq!(std::fs::read_to_string(file).unwrap(), new);
    }
}
