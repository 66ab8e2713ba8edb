//! Writes, reads and checks recordings for `tests/warc/judges`, which compares with programs of
//! others what this prints.
//!
//! usage: recording write FILE      prints what was recorded, one JSON object a line
//!        recording read FILE       prints what a WACZ or WARC file has
//!        recording join TO FILE…   writes the records of several recordings into one file
//!        recording share FILE TO DIRECTORY      moves long bodies to files of a directory
//!        recording check FILE      prints flaws; status 1 if there are any

use archivist_warc::exchange::{Exchange, Truncated};
use archivist_warc::verify;
use archivist_warc::wacz::{About, Merge, Page, Recording, Shelf, Wacz, share};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::error::Error;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::process::ExitCode;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// URLs whose keys other programs must agree with.
const URLS: [&str; 24] = [
    "https://page.test/a?b=1&a=2&c",
    "https://www.page.test/WWW/",
    "https://www12.page.test/x",
    "http://page.test:80/port",
    "https://page.test:8443/port",
    "https://page.test/a/../b/./c//d/",
    "https://page.test/%7Euser/%20/%2520",
    "https://page.test/caf%C3%A9?q=%C3%A9&%C3%A4=1",
    "https://xn--bcher-kva.test/",
    "https://page.test/?",
    "https://page.test/x?&&a=&=b",
    "https://page.test/x?jsessionid=0123456789abcdef0123456789abcdef&x=1",
    "https://page.test/x?y=2&PHPSESSID=0123456789abcdef0123456789abcdef",
    "https://page.test/x?y=2&sid=0123456789abcdef0123456789abcdef&z=3",
    "https://page.test/x?CFID=1&CFTOKEN=2&z=3",
    "https://page.test/x?ASPSESSIONIDABCDEFGH=ABCDEFGHIJKLMNOPQRSTUVWX&z",
    "https://page.test/(a(0123456789abcdefghijklmn))/x.aspx",
    "https://page.test/(0123456789abcdefghijklmn)/x.aspx?y",
    "https://page.test/x;jsessionid=0123456789abcdef0123456789abcdef",
    "http://192.168.1.10/x",
    "http://[2001:db8::1]:8080/x",
    "https://page.test/x?a=%26&b=%23&c=+",
    "https://page.test/x?q=a|b{c}",
    "https://page.test/UPPER?Query=UPPER",
];

fn hex(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Bytes without pattern, as those of a picture.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    std::iter::repeat_with(&mut next).take(length).collect()
}

struct Writer {
    recording: Recording,
    time: Timestamp,
}

impl Writer {
    fn exchange(&mut self, url: &str, status: u16, headers: &[(&str, &str)]) -> Exchange {
        self.time += SignedDuration::from_millis(250);
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Exchange {
            url: url.to_owned(),
            method: "GET".to_owned(),
            time: self.time,
            request: vec![("accept".to_owned(), "*/*".to_owned())],
            posted: None,
            status,
            reason: String::new(),
            response: headers.iter().map(owned).collect(),
            protocols: vec!["h2".to_owned(), "tls/1.3".to_owned()],
            address: Some([192, 0, 2, 1].into()),
            kind: "other".to_owned(),
            truncated: None,
        }
    }

    fn add(&mut self, exchange: &Exchange, mut body: &[u8]) -> Result<()> {
        let line = json!({
            "kind": "response",
            "url": exchange.url,
            "method": exchange.method,
            "status": exchange.status,
            "sha256": hex(body),
        });
        println!("{line}");
        let length = body.len() as u64;
        Ok(self.recording.add(exchange, &mut body, length)?)
    }

    fn get(&mut self, url: &str, status: u16, headers: &[(&str, &str)], body: &[u8]) -> Result<()> {
        let exchange = self.exchange(url, status, headers);
        self.add(&exchange, body)
    }

    fn post(&mut self, url: &str, media_type: &str, posted: &[u8]) -> Result<()> {
        let mut exchange = self.exchange(url, 200, &[("content-type", "application/json")]);
        exchange.method = "POST".to_owned();
        let media_type = ("content-type".to_owned(), media_type.to_owned());
        exchange.request.push(media_type);
        exchange.posted = Some(posted.to_owned());
        self.add(&exchange, b"{\"done\":true}")
    }
}

