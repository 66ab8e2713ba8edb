use super::*;
use archivist_config::{Scope, UserDirs, ini};
use std::ffi::OsString;
use std::path::Path;

fn declared(file: &str, text: &str) -> Declaration {
    let path = Path::new("/etc/archivist").join(file);
    let (kind, name) = Kind::of_file(file).unwrap();
    let parsed = ini::parse(text, &path);
    Declaration {
        kind,
        name: name.to_owned(),
        path,
        entries: parsed.entries,
        malformed: parsed.malformed,
    }
}

fn problems(file: &str, text: &str) -> Vec<String> {
    let generated = generate(&[declared(file, text)], &Context::default());
    generated.problems.iter().map(Problem::to_string).collect()
}

#[test]
fn names_are_those_of_units() {
    for good in ["web", "a.b_C9", "9"] {
        assert!(Kind::Pool.allows(good), "{good}");
    }
    for bad in ["", "a-b", ".a", "a b", "ä", "a/b", "a@b", &"x".repeat(101)] {
        assert!(!Kind::Pool.allows(bad), "{bad}");
    }
    assert!(Kind::Watch.allows("my-site.org"));
    assert!(!Kind::Watch.allows("-site"));
    assert_eq!(Kind::of_file("a.b.pool"), Some((Kind::Pool, "a.b")));
    assert_eq!(Kind::of_file("pool"), None);
    assert_eq!(Kind::of_file("a.pool.d"), None);
}

#[test]
fn problems_name_file_line_and_fix() {
    assert_eq!(
        problems("a.pool", "[Pool]\nWorkers=3\n"),
        ["/etc/archivist/a.pool:2: Exec= is missing; add a line like \
          'Exec=/usr/bin/my-worker --number %i' to [Pool]"]
    );
    let text = "[Pool]\nExec=/bin/true\nWorkers=many\nStopSec=soon\nMonitor=perhaps\nnonsense\n";
    assert_eq!(
        problems("a.pool", text),
        [
            "/etc/archivist/a.pool:6: 'nonsense' has no '=' (Key=Value is expected)",
            "/etc/archivist/a.pool:5: Monitor= is 'perhaps'; write yes or no",
            "/etc/archivist/a.pool:4: StopSec= is 'soon'; write a time span like 90, 30s, 5min 3s or 1.5h",
            "/etc/archivist/a.pool:3: Workers= is 'many'; write a number from 0 to 1000",
        ]
    );
    assert_eq!(
        problems(
            "a.pool",
            "[Pool]\nExec=/bin/true\nWorker=2\n[Servce]\nUser=u\nX=1\n[X-Mine]\na=b\n"
        ),
        [
            "/etc/archivist/a.pool:3: [Pool] has no Worker=; did you mean Workers=?, ignoring",
            "/etc/archivist/a.pool:5: [Servce] is not a section of this file; did you mean [Service]?, ignoring",
        ]
    );
}

/// systemd ends a line where we do not.
#[test]
fn no_value_becomes_two_lines() {
    let text = "[Pool]\nExec=/bin/true\nDescription=a\rExecStartPre=/bin/evil\n";
    let declarations = [declared("a.pool", text)];
    let generated = generate(&declarations, &Context::default());
    assert!(generated.units.files.is_empty());
    assert!(!generated.is_good());
    assert!(!generated.problems[0].to_string().contains('\r'));
}

#[test]
fn a_bad_file_does_not_affect_others() {
    let good = declared("good.pool", "[Pool]\nExec=/bin/true\n");
    let bad = declared("bad.pool", "[Pool]\nWorkers=-1\n");
    let alone = generate(std::slice::from_ref(&good), &Context::default());
    let both = generate(&[bad, good], &Context::default());
    assert_eq!(both.units, alone.units);
    assert!(!both.problems.is_empty());
}

#[test]
fn links_stay_within_the_directory() {
    let text = |name: &str| format!("[Pool]\nExec=/bin/true\n[Install]\nWantedBy={name}\n");
    for bad in ["../../etc/x.target", "/x.target", "x", ".target", "a\u{e4}.target"] {
        let declared = declared("a.pool", &text(bad));
        let generated = generate(&[declared], &Context::default());
        assert!(!generated.is_good(), "{bad}");
    }
    let declared = declared("a.pool", &text("multi-user.target"));
    let generated = generate(&[declared], &Context::default());
    let link = "multi-user.target.wants/archivist-pool-a.target";
    assert_eq!(generated.units.files[link], Content::Link("../archivist-pool-a.target".to_owned()));
}

#[test]
fn the_manager_names_its_scope() {
    let said = |value: Option<&'static str>| {
        scope(|name| value.filter(|_| name == "SYSTEMD_SCOPE").map(OsString::from)).user
    };
    assert!(said(Some("user")));
    assert!(!said(Some("system")));
    assert!(!said(None));
}

/// Only a start of the orchestrator continues with pages that were queued before a boot.
#[test]
fn orchestrator_of_a_user_with_an_archive_starts_with_the_service_manager() {
    let root = tempfile::tempdir().unwrap();
    let directory = root.path().join("units");
    std::fs::create_dir(&directory).unwrap();
    let link = directory.join("default.target.wants/archivist-orchestrator.service");
    let dirs = UserDirs { data: "/home/ann/data".into(), ..Default::default() };
    let user = Scope { user: true, dirs, ..Scope::system(root.path()) };
    let is_linked = |scope: &Scope| {
        assert!(write_all(scope, &directory, true).is_empty());
        link.symlink_metadata().is_ok()
    };
    assert!(!is_linked(&user), "without an archive");
    std::fs::create_dir_all(user.data_dir()).unwrap();
    std::fs::write(user.database(), "").unwrap();
    assert!(!is_linked(&Scope { user: false, ..user.clone() }));
    assert!(is_linked(&user));
    assert!(link.read_link().unwrap().ends_with("systemd/user/archivist-orchestrator.service"));
}
