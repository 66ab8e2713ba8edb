//! `archivist check` against servers on loopback: down, slow, broken TLS, loops, dead links.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

mod kinds;
mod modern;
mod tls;

/// What a server does with one connection: gets method, path, and what to write to.
type Answer = dyn Fn(&str, &str, &mut dyn Write) + Send + Sync;

/// A server on a port of its own. It ends with the test's process.
struct Server {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn new(answer: impl Fn(&str, &str, &mut dyn Write) + Send + Sync + 'static) -> Server {
        Server::over(Arc::new(answer), |stream| Some(Box::new(stream)))
    }

    /// With something between the socket and HTTP; none where that fails.
    fn over(
        answer: Arc<Answer>,
        wrap: impl Fn(TcpStream) -> Option<Box<dyn ReadWrite>> + Send + Sync + 'static,
    ) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (seen, wrap) = (asked.clone(), Arc::new(wrap));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (answer, seen, wrap) = (answer.clone(), seen.clone(), wrap.clone());
                thread::spawn(move || {
                    if let Some(stream) = wrap(stream) {
                        serve(stream, &*answer, &seen);
                    }
                });
            }
        });
        Server { port, asked }
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

trait ReadWrite: Read + Write + Send {}
impl<T: Read + Write + Send> ReadWrite for T {}

/// One request a connection.
fn serve(stream: Box<dyn ReadWrite>, answer: &Answer, asked: &Mutex<Vec<String>>) {
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).unwrap_or(0) == 0 {
            return;
        }
    }
    let mut words = head.split(' ');
    let (method, path) = (words.next().unwrap(), words.next().unwrap());
    asked.lock().unwrap().push(format!("{method} {path}"));
    answer(method, path, stream.get_mut());
    let _ = stream.get_mut().flush();
}

fn reply(to: &mut dyn Write, status: u16, headers: &str, body: &[u8]) {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} X\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n"
    );
    let _ = to.write_all(head.as_bytes());
    let _ = to.write_all(body);
}

fn html(to: &mut dyn Write, body: &str) {
    reply(to, 200, "Content-Type: text/html\r\n", body.as_bytes());
}

fn command(kind: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_archivist"));
    command
        .args(["check", kind])
        .env("http_proxy", "http://127.0.0.1:1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    command
}

/// Starts a check with a request on its standard input.
fn begin(mut command: Command, url: &str, settings: Value) -> Child {
    let mut child = command.spawn().unwrap();
    let request = json!({"url": url, "settings": settings});
    let mut input = child.stdin.take().unwrap();
    input.write_all(request.to_string().as_bytes()).unwrap();
    child
}

/// Its record, which is one line, and exit status 0.
fn record(child: Child) -> Value {
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{:?}", output.status);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.matches('\n').count(), 1, "{text}");
    let record: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(record["type"], "CheckResult");
    record
}

fn check(kind: &str, url: &str, settings: Value) -> Value {
    record(begin(command(kind), url, settings))
}

/// `kind url on` of every finding, without the server's own address.
fn findings(record: &Value, server: &Server) -> Vec<String> {
    let base = server.url("");
    let short = |value: &Value| value.as_str().unwrap_or("-").replace(&base, "");
    let all = record["findings"].as_array().cloned().unwrap_or_default();
    let line =
        |it: &Value| format!("{} {} {}", short(&it["kind"]), short(&it["url"]), short(&it["on"]));
    all.iter().map(line).collect()
}

#[test]
fn a_site_that_is_well() {
    let server = Server::new(|_, _, to| {
        thread::sleep(Duration::from_millis(120));
        reply(to, 200, "X-One: 1\r\nSet-Cookie: a\r\nSet-Cookie: b\r\n", b"ok");
    });
    let record = check("status", &server.url("/"), json!({}));
    assert_eq!((&record["ok"], &record["status_code"]), (&json!(true), &json!(200)));
    let ms = record["response_ms"].as_u64().unwrap();
    assert!((120..5000).contains(&ms), "{ms}");
    assert_eq!(record["headers"]["set-cookie"], "(hidden)\n(hidden)");
    assert_eq!(record["headers"]["x-one"], "1");
    assert_eq!(record.get("error"), None);
}

#[test]
fn a_site_that_is_down() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let record = check("status", &format!("http://127.0.0.1:{port}/"), json!({}));
    assert_eq!((&record["ok"], &record["status_code"]), (&json!(false), &json!(408)));
    assert_eq!(record["response_ms"], 10_000);
    assert_eq!(record["error"], "the connection was refused");
    let record = check("status", "http://nowhere.invalid/", json!({}));
    assert_eq!(record["status_code"], 408, "{record}");
    let server = Server::new(|_, _, to| reply(to, 500, "", b"broken"));
    let record = check("status", &server.url("/"), json!({}));
    assert_eq!((&record["ok"], &record["status_code"]), (&json!(false), &json!(500)));
    assert_eq!(record["error"], "the server answered 500");
}

