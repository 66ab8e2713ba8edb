//! When the timers of watches elapse next, as systemd says.

use super::super::exit::Failure;
use crate::config::Scope;
use crate::model::{CheckKind, Time};
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;

/// `systemctl` of the scope.
pub fn systemctl(scope: &Scope) -> Command {
    let mut command = Command::new("systemctl");
    if scope.user {
        command.arg("--user");
    }
    command
}

/// Runs it; what it has to say goes to standard error.
pub fn run(mut command: Command) -> Result<(), Failure> {
    let words: Vec<_> = command
        .get_args()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let what = format!("systemctl {}", words.join(" "));
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::failed(format!("'{what}' failed: {status}"))),
        Err(error) => Err(Failure::failed(format!("failed to run '{what}': {error}"))),
    }
}

/// The next run of each kind, by watch; empty where systemd cannot be asked.
pub fn next(scope: &Scope) -> BTreeMap<(String, CheckKind), Time> {
    let mut command = systemctl(scope);
    command.args(["list-timers", "--all", "--output=json", "archivist-watch-*"]);
    let output = command
        .output()
        .map(|output| output.stdout)
        .unwrap_or_default();
    read(&output)
}

fn read(json: &[u8]) -> BTreeMap<(String, CheckKind), Time> {
    let rows: Vec<Value> = serde_json::from_slice(json).unwrap_or_default();
    let row = |row: &Value| {
        let unit = row["unit"].as_str()?;
        let stem = unit
            .strip_prefix("archivist-watch-")?
            .strip_suffix(".timer")?;
        let (name, kind) = stem.rsplit_once('-')?;
        let usec = row["next"].as_i64().filter(|usec| *usec > 0)?;
        Some((
            (name.to_owned(), CheckKind::parse(kind)?),
            Time(usec / 1000),
        ))
    };
    rows.iter().filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_of_systemctl() {
        let json = br#"[{"next":1795253105123000,"left":5,"last":null,"passed":0,
            "unit":"archivist-watch-my-site-status.timer","activates":"x"},
            {"next":0,"unit":"archivist-watch-my-site-crawl.timer"},{"unit":"other.timer"}]"#;
        let next = read(json);
        assert_eq!(next.len(), 1);
        let key = ("my-site".to_owned(), CheckKind::Status);
        assert_eq!(next[&key], Time(1_795_253_105_123));
        assert!(read(b"garbage").is_empty());
    }
}
