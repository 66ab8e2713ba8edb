//! Builds the report about a hook from its outcome, its output and its files. All of this is
//! untrusted input.

use crate::files::write::sync_filesystem;
use crate::output::claims::Claims;
use crate::output::hook_records::HookRecords;
use crate::output::navigation;
use archivist_core::lock;
use archivist_core::model::{Figures, Outcome, ResultState, Verdict, cut};
use archivist_plugin::files::output;
use archivist_plugin::files::output::Listing;
use archivist_plugin::files::tidy;
use archivist_plugin::{Directory, ResultStatus};
use archivist_shared::bus::documents::bounds;
use archivist_shared::bus::documents::report::File as OutputFile;
use archivist_shared::bus::documents::work::Report;
use std::fs::File;
use std::sync::{Arc, Mutex};

/// Status of a network that wants a login before it forwards requests (RFC 6585, section 6).
const LOGIN_REQUIRED: u16 = 511;
const PORTAL: &str = "the network asks for a login (http 511)";

/// File in which hooks may list child pages instead of printing them.
const CHILDREN_FILE: &str = "urls.jsonl";

fn state(status: ResultStatus) -> ResultState {
    match status {
        ResultStatus::Succeeded => ResultState::Succeeded,
        ResultStatus::NoResults => ResultState::NoResults,
        ResultStatus::Skipped => ResultState::Skipped,
        ResultStatus::Failed => ResultState::Failed,
    }
}

/// Report of a hook that was not started.
pub fn not_started(key: &str, verdict: Verdict, output: Option<String>) -> Report {
    Report {
        key: key.to_owned(),
        verdict,
        output,
        files: Vec::new(),
        size: 0,
        children: Vec::new(),
        tags: Vec::new(),
        title: None,
        binary: None,
        derived: Default::default(),
        http_status: None,
        http_plugin: None,
        network_fault: None,
        retry_after: None,
        crawl_delay: None,
        ready_at: None,
        recorded: None,
        figures: Figures::default(),
    }
}

/// What the report about a hook needs besides its output.
pub struct RunContext {
    /// Directory of its plugin, which other hooks may share.
    pub directory: Arc<Directory>,
    /// The directory of the page or crawl, which links must not leave.
    pub owner: Arc<Directory>,
    /// Content of the directory before the run, if known.
    pub before: Option<Listing>,
    /// Whether the hook belongs to a crawl: such hooks prepare or finish work for pages.
    pub of_crawl: bool,
    pub claims: Arc<Mutex<Claims>>,
}

