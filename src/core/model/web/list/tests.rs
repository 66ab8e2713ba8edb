//! Lists in all formats, and any bytes.

use super::*;
use proptest::prelude::*;

/// Returns the entries with their positions, or the reason against them.
fn entries(bytes: &[u8]) -> Vec<(String, Result<LineEntry, String>)> {
    let list = List::read(bytes).unwrap();
    let lines = list.lines().filter_map(|(place, line)| {
        let entry = parse_line(line)?.map_err(|error| error.to_string());
        Some((place.to_string(), entry))
    });
    lines.collect()
}

/// Returns address, title, tags and time of entries that are all accepted.
fn pages(bytes: &[u8]) -> Vec<(String, String, String, String)> {
    let page = |(_, entry): (String, Result<LineEntry, String>)| {
        let entry = entry.unwrap();
        (
            entry.url.to_string(),
            entry.title.unwrap_or_default(),
            entry.tags.join(","),
            entry.bookmarked_at.unwrap_or_default(),
        )
    };
    entries(bytes).into_iter().map(page).collect()
}

fn page(url: &str, title: &str, tags: &str, time: &str) -> (String, String, String, String) {
    (url.into(), title.into(), tags.into(), time.into())
}

fn description(bytes: &[u8]) -> String {
    List::read(bytes).unwrap().description().unwrap_or_default()
}

#[test]
fn lines_have_numbers_in_every_encoding() {
    let text = "\u{feff}http://a.test/\r\n\r# c\r\nnonsense\rhttp://b.test/";
    let utf16 = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    for bytes in [text.as_bytes().to_vec(), utf16] {
        let found = entries(&bytes);
        let places: Vec<_> = found.iter().map(|(place, _)| place.as_str()).collect();
        assert_eq!(places, ["line 1", "line 4", "line 5"]);
        assert!(found[0].1.is_ok() && found[1].1.is_err() && found[2].1.is_ok());
        assert_eq!(description(&bytes), "");
    }
}

#[test]
fn bookmark_files_have_titles_and_tags() {
    let text = br#"<!DOCTYPE NETSCAPE-Bookmark-file-1>
<!-- This is an automatically generated file. <A HREF="http://no.test/">no</A> -->
<TITLE>Bookmarks</TITLE>
<DL><p>
    <DT><H3 ADD_DATE="1">Food &amp; more</H3>
    <DL><p>
        <DT><A HREF="http://a.test/?x=1&amp;y=2" ADD_DATE="1700000000" TAGS="food,to eat">Soup &#39;n&#x27; <b>bread</b>
            &lt;3</A>
        <DD>A description with <a name="x">no link</a>
        <dt><a add_date=5 href=http://b.test/x>Second
    </DL><p>
    <DT><A HREF="place:sort=8">Recent</A>
    <DT><A ICON="data:image/png;base64,A>B" HREF='http://c.test/'></A>
</DL><p>"#;
    assert_eq!(description(text), "Netscape bookmark file: 4 addresses");
    let found = entries(text);
    let places: Vec<_> = found.iter().map(|(place, _)| place.as_str()).collect();
    assert_eq!(places, ["line 7", "line 10", "line 12", "line 13"]);
    let of = |index: usize| found[index].1.clone().unwrap();
    assert_eq!(of(0).url.as_str(), "http://a.test/?x=1&y=2");
    assert_eq!(of(0).title.as_deref(), Some("Soup 'n' bread <3"));
    assert_eq!(of(0).tags, ["food", "to eat"]);
    let time = Some("2023-11-14T22:13:20Z");
    assert_eq!(of(0).bookmarked_at.as_deref(), time);
    assert_eq!((of(1).title.as_deref(), of(1).tags.len()), (Some("Second"), 0));
    assert!(found[2].1.as_ref().unwrap_err().contains("place:"));
    assert_eq!((of(3).url.as_str(), of(3).title), ("http://c.test/", None));
}

