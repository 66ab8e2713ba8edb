//! The journal: whose lines are believed, and how many messages of hooks journald suppressed.

use archivist_config::Scope;
use archivist_core::model::RunId;
use archivist_shared::bus::documents::report::Run;
use archivist_shared::journal::unit_field;
use nix::unistd::{User, geteuid};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Stdio};

/// SD_MESSAGE_JOURNAL_DROPPED of sd-messages(3): messages of a unit went over its rate limit.
const DROPPED: &str = "a596d6fe7bfa4994828e72309e95d61e";

/// One line of `journalctl --output=json`.
#[derive(Deserialize)]
struct Line {
    #[serde(rename = "N_DROPPED")]
    messages: String,
    #[serde(rename = "OBJECT_SYSTEMD_INVOCATION_ID")]
    invocation: String,
}

/// Returns the matches of the users whose lines are believed (systemd.journal-fields(7), `_UID`): any
/// other local user can send lines with the ids of pages.
pub fn believed(scope: &Scope) -> Vec<String> {
    let users = scope.senders().into_iter();
    let known = users.filter_map(|name| User::from_name(&name).ok().flatten());
    let mut uids: BTreeSet<u32> = known.map(|user| user.uid.as_raw()).collect();
    if scope.user {
        uids.insert(geteuid().as_raw());
    }
    uids.iter().map(|uid| format!("_UID={uid}")).collect()
}

/// Returns the number of suppressed messages of each run. Empty if the journal cannot be read.
pub fn suppressed(runs: &[Run], scope: &Scope) -> BTreeMap<RunId, u64> {
    if runs.iter().all(|run| run.started_at.is_none()) {
        return BTreeMap::new();
    }
    let journalctl = Command::new("journalctl")
        .args(arguments(runs, scope))
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    match journalctl {
        Ok(said) => sums(&said.stdout, runs),
        Err(_) => BTreeMap::new(),
    }
}

fn arguments(runs: &[Run], scope: &Scope) -> Vec<String> {
    let started = runs.iter().filter_map(|run| run.started_at).min();
    let mut out = vec!["--quiet".to_owned(), "--output=json".to_owned()];
    // Skips older journal files.
    out.extend(started.map(|at| format!("--since=@{}", at.0.div_euclid(1000))));
    if scope.user {
        out.push("--user".to_owned());
    }
    // Only journald can write with this transport.
    out.extend(["_TRANSPORT=driver".to_owned(), format!("MESSAGE_ID={DROPPED}")]);
    out.extend(runs.iter().map(|run| format!("{}={}", unit_field(scope.user), run.unit)));
    out
}

/// Two attempts use the same unit name and differ in the invocation id.
fn sums(lines: &[u8], runs: &[Run]) -> BTreeMap<RunId, u64> {
    let mut sums = BTreeMap::<String, u64>::new();
    for line in lines.split(|byte| *byte == b'\n') {
        let Ok(line) = serde_json::from_slice::<Line>(line) else {
            continue;
        };
        let messages: u64 = line.messages.parse().unwrap_or(0);
        *sums.entry(line.invocation).or_default() += messages;
    }
    runs.iter()
        .filter_map(|run| {
            let messages = *sums.get(run.invocation.as_deref()?)?;
            (messages > 0).then_some((run.id, messages))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn sums_by_invocation() {
        let run = |id, invocation: &str| Run {
            invocation: Some(invocation.into()),
            ..sample::run(id, "x", "on_Snapshot__50_x")
        };
        let runs = [run(1, "aa"), run(2, "bb"), run(3, "cc")];
        let lines = br#"{"N_DROPPED":"5","OBJECT_SYSTEMD_INVOCATION_ID":"bb"}
{"N_DROPPED":"7","OBJECT_SYSTEMD_INVOCATION_ID":"bb","MESSAGE":"Suppressed 7 messages"}
{"N_DROPPED":"3"}
{"N_DROPPED":"3","OBJECT_SYSTEMD_INVOCATION_ID":"another"}
{"N_DROPPED":"many","OBJECT_SYSTEMD_INVOCATION_ID":"cc"}
"#;
        assert_eq!(sums(lines, &runs), BTreeMap::from([(RunId(2), 12)]));
    }
}
