//! Reads and cleans the WARC file that wget wrote (ISO 28500): one record per gzip member.
//!
//! The file says which URL had which response, where the log of wget only names files.

use super::body::{self, Headers};
use crate::page::secrets::LeftOut;
use crate::process::files::MODE;
use archivist_plugin::files::whole::{Survives, Whole};
use archivist_warc::head;
use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Records of a file that are read.
const RECORDS_MAX: usize = 50_000;

#[derive(Debug, Clone)]
pub struct Response {
    pub url: String,
    pub status: u16,
    /// Headers of the response; names are in lower case.
    pub headers: Headers,
    /// Offset of the record's gzip member.
    at: u64,
}

impl Response {
    /// Value of the first header with this name, which must be in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        head::value(&self.headers, name)
    }

    /// Media type in lower case, without parameters.
    pub fn media_type(&self) -> String {
        let value = self.header("content-type").unwrap_or_default();
        let essence = value.split(';').next().unwrap_or_default();
        essence.trim().to_ascii_lowercase()
    }
}

#[derive(Debug)]
pub struct Warc {
    file: PathBuf,
    pub responses: Vec<Response>,
    requests: HashMap<String, Headers>,
    has_secrets: bool,
    /// End of the last complete record; what follows was cut off.
    end: u64,
}

/// Counts the bytes that a reader consumes.
struct Counted<R> {
    inner: R,
    offset: u64,
}

impl<R: BufRead> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.offset += count as u64;
        Ok(count)
    }
}

impl<R: BufRead> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        self.offset += count as u64;
        self.inner.consume(count);
    }
}

impl Warc {
    /// Reads the headers of all records. A record that was cut off ends the file.
    pub fn read(file: &Path) -> io::Result<Warc> {
        let mut source = Counted { inner: BufReader::new(File::open(file)?), offset: 0 };
        let mut warc = Warc {
            file: file.to_owned(),
            responses: Vec::new(),
            requests: HashMap::new(),
            has_secrets: false,
            end: 0,
        };
        for _ in 0..RECORDS_MAX {
            if source.fill_buf()?.is_empty() || warc.record(&mut source).is_err() {
                break;
            }
            warc.end = source.offset;
        }
        Ok(warc)
    }

    fn record(&mut self, source: &mut Counted<impl BufRead>) -> io::Result<()> {
        let at = source.offset;
        let mut record = BufReader::new(GzDecoder::new(source));
        let head = read_head(&mut record)?;
        let (_, fields) = body::parse_head(&head);
        let field = |name| head::value(&fields, name).unwrap_or_default();
        let url = || field("warc-target-uri").trim_matches(['<', '>']).to_owned();
        let mut response = None;
        match field("warc-type") {
            "request" => {
                let request = read_head(&mut record)?;
                let (_, headers) = body::parse_head(&request);
                self.has_secrets |= headers.iter().any(|(name, _)| LeftOut::ALL.has(name));
                self.requests.insert(url(), headers);
            }
            "response" => {
                let head = read_head(&mut record)?;
                let (status, headers) = body::parse_head(&head);
                self.has_secrets |= headers.iter().any(|(name, _)| LeftOut::ALL.has(name));
                response = Some(Response { url: url(), status, headers, at });
            }
            _ => {}
        }
        io::copy(&mut record, &mut io::sink())?;
        self.responses.extend(response);
        Ok(())
    }

    /// Headers of the last request for a URL, with names in lower case.
    pub fn request(&self, url: &str) -> Headers {
        self.requests.get(url).cloned().unwrap_or_default()
    }

    /// Body of a response without the encodings in which the server sent it. Fails for encodings
    /// that are not supported.
    pub fn body(&self, response: &Response) -> io::Result<Box<dyn Read + Send>> {
        body::decoded(Box::new(self.block(response)?), &response.headers)
    }

    /// Whether the server sent the whole body of a response.
    pub fn is_whole(&self, response: &Response) -> io::Result<bool> {
        body::is_whole(self.block(response)?, &response.headers)
    }

