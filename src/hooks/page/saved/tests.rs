use super::*;
use proptest::prelude::*;
use std::io::Write;

const PAGE: &str = "<html lang=de><meta charset=utf-8><title>Bläuling</title><p>Ein Falter";

fn file(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file
}

fn found(bytes: &[u8]) -> SavedPage {
    read(&file(bytes), false).unwrap().unwrap()
}

fn about(page: &SavedPage) -> [&str; 4] {
    let text = |text: &'_ Option<String>| text.clone().unwrap_or_default().leak();
    [page.format.clone().leak(), text(&page.url), text(&page.title), text(&page.time)]
}

#[test]
fn html_says_of_which_page_it_is() {
    let single = "<!DOCTYPE html> <html lang=de><!--\n Page saved with SingleFile \n url: http://a.test/?x=1&y \n \
        saved date: Fri Nov 27 2026 01:04:28 GMT+0100 (Central European Standard Time)\n--><title>A</title>";
    let page = found(single.as_bytes());
    let expected = ["page of SingleFile", "http://a.test/?x=1&y", "A", "2026-11-27T00:04:28Z"];
    assert_eq!(about(&page), expected);
    assert!(page.is_single_file && page.document.is_none());
    let book = "<!doctype html>\n<html data-scrapbook-source=\"http://a.test/?x=1&amp;y\" \
        data-scrapbook-create=\"20210203040506789\"><head><title>A &amp; B</title>";
    let expected =
        ["page of WebScrapBook", "http://a.test/?x=1&y", "A & B", "2021-02-03T04:05:06.789Z"];
    assert_eq!(about(&found(book.as_bytes())), expected);
    let extension = "<html><head><title>A</title><meta name=\"savepage-url\" content=\"http://a.test/\">\
        <meta name=\"savepage-date\" content=\"Sat Nov 06 2021 10:00:00 GMT+0000 (UTC)\"></head>";
    let expected = ["page of Save Page WE", "http://a.test/", "A", "2021-11-06T10:00:00Z"];
    assert_eq!(about(&found(extension.as_bytes())), expected);
    let browser =
        "<!DOCTYPE html>\r\n<!-- saved from url=(0014)http://a.test/ -->\r\n<html><title>A</title>";
    let expected = ["HTML page of a browser", "http://a.test/", "A", ""];
    assert_eq!(about(&found(browser.as_bytes())), expected);
    // As Internet Explorer wrote it in Latin-1.
    let latin = b"<!DOCTYPE html>\r\n<!-- saved from url=(0014)about:internet -->\r\n\
        <html><meta charset=iso-8859-1><title>\xc4</title>";
    assert_eq!(about(&found(latin)), ["HTML page of a browser", "", "Ä", ""]);
}

