//! The files in which ArchiveBox keeps what it knows of a snapshot next to its pages: `index.json` up to
//! 0.8, and `index.jsonl` since 0.9. Before 0.4, there also is one `index.json` of all snapshots.
//! `archivist import` sends them through a pipe, each after a [`Header`].

use archivist_core::model::Time;
use archivist_shared::archivebox::{
    BoxLine, BoxResult, BoxSnapshot, FIELD_MAX, bookmarked_at, moment, time_of, without_time,
};
use archivist_shared::staged::RESULTS_MAX;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::io::{self, BufRead, Read, Write};
use std::time::Duration;

/// Longest file that is read, in bytes.
pub const INDEX_MAX: u64 = 16 << 20;
/// Longest file about all snapshots that is read, in bytes.
pub const LIST_MAX: u64 = 64 << 20;
/// Longest header in bytes: a name has 255, and escapes.
const HEADER_MAX: u64 = 4096;

/// What precedes a file.
#[derive(Debug, Serialize, Deserialize)]
pub struct Header {
    pub name: String,
    pub bytes: u64,
    /// Whether the file is about all snapshots.
    #[serde(default)]
    pub is_list: bool,
}

#[derive(Deserialize)]
struct List<'a> {
    #[serde(borrow)]
    links: Vec<&'a RawValue>,
}

pub fn read(mut input: impl BufRead, mut output: impl Write) -> io::Result<()> {
    loop {
        let mut header = Vec::new();
        input.by_ref().take(HEADER_MAX).read_until(b'\n', &mut header)?;
        if header.is_empty() {
            return Ok(());
        }
        let header: Header = serde_json::from_slice(&header)?;
        let mut content = Vec::new();
        let most = if header.is_list { LIST_MAX } else { INDEX_MAX };
        input.by_ref().take(header.bytes.min(most)).read_to_end(&mut content)?;
        if header.is_list {
            write_list(&header.name, &content, &mut output)?;
            continue;
        }
        let line = match snapshot(&header.name, &content) {
            Ok(snapshot) => BoxLine::Snapshot(snapshot),
            Err(why) => BoxLine::Fault(format!("{}: {why}", header.name)),
        };
        writeln!(output, "{}", serde_json::to_string(&line)?)?;
    }
}

fn write_list(name: &str, content: &[u8], output: &mut impl Write) -> io::Result<()> {
    let text = String::from_utf8_lossy(content);
    let mut write = |line: BoxLine| writeln!(output, "{}", serde_json::to_string(&line)?);
    let links = match serde_json::from_str::<List>(&text) {
        Ok(list) => list.links,
        Err(error) => return write(BoxLine::Fault(format!("{name}: {error}"))),
    };
    for (at, link) in links.iter().enumerate() {
        let found = serde_json::from_str::<Map<String, Value>>(link.get())
            .ok()
            .and_then(|link| of_object(&link))
            .filter(|found| !found.timestamp.is_empty());
        write(match found {
            Some(mut found) => {
                found.results.truncate(RESULTS_MAX);
                found.bookmarked_at = found.bookmarked_at.or_else(|| time_of(&found.timestamp));
                BoxLine::Snapshot(found)
            }
            None => BoxLine::Fault(format!("{name}: entry {} is no snapshot", at + 1)),
        })?;
    }
    Ok(())
}

/// The snapshot that a file describes. The name of the directory precedes the timestamp in the file.
fn snapshot(name: &str, content: &[u8]) -> Result<BoxSnapshot, String> {
    let text = String::from_utf8_lossy(content);
    let mut found = match serde_json::from_str::<Value>(&text) {
        Ok(Value::Object(object)) if object.contains_key("url") => of_object(&object),
        _ => of_lines(&text),
    }
    .ok_or("its index is damaged, or describes no snapshot")?;
    found.results.truncate(RESULTS_MAX);
    found.bookmarked_at =
        found.bookmarked_at.or_else(|| time_of(name)).or_else(|| time_of(&found.timestamp));
    found.timestamp = name.to_owned();
    Ok(found)
}

