//! Servers as they are: cookies before a page, odd headers, bodies without an end. Browsers show the
//! pages of all of these.

use super::{Value, check, json};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// Starts a server that answers each request with `answer(head, stream)` and closes the connection;
/// returns its address.
fn serve(answer: impl Fn(&str, &mut TcpStream) + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let answer = std::sync::Arc::new(answer);
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let answer = answer.clone();
            thread::spawn(move || {
                let mut head = String::new();
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                while !head.ends_with("\r\n\r\n") {
                    if reader.read_line(&mut head).unwrap_or(0) == 0 {
                        return;
                    }
                }
                answer(&head, &mut stream);
            });
        }
    });
    base
}

fn path(head: &str) -> &str {
    head.split(' ').nth(1).unwrap()
}

fn page(to: &mut TcpStream, headers: &[u8], body: &str) {
    let length = format!("Content-Length: {}\r\n\r\n", body.len());
    let start = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n";
    let all = [start, headers, length.as_bytes(), body.as_bytes()].concat();
    let _ = to.write_all(&all);
}

fn redirect(to: &mut TcpStream, location: &str, headers: &str) {
    let head = format!(
        "HTTP/1.1 302 Found\r\nConnection: close\r\nLocation: {location}\r\n{headers}Content-Length: 0\r\n\r\n"
    );
    let _ = to.write_all(head.as_bytes());
}

fn is_up(record: &Value) {
    let state = (&record["ok"], &record["status_code"]);
    assert_eq!(state, (&json!(true), &json!(200)), "{record}");
}

#[test]
fn headers_that_browsers_accept_are_accepted() {
    let many: String = (0..1000).map(|n| format!("X-{n}: {n}\r\n")).collect();
    let long: String = (0..64).map(|n| format!("X-{n}: {}\r\n", "a".repeat(4080))).collect();
    let lines: Vec<Vec<u8>> = vec![
        b"Content Security: x\r\n".to_vec(),
        b"X-A : b\r\n".to_vec(),
        b"Set-Cookie: x=\x01\x02; path=/\r\n".to_vec(),
        b"X-Name: caf\xe9\r\n".to_vec(),
        b"caf\xe9: x\r\n".to_vec(),
        b"X-A: b\n".to_vec(),
        b"garbage line\r\n".to_vec(),
        b": nameless\r\n".to_vec(),
        b"X-A: b\r\n folded\r\n".to_vec(),
        b"Content-Length: 52\r\n".to_vec(),
        format!("X-A: {}\r\n", "a".repeat(250_000)).into_bytes(),
        many.into_bytes(),
        long.into_bytes(),
    ];
    let count = lines.len();
    let base = serve(move |head, to| {
        let number: usize = path(head)[1..].parse().unwrap();
        page(to, &lines[number], &"x".repeat(52));
    });
    for number in 0..count {
        let record = check("status", &format!("{base}/{number}"), json!({}));
        assert_eq!(record["status_code"], 200, "{number}: {}", record["error"]);
        is_up(&record);
    }
}

#[test]
fn status_lines_and_ends_of_lines_that_browsers_accept_are_accepted() {
    let heads = [
        "HTTP/1.1 200\r\nContent-Length: 1\r\n\r\nx",
        "HTTP/1.1 200 OK\nContent-Length: 1\n\nx",
        "HTTP/1.0 200 OK\r\n\r\nx",
        "http/1.1 200 fine\r\nTransfer-Encoding: Chunked\r\n\r\n1;a=b\r\nx\r\n0\r\n\r\n",
        "\r\nHTTP/1.1 200 OK\r\n\r\nx",
        "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\n\r\nx",
        "ICY 200 OK\r\nicy-name: x\r\n\r\nx",
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n",
    ];
    let base = serve(move |head, to| {
        let number: usize = path(head)[1..].parse().unwrap();
        let _ = to.write_all(heads[number].as_bytes());
    });
    for number in 0..heads.len() {
        is_up(&check("status", &format!("{base}/{number}"), json!({})));
    }
}

