//! The files of a node: a drop-in of archivist.conf(5), and the password and the certificates of
//! authorities as credentials that only root can read (systemd.exec(5), LoadCredential=).

use super::authorities::Authorities;
use crate::client::exit::Failure;
use archivist_config::Scope;
use archivist_plugin::files::whole::{self, Survives};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

const DROP_IN: &str = "fleet.conf";
const CREDENTIALS: &str = "/etc/credstore";
/// Names of the credentials, as in archivist-fleet.service.
const PASSWORD: &str = "archivist-fleet.password";
const AUTHORITIES: &str = "archivist-fleet.ca";

pub(super) struct Files {
    drop_in: PathBuf,
    password: PathBuf,
    authorities: PathBuf,
}

/// What the files of a node contained; `None` for one that did not exist.
pub(super) struct Contents {
    drop_in: Option<Vec<u8>>,
    password: Option<Vec<u8>>,
    authorities: Option<Vec<u8>>,
}

impl Files {
    pub(super) fn of(scope: &Scope) -> Files {
        let directory = format!("/etc/archivist/{}.d", scope.config_name());
        let credentials = scope.rooted(CREDENTIALS);
        Files {
            drop_in: scope.rooted(directory).join(DROP_IN),
            password: credentials.join(PASSWORD),
            authorities: credentials.join(AUTHORITIES),
        }
    }

    pub(super) fn read(&self) -> Result<Contents, Failure> {
        Ok(Contents {
            drop_in: content(&self.drop_in)?,
            password: content(&self.password)?,
            authorities: content(&self.authorities)?,
        })
    }

    /// Writes all; without a password or authorities, credentials that exist stay.
    pub(super) fn write(
        &self,
        database: &str,
        name: &str,
        password: Option<&str>,
        authorities: Option<&Authorities>,
    ) -> Result<(), Failure> {
        if let Some(password) = password {
            replace_secret(&self.password, format!("{password}\n").as_bytes())?;
        }
        if let Some(authorities) = authorities {
            replace_secret(&self.authorities, &authorities.pem)?;
        }
        let text = format!(
            "# Written by 'archivist fleet', and removed by 'archivist fleet leave'.\n\n[Fleet]\nDatabase={database}\nName={name}\n"
        );
        replace(&self.drop_in, text.as_bytes(), 0o644, 0o755)
    }

    pub(super) fn restore(&self, before: &Contents) -> Result<(), Failure> {
        for (path, content) in
            [(&self.password, &before.password), (&self.authorities, &before.authorities)]
        {
            match content {
                Some(content) => replace_secret(path, content)?,
                None => remove(path)?,
            }
        }
        match &before.drop_in {
            Some(content) => replace(&self.drop_in, content, 0o644, 0o755),
            None => remove(&self.drop_in),
        }
    }

    pub(super) fn remove(&self) -> Result<(), Failure> {
        remove(&self.drop_in)?;
        remove(&self.password)?;
        remove(&self.authorities)
    }

    /// Returns the path of the credential with the authorities.
    pub(super) fn authorities(&self) -> &Path {
        &self.authorities
    }
}

impl Contents {
    pub(super) fn password(&self) -> Option<String> {
        let text = String::from_utf8_lossy(self.password.as_deref()?).into_owned();
        Some(text.trim_end_matches('\n').to_owned())
    }

    pub(super) fn authorities(&self) -> Option<&[u8]> {
        self.authorities.as_deref()
    }
}

fn content(path: &Path) -> Result<Option<Vec<u8>>, Failure> {
    match fs::read(path) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed("read", path, &error)),
    }
}

fn remove(path: &Path) -> Result<(), Failure> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(failed("remove", path, &error))
        }
        _ => Ok(()),
    }
}

fn replace_secret(path: &Path, content: &[u8]) -> Result<(), Failure> {
    replace(path, content, 0o600, 0o700)
}

/// Replaces a file, whose directory is made if necessary. The content is on the disk afterwards.
fn replace(path: &Path, content: &[u8], mode: u32, directory_mode: u32) -> Result<(), Failure> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    let mut builder = DirBuilder::new();
    let made = builder.recursive(true).mode(directory_mode).create(directory);
    made.map_err(|error| failed("make", directory, &error))?;
    whole::replace(path, content, mode, Survives::PowerCut)
        .map_err(|error| failed("write", path, &error))
}

fn failed(verb: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::failed(format!("failed to {verb} '{}': {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_config as config;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn only_root_can_read_the_password() {
        let root = tempfile::tempdir().unwrap();
        let scope = Scope::system(root.path());
        let files = Files::of(&scope);
        let url = "postgresql://db.example/archive";
        for password in ["first", "second"] {
            files.write(url, "web2", Some(password), None).unwrap();
        }
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(fs::read_to_string(&files.password).unwrap(), "second\n");
        assert_eq!(mode(&files.password), 0o600);
        assert_eq!(mode(files.password.parent().unwrap()), 0o700);
        let (settings, warnings) = config::load(&scope).unwrap();
        assert!(warnings.is_empty(), "{warnings:?}");
        assert_eq!(settings.fleet_database, url);
        assert_eq!(settings.node_name().as_deref(), Some("web2"));
        files.remove().unwrap();
        files.remove().unwrap();
        assert!(!config::load(&scope).unwrap().0.is_in_fleet());
        assert!(!files.password.exists());
    }

    #[test]
    fn refused_join_leaves_the_files_as_they_were() {
        let root = tempfile::tempdir().unwrap();
        let files = Files::of(&Scope::system(root.path()));
        let authorities =
            |pem: &str| Authorities { name: "ca.pem".to_owned(), pem: pem.as_bytes().to_vec() };
        let write = |pem: &str| {
            let (password, ca) = (Some("password"), authorities(pem));
            let url = "postgresql://db.example/archive";
            files.write(url, "web2", password, Some(&ca)).unwrap();
        };
        let none = files.read().unwrap();
        write("first");
        let before = files.read().unwrap();
        assert_eq!(before.authorities(), Some(&b"first"[..]));
        write("second");
        files.restore(&before).unwrap();
        assert_eq!(fs::read(files.authorities()).unwrap(), b"first");
        let mode = fs::metadata(files.authorities()).unwrap().permissions();
        assert_eq!(mode.mode() & 0o777, 0o600);
        files.restore(&none).unwrap();
        for path in [&files.drop_in, &files.password, &files.authorities] {
            assert!(!path.exists(), "{}", path.display());
        }
        write("third");
        files.remove().unwrap();
        assert!(!files.authorities.exists());
    }
}
