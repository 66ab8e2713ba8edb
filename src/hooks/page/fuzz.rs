//! Everything that `archivist import` and `archivist add` take from files of other programs, mutated.

use super::{listing, saved, sitemap};
use archivist_core::model::parse_line;
use archivist_core::model::web::list::{Folders, List, Place};
use archivist_fuzz::fuzz;
use std::fs::File;
use std::io::Write;
use url::Url;

const WORDS: [&[u8]; 26] = [
    b"\r\n",
    b"\n\r",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\"",
    b"\"\"",
    b",",
    b"|",
    b"<DL><p>",
    b"</DL>",
    b"<H3>",
    b"<DD>",
    b"<DT><A HREF=\"",
    b"<![CDATA[",
    b"]]>",
    b"<!--",
    b"-->",
    b"&#x110000;",
    b"&amp",
    b"[[[[{{{{",
    b"\\ud83d",
    b"-99999999999999999999",
    b"1700000000000000",
    b"+99:99",
    b"http://a.test/",
    b"PK\x01\x02",
];

fn file(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file
}

fn seeds(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

const LISTS: [&str; 15] = [
    "<!DOCTYPE NETSCAPE-Bookmark-file-1>\n<TITLE>Bookmarks</TITLE>\n<DL><p>\n<DT><H3 ADD_DATE=\"1\" PERSONAL_TOOLBAR_FOLDER=\"true\">Food &amp; more</H3>\n\
     <DL><p><DT><A HREF=\"http://a.test/?x=1&y\" ADD_DATE=\"1700000000000\" LAST_MODIFIED=\"2\" TAGS=\"a,b c\" TOREAD=\"1\" PRIVATE=\"1\">A &#39;b</A>\n\
     <DD>A note\nwith <a>two</a> lines\n</DL><p>\n<DT><A HREF=\"http://b.test/\" time_added=\"1700000000\">B</A></DL>",
    "title,url,time_added,tags,status\n\"A, \"\"b\"\"\",http://a.test/,1700000000,x|y,unread\n,http://b.test/,0,,archive\n",
    "id,title,note,excerpt,url,folder,tags,created,cover,highlights,favorite\n1,A,\"two\nlines\",,http://a.test/,\"Unsorted\",\"x, y\",2023-01-02T03:04:05.678Z,,,false\n",
    "URL,Title,Selection,Folder,Timestamp,Tags\nhttp://a.test/,A,,Archive,1700000000,\"[\"\"x\"\"]\"\n",
    "Title,URL,ID,Document tags,Saved date,Reading progress,Location\nA,http://a.test/,1,\"['x', 'y']\",2023-01-02 03:04:05+00:00,0.5,archive\n",
    "[{\"href\":\"http://a.test/\",\"description\":\"A\",\"extended\":\"n\",\"time\":\"2023-01-02T03:04:05Z\",\"tags\":\"x y\",\"toread\":\"no\"}]",
    "{\"title\":\"\",\"type\":\"text/x-moz-place-container\",\"children\":[{\"title\":\"A\",\"uri\":\"http://a.test/\",\"dateAdded\":1700000000000000,\"tags\":\"x,y\"}]}",
    "{\"checksum\":\"\",\"roots\":{\"bookmark_bar\":{\"name\":\"Bar\",\"type\":\"folder\",\"children\":[{\"date_added\":\"13300000000000000\",\"name\":\"A\",\"type\":\"url\",\"url\":\"http://a.test/\"}]}},\"version\":1}",
    "[{\"is_archived\":1,\"url\":\"http://a.test/\",\"title\":\"A\",\"tags\":[\"x\"],\"created_at\":\"2020-01-02T03:04:05+00:00\",\"content\":\"<p>Text\"}]",
    "[{\"id\":\"1\",\"slug\":\"a\",\"title\":\"A\",\"url\":\"http://a.test/\",\"state\":\"Active\",\"labels\":[\"x\"],\"savedAt\":\"2023-01-02T03:04:05.678Z\"}]",
    "{\"collections\":[{\"name\":\"C\",\"links\":[{\"name\":\"A\",\"url\":\"http://a.test/\",\"tags\":[{\"name\":\"x\"}],\"createdAt\":\"2023-01-02T03:04:05.678Z\"}]}]}",
    "{\"bookmarks\":[{\"createdAt\":1700000000,\"title\":\"A\",\"tags\":[\"x\"],\"content\":{\"type\":\"link\",\"url\":\"http://a.test/\"},\"note\":null}]}",
    "<opml version=\"2.0\"><head><title>Feeds</title></head><body><outline text=\"News\"><outline type=\"rss\" text=\"A\" xmlUrl=\"http://a.test/feed\" htmlUrl=\"http://a.test/\"/></outline></body></opml>",
    "- [A (b)](http://a.test/x_(y)) \n# comment\n<http://b.test/>, http://c.test/.\n",
    "{\"id\":\"s1\",\"url\":\"http://a.test/\",\"title\":\"A\",\"tags\":[\"x\"],\"bookmarked_at\":\"2023-01-02T03:04:05.000Z\"}\n",
];

#[test]
fn mutated_lists_end_and_have_positions_within_the_file() {
    fuzz(&seeds(&LISTS), &WORDS, |input| {
        let folders = [Folders::AsTags, Folders::Ignored][input.len() % 2];
        let Ok(list) = List::read_with(input, folders) else {
            return;
        };
        let _ = (list.description(), list.format());
        let mut count = 0;
        for (place, line) in list.lines() {
            let _ = parse_line(line);
            count += 1;
            if let Place::Line(number) = place {
                assert!(number >= 1 && number <= input.len() as u64 + 1);
            }
        }
        assert!(count <= input.len() + 1, "{count} entries");
    });
}

#[test]
fn mutated_feeds_and_sitemaps_end() {
    let texts = [
        "<?xml version=\"1.0\"?><rss version=\"2.0\"><channel><title>F</title><item><title><![CDATA[A]]></title><link>/a?b&amp;c</link>\
         <pubDate>Mon, 02 Jan 2023 03:04:05 GMT</pubDate></item></channel></rss>",
        "<feed xmlns=\"http://www.w3.org/2005/Atom\" xml:base=\"/x/\"><title>F</title><entry><title type=\"html\">&lt;b&gt;A</title>\
         <link rel=\"alternate\" href=\"a\"/><updated>2023-01-02T03:04:05Z</updated></entry></feed>",
        "<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" xmlns=\"http://purl.org/rss/1.0/\"><item rdf:about=\"http://a.test/\"><title>A</title><link>http://a.test/</link></item></rdf:RDF>",
        "{\"version\":\"https://jsonfeed.org/version/1.1\",\"title\":\"F\",\"items\":[{\"id\":\"1\",\"url\":\"/a\",\"title\":\"A\",\"date_published\":\"2023-01-02T03:04:05Z\"}]}",
        "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\"><url><loc>http://a.test/a</loc><lastmod>2023-01-02</lastmod></url></urlset>",
        "<sitemapindex><sitemap><loc>http://a.test/s.xml.gz</loc></sitemap></sitemapindex>",
        "http://a.test/a\nhttp://a.test/b\n",
    ];
    let address = Url::parse("http://a.test/feed").unwrap();
    fuzz(&seeds(&texts), &WORDS, |input| {
        for kind in ["text/xml", "application/feed+json", "text/plain; charset=utf-16"] {
            if let Some(found) = listing::read(input, kind, &address) {
                assert!(found.entries.len() <= input.len());
            }
        }
        let found = sitemap::read(input, &address);
        assert!(found.pages.len() + found.files.len() <= input.len());
    });
}

#[test]
fn mutated_saved_pages_are_pages_or_refused() {
    let mut all = seeds(&[
        "<!DOCTYPE html> <html lang=de><!--\n Page saved with SingleFile \n url: http://a.test/?x=1&y \n saved date: Fri Nov 27 2026 01:04:28 GMT+0100 (CET)\n--><title>A</title><p>Text",
        "<!doctype html>\n<html data-scrapbook-source=\"http://a.test/?x=1&amp;y\" data-scrapbook-create=\"20210203040506789\"><head><title>A &amp; B</title>",
        "<html><head><title>A</title><meta name=\"savepage-url\" content=\"http://a.test/\"><meta name=\"savepage-date\" content=\"Sat Nov 06 2021 10:00:00 GMT+0000 (UTC)\"></head>",
        "<!DOCTYPE html>\r\n<!-- saved from url=(0014)http://a.test/ -->\r\n<html><meta charset=windows-1252><title>A</title>",
        "From: <Saved by Blink>\r\nSnapshot-Content-Location: http://a.test/\r\nSubject: =?utf-8?Q?A=20b?=\r\nDate: Fri, 27 Nov 2026 01:04:28 +0100\r\nMIME-Version: 1.0\r\n\
         Content-Type: multipart/related; type=\"text/html\"; boundary=\"x\"\r\n\r\n--x\r\nContent-Type: text/html\r\nContent-Transfer-Encoding: quoted-printable\r\nContent-Location: http://a.test/\r\n\r\n<title>A=\r\n</title>=C3=84\r\n--x--\r\n",
        "<?xml version=\"1.0\"?><plist version=\"1.0\"><dict><key>WebMainResource</key><dict><key>WebResourceURL</key><string>http://a.test/</string><key>WebResourceData</key><data>PHRpdGxlPkE=</data></dict></dict></plist>",
    ]);
    all.push(saved::tests::web_archive(b"<title>A"));
    all.push(saved::tests::zip_after(
        "",
        "index.html",
        "<html data-scrapbook-source=\"http://a.test/\"><title>A</title>",
    ));
    all.push(saved::tests::zip_after("", "x/index.rdf", "<RDF><MAF:originalurl RDF:resource=\"http://a.test/\"/><MAF:archivetime RDF:resource=\"Fri, 27 Nov 2026 01:04:28 +0100\"/></RDF>"));
    fuzz(&all, &WORDS, |input| {
        for is_page in [false, true] {
            if let Ok(Some(page)) = saved::read(&file(input), is_page) {
                for text in [&page.url, &page.title, &page.time].into_iter().flatten() {
                    assert!(text.len() <= 16 << 10, "{} bytes", text.len());
                }
            }
        }
    });
}
