//! The password of the database user: from the terminal, a file, or standard input, never from the
//! arguments, which every user of the machine can read.

use crate::client::exit::Failure;
use console::Term;
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::Path;

/// Longest password, in bytes.
const PASSWORD_MAX: u64 = 4096;
/// The file that means standard input.
const STANDARD_INPUT: &str = "-";

/// Returns the password; `None` if the server requires none. Without `file`, asks on a terminal.
pub(super) fn read(file: Option<&Path>, url: &str) -> Result<Option<String>, Failure> {
    match file {
        Some(file) if file == Path::new(STANDARD_INPUT) => {
            let text = text(io::stdin()).map_err(|error| failed("standard input", &error))?;
            line(&text).map(Some)
        }
        Some(file) => {
            let read = File::open(file).and_then(text);
            let name = format!("'{}'", file.display());
            line(&read.map_err(|error| failed(&name, &error))?).map(Some)
        }
        // The server knows the user of a socket without a password.
        None if is_socket(url) || !io::stdin().is_terminal() => Ok(None),
        None => ask(),
    }
}

fn ask() -> Result<Option<String>, Failure> {
    let failed = |error| failed("the terminal", &error);
    let term = Term::stderr();
    let question = "Password of the database user (empty if it requires none): ";
    term.write_str(question).map_err(failed)?;
    let answer = term.read_secure_line().map_err(failed)?;
    Ok((!answer.is_empty()).then_some(answer))
}

/// Returns whether the server of a URL is reached over a Unix socket.
pub(super) fn is_socket(url: &str) -> bool {
    let host = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    host.starts_with('/') || host.to_ascii_lowercase().starts_with("%2f")
}

fn text(file: impl Read) -> io::Result<String> {
    let mut text = String::new();
    file.take(PASSWORD_MAX + 2).read_to_string(&mut text)?;
    Ok(text)
}

/// Returns the only line of a text.
fn line(text: &str) -> Result<String, Failure> {
    let line = text.strip_suffix('\n').unwrap_or(text);
    let line = line.strip_suffix('\r').unwrap_or(line);
    if line.is_empty() || line.contains(['\n', '\0']) || text.len() as u64 > PASSWORD_MAX {
        return Err(Failure::usage("a password is one line of 4096 bytes at most, and not empty"));
    }
    Ok(line.to_owned())
}

fn failed(what: &str, error: &io::Error) -> Failure {
    Failure::failed(format!("failed to read the password from {what}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::exit::Exit;

    #[test]
    fn a_file_has_the_password_in_its_only_line() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("password");
        let read_file = |content: &[u8]| {
            std::fs::write(&file, content).unwrap();
            read(Some(&file), "postgresql://db.example")
        };
        assert_eq!(read_file(b"hunter 2\n").unwrap().unwrap(), "hunter 2");
        assert_eq!(read_file(b"hunter 2").unwrap().unwrap(), "hunter 2");
        for bad in [&b""[..], b"\n", b"a\nb\n", &[b'x'; 5000]] {
            let failure = read_file(bad).unwrap_err();
            assert_eq!(failure.exit(), Exit::Usage);
            assert!(!failure.message().contains("xx"));
        }
        assert!(read(Some(Path::new("/nonexistent")), "").is_err());
    }

    #[test]
    fn sockets_require_no_password() {
        assert!(is_socket("postgresql://%2Frun%2Fpostgresql/archive"));
        assert!(is_socket("postgresql://me@%2frun%2Fpostgresql/archive"));
        assert!(is_socket("postgresql:///archive?host=/run/postgresql"));
        assert!(!is_socket("postgresql://me@db.example/archive"));
    }
}
