//! Index lines in the order of their keys, of which a look-up reads those near a key.

use super::contents::index_kind;
use super::parts::{IndexPart, Parts};
use crate::cdxj;
use crate::digest;
use crate::source::{Part, read_line};
use crate::zip::{Member, Method};
use flate2::bufread::MultiGzDecoder;
use std::io::{BufReader, Read};

/// Largest list of parts in bytes.
const LIST_MAX_BYTES: u64 = 64 << 20;
/// Largest part of a compressed index in bytes, unpacked.
const PART_MAX_BYTES: u64 = 64 << 20;
/// Bytes in which the lines of a range are looked for one after another.
const NEAR_BYTES: u64 = 16 << 10;
/// Bytes that are read at once to find the begin of a line.
const STEP_BYTES: usize = 4 << 10;

/// An index that is sorted, if it does not lie.
pub(super) struct SortedIndex {
    pub(super) name: String,
    data: Part,
    parts: Option<Parts>,
}

/// Index lines that follow one another.
#[derive(Clone, Debug)]
pub(super) struct LineRange {
    begin: Vec<u8>,
    end: Option<Vec<u8>>,
}

impl LineRange {
    pub(super) fn all() -> LineRange {
        LineRange { begin: Vec::new(), end: None }
    }

    pub(super) fn of_key(key: &str) -> LineRange {
        LineRange::after(key, b' ')
    }

    /// The lines whose key is the place with a query.
    pub(super) fn of_queries(place: &str) -> LineRange {
        LineRange::after(place, b'?')
    }

    /// The lines whose key begins with a text.
    pub(super) fn below(text: &str) -> LineRange {
        let end = [text.as_bytes(), &[u8::MAX]].concat();
        LineRange { begin: text.as_bytes().to_vec(), end: Some(end) }
    }

    fn after(text: &str, next: u8) -> LineRange {
        let with = |last| [text.as_bytes(), &[last]].concat();
        LineRange { begin: with(next), end: Some(with(next + 1)) }
    }

    fn ends_before(&self, line: &[u8]) -> bool {
        self.end.as_ref().is_some_and(|end| line >= &end[..])
    }
}

/// What is called with each line, and with the offset of the line, or of its part.
pub(super) type EachLine<'a> = dyn FnMut(u64, &[u8]) + 'a;

impl SortedIndex {
    /// The indexes of a file, if lines of all of them can be found without reading the others, and if
    /// they have at least so many bytes in the file.
    pub(super) fn of(members: &[Member], least: u64) -> Option<Vec<SortedIndex>> {
        let indexes = members.iter().filter_map(|member| {
            let is_packed = index_kind(member)?;
            Some((member, is_packed))
        });
        let indexes: Vec<_> = indexes.collect();
        let bytes: u64 = indexes.iter().map(|(member, _)| member.data.len()).sum();
        if bytes < least || indexes.iter().any(|(index, _)| index.method != Method::Store) {
            return None;
        }
        let lists = members.iter().filter(|member| {
            let name = member.name.strip_prefix("indexes/");
            name.is_some_and(|name| name.ends_with(".idx"))
        });
        let mut lists: Vec<Parts> = lists.filter_map(parts_of).collect();
        let sorted = indexes.into_iter().map(|(member, is_packed)| {
            let parts = is_packed.then(|| {
                let is_own =
                    |parts: &Parts| member.name.strip_prefix("indexes/") == Some(&parts.filename);
                let own = lists.iter().position(is_own)?;
                let parts = lists.swap_remove(own);
                (parts.bytes() == member.data.len()).then_some(parts)
            });
            Some(SortedIndex {
                name: member.name.clone(),
                data: member.data.clone(),
                parts: match parts {
                    Some(parts) => Some(parts?),
                    None => None,
                },
            })
        });
        sorted.collect()
    }

    /// Reads the lines of a range in their order.
    ///
    /// # Errors
    /// Why the index is not what it seems to be. Lines may be missing then.
    pub(super) fn read(&self, range: &LineRange, each: &mut EachLine<'_>) -> Result<(), String> {
        match &self.parts {
            Some(parts) => self.read_parts(parts, range, each),
            None => self.read_plain(range, each),
        }
    }

    /// Where a line is, for messages.
    pub(super) fn part(&self, at: u64) -> String {
        format!("{} at byte {at}", self.name)
    }

