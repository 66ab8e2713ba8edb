use super::*;
use crate::sample;
use archivist_core::model::{CrawlId, SnapshotId};

fn args(id: Owner) -> LogsArgs {
    LogsArgs { id: AnyId::Owner(id), hook: None, follow: false, lines: None }
}

/// The arguments for the id that `args` name.
fn arguments(args: &LogsArgs, runs: &[Run], scope: &Scope) -> Vec<String> {
    let known = Known { runs: runs.to_vec(), ..Known::default() };
    match args.id {
        AnyId::Owner(id) => of_owner(id, args, &known, &[], scope),
        AnyId::Run(_) => of_run(&runs[0], args, scope),
    }
}

#[test]
fn a_run_is_selected_by_its_invocation_or_by_its_unit() {
    let scope = Scope::system("/");
    let mut run = sample::run(7, "wget", "on_Snapshot__06_wget");
    let asked = LogsArgs { id: AnyId::Run(RunId(7)), ..args(Owner::Crawl(CrawlId(1))) };
    let id = "0123456789abcdef0123456789abcdef";
    assert_eq!(
        arguments(&asked, &[run.clone()], &scope),
        [format!("_SYSTEMD_INVOCATION_ID={id}"), "+".to_owned(), format!("INVOCATION_ID={id}")]
    );
    run.invocation = None;
    let unit = &run.unit.clone();
    let user = Scope { user: true, ..scope };
    assert_eq!(
        arguments(&asked, &[run], &user),
        [
            "--user".to_owned(),
            "--since=@1795253045".to_owned(),
            format!("_SYSTEMD_USER_UNIT={unit}"),
            "+".to_owned(),
            format!("USER_UNIT={unit}")
        ]
    );
}

#[test]
fn fields_and_flags_of_journalctl() {
    let scope = Scope::system("/");
    let crawl = args(Owner::Crawl(CrawlId(12)));
    assert_eq!(arguments(&crawl, &[], &scope), ["ARCHIVIST_CRAWL_ID=12"]);
    let snapshot = LogsArgs {
        hook: Some("wget".into()),
        follow: true,
        lines: Some(5),
        ..args(Owner::Snapshot(SnapshotId(345)))
    };
    let user = Scope { user: true, instance: Some("news".into()), ..scope };
    assert_eq!(
        arguments(&snapshot, &[], &user).join(" "),
        "--user --follow --lines=5 \
         ARCHIVIST_SNAPSHOT_ID=345 ARCHIVIST_INSTANCE=news ARCHIVIST_PLUGIN=wget \
         + ARCHIVIST_SNAPSHOT_ID=345 ARCHIVIST_INSTANCE=news ARCHIVIST_HOOK=wget \
         + ARCHIVIST_SNAPSHOT_ID=345 _SYSTEMD_USER_UNIT=archivist-news-orchestrator.service ARCHIVIST_PLUGIN=wget \
         + ARCHIVIST_SNAPSHOT_ID=345 _SYSTEMD_USER_UNIT=archivist-news-orchestrator.service ARCHIVIST_HOOK=wget"
    );
}

/// Another archive, which was deleted, may have had the same ids.
#[test]
fn lines_before_a_crawl_was_added_are_not_of_it() {
    let known = Known { since: Some(sample::NOW), ..Known::default() };
    let id = Owner::Crawl(CrawlId(1));
    let followed = LogsArgs { follow: true, ..args(id) };
    let arguments = of_owner(id, &followed, &known, &[], &Scope::system("/"));
    assert_eq!(arguments.join(" "), "--follow --lines=10 --since=@1795253105 ARCHIVIST_CRAWL_ID=1");
}

#[test]
fn lines_of_an_instance_are_selected_without_a_list_of_its_units() {
    let scope = Scope { instance: Some("news".into()), ..Scope::system("/") };
    assert_eq!(
        arguments(&args(Owner::Crawl(CrawlId(12))), &[], &scope).join(" "),
        "ARCHIVIST_CRAWL_ID=12 ARCHIVIST_INSTANCE=news \
         + ARCHIVIST_CRAWL_ID=12 _SYSTEMD_UNIT=archivist-news-orchestrator.service"
    );
}

