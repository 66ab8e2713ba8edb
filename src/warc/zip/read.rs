//! Reads the directory of a ZIP file, and believes nothing that the file does not confirm.

use super::{
    CENTRAL, CENTRAL_BYTES, END, END_BYTES, END64, END64_BYTES, EXTRA64, FLAG_DESCRIPTOR,
    FLAG_ENCRYPTED, LOCAL, LOCAL_BYTES, LOCATOR64, LOCATOR64_BYTES, Method,
};
use crate::WarcError;
use crate::head::shown;
use crate::source::Part;
use flate2::Crc;
use std::collections::BTreeSet;
use std::io::{self, Read};

/// Members of a file that are read.
const MEMBERS_MAX: u64 = 100_000;
/// Largest directory in bytes.
const DIRECTORY_MAX_BYTES: u64 = 64 << 20;
const COMMENT_MAX_BYTES: u64 = 0xffff;

#[derive(Clone)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) method: Method,
    pub(crate) crc: u32,
    /// Bytes of the content, as the directory says.
    pub(crate) size: u64,
    /// The bytes in the file.
    pub(crate) data: Part,
    /// Offsets of the local header and of the end of the data.
    pub(crate) place: (u64, u64),
}

impl Member {
    /// The content. The reader fails if it is longer than the directory says.
    pub(crate) fn content(&self) -> Box<dyn Read + Send> {
        match self.method {
            Method::Store => Box::new(self.data.clone()),
            Method::Deflate => {
                let decoder = flate2::read::DeflateDecoder::new(self.data.clone());
                Box::new(decoder.take(self.size))
            }
        }
    }

    /// All of the content, if it is no longer than `most` bytes.
    pub(crate) fn bytes(&self, most: u64) -> Result<Vec<u8>, WarcError> {
        if self.size > most {
            let reason = format!("has {} bytes, and at most {most} are read", self.size);
            return Err(WarcError::format(&self.name, reason));
        }
        let mut bytes = Vec::new();
        let read = self.content().take(most).read_to_end(&mut bytes);
        read.map_err(|error| WarcError::io(&self.name, error))?;
        if bytes.len() as u64 != self.size {
            let reason = format!("has {} bytes, and the directory says {}", bytes.len(), self.size);
            return Err(WarcError::format(&self.name, reason));
        }
        let mut crc = Crc::new();
        crc.update(&bytes);
        if crc.sum() == self.crc {
            Ok(bytes)
        } else {
            Err(WarcError::format(&self.name, "has another CRC-32 than the directory says"))
        }
    }
}

struct Header<'a>(&'a [u8]);

impl Header<'_> {
    fn u16(&self, at: usize) -> u16 {
        let bytes = self.0.get(at..at + 2);
        bytes.map_or(0, |bytes| u16::from_le_bytes([bytes[0], bytes[1]]))
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from(self.u16(at)) | u32::from(self.u16(at + 2)) << 16
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from(self.u32(at)) | u64::from(self.u32(at + 4)) << 32
    }
}

fn read_at(file: &Part, offset: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    file.slice(offset, length).read_exact(&mut bytes)?;
    Ok(bytes)
}

fn wrong(reason: impl Into<String>) -> WarcError {
    WarcError::format("directory of the ZIP file", reason)
}

fn failed(error: io::Error) -> WarcError {
    WarcError::io("directory of the ZIP file", error)
}

/// Where the directory is: offset, bytes and members.
struct Directory {
    offset: u64,
    size: u64,
    count: u64,
}