#[test]
fn exports_of_services_are_read() {
    let pocket = br#"<!DOCTYPE html><html><!--So long--><head><title>Pocket Export</title></head>
<body><h1>Unread</h1><ul>
<li><a href="http://a.test/" time_added="1400000000" tags="x,y">A</a></li></ul>"#;
    assert_eq!(description(pocket), "Pocket bookmark file: 1 address");
    assert_eq!(pages(pocket), [page("http://a.test/", "A", "x,y", "2014-05-13T16:53:20Z")]);

    let csv = b"title,url,time_added,tags,status\r\n\"One, \"\"two\"\"\nthree\",http://a.test/,1,x|y,unread\r\n\r\nB,mailto:b,,,";
    assert_eq!(description(csv), "Pocket table: 2 addresses");
    let found = entries(csv);
    let first = found[0].1.clone().unwrap();
    assert_eq!(first.title.as_deref(), Some("One, \"two\" three"));
    assert_eq!(first.tags, ["x", "y"]);
    assert_eq!(found[1].0, "line 5");
    assert!(found[1].1.as_ref().unwrap_err().contains("mailto:"));

    let json = br#"[{"href":"http://a.test/","description":"A","tags":"x y","time":"t"},
        "http://b.test/", {"title":"folder","children":[{"uri":"http://c.test/"}]}, {"url":"x"}]"#;
    assert_eq!(description(json), "JSON file: 4 addresses");
    let found = entries(json);
    assert_eq!(found[0].1.clone().unwrap().tags, ["x", "y"]);
    assert_eq!(found[2].1.clone().unwrap().url.as_str(), "http://c.test/");
    assert_eq!(found[3].0, "element 4");
    assert!(found[3].1.is_err());

    let chromium = br#"{"checksum":"0","roots":{"bookmark_bar":{"children":[
        {"name":"A","type":"url","url":"http://a.test/"}],"name":"Bar","type":"folder"}}}"#;
    assert_eq!(pages(chromium), [page("http://a.test/", "A", "", "")]);
}

/// As `pages`, with the names of folders.
fn in_folders(bytes: &[u8]) -> (String, Vec<(String, String, String, String)>) {
    let list = List::read_with(bytes, Folders::AsTags).unwrap();
    let pages = list.lines().map(|(_, line)| {
        let entry = parse_line(line).unwrap().unwrap();
        (
            entry.url.to_string(),
            entry.title.unwrap_or_default(),
            entry.tags.join(","),
            entry.bookmarked_at.unwrap_or_default(),
        )
    });
    (list.format().unwrap_or_default().to_owned(), pages.collect())
}

const TIME: &str = "2023-11-14T22:13:20Z";

#[test]
fn folders_of_bookmark_files_become_tags() {
    let text = br#"
        <!doctype  NETSCAPE-Bookmark-file-1>
<META HTTP-EQUIV="Content-Type" CONTENT="text/html; charset=UTF-8">
<DL><p>
<DT><H3 PERSONAL_TOOLBAR_FOLDER="true">Bookmarks bar</H3>
<DL><p>
  <DT><A HREF="http://a.test/" ADD_DATE="1700000000000000" LAST_MODIFIED="0">Caf&eacute;</A>
  <DT><H3>News &amp; co</H3>
  <DL><p>
    <DT><A HREF="http://b.test/?a=1&b=2&copy=3" ADD_DATE="1700000000000">B</A>
    <DD>text with <a href="http://no.test/">a link</a>
and a second line, <A HREF="http://no.test/2">another</A>
    <DT><A HREF="http://c.test/" ADD_DATE="0" TAGS="x, two words ,linkding:bookmarks.archived" TOREAD="1">C</A>
    <DD>d[linkding-notes]n[/linkding-notes]
  </DL><p>
  <DT><A HREF="http://d.test/">D</A>
</DL><p>
</DL>
<script>document.write('<a href="http://no.test/3">x</a>')</script>"#;
    let (format, found) = in_folders(text);
    assert_eq!(format, "Netscape bookmark file");
    let expected = [
        page("http://a.test/", "Café", "", TIME),
        page("http://b.test/?a=1&b=2&copy=3", "B", "News & co", TIME),
        page("http://c.test/", "C", "x,two words,News & co", ""),
        page("http://d.test/", "D", "", ""),
    ];
    assert_eq!(found, expected);
    assert_eq!(pages(text)[1].2, "");
}