/// With the cookie of `/`, `/login` or `/x/y`, the page is there.
#[test]
fn cookies_are_kept_between_redirects() {
    let base = serve(|head, to| {
        let has = |name: &str| {
            let mut lines = head.lines();
            lines.any(|line| line.starts_with("Cookie: ") && line.contains(name))
        };
        match path(head) {
            "/robots.txt" if !has("seen=1") => {
                redirect(to, "/robots.txt", "Set-Cookie: seen=1; Path=/\r\n");
            }
            "/robots.txt" => page(to, b"", "User-agent: *\nDisallow: /private\n"),
            "/set" => redirect(to, "/way", "Set-Cookie: way=1; Path=/; HttpOnly\r\n"),
            "/way" if !has("way=1") => redirect(to, "/set", ""),
            "/" if !has("self=1") => redirect(to, "/", "Set-Cookie: self=1\r\n"),
            "/gone" => redirect(to, "/gone", ""),
            path => page(to, b"", &format!("<title>{path}</title><a href=/way>x</a>")),
        }
    });
    for path in ["/", "/way", "/robots.txt"] {
        let record = check("status", &format!("{base}{path}"), json!({}));
        is_up(&record);
    }
    for path in ["/", "/way"] {
        let record = check("crawl", &format!("{base}{path}"), json!({}));
        is_up(&record);
        let pages = if path == "/" { 2 } else { 1 };
        assert_eq!(record["pages"], pages, "{path}: {record}");
    }
    let record = check("crawl", &format!("{base}/gone"), json!({}));
    assert_eq!((&record["ok"], &record["pages"]), (&json!(false), &json!(0)));
}

#[test]
fn a_body_without_an_end_is_an_answer() {
    let base = serve(|head, to| {
        let (kind, piece) = match path(head) {
            "/radio" => ("audio/mpeg", &[0; 4096][..]),
            "/events" => ("text/event-stream", &b": tick\n\n"[..]),
            "/silent" => ("text/event-stream", &b""[..]),
            "/camera" => ("multipart/x-mixed-replace; boundary=x", &b""[..]),
            _ => ("text/html", &b"<title>x</title><p>x"[..]),
        };
        let start = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n\r\n");
        let mut is_open = to.write_all(start.as_bytes()).is_ok();
        while is_open {
            is_open = to.write_all(piece).is_ok();
            thread::sleep(Duration::from_millis(50));
        }
    });
    for path in ["/radio", "/events", "/silent", "/camera", "/page"] {
        let begun = Instant::now();
        is_up(&check("status", &format!("{base}{path}"), json!({})));
        assert!(begun.elapsed() < Duration::from_secs(3), "{path}");
    }
    let settings = json!({"read_s": 1, "deadline_s": 20});
    let record = check("crawl", &format!("{base}/page"), settings);
    is_up(&record);
}

