//! Web archives of Safari: a property list with the document of the page and its files, binary or XML.
//!
//! Of a binary list only the four values that are needed are read, each by its place. So pictures are
//! never in memory, and objects that refer to each other many times cost nothing.

use super::mhtml::base64_of;
use super::{DOCUMENT_MAX_BYTES, SavedPage, short, with_document};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// First bytes of a binary property list.
pub const MAGIC: &[u8] = b"bplist00";
/// Bytes at its end that say where objects are.
const TRAILER_BYTES: u64 = 32;
/// Entries of a dictionary that are looked at.
const ENTRIES_MAX: u64 = 1000;
const MAIN: &str = "WebMainResource";
const DATA: &str = "WebResourceData";
const NO_ARCHIVE: &str = "it is a property list, but no web archive";

/// Whether a file begins as an XML property list of a web archive.
pub fn is_xml(start: &[u8]) -> bool {
    let start = &start[..start.len().min(4096)];
    let has = |text: &str| crate::page::tags::find(start, text.as_bytes(), 0).is_some();
    has("<plist") && (has("WebMainResource") || has("WebSubresources"))
}

pub fn read(file: &File) -> Result<SavedPage, String> {
    let list = BinaryList::open(file)?;
    let main = list.value(list.top, MAIN)?.ok_or(NO_ARCHIVE)?;
    let text = |name: &str| match list.value(main, name)? {
        Some(object) => list.text(object),
        None => Ok(None),
    };
    let data = list.value(main, DATA)?.ok_or(NO_ARCHIVE)?;
    let (url, kind, encoding) = (
        text("WebResourceURL")?,
        text("WebResourceMIMEType")?,
        text("WebResourceTextEncodingName")?,
    );
    page(url, kind, encoding, &list.data(data)?)
}

pub fn read_xml(bytes: &[u8]) -> Result<SavedPage, String> {
    let text = String::from_utf8_lossy(bytes);
    let main = after_key(&text, MAIN).ok_or(NO_ARCHIVE)?;
    // The dictionary of the main document has no other in it.
    let main = main.split("</dict>").next().unwrap_or(main);
    let string = |name: &str| {
        let value = after_key(main, name)?.trim_start().strip_prefix("<string>")?;
        let value = value.split("</string>").next()?;
        let plain = quick_xml::escape::unescape(value).ok()?;
        short(&plain)
    };
    let data = after_key(main, DATA).and_then(|rest| rest.trim_start().strip_prefix("<data>"));
    let data = data.ok_or(NO_ARCHIVE)?.split("</data>").next();
    page(
        string("WebResourceURL"),
        string("WebResourceMIMEType"),
        string("WebResourceTextEncodingName"),
        &base64_of(data.unwrap_or_default().as_bytes()),
    )
}

fn after_key<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let key = format!("<key>{name}</key>");
    text.split_once(&key).map(|(_, rest)| rest)
}

fn page(
    url: Option<String>,
    kind: Option<String>,
    encoding: Option<String>,
    data: &[u8],
) -> Result<SavedPage, String> {
    let kind = kind.unwrap_or_else(|| "text/html".to_owned());
    if !crate::page::content_type::is_html(&kind) {
        return Err(format!("its document is no HTML page, but '{kind}'"));
    }
    let kind = match encoding {
        Some(encoding) => format!("{kind}; charset={encoding}"),
        None => kind,
    };
    let page = SavedPage {
        format: "web archive of Safari".to_owned(),
        url: url.as_deref().and_then(short),
        ..SavedPage::default()
    };
    Ok(with_document(page, data, &kind))
}

/// A binary property list, of which objects are read by their number.
struct BinaryList<'a> {
    file: &'a File,
    /// Bytes before the trailer.
    bytes: u64,
    /// Bytes of a place, and of a number of an object.
    sizes: (u64, u64),
    objects: u64,
    top: u64,
    table: u64,
}

