//! Writes records, each as a gzip member.

use crate::WarcError;
use crate::digest;
use crate::head::{self, Fields, HEAD_MAX_BYTES};
use crate::member::{self, Member, Output};
use jiff::Timestamp;
use sha2::{Digest, Sha256};
use std::io::{self, Read};

const CHUNK_BYTES: usize = 64 << 10;
/// Longest body in bytes whose record is compressed with its head. In the recordings of 9 pages of
/// documentation, records with such bodies had 398 KB with their heads stored, and have 276 KB.
const WHOLE_MAX_BYTES: u64 = 16 << 10;

/// End of a record (ISO 28500, 4.1).
const END: &[u8] = b"\r\n\r\n";

/// Identifiers of records: UUIDs of a random series, in which no two recordings agree.
pub(crate) struct Ids {
    seed: [u8; 16],
    count: u64,
}

impl Ids {
    pub(crate) fn new() -> Result<Ids, WarcError> {
        let mut seed = [0; 16];
        getrandom::fill(&mut seed).map_err(|error| {
            WarcError::io("identifiers of records", io::Error::other(error.to_string()))
        })?;
        Ok(Ids { seed, count: 0 })
    }

    /// The next identifier, as a URI in angle brackets.
    pub(crate) fn next(&mut self) -> String {
        self.count += 1;
        let hash =
            Sha256::new().chain_update(self.seed).chain_update(self.count.to_le_bytes()).finalize();
        let mut hex: String = hash[..16].iter().map(|byte| format!("{byte:02x}")).collect();
        // Version 4 and the variant of RFC 9562.
        hex.replace_range(12..13, "4");
        hex.replace_range(16..17, "a");
        let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
        format!("<urn:uuid:{}>", parts.join("-"))
    }
}

/// What the head of a record says besides digests and length.
pub(crate) struct Head<'a> {
    /// `WARC-Type`.
    pub(crate) kind: &'a str,
    /// `WARC-Record-ID`.
    pub(crate) id: &'a str,
    /// `WARC-Date`.
    pub(crate) time: Timestamp,
    /// `WARC-Target-URI`, empty for a record of the file itself.
    pub(crate) url: &'a str,
    /// `Content-Type`.
    pub(crate) media_type: &'a str,
    /// All others.
    pub(crate) fields: Fields,
}

pub(crate) struct Written {
    /// Digest of the payload, which is the body alone.
    pub(crate) payload: String,
    /// Bytes in the file.
    pub(crate) length: u64,
}

/// A URL that cannot end its line, nor the angle brackets that other programs put around it.
pub(crate) fn safe_url(url: &str) -> String {
    let mut safe = String::with_capacity(url.len());
    for byte in url.bytes() {
        match byte {
            b'<' | b'>' | b'"' | b'\\' | b'^' | b'`' => safe.push_str(&format!("%{byte:02X}")),
            b'!'..=b'~' => safe.push(char::from(byte)),
            _ => safe.push_str(&format!("%{byte:02X}")),
        }
    }
    safe
}

/// Writes a record whose block is `http`, the head of a message or nothing, and `length` bytes of
/// `body`.
pub(crate) fn write(
    output: &mut Output,
    record: &Head<'_>,
    http: &[u8],
    body: &mut dyn Read,
    length: u64,
) -> Result<Written, WarcError> {
    let failed = |error| WarcError::io("recording", error);
    let mut head = b"WARC/1.1\r\n".to_vec();
    head::push(&mut head, "WARC-Type", record.kind);
    head::push(&mut head, "WARC-Record-ID", record.id);
    head::push(&mut head, "WARC-Date", &record.time.to_string());
    // The digests come early, because only the first block of the member can change.
    let room = "-".repeat(digest::TEXT_BYTES);
    head::push(&mut head, "WARC-Block-Digest", &room);
    let block_at = head.len() - digest::TEXT_BYTES - 2;
    // The payload of a revisit is that of another record, and among its fields.
    let has_payload = record.media_type != super::FIELDS && record.kind != "revisit";
    if has_payload {
        head::push(&mut head, "WARC-Payload-Digest", &room);
    }
    let payload_at = head.len() - digest::TEXT_BYTES - 2;
    if !record.url.is_empty() {
        head::push(&mut head, "WARC-Target-URI", record.url);
    }
    for (name, value) in &record.fields {
        head::push(&mut head, name, value);
    }
    head::push(&mut head, "Content-Type", record.media_type);
    let block_length = http.len() as u64 + length;
    head::push(&mut head, "Content-Length", &block_length.to_string());
    head.extend_from_slice(b"\r\n");
    if head.len() > HEAD_MAX_BYTES || http.len() > HEAD_MAX_BYTES {
        let reason = format!("headers are longer than {HEAD_MAX_BYTES} bytes");
        return Err(WarcError::format(&part_of(record.url), reason));
    }
    let start = output.position();
    head.extend_from_slice(http);
    let mut body = Rest {
        body,
        url: record.url,
        length,
        rest: length,
        block: Sha256::new_with_prefix(http),
        payload: Sha256::new(),
    };
    let digests = |body: Rest<'_>| {
        let payload = digest::text(body.payload);
        let mut digests = vec![(block_at, digest::text(body.block))];
        digests.extend(has_payload.then(|| (payload_at, payload.clone())));
        (payload, digests)
    };
    let payload = if length <= WHOLE_MAX_BYTES {
        let begin = head.len();
        head.resize(begin + length as usize, 0);
        body.read(&mut head[begin..])?;
        let (payload, digests) = digests(body);
        for (at, text) in digests {
            head[at..at + text.len()].copy_from_slice(text.as_bytes());
        }
        head.extend_from_slice(END);
        member::write_whole(output, &head).map_err(failed)?;
        payload
    } else {
        let mut member = Member::begin(output, head).map_err(failed)?;
        let mut chunk = vec![0; CHUNK_BYTES];
        while body.rest > 0 {
            let most = body.rest.min(CHUNK_BYTES as u64) as usize;
            body.read(&mut chunk[..most])?;
            member.write(&chunk[..most]).map_err(failed)?;
        }
        let (payload, digests) = digests(body);
        member.finish(END, &digests).map_err(failed)?;
        payload
    };
    let length = output.position() - start;
    Ok(Written { payload, length })
}

/// What was not read yet of the body of a record, and the digests of what was.
struct Rest<'a> {
    body: &'a mut dyn Read,
    url: &'a str,
    length: u64,
    rest: u64,
    block: Sha256,
    payload: Sha256,
}

impl Rest<'_> {
    /// Fills the buffer: small reads would make small blocks.
    fn read(&mut self, buffer: &mut [u8]) -> Result<(), WarcError> {
        let mut count = 0;
        while count < buffer.len() {
            match self.body.read(&mut buffer[count..]) {
                Ok(0) => {
                    let got = self.length - self.rest + count as u64;
                    let reason = format!("ends after {got} of {} bytes", self.length);
                    return Err(WarcError::format(&part_of(self.url), reason));
                }
                Ok(read) => count += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(WarcError::io(&part_of(self.url), error)),
            }
        }
        self.block.update(&*buffer);
        self.payload.update(&*buffer);
        self.rest -= buffer.len() as u64;
        Ok(())
    }
}

fn part_of(url: &str) -> String {
    format!("body of '{url}'")
}
