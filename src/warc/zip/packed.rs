//! Files in a ZIP file that another program wrote.

use super::read::{Member, directory};
use crate::WarcError;
use crate::source::Part;
use std::fs::File;
use std::sync::Arc;

/// The files in a ZIP file.
pub struct PackedFiles {
    members: Vec<Member>,
}

impl PackedFiles {
    /// Reads the directory of a ZIP file; `None` if it has none.
    ///
    /// # Errors
    /// If the file cannot be read, or its directory contradicts it.
    pub fn open(file: File) -> Result<Option<PackedFiles>, WarcError> {
        let metadata = file.metadata();
        let bytes = metadata
            .map_err(|error| WarcError::io("file", error))?
            .len();
        let members = directory(&Part::new(&Arc::new(file), 0, bytes))?;
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
