//! Reading what a hook said and left. All of it is hostile input.

use crate::files::write::settle;
use crate::output::claims::Claims;
use crate::output::said::Said;
use archivist_core::model::{Outcome, ResultState, Verdict, cut};
use archivist_plugin::files::output;
use archivist_plugin::files::output::Listing;
use archivist_plugin::files::tidy;
use archivist_plugin::{Directory, Status};
use archivist_shared::bus::documents::bounds;
use archivist_shared::bus::documents::report::File as OutputFile;
use archivist_shared::bus::documents::work::Report;
use std::fs::File;
use std::sync::{Arc, Mutex, PoisonError};

/// File in which hooks may name child pages instead of printing them.
const CHILDREN_FILE: &str = "urls.jsonl";

fn state(status: Status) -> ResultState {
    match status {
        Status::Succeeded => ResultState::Succeeded,
        Status::NoResults => ResultState::NoResults,
        Status::Skipped => ResultState::Skipped,
        Status::Failed => ResultState::Failed,
    }
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
        derived: Default::default(),
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
    let mut left_out = said.left_out();
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
    let files = found.into_iter().map(|file| OutputFile {
        path: file.path,
        mimetype: file.mimetype,
        size: file.size,
    });
    let (derived, dropped) = bounds::derived(said.derived);
    left_out.others += dropped;
    Report {
        key: key.to_owned(),
        verdict: verdict.with_remark(left_out.remark()),
        output: text.map(cut),
        files: bounds::files(files),
        size,
        children: said.children.into_list(),
        tags: said.tags.into_names(),
        title: title.map(cut),
        binary: said.binary,
        derived,
        retry_after,
        crawl_delay,
        ready_at: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_core::model::{TAGS_MAX, TEXT_MAX};
    use archivist_shared::bus::documents::bounds::{
        CHILDREN_MAX, DERIVED_MAX, FILES_MAX, REPORT_MAX,
    };
    use archivist_shared::bus::documents::work::Derived;

    /// What a report makes of this on standard output and in the file of child pages.
    fn of(stdout: &[u8], children: &[u8]) -> Report {
        let top = tempfile::tempdir().unwrap();
        std::fs::write(top.path().join("stdout.log"), stdout).unwrap();
        std::fs::write(top.path().join(CHILDREN_FILE), children).unwrap();
        let stdout = File::open(top.path().join("stdout.log")).unwrap();
        let place = Place {
            directory: Arc::new(Directory::open(top.path()).unwrap()),
            before: None,
            of_crawl: false,
            claims: Arc::default(),
        };
        report("p/h", "p", &Outcome::Exit(0), &stdout, &place, None)
    }

    #[test]
    fn a_flood_of_tags_and_titles_makes_a_small_report() {
        let tags: String = (0..300_000)
            .map(|n| format!("{{\"type\":\"Tag\",\"name\":{n}}}\n"))
            .collect();
        let many = (0..50_000)
            .map(|n| n.to_string())
            .collect::<Vec<_>>()
            .join(",");
        let child = format!("{{\"url\":\"http://a/\",\"tags\":\"{many}\"}}\n");
        let title = "t".repeat(1_000_000);
        let titles =
            (0..40).map(|n| format!("{{\"url\":\"http://b/{n}\",\"title\":\"{title}\"}}\n"));
        let report = of(
            tags.as_bytes(),
            (child + &titles.collect::<String>()).as_bytes(),
        );
        assert_eq!(report.verdict.state, ResultState::Succeeded);
        assert_eq!((report.tags.len(), report.children.len()), (TAGS_MAX, 41));
        assert_eq!(report.children[0].tags.len(), TAGS_MAX);
        let text = serde_json::to_string(&report).unwrap();
        assert!(text.len() < 256 << 10, "{}", text.len());
        assert_eq!(
            report.verdict.error.as_deref(),
            Some("too much for one report, left out: 349872 tags")
        );
        // What the orchestrator makes of it is the same.
        assert_eq!(serde_json::to_string(&report.bounded()).unwrap(), text);
    }

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
            assert!(said.children.len() <= CHILDREN_MAX && said.files.len() <= FILES_MAX && said.tags.len() <= TAGS_MAX);
            assert_eq!(of(Outcome::TimeLimit).verdict.state, ResultState::Failed);
            // The orchestrator reads what we write.
            let text = serde_json::to_string(&said).unwrap();
            assert!(text.len() < REPORT_MAX);
            let read: Report = serde_json::from_str(&text).unwrap();
            assert_eq!(serde_json::to_string(&read).unwrap(), text);
        }
    }
}
