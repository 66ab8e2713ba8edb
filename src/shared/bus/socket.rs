//! The socket of the bus: whether a bus listens on it.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use zbus::Address;
use zbus::address::transport::{Transport, UnixSocket};

/// Path of the bus, if its address has one.
pub fn path(user: bool) -> Option<PathBuf> {
    let address = if user { Address::session() } else { Address::system() };
    match address.ok()?.transport() {
        Transport::Unix(unix) => match unix.path() {
            UnixSocket::File(path) => Some(path.clone()),
            _ => None,
        },
        _ => None,
    }
}

/// Returns whether the socket is dead: no process will answer on it, even after a wait. A
/// restarting bus is not dead: systemd keeps its socket, and clients wait.
pub async fn is_silent(path: &Path) -> bool {
    match tokio::net::UnixStream::connect(path).await {
        Ok(_) => false,
        Err(error) => matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotFound),
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
        assert!(!is_silent(&path).await, "a listening socket is not silent before accept(2)");
        drop(listener);
        assert!(is_silent(&path).await, "no process listens");
    }
}
