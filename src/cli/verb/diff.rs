//! `archivist diff`: what changed in the text or in the picture between two snapshots.

mod pictures;

use crate::client::exit::{Exit, Failure};
use crate::client::page::{self, PageName};
use crate::client::replace::replace;
use crate::client::server::Server;
use crate::display::style::{self, Style, Tone};
use crate::verb::open::place_of;
use archivist_config::Scope;
use archivist_core::model::{Owner, SnapshotId};
use archivist_core::text::clean;
use archivist_hooks::picture::Picture;
use archivist_hooks::text_of_snapshot;
use archivist_plugin::Directory;
use clap::Args;
use similar::{ChangeTag, TextDiff};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Lines without a change that are shown around one.
const CONTEXT_LINES: usize = 3;
/// Time for the comparison; after it, the rest is shown as replaced.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Largest screenshot in bytes.
const PICTURE_MAX_BYTES: u64 = 256 << 20;

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
    if let Some(path) = &args.pictures {
        return compare_pictures(&from, &to, path);
    }
    let (from, to) = (from.with_text()?, to.with_text()?);
    let text = unified(&from, &to, &Style::of_stdout());
    if text.is_empty() {
        let (from, to) = (from.id, to.id);
        eprintln!("the texts of {from} and {to} are the same");
    }
    style::print(&text)?;
    Ok(Exit::Done)
}

/// Writes a picture of the two screenshots and of what differs.
fn compare_pictures(from: &Version, to: &Version, path: &Path) -> Result<Exit, Failure> {
    let (old, new) = (from.picture()?, to.picture()?);
    let difference = pictures::Difference::of(&old, &new);
    let failed = |error: std::io::Error| {
        let path = clean(&path.display().to_string());
        Failure::failed(format!("failed to write '{path}': {error}"))
    };
    let png = difference.to_png().map_err(failed)?;
    replace(path, &png).map_err(failed)?;
    let summary = difference.summary();
    style::print(&format!("screenshots of {} and {}: {summary}\n", from.id, to.id))?;
    Ok(Exit::Done)
}

/// A snapshot whose files are on this machine.
struct Version {
    id: SnapshotId,
    /// URL and time of the snapshot.
    name: String,
    directory: PathBuf,
}

/// A snapshot and its text.
struct Side {
    id: SnapshotId,
    /// URL and time of the snapshot.
    name: String,
    text: String,
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

    fn with_text(self) -> Result<Side, Failure> {
        let Version { id, name, directory } = self;
        let text = text_of_snapshot(&directory).ok_or_else(|| {
            let path = directory.join("text/text.txt");
            let path = path.display();
            Failure::failed(format!(
                "there is no text of {id} that you can read: '{path}'\n\
                 texts are saved by the plugin 'text', see archivist-hooks(7); to make it: archivist retry {id} --hook text"
            ))
        })?;
        Ok(Side { id, name, text })
    }

    /// The screenshot. Its file was made by a hook from a page of the web.
    fn picture(&self) -> Result<Picture, Failure> {
        let id = self.id;
        let path = self.directory.join("screenshot/screenshot.png");
        let shown = path.display();
        let read = || {
            let directory = Directory::open(&self.directory)?.enter("screenshot")?;
            let mut png = Vec::new();
            let file = directory.read("screenshot.png")?;
            file.take(PICTURE_MAX_BYTES).read_to_end(&mut png)?;
            Ok(png)
        };
        let png = read().map_err(|error: std::io::Error| {
            Failure::failed(format!(
                "there is no screenshot of {id} that you can read: '{shown}': {error}\n\
                 to make it: archivist retry {id} --hook screenshot"
            ))
        })?;
        Picture::decode(&png).map_err(|error| Failure::failed(format!("'{shown}': {error}")))
    }
}

/// Returns a unified diff of two texts; empty if they are the same.
fn unified(from: &Side, to: &Side, style: &Style) -> String {
    let lines = |text: &str| text.lines().map(clean).collect::<Vec<_>>();
    let (old, new) = (lines(&from.text), lines(&to.text));
    let (old, new) = (as_texts(&old), as_texts(&new));
    let diff = TextDiff::configure().timeout(TIMEOUT).diff_slices(&old, &new);
    let groups = diff.grouped_ops(CONTEXT_LINES);
    if groups.is_empty() {
        return String::new();
    }
    let mut text = style.paint(&format!("--- {}", from.name), Tone::Bad) + "\n";
    text += &(style.paint(&format!("+++ {}", to.name), Tone::Good) + "\n");
    for group in groups {
        let Some((first, last)) = group.first().zip(group.last()) else {
            continue;
        };
        let old = range(first.old_range().start, last.old_range().end);
        let new = range(first.new_range().start, last.new_range().end);
        text += &(style.paint(&format!("@@ -{old} +{new} @@"), Tone::Dim) + "\n");
        for op in &group {
            for change in diff.iter_inline_changes(op) {
                let (sign, tone) = match change.tag() {
                    ChangeTag::Delete => ('-', Tone::Bad),
                    ChangeTag::Insert => ('+', Tone::Good),
                    ChangeTag::Equal => (' ', Tone::Plain),
                };
                let parts = change.iter_strings_lossy();
                let parts = parts.map(|(is_changed, part)| word(&part, is_changed, tone, style));
                let line: String = parts.collect();
                text +=
                    &(style.paint(&sign.to_string(), tone) + line.trim_end_matches('\n') + "\n");
            }
        }
    }
    text
}

fn as_texts(lines: &[String]) -> Vec<&str> {
    lines.iter().map(String::as_str).collect()
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
    match end - start {
        0 => format!("{start},0"),
        1 => (start + 1).to_string(),
        length => format!("{},{length}", start + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_core::model::Time;
    use std::io::Write;
    use std::process::{Command, Stdio};

    fn side(id: i64, text: &str) -> Side {
        Side { id: SnapshotId(id), name: format!("s{id}"), text: text.to_owned() }
    }

    fn diff(old: &str, new: &str, color: bool) -> String {
        let style = Style { color, ..Style::plain(Time(0)) };
        unified(&side(1, old), &side(2, new), &style)
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