fn write(path: &str) -> Result<()> {
    let time: Timestamp = "2026-11-26T09:53:40Z".parse()?;
    let about = About {
        software: "archivist".to_owned(),
        title: "A page".to_owned(),
        main_url: "https://page.test/".to_owned(),
        created: time,
    };
    let options = File::options().read(true).write(true).create(true).truncate(true).open(path)?;
    let recording = Recording::create(options, &about)?;
    let mut writer = Writer { recording, time };
    let html = [
        ("content-type", "text/html; charset=utf-8"),
        ("content-encoding", "br"),
        ("content-length", "31"),
        ("transfer-encoding", "chunked"),
        ("x-hostile", "a\r\n\r\nWARC/1.1\r\nb\u{e9}"),
    ];
    let body = b"<!doctype html><title>A page</title>".repeat(5_000);
    writer.get("https://page.test/", 200, &html, &body)?;
    writer.get(
        "https://page.test/noise.png",
        200,
        &[("content-type", "image/png")],
        &noise(300_000),
    )?;
    writer.get(
        "https://page.test/old",
        302,
        &[("location", "/"), ("content-length", "20")],
        b"",
    )?;
    writer.get("https://page.test/nothing", 204, &[], b"")?;
    writer.get("https://page.test/same", 304, &[("content-length", "20")], b"")?;
    writer.get("https://page.test/missing", 404, &[], b"not here")?;
    let mut cut = writer.exchange("https://page.test/cut", 200, &[("content-length", "9999")]);
    cut.truncated = Some(Truncated::Length);
    writer.add(&cut, b"the first bytes")?;
    let form = "application/x-www-form-urlencoded";
    writer.post("https://page.test/form", form, b"name=a+b&value=%C3%A9")?;
    writer.post(
        "https://page.test/json?x=1",
        "application/json",
        b"{\"a\":{\"b\":[1,\"two\"],\"a\":3}}",
    )?;
    let part = "--x\r\nContent-Disposition: form-data; name=\"field\"\r\n\r\nv w\r\n--x--\r\n";
    writer.post("https://page.test/parts", "multipart/form-data; boundary=x", part.as_bytes())?;
    writer.post("https://page.test/bytes", "application/octet-stream", &[0, 1, 2, 255])?;
    for url in URLS {
        writer.get(url, 200, &[("content-type", "text/plain")], url.as_bytes())?;
    }
    for (url, media_type, body) in [
        ("urn:view:https://page.test/", "image/png", noise(3000)),
        ("urn:text:https://page.test/", "text/plain", b"A page".to_vec()),
        ("urn:pageinfo:https://page.test/", "application/json", b"{}".to_vec()),
    ] {
        let line = json!({"kind": "resource", "url": url, "sha256": hex(&body)});
        println!("{line}");
        writer.recording.add_resource(url, media_type, writer.time, &body)?;
    }
    writer.recording.add_page(Page {
        url: "https://page.test/".to_owned(),
        title: "A page".to_owned(),
        time,
        text: Some("A page".to_owned()),
    });
    writer.recording.finish()?;
    Ok(())
}

fn read(path: &str) -> Result<()> {
    let wacz = Wacz::open(File::open(path)?)?;
    for fault in wacz.faults() {
        println!("{}", json!({"kind": "fault", "text": fault.to_string()}));
    }
    for page in wacz.pages() {
        println!("{}", json!({"kind": "page", "url": page.url}));
    }
    for entry in wacz.entries() {
        let mut answer = wacz.read(entry)?;
        let mut body = Vec::new();
        answer.body.read_to_end(&mut body)?;
        let line = json!({
            "kind": "entry",
            "url": entry.url,
            "key": entry.key,
            "method": entry.method,
            "posted": entry.posted,
            "status": entry.status,
            "sha256": hex(&body),
        });
        println!("{line}");
    }
    Ok(())
}

fn join(to: &str, paths: &[&str]) -> Result<()> {
    let mut options = File::options();
    let file = options.read(true).write(true).create_new(true).open(to)?;
    let about = About {
        software: "archivist".to_owned(),
        title: "Several recordings".to_owned(),
        main_url: "https://page.test/".to_owned(),
        created: "2026-11-27T10:00:00Z".parse()?,
    };
    let scratch = || tempfile::tempfile();
    let mut merge = Merge::create(file, &about, &scratch)?;
    for path in paths {
        let wacz = Wacz::open(File::open(path)?)?;
        merge.add(&wacz)?;
        for page in wacz.pages() {
            merge.add_page(page)?;
        }
    }
    merge.finish()?;
    Ok(())
}

/// Bodies as files of a directory.
struct Files<'a>(&'a Path);

impl Shelf for Files<'_> {
    fn find(&mut self, hex: &str) -> io::Result<Option<File>> {
        match File::open(self.0.join(format!("{hex}.warc.gz"))) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            found => found.map(Some),
        }
    }

    fn keep(&mut self, hex: &str, record: &mut dyn Read) -> io::Result<File> {
        let path = self.0.join(format!("{hex}.warc.gz"));
        io::copy(record, &mut File::create(&path)?)?;
        File::open(path)
    }
}

fn share_bodies(path: &str, to: &str, directory: &str) -> Result<()> {
    let mut options = File::options();
    let to = options.read(true).write(true).create_new(true).open(to)?;
    share(File::open(path)?, to, &mut Files(Path::new(directory)))?.ok_or("nothing is shared")?;
    Ok(())
}

fn run() -> Result<ExitCode> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let words: Vec<_> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["write", path] => write(path)?,
        ["read", path] => read(path)?,
        ["join", to, ref paths @ ..] => join(to, paths)?,
        ["share", path, to, directory] => share_bodies(path, to, directory)?,
        ["check", path] => {
            let report = verify::check(File::open(path)?)?;
            for flaw in &report.flaws {
                println!("{flaw}");
            }
            return Ok(ExitCode::from(u8::from(!report.flaws.is_empty())));
        }
        _ => return Err("usage: recording write|read|join|share|check FILE".into()),
    }
    Ok(ExitCode::SUCCESS)
}

fn main() -> ExitCode {
    run().unwrap_or_else(|error| {
        eprintln!("{error}");
        ExitCode::from(2)
    })
}