/// A ZIP file with one stored member that follows `before` in a file.
pub fn zip_after(before: &str, name: &str, content: &str) -> Vec<u8> {
    let mut crc = flate2::Crc::new();
    crc.update(content.as_bytes());
    let sizes = [crc.sum(), content.len() as u32, content.len() as u32];
    let common = |head: &[u8]| {
        let mut bytes = head.to_vec();
        bytes.extend([20, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend(sizes.iter().flat_map(|number| number.to_le_bytes()));
        bytes.extend([name.len() as u8, 0, 0, 0]);
        bytes
    };
    let mut bytes = before.as_bytes().to_vec();
    bytes.extend(common(b"PK\x03\x04"));
    bytes.extend([name.as_bytes(), content.as_bytes()].concat());
    let directory = bytes.len();
    bytes.extend(common(b"PK\x01\x02\x14\0"));
    bytes.extend([0; 10]);
    bytes.extend((before.len() as u32).to_le_bytes());
    bytes.extend(name.as_bytes());
    let length = (bytes.len() - directory) as u32;
    bytes.extend(b"PK\x05\x06\0\0\0\0\x01\0\x01\0");
    bytes.extend(length.to_le_bytes());
    bytes.extend((directory as u32).to_le_bytes());
    bytes.extend([0, 0]);
    bytes
}

#[test]
fn compressed_pages_of_single_file_have_their_document_within() {
    let comment = "<!--\n Page saved with SingleFile \n url: http://a.test/ \n \
        saved date: Fri Nov 27 2026 01:04:28 GMT+0100 (Central European Standard Time)\n-->";
    let page = format!("<!DOCTYPE html> <html>{comment}{PAGE}");
    let outer = |mark: &str| {
        format!(
            "<!DOCTYPE html> <html{mark}>{comment}<meta charset=windows-1252><title></title><!--"
        )
    };
    let behind = b"--><sfz-extra-data>AQCAAA==</sfz-extra-data></body></html>";
    let within = zip_after(&outer(" data-sfz"), "index.html", &page);
    let expected =
        ["compressed page of SingleFile", "http://a.test/", "Bläuling", "2026-11-27T00:04:28Z"];
    for bytes in [[&within[..], behind].concat(), zip_after("", "index.html", &page)] {
        let found = found(&bytes);
        assert_eq!(about(&found), expected);
        assert!(!found.is_single_file);
        assert_eq!(found.document.unwrap(), page);
    }
    // A page that shows the end of a ZIP file is none.
    let shows = [&zip_after(&outer(""), "index.html", &page)[..], behind].concat();
    assert!(found(&shows).is_single_file);
    let damaged = [&within[..within.len() - 40], &within[within.len() - 22..]].concat();
    let error = read(&file(&damaged), false).unwrap_err();
    assert!(error.contains("directory of the ZIP file"), "{error}");
    let other = zip_after(&outer(" data-sfz"), "other.html", &page);
    let error = read(&file(&other), false).unwrap_err();
    assert_eq!(error, "it has no file 'index.html'");
}

#[test]
fn other_html_is_a_page_if_the_caller_says_so() {
    let bookmarks =
        b"<!DOCTYPE NETSCAPE-Bookmark-file-1>\n<DL><DT><A HREF=http://a.test/>A</A></DL>";
    for other in [PAGE.as_bytes(), bookmarks, b"<rss></rss>", b"http://a.test/\n", b"[]", b""] {
        assert_eq!(read(&file(other), false), Ok(None));
    }
    let page = read(&file(PAGE.as_bytes()), true).unwrap().unwrap();
    assert_eq!(about(&page), ["HTML page", "", "Bläuling", ""]);
    assert_eq!(read(&file(b"<rss></rss>"), true), Ok(None));
}

fn mhtml(coding: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "From: <Saved by Blink>\r\nSnapshot-Content-Location: http://a.test/\r\n  x?y=1\r\n\
         Subject: A\r\nDate: Fri, 27 Nov 2026 00:05:04 GMT\r\nMIME-Version: 1.0\r\n\
         Content-Type: multipart/related;\r\n\ttype=\"text/html\";\r\n\tboundary=\"--b\"\r\n\r\n\
         ----b\r\nContent-Type: text/css\r\n\r\np{{}}\r\n\
         ----b\r\nContent-Type: text/html\r\nContent-Transfer-Encoding: {coding}\r\n\r\n"
    );
    [head.as_bytes(), body, b"\r\n----b--\r\n"].concat()
}

#[test]
fn mhtml_is_decoded() {
    let quoted = PAGE.replace('=', "=3D").replace('ä', "=C3=\r\n=A4");
    let base64 = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, PAGE);
    let broken = format!("{}\r\n {}=", &base64[..40], &base64[40..].trim_end_matches('='));
    for (coding, body) in
        [("quoted-printable", quoted.as_str()), ("Base64", &broken), ("binary", PAGE)]
    {
        let page = found(&mhtml(coding, body.as_bytes()));
        let expected = ["MHTML page", "http://a.test/x?y=1", "Bläuling", "2026-11-27T00:05:04Z"];
        assert_eq!(about(&page), expected, "{coding}");
        assert!(page.document.unwrap().starts_with(PAGE), "{coding}");
        assert_eq!(page.faults, [""; 0]);
    }
    let whole = mhtml("binary", PAGE.as_bytes());
    let page = found(&whole[..whole.len() - 20]);
    assert_eq!(page.faults, ["it ends within its document"]);
}

#[test]
fn the_document_of_mhtml_is_the_root_of_its_parts() {
    // As Internet Explorer and mail programs write it.
    let text = b"MIME-Version: 1.0\nContent-Location: http://a.test/\nContent-Type: multipart/related; start=\"<2>\"; boundary=x\n\n\
        --x\nContent-Type: text/html\nContent-ID: <1>\n\n<title>frame</title>\n\
        --x\nContent-Type: text/html; charset=\"windows-1252\"\nContent-ID: <2>\n\n<title>\x80</title>\n--x--\n";
    let page = found(text);
    assert_eq!(about(&page), ["MHTML page", "http://a.test/", "€", ""]);
    let nested = b"MIME-Version: 1.0\nContent-Type: multipart/related; boundary=x\n\n--x\nContent-Type: multipart/alternative; boundary=y\n\n\
        --y\nContent-Type: text/plain\n\nA\n--y\nContent-Type: text/html\nContent-Location: http://b.test/\n\n<title>B</title>\n--y--\n--x--\n";
    assert_eq!(about(&found(nested)), ["MHTML page", "http://b.test/", "B", ""]);
    let without = b"MIME-Version: 1.0\nContent-Type: multipart/related; boundary=x\n\n--x\nContent-Type: text/css\n\n--x--\n";
    assert_eq!(read(&file(without), false), Err("it has no HTML document".to_owned()));
}

