//! Starts the sonic search server that a hook of a crawl's setup requested, or that a plugin
//! expects, unless a server already answers. The server replaces this process, so that it receives the signals of the hook. If the
//! index belongs to the archive, the crawl uses the archive's server instead.

use super::{sonic_config, sonic_index};
use crate::process::finding;
use crate::process::finding::Finding;
use crate::process::invocation::{Invocation, argument};
use std::io::{BufRead, BufReader, Read};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

/// Time limit for the greeting of a running server.
const GREETING_TIMEOUT: Duration = Duration::from_millis(500);

/// Reads `--config=`, `--host=` and `--port=`; without `--config=`, writes a configuration. The
/// program is the setting SONIC_BINARY of the plugin that needs the server.
pub fn main(args: &[String], invocation: &Invocation) -> Finding {
    let given = |name| argument(args, name).unwrap_or_default();
    let Ok(port) = given("port").parse() else {
        return Finding::failed("the argument --port= is missing or not a port");
    };
    let config = match argument(args, "config") {
        Some(config) => config.to_owned(),
        None => match sonic_config::write(given("host"), port, &invocation.settings) {
            Ok(path) => path.to_string_lossy().into_owned(),
            Err(error) => {
                let what = "failed to write the configuration of the server";
                return Finding::failed(format!("{what}: {error}"));
            }
        },
    };
    if let Some(socket) = sonic_index::socket_for(&config) {
        return sonic_index::forward(given("host"), port, &socket);
    }
    let configured = invocation.settings.variable("SONIC_BINARY");
    let program = configured.unwrap_or("sonic");
    run(&config, given("host"), port, program)
}

/// Executes the server in place of this process. Returns only if that is not possible or not
/// needed.
fn run(config: &str, host: &str, port: u16, program: &str) -> Finding {
    if answers(host, port) {
        return Finding::noresults(format!("a server already answers at {host}:{port}"));
    }
    finding::progress(&format!("starting {program} for {host}:{port}"));
    let error = Command::new(program).args(["-c", config]).exec();
    match error.kind() {
        std::io::ErrorKind::NotFound => Finding::skipped(format!(
            "{program} is not installed; see: archivist plugins --binaries"
        )),
        _ => Finding::failed(format!("failed to start {program}: {error}")),
    }
}

fn answers(host: &str, port: u16) -> bool {
    let Ok(addresses) = (host, port).to_socket_addrs() else {
        return false;
    };
    let mut streams = addresses
        .take(2)
        .filter_map(|address| TcpStream::connect_timeout(&address, GREETING_TIMEOUT).ok());
    streams.any(|stream| greets(&stream))
}

fn greets(stream: &TcpStream) -> bool {
    let mut line = Vec::new();
    let _ = stream.set_read_timeout(Some(GREETING_TIMEOUT));
    let mut reader = BufReader::new(stream.take(1024));
    reader.read_until(b'\n', &mut line).is_ok() && line.starts_with(b"CONNECTED")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::finding::EXIT_SKIPPED;
    use std::io::Write;
    use std::net::TcpListener;

    fn serve(greeting: &'static [u8]) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(greeting).unwrap();
        });
        port
    }

    #[test]
    fn running_server_is_used() {
        let port = serve(b"CONNECTED <sonic-server v1.4.9>\r\n");
        let finding = run("/none", "127.0.0.1", port, "/no/such/program");
        assert_eq!(finding.exit_code(), 0);
        assert!(finding.output_str.contains("already"));
    }

    #[test]
    fn other_service_on_the_port_is_not_a_server() {
        assert!(!answers("127.0.0.1", serve(b"HTTP/1.1 200 OK\r\n")));
        assert!(!answers("127.0.0.1", serve(b"")));
        assert!(!answers("no such host", 1));
    }

    #[test]
    fn missing_program_is_skipped() {
        let port = serve(b"");
        let finding = run("/none", "127.0.0.1", port, "/no/such/program");
        assert_eq!(finding.exit_code(), EXIT_SKIPPED);
        assert!(finding.output_str.contains("/no/such/program"));
    }
}
