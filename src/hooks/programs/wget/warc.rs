//! Reads and cleans the WARC file that wget wrote (ISO 28500): one record per gzip member.
//!
//! The file says which URL had which response, where the log of wget only names files.

use super::body::{self, Headers};
use archivist_warc::{digest, head};
use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Largest request in bytes.
const REQUEST_MAX_BYTES: u64 = 1 << 20;
/// Records of a file that are read.
const RECORDS_MAX: usize = 50_000;

/// A response in a WARC file.
#[derive(Debug, Clone)]
pub struct Response {
    /// The requested URL.
    pub url: String,
    /// Status code.
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

/// The responses of a WARC file in their order.
#[derive(Debug)]
pub struct Warc {
    file: PathBuf,
    /// All responses.
    pub responses: Vec<Response>,
    /// Headers of requests by URL.
    requests: HashMap<String, Headers>,
    has_credentials: bool,
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
            has_credentials: false,
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
                self.has_credentials |= headers.iter().any(|(name, _)| is_secret(name));
                self.requests.insert(url(), headers);
            }
            "response" => {
                let head = read_head(&mut record)?;
                let (status, headers) = body::parse_head(&head);
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

    /// Removes what was cut off at the end, and the headers that carry passwords. Records without
    /// such headers stay as they are, to the byte.
    pub fn clean(&self) -> io::Result<()> {
        self.cut()?;
        if !self.has_credentials {
            return Ok(());
        }
        let mut part = self.file.clone().into_os_string();
        part.push(".part");
        let written =
            self.copy_cleaned(Path::new(&part)).and_then(|()| std::fs::rename(&part, &self.file));
        if written.is_err() {
            let _ = std::fs::remove_file(&part);
        }
        written
    }

    fn copy_cleaned(&self, to: &Path) -> io::Result<()> {
        let mut out = io::BufWriter::new(File::create(to)?);
        let mut raw = File::open(&self.file)?;
        let mut source = Counted { inner: BufReader::new(File::open(&self.file)?), offset: 0 };
        while source.offset < self.end {
            let at = source.offset;
            let mut record = BufReader::new(GzDecoder::new(&mut source));
            let head = read_head(&mut record)?;
            let (_, fields) = body::parse_head(&head);
            let mut cleaned = None;
            if head::value(&fields, "warc-type") == Some("request") {
                let mut block = Vec::new();
                record.by_ref().take(REQUEST_MAX_BYTES).read_to_end(&mut block)?;
                cleaned = without_secrets(&head, &block);
            }
            io::copy(&mut record, &mut io::sink())?;
            match cleaned {
                Some(record) => {
                    let mut encoder = GzEncoder::new(&mut out, Compression::default());
                    encoder.write_all(&record)?;
                    encoder.finish()?;
                }
                None => {
                    raw.seek(SeekFrom::Start(at))?;
                    io::copy(&mut (&raw).take(source.offset - at), &mut out)?;
                }
            }
        }
        out.into_inner()?.sync_all()
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

fn is_secret(header: &str) -> bool {
    matches!(header, "authorization" | "proxy-authorization")
}

/// The record of a request without the headers that carry passwords, with the length and digest of
/// what is left. `None` if there are none.
fn without_secrets(head: &[u8], block: &[u8]) -> Option<Vec<u8>> {
    let end = block.windows(4).position(|part| part == b"\r\n\r\n")?;
    // A record ends with two empty lines after its block.
    let block = block.strip_suffix(b"\r\n\r\n").filter(|it| it.len() >= end + 4);
    let block = block?;
    let mut kept = Vec::new();
    let mut is_dropped = false;
    let mut has_dropped = false;
    for line in block[..end].split_inclusive(|byte| *byte == b'\n') {
        let is_continued = matches!(line.first(), Some(b' ' | b'\t'));
        if !is_continued {
            let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
            let name = String::from_utf8_lossy(name).trim().to_ascii_lowercase();
            is_dropped = is_secret(&name);
            has_dropped |= is_dropped;
        }
        if !is_dropped {
            kept.extend_from_slice(line);
        }
    }
    let kept = kept.strip_suffix(b"\r\n").unwrap_or(&kept);
    if !has_dropped {
        return None;
    }
    let clean = [kept, &block[end..]].concat();
    let mut record = String::new();
    for line in String::from_utf8_lossy(head).lines().filter(|line| !line.is_empty()) {
        let name = line.split(':').next().unwrap_or_default().to_ascii_lowercase();
        if !matches!(name.as_str(), "content-length" | "warc-block-digest" | "warc-payload-digest")
        {
            record += &format!("{line}\r\n");
        }
    }
    let digest = digest::of(&clean);
    record += &format!("WARC-Block-Digest: {digest}\r\nContent-Length: {}\r\n\r\n", clean.len());
    Some([record.as_bytes(), &clean, b"\r\n\r\n"].concat())
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
        Accept: */*\r\n\r\n";
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
    fn passwords_are_removed_and_other_records_are_unchanged() {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("page.warc.gz");
        let others = file(&[("response", RESPONSE)]);
        let whole = [file(&[("request", REQUEST)]), others.clone()].concat();
        // The file was cut off within a third record.
        std::fs::write(&path, [&whole[..], &others[..20]].concat()).unwrap();
        let warc = Warc::read(&path).unwrap();
        assert!(warc.has_credentials);
        warc.clean().unwrap();
        let text = text_of(&path);
        let block = "GET / HTTP/1.1\r\nHost: a.test\r\nAccept: */*\r\n\r\n";
        let digest = digest::of(block.as_bytes());
        assert!(
            text.contains(&format!(
                "WARC-Block-Digest: {digest}\r\nContent-Length: {}\r\n\r\n{block}\r\n\r\nWARC",
                block.len()
            )),
            "{text}"
        );
        assert!(!text.contains("uthorization") && !text.contains("c2VjcmV0"));
        assert!(std::fs::read(&path).unwrap().ends_with(&others));
        let again = Warc::read(&path).unwrap();
        assert_eq!((again.responses.len(), again.has_credentials), (1, false));
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
                warc.clean().unwrap();
            }
        }
    }
}
