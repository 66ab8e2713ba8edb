//! ZIP files, as WACZ uses them (APPNOTE.TXT 6.3.10). The header before the WARC file of a recording
//! precedes its size, and changes when the recording is finished, so that a file that ends at any byte
//! can be completed. The reader believes no place, size or name that the file contradicts.

mod packed;
mod read;
mod write;

pub use packed::PackedFiles;
pub(crate) use read::{Member, directory, first_member};
pub(crate) use write::{Entry, PLACEHOLDER_BYTES, ends, local_header};

const LOCAL: u32 = 0x0403_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const END: u32 = 0x0605_4b50;
const END64: u32 = 0x0606_4b50;
const LOCATOR64: u32 = 0x0706_4b50;

const LOCAL_BYTES: usize = 30;
const CENTRAL_BYTES: usize = 46;
const END_BYTES: usize = 22;
const END64_BYTES: usize = 56;
const LOCATOR64_BYTES: usize = 20;

/// Extra field with the sizes that 32 bits do not hold.
const EXTRA64: u16 = 1;
/// Bytes of [`EXTRA64`] with two sizes.
const EXTRA64_BYTES: u16 = 16;
/// Extra field that is room for another one (the growth hint of Open Packaging Conventions).
const EXTRA_ROOM: u16 = 0xa220;
/// First value of [`EXTRA_ROOM`].
const ROOM_SIGNATURE: u16 = 0xa028;

/// Names are in UTF-8.
const FLAG_UTF8: u16 = 1 << 11;
const FLAG_ENCRYPTED: u16 = 1;

/// The sizes are behind the content.
const FLAG_DESCRIPTOR: u16 = 1 << 3;

/// How the bytes of a member are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Store,
    Deflate,
}

#[cfg(test)]
mod tests;
