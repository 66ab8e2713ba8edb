//! Tests of the pages and lists that a worker writes.

use super::*;
use archivist_core::model::{CrawlId, IdMarks, Outcome, Verdict};
use archivist_shared::bus::documents::report::File;
use archivist_shared::bus::documents::work::{About, Ended, HookMode, HookTask, Report, Skipped};
use std::fs;
use std::path::PathBuf;

fn assignment(archive: &Path) -> Assignment {
    let directory = archive.join("20261121/example.com/s7");
    let crawl_directory = archive.join("20261121/example.com/c3");
    fs::create_dir_all(&directory).unwrap();
    fs::create_dir_all(&crawl_directory).unwrap();
    Assignment {
        token: String::new(),
        bus_name: String::new(),
        user_scope: false,
        owner: Owner::Snapshot(SnapshotId(7)),
        url: "https://example.com/".into(),
        depth: 0,
        max_depth: 0,
        directory,
        crawl_directory,
        identity: None,
        crawl_identity: None,
        ids: IdMarks::default(),
        installation: None,
        shared_tmp: None,
        hooks: Vec::new(),
        last_hooks: Vec::new(),
        ready_limit: Duration::ZERO,
        stop_limit: Duration::ZERO,
        output_limit: 0,
        staged: None,
        sharing: None,
        visit: Default::default(),
        about: About {
            archive: archive.to_owned(),
            crawl: Some(CrawlId(3)),
            added_at: Some(Time(5)),
            title: None,
            tags: vec!["reading".into()],
            skipped: vec![Skipped {
                plugin: "pdf".into(),
                hook: "on_Snapshot__52_pdf".into(),
                why: "chromium is missing".into(),
            }],
            roles: Default::default(),
            visited_at: Some(Time(6)),
            versions: Vec::new(),
        },
    }
}

fn record(index: &SnapshotIndex, plugin: &str, state: ResultState, text: &str, files: &[&str]) {
    let task = HookTask {
        key: format!("{plugin}/hook"),
        plugin: plugin.into(),
        hook: "hook".into(),
        mode: HookMode::Foreground,
        limit: Duration::ZERO,
        patience: Duration::ZERO,
        alongside: Vec::new(),
        after_background: false,
        uses_daemon: false,
        awaits: Vec::new(),
        needs: None,
    };
    let file =
        |path: &&str| File { path: (*path).to_owned(), mimetype: "image/png".into(), size: 10 };
    let is_failure = state == ResultState::Failed;
    let report = Report {
        binary: None,
        derived: Default::default(),
        http_status: None,
        http_plugin: None,
        network_fault: None,
        retry_after: None,
        crawl_delay: None,
        ready_at: None,
        recorded: None,
        key: task.key.clone(),
        verdict: Verdict { state, error: is_failure.then(|| text.to_owned()) },
        output: None,
        files: files.iter().map(file).collect(),
        size: 10,
        children: Vec::new(),
        tags: vec![],
        title: (plugin == "title").then(|| text.to_owned()),
        figures: Default::default(),
    };
    let ended = Ended {
        lack: None,
        started_at: Some(Time(1)),
        ended_at: Some(Time(2)),
        ..Ended::without_run(Outcome::Exit(0))
    };
    index.result(&task, &report, &ended).unwrap();
}

fn held(assignment: &Assignment) -> Arc<Directory> {
    Arc::new(Directory::open(&assignment.directory).unwrap())
}

fn open(assignment: &Assignment) -> SnapshotIndex {
    SnapshotIndex::open(assignment, &held(assignment)).unwrap()
}

async fn publish_all(assignment: &Assignment, index: &SnapshotIndex) {
    publish(assignment, &held(assignment), index).await;
}