    /// Body of a response as it was sent.
    fn block(&self, response: &Response) -> io::Result<impl Read + Send + use<>> {
        let mut file = File::open(&self.file)?;
        file.seek(SeekFrom::Start(response.at))?;
        let mut record = BufReader::new(GzDecoder::new(BufReader::new(file)));
        let head = read_head(&mut record)?;
        let (_, fields) = body::parse_head(&head);
        let length = head::value(&fields, "content-length").and_then(|text| text.parse().ok());
        let mut block = record.take(length.unwrap_or(u64::MAX));
        read_head(&mut block)?;
        Ok(block)
    }

    /// Removes what was cut off at the end.
    pub fn cut(&self) -> io::Result<()> {
        let file = File::options().write(true).open(&self.file)?;
        if self.end < file.metadata()?.len() {
            file.set_len(self.end)?;
        }
        Ok(())
    }

    /// Removes what was cut off at the end, and headers that are left out. Records without such headers
    /// stay as they are, to the byte.
    pub fn clean(&self, left_out: LeftOut) -> io::Result<()> {
        self.cut()?;
        if !self.has_secrets {
            return Ok(());
        }
        let whole = Whole::at(&self.file, MODE)?;
        self.copy_cleaned(whole.file(), left_out)?;
        whole.place(Survives::PowerCut)
    }

    fn copy_cleaned(&self, to: &File, left_out: LeftOut) -> io::Result<()> {
        let mut out = io::BufWriter::new(to);
        let mut raw = File::open(&self.file)?;
        let mut source = Counted { inner: BufReader::new(File::open(&self.file)?), offset: 0 };
        while source.offset < self.end {
            let at = source.offset;
            let mut record = BufReader::new(GzDecoder::new(&mut source));
            let head = read_head(&mut record)?;
            let (_, fields) = body::parse_head(&head);
            let mut cleaned = None;
            if matches!(head::value(&fields, "warc-type"), Some("request" | "response")) {
                cleaned = read_head(&mut record).ok().and_then(|message| {
                    let kept = without(&message, left_out)?;
                    Some([shortened(&head, message.len() - kept.len())?, kept].concat())
                });
            }
            if let Some(heads) = cleaned {
                let mut encoder = GzEncoder::new(&mut out, Compression::default());
                encoder.write_all(&heads)?;
                io::copy(&mut record, &mut encoder)?;
                encoder.finish()?;
            } else {
                io::copy(&mut record, &mut io::sink())?;
                raw.seek(SeekFrom::Start(at))?;
                io::copy(&mut (&raw).take(source.offset - at), &mut out)?;
            }
        }
        out.flush()
    }
}

/// The head of a message or record.
fn read_head(source: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let head = head::read(source)?;
    if head.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(head)
}

/// The head of a message without headers that are left out; `None` if it has none.
fn without(head: &[u8], left_out: LeftOut) -> Option<Vec<u8>> {
    let mut kept = Vec::new();
    let mut is_dropped = false;
    for line in head.split_inclusive(|byte| *byte == b'\n') {
        let is_continued = matches!(line.first(), Some(b' ' | b'\t'));
        if !is_continued {
            let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
            is_dropped = left_out.has(String::from_utf8_lossy(name).trim());
        }
        if !is_dropped {
            kept.extend_from_slice(line);
        }
    }
    (kept.len() < head.len()).then_some(kept)
}