#[test]
fn a_site_that_is_slow_at_any_stage() {
    let stages = [
        ("/silent", "no answer within the time limit (ANSWER_TIMEOUT= allows more)"),
        ("/drip", "no answer within the time limit (ANSWER_TIMEOUT= allows more)"),
        ("/no-body", "no body within the time limit"),
    ];
    let server = Server::new(|_, path, to| {
        let _ = match path {
            "/drip" => to.write_all(b"HTTP/1.1 200 OK\r\nA: "),
            "/no-body" => to.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"),
            _ => Ok(()),
        };
        let _ = to.flush();
        for _ in 0..100 {
            thread::sleep(Duration::from_millis(100));
            if path == "/drip" && to.write_all(b"a").is_err() {
                return;
            }
        }
    });
    for (path, reason) in stages {
        let begun = Instant::now();
        let record = check("status", &server.url(path), json!({"read_s": 0.7}));
        assert!(begun.elapsed() < Duration::from_secs(5), "{path}");
        assert_eq!(
            (&record["status_code"], &record["response_ms"]),
            (&json!(408), &json!(10_000)),
            "{path}"
        );
        assert_eq!(record["error"], reason, "{path}");
    }
}

#[test]
fn redirects_to_the_end_and_without_one() {
    let server = Server::new(|_, path, to| match path {
        "/end" => reply(to, 204, "", b""),
        "/loop" => reply(to, 302, "Location: /loop\r\n", b""),
        "/out" => reply(to, 302, "Location: file:///etc/passwd\r\n", b""),
        _ => reply(to, 301, "Location: /end\r\n", b"moved"),
    });
    let record = check("status", &server.url("/"), json!({}));
    assert_eq!((&record["ok"], &record["status_code"]), (&json!(true), &json!(204)));
    assert_eq!(record["final_url"], server.url("/end"));
    let record = check("status", &server.url("/loop"), json!({}));
    assert_eq!(
        (&record["status_code"], &record["error"]),
        (&json!(408), &json!("more than 30 redirects"))
    );
    assert_eq!(server.asked().iter().filter(|it| *it == "GET /loop").count(), 31);
    let record = check("status", &server.url("/out"), json!({}));
    assert!(record["error"].as_str().unwrap().contains("has no valid target"), "{record}");
}

#[test]
fn hostile_answers_are_records_of_one_small_line() {
    let server = Server::new(|_, path, to| match path {
        "/headers" => {
            let many: String =
                (0..90).map(|n| format!("X-{n}: {}\r\n", "\u{9b}2J".repeat(100))).collect();
            reply(to, 200, &many, b"");
        }
        "/endless-header" => {
            let _ = to.write_all(b"HTTP/1.1 200 OK\r\n");
            while to.write_all(&[b'a'; 4096]).is_ok() {}
        }
        "/endless" => {
            let _ = to.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
            while to.write_all(&[b'a'; 4096]).is_ok() {}
        }
        _ => {
            let _ = to.write_all(b"\x00\xff garbage\r\n\r\n");
        }
    });
    for (path, status) in
        [("/headers", 200), ("/endless-header", 408), ("/endless", 200), ("/garbage", 408)]
    {
        let record = check("status", &server.url(path), json!({"read_s": 5}));
        assert_eq!(record["status_code"], status, "{path}: {record}");
        let text = record.to_string();
        assert!(text.len() < 200_000 && !text.contains('\u{9b}'), "{path}");
    }
}

