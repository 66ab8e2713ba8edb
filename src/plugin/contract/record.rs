//! Parses the records that hooks print: JSON lines on standard output.

use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

archivist_core::text::named! {
    /// ResultStatus in an ArchiveResult.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum ResultStatus {
        /// The hook produced output.
        Succeeded = "succeeded",
        /// The hook ran without errors and found nothing.
        NoResults = "noresults",
        /// The configuration prevents the run.
        Skipped = "skipped",
        /// The hook failed, or a dependency is missing.
        Failed = "failed",
    }
}

impl ResultStatus {
    /// Parses a status. Some releases print `noresult` instead of `noresults`.
    pub fn read(word: &str) -> Option<ResultStatus> {
        Some(match word {
            "succeeded" => ResultStatus::Succeeded,
            "noresults" | "noresult" => ResultStatus::NoResults,
            "skipped" => ResultStatus::Skipped,
            "failed" => ResultStatus::Failed,
            _ => return None,
        })
    }
}

/// The result that a hook reports. It takes precedence over the exit status.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArchiveResult {
    /// Status according to the hook.
    pub status: ResultStatus,
    /// Relative path of the main file, or a short text for users.
    pub output_str: Option<String>,
    /// Reason of a failure.
    pub error: Option<String>,
    /// MIME type of the output.
    pub content_type: Option<String>,
    /// The record as the hook wrote it.
    pub raw: Value,
}

/// A page that the hook found on its page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildSnapshot {
    /// Address of the page.
    pub url: String,
    /// Depth according to the hook. The orchestrator computes its own value.
    pub depth: Option<u32>,
    /// Text of the link.
    pub title: Option<String>,
    /// Time of the bookmark, as the hook wrote it.
    pub bookmarked_at: Option<String>,
    /// Tags of the page.
    pub tags: Vec<String>,
    /// Plugin that found the page.
    pub plugin: Option<String>,
}

/// A program that was found or installed, or that the hook requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Binary {
    /// Name of the program.
    pub name: String,
    /// `None` if the record requests the program, as a BinaryRequest does.
    pub abspath: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// SHA-256 of its file, in hexadecimal.
    pub sha256: Option<String>,
    /// Provider that installed it.
    pub binprovider: Option<String>,
    /// Variables for the hooks that use the program; see [`crate::contract::environment::layer`].
    pub env: BTreeMap<String, String>,
    /// The record as the hook wrote it.
    pub raw: Value,
}

/// Settings that older hooks derive from the machine: names and texts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Settings by name.
    pub config: BTreeMap<String, String>,
}

/// A request to keep a sonic server running.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SonicDaemonStart {
    /// Address of the server.
    pub url: String,
    /// Host of the address.
    pub host: Option<String>,
    /// Port of the address.
    pub port: Option<u16>,
    /// Path of the configuration file.
    pub config_path: String,
    /// Directory of the server's files.
    pub output_dir: Option<String>,
}

/// One line of a hook's standard output, according to its `type`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Record {
    /// `ArchiveResult`: the result of the hook.
    ArchiveResult(ArchiveResult),
    /// `Snapshot`: a page that the hook found.
    Snapshot(ChildSnapshot),
    /// `Tag`: a tag of the page.
    Tag {
        /// The tag.
        name: String,
    },
    /// `Binary` or `BinaryRequest`: a program.
    Binary(Binary),
    /// `Machine`: settings for later hooks.
    Machine(Machine),
    /// `SonicDaemonStart`: a request for a server.
    SonicDaemonStart(SonicDaemonStart),
}

/// Parses one line. `None` for text that is not a JSON object of a known `type` with its required
/// fields, such as progress messages. Invalid UTF-8 is replaced.
pub fn parse_line(line: &[u8]) -> Option<Record> {
    let value = object(line)?;
    let record = match value.get("type")?.as_str()? {
        "ArchiveResult" => Record::ArchiveResult(ArchiveResult {
            status: ResultStatus::read(value.get("status")?.as_str()?)?,
            output_str: text(&value, "output_str"),
            error: text(&value, "error"),
            content_type: text(&value, "content_type"),
            raw: value,
        }),
        "Snapshot" => Record::Snapshot(child(&value)?),
        "Tag" => Record::Tag { name: text(&value, "name")? },
        kind @ ("Binary" | "BinaryRequest") => Record::Binary(Binary {
            name: text(&value, "name")?,
            abspath: text(&value, "abspath").filter(|_| kind == "Binary"),
            version: text(&value, "version"),
            sha256: text(&value, "sha256"),
            binprovider: text(&value, "binprovider"),
            env: texts(value.get("env")),
            raw: value,
        }),
        "Machine" => Record::Machine(machine(&value)?),
        "SonicDaemonStartEvent" => Record::SonicDaemonStart(SonicDaemonStart {
            url: text(&value, "url").unwrap_or_default(),
            host: text(&value, "host"),
            port: number(value.get("port")).and_then(|port| u16::try_from(port).ok()),
            config_path: text(&value, "config_path")?,
            output_dir: text(&value, "output_dir"),
        }),
        _ => return None,
    };
    Some(record)
}

