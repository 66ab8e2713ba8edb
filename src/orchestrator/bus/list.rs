//! Reads a caller's list of URLs from the descriptor in the call, outside the main loop. The caller
//! controls the other end: it may be slow, never end, or change during the read.

use archivist_core::text::to_lines;
use archivist_shared::bus::callers::Places;
use archivist_shared::bus::documents::bounds::LIST_MAX;
use nix::errno::Errno;
use nix::fcntl::{OFlag, SpliceFFlags, splice};
use nix::sys::socket::{MsgFlags, recv};
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Size above which a list counts as large, in bytes.
const SMALL_MAX: usize = 1 << 20;
/// Time limit for reading a list, including the wait for a slot. The command line sends a list that
/// is complete.
pub const READ_TIME: Duration = Duration::from_secs(60);
/// Size of one read in bytes: the capacity of a pipe.
const PIECE: usize = 64 << 10;

/// A list, with the slots that it occupies until it is dropped.
pub struct List {
    /// Content of the descriptor, at most `LIST_MAX` bytes.
    pub lines: Vec<u8>,
    places: Vec<OwnedSemaphorePermit>,
}

impl List {
    /// The list as lines of UTF-8, and its slots.
    pub fn into_parts(self) -> (Vec<u8>, Vec<OwnedSemaphorePermit>) {
        let lines = match to_lines(&self.lines) {
            Cow::Borrowed(lines) if lines.len() == self.lines.len() => None,
            lines => Some(lines.into_owned()),
        };
        (lines.unwrap_or(self.lines), self.places)
    }

    /// Reserves memory for `size` bytes in total.
    async fn grow(&mut self, size: usize, places: &Places) -> Result<(), String> {
        if size > LIST_MAX {
            return Err(format!("the list is longer than {LIST_MAX} bytes"));
        }
        if size > SMALL_MAX && self.places.len() == 1 {
            self.places.push(place(&places.large).await?);
            self.places.push(place(&places.large_of_all).await?);
        }
        Ok(())
    }
}

async fn place(places: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, String> {
    places.clone().acquire_owned().await.map_err(said)
}

fn said(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Reads a regular file, a pipe or a socket to its end.
///
/// # Errors
/// What it is, when it is nothing of these; that it is too long, or did not end within `limit`.
pub async fn read(urls: OwnedFd, places: &Places, limit: Duration) -> Result<List, String> {
    let reading = async {
        let mut list = List { lines: Vec::new(), places: vec![place(&places.lists).await?] };
        let file = File::from(urls);
        let found = file.metadata().map_err(said)?;
        let kind = found.file_type();
        if kind.is_file() {
            return read_file(file, found.len(), list, places).await;
        }
        let take: Take = match (kind.is_fifo(), kind.is_socket()) {
            (true, _) => Box::new(piped()?),
            (_, true) => Box::new(received),
            _ => return Err("the list is not a file, pipe or socket".to_owned()),
        };
        read_stream(file, take, &mut list, places).await?;
        Ok(list)
    };
    match tokio::time::timeout(limit, reading).await {
        Ok(read) => read,
        Err(_) => Err(format!("the list did not end within {} s", limit.as_secs())),
    }
}

/// The caller may run the file system of the file and never answer: the thread then keeps its slot.
async fn read_file(file: File, size: u64, mut list: List, places: &Places) -> Result<List, String> {
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    list.grow(size, places).await?;
    let reading = tokio::task::spawn_blocking(move || {
        let most = if list.places.len() > 1 { LIST_MAX } else { SMALL_MAX };
        file.take(most as u64 + 1).read_to_end(&mut list.lines)?;
        if list.lines.len() > most {
            Err(io::Error::other("the list grew while it was read"))
        } else {
            Ok(list)
        }
    });
    reading.await.map_err(said)?.map_err(said)
}

/// Appends available data without waiting; returns 0 at the end.
type Take = Box<dyn FnMut(&File, &mut Vec<u8>) -> Result<usize, Errno> + Send>;

/// Through a private pipe: the caller shares the file description and can make read(2) block, but
/// splice(2) has a flag against that.
fn piped() -> Result<impl FnMut(&File, &mut Vec<u8>) -> Result<usize, Errno> + Send, String> {
    let (from, to) = nix::unistd::pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK).map_err(said)?;
    let mut from = File::from(from);
    Ok(move |source: &File, lines: &mut Vec<u8>| {
        let count = splice(source, None, &to, None, PIECE, SpliceFFlags::SPLICE_F_NONBLOCK)?;
        let at = lines.len();
        lines.resize(at + count, 0);
        let read = from.read_exact(&mut lines[at..]);
        read.map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(nix::libc::EIO)))?;
        Ok(count)
    })
}

