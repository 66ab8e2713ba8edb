//! Frames of HTTP/2 (RFC 9113, section 4).

/// Bytes before the payload.
pub const HEADER: usize = 9;
/// Most bytes of a payload: the client announces no other limit.
pub const LONGEST: usize = 16_384;

/// Types of frames (section 6).
pub const DATA: u8 = 0;
/// Headers, or trailers.
pub const HEADERS: u8 = 1;
/// End of a stream with an error.
pub const RST_STREAM: u8 = 3;
/// Settings, or their acknowledgement.
pub const SETTINGS: u8 = 4;
/// An answer that was not requested.
pub const PUSH_PROMISE: u8 = 5;
/// Request for an answer.
pub const PING: u8 = 6;
/// End of the connection for new streams.
pub const GOAWAY: u8 = 7;
/// Permission to send more.
pub const WINDOW_UPDATE: u8 = 8;
/// More headers.
pub const CONTINUATION: u8 = 9;

/// Last frame of the stream; on SETTINGS and PING, an acknowledgement.
pub const END_STREAM: u8 = 1;
/// An acknowledgement.
pub const ACK: u8 = 1;
/// Last frame of the headers.
pub const END_HEADERS: u8 = 4;
/// The payload has padding.
pub const PADDED: u8 = 8;
/// The payload begins with a priority.
pub const PRIORITY: u8 = 32;

/// Error codes (section 7) that the client tells apart.
pub const NO_ERROR: u32 = 0;
/// The server did nothing with the request.
pub const REFUSED_STREAM: u32 = 7;
/// The server wants HTTP/1.1.
pub const HTTP_1_1_REQUIRED: u32 = 13;

/// A frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its type.
    pub kind: u8,
    /// Its flags.
    pub flags: u8,
    /// Number of its stream; 0 is the connection.
    pub stream: u32,
    /// What it carries.
    pub payload: Vec<u8>,
}

impl Frame {
    /// Returns whether all these flags are set.
    pub fn has(&self, flags: u8) -> bool {
        self.flags & flags == flags
    }

    /// Returns the payload without padding and priority, if they fit.
    pub fn content(&self) -> Option<&[u8]> {
        let mut content = self.payload.as_slice();
        if self.has(PADDED) {
            let (length, rest) = content.split_first()?;
            content = rest.get(..rest.len().checked_sub(usize::from(*length))?)?;
        }
        if self.kind == HEADERS && self.has(PRIORITY) {
            content = content.get(5..)?;
        }
        Some(content)
    }

    /// Returns the number at these bytes of the payload.
    pub fn number(&self, at: usize) -> Option<u32> {
        let bytes = self.payload.get(at..at + 4)?;
        Some(u32::from_be_bytes(bytes.try_into().ok()?))
    }

    /// Returns the pairs of a SETTINGS frame.
    pub fn settings(&self) -> impl Iterator<Item = (u16, u32)> {
        self.payload.chunks_exact(6).map(|pair| {
            let key = u16::from_be_bytes([pair[0], pair[1]]);
            (
                key,
                u32::from_be_bytes([pair[2], pair[3], pair[4], pair[5]]),
            )
        })
    }
}

/// Length, type, flags and stream of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// Bytes of the payload.
    pub length: usize,
    /// The type.
    pub kind: u8,
    /// The flags.
    pub flags: u8,
    /// Number of the stream.
    pub stream: u32,
}

impl Start {
    /// Reads the start of a frame, if all of it is there.
    pub fn read(bytes: &[u8]) -> Option<Start> {
        let [a, b, c, kind, flags, d, e, f, g] = *bytes.get(..HEADER)? else {
            return None;
        };
        Some(Start {
            length: u32::from_be_bytes([0, a, b, c]) as usize,
            kind,
            flags,
            stream: u32::from_be_bytes([d, e, f, g]) & 0x7fff_ffff,
        })
    }

    /// Returns whether a server of HTTP/2 may begin with it: SETTINGS, or GOAWAY for a client that
    /// does not speak HTTP/2.
    pub fn is_of_server(&self) -> bool {
        let fits = match self.kind {
            SETTINGS => self.length.is_multiple_of(6) && self.flags == 0,
            GOAWAY => self.length >= 8,
            _ => false,
        };
        fits && self.stream == 0 && self.length <= LONGEST
    }
}

/// Appends a frame. The payload is at most [`LONGEST`].
pub fn put(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    let length = u32::try_from(payload.len()).unwrap_or_default();
    out.extend_from_slice(&length.to_be_bytes()[1..]);
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(payload);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_written_and_read() {
        let mut out = Vec::new();
        put(&mut out, SETTINGS, 0, 0, &[0, 4, 0, 1, 0, 0]);
        let start = Start::read(&out).unwrap();
        assert_eq!((start.length, start.kind, start.stream), (6, SETTINGS, 0));
        assert!(start.is_of_server() && Start::read(&out[..8]).is_none());
        assert!(!Start::read(b"HTTP/1.1 ").unwrap().is_of_server());
        assert!(!Start::read(b"SSH-2.0-O").unwrap().is_of_server());
        let frame = Frame {
            kind: SETTINGS,
            flags: 0,
            stream: 0,
            payload: out[HEADER..].to_vec(),
        };
        assert_eq!(frame.settings().collect::<Vec<_>>(), [(4, 65_536)]);
    }

    #[test]
    fn padding_and_priority_are_left_out() {
        let of = |kind, flags, payload: &[u8]| {
            let frame = Frame {
                kind,
                flags,
                stream: 1,
                payload: payload.to_vec(),
            };
            frame.content().map(<[u8]>::to_vec)
        };
        assert_eq!(of(DATA, PADDED, &[2, b'a', 0, 0]), Some(b"a".to_vec()));
        assert_eq!(
            of(HEADERS, PADDED | PRIORITY, &[1, 0, 0, 0, 0, 9, b'a', 0]),
            Some(b"a".to_vec())
        );
        assert_eq!(of(DATA, PADDED, &[3, 0, 0]), None);
        assert_eq!(of(DATA, PADDED, &[]), None);
        assert_eq!(of(HEADERS, PRIORITY, &[0; 4]), None);
    }
}