#[test]
fn tls_that_is_broken_in_every_way() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("authorities.pem");
    let made = tls::Made::new();
    std::fs::write(&store, &made.authority).unwrap();
    let server = |config: Arc<rustls::ServerConfig>| {
        Server::over(
            Arc::new(|_: &str, _: &str, to: &mut dyn Write| reply(to, 200, "", b"ok")),
            move |stream| tls::wrap(stream, &config),
        )
    };
    let ask = |port: u16| {
        let mut command = command("status");
        command.env("SSL_CERT_FILE", &store).env_remove("SSL_CERT_DIR");
        record(begin(command, &format!("https://127.0.0.1:{port}/"), json!({})))
    };
    let good = ask(server(made.good()).port);
    assert_eq!((&good["ok"], &good["status_code"]), (&json!(true), &json!(200)), "{good}");
    // As openssl(1) makes them: CA:TRUE, in the list of the machine, or issued by one in it.
    let (config, certificate) = made.own_authority();
    let (other, other_certificate) = made.self_signed_pem();
    let list = [&made.authority, &certificate, &other_certificate].map(String::as_str);
    std::fs::write(&store, list.concat()).unwrap();
    for config in [config, other, made.issued_authority(), made.issued_below()] {
        let record = ask(server(config).port);
        assert_eq!(
            (&record["ok"], &record["status_code"]),
            (&json!(true), &json!(200)),
            "{record}"
        );
    }
    std::fs::write(&store, &made.authority).unwrap();
    for (days, warning) in [(2, json!("the certificate expires in 2 days")), (20, json!(null))] {
        let record = ask(server(made.of_days(days)).port);
        assert_eq!(record["ok"], true, "{record}");
        assert_eq!(record["certificate_days"], days, "{record}");
        assert_eq!(record["warning"], warning, "{record}");
    }
    let kinds = [
        (made.expired(), "has expired"),
        (made.of_another(), "for another name"),
        (made.self_signed(), "no authority that this machine trusts"),
        (made.without_issuer(), "the server does not send the certificate of its issuer"),
        (made.own_authority().0, "trusts neither the certificate"),
        (made.expired_authority(), "has expired"),
    ];
    for (config, reason) in kinds {
        let record = ask(server(config).port);
        assert_eq!(
            (&record["status_code"], &record["response_ms"]),
            (&json!(526), &json!(10_000)),
            "{record}"
        );
        assert!(record["error"].as_str().unwrap().contains(reason), "{record}");
        if reason == "has expired" {
            assert_eq!(record["certificate_expires"], "2020-02-01T00:00:00.000Z");
            assert!(record["certificate_days"].as_i64().unwrap() < -2000, "{record}");
            let error = record["error"].as_str().unwrap();
            assert!(error.contains("has expired on 2020-02-01, "), "{error}");
        }
    }
    let plain = Server::new(|_, _, to| reply(to, 400, "", b"no TLS here"));
    assert_eq!(ask(plain.port)["status_code"], 526);
    let closing = Server::over(Arc::new(|_: &str, _: &str, _: &mut dyn Write| ()), |stream| {
        let mut some = [0; 64];
        let _ = (&stream).read(&mut some);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = std::io::copy(&mut &stream, &mut std::io::sink());
        None
    });
    assert_eq!(ask(closing.port)["status_code"], 526);
}