fn read(path: PathBuf) -> String {
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[tokio::test]
async fn worker_writes_page_and_list_entries() {
    let archive = tempfile::tempdir().unwrap();
    let assignment = assignment(archive.path());
    let index = open(&assignment);
    record(&index, "title", ResultState::Succeeded, "Old <title>", &[]);
    record(&index, "wget", ResultState::Failed, "ERROR 404", &[]);
    record(&index, "screenshot", ResultState::Succeeded, "", &["screenshot.png"]);
    record(&index, "chrome", ResultState::Succeeded, "", &["marker.png"]);
    let own = assignment.directory.join("screenshot");
    fs::create_dir(&own).unwrap();
    fs::write(own.join("screenshot.png"), "picture").unwrap();
    publish_all(&assignment, &index).await;
    let html = read(assignment.directory.join("index.html"));
    assert!(!html.contains("marker.png"), "it was removed");
    for part in [
        "<h1><bdi>Old &lt;title&gt;</bdi></h1>",
        "ERROR 404",
        "chromium is missing",
        "reading",
        "img src=\"./screenshot/screenshot.png\"",
    ] {
        assert!(html.contains(part), "{part} is not in {html}");
    }
    for name in ["index.html", "20261121/index.html", "20261121/example.com/c3/index.html"] {
        let list = read(archive.path().join(name));
        assert!(list.contains("20261121/example.com/s7/index.html"), "{name}");
        assert!(list.contains("1 failed"), "{name}");
    }

    // Another worker continues and knows the results of the first one.
    let index = open(&assignment);
    record(&index, "wget", ResultState::Succeeded, "", &["index.html"]);
    publish_all(&assignment, &index).await;
    let html = read(assignment.directory.join("index.html"));
    assert!(!html.contains("ERROR 404") && html.contains("2 attempts"), "{html}");
    assert!(html.contains("./screenshot/screenshot.png"));
    let list = read(archive.path().join("20261121/index.html"));
    assert!(!list.contains("1 failed") && list.contains("1 snapshot<"), "{list}");
}

#[tokio::test]
async fn forged_records_lead_to_no_file() {
    let archive = tempfile::tempdir().unwrap();
    let assignment = assignment(archive.path());
    let forged = r#"{"type":"ArchiveResult","plugin":"../..","hook_name":"h","status":"succeeded","output_files":[{"path":"../../etc/passwd","mimetype":"image/png","size":1}]}
{"type":"ArchiveResult","plugin":"screenshot","hook_name":"h","status":"succeeded","output_files":[{"path":"../../../secret.png","mimetype":"image/png","size":1}]}
{"type":"Listed","lists":{"20261121":99,"../../x":1}}
{"type":"ArchiveResult"
[[[[
"#;
    fs::write(assignment.directory.join("index.jsonl"), forged).unwrap();
    // The file exists, but belongs to no result of this page.
    let own = assignment.directory.join("screenshot");
    fs::create_dir(&own).unwrap();
    fs::write(own.join("../../../secret.png"), "secret").unwrap();
    publish_all(&assignment, &open(&assignment)).await;
    let html = read(assignment.directory.join("index.html"));
    let links: Vec<&str> =
        html.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert!(
        links.iter().all(|link| !link.contains("passwd") && !link.contains("secret")),
        "{links:?}"
    );
    assert!(!html.contains("<img"), "{html}");
    assert!(read(archive.path().join("20261121/index.html")).contains("1 snapshot<"));
}

#[tokio::test]
async fn assignment_without_archive_gets_a_page_without_lists() {
    let archive = tempfile::tempdir().unwrap();
    let mut assignment = assignment(archive.path());
    assignment.about = About::default();
    publish_all(&assignment, &open(&assignment)).await;
    assert!(read(assignment.directory.join("index.html")).contains("https://example.com/"));
    assert!(!archive.path().join("index.html").exists());
}

/// The crawl's hooks can write to the directory of its list until the last of them ends.
#[tokio::test]
async fn list_of_a_crawl_is_restored_at_its_end() {
    let archive = tempfile::tempdir().unwrap();
    let mut assignment = assignment(archive.path());
    let index = assignment.crawl_directory.join("index.html");
    let crawl = async |assignment: &Assignment| {
        let mut crawl = assignment.clone();
        crawl.owner = Owner::Crawl(CrawlId(3));
        crawl.directory = crawl.crawl_directory.clone();
        publish_all(&crawl, &open(&crawl)).await;
    };
    fs::write(&index, "a hook's").unwrap();
    crawl(&assignment).await;
    assert!(!index.exists(), "the list is empty");

    publish_all(&assignment, &open(&assignment)).await;
    let ours = read(index.clone());
    for user_scope in [false, true] {
        assignment.user_scope = user_scope;
        fs::remove_file(&index).unwrap();
        fs::create_dir_all(index.join("full")).unwrap();
        crawl(&assignment).await;
        assert_eq!(read(index.clone()), ours);
    }
}

/// Of a page that is archived three times, the second one before the first was over.
#[tokio::test]
async fn snapshots_of_a_url_link_to_each_other() {
    let archive = tempfile::tempdir().unwrap();
    let first = assignment(archive.path());
    let of_id = |id: i64, url: &str| {
        let mut next = first.clone();
        next.owner = Owner::Snapshot(SnapshotId(id));
        next.url = url.to_owned();
        next.directory = archive.path().join(format!("20261121/example.com/s{id}"));
        next.about.visited_at = Some(Time(id));
        fs::create_dir_all(&next.directory).unwrap();
        next
    };
    let other = |assignment: &Assignment| OtherVersion {
        id: SnapshotId(7),
        directory: assignment.directory.clone(),
        at: Time(6),
        http_status: None,
        ended_at: None,
    };
    publish_all(&first, &open(&first)).await;
    let before = read(first.directory.join("index.html"));
    let shown = before.split("data=\"").nth(1).unwrap();
    let links = first.directory.join(shown.split('"').next().unwrap());
    assert!(!links.exists(), "there is one snapshot");

    let mut second = of_id(8, "http://www.example.com/?utm_source=x");
    second.about.versions = vec![other(&first)];
    fs::create_dir(second.directory.join("text")).unwrap();
    let text = r#"{"sha256": "00", "simhash": "ff", "language": "en"}"#;
    fs::write(second.directory.join("text/text.json"), text).unwrap();
    publish_all(&second, &open(&second)).await;
    assert!(read(links.clone()).contains("20261121/example.com/s8/index.html"));
    let third = of_id(9, "https://example.com/");
    fs::create_dir(third.directory.join("text")).unwrap();
    fs::write(third.directory.join("text/text.json"), text).unwrap();
    publish_all(&third, &open(&third)).await;
    // A worker that continues adds nothing.
    publish_all(&second, &open(&second)).await;
    assert_eq!(read(first.directory.join("index.html")), before, "sealed");
    let list = read(links.with_file_name("index.html"));
    let ids: Vec<&str> = list.split("id=\"s").skip(1).map(|rest| &rest[..1]).collect();
    assert_eq!(ids, ["9", "8", "7"]);
    assert_eq!(list.matches("same text").count(), 1, "{list}");
    assert!(!read(links).contains("/s9/"), "the next one alone");
}

/// A record may name files that must not be accessed.
#[test]
fn files_outside_the_plugin_directory_do_not_count() {
    let archive = tempfile::tempdir().unwrap();
    let assignment = assignment(archive.path());
    let own = assignment.directory.join("screenshot");
    fs::create_dir(&own).unwrap();
    fs::write(own.join("here.png"), "x").unwrap();
    fs::write(archive.path().join("there.png"), "x").unwrap();
    std::os::unix::fs::symlink(archive.path(), own.join("way")).unwrap();
    std::os::unix::fs::symlink(archive.path(), assignment.directory.join("link")).unwrap();
    let top = archive.path().to_str().unwrap();
    let up = "../../../..";
    let mut known = IndexContent::default();
    for (plugin, path) in [
        ("screenshot", "here.png"),
        ("screenshot", "way/there.png"),
        ("link", "there.png"),
        (up, "there.png"),
        (top, "there.png"),
        ("", "screenshot/here.png"),
        ("screenshot", &format!("{up}/there.png")),
        ("screenshot", &format!("{top}/there.png")),
    ] {
        known.results.push(HookResult {
            id: None,
            owner: assignment.owner,
            plugin: plugin.into(),
            hook: "hook".into(),
            status: ResultState::Succeeded,
            output: None,
            error: None,
            files: vec![File { path: path.into(), mimetype: "image/png".into(), size: 1 }],
            size: 1,
            attempts: 1,
            started_at: None,
            ended_at: None,
            figures: Default::default(),
        });
    }
    let left: Vec<usize> = existing_files(&held(&assignment), &known.results)
        .iter()
        .map(|result| result.files.len())
        .collect();
    assert_eq!(left, [1, 0, 0, 0, 0, 0, 0, 0]);
}