/// `index.json`
fn of_object(object: &Map<String, Value>) -> Option<BoxSnapshot> {
    let mut found = about(object)?;
    // Up to 0.7 by extractor, in 0.8 a list.
    let by_extractor = object.get("history").and_then(Value::as_object);
    for (extractor, results) in by_extractor.into_iter().flatten() {
        let results = results.as_array().into_iter().flatten();
        found.results.extend(results.filter_map(|value| result(value, Some(extractor))));
    }
    if found.results.is_empty() {
        let listed = object.get("archive_results").and_then(Value::as_array);
        let listed = listed.into_iter().flatten();
        found.results.extend(listed.filter_map(|value| result(value, None)));
    }
    found.results.sort_by_key(|result| result.started_at);
    Some(found)
}

/// `index.jsonl`. Version 0.9 writes what a hook printed, again with what its end added, and at last the row
/// of the database, which alone has times: the last line of each id counts, and only rows if there are any.
fn of_lines(text: &str) -> Option<BoxSnapshot> {
    let mut found = None;
    let mut printed = Lines::default();
    let mut rows = Lines::default();
    for line in text.lines() {
        let Ok(value) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        match value.get("type").and_then(Value::as_str) {
            Some("Snapshot") => found = value.as_object().and_then(about).or(found),
            Some("ArchiveResult") if value.get("schema_version").is_some() => rows.add(&value),
            Some("ArchiveResult") => printed.add(&value),
            _ => {}
        }
    }
    let mut found = found?;
    found.results = if rows.results.is_empty() { printed.results } else { rows.results };
    Some(found)
}

/// Results in the order of their first lines.
#[derive(Default)]
struct Lines {
    results: Vec<BoxResult>,
    /// Position of the result of each id.
    positions: HashMap<String, usize>,
}

impl Lines {
    fn add(&mut self, value: &Value) {
        let Some(result) = result(value, None) else {
            return;
        };
        let id = value.get("id").and_then(Value::as_str);
        match id.and_then(|id| self.positions.get(id)) {
            Some(position) => self.results[*position] = result,
            None => {
                let position = self.results.len();
                self.positions.extend(id.map(|id| (id.to_owned(), position)));
                self.results.push(result);
            }
        }
    }
}

fn about(object: &Map<String, Value>) -> Option<BoxSnapshot> {
    let text = |name: &str| object.get(name).and_then(Value::as_str).map(cut);
    let url = text("url")?;
    let tags = match object.get("tags") {
        Some(Value::String(tags)) => tags.split(',').map(str::to_owned).collect(),
        Some(Value::Array(tags)) => {
            let names = tags.iter().map(|tag| tag.get("name").unwrap_or(tag));
            names.filter_map(Value::as_str).map(cut).collect()
        }
        _ => {
            text("tags_str").map_or(Vec::new(), |tags| tags.split(',').map(str::to_owned).collect())
        }
    };
    let tags = tags.iter().map(|tag: &String| tag.trim().to_owned());
    let title = text("title").map(|title| title.trim().to_owned());
    let timestamp = text("timestamp").unwrap_or_default();
    let said = text("bookmarked_at").and_then(|time| moment(&time));
    Some(BoxSnapshot {
        id: text("id").unwrap_or_default().replace('-', "").to_ascii_lowercase(),
        url: without_time(url.trim()).to_owned(),
        bookmarked_at: said.and_then(|said| bookmarked_at(Some(said), &timestamp)),
        timestamp,
        title: title.filter(|title| !title.is_empty()),
        tags: tags.filter(|tag| !tag.is_empty()).collect(),
        results: Vec::new(),
    })
}

fn result(value: &Value, extractor: Option<&str>) -> Option<BoxResult> {
    let text = |name: &str| value.get(name).and_then(Value::as_str).map(cut);
    let time = |name: &str| text(name).and_then(|time| moment(&time)).map(Time::from);
    let extractor = extractor.map(cut).or_else(|| text("plugin")).or_else(|| text("extractor"))?;
    let output = text("output_str").filter(|output| !output.is_empty());
    // Before 0.4: seconds since 1970, and milliseconds.
    let second = text("timestamp").and_then(|time| moment(&time_of(&time)?));
    let start = time("start_ts").or(second.map(Time::from));
    let length = text("duration").and_then(|millis| millis.parse().ok());
    let end = start.zip(length).map(|(start, length)| start.after(Duration::from_millis(length)));
    Some(BoxResult {
        extractor,
        status: text("status").unwrap_or_default(),
        output: output.or_else(|| text("output")).unwrap_or_default(),
        started_at: start,
        ended_at: time("end_ts").or(end),
    })
}