/// Finds the directory of a file. `None` if the file has no end, as that of a killed writer.
fn find(file: &Part) -> Result<Option<Directory>, WarcError> {
    let tail = file.len().min(COMMENT_MAX_BYTES + END_BYTES as u64);
    let begin = file.len() - tail;
    let bytes = read_at(file, begin, tail).map_err(failed)?;
    let is_end = |at: &usize| {
        let header = Header(&bytes[*at..]);
        header.u32(0) == END && *at + END_BYTES + usize::from(header.u16(20)) == bytes.len()
    };
    let Some(at) = (0..=bytes.len().saturating_sub(END_BYTES)).rev().find(is_end) else {
        return Ok(None);
    };
    let end = Header(&bytes[at..]);
    let directory = Directory {
        offset: end.u32(16).into(),
        size: end.u32(12).into(),
        count: end.u16(10).into(),
    };
    let end_at = begin + at as u64;
    let is_64 = directory.offset == u64::from(u32::MAX)
        || directory.size == u64::from(u32::MAX)
        || directory.count == u64::from(u16::MAX);
    let Some(locator_at) = end_at.checked_sub(LOCATOR64_BYTES as u64).filter(|_| is_64) else {
        return Ok(Some(directory));
    };
    let locator = read_at(file, locator_at, LOCATOR64_BYTES as u64).map_err(failed)?;
    let locator = Header(&locator);
    if locator.u32(0) != LOCATOR64 {
        return Ok(Some(directory));
    }
    let at = locator.u64(8);
    if at.checked_add(END64_BYTES as u64).is_none_or(|end| end > locator_at) {
        return Err(wrong("its 64-bit end is outside of the file"));
    }
    let end = read_at(file, at, END64_BYTES as u64).map_err(failed)?;
    let end = Header(&end);
    if end.u32(0) != END64 {
        return Err(wrong("its 64-bit end is missing"));
    }
    Ok(Some(Directory { offset: end.u64(48), size: end.u64(40), count: end.u64(32) }))
}

/// The members of a file in the order of their places. `None` if the file has no directory.
///
/// # Errors
/// If the directory contradicts the file or itself, or a name leads out of the archive.
pub(crate) fn directory(file: &Part) -> Result<Option<Vec<Member>>, WarcError> {
    let Some(found) = find(file)? else {
        return Ok(None);
    };
    let end = found.offset.checked_add(found.size);
    if end.is_none_or(|end| end > file.len()) {
        return Err(wrong("is outside of the file"));
    }
    if found.count > MEMBERS_MAX || found.size > DIRECTORY_MAX_BYTES {
        let reason = format!("has {} members in {} bytes", found.count, found.size);
        return Err(wrong(reason));
    }
    let bytes = read_at(file, found.offset, found.size).map_err(failed)?;
    let mut members = Vec::new();
    let mut names = BTreeSet::new();
    let mut at = 0;
    for number in 0..found.count {
        let (member, length) = central(file, bytes.get(at..).unwrap_or_default(), found.offset)
            .map_err(|reason| wrong(format!("member {}: {reason}", number + 1)))?;
        at += length;
        if !names.insert(member.name.clone()) {
            return Err(wrong(format!("has '{}' twice", shown(&member.name))));
        }
        members.push(member);
    }
    members.sort_by_key(|member| member.place);
    for pair in members.windows(2) {
        if pair[0].place.1 > pair[1].place.0 {
            let reason =
                format!("'{}' and '{}' overlap", shown(&pair[0].name), shown(&pair[1].name));
            return Err(wrong(reason));
        }
    }
    Ok(Some(members))
}