/// The answer has the whole request, and the body follows the headers.
#[test]
fn watches_say_how_to_ask_and_what_is_good() {
    let other = serve(|head, to| page(to, b"", &head.replace('<', "?")));
    let base = serve(move |head, to| match path(head) {
        "/401" => {
            let _ = to.write_all(b"HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n");
        }
        "/away" => redirect(to, &other, ""),
        "/post" if head.starts_with("POST ") => redirect(to, "/got", ""),
        "/latin" => page(to, b"", "<meta charset=utf-8><title>caf\u{e9}</title>"),
        "/endless" => {
            let _ = to.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\nshop");
            while to.write_all(b" ").is_ok() {
                thread::sleep(Duration::from_millis(50));
            }
        }
        _ => page(to, b"", &head.replace('<', "?")),
    });
    let ask = |path: &str, settings: Value| {
        let record = check("status", &format!("{base}{path}"), settings);
        let error = record["error"].as_str().unwrap_or("up").to_owned();
        assert_eq!(record["ok"], error == "up", "{record}");
        error
    };
    let expect = json!({"expect": [[200, 299], [401, 401]]});
    assert_eq!(ask("/401", expect.clone()), "up");
    assert_eq!(ask("/401", json!({})), "the server answered 401");
    assert_eq!(ask("/away", json!({"expect": [[302, 302]]})), "up");
    assert_eq!(ask("/x", json!({"expect": [[404, 404]]})), "the server answered 200");
    assert_eq!(ask("/x", json!({"keywords": ["GET /x HTTP/1.1"]})), "up");
    assert_eq!(ask("/latin", json!({"keywords": ["caf\u{e9}"]})), "up");
    let missing = ask("/x", json!({"keywords": ["shop"]}));
    assert_eq!(missing, "the page does not contain 'shop'");
    let found = ask("/x", json!({"not_keywords": ["GET"]}));
    assert_eq!(found, "the page contains 'GET'");
    assert_eq!(ask("/endless", json!({"keywords": ["shop"], "read_s": 0.5})), "up");
    let whole = ask("/endless", json!({"body": "whole", "read_s": 0.5}));
    assert_eq!(whole, "the answer did not end within the time limit");
    let own = json!({
        "method": "PUT", "headers": [["X-Key", "secret"], ["accept", "text/html"], ["User-Agent", "me"]],
        "keywords": ["PUT /x", "X-Key: secret", "accept: text/html", "User-Agent: me"],
        "not_keywords": ["*/*", "Mozilla"]
    });
    assert_eq!(ask("/x", own), "up");
    let away = json!({
        "headers": [["X-Key", "secret"], ["Accept", "text/html"]],
        "keywords": ["Accept: text/html"], "not_keywords": ["secret"]
    });
    assert_eq!(ask("/away", away), "up");
    let post = json!({"data": "a=1", "keywords": ["GET /got"], "not_keywords": ["Content-Type"]});
    assert_eq!(ask("/post", post), "up");
    let data = json!({
        "data": "a=1", "keywords": ["POST /x", "Content-Length: 3", "Content-Type: application/x-www"]
    });
    assert_eq!(ask("/x", data), "up");
    assert_eq!(ask("/x", json!({"method": "HEAD"})), "up");
    assert_eq!(ask("/endless", json!({"body": "no"})), "up");
}

/// Starts the server of a case in `tests/web`. It ends when the answer is dropped.
struct Case {
    server: std::process::Child,
    base: String,
}

impl Case {
    fn start(name: &str) -> Case {
        let program = format!("{}/tests/web/{name}/server.py", env!("CARGO_MANIFEST_DIR"));
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let server = std::process::Command::new("python3")
            .args(["-B", &program, &address.port().to_string()])
            .spawn()
            .unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect(address).is_err() {
            assert!(Instant::now() < deadline, "{name} does not listen");
            thread::yield_now();
        }
        Case { server, base: format!("http://{address}") }
    }

    fn check(&self, kind: &str, path: &str) -> Value {
        check(kind, &format!("{}{path}", self.base), json!({}))
    }
}

impl Drop for Case {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

#[test]
fn cases_of_the_web_are_up() {
    let case = Case::start("08-cookie-redirect");
    for path in ["/", "/way"] {
        is_up(&case.check("status", path));
        let record = case.check("crawl", path);
        is_up(&record);
        assert!(record["pages"].as_u64().unwrap() > 1, "{path}: {record}");
    }
    let case = Case::start("09-odd-headers");
    for path in [
        "good",
        "space-in-name",
        "space-before-colon",
        "control",
        "high",
        "lf-only",
        "nocolon",
        "folded",
        "big",
        "bigger",
        "many",
        "noreason",
        "two-lengths",
    ] {
        is_up(&case.check("status", &format!("/{path}")));
    }
    let case = Case::start("10-endless-body");
    for path in ["/radio", "/events", "/silent", "/page"] {
        is_up(&case.check("status", path));
    }
    let record = Case::start("26-crawl-traps").check("crawl", "/");
    is_up(&record);
    let kinds: Vec<_> =
        record["findings"].as_array().unwrap().iter().map(|it| &it["kind"]).collect();
    assert!(kinds.contains(&&json!("limit-reached")), "{kinds:?}");
}
