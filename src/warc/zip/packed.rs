//! Files in a ZIP file that another program wrote.

use super::read::{Member, directory};
use super::{END, END_BYTES};
use crate::WarcError;
use crate::source::Part;
use std::fs::File;
use std::io::Read;
use std::sync::Arc;

/// Bytes at the end of a document in which its ZIP file may end.
const MARKUP_MAX_BYTES: u64 = 1 << 20;

pub struct PackedFiles {
    members: Vec<Member>,
}

impl PackedFiles {
    /// Reads the directory of a ZIP file; `None` if it has none.
    ///
    /// # Errors
    /// If the file cannot be read, or its directory contradicts it.
    pub fn open(file: File) -> Result<Option<PackedFiles>, WarcError> {
        PackedFiles::in_part(&whole(file)?)
    }

    /// The same for a ZIP file in an HTML document, whose markup goes on behind it: SingleFile writes such
    /// pages, which unpack themselves.
    ///
    /// # Errors
    /// As those of [`PackedFiles::open`].
    pub fn open_in_document(file: File) -> Result<Option<PackedFiles>, WarcError> {
        let whole = whole(file)?;
        let tail = whole.len().min(MARKUP_MAX_BYTES);
        let begin = whole.len() - tail;
        let mut bytes = Vec::new();
        let read = whole.slice(begin, tail).read_to_end(&mut bytes);
        read.map_err(|error| WarcError::io("file", error))?;
        // The end of a directory without a comment, whose length is the last number in it.
        let mark = END.to_le_bytes();
        let ends = bytes
            .windows(END_BYTES)
            .rposition(|end| end.starts_with(&mark) && end.ends_with(&[0, 0]));
        match ends {
            Some(at) => PackedFiles::in_part(&whole.slice(0, begin + (at + END_BYTES) as u64)),
            None => Ok(None),
        }
    }

    fn in_part(part: &Part) -> Result<Option<PackedFiles>, WarcError> {
        let members = directory(part)?;
        Ok(members.map(|members| PackedFiles { members }))
    }

    /// The names of the files, in the order of their places.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.members.iter().map(|member| member.name.as_str())
    }

    /// The content of a file, if there is one of this name.
    ///
    /// # Errors
    /// If it is longer than `most_bytes`, or not what the directory says.
    pub fn read(&self, name: &str, most_bytes: u64) -> Option<Result<Vec<u8>, WarcError>> {
        let member = self.members.iter().find(|member| member.name == name)?;
        Some(member.bytes(most_bytes))
    }
}

fn whole(file: File) -> Result<Part, WarcError> {
    let metadata = file.metadata();
    let bytes = metadata.map_err(|error| WarcError::io("file", error))?.len();
    Ok(Part::new(&Arc::new(file), 0, bytes))
}
