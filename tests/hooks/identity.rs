//! All hooks of a snapshot have one identity: user agent and languages.

use crate::fixture::{Session, Snapshot, WebServer, has};

/// Who asked, as the page, its copies and the headers show it.
fn asked(settings: &[(&str, &str)]) -> Vec<String> {
    let (server, snap) = (WebServer::start("52-identity"), Snapshot::new());
    let url = server.url("/");
    let mut session = Session::start(&snap, settings);
    session.open(&snap, &url, settings);
    for hook in ["dom", "wget", "headers"] {
        let ran = snap.run(hook, &url, settings);
        assert_eq!(ran.result()["status"], "succeeded", "{hook}: {:?}", ran.records);
    }
    let in_page = |path: &str| {
        let text = String::from_utf8(snap.read(path)).unwrap();
        let (_, rest) = text.split_once("<p>").unwrap();
        rest.split_once("</p>").unwrap().0.to_owned()
    };
    let headers = &snap.json("headers/headers.json")["response_headers"];
    vec![
        in_page("dom/output.html"),
        in_page(&format!("wget/{}/index.html", server.directory())),
        headers["x-asked"].as_str().unwrap().to_owned(),
    ]
}

#[test]
fn hooks_of_a_snapshot_have_one_identity() {
    if !has(&["chromium", "wget", "curl"]) {
        return;
    }
    let own = asked(&[]);
    assert!(own[0].starts_with("Mozilla/5.0 ") && own[0].ends_with("|en-US,en;q=0.9|"), "{own:?}");
    assert!(own.iter().all(|asked| asked == &own[0]), "{own:?}");
    let settings = [("USER_AGENT", "Mine/1.0"), ("ACCEPT_LANGUAGE", "de-AT,de,en")];
    let set = asked(&settings);
    assert!(set.iter().all(|asked| asked == "Mine/1.0|de-AT,de;q=0.9,en;q=0.8|"), "{set:?}");
}