/// Parses a line of a `urls.jsonl` file, where `type` is optional.
pub fn parse_child(line: &[u8]) -> Option<ChildSnapshot> {
    let value = object(line)?;
    match value.get("type").map(|kind| kind.as_str()) {
        None | Some(Some("Snapshot")) => child(&value),
        Some(_) => None,
    }
}

fn object(line: &[u8]) -> Option<Value> {
    let line = line.trim_ascii();
    if line.first() != Some(&b'{') || line.last() != Some(&b'}') {
        return None; // most lines end here, without a copy
    }
    serde_json::from_str(&String::from_utf8_lossy(line)).ok()
}

fn child(value: &Value) -> Option<ChildSnapshot> {
    Some(ChildSnapshot {
        url: text(value, "url")?,
        depth: number(value.get("depth")).and_then(|depth| u32::try_from(depth).ok()),
        title: text(value, "title"),
        bookmarked_at: text(value, "bookmarked_at"),
        tags: tags(value.get("tags").or_else(|| value.get("tags_str"))),
        plugin: text(value, "plugin"),
    })
}

/// Parses `key: config/NAME` with a `value`, or a complete `config` object.
fn machine(value: &Value) -> Option<Machine> {
    let mut config = texts(value.get("config"));
    if let Some(name) = value.get("key").and_then(|key| key.as_str()?.strip_prefix("config/")) {
        config.extend(scalar(value.get("value")?).map(|text| (name.to_owned(), text)));
    }
    (!config.is_empty()).then_some(Machine { config })
}

/// A non-empty string or number as text, without surrounding blanks and NULs.
fn text(value: &Value, key: &str) -> Option<String> {
    let raw = scalar(value.get(key)?)?.replace('\0', "");
    let text = raw.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    }
}

fn number(value: Option<&Value>) -> Option<u64> {
    match value? {
        Value::String(text) => text.trim().parse().ok(),
        other => other.as_u64(),
    }
}

fn texts(value: Option<&Value>) -> BTreeMap<String, String> {
    let entries = value.and_then(Value::as_object).into_iter().flatten();
    entries.filter_map(|(key, value)| Some((key.clone(), scalar(value)?))).collect()
}

