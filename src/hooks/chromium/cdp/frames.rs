//! Framing of the DevTools protocol on chromium's pipe: JSON messages, each terminated by a NUL
//! byte.

use std::io;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Bytes that are kept of a message above the limit: enough for its id.
const KEPT_START_BYTES: usize = 256;

#[derive(Debug, PartialEq, Eq)]
pub enum Frame {
    /// A complete message without its NUL byte.
    Message(Vec<u8>),
    /// The start of a message above the limit. The rest was discarded.
    TooLarge(Vec<u8>),
}

/// Splits a stream into messages of at most `limit` bytes.
pub struct Frames<R> {
    from: R,
    buffer: Vec<u8>,
    /// Number of bytes of the buffer that are known to contain no NUL byte.
    searched: usize,
    limit: usize,
    /// The start of the message that is being discarded.
    dropping: Option<Vec<u8>>,
}

impl<R: AsyncRead + Unpin> Frames<R> {
    /// Creates a reader of `from`.
    pub fn new(from: R, limit: usize) -> Frames<R> {
        Frames { from, buffer: Vec::new(), searched: 0, limit, dropping: None }
    }

    /// Returns the next message, or `None` at the end of the stream, which discards an incomplete
    /// message. Cancel safe: no data is lost if the future is dropped.
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
        let offset = self.buffer[self.searched..].iter().position(|b| *b == 0);
        let Some(end) = offset.map(|offset| self.searched + offset) else {
            self.searched = self.buffer.len();
            if self.searched > self.limit || self.dropping.is_some() {
                let kept = &self.buffer[..self.searched.min(KEPT_START_BYTES)];
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
                message.truncate(KEPT_START_BYTES);
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
    async fn messages_are_split_at_any_read_boundary() {
        let seen = all(20, &[b"{\"a\"", b":1}\0{}\0", b"\0[1]", b"\0half"]).await;
        assert_eq!(seen, [message("{\"a\":1}"), message("{}"), message(""), message("[1]")]);
    }

    #[tokio::test]
    async fn oversized_message_is_dropped_and_the_next_one_is_read() {
        let large = vec![b'x'; 5000];
        let seen = all(100, &[b"one\0", &large, b"\0two\0"]).await;
        assert_eq!((&seen[0], &seen[2]), (&message("one"), &message("two")));
        assert!(
            matches!(&seen[1], Frame::TooLarge(head) if head.len() <= KEPT_START_BYTES && head[0] == b'x')
        );
    }
}
