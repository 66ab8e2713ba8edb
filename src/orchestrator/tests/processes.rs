//! Records of processes: parent, directory, limit and environment of each run.

use super::bed::{Bed, DATABASE};
use archivist_core::model::{Owner, RunId};
use archivist_plugin::sample;
use archivist_shared::bus::documents::report::{AddOptions, Details, Filter, Run};
use serde_json::json;

fn shown(bed: &mut Bed, id: RunId) -> Run {
    match bed.show_run(id).unwrap() {
        Details::Run { run, .. } => *run,
        other => panic!("{other:?}"),
    }
}

#[test]
fn runs_have_parent_directory_limit_and_environment() {
    let mut bed = Bed::new();
    bed.add(5);
    bed.come_to_an_end();
    let runs = bed.look(|tx| tx.list_runs(&Filter::default()));
    let worker = |owner| {
        let mut runs = runs.iter();
        runs.find(|run| run.owner == owner && run.hook.is_none()).map(|run| run.id)
    };
    let mut pages = 0;
    for run in &runs {
        let (hook, run) = (run.hook.is_some(), shown(&mut bed, run.id));
        let of_crawl = worker(Owner::Crawl(bed.crawl(0).unwrap()));
        match (hook, run.owner) {
            (false, Owner::Crawl(_)) => assert_eq!(run.parent, None),
            (false, Owner::Snapshot(_)) => assert_eq!(run.parent, of_crawl, "{}", run.unit),
            (true, owner) => assert_eq!(run.parent, worker(owner), "{}", run.unit),
        }
        assert!(!hook || run.limit > Some(0), "{}", run.unit);
        let (true, Owner::Snapshot(id)) = (hook, run.owner) else {
            continue;
        };
        pages += 1;
        let page = bed.look(|tx| tx.snapshot(id)).unwrap();
        let own = page.directory.unwrap();
        let plugin = run.plugin.clone().unwrap();
        assert_eq!(run.directory, Some(format!("{own}/{plugin}")));
        assert_eq!(run.environment["SNAP_DIR"], own);
        assert_eq!(run.environment["LANG"], "C.UTF-8");
    }
    assert_eq!(pages, 10);
    // A row for each hook, not for each run.
    let path = bed.directory.path().join(DATABASE);
    let database = rusqlite::Connection::open(path).unwrap();
    let count = "SELECT count(*) FROM environment";
    let count: i64 = database.query_row(count, [], |row| row.get(0)).unwrap();
    assert!(count <= 5, "{count} environments of {} runs", runs.len());
}

#[test]
fn recorded_environment_has_no_secrets() {
    let bed = Bed::new();
    let variables = [
        ("API_KEY", "hush"),
        ("ALPHA_PROXY", "http://user:hush@proxy.test/"),
        ("ALPHA_ARGS", "--header=hush"),
        ("CRAWL_ID", "7"),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let (shared, own) = bed.engine.recorded(&variables, &["ALPHA_ARGS", "CRAWL_ID"].into());
    assert!(!format!("{shared:?}{own:?}").contains("hush"), "{shared:?}");
    assert_eq!(shared["ALPHA_PROXY"], "http://proxy.test/");
    assert_eq!(own["CRAWL_ID"], "7");
    assert_eq!((shared.len(), own.len()), (3, 1));
}

/// Pages and redirects lead to other hosts, which must not get it.
#[test]
fn client_certificate_is_for_the_hosts_of_given_urls() {
    let settings = json!({"properties": {
        "CLIENT_CERTIFICATE": {"type": "string", "default": ""},
        "CLIENT_CERTIFICATE_HOSTS": {"type": "array", "default": [], "items": {"type": "string"}},
    }});
    let given = r#"["a.test","www.a.test"]"#;
    for (certificate, hosts, expected) in [
        ("", "", "[]"),
        ("/etc/club.pem", "", given),
        ("/etc/club.pem", r#"["own.test"]"#, r#"["own.test"]"#),
    ] {
        let mut bed = Bed::new();
        let plugin = sample::plugin("alpha", settings.clone(), &["on_Snapshot__10_alpha.py"]);
        bed.engine.catalogue = sample::catalogue([plugin]);
        let config = [("CLIENT_CERTIFICATE", certificate), ("CLIENT_CERTIFICATE_HOSTS", hosts)];
        let config = config.into_iter().filter(|(_, value)| !value.is_empty());
        let options = AddOptions {
            config: config.map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
            ..AddOptions::default()
        };
        bed.add_with("http://www.a.test:8080/page", options);
        bed.come_to_an_end();
        let runs = bed.look(|tx| tx.list_runs(&Filter::default()));
        let hook = runs.iter().find(|run| run.hook.is_some()).unwrap().id;
        let found = shown(&mut bed, hook).environment["CLIENT_CERTIFICATE_HOSTS"].clone();
        assert_eq!(found, expected, "{certificate} {hosts}");
    }
}
