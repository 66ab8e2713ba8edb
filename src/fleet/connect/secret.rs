//! Secrets, which systemd passes as credentials (systemd.exec(5), LoadCredential=).

use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

pub const PASSWORD: &str = "fleet.password";
/// Credential with the certificates of the authorities that the server's certificate may come from.
pub const AUTHORITY: &str = "fleet.ca";

/// What the unit passes instead of a missing file (`SetCredential=`, which cannot be empty).
const NONE: &[u8] = &[0];

/// Longest password, in bytes.
const PASSWORD_MAX: usize = 4096;
/// Most bytes of certificates, as of a credential of systemd.
const AUTHORITIES_MAX: usize = 1 << 20;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Authorities {
    pub(super) name: String,
    /// Content of the file, which may be of another format.
    pub(super) pem: Vec<u8>,
}

/// What the credentials directory of the service contains.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets {
    password: Option<String>,
    authorities: Option<Authorities>,
}

impl Secrets {
    /// Reads the credentials in `$CREDENTIALS_DIRECTORY`; without it, there are none.
    ///
    /// # Errors
    /// If a credential exists and cannot be read, or is no password. The message names the file.
    pub fn read(directory: Option<&Path>) -> io::Result<Secrets> {
        let Some(directory) = directory else {
            return Ok(Secrets::default());
        };
        let file = directory.join(AUTHORITY);
        let name = format!("the credential {}", file.display());
        let authorities = content(&name, &file)?.map(|pem| Authorities { name, pem });
        Ok(Secrets { password: password(&directory.join(PASSWORD))?, authorities })
    }

    /// Reads the credentials that systemd passes to the service.
    ///
    /// # Errors
    /// As of [`Secrets::read`].
    pub fn of_service() -> io::Result<Secrets> {
        let directory = std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from);
        Secrets::read(directory.as_deref())
    }

    /// Reads a password; nothing but the end of the input means that there is none. With
    /// `authorities`, the name of a file, the first line is the password or empty, and the rest is the
    /// content of that file.
    ///
    /// # Errors
    /// If the input cannot be read, or the password is none.
    pub fn from_input(input: impl Read, authorities: Option<&str>) -> io::Result<Secrets> {
        let mut bytes = Vec::new();
        let most = PASSWORD_MAX + 2 + authorities.map_or(0, |_| AUTHORITIES_MAX);
        let read = input.take(most as u64).read_to_end(&mut bytes);
        read.map_err(|error| fail("the password", error.kind(), &error.to_string()))?;
        let authorities = authorities.map(|name| {
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let pem = end.map_or_else(Vec::new, |end| bytes.split_off(end + 1));
            bytes.truncate(end.unwrap_or(bytes.len()));
            let name = name.to_owned();
            Authorities { name, pem }
        });
        let password = if bytes.is_empty() { None } else { Some(line("the password", bytes)?) };
        Ok(Secrets { password, authorities })
    }

    pub(super) fn password(&self) -> Option<&str> {
        self.password.as_deref()
    }

    /// Returns the authorities that the server's certificate may come from.
    pub(super) fn authorities(&self) -> Option<&Authorities> {
        self.authorities.as_ref()
    }
}

/// Never the password.
impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets")
            .field("password", &self.password.as_ref().map(|_| "***"))
            .field("authorities", &self.authorities.as_ref().map(|one| &one.name))
            .finish()
    }
}

/// Returns the password in a file, or `None` if there is no file.
fn password(path: &Path) -> io::Result<Option<String>> {
    let what = format!("the credential {}", path.display());
    let bytes = content(&what, path)?;
    bytes.map(|bytes| line(&what, bytes)).transpose()
}

/// Returns the content of a file, or `None` if there is no file or [`NONE`].
fn content(what: &str, path: &Path) -> io::Result<Option<Vec<u8>>> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes).filter(|bytes| bytes != NONE)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(fail(what, error.kind(), &error.to_string())),
    }
}

/// Returns the only line of a text.
fn line(what: &str, bytes: Vec<u8>) -> io::Result<String> {
    let invalid = |reason| Err(fail(what, io::ErrorKind::InvalidData, reason));
    if bytes.len() > PASSWORD_MAX {
        return invalid("it is too long for a password");
    }
    let Ok(text) = String::from_utf8(bytes) else {
        return invalid("it is not UTF-8");
    };
    let line = text.strip_suffix('\n').unwrap_or(&text);
    if line.is_empty() {
        return invalid("it is empty");
    }
    if line.contains(['\n', '\0']) {
        return invalid("it has more than one line");
    }
    Ok(line.to_owned())
}

fn fail(what: &str, kind: io::ErrorKind, reason: &str) -> io::Error {
    io::Error::new(kind, format!("failed to read {what}: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(content: &[u8]) -> io::Result<Secrets> {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join(PASSWORD), content).unwrap();
        Secrets::read(Some(directory.path()))
    }

    #[test]
    fn a_password_is_one_line_and_never_printed() {
        let secrets = read(b"hunter 2\n").unwrap();
        assert_eq!(secrets.password(), Some("hunter 2"));
        assert!(!format!("{secrets:?}").contains("hunter"));
    }

    #[test]
    fn bad_passwords_are_refused_with_the_name_of_the_file() {
        for bad in [&b""[..], b"\n", b"a\nb\n", b"\xff", &[b'x'; 5000]] {
            let error = read(bad).unwrap_err().to_string();
            assert!(error.contains(PASSWORD), "{error}");
            // Longer than a name that the temporary directory can have by chance.
            assert!(!error.contains(&"x".repeat(16)), "{error}");
        }
    }

    #[test]
    fn a_password_on_standard_input_may_be_left_out() {
        let read = |text: &str| Secrets::from_input(text.as_bytes(), None);
        assert_eq!(read("").unwrap().password(), None);
        assert_eq!(read("hunter 2\n").unwrap().password(), Some("hunter 2"));
        for bad in ["\n", "a\nb\n", &"x".repeat(5000)] {
            let error = read(bad).unwrap_err().to_string();
            assert!(error.contains("the password"), "{error}");
        }
    }

    #[test]
    fn authorities_follow_the_password_on_standard_input() {
        let read = |text: &str| {
            let secrets = Secrets::from_input(text.as_bytes(), Some("ca.pem")).unwrap();
            let authorities = secrets.authorities().unwrap();
            let pem = String::from_utf8(authorities.pem.clone()).unwrap();
            (secrets.password().map(str::to_owned), pem)
        };
        let pem = "a\nb\n".to_owned();
        assert_eq!(read("hunter 2\na\nb\n"), (Some("hunter 2".into()), pem.clone()));
        assert_eq!(read("\na\nb\n"), (None, pem));
        assert_eq!(read(""), (None, String::new()));
    }

    #[test]
    fn no_credentials_are_no_error() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(Secrets::read(None).unwrap(), Secrets::default());
        assert_eq!(Secrets::read(Some(directory.path())).unwrap(), Secrets::default());
        for missing in [PASSWORD, AUTHORITY] {
            std::fs::write(directory.path().join(missing), NONE).unwrap();
        }
        assert_eq!(Secrets::read(Some(directory.path())).unwrap(), Secrets::default());
    }
}
