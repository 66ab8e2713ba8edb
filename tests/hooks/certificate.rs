//! Servers that demand a client certificate, and servers that speak only HTTP/2.

use crate::fixture::{Session, Snapshot, WebServer, has};
use std::path::Path;

const CASE: &str = "57-client-certificate";

fn secure(server: &WebServer) -> String {
    server.url("/").replace("http://127.0.0.1", "https://localhost")
}

fn certificate() -> String {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/web");
    cases.join(CASE).join("client.pem").display().to_string()
}

#[test]
fn certificate_is_sent_by_wget_and_curl() {
    if !has(&["wget", "curl"]) {
        return;
    }
    let (server, snap) = (WebServer::start(CASE), Snapshot::new());
    let (own, url) = (certificate(), secure(&server));
    let settings = [("CHECK_SSL_VALIDITY", "no"), ("CLIENT_CERTIFICATE", &own)];
    let ran = snap.run("wget", &url, &settings);
    assert_eq!(ran.result()["status"], "succeeded", "{:?}", ran.result());
    let file = ran.result()["output_str"].as_str().unwrap();
    let text = String::from_utf8(snap.read(&format!("wget/{file}"))).unwrap();
    assert!(text.contains("shown to visitor"), "{text}");
    snap.run("headers", &url, &settings).assert(0, "succeeded", "headers.json");
    let by_curl = Snapshot::new();
    by_curl.run("title", &url, &settings).assert(0, "succeeded", "club");
    by_curl.run("favicon", &url, &settings).assert(0, "succeeded", "favicon.svg");
}

#[test]
fn certificate_of_the_persona_is_sent() {
    if !has(&["wget"]) {
        return;
    }
    let (server, snap) = (WebServer::start(CASE), Snapshot::new());
    let persona = snap.file("personas/club");
    std::fs::create_dir_all(&persona).unwrap();
    std::fs::copy(certificate(), persona.join("client.pem")).unwrap();
    let personas = snap.file("personas").display().to_string();
    let settings =
        [("CHECK_SSL_VALIDITY", "no"), ("PERSONAS_DIR", &personas), ("ACTIVE_PERSONA", "club")];
    let ran = snap.run("wget", &secure(&server), &settings);
    assert_eq!(ran.result()["status"], "succeeded", "{:?}", ran.result());
}

/// The page redirects to another host, which requests the certificate, too.
#[test]
fn certificate_is_not_sent_to_other_hosts() {
    if !has(&["wget", "curl"]) {
        return;
    }
    let server = WebServer::start(CASE);
    let (own, away) = (certificate(), format!("{}away", secure(&server)));
    let run = |hook: &str, hosts: &str| {
        let settings = [
            ("CHECK_SSL_VALIDITY", "no"),
            ("CLIENT_CERTIFICATE", own.as_str()),
            ("CLIENT_CERTIFICATE_HOSTS", hosts),
        ];
        Snapshot::new().run(hook, &away, &settings).result()["status"].clone()
    };
    for hook in ["headers", "title", "wget"] {
        assert_eq!(run(hook, ""), "failed", "{hook}");
        assert_eq!(run(hook, "*"), "succeeded", "{hook}");
    }
    assert_eq!(run("title", r#"["localhost", "127.0.0.1"]"#), "succeeded");
    assert_eq!(run("title", "other.test"), "failed", "not even to the page");
}

#[test]
fn server_that_demands_a_certificate_is_named() {
    if !has(&["wget", "curl"]) {
        return;
    }
    let server = WebServer::start(CASE);
    for hook in ["wget", "headers", "title"] {
        let snap = Snapshot::new();
        let ran = snap.run(hook, &secure(&server), &[("CHECK_SSL_VALIDITY", "no")]);
        let reason = ran.result()["output_str"].as_str().unwrap();
        assert!(
            reason.ends_with("the server demands a client certificate; set CLIENT_CERTIFICATE"),
            "{hook}: {reason}"
        );
        assert_eq!(ran.exit, Some(1), "{hook}");
    }
}

#[test]
fn certificate_is_sent_by_the_browser() {
    if !has(&["chromium", "openssl", "pk12util", "certutil"]) {
        return;
    }
    let (server, snap) = (WebServer::start(CASE), Snapshot::new());
    let (own, url) = (certificate(), secure(&server));
    let settings = [("CHECK_SSL_VALIDITY", "no"), ("CLIENT_CERTIFICATE", &own)];
    let mut session = Session::start(&snap, &settings);
    session.open(&snap, &url, &settings);
    snap.run("dom", &url, &settings).assert(0, "succeeded", "output.html");
    let dom = String::from_utf8(snap.read("dom/output.html")).unwrap();
    assert!(dom.contains("shown to visitor"), "{dom}");
    snap.run("screenshot", &url, &settings).assert(0, "succeeded", "screenshot.png");
}

/// A picture of another host, which requests the certificate, too.
#[test]
fn certificate_is_not_sent_by_the_browser_to_other_hosts() {
    if !has(&["chromium", "openssl", "pk12util", "certutil"]) {
        return;
    }
    let server = WebServer::start(CASE);
    let (own, url) = (certificate(), format!("{}others", secure(&server)));
    for (hosts, is_sent) in [("", false), ("*", true)] {
        let snap = Snapshot::new();
        let settings = [
            ("CHECK_SSL_VALIDITY", "no"),
            ("CLIENT_CERTIFICATE", own.as_str()),
            ("CLIENT_CERTIFICATE_HOSTS", hosts),
            ("CHROMIUM_TIMEOUT", "20"),
        ];
        let mut session = Session::start(&snap, &settings);
        session.open(&snap, &url, &settings);
        snap.run("dom", &url, &settings);
        let dom = String::from_utf8(snap.read("dom/output.html")).unwrap();
        assert!(dom.contains("shown to visitor"), "{hosts}: {dom}");
        assert_eq!(
            dom.contains(">it came") || dom.contains("it came</p>"),
            is_sent,
            "{hosts}: {dom}"
        );
    }
}

#[test]
fn browser_names_a_server_that_demands_a_certificate() {
    if !has(&["chromium"]) {
        return;
    }
    let (server, snap) = (WebServer::start(CASE), Snapshot::new());
    let (url, settings) = (secure(&server), [("CHECK_SSL_VALIDITY", "no")]);
    let mut session = Session::start(&snap, &settings);
    // In TLS 1.3 the alert arrives after the handshake, and chromium may notice the end of the
    // connection before it.
    for _ in 0..10 {
        session.open(&snap, &url, &settings);
        let ran = snap.run("dom", &url, &settings);
        let output = ran.result()["output_str"].as_str().unwrap().to_owned();
        if !output.ends_with("ERR_SOCKET_NOT_CONNECTED") {
            break;
        }
    }
    for hook in ["dom", "screenshot"] {
        let ran = snap.run(hook, &url, &settings);
        let reason = ran.result()["output_str"].as_str().unwrap();
        assert!(
            reason.ends_with("the server demands a client certificate; set CLIENT_CERTIFICATE"),
            "{hook}: {reason}"
        );
        assert_eq!(ran.exit, Some(10), "{hook}");
    }
}

#[test]
fn server_that_speaks_only_http2_is_named() {
    if !has(&["wget"]) {
        return;
    }
    let (server, snap) = (WebServer::start(CASE), Snapshot::new());
    let ran = snap.run("wget", &server.url("/"), &[]);
    ran.assert(1, "failed", "the server speaks only HTTP/2, which wget does not");
}