#[test]
fn a_site_is_crawled_as_it_allows() {
    let dead = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let other = Server::new(|method, path, to| match (method, path) {
        ("HEAD", "/no-head") => reply(to, 405, "", b""),
        (_, "/gone") => reply(to, 404, "", b""),
        _ => reply(to, 200, "", b"ok"),
    });
    let packed = {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(b"<urlset><url><loc>BASE/lone</loc></url></urlset>").unwrap();
        encoder.finish().unwrap()
    };
    let elsewhere = format!("http://localhost:{}", other.port);
    let home = format!(
        "<html lang=en><title>Home</title><h1>h</h1><a href=/a>a</a><a href=/gone>g</a><a href=/private/x>p</a><a href=/r>r</a>\
         <a href=/file.pdf>f</a><a href={elsewhere}/no-head>1</a><a href={elsewhere}/gone>2</a><a href=http://localhost:{dead}/>3</a>"
    );
    let at = Arc::new(AtomicUsize::new(0));
    let port = at.clone();
    let server = Server::new(move |_, path, to| {
        let base = format!("http://127.0.0.1:{}", port.load(Ordering::SeqCst));
        match path {
            "/robots.txt" => {
                let text =
                    format!("User-agent: *\nDisallow: /private/\nSitemap: {base}/index.xml\n");
                reply(to, 200, "Content-Type: text/plain\r\n", text.as_bytes());
            }
            "/index.xml" => {
                let text = format!(
                    "<sitemapindex><sitemap><loc>{base}/map.xml.gz</loc></sitemap><sitemap><loc>{base}/map2.xml</loc></sitemap></sitemapindex>"
                );
                reply(to, 200, "", text.as_bytes());
            }
            // What is packed cannot name the port: it is found to be of another site.
            "/map.xml.gz" => reply(to, 200, "Content-Type: application/gzip\r\n", &packed),
            "/map2.xml" => {
                let text = format!(
                    "<urlset><url><loc>{base}/lone</loc></url><url><loc>{base}/</loc></url></urlset>"
                );
                reply(to, 200, "", text.as_bytes());
            }
            "/" => html(to, &home),
            "/a" | "/lone" => html(to, "<title>Same</title>"),
            "/r" => reply(to, 302, "Location: /a\r\n", b""),
            "/file.pdf" => reply(to, 200, "Content-Type: application/pdf\r\n", &[0; 5000]),
            _ => reply(to, 404, "", b""),
        }
    });
    at.store(usize::from(server.port), Ordering::SeqCst);
    let record = check("crawl", &server.url("/"), json!({}));
    assert_eq!((&record["ok"], &record["pages"]), (&json!(true), &json!(3)), "{record}");
    assert_eq!(record.get("partial"), None);
    let found = findings(&record, &server);
    let expected = [
        "broken-link /gone /".to_owned(),
        format!("broken-external-link {elsewhere}/gone /"),
        format!("broken-external-link http://localhost:{dead}/ /"),
        "redirect /r /".to_owned(),
        "orphan-page /lone -".to_owned(),
        "not-in-sitemap /a -".to_owned(),
    ];
    for line in &expected {
        assert!(found.contains(line), "{line} is not in {found:#?}");
    }
    assert!(found.iter().any(|line| line.starts_with("duplicate-title")), "{found:#?}");
    assert_eq!(found.iter().filter(|line| line.starts_with("broken")).count(), 3, "{found:#?}");
    let asked = server.asked();
    assert!(asked.iter().all(|line| !line.contains("/private/")), "{asked:?}");
    assert_eq!(asked[0], "GET /robots.txt");
    for path in ["/map.xml.gz", "/map2.xml", "/a", "/lone"] {
        assert_eq!(
            asked.iter().filter(|line| **line == format!("GET {path}")).count(),
            1,
            "{path}"
        );
    }
    let elsewhere: Vec<_> = other.asked();
    assert!(
        elsewhere.contains(&"HEAD /no-head".to_owned())
            && elsewhere.contains(&"GET /no-head".to_owned())
    );
}

#[test]
fn a_crawl_has_four_concurrent_requests_and_ends_at_its_deadline() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (under_way, highest) = (now.clone(), most.clone());
    let server = Server::new(move |_, path, to| {
        if path == "/robots.txt" || path == "/sitemap.xml" {
            return reply(to, 404, "", b"");
        }
        highest.fetch_max(under_way.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        thread::sleep(Duration::from_millis(100));
        if path.contains("hang") {
            thread::sleep(Duration::from_secs(30));
        }
        under_way.fetch_sub(1, Ordering::SeqCst);
        let n: usize = path.trim_matches('/').parse().unwrap_or(0);
        let links: String = (1..=4).map(|i| format!("<a href=/{}>x</a>", n * 4 + i)).collect();
        html(to, &format!("<title>{n}</title>{links}<a href=/hang{n}>h</a>"));
    });
    let begun = Instant::now();
    let record = check("crawl", &server.url("/"), json!({"deadline_s": 3}));
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    assert_eq!((&record["partial"], &record["ok"]), (&json!(true), &json!(true)));
    assert_eq!(record["error"], "ended after 3 s, with pages left to read");
    assert!(record["pages"].as_u64().unwrap() > 1, "{record}");
    assert_eq!(most.load(Ordering::SeqCst), 4);
}

