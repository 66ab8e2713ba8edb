//! What a unit wrote to its standard error at last, from the journal's files.

use sdjournal::Journal;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// Lines that are told, and bytes of all of them together.
const LINES: usize = 5;
const BYTES: usize = 1024;
/// Entries that are looked at for them: some are empty.
const ENTRIES: usize = 50;

/// Where journald takes calls of root (systemd-journald.service(8)).
const SOCKET: &str = "/run/systemd/journal/io.systemd.journal";
/// A Varlink call; whatever the answer is, there is nothing more to wait for.
const SYNCHRONIZE: &[u8] = b"{\"method\":\"io.systemd.Journal.Synchronize\",\"parameters\":{}}\0";
/// How long journald may take for it.
const PATIENCE: Duration = Duration::from_secs(2);

/// The last lines of the invocation (its id in hexadecimal digits), the oldest first, separated by line
/// feeds. Nothing where it wrote nothing, or nothing that this process may read.
///
/// Only root can have journald write down what it was sent so far; a user's own orchestrator reads
/// what is there.
///
/// As many callers read at a time as there are `places`.
pub async fn last_words(invocation: String, places: &Semaphore) -> String {
    let synchronized = tokio::time::timeout(PATIENCE, synchronize()).await;
    match synchronized {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!("failed to call '{SOCKET}': {error}, ignoring"),
        Err(_) => tracing::debug!("journald does not answer at '{SOCKET}', ignoring"),
    }
    let _place = places.acquire().await;
    match spawn_blocking(move || read(&invocation)).await {
        Ok(Ok(lines)) => told(lines),
        Ok(Err(error)) => {
            tracing::debug!("failed to read the journal: {error}, ignoring");
            String::new()
        }
        Err(_) => String::new(),
    }
}

async fn synchronize() -> std::io::Result<()> {
    let mut socket = UnixStream::connect(SOCKET).await?;
    socket.write_all(SYNCHRONIZE).await?;
    let mut answer = [0; 256];
    socket.read(&mut answer).await.map(drop)
}

/// The newest entry first.
fn read(invocation: &str) -> sdjournal::Result<Vec<String>> {
    let journal = Journal::open_default()?;
    let mut query = journal.query();
    // Standard output goes to a file.
    query.match_exact("_SYSTEMD_INVOCATION_ID", invocation.as_bytes());
    query.match_exact("_TRANSPORT", b"stdout");
    query.reverse(true).limit(ENTRIES);
    let entries = query.iter()?.map_while(Result::ok);
    let message = |entry: sdjournal::EntryRef| {
        let message = entry.get("MESSAGE")?;
        Some(String::from_utf8_lossy(message).trim_end().to_owned())
    };
    Ok(entries.filter_map(message).collect())
}

/// `lines` begin with the last one.
fn told(lines: impl IntoIterator<Item = String>) -> String {
    let mut words: VecDeque<String> = VecDeque::new();
    let mut left = BYTES;
    let full = lines.into_iter().filter(|line| !line.trim().is_empty());
    for line in full.take(LINES) {
        match left.checked_sub(line.len() + 1) {
            Some(rest) => left = rest,
            None if words.is_empty() => {
                let begin = line.ceil_char_boundary(line.len() - BYTES);
                words.push_front(format!("…{}", &line[begin..]));
                break;
            }
            None => break,
        }
        words.push_front(line);
    }
    Vec::from(words).join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lines: &[&str]) -> String {
        told(lines.iter().map(|line| (*line).to_owned()))
    }

    #[test]
    fn the_last_lines_in_their_order() {
        assert_eq!(of(&["last", "", "  ", "before"]), "before\nlast");
        assert_eq!(of(&["7", "6", "5", "4", "3", "2"]), "3\n4\n5\n6\n7");
        assert_eq!(of(&[]), "");
    }

    #[test]
    fn no_more_than_a_reason_may_have() {
        let long = "é".repeat(BYTES) + "end";
        let told = of(&[&long, "before"]);
        assert!(
            told.starts_with("…é") && told.ends_with("end") && told.len() <= BYTES + 3,
            "{}",
            told.len()
        );
        assert_eq!(of(&["last", &long, "before"]), "last");
    }
}