/// Tags from a list, or from a string with commas.
fn tags(value: Option<&Value>) -> Vec<String> {
    let words: Vec<&str> = match value {
        Some(Value::String(text)) => text.split(',').collect(),
        Some(Value::Array(list)) => list
            .iter()
            .filter_map(|tag| tag.as_str().or_else(|| tag.get("name")?.as_str()))
            .collect(),
        _ => Vec::new(),
    };
    let mut known = HashSet::new();
    let words = words.into_iter().map(str::trim);
    words.filter(|word| !word.is_empty() && known.insert(*word)).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn parse(value: Value) -> Option<Record> {
        parse_line(value.to_string().as_bytes())
    }

    #[test]
    fn archive_results_are_parsed() {
        let line = br#"  {"type": "ArchiveResult", "status": "succeeded", "output_str": "screenshot.png", "snapshot_id": "345", "plugin": "screenshot"}
"#;
        let Some(Record::ArchiveResult(result)) = parse_line(line) else { panic!("not a result") };
        assert_eq!(result.status, ResultStatus::Succeeded);
        assert_eq!(result.output_str.as_deref(), Some("screenshot.png"));
        assert_eq!(result.raw["snapshot_id"], json!("345"));
        for (word, status) in [
            ("noresult", ResultStatus::NoResults),
            ("noresults", ResultStatus::NoResults),
            ("skipped", ResultStatus::Skipped),
            ("failed", ResultStatus::Failed),
        ] {
            let got = parse(json!({"type": "ArchiveResult", "status": word, "output_str": ""}));
            let Some(Record::ArchiveResult(result)) = got else { panic!("{word}") };
            assert_eq!((result.status, result.output_str), (status, None));
        }
        assert_eq!(json!(ResultStatus::NoResults), json!(ResultStatus::NoResults.as_str()));
    }

    #[test]
    fn other_text_is_not_a_record() {
        for line in [
            &b"[*] Launching chrome..."[..],
            br#"{"succeeded":true,"skipped":false}"#,
            br#"{"type": "Process", "cmd": []}"#,
            br#"{"type": 7}"#,
            br#"{"type": "ArchiveResult", "status": "perhaps"}"#,
            br#"{"type": "ArchiveResult"}"#,
            br#"{"type": "Snapshot", "url": "  "}"#,
            br#"{"type": "ArchiveResult", "status": "succ"#,
            b"[1, 2]",
            b"\xff\xfe\x00",
            b"",
        ] {
            assert_eq!(parse_line(line), None, "{}", String::from_utf8_lossy(line));
        }
        let deep = format!(
            "{{\"type\":\"Tag\",\"name\":\"x\",\"a\":{}1{}}}",
            "[".repeat(9999),
            "]".repeat(9999)
        );
        assert_eq!(parse_line(deep.as_bytes()), None);
    }

    #[test]
    fn child_pages_are_parsed() {
        let got = parse(
            json!({"type": "Snapshot", "url": "https://a/", "depth": 1, "plugin": "parse_rss_urls",
            "title": " News\u{0} ", "bookmarked_at": "2024-01-01T00:00:00Z", "tags": "a, b,,a", "id": ""}),
        );
        let Some(Record::Snapshot(child)) = got else { panic!("not a child") };
        assert_eq!(child.tags, ["a", "b"]);
        assert_eq!((child.depth, child.title.as_deref()), (Some(1), Some("News")));
        let listed =
            parse_child(br#"{"url": "https://b/", "depth": "2", "tags": ["x", {"name": "y"}]}"#)
                .unwrap();
        assert_eq!((listed.depth, listed.tags), (Some(2), vec!["x".to_owned(), "y".to_owned()]));
        assert_eq!(parse_child(br#"{"type": "Tag", "url": "https://b/"}"#), None);
    }

    #[test]
    fn other_records_are_parsed() {
        assert_eq!(
            parse(json!({"type": "Tag", "name": "news"})),
            Some(Record::Tag { name: "news".into() })
        );
        let got = parse(
            json!({"type": "Binary", "name": "wget", "abspath": "/usr/bin/wget", "version": "1.25", "env": {"PATH": "/x:", "N": 1, "L": []}}),
        );
        let Some(Record::Binary(binary)) = got else { panic!("not a binary") };
        assert_eq!(binary.abspath.as_deref(), Some("/usr/bin/wget"));
        assert_eq!(
            binary.env.into_iter().collect::<Vec<_>>(),
            [("N".into(), "1".into()), ("PATH".into(), "/x:".into())]
        );
        let got = parse(
            json!({"type": "BinaryRequest", "name": "x", "binproviders": "env,apt", "abspath": "/x"}),
        );
        let asked = matches!(got, Some(Record::Binary(asked)) if asked.abspath.is_none());
        assert!(asked, "a requested program has no path");
        let machine = |value| match parse(value) {
            Some(Record::Machine(machine)) => machine.config,
            other => panic!("{other:?}"),
        };
        let wanted = BTreeMap::from([("CHROME_BINARY".to_owned(), "/c".to_owned())]);
        assert_eq!(
            machine(
                json!({"type": "Machine", "_method": "update", "key": "config/CHROME_BINARY", "value": "/c"})
            ),
            wanted
        );
        assert_eq!(machine(json!({"type": "Machine", "config": {"CHROME_BINARY": "/c"}})), wanted);
        let got = parse(json!({"type": "SonicDaemonStartEvent", "worker_name": "worker_sonic",
            "url": "tcp://127.0.0.1:1491", "port": 1491, "config_path": "/c/sonic.cfg"}));
        let Some(Record::SonicDaemonStart(sonic)) = got else { panic!("not a start") };
        assert_eq!((sonic.port, sonic.config_path.as_str()), (Some(1491), "/c/sonic.cfg"));
    }

    #[test]
    fn invalid_utf_8_is_replaced() {
        let got = parse_line(b"{\"type\": \"Tag\", \"name\": \"a\xffb\"}");
        assert_eq!(got, Some(Record::Tag { name: "a\u{fffd}b".into() }));
    }

    proptest! {
        #[test]
        fn any_line_is_parsed(line in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = (parse_line(&line), parse_child(&line));
        }

        #[test]
        fn any_field_may_be_of_any_type(key in prop::sample::select(vec!["status", "url", "name", "tags", "env", "config", "key", "port", "depth"]),
                                        kind in prop::sample::select(vec!["ArchiveResult", "Snapshot", "Tag", "Binary", "Machine", "SonicDaemonStartEvent"]),
                                        value in prop::sample::select(vec!["null", "1", "-1", "1e99", "\"x\"", "[]", "[1]", "{}", "{\"a\":[]}", "true"])) {
            let line = format!("{{\"type\":\"{kind}\",\"name\":\"n\",\"url\":\"u\",\"status\":\"failed\",\"config_path\":\"c\",\"{key}\":{value}}}");
            let _ = parse_line(line.as_bytes());
        }
    }
}