#[test]
fn tables_of_services_are_read() {
    let pocket = b"title,url,time_added,tags,status\n\"A, \"\"b\"\"\",http://a.test/,1700000000,x|two words,unread\n,http://b.test/,1700000000,,archive\n";
    let expected = [
        page("http://a.test/", "A, \"b\"", "x,two words", TIME),
        page("http://b.test/", "", "", TIME),
    ];
    assert_eq!(in_folders(pocket), ("Pocket table".to_owned(), expected.to_vec()));

    let raindrop = "\u{feff}id,title,note,excerpt,url,folder,tags,created,cover,highlights,favorite\r\n\
        1,\"A\nb\",,\"e\r\nf\",http://a.test/,Work / Rust,\"x, y\",2023-11-14T22:13:20.000Z,,,false\r\n\
        2,B,,,http://b.test/,Unsorted,,2023-11-14T22:13:20.000Z,,,true\r\n";
    let expected = [
        page("http://a.test/", "A b", "x,y,Work,Rust", TIME),
        page("http://b.test/", "B", "", TIME),
    ];
    assert_eq!(in_folders(raindrop.as_bytes()), ("Raindrop table".to_owned(), expected.to_vec()));

    let instapaper = b"URL,Title,Selection,Folder,Timestamp,Tags\nhttp://a.test/,A,,Archive,1700000000,\"[\"\"x\"\", \"\"y, z\"\"]\"\nhttp://b.test/,B,s,Recipes,1700000000,[]\n";
    let expected =
        [page("http://a.test/", "A", "x,y, z", TIME), page("http://b.test/", "B", "Recipes", TIME)];
    assert_eq!(in_folders(instapaper), ("Instapaper table".to_owned(), expected.to_vec()));
    let older = b"URL,Title,Selection,Folder\nhttp://a.test/,A,,Unread\n";
    assert_eq!(in_folders(older).1, [page("http://a.test/", "A", "", "")]);

    let readwise = b"Title,URL,ID,Document tags,Saved date,Reading progress,Location,Seen\nA,http://a.test/,1,\"['x', 'y']\",2023-11-14 22:13:20+00:00,0,new,False\n";
    let expected = [page("http://a.test/", "A", "x,y", TIME)];
    assert_eq!(in_folders(readwise), ("Readwise table".to_owned(), expected.to_vec()));
}

#[test]
fn documents_of_services_are_read() {
    let one = |format: &str, bytes: &[u8], tags: &str| {
        let (found, pages) = in_folders(bytes);
        assert_eq!(found, format);
        assert_eq!(pages, [page("http://a.test/", "A", tags, TIME)], "{format}");
    };
    one(
        "Pinboard file",
        br#"[{"href":"http://a.test/","description":"A","extended":"e","meta":"m","hash":"h","time":"2023-11-14T22:13:20Z","shared":"no","toread":"yes","tags":"x y"}]"#,
        "x,y",
    );
    one(
        "Chromium bookmark file",
        br#"{"checksum":"c","roots":{"bookmark_bar":{"children":[{"children":[
            {"date_added":"13344473600000000","guid":"g","id":"5","name":"A","type":"url","url":"http://a.test/"}],
            "date_added":"1","guid":"f","name":"News","type":"folder"}],
            "guid":"0bc5d13f-2cba-5d74-951f-3f233fe6c908","name":"Bookmarks bar","type":"folder"},
            "trash":{"children":[],"name":"Papierkorb","type":"folder"}},"version":1}"#,
        "News",
    );
    // The folders of every browser are known by their place, not by their ids and names.
    one(
        "Chromium bookmark file",
        br#"{"roots":{"other":{"children":[{"children":[
            {"date_added":"13344473600000000","id":"5","name":"A","type":"url","url":"http://a.test/"}],
            "name":"News","type":"folder"}],"guid":"g","name":"Weitere Lesezeichen","type":"folder"}}}"#,
        "News",
    );
    one(
        "Firefox bookmark file",
        br#"{"guid":"root________","title":"","type":"text/x-moz-place-container","children":[{"guid":"menu________","title":"menu","type":"text/x-moz-place-container","children":[{"guid":"aaaaaaaaaaaa","title":"News","type":"text/x-moz-place-container","children":[{"guid":"bbbbbbbbbbbb","title":"A","dateAdded":1700000000000000,"type":"text/x-moz-place","uri":"http://a.test/","tags":"x,two words"}]}]}]}"#,
        "x,two words,News",
    );
    one(
        "linkwarden file",
        br#"{"name":"me","username":"me","collections":[{"name":"News","links":[{"name":"A","url":"http://a.test/","importDate":null,"createdAt":"2023-11-14T22:13:20.000Z","tags":[{"id":1,"name":"x"}]}]}]}"#,
        "x,News",
    );
    one(
        "karakeep file",
        br#"{"bookmarks":[{"createdAt":1700000000,"title":null,"tags":["x"],"content":{"type":"link","url":"http://a.test/","title":"A"},"note":null}]}"#,
        "x",
    );
    one(
        "wallabag file",
        br#"[{"is_archived":0,"is_starred":1,"id":1,"title":"A","url":"http://a.test/","content":"<p>long</p>","created_at":"2023-11-14T23:13:20+0100","tags":["x"]}]"#,
        "x",
    );
    one(
        "Omnivore file",
        br#"[{"id":"i","slug":"s","title":"A","url":"http://a.test/","state":"Archived","savedAt":"2023-11-14T22:13:20.000Z","labels":["x"]}]"#,
        "x",
    );
}