/// Reads an entry of the directory, and returns the member with the length of the entry.
fn central(file: &Part, bytes: &[u8], limit: u64) -> Result<(Member, usize), String> {
    let header = Header(bytes);
    if bytes.len() < CENTRAL_BYTES || header.u32(0) != CENTRAL {
        return Err("is missing".to_owned());
    }
    let lengths = [28, 30, 32].map(|at| usize::from(header.u16(at)));
    let length = CENTRAL_BYTES + lengths.iter().sum::<usize>();
    let rest = bytes.get(CENTRAL_BYTES..length).ok_or("is cut off")?;
    let (name, rest) = rest.split_at(lengths[0]);
    let name = std::str::from_utf8(name).map_err(|_| "its name is not UTF-8")?;
    let leads_out = name.starts_with('/')
        || name.contains(['\\', '\0'])
        || name.split('/').any(|part| part == ".." || part == ".");
    if leads_out || name.is_empty() {
        return Err(format!("its name '{}' leads out of the archive", shown(name)));
    }
    let short = [header.u32(24), header.u32(20), header.u32(42)].map(u64::from);
    let [size, packed, offset] = sizes(short, &rest[..lengths[1]])?;
    let in_member = |reason: &str| format!("'{}' {reason}", shown(name));
    if header.u16(8) & FLAG_ENCRYPTED != 0 {
        return Err(in_member("is encrypted"));
    }
    let method = match header.u16(10) {
        0 => Method::Store,
        8 => Method::Deflate,
        other => return Err(in_member(&format!("has the compression {other}"))),
    };
    let begin = local(file, offset, name).map_err(|reason| in_member(&reason))?;
    let end = begin.checked_add(packed).filter(|end| *end <= limit);
    let end = end.ok_or_else(|| in_member("ends behind the begin of the directory"))?;
    if method == Method::Store && size != packed {
        return Err(in_member("is stored with two different sizes"));
    }
    let member = Member {
        name: name.to_owned(),
        method,
        crc: header.u32(16),
        size,
        data: file.slice(begin, packed),
        place: (offset, end),
    };
    Ok((member, length))
}

/// The sizes and the offset of an entry, those of its 64-bit field included.
fn sizes(short: [u64; 3], extra: &[u8]) -> Result<[u64; 3], String> {
    let mut fields = extra;
    let mut long = None;
    while fields.len() >= 4 {
        let header = Header(fields);
        let length = usize::from(header.u16(2));
        let Some(value) = fields.get(4..4 + length) else {
            break;
        };
        if header.u16(0) == EXTRA64 {
            long = Some(value);
        }
        fields = &fields[4 + length..];
    }
    let mut sizes = short;
    let mut at = 0;
    for size in &mut sizes {
        if *size == u64::from(u32::MAX) {
            let Some(long) = long else { continue };
            if long.len() < at + 8 {
                return Err("its 64-bit sizes are cut off".to_owned());
            }
            *size = Header(long).u64(at);
            at += 8;
        }
    }
    Ok(sizes)
}

/// Checks the local header of a member, and returns where its data begin.
fn local(file: &Part, offset: u64, name: &str) -> Result<u64, String> {
    let read = |at, length| read_at(file, at, length).map_err(|_| "begins outside of the file");
    let header = read(offset, LOCAL_BYTES as u64)?;
    let header = Header(&header);
    if header.u32(0) != LOCAL {
        return Err("does not begin where the directory says".to_owned());
    }
    let length = u64::from(header.u16(26));
    let name_at = offset + LOCAL_BYTES as u64;
    if read(name_at, length)? != name.as_bytes() {
        return Err("has another name in its header".to_owned());
    }
    Ok(name_at + length + u64::from(header.u16(28)))
}

/// The header before the first member of a file.
pub(crate) struct First {
    pub(crate) name: String,
    pub(crate) data: u64,
    /// The header has no size, because the writer has not finished.
    pub(crate) is_open: bool,
}

/// Reads the header before the first member of a file.
pub(crate) fn first_member(file: &Part) -> Option<First> {
    let header = read_at(file, 0, LOCAL_BYTES as u64).ok()?;
    let header = Header(&header);
    let length = u64::from(header.u16(26));
    let name = read_at(file, LOCAL_BYTES as u64, length).ok()?;
    let first = First {
        name: String::from_utf8(name).ok()?,
        data: LOCAL_BYTES as u64 + length + u64::from(header.u16(28)),
        is_open: header.u64(18) == 0 && header.u16(6) & FLAG_DESCRIPTOR == 0,
    };
    (header.u32(0) == LOCAL).then_some(first)
}
