//! Records of WARC files (ISO 28500:2017): how they are written, and how those of any program are
//! read.

mod read;
mod write;

pub(crate) use read::{Body, Found, Http, Walk, block, essence, open};
pub(crate) use write::{Head, Ids, Written, safe_url, write};

/// Media types of the blocks of requests and responses.
pub(crate) const REQUEST: &str = "application/http; msgtype=request";
pub(crate) const RESPONSE: &str = "application/http; msgtype=response";
/// Media type of blocks that are fields.
pub(crate) const FIELDS: &str = "application/warc-fields";