/// Builds the report about a run. `stdout` is the output of the hook. `remark` is the worker's own
/// reason for a failure.
pub fn build(
    key: &str,
    plugin: &str,
    outcome: &Outcome,
    stdout: &File,
    context: &RunContext,
    remark: Option<String>,
) -> Report {
    let directory = context.directory.as_ref();
    let requested = key.split_once('@').map(|(_, name)| name.to_owned());
    // Only hooks of pages and providers of programs can have no results.
    let is_preparation = context.of_crawl && requested.is_none();
    let mut records = HookRecords { requested, ..HookRecords::default() };
    let mut error = records
        .read(stdout, HookRecords::take)
        .err()
        .map(|error| format!("failed to read its output: {error}"));
    if let Ok(file) = directory.read(CHILDREN_FILE) {
        error = records
            .read(&file, HookRecords::take_child)
            .err()
            .map(|e| format!("{CHILDREN_FILE}: {e}"))
            .or(error);
    }
    let mut left_out = records.left_out();
    let tidied = tidy::tidy(directory, &context.owner).unwrap_or_default();
    for problem in &tidied.problems {
        tracing::debug!("'{}': {}", problem.path.display(), problem.what);
    }
    let found = output::scan(directory, |_| false).unwrap_or_else(|e| {
        error = Some(format!("failed to list its files: {e}"));
        Vec::new()
    });
    let size = {
        let mut claims = lock(&context.claims);
        claims.take(directory.path(), key, &found)
    };
    let has_output = match &context.before {
        Some(before) => Listing::of(directory).has_news_since(before),
        None => !found.is_empty(),
    };
    let provided = records.binary.as_ref().map(|_| ResultState::Succeeded);
    let stated = records.result.as_ref().map(|result| state(result.status));
    let mut verdict = Verdict::of(outcome, provided.or(stated), has_output || is_preparation);
    if verdict.state == ResultState::Succeeded
        && has_output
        && let Err(error) = sync_filesystem(directory)
    {
        verdict = Verdict {
            state: ResultState::Failed,
            error: Some(format!("failed to write its files to disk: {error}")),
        };
    }
    let asked = |name: &str| -> Option<u64> { records.result.as_ref()?.raw.get(name)?.as_u64() };
    let (retry_after, crawl_delay) = (asked("retry_after"), asked("crawl_delay_ms"));
    let note = records
        .result
        .as_ref()
        .and_then(|result| Some(cut(result.raw.get("note")?.as_str()?.to_owned())));
    let http_status =
        asked("http_status").and_then(navigation::as_status).filter(|_| !context.of_crawl);
    let stated = records.result.as_ref().map(|result| &result.raw);
    let network_fault = stated
        .and_then(|raw| Some(cut(raw.get("network_fault")?.as_str()?.to_owned())))
        .or_else(|| (http_status == Some(LOGIN_REQUIRED)).then(|| PORTAL.to_owned()))
        .filter(|_| !context.of_crawl);
    let stated = stated.and_then(|raw| raw.get("figures")?.as_object());
    let figures = stated.map(Figures::of).unwrap_or_default();
    let (mut text, stated_error) = match records.result {
        Some(result) => (result.output_str, result.error),
        // Without an ArchiveResult the files decide.
        None => {
            let succeeded = verdict.state == ResultState::Succeeded;
            let main = output::main_file(&found).filter(|_| succeeded);
            (main.map(|file| format!("{plugin}/{}", file.path)), None)
        }
    };
    if let Some(found) = &records.binary {
        let version = found.version.iter().map(|version| format!(" {version}"));
        text = Some(found.abspath.clone() + &version.collect::<String>());
    }
    if let Some(remark) = remark {
        verdict = Verdict { state: ResultState::Failed, error: Some(remark) };
    }
    if verdict.state == ResultState::Failed || verdict.state == ResultState::Skipped {
        let reasons = [verdict.error.take(), stated_error, error];
        verdict.error = reasons.into_iter().flatten().reduce(|a, b| format!("{a}; {b}")).map(cut);
        if verdict.error.is_none() {
            verdict.error = text.take().map(cut);
        }
    }
    let title = (plugin == "title" && verdict.state == ResultState::Succeeded)
        .then(|| text.clone())
        .flatten();
    let mut files: Vec<OutputFile> = found
        .into_iter()
        .map(|file| OutputFile { path: file.path, mimetype: file.mimetype, size: file.size })
        .collect();
    // A report has no room for all files of some hooks, and main files are next to the directory of others.
    files.sort_by_key(|file| file.path.matches('/').count());
    let (derived, dropped) = bounds::derived(records.derived);
    left_out.others += dropped;
    Report {
        key: key.to_owned(),
        verdict: verdict
            .with_remark(note)
            .with_remark(left_out.remark())
            .with_remark(tidied.beyond.remark()),
        output: text.map(cut),
        files: bounds::files(files),
        size,
        children: records.children.into_list(),
        tags: records.tags.into_names(),
        title: title.map(cut),
        binary: records.binary,
        derived,
        http_status,
        http_plugin: None,
        network_fault,
        retry_after,
        crawl_delay,
        ready_at: None,
        recorded: None,
        figures,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_core::model::{TAGS_MAX, TEXT_MAX};
    use archivist_plugin::files::remove::remove_tree;
    use archivist_plugin::sample::deep;
    use archivist_shared::bus::documents::bounds::{
        CHILDREN_MAX, DERIVED_MAX, FILES_MAX, REPORT_MAX,
    };
    use archivist_shared::bus::documents::work::Derived;

    /// Report for this standard output and this file of child pages.
    fn of(stdout: &[u8], children: &[u8]) -> Report {
        built(tempfile::tempdir().unwrap().path(), stdout, children)
    }

    fn built(top: &std::path::Path, stdout: &[u8], children: &[u8]) -> Report {
        std::fs::write(top.join("stdout.log"), stdout).unwrap();
        std::fs::write(top.join(CHILDREN_FILE), children).unwrap();
        let stdout = File::open(top.join("stdout.log")).unwrap();
        let context = RunContext {
            directory: Arc::new(Directory::open(top).unwrap()),
            owner: Arc::new(Directory::open(top).unwrap()),
            before: None,
            of_crawl: false,
            claims: Arc::default(),
        };
        build("p/h", "p", &Outcome::Exit(0), &stdout, &context, None)
    }

    #[test]
    fn flood_of_tags_and_titles_makes_a_small_report() {
        let tags: String =
            (0..300_000).map(|n| format!("{{\"type\":\"Tag\",\"name\":{n}}}\n")).collect();
        let many = (0..50_000).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
        let child = format!("{{\"url\":\"http://a/\",\"tags\":\"{many}\"}}\n");
        let title = "t".repeat(1_000_000);
        let titles =
            (0..40).map(|n| format!("{{\"url\":\"http://b/{n}\",\"title\":\"{title}\"}}\n"));
        let report = of(tags.as_bytes(), (child + &titles.collect::<String>()).as_bytes());
        assert_eq!(report.verdict.state, ResultState::Succeeded);
        assert_eq!((report.tags.len(), report.children.len()), (TAGS_MAX, 41));
        assert_eq!(report.children[0].tags.len(), TAGS_MAX);
        let text = serde_json::to_string(&report).unwrap();
        assert!(text.len() < 256 << 10, "{}", text.len());
        assert_eq!(
            report.verdict.error.as_deref(),
            Some("too much for one report, left out: 349872 tags")
        );
        // The orchestrator applies the same bounds.
        assert_eq!(serde_json::to_string(&report.bounded()).unwrap(), text);
    }

    #[test]
    fn files_of_the_top_are_not_left_out_for_those_below() {
        let top = tempfile::tempdir().unwrap();
        std::fs::create_dir(top.path().join("files")).unwrap();
        for n in 0..FILES_MAX {
            std::fs::write(top.path().join(format!("files/{n}.png")), "x").unwrap();
        }
        std::fs::write(top.path().join("index.html"), "x").unwrap();
        let report = built(top.path(), b"", b"");
        assert_eq!((report.files.len(), report.files[0].path.as_str()), (FILES_MAX, "index.html"));
    }

    #[test]
    fn what_is_nested_too_deeply_is_named_with_the_result() {
        let top = tempfile::tempdir_in("/dev/shm").unwrap();
        deep(top.path(), 2500, "d");
        let report = built(top.path(), b"", b"");
        let remark = report.verdict.error.unwrap();
        assert!(
            remark.starts_with("left out 1 file or directory below more than 256 directories"),
            "{remark}"
        );
        remove_tree(top.path()).unwrap();
    }

    #[test]
    fn note_of_a_hook_is_stored_with_its_result() {
        let result = |rest: &str| {
            let line = r#"{"type": "ArchiveResult", "output_str": "x", "status": "#;
            of(format!("{line}{rest}}}\n").as_bytes(), b"").verdict
        };
        let cut_off = result(r#""succeeded", "note": "the answer ended early""#);
        assert_eq!(cut_off.state, ResultState::Succeeded);
        assert_eq!(cut_off.error.as_deref(), Some("the answer ended early"));
        let none = result(r#""succeeded", "note": 7"#);
        assert_eq!(none.error, None);
        let failed = result(r#""failed", "error": "why", "note": "and more""#);
        assert_eq!(failed.error.as_deref(), Some("why; and more"));
    }

    #[test]
    fn file_of_children_contains_only_child_pages() {
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
        let mut context = RunContext {
            directory: Arc::new(Directory::open(top.path()).unwrap()),
            owner: Arc::new(Directory::open(top.path()).unwrap()),
            before: None,
            of_crawl: false,
            claims: Arc::default(),
        };
        let of =
            |context: &RunContext| build("p/h", "p", &Outcome::Exit(0), &stdout, context, None);
        let report = of(&context);
        assert_eq!(report.output.as_deref(), Some("p/urls.jsonl"));
        let urls: Vec<&str> = report.children.iter().map(|child| &*child.url).collect();
        assert_eq!(urls, ["http://a/", "http://b/"]);
        assert_eq!(report.verdict.state, ResultState::Succeeded);
        assert_eq!(report.derived, Derived::default());

        // Another hook created the file before this run.
        context.before = Some(Listing::of(&context.directory));
        assert_eq!(of(&context).verdict.state, ResultState::NoResults);
        context.of_crawl = true;
        assert_eq!(of(&context).verdict.state, ResultState::Succeeded);
        let provider = super::build("p/h@curl", "p", &Outcome::Exit(0), &stdout, &context, None);
        assert_eq!(provider.verdict.state, ResultState::NoResults);
        context.of_crawl = false;
        std::fs::write(top.path().join(CHILDREN_FILE), "").unwrap();
        assert_eq!(of(&context).verdict.state, ResultState::Succeeded);
    }

    #[test]
    fn status_of_the_document_is_read() {
        let status = |status: &str| {
            let line = format!(
                r#"{{"type": "ArchiveResult", "status": "succeeded", "http_status": {status}}}"#
            );
            of(line.as_bytes(), b"").http_status
        };
        assert_eq!(status("404"), Some(404));
        assert_eq!(status("200"), Some(200));
        for bad in ["0", "99", "1000", "70000", "-404", "4.4", "\"404\"", "null"] {
            assert_eq!(status(bad), None, "{bad}");
        }
    }

    #[test]
    fn fault_of_the_network_is_read() {
        let fault = |fields: &str| {
            let line = format!(r#"{{"type": "ArchiveResult", "status": "failed", {fields}}}"#);
            of(line.as_bytes(), b"").network_fault
        };
        let why = "no name server answers";
        assert_eq!(fault(&format!(r#""network_fault": "{why}""#)).as_deref(), Some(why));
        assert_eq!(fault(r#""http_status": 511"#).as_deref(), Some(PORTAL));
        assert_eq!(fault(r#""http_status": 503"#), None);
        assert_eq!(fault(r#""network_fault": 7"#), None);
    }

    #[test]
    fn figures_of_the_hook_are_read() {
        let line = r#"{"type": "ArchiveResult", "status": "succeeded", "figures": {"kept": 52}}"#;
        assert_eq!(of(line.as_bytes(), b"").figures.get("kept"), Some(52.0));
        let other = line.replace(r#"{"kept": 52}"#, "[52]");
        assert!(of(other.as_bytes(), b"").figures.is_empty());
    }

    proptest::proptest! {
        /// Whatever a hook prints and leaves, the report is bounded, and a hook that reached its
        /// time limit never succeeds.
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
            let context = RunContext { directory: Arc::new(Directory::open(top.path()).unwrap()), owner: Arc::new(Directory::open(top.path()).unwrap()), before: None, of_crawl: false, claims: Arc::default() };
            let of = |outcome| build("p/h", "title", &outcome, &stdout, &context, None);
            let records = of(Outcome::Exit(0));
            let texts = [&records.output, &records.verdict.error, &records.title];
            assert!(texts.into_iter().flatten().all(|text| text.len() <= TEXT_MAX + 4));
            assert!(records.derived.settings.len() <= DERIVED_MAX && records.derived.programs.len() <= DERIVED_MAX);
            assert!(records.children.len() <= CHILDREN_MAX && records.files.len() <= FILES_MAX && records.tags.len() <= TAGS_MAX);
            assert_eq!(of(Outcome::TimeLimit).verdict.state, ResultState::Failed);
            // The orchestrator can parse the report.
            let text = serde_json::to_string(&records).unwrap();
            assert!(text.len() < REPORT_MAX);
            let read: Report = serde_json::from_str(&text).unwrap();
            assert_eq!(serde_json::to_string(&read).unwrap(), text);
        }
    }
}