fn cut(text: &str) -> String {
    text[..text.floor_char_boundary(FIELD_MAX)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_fuzz::fuzz;
    use proptest::prelude::*;

    fn framed(name: &str, content: &[u8]) -> Vec<u8> {
        let header = Header {
            name: name.to_owned(),
            bytes: content.len() as u64,
            is_list: name == "index.json",
        };
        let header = serde_json::to_string(&header).unwrap();
        [header.as_bytes(), b"\n", content].concat()
    }

    fn lines(input: &[u8]) -> Vec<BoxLine> {
        let mut output = Vec::new();
        read(input, &mut output).unwrap();
        let lines = output.lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap());
        lines.collect()
    }

    #[test]
    fn each_version_is_read() {
        let seven = br#"{"url":"http://a.test/#2021-04-20T10:00:00+00:00","timestamp":"1618912800.5","title":"A",
            "tags":"x, y","history":{"dom":[{"status":"succeeded","output":"output.html",
            "start_ts":"2021-04-20T10:00:01.5","end_ts":"2021-04-20T10:00:02+00:00"}],"git":[]}}"#;
        let eight = br#"{"id":"5d424819-05cc-49fd-b92b-9e070d12d343","url":"http://a.test/","tags":["x"],
            "bookmarked_at":"2024-01-01T00:00:00Z","archive_results":[{"extractor":"pdf","status":"failed","output":"Boom"}]}"#;
        let nine = b"{\"type\":\"Snapshot\",\"id\":\"5d42\",\"url\":\"http://a.test/\",\"tags\":\"x\"}\nnoise\n\
            {\"type\":\"ArchiveResult\",\"plugin\":\"wget\",\"status\":\"succeeded\",\"output_str\":\"a/index.html\"}\n";
        let two = br#"{"url":"http://a.test/","timestamp":"1550000000","title":"B","tags":"x","latest":{"wget":"a.test/index.html"},
            "history":{"wget":[{"timestamp":"1550000100","status":"succeded","duration":"1500","output":"a.test/index.html"}]}}"#;
        let input = [
            framed("1618912800.5", seven),
            framed("1618912801", eight),
            framed("5d42", nine),
            framed("bad", b"{\"url\""),
            framed("1550000000", two),
        ];
        let found = lines(&input.concat());
        assert_eq!(found.len(), 5);
        let snapshot = |at: usize| match &found[at] {
            BoxLine::Snapshot(snapshot) => snapshot,
            other => panic!("{other:?}"),
        };
        assert_eq!(snapshot(0).url, "http://a.test/");
        assert_eq!(snapshot(0).tags, ["x", "y"]);
        assert_eq!(snapshot(0).bookmarked_at.as_deref(), Some("2021-04-20T10:00:00.5Z"));
        let result = &snapshot(0).results[0];
        let start = result.started_at.unwrap().to_string();
        assert_eq!(
            (result.extractor.as_str(), start.as_str()),
            ("dom", "2021-04-20T10:00:01.500Z")
        );
        assert_eq!(snapshot(1).id, "5d42481905cc49fdb92b9e070d12d343");
        assert_eq!(snapshot(1).bookmarked_at.as_deref(), Some("2024-01-01T00:00:00Z"));
        assert_eq!(snapshot(1).results[0].output, "Boom");
        assert_eq!(snapshot(2).results[0].output, "a/index.html");
        assert!(matches!(&found[3], BoxLine::Fault(why) if why.starts_with("bad: ")));
        let result = &snapshot(4).results[0];
        let times = [result.started_at, result.ended_at].map(|time| time.unwrap().to_string());
        assert_eq!(times, ["2019-02-12T19:35:00.000Z", "2019-02-12T19:35:01.500Z"]);
    }

    #[test]
    fn results_that_are_written_several_times_are_one() {
        let results = |lines_of_results: &str| {
            let start = "{\"type\":\"Snapshot\",\"id\":\"5d42\",\"url\":\"http://a.test/\"}\n";
            let found = lines(&framed("5d42", format!("{start}{lines_of_results}").as_bytes()));
            let [BoxLine::Snapshot(snapshot)] = &found[..] else {
                panic!("{found:?}");
            };
            let results = snapshot.results.iter();
            let shown = results.map(|result| format!("{} {}", result.extractor, result.output));
            shown.collect::<Vec<_>>()
        };
        let printed = r#"{"type":"ArchiveResult","id":"1","plugin":"wget","status":"failed","output_str":"at first"}
{"type":"ArchiveResult","id":"2","plugin":"dom","status":"succeeded"}
{"type":"ArchiveResult","id":"1","plugin":"wget","status":"failed","output_str":"at last"}
{"type":"ArchiveResult","plugin":"pdf","status":"succeeded"}
{"type":"ArchiveResult","plugin":"pdf","status":"succeeded"}
"#;
        assert_eq!(results(printed), ["wget at last", "dom ", "pdf ", "pdf "]);
        let row = r#"{"type":"ArchiveResult","schema_version":"0.9.73","id":"3","plugin":"wget","status":"failed","output_str":"a row"}"#;
        assert_eq!(results(&format!("{printed}{row}")), ["wget a row"]);
    }

    #[test]
    fn list_of_all_snapshots_is_read() {
        let list = br#"{"info":"x","num_links":3,"links":[
            {"url":"http://a.test/","timestamp":"1550000000","title":"A","tags":"x","history":{"wget":[{"status":"succeded"}]}},
            {"url":"http://b.test/","timestamp":"1550000001.2","title":null,"tags":null},
            {"url":"http://c.test/"}, 7]}"#;
        let found = lines(&framed("index.json", list));
        let [
            BoxLine::Snapshot(first),
            BoxLine::Snapshot(second),
            BoxLine::Fault(third),
            BoxLine::Fault(fourth),
        ] = &found[..]
        else {
            panic!("{found:?}");
        };
        assert_eq!((first.tags[0].as_str(), first.results.len()), ("x", 1));
        assert_eq!(second.bookmarked_at.as_deref(), Some("2019-02-12T19:33:21.2Z"));
        assert_eq!(third, "index.json: entry 3 is no snapshot");
        assert_eq!(fourth, "index.json: entry 4 is no snapshot");
        let damaged = lines(&framed("index.json", &list[..200]));
        assert!(matches!(&damaged[..], [BoxLine::Fault(why)] if why.starts_with("index.json: ")));
    }

    #[test]
    fn deep_and_long_files_have_a_fault() {
        let deep = format!("{{\"url\":{}", "[".repeat(1_000_000));
        let found = lines(&framed("deep", deep.as_bytes()));
        assert!(matches!(&found[..], [BoxLine::Fault(_)]));
    }

    #[test]
    fn mutated_indexes_are_snapshots_or_faults() {
        let seeds = [
            &br#"{"url":"http://a.test/#2021-04-20T10:00:00+00:00","timestamp":"1618912800.5","title":"A","tags":"x, y","history":{"dom":[{"status":"succeeded","output":"output.html","start_ts":"2021-04-20T10:00:01.5","end_ts":"2021-04-20T10:00:02+00:00"}],"git":[]}}"#[..],
            br#"{"id":"5d424819-05cc-49fd-b92b-9e070d12d343","url":"http://a.test/","tags":["x"],"bookmarked_at":"2024-01-01T00:00:00Z","archive_results":[{"extractor":"pdf","status":"failed","output":"Boom"}]}"#,
            b"{\"type\":\"Snapshot\",\"id\":\"5d42\",\"url\":\"http://a.test/\",\"tags\":\"x\"}\n{\"type\":\"ArchiveResult\",\"plugin\":\"wget\",\"status\":\"succeeded\",\"output_str\":\"a/index.html\"}\n",
            br#"{"links":[{"url":"http://a.test/","timestamp":"1550000000","history":{"wget":[{"timestamp":"1","duration":"1500"}]}},7]}"#,
        ];
        let words: [&[u8]; 8] = [
            b"null",
            b"[[[[",
            b"{\"url\":",
            b"\\ud83d",
            b"1e999",
            b"-99999999999999999999",
            b"2021-04-20T25:61:00",
            b"\xff",
        ];
        fuzz(&seeds.map(<[u8]>::to_vec), &words, |input| {
            assert_eq!(lines(&framed("1", input)).len(), 1);
            let _ = lines(&framed("index.json", input));
            let _ = read(input, std::io::sink());
        });
    }

    proptest! {
        #[test]
        fn any_file_is_a_snapshot_or_a_fault(bytes: Vec<u8>, start in "(\\{\"url\":\"http://a/\",\"history\":|\\{\"type\":\"Snapshot\",\"url\":|)") {
            let content = [start.as_bytes(), &bytes].concat();
            let found = lines(&framed("1", &content));
            prop_assert_eq!(found.len(), 1);
        }
    }
}