/// A binary property list of these objects, the first of which is the outermost.
fn binary(objects: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = b"bplist00".to_vec();
    let mut table = Vec::new();
    for object in objects {
        table.extend(u32::try_from(bytes.len()).unwrap().to_be_bytes());
        bytes.extend(object);
    }
    let at = bytes.len() as u64;
    bytes.extend(table);
    bytes.extend([0, 0, 0, 0, 0, 0, 4, 1]);
    for number in [objects.len() as u64, 0, at] {
        bytes.extend(number.to_be_bytes());
    }
    bytes
}

fn ascii(text: &str) -> Vec<u8> {
    let length = u16::try_from(text.len()).unwrap();
    [&[0x5f, 0x11][..], &length.to_be_bytes(), text.as_bytes()].concat()
}

pub fn web_archive(data: &[u8]) -> Vec<u8> {
    let length = u32::try_from(data.len()).unwrap();
    let data = [&[0x4f, 0x12][..], &length.to_be_bytes(), data].concat();
    let utf_16: Vec<u8> = "http://a.test/ä".encode_utf16().flat_map(u16::to_be_bytes).collect();
    binary(&[
        vec![0xd1, 1, 2],
        ascii("WebMainResource"),
        vec![0xd3, 3, 4, 5, 6, 7, 8],
        ascii("WebResourceURL"),
        ascii("WebResourceData"),
        ascii("WebResourceTextEncodingName"),
        [&[0x6f, 0x10, 15][..], &utf_16].concat(),
        data,
        ascii("UTF-8"),
    ])
}

#[test]
fn web_archives_are_binary_or_xml() {
    let page = found(&web_archive(PAGE.as_bytes()));
    let expected = ["web archive of Safari", "http://a.test/ä", "Bläuling", ""];
    assert_eq!(about(&page), expected);
    assert_eq!(page.document.as_deref(), Some(PAGE));
    let data = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, PAGE);
    let xml = format!(
        "<?xml version=\"1.0\"?><plist version=\"1.0\"><dict><key>WebMainResource</key><dict>\
         <key>WebResourceData</key><data>\n\t{}\n\t{}</data><key>WebResourceURL</key>\
         <string>http://a.test/?x&amp;y</string></dict></dict></plist>",
        &data[..20],
        &data[20..]
    );
    let page = found(xml.as_bytes());
    assert_eq!(about(&page), ["web archive of Safari", "http://a.test/?x&y", "Bläuling", ""]);
    assert_eq!(page.document.as_deref(), Some(PAGE));
}

/// Lengths, numbers and places that are not those of the file.
#[test]
fn damaged_web_archives_are_refused() {
    let own = binary(&[vec![0xd1, 1, 0], ascii("WebMainResource")]);
    assert!(read(&file(&own), false).is_err(), "an object in itself");
    let far = binary(&[vec![0xd1, 1, 9], ascii("WebMainResource")]);
    assert!(read(&file(&far), false).is_err(), "an object that is not there");
    let long = binary(&[vec![0xdf, 0x13, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]]);
    assert!(read(&file(&long), false).is_err(), "a long dictionary");
    let whole = web_archive(PAGE.as_bytes());
    for end in 8..whole.len() {
        assert!(read(&file(&whole[..end]), false).is_err(), "{end}");
    }
}

#[test]
fn deep_and_long_pages_have_an_end() {
    let begun = std::time::Instant::now();
    let deep = format!("{PAGE}{}", "<div>".repeat(100_000));
    let page = found(&mhtml("binary", deep.as_bytes()));
    assert_eq!(page.title.as_deref(), Some("Bläuling"));
    let long = vec![b'a'; DOCUMENT_MAX_BYTES + 10];
    let page = found(&mhtml("binary", &long));
    assert_eq!(page.faults.len(), 1);
    assert_eq!(page.document.unwrap().len(), DOCUMENT_MAX_BYTES);
    let header = format!("MIME-Version: 1.0\nX: {}", "x".repeat(10_000_000));
    assert_eq!(read(&file(header.as_bytes()), false), Ok(None));
    assert!(begun.elapsed() < Duration::from_secs(60));
}

proptest! {
    /// Whatever is in a file, it is a page, none, or refused.
    #[test]
    fn any_bytes_have_an_answer(
        bytes: Vec<u8>,
        start in "(bplist00|<plist>WebMainResource|MIME-Version: 1.0\nContent-Type: multipart/related; boundary=x\n\n--x\n|<html data-scrapbook-source=|<!-- saved from url=|PK\u{3}\u{4}|)",
        is_page: bool,
    ) {
        let bytes = [start.as_bytes(), &bytes].concat();
        let _ = read(&file(&bytes), is_page);
    }

    /// A changed byte neither ends the process nor makes a document longer.
    #[test]
    fn a_changed_byte_has_an_answer(at: prop::sample::Index, byte: u8, is_list: bool) {
        let mut bytes = if is_list {
            web_archive(PAGE.as_bytes())
        } else {
            mhtml("quoted-printable", PAGE.as_bytes())
        };
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(Some(page)) = read(&file(&bytes), false) {
            prop_assert!(page.document.unwrap_or_default().len() <= 4 * bytes.len());
        }
    }
}
