use super::*;
use proptest::prelude::*;

fn of(text: &str, content_type: &str) -> Option<Listing> {
    let address = Url::parse("https://a.test/dir/feed").unwrap();
    read(text.as_bytes(), content_type, &address)
}

fn shown(listing: &Listing) -> Vec<String> {
    let entry = |entry: &ListingEntry| {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        format!("{} {} {}", entry.url, text(&entry.title), text(&entry.date))
    };
    listing.entries.iter().map(entry).collect()
}

#[test]
fn categories_are_tags() {
    let rss = "<rss><channel><category>of the feed</category><item><link>https://a.test/1</link>
        <category domain='x'> Climate  Change </category><category><![CDATA[R&D]]></category>
        <category>R&amp;D</category><category/><media:category xmlns:media='x'>no</media:category></item>
        <item><link>https://a.test/2</link></item></channel></rss>";
    let atom = "<feed xmlns='http://www.w3.org/2005/Atom'><entry><link href='https://a.test/1'/>
        <category term='Climate Change' label='no'/><category term='R&amp;D'/></entry>
        <entry><link href='https://a.test/2'/></entry></feed>";
    let json = r#"{"version":"https://jsonfeed.org/version/1.1","items":[
        {"url":"https://a.test/1","tags":["Climate Change"," R&amp;D ",7]},{"url":"https://a.test/2"}]}"#;
    for (text, kind) in [(rss, "text/xml"), (atom, "text/xml"), (json, "application/feed+json")] {
        let feed = of(text, kind).unwrap();
        let tags: Vec<_> = feed.entries.iter().map(|entry| entry.tags.join("|")).collect();
        assert_eq!(tags, ["Climate Change|R&D", ""], "{text}");
    }
}

const RSS: &str = "<?xml version='1.0'?><rss version='2.0' xmlns:atom='http://www.w3.org/2005/Atom' xmlns:media='x'>
<channel><title> F &amp; co </title><link>https://a.test/</link><atom:link href='https://a.test/feed' rel='self'/>
<image><title>no</title><link>https://a.test/no</link></image>
<item><title><![CDATA[One <b>bold</b> &amp; more]]></title><media:title>no</media:title><atom:link rel='self' href='https://a.test/no'/>
<link> https://a.test/post/1?a=1&amp;b=2#new </link><pubDate>Sat, 03 Feb 2024 04:05:06 +0100</pubDate></item>
<item><title>Two</title><guid>https://a.test/post/2</guid></item>
<item><title>Three</title><guid isPermaLink='false'>https://a.test/no</guid><enclosure url='/a.mp3'/><dc:date xmlns:dc='x'>2024-02-03</dc:date></item>
<item><title>Four</title><guid>tag:a.test,4</guid></item><item><link>../five</link></item><item><link>javascript:x</link></item>
</channel></rss>";

#[test]
fn entries_of_rss() {
    for kind in ["application/rss+xml", "text/html", "text/plain", "", "application/octet-stream"] {
        let feed = of(RSS, kind).unwrap();
        assert_eq!(feed.title.as_deref(), Some("F & co"));
        assert_eq!(
            shown(&feed),
            [
                "https://a.test/post/1?a=1&b=2 One bold & more 2024-02-03T03:05:06Z",
                "https://a.test/post/2 Two ",
                "https://a.test/a.mp3 Three 2024-02-03",
                "https://a.test/five  "
            ],
            "{kind}"
        );
    }
}

#[test]
fn entries_of_atom() {
    let feed = of(
        "<a:feed xmlns:a='http://www.w3.org/2005/Atom' xml:base='/base/'><a:title type='xhtml'><div>F <b>x</b></div></a:title>
        <a:link href='https://a.test/home'/><a:entry xml:base='deep/'><a:title>Three</a:title>
        <a:link rel='enclosure' href='no'/><a:link rel='alternate' href='3'/><a:link href='no'/><a:updated>2024-01-01T00:00:00Z</a:updated>
        <a:published>2023-01-01T00:00:00Z</a:published><a:content><a:link href='no'/></a:content></a:entry>
        <a:entry><a:title type='html'>A &amp;lt;b&amp;gt;</a:title><a:link href='4'/><a:updated>2024-01-01T00:00:00+02:00</a:updated></a:entry></a:feed>",
        "application/atom+xml",
    )
    .unwrap();
    assert_eq!(feed.title.as_deref(), Some("F x"));
    assert_eq!(
        shown(&feed),
        [
            "https://a.test/base/deep/3 Three 2023-01-01T00:00:00Z",
            "https://a.test/base/4 A <b> 2023-12-31T22:00:00Z"
        ]
    );
}

#[test]
fn entries_of_rdf() {
    let feed = of(
        "<rdf:RDF xmlns:rdf='r' xmlns='http://purl.org/rss/1.0/' xmlns:dc='d'><channel rdf:about='x'><title>F</title>
        <items><rdf:Seq><rdf:li resource='https://a.test/no'/></rdf:Seq></items></channel>
        <item rdf:about='https://a.test/1'><title>One</title><link>https://a.test/1</link><dc:date>2024-02-03T04:05:06Z</dc:date></item></rdf:RDF>",
        "application/rdf+xml",
    )
    .unwrap();
    assert_eq!(feed.title.as_deref(), Some("F"));
    assert_eq!(shown(&feed), ["https://a.test/1 One 2024-02-03T04:05:06Z"]);
}

