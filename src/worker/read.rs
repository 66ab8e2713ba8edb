//! Reading what a hook said and left. All of it is hostile input.

use super::claims::Claims;
use super::write::settle;
use crate::bus::report::File as OutputFile;
use crate::bus::work::{Child, Derived, Found, Report, SonicWish};
use crate::model::{Outcome, ResultState, Verdict};
use crate::plugin::output::{self, Listing};
use crate::plugin::record::{Binary, Machine, SonicDaemonStart, parse_child};
use crate::plugin::{ArchiveResult, ChildSnapshot, Directory, LineReader, Record, Status};
use crate::plugin::{parse_line, tidy};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError};

/// Files that a report names; of the others only the sizes are added up.
const FILES_MAX: usize = 1000;
/// Child pages that one hook may name.
const CHILDREN_MAX: usize = 10_000;
/// Longest text that is kept of an output or error.
const TEXT_MAX: usize = 4096;
/// Longer times are none.
const TIME_MAX: usize = 64;
/// Settings and programs that one hook may tell those after it of.
const DERIVED_MAX: usize = 100;
/// Longest name of a program that is asked for, and list of where it may come from.
const NAME_MAX: usize = 200;
/// File in which hooks may name child pages instead of printing them.
const CHILDREN_FILE: &str = "urls.jsonl";

/// What the records of one stream said.
#[derive(Debug, Default)]
struct Said {
    result: Option<ArchiveResult>,
    children: Vec<Child>,
    tags: Vec<String>,
    /// The program of this name is asked for.
    wanted: Option<String>,
    binary: Option<Found>,
    derived: Derived,
}

impl Said {
    fn take(&mut self, line: &[u8]) {
        match parse_line(line) {
            Some(Record::ArchiveResult(result)) => self.result = Some(result),
            Some(Record::Snapshot(child)) => self.child(child),
            Some(Record::Tag { name, .. }) => self.tags.push(name),
            Some(Record::Binary(binary)) => self.binary(binary),
            Some(Record::Machine(machine)) => self.machine(machine),
            Some(Record::SonicDaemonStart(wanted)) => {
                let SonicDaemonStart {
                    config_path,
                    host,
                    port,
                    ..
                } = wanted;
                self.derived.sonic = Some(SonicWish {
                    config_path,
                    host,
                    port,
                });
            }
            None => {}
        }
    }

    /// Whether these are worth keeping is not for us to say, but how much of them.
    fn machine(&mut self, machine: Machine) {
        let settings = &mut self.derived.settings;
        for (key, value) in machine.config {
            let known = settings.contains_key(&key) || settings.len() < DERIVED_MAX;
            if known && key.len() + value.len() <= TEXT_MAX {
                settings.insert(key, value);
            }
        }
    }

    fn child(&mut self, child: ChildSnapshot) {
        if self.children.len() < CHILDREN_MAX {
            let ChildSnapshot {
                url,
                title,
                tags,
                bookmarked_at,
                ..
            } = child;
            let bookmarked_at = bookmarked_at.filter(|text| text.len() <= TIME_MAX);
            self.children.push(Child {
                url,
                title,
                bookmarked_at,
                tags,
            });
        }
    }

    /// The first record with the name that was asked for and a path is the one. Of a hook that
    /// nobody asked for a program, each is a word on what it found.
    fn binary(&mut self, binary: Binary) {
        let Some(abspath) = binary.abspath else {
            return self.request(&binary);
        };
        let found = Found {
            name: binary.name,
            abspath: cut(abspath),
            version: binary.version.map(cut),
            provider: binary.binprovider.map(cut),
            env: binary.env,
        };
        match &self.wanted {
            Some(wanted) if *wanted == found.name && self.binary.is_none() => {
                self.binary = Some(found);
            }
            None if self.derived.programs.len() < DERIVED_MAX && found.name.len() <= TEXT_MAX => {
                let env = BTreeMap::new();
                self.derived.programs.push(Found { env, ..found });
            }
            _ => {}
        }
    }

    /// A provider that asks for another one has its answer in its own order.
    fn request(&mut self, binary: &Binary) {
        let wanted = &mut self.derived.wanted;
        if self.wanted.is_none() && wanted.len() < DERIVED_MAX && binary.name.len() <= NAME_MAX {
            let providers = binary
                .raw
                .get("binproviders")
                .and_then(|list| list.as_str());
            let providers = providers.filter(|list| list.len() <= NAME_MAX);
            wanted.insert(
                binary.name.clone(),
                providers.unwrap_or_default().to_owned(),
            );
        }
    }

    /// A line of a file of child pages, which need not say what it is.
    fn take_child(&mut self, line: &[u8]) {
        if let Some(child) = parse_child(line) {
            self.child(child);
        }
    }