fn received(source: &File, lines: &mut Vec<u8>) -> Result<usize, Errno> {
    let at = lines.len();
    lines.resize(at + PIECE, 0);
    let count = recv(source.as_raw_fd(), &mut lines[at..], MsgFlags::MSG_DONTWAIT);
    lines.truncate(at + count.unwrap_or(0));
    count
}

async fn read_stream(
    source: File,
    mut take: Take,
    list: &mut List,
    places: &Places,
) -> Result<(), String> {
    #[expect(deprecated, reason = "sound for a File, and what replaces it is unsafe to call")]
    let source = AsyncFd::with_interest(source, Interest::READABLE).map_err(said)?;
    loop {
        list.grow(list.lines.len() + PIECE.min(LIST_MAX - list.lines.len()), places).await?;
        let mut ready = source.readable().await.map_err(said)?;
        match take(source.get_ref(), &mut list.lines) {
            Ok(0) => return Ok(()),
            Ok(_) => list.grow(list.lines.len(), places).await?,
            Err(Errno::EAGAIN) => ready.clear_ready(),
            Err(error) => return Err(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_shared::bus::callers::Callers;
    use std::io::{Seek, Write};
    use std::os::unix::net::UnixStream;

    const LONG: Duration = Duration::from_secs(20);

    async fn of(urls: impl Into<OwnedFd>, limit: Duration) -> Result<Vec<u8>, String> {
        let places = Callers::default().places(Some(1));
        let list = read(urls.into(), &places, limit).await?;
        Ok(list.into_parts().0)
    }

    fn file(text: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text).unwrap();
        file.rewind().unwrap();
        file
    }

    #[tokio::test]
    async fn a_list_of_another_encoding_becomes_utf8() {
        let text = "http://a/\r\nhttp://b/".encode_utf16();
        let text: Vec<u8> = [0xfeff].into_iter().chain(text).flat_map(u16::to_le_bytes).collect();
        assert_eq!(of(file(&text), LONG).await.unwrap(), b"http://a/\nhttp://b/");
    }

    #[tokio::test]
    async fn files_pipes_and_sockets_are_read_to_their_end() {
        let text = b"http://a/\n".repeat(200_000);
        assert_eq!(of(file(&text), LONG).await.unwrap(), text);
        let (from, to) = nix::unistd::pipe().unwrap();
        let sent = text.clone();
        let writing = std::thread::spawn(move || File::from(to).write_all(&sent));
        assert_eq!(of(from, LONG).await.unwrap(), text);
        writing.join().unwrap().unwrap();
        let (ours, theirs) = UnixStream::pair().unwrap();
        let sent = text.clone();
        let writing = std::thread::spawn(move || (&theirs).write_all(&sent));
        assert_eq!(of(ours, LONG).await.unwrap(), text);
        writing.join().unwrap().unwrap();
        let device = File::open("/dev/zero").unwrap();
        assert!(of(device, LONG).await.unwrap_err().contains("not a file, pipe or socket"));
    }

    #[tokio::test]
    async fn a_list_that_does_not_end_times_out() {
        let (from, to) = nix::unistd::pipe().unwrap();
        File::from(to.try_clone().unwrap()).write_all(b"http://a/\n").unwrap();
        let refused = of(from, Duration::from_millis(50)).await.unwrap_err();
        assert!(refused.contains("did not end within"), "{refused}");
        drop(to);
    }

    #[tokio::test]
    async fn a_too_large_list_is_refused_before_reading() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(LIST_MAX as u64 + 1).unwrap();
        assert!(of(file, LONG).await.unwrap_err().contains("longer than"));
    }

    #[tokio::test]
    async fn pipes_that_never_end_do_not_block_another_user() {
        let callers = Callers::default();
        let (hostile, other) = (callers.places(Some(1)), callers.places(Some(2)));
        let (from, to) = nix::unistd::pipe().unwrap();
        let stuck: Vec<_> = (0..8)
            .map(|_| {
                let (from, places) = (from.try_clone().unwrap(), hostile.clone());
                tokio::spawn(async move { read(from, &places, LONG).await.map(|_| ()) })
            })
            .collect();
        tokio::task::yield_now().await;
        let list = read(file(b"http://a/").into(), &other, LONG).await;
        assert_eq!(list.unwrap().lines, b"http://a/");
        assert!(stuck.iter().all(|task| !task.is_finished()));
        drop(to);
        for task in stuck {
            task.await.unwrap().unwrap();
        }
    }
}
