//! User name and password of a URL reach the server and nothing else.

use crate::fixture::{Session, Snapshot, WebServer, has};
use std::io::Read;
use std::path::Path;

/// Secrets of the server: the password, and the value of the header that carries it.
const SECRETS: [&[u8]; 2] = [b"s3cretPW", b"cmVhZGVyOnMzY3JldFBX"];

/// Files below `directory` that contain a secret, after unpacking those of gzip.
fn files_with_secrets(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_symlink() {
            continue;
        } else if path.is_dir() {
            found.extend(files_with_secrets(&path));
        } else if path.is_file() {
            let mut bytes = std::fs::read(&path).unwrap();
            if bytes.starts_with(b"\x1f\x8b") {
                let packed = std::mem::take(&mut bytes);
                flate2::read::MultiGzDecoder::new(&packed[..]).read_to_end(&mut bytes).unwrap();
            }
            let has = |secret: &[u8]| bytes.windows(secret.len()).any(|part| part == secret);
            if SECRETS.into_iter().any(has) {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

#[test]
fn password_in_the_url_reaches_the_server_and_nothing_else() {
    if !has(&["chromium", "wget", "curl"]) {
        return;
    }
    let (server, snap) = (WebServer::start("22-password-in-url"), Snapshot::new());
    let url = server.url("/").replace("http://", "http://reader:s3cretPW@");
    let mut session = Session::shared(&snap, &[]);
    let opened = session.open(&snap, &url, &[]);
    assert!(opened.contains("http=200"), "{opened}");
    for hook in ["dom", "pdf", "screenshot", "headers", "title", "wget"] {
        let ran = snap.run(hook, &url, &[]);
        assert_eq!(ran.result()["status"], "succeeded", "{hook}: {:?}", ran.records);
    }
    let ran = snap.run("outlinks", &url, &[]);
    let links: Vec<_> = ran.records.iter().filter_map(|it| it["url"].as_str()).collect();
    assert_eq!(links, [server.url("/inside"), server.url("/sub/page")]);
    for file in ["dom/output.html".to_owned(), format!("wget/{}/index.html", server.directory())] {
        let text = String::from_utf8(snap.read(&file)).unwrap();
        assert!(text.contains("MEMBERS ONLY"), "{file}: {text}");
    }
    let picture = format!("wget/{}/i.png", server.directory());
    assert!(snap.file(&picture).is_file());
    assert_eq!(snap.json("headers/headers.json")["status"], 200);
    let output = session.tab().stopped(&snap);
    assert!(!format!("{:?}", output.records).contains("s3cretPW"));
    drop(session);
    assert_eq!(files_with_secrets(&snap.file("")), Vec::<String>::new());
}

#[test]
fn warc_keeps_the_password_where_the_settings_say_so() {
    if !has(&["wget"]) {
        return;
    }
    let (server, snap) = (WebServer::start("22-password-in-url"), Snapshot::new());
    let url = server.url("/").replace("http://", "http://reader:s3cretPW@");
    snap.run("wget", &url, &[("WGET_KEEP_CREDENTIALS", "yes")]);
    let warc = snap.file("wget/warc/page.warc.gz").display().to_string();
    assert_eq!(files_with_secrets(&snap.file("wget")), [warc]);
}
