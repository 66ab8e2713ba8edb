//! Files for a reader (`client/reader.rs`) that needs more than one: its standard input is a socket, over which it
//! asks for them, and the command, which may read them, answers with descriptors. A reader gets nothing but what
//! belongs to its job, opened for what the job does with it.

use super::exit::Failure;
use super::reader::Reader;
use archivist_core::lock;
use archivist_core::model::SnapshotId;
use archivist_core::text::clean;
use archivist_hooks::replay::Seed;
use archivist_warc::wacz::Bodies;
use nix::sys::memfd::{MFdFlags, memfd_create};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recv, recvmsg, send, sendmsg,
    socketpair,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Seek, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex};

/// Longest request and longest answer in bytes: a request may have a URL.
const MESSAGE_MAX_BYTES: usize = 16 << 10;
/// Warnings that are printed.
const WARNINGS_MAX: usize = 20;
/// Descriptors of an answer.
const FILES_MAX: usize = 2;
/// First byte of an answer with descriptors, and of one with a reason.
const GIVEN: u8 = b'+';
const REFUSED: u8 = b'-';

/// What a reader may ask for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wanted {
    /// The description of its job.
    Job,
    /// A file of the job, by its number.
    File(usize),
    /// A body next to that file, by its SHA-256 in hex digits. There may be none.
    Body(usize, String),
    /// The file that the job writes.
    Output,
    /// A new file with this name in the directory that the job writes.
    New(String),
    /// An empty file without a name.
    Scratch,
    /// Both ends of the pipe of a browser whose random numbers have this seed. There is one.
    Browser(Option<Seed>),
    /// The snapshots of a URL, first the nearest to a time, as a list of ids.
    Pages(String, String),
    /// The number of the file of a snapshot, if it has a recording.
    Place(SnapshotId),
    /// The same of snapshots of its crawl and host.
    Around(SnapshotId),
}

/// A line of a reader.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Said<T> {
    /// A part of the result.
    Part(T),
    /// What is left out, for the user.
    Warning(String),
    /// Why there is no result, or no more of it.
    Failed(String),
}

/// Lets a reader do a job (`archivist survey --job`). `open` opens what it asks for, and `found` gets the parts of
/// the result, of at most `most` bytes.
///
/// # Errors
/// If the reader fails, or says why there is no result.
pub fn read<T: DeserializeOwned>(
    job: &impl Serialize,
    most: u64,
    mut open: impl FnMut(Wanted) -> io::Result<Vec<OwnedFd>> + Send,
    mut found: impl FnMut(T),
) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::failed(format!("failed to start a reader: {error}"));
    let (own, other) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
            .map_err(|error| failed(error.into()))?;
    let job = File::from(document(job).map_err(failed)?);
    let mut unusable = None;
    let mut warnings = 0;
    let answering = |_| {
        answer(&own, |wanted| match wanted {
            Wanted::Job => Ok(vec![job.try_clone()?.into()]),
            wanted => open(wanted),
        });
    };
    Reader::of_job(other.into())?.lines(most, answering, |line| match line {
        Said::Part(part) => found(part),
        Said::Warning(text) => {
            warnings += 1;
            if warnings <= WARNINGS_MAX {
                eprintln!("{}, ignoring", clean(&text));
            }
        }
        Said::Failed(reason) => unusable = Some(reason),
    })?;
    unusable.map_or(Ok(()), |reason| Err(Failure::failed(clean(&reason))))
}

/// A document of JSON as a file without a name, positioned at its start.
///
/// # Errors
/// If the kernel makes none.
pub fn document(job: &impl Serialize) -> io::Result<OwnedFd> {
    let mut file = scratch()?;
    serde_json::to_writer(&file, job)?;
    file.flush()?;
    file.rewind()?;
    Ok(file.into())
}

/// An empty file in memory.
///
/// # Errors
/// If the kernel makes none.
pub fn scratch() -> io::Result<File> {
    Ok(File::from(memfd_create(c"archivist-reader", MFdFlags::MFD_CLOEXEC)?))
}