    fn read_parts(
        &self,
        parts: &Parts,
        range: &LineRange,
        each: &mut EachLine<'_>,
    ) -> Result<(), String> {
        let mut order = Order::default();
        for number in parts.range(&range.begin, range.end.as_deref()) {
            let part = &parts.list[number];
            let content = self.unpack(part)?;
            let lines = content.split(|byte| *byte == b'\n');
            let mut lines = lines.filter(|line| !is_empty(line));
            let mut first = lines.clone();
            let is_first = |line: &[u8]| {
                let rest = line.strip_prefix(part.begin.as_bytes());
                rest.is_some_and(|rest| rest.first().is_none_or(|next| b" \r".contains(next)))
            };
            if !first.next().is_some_and(is_first) {
                return Err(format!("the part at byte {} begins with another line", part.offset));
            }
            let next = parts.list.get(number + 1).map(IndexPart::key);
            lines.try_for_each(|line| {
                order.add(line)?;
                if next.is_some_and(|next| next.as_bytes() < key(line)) {
                    return Err(NOT_IN_ORDER.to_owned());
                }
                if line.len() as u64 > cdxj::LINE_MAX_BYTES {
                    return Err(format!("has a line longer than {} bytes", cdxj::LINE_MAX_BYTES));
                }
                if line >= &range.begin[..] && !range.ends_before(line) {
                    each(part.offset, line);
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    fn unpack(&self, part: &IndexPart) -> Result<Vec<u8>, String> {
        let failed = |error: std::io::Error| format!("part at byte {}: {error}", part.offset);
        let mut packed = Vec::new();
        let mut data = self.data.slice(part.offset, part.length);
        data.read_to_end(&mut packed).map_err(failed)?;
        let listed = part.digest.as_deref();
        if listed.and_then(|listed| digest::agree(&digest::of(&packed), listed)) == Some(false) {
            return Err(format!("the part at byte {} has another digest", part.offset));
        }
        let mut content = Vec::new();
        let mut decoder = MultiGzDecoder::new(&packed[..]).take(PART_MAX_BYTES);
        decoder.read_to_end(&mut content).map_err(failed)?;
        if decoder.limit() == 0 {
            return Err(format!("the part at byte {} is too long", part.offset));
        }
        Ok(content)
    }

    fn read_plain(&self, range: &LineRange, each: &mut EachLine<'_>) -> Result<(), String> {
        let mut at = self.before(&range.begin)?;
        let mut content =
            BufReader::with_capacity(NEAR_BYTES as usize, self.data.slice(at, u64::MAX));
        let mut order = Order::default();
        let mut line = Vec::new();
        while read_line(&mut content, cdxj::LINE_MAX_BYTES, &mut line)? {
            if !is_empty(&line) {
                order.add(&line)?;
                if range.ends_before(&line) {
                    break;
                }
                if line >= range.begin {
                    each(at, &line);
                }
            }
            at += line.len() as u64;
        }
        Ok(())
    }

    /// Offset of a line before the first one that is not before `begin`, and near it.
    fn before(&self, begin: &[u8]) -> Result<u64, String> {
        let (mut low, mut high) = (0, self.data.len());
        while !begin.is_empty() && high - low > NEAR_BYTES {
            let middle = low + (high - low) / 2;
            match self.line_after(middle, high)? {
                Some((at, line)) if &line[..] < begin => low = at,
                _ => high = middle,
            }
        }
        Ok(low)
    }

    /// Offset and begin of the first line that begins behind `at` and before `limit`.
    fn line_after(&self, at: u64, limit: u64) -> Result<Option<(u64, Vec<u8>)>, String> {
        let data = self.data.slice(at, cdxj::LINE_MAX_BYTES * 2);
        let mut content = BufReader::with_capacity(STEP_BYTES, data);
        let mut line = Vec::new();
        read_line(&mut content, cdxj::LINE_MAX_BYTES, &mut line)?;
        let mut begin = at + line.len() as u64;
        while begin < limit && read_line(&mut content, cdxj::LINE_MAX_BYTES, &mut line)? {
            if !is_empty(&line) {
                return Ok(Some((begin, line)));
            }
            begin += line.len() as u64;
        }
        Ok(None)
    }
}

const NOT_IN_ORDER: &str = "not in order";

/// Compares the keys of lines that follow one another.
#[derive(Default)]
struct Order(Vec<u8>);

impl Order {
    fn add(&mut self, line: &[u8]) -> Result<(), String> {
        let own = key(line);
        if own < &self.0[..] {
            return Err(NOT_IN_ORDER.to_owned());
        }
        self.0.clear();
        self.0.extend_from_slice(own);
        Ok(())
    }
}

fn is_empty(line: &[u8]) -> bool {
    line.trim_ascii().is_empty()
}

fn key(line: &[u8]) -> &[u8] {
    line.split(|byte| *byte == b' ').next().unwrap_or_default()
}

/// The list of parts in a member, if parts can be found by it.
fn parts_of(member: &Member) -> Option<Parts> {
    let bytes = member.bytes(LIST_MAX_BYTES).ok()?;
    Parts::parse(std::str::from_utf8(&bytes).ok()?).ok()
}

#[cfg(test)]
mod tests;
