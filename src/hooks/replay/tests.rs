//! Replays in the installed chromium of recordings in memory.

use super::*;
use std::collections::HashMap;
use std::fs;
use std::io::Cursor;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

/// Answers by URL, or by method, URL and posted body.
#[derive(Default)]
struct Memory(HashMap<String, MemoryAnswer>);

type MemoryAnswer = (u16, Vec<(String, String)>, Vec<u8>);

impl Memory {
    fn with(self, url: &str, media_type: &str, body: &str) -> Memory {
        self.answer(url, 200, &[("Content-Type", media_type)], body.as_bytes())
    }

    fn answer(mut self, url: &str, status: u16, headers: &[(&str, &str)], body: &[u8]) -> Memory {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let headers = headers.iter().map(owned).collect();
        self.0.insert(url.to_owned(), (status, headers, body.to_vec()));
        self
    }
}

impl Answers for Memory {
    fn find(&self, wanted: &Wanted<'_>) -> Option<Answer> {
        let posted = wanted.posted.map(String::from_utf8_lossy);
        let key = match (wanted.method, posted) {
            ("GET", _) => wanted.url.to_owned(),
            (method, posted) => {
                format!("{method} {} {}", wanted.url, posted.unwrap_or_default())
            }
        };
        let (status, headers, body) = self.0.get(&key)?.clone();
        let stored = StoredAnswer {
            status,
            reason: String::new(),
            headers,
            length: Some(body.len() as u64),
            blocks: None,
            body: Box::new(Cursor::new(body)),
        };
        let (url, time) = (wanted.url.to_owned(), wanted.near);
        Some(Answer { url, time, fit: Match::Exact, stored: Ok(stored) })
    }
}

