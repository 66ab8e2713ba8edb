//! Servers that speak HTTP/2, and servers that demand a certificate of the client.

use super::{Server, Value, begin, command, json, record, reply, tls};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::thread;

const BODY: &[u8] = b"<!doctype html><title>odd</title>Welcome";

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let stream = stream.to_be_bytes();
    [&length[1..], &[kind, flags], &stream, payload].concat()
}

/// A header without Huffman code and table.
fn literal(name: &[u8], value: &[u8]) -> Vec<u8> {
    let length = |text: &[u8]| vec![u8::try_from(text.len()).unwrap()];
    [vec![0], length(name), name.to_vec(), length(value), value.to_vec()].concat()
}

/// Status 200 with a type and this block.
fn headers(more: &[u8]) -> Vec<u8> {
    [&[0x88][..], &literal(b"content-type", b"text/html"), more].concat()
}

fn page(stream: u32, block: &[u8]) -> Vec<u8> {
    [frame(1, 4, stream, block), frame(0, 1, stream, BODY)].concat()
}

/// What the server sends in a case.
fn answer(case: &str, stream: u32, count: usize) -> Vec<u8> {
    let with = |name: &[u8], value: &[u8]| page(stream, &headers(&literal(name, value)));
    let ok = headers(b"");
    match case {
        "short" => with(b"content-length", b"900"),
        "latin" => with(b"x-c", b"caf\xe9"),
        "padded" => {
            let block = [&[3, 0, 0, 0, 0, 16][..], &ok, &[0; 3]].concat();
            let body = [&[5][..], BODY, &[0; 5]].concat();
            [frame(1, 44, stream, &block), frame(0, 9, stream, &body)].concat()
        }
        "continued" => [
            frame(1, 0, stream, &ok[..1]),
            frame(9, 0, stream, &ok[1..9]),
            frame(9, 4, stream, &ok[9..]),
            frame(0, 1, stream, BODY),
        ]
        .concat(),
        "early" => [frame(1, 4, stream, &literal(b":status", b"103")), page(stream, &ok)].concat(),
        "trailers" => [
            frame(1, 4, stream, &ok),
            frame(0, 0, stream, BODY),
            frame(1, 5, stream, &literal(b"x-t", b"1")),
        ]
        .concat(),
        "done" => {
            [frame(1, 4, stream, &ok), frame(0, 0, stream, BODY), frame(3, 0, stream, &[0; 4])]
                .concat()
        }
        "goaway" => {
            let last = [&stream.to_be_bytes()[..], &[0; 4]].concat();
            [frame(1, 4, stream, &ok), frame(7, 0, 0, &last), frame(0, 1, stream, BODY)].concat()
        }
        "unknown" => {
            [frame(0xfa, 9, stream, b"xyz"), frame(6, 0, 0, b"12345678"), page(stream, &ok)]
                .concat()
        }
        "refused" if count <= 1 => frame(3, 0, stream, &[0, 0, 0, 7]),
        "large" => {
            let pieces = (0..160).map(|_| frame(0, 0, stream, &[b'x'; 16_384]));
            let head = frame(1, 4, stream, &ok);
            [head, pieces.collect::<Vec<_>>().concat(), frame(0, 1, stream, BODY)].concat()
        }
        "reset" => frame(3, 0, stream, &[0, 0, 0, 2]),
        "upper" => with(b"X-Upper", b"1"),
        "index" => page(stream, &headers(&[0xff, 0x50])),
        "bomb" => {
            let entry = [&[0x40, 1, b'a', 0x7f, 0xa1, 0x1e][..], &[b'x'; 4000]].concat();
            page(stream, &[headers(b""), entry, vec![0xbe; 1000]].concat())
        }
        _ => page(stream, &ok),
    }
}