    /// Reads a file from its start, in bounded memory.
    fn read(&mut self, file: &File, take: fn(&mut Said, &[u8])) -> std::io::Result<()> {
        let mut lines = LineReader::default();
        let (mut buffer, mut offset) = (vec![0; 64 * 1024], 0);
        loop {
            let length = file.read_at(&mut buffer, offset)?;
            if length == 0 {
                break;
            }
            offset += length as u64;
            lines.feed(&buffer[..length], &mut |line| take(self, line));
        }
        lines.finish(&mut |line| take(self, line));
        Ok(())
    }
}

fn state(status: Status) -> ResultState {
    match status {
        Status::Succeeded => ResultState::Succeeded,
        Status::NoResults => ResultState::NoResults,
        Status::Skipped => ResultState::Skipped,
        Status::Failed => ResultState::Failed,
    }
}

fn cut(text: String) -> String {
    if text.len() <= TEXT_MAX {
        return text;
    }
    let end = (0..=TEXT_MAX)
        .rev()
        .find(|place| text.is_char_boundary(*place))
        .unwrap_or(0);
    format!("{}…", &text[..end])
}

/// The report of a hook that could not be started.
pub fn refused(key: &str, why: String) -> Report {
    Report {
        key: key.to_owned(),
        verdict: Verdict {
            state: ResultState::Failed,
            error: Some(cut(why)),
        },
        output: None,
        files: Vec::new(),
        size: 0,
        children: Vec::new(),
        tags: Vec::new(),
        title: None,
        binary: None,
        derived: Derived::default(),
        retry_after: None,
        crawl_delay: None,
        ready_at: None,
    }
}

/// Where a hook worked.
pub struct Place {
    /// Its plugin's, which other hooks may share.
    pub directory: Arc<Directory>,
    /// What it looked like before the hook; none where nobody knows.
    pub before: Option<Listing>,
    /// Whether the hook is a crawl's: one that readies or ends things for pages.
    pub of_crawl: bool,
    pub claims: Arc<Mutex<Claims>>,
}

