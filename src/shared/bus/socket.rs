//! The socket of the bus itself: whether anybody is there.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use zbus::Address;
use zbus::address::transport::{Transport, UnixSocket};

/// Where the bus is, if it has a path.
pub fn path(user: bool) -> Option<PathBuf> {
    let address = if user {
        Address::session()
    } else {
        Address::system()
    };
    match address.ok()?.transport() {
        Transport::Unix(unix) => match unix.path() {
            UnixSocket::File(path) => Some(path.clone()),
            _ => None,
        },
        _ => None,
    }
}

/// Nobody will ever answer there, unless somebody makes the socket anew. A bus that is restarted is
/// none: systemd keeps its socket, and whoever connects waits.
pub async fn is_silent(path: &Path) -> bool {
    match tokio::net::UnixStream::connect(path).await {
        Ok(_) => false,
        Err(error) => matches!(
            error.kind(),
            ErrorKind::ConnectionRefused | ErrorKind::NotFound
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn silence() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        assert!(is_silent(&path).await, "there is none");
        let listener = tokio::net::UnixListener::bind(&path).unwrap();
        assert!(!is_silent(&path).await, "nobody has to accept");
        drop(listener);
        assert!(is_silent(&path).await, "nobody listens");
    }
}