/// Speaks HTTP/2 on one connection.
fn serve(mut stream: impl Read + Write, case: &str, count: usize) -> std::io::Result<()> {
    let mut preface = [0; 24];
    stream.read_exact(&mut preface)?;
    assert_eq!(&preface, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    stream.write_all(&frame(4, 0, 0, &[]))?;
    stream.flush()?;
    loop {
        let mut start = [0; 9];
        stream.read_exact(&mut start)?;
        let length = u32::from_be_bytes([0, start[0], start[1], start[2]]) as usize;
        let mut payload = vec![0; length];
        stream.read_exact(&mut payload)?;
        let number = u32::from_be_bytes([start[5], start[6], start[7], start[8]]);
        if start[3] == 1 {
            stream.write_all(&answer(case, number, count))?;
            stream.flush()?;
        }
    }
}

/// Starts a server with this configuration of TLS; it speaks HTTP/1.1 if the client wants that.
fn server(config: Arc<rustls::ServerConfig>, case: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for (count, stream) in listener.incoming().flatten().enumerate() {
            let config = config.clone();
            thread::spawn(move || {
                let mut connection = rustls::ServerConnection::new(config).unwrap();
                let mut stream = stream;
                while connection.is_handshaking() {
                    if connection.complete_io(&mut stream).is_err() {
                        return;
                    }
                }
                let is_modern = connection.alpn_protocol() == Some(b"h2");
                let mut stream = rustls::StreamOwned::new(connection, stream);
                if is_modern {
                    let _ = serve(stream, case, count);
                } else {
                    let mut head = [0; 4096];
                    let _ = stream.read(&mut head);
                    reply(&mut stream, 200, "", b"old");
                }
            });
        }
    });
    port
}

fn ask(authority: &Path, url: &str, settings: Value) -> Value {
    let mut command = command("status");
    command
        .env("SSL_CERT_FILE", authority)
        .env_remove("SSL_CERT_DIR")
        .env_remove("CREDENTIALS_DIRECTORY");
    record(begin(command, url, settings))
}

#[test]
fn servers_of_http_2_alone_are_checked() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("authority.pem");
    let made = tls::Made::new();
    std::fs::write(&store, &made.authority).unwrap();
    let url = |case| format!("https://127.0.0.1:{}/", server(made.modern(), case));
    for path in
        ["", "latin", "padded", "continued", "early", "trailers", "done", "goaway", "unknown"]
    {
        let record = ask(&store, &url(path), json!({"keywords": ["Welcome"]}));
        let state = (&record["ok"], &record["status_code"]);
        assert_eq!(state, (&json!(true), &json!(200)), "{path}: {record}");
    }
    for path in ["reset", "upper", "index", "bomb"] {
        let record = ask(&store, &url(path), json!({}));
        let error = record["error"].as_str().unwrap();
        assert!(error.starts_with("HTTP/2: "), "{path}: {error}");
        assert_eq!(record["status_code"], 408, "{path}");
    }
    let record = ask(&store, &url("short"), json!({"keywords": ["Welcome"]}));
    assert_eq!(record["ok"], false, "{record}");
    // More than the windows of connection and stream at first, and than is kept of a body.
    let record = ask(&store, &url("large"), json!({"body": "whole"}));
    assert_eq!(record["ok"], true, "{record}");
}

#[test]
fn a_request_that_the_server_refuses_is_sent_again() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("authority.pem");
    let made = tls::Made::new();
    std::fs::write(&store, &made.authority).unwrap();
    let port = server(made.modern(), "refused");
    let record = ask(&store, &format!("https://127.0.0.1:{port}/"), json!({}));
    assert_eq!(record["ok"], true, "{record}");
}