#[test]
fn lines_of_a_users_hooks_are_selected_by_unit_or_slice() {
    let scope = Scope { user: true, ..Scope::system("/") };
    let page = args(Owner::Snapshot(SnapshotId(345)));
    let known = Known {
        hooks: vec![
            ("wget".into(), "on_Snapshot__06_wget.finite.bg".into()),
            ("chrome".into(), "on_Snapshot__30_chrome_navigate".into()),
        ],
        ..Known::default()
    };
    assert_eq!(
        of_owner(Owner::Snapshot(SnapshotId(345)), &page, &known, &[], &scope).join(" "),
        "--user ARCHIVIST_SNAPSHOT_ID=345 \
         + _SYSTEMD_USER_UNIT=archivist-hook-chrome-chrome_navigate-s345.service \
         _SYSTEMD_USER_UNIT=archivist-hook-wget-s345.service"
    );
    let crawl = args(Owner::Crawl(CrawlId(12)));
    let run = sample::run(1, "wget", "on_Snapshot__06_wget");
    let unit = run.unit.clone();
    assert_eq!(
        arguments(&crawl, &[run], &scope).join(" "),
        format!(
            "--user ARCHIVIST_CRAWL_ID=12 + _SYSTEMD_USER_UNIT={unit} \
             + _SYSTEMD_USER_SLICE=archivist-crawl-12.slice + _UID=0 OBJECT_SYSTEMD_USER_UNIT={unit}"
        )
    );
}

#[test]
fn a_short_hook_name_selects_its_lines_those_without_fields_and_those_of_journald() {
    let scope = Scope::system("/");
    let runs = [
        sample::run(1, "wget", "on_Snapshot__06_wget"),
        sample::run(2, "title", "on_Snapshot__54_title"),
    ];
    let [wget, title] = [&runs[0].unit, &runs[1].unit];
    let asked = LogsArgs { hook: Some("wget".into()), ..args(Owner::Snapshot(SnapshotId(345))) };
    assert_eq!(
        arguments(&asked, &runs, &scope).join(" "),
        format!(
            "ARCHIVIST_SNAPSHOT_ID=345 ARCHIVIST_PLUGIN=wget \
             + ARCHIVIST_SNAPSHOT_ID=345 ARCHIVIST_HOOK=on_Snapshot__06_wget \
             + ARCHIVIST_SNAPSHOT_ID=345 ARCHIVIST_HOOK=wget \
             + _SYSTEMD_UNIT={wget} + _UID=0 OBJECT_SYSTEMD_UNIT={wget}"
        )
    );
    let all = args(Owner::Snapshot(SnapshotId(345)));
    assert_eq!(
        arguments(&all, &runs, &scope).join(" "),
        format!(
            "ARCHIVIST_SNAPSHOT_ID=345 + _SYSTEMD_UNIT={title} _SYSTEMD_UNIT={wget} \
             + _UID=0 OBJECT_SYSTEMD_UNIT={wget} OBJECT_SYSTEMD_UNIT={title}"
        )
    );
}

#[test]
fn what_ran_elsewhere_names_its_nodes() {
    let nodes = ["web2".to_owned(), "web3".to_owned()];
    assert_eq!(
        on_nodes("s345".parse().unwrap(), &nodes),
        "the journal of s345 is on web2, web3; run there: archivist logs s345"
    );
}

/// A local user can send a line with the id of a page; the kernel says which user it was.
#[test]
fn lines_of_other_users_are_left_out() {
    let scope = Scope::system("/");
    let believed = ["_UID=0".to_owned(), "_UID=997".to_owned()];
    let page = args(Owner::Snapshot(SnapshotId(345)));
    let known = Known::default();
    let id = Owner::Snapshot(SnapshotId(345));
    assert_eq!(
        of_owner(id, &page, &known, &believed, &scope).join(" "),
        "ARCHIVIST_SNAPSHOT_ID=345 _UID=0 _UID=997"
    );
    let names = scope.senders();
    for name in ["root", "archivist", "archivist-hook", "archivist-hook-16", "archivist-index"] {
        assert!(names.iter().any(|known| known == name), "{name}");
    }
    assert!(super::believed(&scope).contains(&"_UID=0".to_owned()));
}
