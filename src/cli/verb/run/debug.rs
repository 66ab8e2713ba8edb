//! `archivist run --debug`: prints the journal of crawls while they run. The journal stays the only
//! place of logs; what hooks write to standard error is there.

use crate::client::exit::Failure;
use crate::client::journal::believed;
use crate::display::text::hook_label;
use archivist_config::Scope;
use archivist_core::model::{CrawlId, Time};
use archivist_core::text::clean;
use archivist_core::unit::Names;
use archivist_shared::systemd::synchronize_journal;
use serde_json::{Map, Value};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

/// Fields that are read, see systemd.journal-fields(7).
const FIELDS: &str = "--output-fields=MESSAGE,SYSLOG_IDENTIFIER,ARCHIVIST_CRAWL_ID,\
ARCHIVIST_SNAPSHOT_ID,ARCHIVIST_PLUGIN,ARCHIVIST_HOOK,_SYSTEMD_UNIT,_SYSTEMD_USER_UNIT,UNIT,\
USER_UNIT,OBJECT_SYSTEMD_UNIT,OBJECT_SYSTEMD_USER_UNIT";
/// Fields with the unit that a message is from or about, the most specific one first.
const UNITS: [&str; 6] = [
    "UNIT",
    "USER_UNIT",
    "OBJECT_SYSTEMD_UNIT",
    "OBJECT_SYSTEMD_USER_UNIT",
    "_SYSTEMD_USER_UNIT",
    "_SYSTEMD_UNIT",
];
/// Deadline for the last messages.
const REST_TIMEOUT: Duration = Duration::from_secs(5);

/// Messages of the journal about some crawls, from the start of the command.
pub struct JournalFeed {
    /// Options and matches of journalctl(1), without those that say where to start.
    arguments: Vec<String>,
    start: String,
    /// The last message that was read.
    cursor: Option<String>,
    scope: Scope,
    /// Killed when the feed is dropped.
    _journalctl: Child,
    lines: Option<Lines<BufReader<ChildStdout>>>,
}

impl JournalFeed {
    /// Starts journalctl(1), which follows the journal.
    pub fn follow(crawls: &[CrawlId], since: Time, scope: &Scope) -> Result<JournalFeed, Failure> {
        let arguments = arguments(crawls, &believed(scope), scope);
        let start = format!("--since=@{}", since.0.div_euclid(1000));
        let mut follow = vec!["--follow".to_owned(), "--no-tail".to_owned(), start.clone()];
        follow.extend(arguments.iter().cloned());
        let (journalctl, lines) = spawn(&follow)?;
        Ok(JournalFeed {
            arguments,
            start,
            cursor: None,
            scope: scope.clone(),
            _journalctl: journalctl,
            lines,
        })
    }

    /// Waits for the next message. Waits forever if journalctl has ended.
    pub async fn next(&mut self) -> String {
        while let Some(lines) = &mut self.lines {
            match lines.next_line().await {
                Ok(Some(line)) => {
                    if let Some(message) = self.take(&line) {
                        return message;
                    }
                }
                Ok(None) | Err(_) => self.lines = None,
            }
        }
        std::future::pending().await
    }

    /// Returns the messages that were logged until now and not read.
    pub async fn rest(mut self) -> Vec<String> {
        self.lines = None;
        synchronize_journal().await;
        let from = match &self.cursor {
            Some(cursor) => format!("--after-cursor={cursor}"),
            None => self.start.clone(),
        };
        let query: Vec<String> = [from].into_iter().chain(self.arguments.clone()).collect();
        let Ok((_journalctl, Some(mut lines))) = spawn(&query) else {
            return Vec::new();
        };
        let mut rest = Vec::new();
        let read = async {
            while let Ok(Some(line)) = lines.next_line().await {
                rest.extend(self.take(&line));
            }
        };
        // The messages that were read until then are printed.
        let _ = tokio::time::timeout(REST_TIMEOUT, read).await;
        rest
    }

    /// Reads a line of journalctl. None if the message is about another instance.
    fn take(&mut self, line: &str) -> Option<String> {
        let Ok(Value::Object(entry)) = serde_json::from_str(line) else {
            return None;
        };
        if let Some(cursor) = text(&entry, "__CURSOR") {
            self.cursor = Some(cursor);
        }
        is_of(&entry, &self.scope).then(|| shown(&entry, &self.scope))
    }
}

/// Whether a message is from or about a unit of this instance: another one may use the same ids.
fn is_of(entry: &Map<String, Value>, scope: &Scope) -> bool {
    let unit = UNITS.iter().find_map(|field| text(entry, field));
    unit.is_none_or(|unit| {
        let names = Names::new(scope.unit_prefix());
        unit == scope.orchestrator_unit() || names.kind_of(&unit).is_some()
    })
}

fn arguments(crawls: &[CrawlId], believed: &[String], scope: &Scope) -> Vec<String> {
    let mut out = vec!["--output=json".to_owned(), FIELDS.to_owned()];
    if scope.user {
        out.push("--user".to_owned());
    }
    let of_crawls = crawls.iter();
    out.extend(of_crawls.map(|id| format!("ARCHIVIST_CRAWL_ID={}", id.0)));
    out.extend(believed.iter().cloned());
    if scope.user {
        // Lines of the units of a user have no such fields.
        let names = Names::new(scope.unit_prefix());
        let slices = crawls.iter().map(|id| names.crawl_slice(*id));
        out.push("+".to_owned());
        out.extend(slices.map(|slice| format!("_SYSTEMD_USER_SLICE={slice}")));
    }
    out
}

type Started = (Child, Option<Lines<BufReader<ChildStdout>>>);