#[test]
fn outlines_name_pages_and_feeds() {
    let text = br#"<?xml version="1.0" encoding="UTF-8"?>
<opml version="2.0"><head><title>feeds</title></head><body>
<outline text="News"><outline type="rss" text="A &amp; B" title="A &amp; B" xmlUrl="http://a.test/feed" htmlUrl="http://a.test/"/>
<outline text="No page" xmlUrl="http://b.test/feed"></outline></outline>
<!-- <outline xmlUrl="http://no.test/"/> -->
<outline type="link" text="C" url="http://c.test/" created="Tue, 14 Nov 2023 22:13:20 GMT"/></body></opml>"#;
    let expected = [
        page("http://a.test/", "A & B", "News", ""),
        page("http://b.test/feed", "No page", "News", ""),
        page("http://c.test/", "C", "", TIME),
    ];
    assert_eq!(in_folders(text), ("OPML file".to_owned(), expected.to_vec()));
}

#[test]
fn a_row_with_further_values_is_judged_as_a_line() {
    for head in ["url", "url,title"] {
        let row = "http://a.test/a, http://a.test/b, c";
        let found = entries(format!("{head}\nhttp://a.test/x\n{row}\n").as_bytes());
        assert!(found[0].1.is_ok());
        let why = found[1].1.as_ref().unwrap_err();
        assert!(why.contains("several addresses"), "{head}: {why}");
    }
}

#[test]
fn records_in_lines_stay_lines() {
    let one = br#"{"url":"http://a.test/","title":"A","tags":["x"]}"#;
    let two = b"{\"type\":\"Crawl\",\"id\":\"c1\"}\n{\"url\":\"http://a.test/\"}";
    for text in [&one[..], two, b"[a](http://a.test/)\n[b](http://b.test/)", b"<http://a.test/>"] {
        assert_eq!(description(text), "");
        assert!(entries(text).last().unwrap().1.is_ok());
    }
    assert_eq!(pages(one), [page("http://a.test/", "A", "x", "")]);
}

#[test]
fn other_formats_are_named() {
    for (bytes, name) in [
        (&b"<!doctype html><title>x</title><a href=http://a.test/>a</a>"[..], "an HTML page"),
        (b"<p>http://a.test/</p>", "an HTML document"),
        (b"\xef\xbb\xbf\n<?xml version=\"1.0\"?>\n<rss><channel/></rss>", "an RSS feed"),
        (b"<?xml version=\"1.0\"?><feed xmlns=\"x\"/>", "an Atom feed"),
        (b"<?xml version=\"1.0\"?><urlset/>", "a sitemap"),
        (b"<?xml version=\"1.0\"?><x/>", "an XML document"),
        (b"%PDF-1.7", "a PDF document"),
        (b"PK\x03\x04..", "a ZIP archive"),
        (b"SQLite format 3\0", "an SQLite database"),
        (b"{\\rtf1 http://a.test/}", "an RTF document"),
        (b"mozLz40\0..", "a backup of Firefox bookmarks"),
        (b"WARC/1.1\r\n", "a WARC file"),
        (b"[InternetShortcut]\r\nURL=http://a.test/", "an Internet shortcut"),
        (b"{\"log\":{\"entries\":[]}}", "a HAR file"),
        (b"{\n  \"url\": \"http://a.test/", "a broken JSON document"),
    ] {
        let error = List::read(bytes).unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
    }
}

