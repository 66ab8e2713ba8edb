//! `Store=`: where copies go.

use std::fmt;
use std::path::{Path, PathBuf};
use url::Url;

/// What [`Location::parse`] accepts.
pub const LOCATION_ALLOWED: &str = "the absolute path of a directory without '..', \
    ssh://USER@HOST[:PORT]/PATH, or s3://BUCKET[/PREFIX]?endpoint=https://HOST[&region=NAME], \
    without a password";

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A directory of this machine, which may be a network file system.
    Directory(PathBuf),
    /// A directory of another host, over SFTP.
    Ssh(SshLocation),
    /// A bucket of a server that speaks the protocol of S3.
    S3(S3Location),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SshLocation {
    pub user: String,
    /// Name or address of the host.
    pub host: String,
    pub port: u16,
    /// Absolute path of the directory.
    pub path: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct S3Location {
    pub bucket: String,
    /// First part of the names of all objects, without slashes at its ends; may be empty.
    pub prefix: String,
    pub endpoint: String,
    pub region: String,
}

pub const SSH_KEY: &str = "archivist.store.key";
pub const SSH_HOSTS: &str = "archivist.store.hosts";
pub const S3_KEYS: &str = "archivist.store.s3";

const SSH_PORT: u16 = 22;
/// Region of servers that have none.
const REGION: &str = "us-east-1";

impl Location {
    /// Returns the location, or `None` if the text is not what [`LOCATION_ALLOWED`] says.
    pub fn parse(text: &str) -> Option<Location> {
        // A parser of URLs would resolve `..`.
        if text.chars().any(char::is_control) || text.split('/').any(|part| part == "..") {
            return None;
        }
        if text.starts_with('/') {
            return Some(Location::Directory(Path::new(text).components().collect()));
        }
        let url = Url::parse(text).ok()?;
        if url.password().is_some() || url.fragment().is_some() {
            return None;
        }
        match url.scheme() {
            "ssh" => ssh(&url).map(Location::Ssh),
            "s3" => s3(&url).map(Location::S3),
            _ => None,
        }
    }

    /// Returns the directory that a unit must be able to write, if the store is one.
    pub fn directory(&self) -> Option<&Path> {
        match self {
            Location::Directory(path) => Some(path),
            Location::Ssh(_) | Location::S3(_) => None,
        }
    }

    /// Returns the names of the credentials (systemd.exec(5)) that a unit must have to reach the store.
    pub fn credentials(&self) -> &'static [&'static str] {
        match self {
            Location::Directory(_) => &[],
            Location::Ssh(_) => &[SSH_KEY, SSH_HOSTS],
            Location::S3(_) => &[S3_KEYS],
        }
    }
}

/// Letters of names that reach the command line of ssh: a leading dash would be an option.
fn is_word(text: &str) -> bool {
    let fine = |b: u8| b.is_ascii_alphanumeric() || b"._-:[]".contains(&b);
    !text.is_empty() && !text.starts_with('-') && text.bytes().all(fine)
}

/// Whether a path needs no quotes for sftp(1).
fn is_plain_path(text: &str) -> bool {
    let fine = |b: u8| b.is_ascii_alphanumeric() || b"/._-+=,@~%".contains(&b);
    text.bytes().all(fine)
}

fn ssh(url: &Url) -> Option<SshLocation> {
    let host = url.host_str().filter(|host| is_word(host))?;
    let path = url.path().trim_end_matches('/');
    if !is_word(url.username()) || path.is_empty() || !is_plain_path(path) {
        return None;
    }
    Some(SshLocation {
        user: url.username().to_owned(),
        host: host.to_owned(),
        port: url.port().unwrap_or(SSH_PORT),
        path: path.to_owned(),
    })
    .filter(|_| url.query().is_none())
}

fn s3(url: &Url) -> Option<S3Location> {
    let bucket = url.host_str().filter(|bucket| is_word(bucket))?;
    let prefix = url.path().trim_matches('/');
    if !url.username().is_empty() || url.port().is_some() || !is_plain_path(prefix) {
        return None;
    }
    let (mut endpoint, mut region) = (None, REGION.to_owned());
    for (name, value) in url.query_pairs() {
        match &*name {
            "endpoint" => endpoint = Url::parse(&value).ok().filter(is_server),
            "region" if is_word(&value) => region = value.into_owned(),
            _ => return None,
        }
    }
    Some(S3Location {
        bucket: bucket.to_owned(),
        prefix: prefix.to_owned(),
        endpoint: endpoint?.as_str().trim_end_matches('/').to_owned(),
        region,
    })
}

fn is_server(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https")
        && url.host_str().is_some()
        && url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none()
        && url.fragment().is_none()
}

/// As [`Location::parse`] reads it.
impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::Directory(path) => write!(f, "{}", path.display()),
            Location::Ssh(ssh) => {
                write!(f, "ssh://{}@{}", ssh.user, ssh.host)?;
                if ssh.port != SSH_PORT {
                    write!(f, ":{}", ssh.port)?;
                }
                f.write_str(&ssh.path)
            }
            Location::S3(s3) => {
                write!(f, "s3://{}", s3.bucket)?;
                if !s3.prefix.is_empty() {
                    write!(f, "/{}", s3.prefix)?;
                }
                write!(f, "?endpoint={}&region={}", s3.endpoint, s3.region)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_round_trip() {
        for text in [
            "/srv/store",
            "/",
            "ssh://me@nas/srv/pages",
            "ssh://me@[fd00::1]:2222/srv/pages",
            "s3://pages?endpoint=https://s3.example.org&region=us-east-1",
            "s3://pages/a/b?endpoint=http://127.0.0.1:9000&region=eu-central-1",
        ] {
            let location = Location::parse(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(location.to_string(), text);
        }
        let short = Location::parse("ssh://me@nas:22/a/").unwrap();
        assert_eq!(short.to_string(), "ssh://me@nas/a");
    }

    #[test]
    fn passwords_options_and_strange_paths_are_refused() {
        for bad in [
            "",
            "srv/store",
            "/srv/../etc",
            "ssh://nas/srv",
            "ssh://me:secret@nas/srv",
            "ssh://me@-oProxyCommand=x/srv",
            "ssh://me@nas",
            "ssh://me@nas/",
            "ssh://me@nas/a%20b/../c",
            "ssh://me@nas/$(id)",
            "s3://pages",
            "s3://key:secret@pages?endpoint=https://h",
            "s3://pages?endpoint=ftp://h",
            "s3://pages?endpoint=https://k:s@h",
            "s3://pages?endpoint=https://h&acl=public",
            "https://h/x",
        ] {
            assert_eq!(Location::parse(bad), None, "{bad}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics_and_accepted_ones_are_stable(text in "(/|ssh://|s3://)?.{0,60}") {
            if let Some(location) = Location::parse(&text) {
                assert_eq!(Location::parse(&location.to_string()), Some(location));
            }
        }
    }
}
