//! The socket of a browser.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

/// Calls `act` with a short path to the socket: addresses are limited to 107 bytes (unix(7)), and
/// paths of archive directories may be longer.
pub fn through_directory<T>(
    socket: &Path,
    act: impl FnOnce(&Path) -> io::Result<T>,
) -> io::Result<T> {
    let (Some(directory), Some(name)) = (socket.parent(), socket.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let directory = File::open(directory)?;
    let short = format!("/proc/self/fd/{}", directory.as_raw_fd());
    act(&Path::new(&short).join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::visit::SOCKET;
    use std::fs;

    #[test]
    fn sockets_in_directories_with_long_paths_are_reachable() {
        let top = tempfile::tempdir().unwrap();
        let long = top.path().join("d".repeat(200));
        fs::create_dir(&long).unwrap();
        let socket = long.join(SOCKET);
        let listener =
            through_directory(&socket, |path| std::os::unix::net::UnixListener::bind(path));
        let _listener = listener.unwrap();
        assert!(
            through_directory(&socket, |path| std::os::unix::net::UnixStream::connect(path))
                .is_ok()
        );
    }
}
