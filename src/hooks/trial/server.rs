//! The server of the page of a trial, on a port of the loopback that the kernel chooses.

use std::io::{self, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Time for a request on a connection. Browsers open connections before they need them.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest head of a request in bytes.
const HEAD_MAX_BYTES: u64 = 64 << 10;

/// A page with a script, a picture, and an answer that its script asks for.
const FILES: [(&str, &str, &str); 4] = [
    (
        "/",
        "text/html; charset=utf-8",
        "<!doctype html><title>Trial</title><link rel=icon href=\"data:,\"><h1>Trial</h1>\
         <img src=picture.svg width=300 height=200><p id=said></p><script src=script.js></script>",
    ),
    (
        "/script.js",
        "text/javascript",
        "fetch('said.txt').then((answer) => answer.text())\
         .then((said) => { document.getElementById('said').textContent = said; });",
    ),
    (
        "/picture.svg",
        "image/svg+xml",
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 300 200\"><circle cx=\"150\" cy=\"100\" r=\"90\" fill=\"teal\"/></svg>",
    ),
    ("/said.txt", "text/plain", "The script has run."),
];

/// A server that runs until it is ended.
pub struct TrialServer {
    address: SocketAddr,
    is_ending: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl TrialServer {
    pub fn start() -> io::Result<TrialServer> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let is_ending = Arc::new(AtomicBool::new(false));
        let ending = is_ending.clone();
        let thread = thread::spawn(move || {
            for stream in listener.incoming() {
                if ending.load(Ordering::Relaxed) {
                    return;
                }
                thread::spawn(move || stream.and_then(answer));
            }
        });
        Ok(TrialServer { address, is_ending, thread })
    }

    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Closes the port.
    pub fn end(self) {
        self.is_ending.store(true, Ordering::Relaxed);
        // The next connection ends the thread.
        if TcpStream::connect(self.address).is_ok() {
            let _ = self.thread.join();
        }
    }
}

fn answer(mut stream: TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(REQUEST_TIMEOUT))?;
    stream.set_write_timeout(Some(REQUEST_TIMEOUT))?;
    let mut head = Vec::new();
    let mut bytes = BufReader::new(&stream).take(HEAD_MAX_BYTES).bytes();
    while !head.ends_with(b"\r\n\r\n") {
        match bytes.next() {
            Some(byte) => head.push(byte?),
            None => return Ok(()),
        }
    }
    let head = String::from_utf8_lossy(&head);
    let path = head.split(' ').nth(1).unwrap_or_default();
    let found = FILES.iter().find(|(name, ..)| *name == path);
    let (status, kind, body) = match found {
        Some((_, kind, body)) => ("200 OK", *kind, *body),
        None => ("404 Not Found", "text/plain", "not found"),
    };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(server: &TrialServer, path: &str) -> String {
        let mut stream = TcpStream::connect(server.address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn files_are_served_until_the_end() {
        let server = TrialServer::start().unwrap();
        // A connection without a request delays no other.
        let _idle = TcpStream::connect(server.address).unwrap();
        assert!(asked(&server, "/said.txt").ends_with("\r\n\r\nThe script has run."));
        assert!(asked(&server, "/favicon.ico").starts_with("HTTP/1.1 404 "));
        let address = server.address;
        server.end();
        assert!(TcpStream::connect(address).is_err());
    }
}
