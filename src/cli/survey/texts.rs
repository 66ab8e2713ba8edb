//! Compares two texts of pages, line by line and, in lines that changed, word by word.

use super::TIMEOUT;
use super::job::say;
use crate::client::reader_files::{Caller, Wanted};
use archivist_core::text::clean;
use archivist_hooks::TEXT_MAX_BYTES;
use serde::{Deserialize, Serialize};
use similar::{ChangeTag, TextDiff};
use std::io::Read;
use std::sync::Arc;

/// Lines without a change around one.
const CONTEXT_LINES: usize = 3;

/// Parts of a line, and whether they changed.
type Parts = Vec<(bool, String)>;

/// A line of a unified diff.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LineChange {
    /// What follows is at these lines of the texts: the first, and the one after the last, from 0.
    At { old: (usize, usize), new: (usize, usize) },
    /// A line of the older text.
    Removed(Parts),
    /// A line of the newer text.
    Added(Parts),
    /// A line of both.
    Same(Parts),
}

/// Compares the files 0 and 1 of the job.
pub fn compare(caller: &Arc<Caller>) -> Result<(), String> {
    let text = |number| {
        let mut bytes = Vec::new();
        let read = caller
            .file(&Wanted::File(number))
            .and_then(|file| file.take(TEXT_MAX_BYTES as u64).read_to_end(&mut bytes));
        read.map_err(|error| format!("failed to read a text: {error}"))?;
        Ok::<_, String>(String::from_utf8_lossy(&bytes).into_owned())
    };
    changes(&text(0)?, &text(1)?).iter().try_for_each(say)
}

/// The lines of a unified diff; none if the texts are the same.
pub fn changes(old: &str, new: &str) -> Vec<LineChange> {
    let lines = |text: &str| text.lines().map(clean).collect::<Vec<_>>();
    let (old, new) = (lines(old), lines(new));
    let (old, new) = (as_texts(&old), as_texts(&new));
    let diff = TextDiff::configure().timeout(TIMEOUT).diff_slices(&old, &new);
    let mut changes = Vec::new();
    for group in diff.grouped_ops(CONTEXT_LINES) {
        let Some((first, last)) = group.first().zip(group.last()) else {
            continue;
        };
        changes.push(LineChange::At {
            old: (first.old_range().start, last.old_range().end),
            new: (first.new_range().start, last.new_range().end),
        });
        for change in group.iter().flat_map(|op| diff.iter_inline_changes(op)) {
            let parts = change.iter_strings_lossy();
            let parts = parts
                .map(|(is_changed, part)| (is_changed, part.trim_end_matches('\n').to_owned()));
            let parts = parts.collect();
            changes.push(match change.tag() {
                ChangeTag::Delete => LineChange::Removed(parts),
                ChangeTag::Insert => LineChange::Added(parts),
                ChangeTag::Equal => LineChange::Same(parts),
            });
        }
    }
    changes
}

fn as_texts(lines: &[String]) -> Vec<&str> {
    lines.iter().map(String::as_str).collect()
}
