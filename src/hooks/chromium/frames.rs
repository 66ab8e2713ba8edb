//! Messages of the DevTools protocol as chromium's pipe has them: JSON, each ended by a zero byte.

use std::io;
use tokio::io::{AsyncRead, AsyncReadExt};

/// How much of a message that is too large is kept: it begins with its id.
const HEAD: usize = 256;

/// What came.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame {
    /// A whole message, without its zero byte.
    Message(Vec<u8>),
    /// The start of a message above the limit; the rest was read and dropped.
    TooLarge(Vec<u8>),
}

/// Cuts a stream into messages of at most `limit` bytes.
pub struct Frames<R> {
    from: R,
    buffer: Vec<u8>,
    /// As much of the buffer has no zero byte in it.
    searched: usize,
    limit: usize,
    /// The start of the message that is being dropped.
    dropping: Option<Vec<u8>>,
}

impl<R: AsyncRead + Unpin> Frames<R> {
    /// Reads from `from`.
    pub fn new(from: R, limit: usize) -> Frames<R> {
        Frames {
            from,
            buffer: Vec::new(),
            searched: 0,
            limit,
            dropping: None,
        }
    }

    /// The next message; `None` when the stream has ended, whatever was begun by then.
    /// Nothing is lost if the future is dropped before it is ready.
    pub async fn next(&mut self) -> io::Result<Option<Frame>> {
        loop {
            if let Some(frame) = self.cut() {
                return Ok(Some(frame));
            }
            if self.from.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        }
    }

    fn cut(&mut self) -> Option<Frame> {
        let end = self.buffer[self.searched..].iter().position(|b| *b == 0);
        let Some(end) = end.map(|end| self.searched + end) else {
            self.searched = self.buffer.len();
            if self.searched > self.limit || self.dropping.is_some() {
                let kept = &self.buffer[..self.searched.min(HEAD)];
                self.dropping.get_or_insert_with(|| kept.to_vec());
                self.buffer.clear();
                self.searched = 0;
            }
            return None;
        };
        let rest = self.buffer.split_off(end + 1);
        let mut message = std::mem::replace(&mut self.buffer, rest);
        message.truncate(end);
        self.searched = 0;
        Some(match self.dropping.take() {
            Some(head) => Frame::TooLarge(head),
            None if message.len() > self.limit => {
                message.truncate(HEAD);
                Frame::TooLarge(message)
            }
            None => Frame::Message(message),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt;

    async fn all(limit: usize, pieces: &[&[u8]]) -> Vec<Frame> {
        let (mut near, far) = tokio::io::duplex(3);
        let pieces: Vec<Vec<u8>> = pieces.iter().map(|piece| piece.to_vec()).collect();
        let writer = tokio::spawn(async move {
            for piece in pieces {
                near.write_all(&piece).await.unwrap();
            }
        });
        let (mut frames, mut seen) = (Frames::new(far, limit), Vec::new());
        while let Some(frame) = frames.next().await.unwrap() {
            seen.push(frame);
        }
        writer.await.unwrap();
        seen
    }

    fn message(text: &str) -> Frame {
        Frame::Message(text.as_bytes().to_vec())
    }

    #[tokio::test]
    async fn messages_in_any_pieces() {
        let seen = all(20, &[b"{\"a\"", b":1}\0{}\0", b"\0[1]", b"\0half"]).await;
        assert_eq!(
            seen,
            [
                message("{\"a\":1}"),
                message("{}"),
                message(""),
                message("[1]")
            ]
        );
    }

    #[tokio::test]
    async fn what_is_too_large_is_dropped_and_the_next_one_is_read() {
        let large = vec![b'x'; 5000];
        let seen = all(100, &[b"one\0", &large, b"\0two\0"]).await;
        assert_eq!((&seen[0], &seen[2]), (&message("one"), &message("two")));
        assert!(matches!(&seen[1], Frame::TooLarge(head) if head.len() <= HEAD && head[0] == b'x'));
    }
}