fn spawn(arguments: &[String]) -> Result<Started, Failure> {
    let mut journalctl = Command::new("journalctl")
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        // Ctrl-C is for this command.
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| {
            let why = "it is part of the package systemd";
            Failure::failed(format!("failed to run journalctl: {error}; {why}"))
        })?;
    let lines = journalctl.stdout.take().map(|stdout| BufReader::new(stdout).lines());
    Ok((journalctl, lines))
}

/// The text of a field. journalctl(1) prints bytes that are not UTF-8 as numbers, and null for a
/// long value.
fn text(entry: &Map<String, Value>, field: &str) -> Option<String> {
    match entry.get(field)? {
        Value::String(text) => Some(text.clone()),
        Value::Array(bytes) => {
            let bytes: Option<Vec<u8>> = bytes
                .iter()
                .map(|byte| byte.as_u64().and_then(|byte| u8::try_from(byte).ok()))
                .collect();
            Some(String::from_utf8_lossy(&bytes?).into_owned())
        }
        _ => None,
    }
}

/// `wget (s3): message`, without control characters.
fn shown(entry: &Map<String, Value>, scope: &Scope) -> String {
    let identifier = text(entry, "SYSLOG_IDENTIFIER").unwrap_or_default();
    let hook = text(entry, "ARCHIVIST_PLUGIN").zip(text(entry, "ARCHIVIST_HOOK"));
    let from = match hook {
        // systemd attaches the fields of a unit to its own messages about the unit.
        Some((plugin, hook)) if identifier != "systemd" => hook_label(&plugin, &hook),
        _ => identifier,
    };
    let snapshot = text(entry, "ARCHIVIST_SNAPSHOT_ID").map(|id| format!("s{id}"));
    let crawl = || text(entry, "ARCHIVIST_CRAWL_ID").map(|id| format!("c{id}"));
    let unit = || {
        let unit = text(entry, "_SYSTEMD_USER_UNIT")?;
        let owner = Names::new(scope.unit_prefix()).owner_of(&unit)?;
        Some(owner.to_string())
    };
    let of = snapshot.or_else(crawl).or_else(unit).unwrap_or_default();
    let message = text(entry, "MESSAGE").unwrap_or_else(|| "(a long message)".to_owned());
    clean(&format!("{from} ({of}): {message}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn line(entry: Value) -> String {
        match entry {
            Value::Object(entry) => shown(&entry, &Scope::system("/")),
            _ => panic!("an entry is an object"),
        }
    }

    #[test]
    fn messages_name_their_sender_and_page() {
        let hook = json!({"MESSAGE": "no \u{1b}[31m luck", "SYSLOG_IDENTIFIER": "archivist",
            "ARCHIVIST_CRAWL_ID": "1", "ARCHIVIST_SNAPSHOT_ID": "3", "ARCHIVIST_PLUGIN": "wget",
            "ARCHIVIST_HOOK": "on_Snapshot__06_wget.finite.bg"});
        assert_eq!(line(hook), "wget (s3): no \u{fffd}[31m luck");
        let sealed = json!({"MESSAGE": "crawl c1 is done", "SYSLOG_IDENTIFIER": "archivist",
            "ARCHIVIST_CRAWL_ID": "1"});
        assert_eq!(line(sealed), "archivist (c1): crawl c1 is done");
        let systemd = json!({"MESSAGE": [65, 255], "SYSLOG_IDENTIFIER": "systemd",
            "ARCHIVIST_CRAWL_ID": "1", "ARCHIVIST_PLUGIN": "wget", "ARCHIVIST_HOOK": "x"});
        assert_eq!(line(systemd), "systemd (c1): A\u{fffd}");
        let user = json!({"MESSAGE": "no luck", "SYSLOG_IDENTIFIER": "on_Snapshot__06_wget.sh",
            "_SYSTEMD_USER_UNIT": "archivist-hook-wget-s3.service"});
        assert_eq!(line(user), "on_Snapshot__06_wget.sh (s3): no luck");
        let long = json!({"MESSAGE": null, "ARCHIVIST_CRAWL_ID": "1"});
        assert_eq!(line(long), " (c1): (a long message)");
    }

    #[test]
    fn messages_of_other_instances_are_left_out() {
        let scope = Scope::system("/");
        let is_ours = |entry: Value| is_of(entry.as_object().unwrap(), &scope);
        assert!(is_ours(json!({"_SYSTEMD_UNIT": "archivist-snapshot-3.service"})));
        assert!(is_ours(json!({"_SYSTEMD_UNIT": "archivist-orchestrator.service"})));
        assert!(!is_ours(json!({"_SYSTEMD_UNIT": "archivist-news-snapshot-3.service"})));
        assert!(is_ours(json!({"_SYSTEMD_UNIT": "user@7.service",
            "_SYSTEMD_USER_UNIT": "archivist-hook-wget-s3.service"})));
        assert!(is_ours(json!({"_SYSTEMD_UNIT": "init.scope",
            "UNIT": "archivist-hook-wget-s3.service"})));
    }

    #[test]
    fn matches_select_the_crawls() {
        let scope = Scope { user: true, ..Scope::system("/") };
        let believed = ["_UID=1000".to_owned()];
        let arguments = arguments(&[CrawlId(1), CrawlId(7)], &believed, &scope);
        assert_eq!(
            arguments[2..].join(" "),
            "--user ARCHIVIST_CRAWL_ID=1 ARCHIVIST_CRAWL_ID=7 _UID=1000 \
             + _SYSTEMD_USER_SLICE=archivist-crawl-1.slice _SYSTEMD_USER_SLICE=archivist-crawl-7.slice"
        );
    }
}