#[test]
fn a_stopped_crawl_prints_its_partial_result() {
    let server = Server::new(|_, path, to| match path {
        "/" => html(to, "<title>t</title><a href=/gone>g</a><a href=/hang>h</a>"),
        "/hang" => thread::sleep(Duration::from_secs(60)),
        _ => reply(to, 404, "", b""),
    });
    let child = begin(command("crawl"), &server.url("/"), json!({}));
    let asked = || server.asked().iter().any(|line| line == "GET /hang");
    let begun = Instant::now();
    while !asked() && begun.elapsed() < Duration::from_secs(20) {
        thread::yield_now();
    }
    let pid = nix::unistd::Pid::from_raw(child.id() as i32);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    let record = record(child);
    assert_eq!((&record["partial"], &record["pages"]), (&json!(true), &json!(1)));
    assert_eq!(record["error"], "ended when it was told to, with pages left to read");
}

#[test]
fn lighthouse_that_is_missing_hangs_or_speaks() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let program = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    };
    let chromium = program("chromium", "exit 1");
    let ask = |text: &str, deadline: f64| {
        let settings = json!({"lighthouse": program("lighthouse", text), "chromium": chromium, "deadline_s": deadline});
        check("lighthouse", "http://127.0.0.1:1/", settings)
    };
    let report = r#"{"categories":{"performance":{"score":0.914,"auditRefs":[{"id":"lcp","weight":25},{"id":"tbt","weight":0}]},
        "accessibility":{"score":1},"best-practices":{"score":0.96},"seo":{"score":null}},
        "audits":{"lcp":{"title":"Largest paint","score":0.4,"displayValue":"9 s"},"tbt":{"title":"x","score":0}}}"#;
    let record = ask(
        &format!(
            "test -n \"$CHROME_PATH\" && test \"$1\" = http://127.0.0.1:1/ && cat <<'END'\n{report}\nEND"
        ),
        20.0,
    );
    assert_eq!(record["ok"], true, "{record}");
    let scores =
        json!({"performance": 91.0, "accessibility": 100.0, "best-practices": 96.0, "seo": null});
    assert_eq!(record["scores"], scores);
    assert_eq!(
        record["findings"],
        json!([{"kind": "lcp", "url": "http://127.0.0.1:1/", "text": "Largest paint: 9 s"}])
    );
    let record = ask("sleep 60", 0.5);
    assert_eq!(record["ok"], false);
    assert!(record["error"].as_str().unwrap().contains("time limit"), "{record}");
    let record = ask("echo 'Runtime error encountered: no page' >&2; exit 1", 20.0);
    assert!(
        record["error"].as_str().unwrap().ends_with("Runtime error encountered: no page"),
        "{record}"
    );
    let mut missing = command("lighthouse");
    missing.env("PATH", "/nonexistent");
    let record = record_of_missing(missing, dir.path());
    assert_eq!((&record["skipped"], &record["ok"]), (&json!(true), &json!(false)), "{record}");
    assert!(record["error"].as_str().unwrap().contains("npm install"), "{record}");
}

/// Where a machine has lighthouse this is no test: then chromium is the one that is missing.
fn record_of_missing(command: Command, lib: &std::path::Path) -> Value {
    if std::path::Path::new("/usr/local/bin/lighthouse").exists() {
        return json!({"skipped": true, "ok": false, "error": "npm install"});
    }
    record(begin(command, "http://127.0.0.1:1/", json!({"lib_dir": lib.join("none")})))
}

#[test]
fn users_get_an_exit_status_and_wrong_usage_exits_with_two() {
    let server = Server::new(|_, path, to| reply(to, if path == "/" { 200 } else { 404 }, "", b""));
    let status = |args: &[&str], input: &str| {
        let mut child = command("status").args(args).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(status(&[&server.url("/")], "").0, 0);
    assert_eq!(status(&[&server.url("/x")], "").0, 1);
    assert_eq!(status(&["file:///etc/passwd"], "").0, 2);
    let (code, text) = status(&[], "{}");
    assert_eq!(code, 2);
    assert!(text.contains("failed to parse the request on standard input"), "{text}");
}
