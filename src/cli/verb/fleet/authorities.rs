//! Certificates of the authorities that the certificate of the database server may come from.
//! `archivist-fleet` parses them.

use crate::client::exit::Failure;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Most bytes of the file: a credential of systemd is limited to 1 MiB.
const BYTES_MAX: u64 = 1 << 20;

#[derive(Debug)]
pub(super) struct Authorities {
    /// Its path, for messages.
    pub(super) name: String,
    pub(super) pem: Vec<u8>,
}

/// Reads a file for connections to the database `url`.
///
/// # Errors
/// If the URL makes the file useless, or the file cannot be read or is too large.
pub(super) fn read(file: &Path, url: &str) -> Result<Authorities, Failure> {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let has = |wanted: &str| query.split('&').any(|part| part.starts_with(wanted));
    if has("sslrootcert=") {
        return Err(Failure::usage(
            "the URL names authorities too: leave out --ca, or sslrootcert= in the URL",
        ));
    }
    if has("sslmode=disable") || super::password::is_socket(url) {
        return Err(Failure::usage("the connection to this URL has no TLS: leave out --ca"));
    }
    let name = file.display().to_string();
    let failed = |reason: &str| {
        Failure::failed(format!("failed to read the certificates of authorities: {name}: {reason}"))
    };
    let pem = File::open(file).and_then(content);
    let pem = pem.map_err(|error| failed(&error.to_string()))?;
    if pem.len() as u64 > BYTES_MAX {
        return Err(failed("the file is larger than 1 MiB"));
    }
    Ok(Authorities { name, pem })
}

fn content(file: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::exit::Exit;

    const URL: &str = "postgresql://archivist@db.example/archive";

    #[test]
    fn file_is_read_up_to_the_size_of_a_credential() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("ca.pem");
        std::fs::write(&file, "certificate").unwrap();
        assert_eq!(read(&file, URL).unwrap().pem, b"certificate");
        std::fs::write(&file, vec![b'x'; 1 << 20]).unwrap();
        assert!(read(&file, URL).is_ok());
        std::fs::write(&file, vec![b'x'; (1 << 20) + 1]).unwrap();
        let large = read(&file, URL).unwrap_err();
        assert!(large.message().ends_with("larger than 1 MiB"), "{large:?}");
        for absent in [Path::new("/nonexistent/ca.pem"), directory.path()] {
            let failure = read(absent, URL).unwrap_err();
            assert_eq!(failure.exit(), Exit::Failed);
            let name = absent.display().to_string();
            assert!(failure.message().contains(&name), "{failure:?}");
        }
    }

    #[test]
    fn urls_that_use_no_such_file_are_refused() {
        for (url, reason) in [
            ("postgresql://db.example/a?sslrootcert=/b", "sslrootcert="),
            ("postgresql://db.example/a?x=1&sslmode=disable", "no TLS"),
            ("postgresql://%2Frun%2Fpostgresql/archive", "no TLS"),
        ] {
            let failure = read(Path::new("/nonexistent"), url).unwrap_err();
            assert_eq!(failure.exit(), Exit::Usage);
            assert!(failure.message().contains(reason), "{failure:?}");
        }
    }
}