#[test]
fn entries_of_json_feed() {
    let text = r#"{"version":"https://jsonfeed.org/version/1.1","title":"F","items":[
        {"id":"1","url":"https://a.test/7","title":"Seven","date_published":"2024-02-03T04:05:06Z"},
        {"id":"https://a.test/8"},{"id":"9"},7,{"external_url":"/10"}]}"#;
    for kind in ["application/feed+json", "application/json", "text/plain"] {
        let feed = of(text, kind).unwrap();
        assert_eq!(feed.title.as_deref(), Some("F"));
        assert_eq!(
            shown(&feed),
            [
                "https://a.test/7 Seven 2024-02-03T04:05:06Z",
                "https://a.test/8  ",
                "https://a.test/10  "
            ]
        );
    }
    assert_eq!(of(r#"{"items":[{"url":"https://a.test/"}]}"#, "application/json"), None);
    assert_eq!(of(&"[".repeat(100_000), "application/json"), None);
    assert_eq!(of(&"{\"a\":".repeat(100_000), "application/json"), None);
}

#[test]
fn entries_of_sitemaps_and_their_indexes() {
    let map =
        "<urlset><url><loc>https://a.test/4</loc><lastmod>2024-02-03</lastmod></url></urlset>";
    assert_eq!(shown(&of(map, "application/xml").unwrap()), ["https://a.test/4  2024-02-03"]);
    let index =
        "<sitemapindex><sitemap><loc>https://a.test/1.xml.gz</loc></sitemap></sitemapindex>";
    assert_eq!(shown(&of(index, "text/xml").unwrap()), ["https://a.test/1.xml.gz  "]);
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packed, map.as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    let address = Url::parse("https://a.test/sitemap.xml.gz").unwrap();
    for kind in ["application/gzip", "application/xml", "application/octet-stream", ""] {
        let listing = read(&packed, kind, &address).unwrap();
        assert_eq!(listing.entries.len(), 1, "{kind}");
    }
}

#[test]
fn lines_of_text_are_entries() {
    let text = "# list\r\nhttps://a.test/5\r\n\r\nhttps://a.test/6\nnot one\n{\"url\":\"https://a.test/7\",\"title\":\"Seven\"}\n";
    let listing = of(text, "text/plain").unwrap();
    assert_eq!(
        shown(&listing),
        ["https://a.test/5  ", "https://a.test/6  ", "https://a.test/7 Seven "]
    );
    assert_eq!(of("no address here", "text/plain"), None);
    assert_eq!(of("https://a.test/", "text/html"), None);
    assert_eq!(of("https://a.test/", ""), None);
    let utf_16: Vec<u8> =
        "\u{feff}https://a.test/é\n".encode_utf16().flat_map(u16::to_be_bytes).collect();
    let address = Url::parse("https://a.test/").unwrap();
    assert_eq!(
        read(&utf_16, "text/plain", &address).unwrap().entries[0].url.as_str(),
        "https://a.test/%C3%A9"
    );
}

#[test]
fn feeds_in_other_encodings_are_read() {
    let text = "<?xml version='1.0' encoding='windows-1251'?><rss><channel><title>Новости</title>\
        <item><title>Привет</title><link>https://a.test/?q=я</link></item></channel></rss>";
    let bytes = encoding_rs::WINDOWS_1251.encode(text).0;
    let address = Url::parse("https://a.test/").unwrap();
    let feed = read(&bytes, "application/rss+xml", &address).unwrap();
    assert_eq!(feed.title.as_deref(), Some("Новости"));
    assert_eq!(shown(&feed), ["https://a.test/?q=%D1%8F Привет "]);
    let utf_8 = read(text.as_bytes(), "text/xml; charset=UTF-8", &address).unwrap();
    assert_eq!(utf_8, feed);
}

#[test]
fn pages_are_no_lists_and_broken_feeds_count_up_to_their_end() {
    for page in ["<!doctype html><p>x", "<html><body>", "<svg/>", "", "<", "<?xml?>", "<a></rss>"] {
        assert_eq!(of(page, "application/xml"), None, "{page}");
    }
    let cut = &RSS[..RSS.find("Two").unwrap()];
    assert_eq!(of(cut, "").unwrap().entries.len(), 1);
    let deep = format!(
        "<rss><channel>{}<item><link>https://a.test/1</link></item>",
        "<a>".repeat(100_000)
    );
    of(&deep, "");
    let laughs =
        "<!DOCTYPE x [<!ENTITY a 'aaaa'>]><rss><channel><title>&a;b</title></channel></rss>";
    assert_eq!(of(laughs, "").unwrap().title.as_deref(), Some("b"));
}

proptest! {
    #[test]
    fn any_bytes_are_read(body in proptest::collection::vec(any::<u8>(), 0..300), kind in "(text/(plain|html|xml)|application/(json|gzip|rss\\+xml)|)") {
        let address = Url::parse("https://a.test/").unwrap();
        read(&body, &kind, &address);
        read(&[&[0x1f, 0x8b][..], &body].concat(), &kind, &address);
    }

    #[test]
    fn any_feed_is_read(root in "<(a:)?(rss|feed|rdf:RDF|urlset|sitemapindex)>", words in proptest::collection::vec(
        "(</?(a:)?(channel|item|entry|title|link|guid|pubDate|url|loc)( href='[a-z:/.]{0,8}'| xml:base='[a-z/:]{0,6}')?/?>|<!\\[CDATA\\[|\\]\\]>|&[a-z#0-9]{0,4};?|https://a.test/|[é<]{0,3})", 0..40)) {
        let text = root + &words.concat();
        if let Some(listing) = of(&text, "") {
            for entry in listing.entries {
                prop_assert!(matches!(entry.url.scheme(), "http" | "https"));
            }
        }
    }

    #[test]
    fn any_date_is_read(text in "([0-9]{1,4}[-/: T]){1,6}Z?|[A-Z][a-z]{2}, [0-9]{1,2} [A-Z][a-z]{2} [0-9]{4} [0-9:]{5,8} [+-]?[A-Z0-9]{1,4}") {
        date(&text);
    }
}