/// The head of a record whose block is `less` bytes shorter. It has no digest of the block any more; that of
/// the body is still true.
fn shortened(head: &[u8], less: usize) -> Option<Vec<u8>> {
    let mut record = Vec::new();
    let mut is_known = false;
    for line in String::from_utf8_lossy(head).lines() {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        match name.to_ascii_lowercase().as_str() {
            "warc-block-digest" => {}
            "content-length" => {
                let length = value.trim().parse::<usize>().ok()?.checked_sub(less)?;
                record.extend(format!("{name}: {length}\r\n").into_bytes());
                is_known = true;
            }
            _ => record.extend(format!("{line}\r\n").into_bytes()),
        }
    }
    is_known.then_some(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of a WARC file with these records, each as (type, block).
    fn file(records: &[(&str, &str)]) -> Vec<u8> {
        let mut out = Vec::new();
        for (kind, block) in records {
            let record = format!(
                "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: <http://a.test/x?y>\r\n\
                 WARC-Block-Digest: sha1:OLD\r\nContent-Length: {}\r\n\r\n{block}\r\n\r\n",
                block.len()
            );
            let mut encoder = GzEncoder::new(&mut out, Compression::default());
            encoder.write_all(record.as_bytes()).unwrap();
            encoder.finish().unwrap();
        }
        out
    }

    const REQUEST: &str = "GET / HTTP/1.1\r\nHost: a.test\r\nAuthorization: Basic c2VjcmV0\r\n\
        Cookie: a=c2VjcmV0\r\nAccept: */*\r\n\r\n";
    const RESPONSE: &str = "HTTP/1.1 200 OK\r\nContent-Type: Text/HTML; charset=x\r\n\
        Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";

    fn text_of(path: &Path) -> String {
        let mut text = String::new();
        flate2::read::MultiGzDecoder::new(File::open(path).unwrap())
            .read_to_string(&mut text)
            .unwrap();
        text
    }

    #[test]
    fn responses_are_read_with_their_bodies() {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("page.warc.gz");
        std::fs::write(
            &path,
            file(&[("warcinfo", "x"), ("request", REQUEST), ("response", RESPONSE)]),
        )
        .unwrap();
        let warc = Warc::read(&path).unwrap();
        let response = &warc.responses[0];
        assert_eq!((response.url.as_str(), response.status), ("http://a.test/x?y", 200));
        assert_eq!(response.media_type(), "text/html");
        let mut text = String::new();
        warc.body(response).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "abcde");
    }

    #[test]
    fn secrets_are_removed_and_other_records_are_unchanged() {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("page.warc.gz");
        let others = file(&[("response", RESPONSE)]);
        let secret = RESPONSE.replace("Transfer", "Set-Cookie: a=c2VjcmV0;\r\n path=/\r\nTransfer");
        let whole = [file(&[("request", REQUEST), ("response", &secret)]), others.clone()].concat();
        // The file was cut off within a third record.
        std::fs::write(&path, [&whole[..], &others[..20]].concat()).unwrap();
        let warc = Warc::read(&path).unwrap();
        assert!(warc.has_secrets);
        warc.clean(LeftOut::NONE).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), whole, "only what was cut off is gone");
        warc.clean(LeftOut::ALL).unwrap();
        let text = text_of(&path);
        let block = "GET / HTTP/1.1\r\nHost: a.test\r\nAccept: */*\r\n\r\n";
        for block in [block, RESPONSE] {
            let record = format!("Content-Length: {}\r\n\r\n{block}\r\n\r\n", block.len());
            assert!(text.contains(&record), "{text}");
        }
        assert!(!text.contains("c2VjcmV0"), "{text}");
        assert_eq!(text.matches("sha1:OLD").count(), 1, "{text}");
        assert!(std::fs::read(&path).unwrap().ends_with(&others));
        let again = Warc::read(&path).unwrap();
        assert_eq!((again.responses.len(), again.has_secrets), (2, false));
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..300), block in r"(?s).{0,100}") {
            let top = tempfile::tempdir().unwrap();
            let path = top.path().join("page.warc.gz");
            for content in [bytes.clone(), file(&[("request", &block), ("response", &block)])] {
                std::fs::write(&path, content).unwrap();
                let warc = Warc::read(&path).unwrap();
                for response in &warc.responses {
                    if let Ok(body) = warc.body(response) {
                        let _ = io::copy(&mut body.take(1 << 20), &mut io::sink());
                    }
                }
                warc.clean(LeftOut::ALL).unwrap();
            }
        }
    }
}
