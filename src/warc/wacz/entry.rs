//! Index lines whose records are in the file.

use super::read::Warc;
use crate::cdxj::Line;
use jiff::Timestamp;

pub(super) const REVISIT: &str = "warc/revisit";

pub(super) const TEXT: &str = "urn:text:";
/// Bytes of a page's text that are read.
pub(super) const TEXT_MAX_BYTES: u64 = 16 << 20;

/// An index line: where the record of a URL is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// URL of the request, or of a resource.
    pub url: String,
    /// The URL in sort-friendly form (SURT).
    pub key: String,
    /// Method of the request in upper case.
    pub method: String,
    /// When the request was sent.
    pub time: Timestamp,
    /// Status code, if the record is that of a response.
    pub status: Option<u16>,
    /// Media type without parameters.
    pub media_type: String,
    /// Digest of the body, such as `sha256:…`.
    pub digest: Option<String>,
    /// The posted body in the form that CDXJ files have.
    pub posted: Option<String>,
    /// Number of the WARC file within the WACZ.
    pub(crate) warc: usize,
    /// Offset of the record in the WARC file.
    pub(crate) offset: u64,
    /// Bytes of the record in the WARC file.
    pub(crate) length: u64,
}

impl Entry {
    /// Returns the entry of a line, whose file is the one with this number, or else the one that the
    /// line names. `None` if the record is one about the WARC file itself.
    ///
    /// # Errors
    /// The reason why the line cannot be used.
    pub(super) fn of(
        line: Line,
        warcs: &[Warc],
        warc: Option<usize>,
    ) -> Result<Option<Entry>, String> {
        let record = line.record;
        if record.url.is_empty() {
            return Ok(None);
        }
        let is_file = |warc: &Warc| {
            let name = record.filename.trim_start_matches("archive/");
            warc.name == record.filename || warc.name.strip_prefix("archive/") == Some(name)
        };
        let Some(warc) = warc.or_else(|| warcs.iter().position(is_file)) else {
            return Err(format!("no WARC file '{}'", record.filename));
        };
        let bytes = warcs[warc].data.len();
        let offset = record.offset.unwrap_or(u64::MAX);
        let length = record.length.unwrap_or(bytes.saturating_sub(offset));
        if length == 0 || offset.checked_add(length).is_none_or(|end| end > bytes) {
            return Err(format!(
                "record at byte {offset} with {length} bytes is outside of its file, which has {bytes}"
            ));
        }
        let method = record.method.map(|name| name.to_ascii_uppercase());
        Ok(Some(Entry {
            url: record.url,
            key: line.key,
            method: method.unwrap_or("GET".to_owned()),
            time: line.time,
            status: record.status.and_then(|status| u16::try_from(status).ok()),
            media_type: record.mime.unwrap_or_default(),
            digest: record.digest,
            posted: record.posted,
            warc,
            offset,
            length,
        }))
    }
}