/// Answers the requests of a reader until it has ended.
fn answer(socket: &OwnedFd, mut open: impl FnMut(Wanted) -> io::Result<Vec<OwnedFd>>) {
    let mut message = [0; MESSAGE_MAX_BYTES];
    loop {
        let length = match recv(socket, &mut message[..], RecvFlags::empty()) {
            Ok((0, _)) => return,
            Ok((length, _)) => length,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        let wanted = serde_json::from_slice(&message[..length]).map_err(io::Error::from);
        let answered = match wanted.and_then(&mut open) {
            Ok(files) => give(socket, &files),
            Err(error) => {
                let reason = error.to_string();
                let end = reason.floor_char_boundary(MESSAGE_MAX_BYTES / 2);
                let message = [&[REFUSED], &reason.as_bytes()[..end]].concat();
                send(socket, &message, SendFlags::NOSIGNAL).map(drop)
            }
        };
        if answered.is_err() {
            return;
        }
    }
}

fn give(socket: &OwnedFd, files: &[OwnedFd]) -> rustix::io::Result<()> {
    let files: Vec<BorrowedFd<'_>> = files.iter().map(AsFd::as_fd).take(FILES_MAX).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(&files));
    }
    let text = [IoSlice::new(&[GIVEN])];
    sendmsg(socket, &text, &mut control, SendFlags::NOSIGNAL).map(drop)
}

/// The command, as a reader reaches it.
pub struct Caller(Mutex<OwnedFd>);

impl Caller {
    /// The command whose socket is standard input.
    ///
    /// # Errors
    /// If standard input is closed.
    pub fn of_stdin() -> io::Result<Caller> {
        Ok(Caller(Mutex::new(io::stdin().as_fd().try_clone_to_owned()?)))
    }

    /// Asks for descriptors.
    ///
    /// # Errors
    /// The reason of the command, or of the kernel.
    pub fn ask(&self, wanted: &Wanted) -> io::Result<Vec<OwnedFd>> {
        let socket = lock(&self.0);
        send(&*socket, &serde_json::to_vec(wanted)?, SendFlags::NOSIGNAL)?;
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES_MAX))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut text = [0; MESSAGE_MAX_BYTES];
        let mut parts = [IoSliceMut::new(&mut text)];
        let length = recvmsg(&*socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC)?.bytes;
        let rights = control.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(files) => Some(files),
            _ => None,
        });
        let files = rights.flatten().collect();
        match text[..length].split_first() {
            Some((&GIVEN, _)) => Ok(files),
            Some((_, reason)) => Err(io::Error::other(String::from_utf8_lossy(reason))),
            None => Err(ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Asks for one file.
    ///
    /// # Errors
    /// The reason of the command, or of the kernel.
    pub fn file(&self, wanted: &Wanted) -> io::Result<File> {
        let file = self.ask(wanted)?.pop();
        file.map(File::from).ok_or_else(|| ErrorKind::NotFound.into())
    }

    /// Asks for a document.
    ///
    /// # Errors
    /// The reason of the command, or of the kernel.
    pub fn document<T: DeserializeOwned>(&self, wanted: &Wanted) -> io::Result<T> {
        Ok(serde_json::from_reader(self.file(wanted)?)?)
    }

    /// Finds the bodies next to a file of the job.
    pub fn bodies(self: &Arc<Caller>, number: usize) -> Bodies {
        let caller = Arc::clone(self);
        Arc::new(move |hex| {
            let wanted = Wanted::Body(number, hex.to_owned());
            Ok(caller.ask(&wanted)?.pop().map(File::from))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn files_and_reasons_reach_the_reader() {
        let (own, other) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .unwrap();
        let caller = Arc::new(Caller(Mutex::new(other)));
        let mut asked = Vec::new();
        std::thread::scope(|scope| {
            let caller = caller;
            scope.spawn(|| {
                answer(&own, |wanted| {
                    asked.push(wanted.clone());
                    match wanted {
                        Wanted::Job => Ok(vec![document(&"the job")?]),
                        Wanted::Browser(_) => Ok(vec![document(&1)?, document(&2)?]),
                        Wanted::Body(..) => Ok(Vec::new()),
                        _ => Err(io::Error::other("x".repeat(2 * MESSAGE_MAX_BYTES))),
                    }
                })
            });
            let read = |mut file: File| {
                let mut text = String::new();
                file.read_to_string(&mut text).unwrap();
                text
            };
            assert_eq!(read(caller.file(&Wanted::Job).unwrap()), "\"the job\"");
            let both = caller.ask(&Wanted::Browser(None)).unwrap();
            assert_eq!(both.into_iter().map(|fd| read(fd.into())).collect::<String>(), "12");
            assert!(caller.bodies(3)("ab").unwrap().is_none());
            let reason = caller.file(&Wanted::Scratch).unwrap_err().to_string();
            assert!(reason.starts_with("xxx") && reason.len() < MESSAGE_MAX_BYTES, "{reason}");
        });
        assert_eq!(asked[2], Wanted::Body(3, "ab".to_owned()));
    }
}