/// The inputs that the installed package is tested with.
#[test]
fn lists_of_tests_web_are_read() {
    let of = |bytes: &[u8]| {
        let bytes = String::from_utf8_lossy(bytes).replace("PORT", "80");
        let found = entries(bytes.as_bytes());
        let (good, bad): (Vec<_>, Vec<_>) = found.into_iter().partition(|(_, it)| it.is_ok());
        let paths = good.into_iter().map(|(_, entry)| {
            let url = entry.unwrap().url.to_string();
            url.split_once("//").unwrap().1.to_owned()
        });
        let refused = bad.into_iter().map(|(place, _)| place);
        (paths.collect::<Vec<_>>(), refused.collect::<Vec<_>>())
    };
    let host = |path: &&str| format!("127.0.0.1/{path}");
    let all = |paths: &[&str]| paths.iter().map(host).collect::<Vec<_>>();
    let (urls, refused) = of(include_bytes!("../../../../../tests/web/01-list-bom/urls.txt"));
    assert_eq!((urls, refused.len()), (all(&["one", "two"]), 0));
    let (urls, refused) =
        of(include_bytes!("../../../../../tests/web/03-bookmark-export/bookmarks.html"));
    assert_eq!(urls, all(&["recipe?a=1&b=2", "bike"]));
    assert_eq!(refused, ["line 12"]);
    let (urls, refused) = of(include_bytes!("../../../../../tests/web/04-line-with-text/urls.txt"));
    let right = ["soup", "angle", "markdown", "wiki/Insert_(effects)", "c", "e", "f", "g"];
    assert_eq!(urls, all(&right));
    assert_eq!(refused, ["line 2", "line 7", "line 11", "line 12"]);
    let (urls, refused) = of(include_bytes!("../../../../../tests/web/31-url-forms/urls.txt"));
    assert_eq!((urls.len(), refused.len()), (14, 4));
    assert!(urls.contains(&host(&"a%20b%20c")));
    let (urls, refused) =
        of(include_bytes!("../../../../../tests/web/32-watch-url-file/sites.txt"));
    assert_eq!(urls, all(&["shop", "blog"]));
    assert_eq!(refused, ["line 3", "line 4"]);
}

proptest! {
    /// Whatever is in a file, reading it ends, and each position is in the file.
    #[test]
    fn any_bytes_are_a_list_or_refused(bytes: Vec<u8>, start in "(<|<!DOCTYPE NETSCAPE-Bookmark-file-1>|<opml>|\\[|\\{|url,title\n|)") {
        let bytes = [start.as_bytes(), &bytes].concat();
        if let Ok(list) = List::read_with(&bytes, Folders::AsTags) {
            for (place, line) in list.lines() {
                let _ = parse_line(line);
                if let Place::Line(number) = place {
                    prop_assert!(number >= 1 && number <= bytes.len() as u64 + 1);
                }
            }
        }
    }

    /// Whatever is in a bookmark file: every address of a page was in a HREF.
    #[test]
    fn any_bookmark_file_is_read(parts in prop::collection::vec("(<A |HREF=|<H3>|<DL>|</DL>|<DD>|<script|</script|&eacute;|TAGS=|\"|'|http://[ab]\\.test/x|>|</A>|<DT>|<!--|-->|&amp;|&#x26;|\n|é|=|[a-z]{1,3})", 0..40)) {
        let text = format!("<!DOCTYPE NETSCAPE-Bookmark-file-1>{}", parts.concat());
        for (_, entry) in entries(text.as_bytes()) {
            if let Ok(entry) = entry {
                let host = entry.url.as_str().split('/').nth(2).unwrap().to_owned();
                prop_assert!(text.contains(&host), "{} in {}", host, text);
            }
        }
    }

    /// Every address that is queued occurs in the input as it is.
    #[test]
    fn every_queued_address_is_in_the_list(lines in prop::collection::vec("[-*>\"'(<\\[ ]{0,3}(http://[ab]\\.test/[a-z]{2,5})?[ \t,;|#)>\\]\"']{0,3}[A-Za-z]{0,6}", 0..8), end in "(\n|\r\n|\r)") {
        let text = lines.join(&end);
        if List::read(text.as_bytes()).is_err() {
            return Ok(());
        }
        for (_, entry) in entries(text.as_bytes()) {
            if let Ok(entry) = entry {
                let url = entry.url.as_str().replace("%22", "\"").replace("%27", "'");
                prop_assert!(text.contains(url.trim_end_matches('/')), "{} in {:?}", url, text);
            }
        }
    }
}
