//! The headers of a ZIP file that is written.

use super::{
    CENTRAL, CENTRAL_BYTES, END, END64, END64_BYTES, EXTRA_ROOM, EXTRA64, EXTRA64_BYTES, FLAG_UTF8,
    LOCAL, LOCAL_BYTES, LOCATOR64, Method, ROOM_SIGNATURE,
};
use jiff::Timestamp;

/// Versions of the format that a reader must know.
const NEEDS_DEFLATE: u16 = 20;
const NEEDS_64: u16 = 45;
/// A file of Unix, with its permissions.
const MADE_BY: u16 = 3 << 8 | NEEDS_64;
const PERMISSIONS: u32 = 0o100_644 << 16;

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    pub(crate) method: Method,
    pub(crate) crc: u32,
    /// Bytes in the file.
    pub(crate) packed: u64,
    /// Bytes of the content.
    pub(crate) size: u64,
    /// Offset of the local header.
    pub(crate) offset: u64,
}

/// Bytes by which a local header is longer than its name.
pub(crate) const PLACEHOLDER_BYTES: usize = LOCAL_BYTES + 4 + EXTRA64_BYTES as usize;

/// Bytes of an empty [`EXTRA_ROOM`] in the directory. Viewers in browsers (wabac.js) take an entry
/// without extra fields for one whose local header has none, and do not read that header.
const CENTRAL_ROOM_BYTES: usize = 8;

#[derive(Default)]
struct Bytes(Vec<u8>);

impl Bytes {
    fn u16(&mut self, value: u16) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// A value that is in the extra field if 32 bits do not hold it.
    fn short(&mut self, value: u64) {
        self.u32(u32::try_from(value).unwrap_or(u32::MAX));
    }

    fn count(&mut self, value: usize) {
        self.u16(u16::try_from(value).unwrap_or(u16::MAX));
    }
}

fn is_large(value: u64) -> bool {
    value >= u64::from(u32::MAX)
}

/// Date and time in the format of MS-DOS, which begins in 1980.
fn dos_time(time: Timestamp) -> (u16, u16) {
    let time = time.to_zoned(jiff::tz::TimeZone::UTC);
    let year = (time.year() - 1980).clamp(0, 127) as u16;
    let date = year << 9 | (time.month() as u16) << 5 | time.day() as u16;
    let clock =
        (time.hour() as u16) << 11 | (time.minute() as u16) << 5 | (time.second() as u16 / 2);
    (clock, date)
}

/// The header before a member. Its length does not depend on the sizes, so the header can be written
/// before they are known.
pub(crate) fn local_header(entry: &Entry, time: Timestamp) -> Vec<u8> {
    let is_64 = is_large(entry.size) || is_large(entry.packed);
    let short = |value| if is_64 { u64::MAX } else { value };
    let mut header = Bytes::default();
    header.u32(LOCAL);
    header.u16(if is_64 { NEEDS_64 } else { NEEDS_DEFLATE });
    common(&mut header, entry, time);
    header.short(short(entry.packed));
    header.short(short(entry.size));
    header.count(entry.name.len());
    header.u16(4 + EXTRA64_BYTES);
    header.0.extend_from_slice(entry.name.as_bytes());
    if is_64 {
        header.u16(EXTRA64);
        header.u16(EXTRA64_BYTES);
        header.u64(entry.size);
        header.u64(entry.packed);
    } else {
        header.u16(EXTRA_ROOM);
        header.u16(EXTRA64_BYTES);
        header.u16(ROOM_SIGNATURE);
        header.0.resize(PLACEHOLDER_BYTES + entry.name.len(), 0);
    }
    header.0
}

/// Flags, method, time and CRC, which both headers have.
fn common(header: &mut Bytes, entry: &Entry, time: Timestamp) {
    let (clock, date) = dos_time(time);
    header.u16(FLAG_UTF8);
    header.u16(match entry.method {
        Method::Store => 0,
        Method::Deflate => 8,
    });
    header.u16(clock);
    header.u16(date);
    header.u32(entry.crc);
}

/// The directory and the end of a file whose members end at `offset`.
pub(crate) fn ends(entries: &[Entry], offset: u64, time: Timestamp) -> Vec<u8> {
    let mut bytes = Bytes(Vec::with_capacity(entries.len() * (CENTRAL_BYTES + 64)));
    for entry in entries {
        let large = [entry.size, entry.packed, entry.offset];
        let large: Vec<_> = large.into_iter().filter(|value| is_large(*value)).collect();
        bytes.u32(CENTRAL);
        bytes.u16(MADE_BY);
        let is_64 = !large.is_empty();
        bytes.u16(if is_64 { NEEDS_64 } else { NEEDS_DEFLATE });
        common(&mut bytes, entry, time);
        bytes.short(entry.packed);
        bytes.short(entry.size);
        bytes.count(entry.name.len());
        bytes.count(if is_64 { 4 + 8 * large.len() } else { CENTRAL_ROOM_BYTES });
        // comment, disk, internal attributes
        (0..3).for_each(|_| bytes.u16(0));
        bytes.u32(PERMISSIONS);
        bytes.short(entry.offset);
        bytes.0.extend_from_slice(entry.name.as_bytes());
        if is_64 {
            bytes.u16(EXTRA64);
            bytes.count(8 * large.len());
            large.into_iter().for_each(|value| bytes.u64(value));
        } else {
            bytes.u16(EXTRA_ROOM);
            bytes.count(CENTRAL_ROOM_BYTES - 4);
            bytes.u16(ROOM_SIGNATURE);
            bytes.u16(0);
        }
    }
    let size = bytes.0.len() as u64;
    let count = entries.len();
    if is_large(offset) || is_large(size) || count >= usize::from(u16::MAX) {
        bytes.u32(END64);
        bytes.u64(END64_BYTES as u64 - 12);
        bytes.u16(MADE_BY);
        bytes.u16(NEEDS_64);
        // disks
        bytes.u64(0);
        bytes.u64(count as u64);
        bytes.u64(count as u64);
        bytes.u64(size);
        bytes.u64(offset);
        bytes.u32(LOCATOR64);
        bytes.u32(0);
        bytes.u64(offset + size);
        bytes.u32(1);
    }
    bytes.u32(END);
    bytes.u32(0);
    bytes.count(count);
    bytes.count(count);
    bytes.short(size);
    bytes.short(offset);
    bytes.u16(0);
    bytes.0
}