#[test]
fn http_2_is_for_servers_that_refuse_http_1_1() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("authority.pem");
    let made = tls::Made::new();
    std::fs::write(&store, &made.authority).unwrap();
    let mut both = (*made.good()).clone();
    both.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let mut preferring = both.clone();
    preferring.ignore_client_order = true;
    // Servers that choose h2 only if the client offers it, and otherwise nothing.
    let lax = |refuses: fn(&mut dyn Write)| {
        let (modern, none) = (made.modern(), made.good());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            for (count, stream) in listener.incoming().flatten().enumerate() {
                if count == 0 {
                    let mut stream = tls::wrap(stream, &none).unwrap();
                    let _ = stream.read(&mut [0; 4096]);
                    refuses(&mut stream);
                } else {
                    let _ = serve(tls::wrap(stream, &modern).unwrap(), "", count);
                }
            }
        });
        port
    };
    for (name, port, keyword) in [
        ("both", server(Arc::new(both), ""), "old"),
        ("prefers HTTP/2", server(Arc::new(preferring), ""), "old"),
        ("alert", server(made.modern(), ""), "Welcome"),
        ("505", lax(|mut to| reply(&mut to, 505, "", b"no")), "Welcome"),
        ("426", lax(|mut to| reply(&mut to, 426, "Upgrade: h2\r\n", b"no")), "Welcome"),
        ("frames", lax(|to| to.write_all(&frame(4, 0, 0, &[])).unwrap()), "Welcome"),
        ("closed", lax(|_| {}), "Welcome"),
    ] {
        let url = format!("https://127.0.0.1:{port}/");
        let record = ask(&store, &url, json!({"keywords": [keyword]}));
        assert_eq!(record["ok"], true, "{name}: {record}");
    }
    // The answer of a server that has no HTTP/2 either.
    let config = made.good();
    let server = Server::over(
        Arc::new(|_: &str, _: &str, to: &mut dyn Write| reply(to, 505, "", b"no")),
        move |stream| tls::wrap(stream, &config),
    );
    let record = ask(&store, &format!("https://127.0.0.1:{}/", server.port), json!({}));
    assert_eq!(server.asked().len(), 2);
    assert_eq!(record["status_code"], 505, "{record}");
    assert_eq!(record["error"], "the server answered 505", "{record}");
}

#[test]
fn http_2_without_tls_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.write_all(&frame(4, 0, 0, &[0, 3, 0, 0, 0, 100]));
            let _ = stream.read(&mut [0; 1024]);
        }
    });
    let record = ask(Path::new("/dev/null"), &url, json!({}));
    let reason = "the server speaks HTTP/2 without TLS, which browsers do not";
    assert_eq!(record["error"], reason, "{record}");
}

#[test]
fn a_server_that_demands_a_certificate_gets_it_or_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let made = tls::Made::new();
    let store = file("authority.pem", &made.authority);
    let (certificate, key) = made.client();
    let (_, other_key) = made.client();
    let (of_other, key_of_other) = tls::Made::new().client();
    let certificate = file("client.pem", &certificate);
    let identity = |certificate: &Path, key: &Path| json!({"identity": {"certificate": certificate, "key": key}});
    let good = identity(&certificate, &file("client.key", &key));
    let foreign = identity(&file("other.pem", &of_other), &file("other.key", &key_of_other));
    let mixed = identity(&certificate, &file("mixed.key", &other_key));
    let missing = identity(&certificate, Path::new("/nowhere.key"));
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let config = made.demanding(&[version]);
        let server = Server::over(
            Arc::new(|_: &str, _: &str, to: &mut dyn Write| reply(to, 200, "", b"ok")),
            move |stream| tls::wrap(stream, &config),
        );
        let url = format!("https://127.0.0.1:{}/", server.port);
        assert_eq!(ask(&store, &url, good.clone())["ok"], true);
        let without = ask(&store, &url, json!({}));
        let demand = "TLS: the server demands a client certificate; set ClientCertificate=";
        let state = (&without["status_code"], &without["error"]);
        assert_eq!(state, (&json!(526), &json!(demand)), "{without}");
        let refused = ask(&store, &url, foreign.clone());
        let error = refused["error"].as_str().unwrap();
        assert!(error.contains("does not accept the client certificate"), "{error}");
        // Mistakes of the watch are not those of the site.
        for (settings, reason) in [
            (&mixed, "ClientKey= is not the key of ClientCertificate="),
            (&missing, "failed to read ClientKey='/nowhere.key'"),
        ] {
            let record = ask(&store, &url, settings.clone());
            assert_eq!(record["skipped"], true, "{record}");
            assert!(record["error"].as_str().unwrap().contains(reason), "{record}");
        }
    }
}