impl BinaryList<'_> {
    fn open(file: &File) -> Result<BinaryList<'_>, String> {
        let length = file.metadata().map_err(|error| error.to_string())?.len();
        let bytes = length.checked_sub(TRAILER_BYTES).ok_or("it is too short")?;
        let mut trailer = [0; TRAILER_BYTES as usize];
        file.read_exact_at(&mut trailer, bytes).map_err(|error| error.to_string())?;
        let number = |at: usize| whole_number(&trailer[at..at + 8]);
        let list = BinaryList {
            file,
            bytes,
            sizes: (trailer[6].into(), trailer[7].into()),
            objects: number(8),
            top: number(16),
            table: number(24),
        };
        let sizes_fit = |size: u64| (1..=8).contains(&size);
        let end =
            list.objects.checked_mul(list.sizes.0).and_then(|size| size.checked_add(list.table));
        let fits = sizes_fit(list.sizes.0)
            && sizes_fit(list.sizes.1)
            && end.is_some_and(|end| end <= bytes);
        fits.then_some(list).ok_or_else(|| "its end contradicts its length".to_owned())
    }

    /// Some bytes before the trailer.
    fn read(&self, at: u64, count: u64) -> Result<Vec<u8>, String> {
        let end = at.checked_add(count).filter(|end| *end <= self.bytes);
        if end.is_none() {
            return Err("an object of it is outside of the file".to_owned());
        }
        let mut bytes = vec![0; usize::try_from(count).map_err(|error| error.to_string())?];
        let read = self.file.read_exact_at(&mut bytes, at);
        read.map_err(|error| error.to_string())?;
        Ok(bytes)
    }

    /// Kind, number of elements and place of the content of an object.
    fn object(&self, number: u64) -> Result<(u8, u64, u64), String> {
        if number >= self.objects {
            return Err("it refers to an object that it does not have".to_owned());
        }
        let place = self.read(self.table + number * self.sizes.0, self.sizes.0)?;
        let at = whole_number(&place);
        let marker = self.read(at, 1)?[0];
        let (kind, count) = (marker >> 4, u64::from(marker & 0xf));
        if count < 0xf || !matches!(kind, 0x4 | 0x5 | 0x6 | 0xd) {
            return Ok((kind, count, at + 1));
        }
        // The count is an integer of its own.
        let width = self.read(at + 1, 1)?[0];
        if width >> 4 != 1 || width & 0xf > 3 {
            return Err("the length of an object of it is damaged".to_owned());
        }
        let width = 1 << (width & 0xf);
        let count = whole_number(&self.read(at + 2, width)?);
        Ok((kind, count, at + 2 + width))
    }

    /// The number of the object that a dictionary has for a key.
    fn value(&self, dictionary: u64, key: &str) -> Result<Option<u64>, String> {
        let (kind, count, at) = self.object(dictionary)?;
        if kind != 0xd {
            return Err(NO_ARCHIVE.to_owned());
        }
        let size = self.sizes.1;
        for entry in 0..count.min(ENTRIES_MAX) {
            let own = whole_number(&self.read(at + entry * size, size)?);
            if self.text(own)?.as_deref() == Some(key) {
                let place = count
                    .checked_add(entry)
                    .and_then(|entry| entry.checked_mul(size))
                    .and_then(|offset| offset.checked_add(at));
                let place = place.ok_or("a dictionary of it is damaged")?;
                return Ok(Some(whole_number(&self.read(place, size)?)));
            }
        }
        Ok(None)
    }

    /// A short text; `None` if the object is none.
    fn text(&self, object: u64) -> Result<Option<String>, String> {
        let (kind, count, at) = self.object(object)?;
        let most = count.min(super::TEXT_MAX_BYTES as u64);
        Ok(match kind {
            0x5 => Some(String::from_utf8_lossy(&self.read(at, most)?).into_owned()),
            0x6 => {
                let bytes = self.read(at, most * 2)?;
                let units = bytes.chunks_exact(2);
                let units: Vec<u16> =
                    units.map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect();
                Some(String::from_utf16_lossy(&units))
            }
            _ => None,
        })
    }

    fn data(&self, object: u64) -> Result<Vec<u8>, String> {
        let (kind, count, at) = self.object(object)?;
        if kind != 0x4 {
            return Err(NO_ARCHIVE.to_owned());
        }
        // One more, which says that there is more.
        let most = count.min(DOCUMENT_MAX_BYTES as u64 + 1);
        self.read(at, count).or_else(
            |error| {
                if most < count { self.read(at, most) } else { Err(error) }
            },
        )
    }
}

/// A number of up to eight bytes, the highest first.
fn whole_number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| (number << 8) | u64::from(*byte))
}