/// Makes the report of a hook that ended: `stdout` is its output. `remark` is what the worker
/// itself has to say against it.
pub fn report(
    key: &str,
    plugin: &str,
    outcome: &Outcome,
    stdout: &File,
    place: &Place,
    remark: Option<String>,
) -> Report {
    let directory = place.directory.as_ref();
    let wanted = key.split_once('@').map(|(_, name)| name.to_owned());
    // Only of a page, or of a provider, is there something to find or not.
    let errand = place.of_crawl && wanted.is_none();
    let mut said = Said {
        wanted,
        ..Said::default()
    };
    let mut error = said
        .read(stdout, Said::take)
        .err()
        .map(|error| format!("its output cannot be read: {error}"));
    if let Ok(file) = directory.read(CHILDREN_FILE) {
        error = said
            .read(&file, Said::take_child)
            .err()
            .map(|e| format!("{CHILDREN_FILE}: {e}"))
            .or(error);
    }
    for problem in tidy::tidy(directory).unwrap_or_default() {
        tracing::debug!("'{}': {}", problem.path.display(), problem.what);
    }
    let found = output::scan(directory, |_| false).unwrap_or_else(|e| {
        error = Some(format!("its files cannot be listed: {e}"));
        Vec::new()
    });
    let size = {
        let mut claims = place.claims.lock().unwrap_or_else(PoisonError::into_inner);
        claims.take(directory.path(), key, &found)
    };
    let left = match &place.before {
        Some(before) => Listing::of(directory).has_news_since(before),
        None => !found.is_empty(),
    };
    let brought = said.binary.as_ref().map(|_| ResultState::Succeeded);
    let stated = said.result.as_ref().map(|result| state(result.status));
    let stated = brought.or(stated);
    let mut verdict = Verdict::of(outcome, stated, left || errand);
    if verdict.state == ResultState::Succeeded
        && left
        && let Err(error) = settle(directory)
    {
        verdict = Verdict {
            state: ResultState::Failed,
            error: Some(format!("its files cannot be brought to the disk: {error}")),
        };
    }
    let asked = |name: &str| -> Option<u64> { said.result.as_ref()?.raw.get(name)?.as_u64() };
    let (retry_after, crawl_delay) = (asked("retry_after"), asked("crawl_delay_ms"));
    let (mut text, stated_error) = match said.result {
        Some(result) => (result.output_str, result.error),
        // Who says nothing is judged by the files.
        None => {
            let succeeded = verdict.state == ResultState::Succeeded;
            let main = output::main_file(&found).filter(|_| succeeded);
            (main.map(|file| format!("{plugin}/{}", file.path)), None)
        }
    };
    if let Some(found) = &said.binary {
        let version = found.version.iter().map(|version| format!(" {version}"));
        text = Some(found.abspath.clone() + &version.collect::<String>());
    }
    if let Some(remark) = remark {
        verdict = Verdict {
            state: ResultState::Failed,
            error: Some(remark),
        };
    }
    if verdict.state == ResultState::Failed || verdict.state == ResultState::Skipped {
        let reasons = [verdict.error.take(), stated_error, error];
        verdict.error = reasons
            .into_iter()
            .flatten()
            .reduce(|a, b| format!("{a}; {b}"))
            .map(cut);
        if verdict.error.is_none() {
            verdict.error = text.take().map(cut);
        }
    }
    let title = (plugin == "title" && verdict.state == ResultState::Succeeded)
        .then(|| text.clone())
        .flatten();
    let files = found.into_iter().take(FILES_MAX).map(|file| OutputFile {
        path: file.path,
        mimetype: file.mimetype,
        size: file.size,
    });
    let mut known = BTreeSet::new();
    Report {
        key: key.to_owned(),
        verdict,
        output: text.map(cut),
        files: files.collect(),
        size,
        children: said
            .children
            .into_iter()
            .filter(|child| known.insert(child.url.clone()))
            .collect(),
        tags: said.tags,
        title: title.map(cut),
        binary: said.binary,
        derived: said.derived,
        retry_after,
        crawl_delay,
        ready_at: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_children_holds_nothing_else() {
        let top = tempfile::tempdir().unwrap();
        let lines = r#"{"url": "http://a/", "tags": "x"}
{"type": "Snapshot", "url": "http://b/"}
{"type": "ArchiveResult", "status": "failed", "url": "http://c/"}
{"type": "Machine", "config": {"A": "1"}}
not a record
"#;
        std::fs::write(top.path().join(CHILDREN_FILE), lines).unwrap();
        std::fs::write(top.path().join("stdout.log"), "progress\n").unwrap();
        let stdout = File::open(top.path().join("stdout.log")).unwrap();
        let mut place = Place {
            directory: Arc::new(Directory::open(top.path()).unwrap()),
            before: None,
            of_crawl: false,
            claims: Arc::default(),
        };
        let of = |place: &Place| report("p/h", "p", &Outcome::Exit(0), &stdout, place, None);
        let report = of(&place);
        assert_eq!(report.output.as_deref(), Some("p/urls.jsonl"));
        let urls: Vec<&str> = report.children.iter().map(|child| &*child.url).collect();
        assert_eq!(urls, ["http://a/", "http://b/"]);
        assert_eq!(report.verdict.state, ResultState::Succeeded);
        assert_eq!(report.derived, Derived::default());

        // Another hook left the file before this one began.
        place.before = Some(Listing::of(&place.directory));
        assert_eq!(of(&place).verdict.state, ResultState::NoResults);
        place.of_crawl = true;
        assert_eq!(of(&place).verdict.state, ResultState::Succeeded);
        let provider = super::report("p/h@curl", "p", &Outcome::Exit(0), &stdout, &place, None);
        assert_eq!(provider.verdict.state, ResultState::NoResults);
        place.of_crawl = false;
        std::fs::write(top.path().join(CHILDREN_FILE), "").unwrap();
        assert_eq!(of(&place).verdict.state, ResultState::Succeeded);
    }

    proptest::proptest! {
        /// Whatever a hook prints and leaves: what is passed on is bounded, and a hook that was
        /// ended for its limit never succeeds.
        #[test]
        fn any_output_makes_a_bounded_report(noise: Vec<u8>, kind in "ArchiveResult|Snapshot|Machine|Binary|Tag|Sonic[A-Z]?",
            key in "status|url|title|tags|config|name|abspath|output_str", value in r#"(".{0,20}"|[0-9]{1,30}|\[\]|\{"A": ?"b"\}|null|"succeeded")"#, times in 1usize..300) {
            let top = tempfile::tempdir().unwrap();
            let line = format!("{{\"type\": \"{kind}\", \"{key}\": {value}, \"url\": \"http://a/\", \"status\": \"succeeded\"}}\n");
            let mut text = noise.clone();
            text.push(b'\n');
            text.extend(line.repeat(times).bytes());
            std::fs::write(top.path().join("stdout.log"), &text).unwrap();
            std::fs::write(top.path().join(CHILDREN_FILE), &text).unwrap();
            let stdout = File::open(top.path().join("stdout.log")).unwrap();
            let place = Place { directory: Arc::new(Directory::open(top.path()).unwrap()), before: None, of_crawl: false, claims: Arc::default() };
            let of = |outcome| report("p/h", "title", &outcome, &stdout, &place, None);
            let said = of(Outcome::Exit(0));
            let texts = [&said.output, &said.verdict.error, &said.title];
            assert!(texts.into_iter().flatten().all(|text| text.len() <= TEXT_MAX + 4));
            assert!(said.derived.settings.len() <= DERIVED_MAX && said.derived.programs.len() <= DERIVED_MAX);
            assert!(said.children.len() <= CHILDREN_MAX && said.files.len() <= FILES_MAX);
            assert_eq!(of(Outcome::TimeLimit).verdict.state, ResultState::Failed);
            // The orchestrator reads what we write.
            let text = serde_json::to_string(&said).unwrap();
            let read: Report = serde_json::from_str(&text).unwrap();
            assert_eq!(serde_json::to_string(&read).unwrap(), text);
        }
    }
}