/// A namespace that exists here, and the directory of its browser; otherwise prints why the test is
/// skipped. Chromium refuses to run as root.
fn namespace() -> Option<(Namespace, tempfile::TempDir)> {
    let top = tempfile::tempdir().unwrap();
    let namespace = if nix::unistd::geteuid().is_root() {
        fs::set_permissions(top.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let words = [
            "unshare",
            "--net",
            "--",
            "setpriv",
            "--reuid=nobody",
            "--regid=nogroup",
            "--clear-groups",
            "--",
        ];
        let words = words.map(str::to_owned).to_vec();
        Namespace::of(words, Some(top.path().to_owned()))
    } else {
        Namespace::of_user_namespace(&Home::default())
    };
    let missing = if Path::new("/usr/bin/chromium").exists() {
        namespace.check().err()
    } else {
        Some("chromium is not installed".to_owned())
    };
    match missing {
        Some(reason) => {
            println!("skipped: {reason}");
            None
        }
        None => Some((namespace, top)),
    }
}

async fn loaded(
    namespace: &Namespace,
    url: &str,
    memory: Memory,
) -> Result<Loaded, crate::process::finding::Finding> {
    loaded_from(namespace, WebUrl::of(url).unwrap(), memory).await
}

async fn loaded_from(
    namespace: &Namespace,
    url: WebUrl,
    memory: Memory,
) -> Result<Loaded, crate::process::finding::Finding> {
    let replay = Replay {
        url,
        time: Timestamp::UNIX_EPOCH,
        world: World::default(),
        namespace: namespace.clone(),
        viewport: Some((400, 300)),
        picture: PictureFormat::Png,
        limit: Duration::from_secs(50),
        settings: BTreeMap::new(),
    };
    load(&replay, Arc::new(memory)).await
}

const HTML: &str = "text/html; charset=utf-8";

#[tokio::test]
async fn page_with_frames_workers_and_redirects_is_answered_from_the_recording() {
    let Some((namespace, _directory)) = namespace() else {
        return;
    };
    let page = r#"<!doctype html><title>t</title><script src="/app.js"></script>
        <iframe src="https://b.test/frame"></iframe><p id=out></p>"#;
    let app = r#"
        const say = (text) => { document.getElementById("out").append(text + "; "); };
        addEventListener("load", async () => {
            say(navigator.onLine);
            say(isSecureContext);
            say(document.cookie);
            const time = new Date();
            say([time.getUTCFullYear(), new Date(2026, 1).getFullYear(), Date().slice(11, 15)]);
            say([time instanceof Date, time.constructor === Date, Date.now() >= +time, Date.length]);
            document.cookie = "kept=1; expires=" + new Date(Date.now() + 1e6).toUTCString();
            document.cookie = "old=1; expires=" + new Date(Date.now() - 1e6).toUTCString();
            say(document.cookie);
            say(await (await fetch("/api", {method: "POST", body: "q=1"})).text());
            const part = await fetch("/large", {headers: {Range: "bytes=2-4"}});
            say(part.status + " " + await part.text());
            const worker = new Worker("/worker.js");
            worker.onmessage = (event) => say(event.data);
            const shared = new SharedWorker("/shared.js");
            shared.port.onmessage = (event) => say(event.data);
            const outer = new Worker("/outer.js");
            outer.onmessage = (event) => say(event.data);
            addEventListener("message", (event) => say(event.data));
            const box = document.body.appendChild(document.createElement("iframe"));
            box.sandbox = "allow-scripts";
            box.srcdoc = "<script>fetch('https://a.test/boxed').then((a) => a.text()).then((text) => parent.postMessage(text, '*'))</scr" + "ipt>";
            say(await fetch("/missing").catch((error) => error.name));
            console.error("seen");
            await navigator.serviceWorker.register("/service.js");
            await navigator.serviceWorker.ready;
            say("served " + await (await fetch("/v")).text());
        });"#;
    let script = "text/javascript";
    let memory = Memory::default()
        .answer(
            "https://a.test/",
            302,
            &[("Location", "/page"), ("Set-Cookie", "way=kept; Secure")],
            b"",
        )
        .with("https://a.test/page", HTML, page)
        .with("https://a.test/app.js", script, app)
        .with(
            "https://a.test/worker.js",
            script,
            "fetch('/w').then((a) => a.text()).then((text) => postMessage(text + navigator.onLine + new Date().getUTCFullYear()))",
        )
        .with("https://a.test/w", "text/plain", "worker ")
        .with(
            "https://a.test/shared.js",
            script,
            "onconnect = (event) => fetch('/s').then((a) => a.text()).then((text) => event.ports[0].postMessage(text))",
        )
        .with("https://a.test/s", "text/plain", "shared")
        .with(
            "https://a.test/outer.js",
            script,
            "new Worker('/inner.js').onmessage = (event) => postMessage(event.data)",
        )
        .with("https://a.test/inner.js", script, "importScripts('/part.js'); postMessage('nested ' + part)")
        .with("https://a.test/part.js", script, "self.part = 1")
        .answer("https://a.test/boxed", 200, &[("Access-Control-Allow-Origin", "*")], b"boxed")
        .with(
            "https://a.test/service.js",
            script,
            "oninstall = (event) => event.waitUntil(fetch('/v').then((answer) => { if (!answer.ok) throw 1; }))",
        )
        .with("https://a.test/v", "text/plain", "v")
        .with("https://a.test/large", "text/plain", "0123456789")
        .with("POST https://a.test/api q=1", "text/plain", "posted")
        .with(
            "https://b.test/frame",
            HTML,
            "<p>framed</p><img src=/i.svg onload='document.body.append(1)'>",
        )
        .with(
            "https://b.test/i.svg",
            "image/svg+xml",
            "<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/>",
        );
    let page = loaded(&namespace, "https://a.test/", memory).await.unwrap();
    for part in [
        "true; true; way=kept; 1970,2026,1970; true,true,true,7; way=kept; kept=1; posted; 206 234; ",
        "worker true1970;",
        "shared;",
        "nested 1;",
        "boxed;",
        "TypeError;",
        "served v;",
    ] {
        assert!(
            page.text.contains(part),
            "{part} in {:?} {:?} {:?} {:?}",
            page.text,
            page.note,
            page.requests,
            page.errors
        );
    }
    assert_eq!(page.final_url, "https://a.test/page");
    assert!(page.errors.contains(&"seen".to_owned()), "{:?}", page.errors);
    let not_answered: Vec<_> = page.requests.not_answered.iter().collect();
    let urls: Vec<_> = not_answered.iter().map(|one| one.url.as_str()).collect();
    assert_eq!(urls, ["https://a.test/missing"]);
    assert_eq!(page.requests.exact, 17, "{:?}", page.requests);
    assert!(page.picture.starts_with(b"\x89PNG"));
}

#[tokio::test]
async fn nothing_reaches_the_network() {
    let Some((namespace, _directory)) = namespace() else {
        return;
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let stun = UdpSocket::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    stun.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let stun_port = stun.local_addr().unwrap().port();
    let page = format!(
        r#"<!doctype html><link rel=dns-prefetch href="//localhost:{port}"><link rel=preconnect href="http://127.0.0.1:{port}">
        <img src="http://127.0.0.1:{port}/image"><a id=file download href="http://127.0.0.1:{port}/file">x</a><p id=out></p>
        <script>
        const say = (text) => {{ document.getElementById("out").append(text + "; "); }};
        const tried = [
            fetch("http://127.0.0.1:{port}/fetch").then(() => "fetched", () => "fetch failed"),
            fetch("file:///etc/passwd").then(() => "file read", () => "file failed"),
            new Promise((done) => {{
                const socket = new WebSocket("ws://127.0.0.1:{port}/");
                socket.onopen = () => done("socket open");
                socket.onerror = () => done("socket failed");
            }}),
        ];
        for (const one of tried) one.then(say);
        const peer = new RTCPeerConnection({{iceServers: [{{urls: "stun:127.0.0.1:{stun_port}"}}]}});
        peer.createDataChannel("x");
        peer.createOffer().then((offer) => peer.setLocalDescription(offer));
        addEventListener("load", async () => {{
            const frame = document.createElement("iframe");
            frame.src = "file:///etc/passwd";
            document.body.append(frame);
            navigator.sendBeacon("http://127.0.0.1:{port}/beacon", "x");
            window.open("http://127.0.0.1:{port}/popup");
            document.getElementById("file").click();
            // Time for all that: the page is not done while requests are open.
            for (let n = 0; n < 200; n++) await fetch("/tick");
            say("over");
        }});
        </script>"#
    );
    let memory = Memory::default().with("http://a.test/", HTML, &page);
    let memory = memory.with("http://a.test/tick", "text/plain", "");
    let page = loaded(&namespace, "http://a.test/", memory).await.unwrap();
    for part in ["fetch failed", "file failed", "socket failed", "over"] {
        assert!(
            page.text.contains(part),
            "{part} in {:?} {:?} {:?} {:?}",
            page.text,
            page.note,
            page.requests,
            page.errors
        );
    }
    let is_reached = (listener.accept().is_ok(), stun.recv(&mut [0; 100]).is_ok());
    assert_eq!(is_reached, (false, false), "by TCP, by UDP");
    let missing: Vec<_> = page.requests.not_answered.iter().map(|one| one.url.as_str()).collect();
    for path in ["image", "file", "fetch", "beacon"] {
        let url = format!("http://127.0.0.1:{port}/{path}");
        assert!(missing.contains(&url.as_str()), "{path}: {missing:?}");
    }
    assert!(missing.contains(&format!("ws://127.0.0.1:{port}/").as_str()));
}

/// Chromium asks for an icon once for all pages of a crawl, and for the manifest of an application when it
/// shows a page in a window of its own.
#[tokio::test]
async fn icon_and_manifest_that_were_not_recorded_are_not_missing() {
    let Some((namespace, _directory)) = namespace() else {
        return;
    };
    let page = r#"<!doctype html><link rel="Manifest" href="/app.webmanifest"><link rel="shortcut icon" href="own.svg#x"><img src="/gone.png"><p>page"#;
    let memory = Memory::default().with("http://a.test/", HTML, page);
    let page = loaded(&namespace, "http://a.test/", memory).await.unwrap();
    let missing = page.requests.not_answered.iter();
    let missing: Vec<_> = missing.map(|one| one.url.as_str()).collect();
    assert_eq!(missing, ["http://a.test/gone.png"]);
}

/// The URL of a page is one of the web by its type. Here it is not: the browser must refuse it, too.
#[tokio::test]
async fn files_of_the_machine_are_refused_and_counted() {
    let Some((namespace, directory)) = namespace() else {
        return;
    };
    let secret = directory.path().join("secret.html");
    fs::write(&secret, "<p>secret").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o644)).unwrap();
    let file = format!("file://{}", secret.display());
    for url in [file.as_str(), "file:///etc/passwd", "file:///"] {
        let opened = loaded_from(&namespace, WebUrl((*url).to_owned()), Memory::default()).await;
        let reason = opened.map(|page| page.text).unwrap_err().output_str;
        assert_eq!(
            reason,
            format!(
                "the recording has no answer for the page '{url}': neither http nor https: refused"
            )
        );
    }
}

#[tokio::test]
async fn documents_in_a_viewer_and_urls_of_a_page_itself_are_shown() {
    let Some((namespace, _directory)) = namespace() else {
        return;
    };
    let page = r#"<!doctype html><p id=out></p>
        <iframe src="data:text/html,<script>parent.postMessage('data', '*')</script>"></iframe>
        <iframe src="file:///etc/passwd"></iframe>
        <script>
            const out = document.getElementById("out");
            onmessage = (message) => out.append(message.data + "; ");
            const blob = (text, type) => URL.createObjectURL(new Blob([text], {type}));
            const frame = document.createElement("iframe");
            frame.src = blob("<script>parent.postMessage('blob', '*')</sc" + "ript>", "text/html");
            document.body.append(frame);
            fetch(blob("fetched", "text/plain")).then((answer) => answer.text()).then((text) => out.append(text + "; "));
            fetch("data:text/plain,read").then((answer) => answer.text()).then((text) => out.append(text + "; "));
        </script>"#;
    let memory = Memory::default().with("http://a.test/", HTML, page);
    let page = loaded(&namespace, "http://a.test/", memory).await.unwrap();
    for said in ["data;", "blob;", "fetched;", "read;"] {
        assert!(page.text.contains(said), "{said}: {}", page.text);
    }
    assert!(!page.text.contains("root:"), "{}", page.text);
}

#[tokio::test]
async fn page_that_is_not_recorded_is_an_error() {
    let Some((namespace, _directory)) = namespace() else {
        return;
    };
    let missing = loaded(&namespace, "http://a.test/", Memory::default()).await;
    let reason = missing.unwrap_err().output_str;
    assert_eq!(reason, "the recording has no answer for the page 'http://a.test/': not recorded");
}
