use super::*;

fn page(text: &str) -> Html {
    Html::parse_document(text)
}

fn urls(text: &str) -> Vec<String> {
    let address = Url::parse("http://a.test/dir/page?x=1#top").unwrap();
    let page = page(text);
    links(&page, &Resolver::new(&page, &address, UTF_8))
        .into_iter()
        .map(|link| link.url.to_string())
        .collect()
}

#[test]
fn titles_are_text_on_one_line() {
    let read = |text: &str| title(&page(text));
    assert_eq!(read("<title> a\n\t b\u{7}c </title>").as_deref(), Some("a b c"));
    assert_eq!(
        read("<title>$(touch /tmp/pwned) \"<b></title>").as_deref(),
        Some("$(touch /tmp/pwned) \"<b>")
    );
    assert_eq!(
        read("<svg><title>drawing</title></svg><title>page</title>").as_deref(),
        Some("page")
    );
    assert_eq!(
        read("<title> </title><meta property=og:title content='og'>").as_deref(),
        Some("og")
    );
    assert_eq!(read("<p>none").as_deref(), None);
    assert_eq!(
        read(&format!("<title>{}</title>", "é".repeat(5000))).unwrap().chars().count(),
        1024
    );
}

#[test]
fn title_in_the_data_of_xml_is_none_of_the_page() {
    let read = |text: &str| title(&page(text));
    let data = "<books><book><title>Of a book</title></book></books>";
    let viewer = format!("<div id=webkit-xml-viewer-source-xml>{data}</div><div>tree</div>");
    for text in [&format!("<?xml version='1.0'?>\n{data}"), &viewer] {
        assert_eq!(read(text), None, "{text}");
    }
    let article =
        "<?xml version='1.0'?><article><title>Of all</title><p><title>Part</title></article>";
    assert_eq!(read(article).as_deref(), Some("Of all"));
    let xhtml = "<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'><head><title>Page</title></head><body/></html>";
    assert_eq!(read(xhtml).as_deref(), Some("Page"));
}

#[test]
fn links_are_resolved_against_base_element_and_url() {
    assert_eq!(
        urls(
            "<a href=b>1</a><a href='/c#f'>2</a><a href='//o.test/'>3</a><area href='?q'><iframe src=i>"
        ),
        [
            "http://a.test/dir/b",
            "http://a.test/c",
            "http://o.test/",
            "http://a.test/dir/page?q",
            "http://a.test/dir/i"
        ]
    );
    assert_eq!(urls("<base href='/deep/'><a href=x>"), ["http://a.test/deep/x"]);
    assert_eq!(urls("<base href='file:///etc/'><a href=x>"), ["http://a.test/dir/x"]);
}

#[test]
fn other_schemes_fragments_and_malformed_urls_are_not_links() {
    let text = "<a href='javascript:alert(1)'><a href='file:///etc/passwd'><a href='#x'><a href=''>\
        <a href='http://[bad/'><a href='data:text/html,x'><a href='mailto:a@b.test'><a href='  '>";
    assert!(urls(text).is_empty());
    assert!(urls(&format!("<a href='/{}'>", "x".repeat(10_000))).is_empty());
}

#[test]
fn hostile_urls_stay_text() {
    assert_eq!(
        urls("<a href='/?q=$(reboot)&n=%n&h=${HOME}&t=`id`'><a href=\"/a\nb'\">"),
        ["http://a.test/?q=$(reboot)&n=%n&h=${HOME}&t=`id`", "http://a.test/ab'"]
    );
}

#[test]
fn meta_refresh_is_a_link() {
    assert_eq!(
        urls("<meta http-equiv=Refresh content='5; URL=\"/next\"'>"),
        ["http://a.test/next"]
    );
    assert!(
        urls("<meta http-equiv=refresh content=5><meta http-equiv=x content='0;url=/no'>")
            .is_empty()
    );
}

#[test]
fn queries_are_in_the_encoding_of_the_page() {
    let address = Url::parse("http://a.test/").unwrap();
    let link = |target: &str, encoding| {
        let page = page(&format!("<a href='{target}'>x</a>"));
        let resolver = Resolver::new(&page, &address, encoding);
        links(&page, &resolver)[0].url.to_string()
    };
    assert_eq!(link("/日?q=日", encoding_rs::SHIFT_JIS), "http://a.test/%E6%97%A5?q=%93%FA");
    assert_eq!(link("/é?é", encoding_rs::WINDOWS_1252), "http://a.test/%C3%A9?%E9");
    assert_eq!(
        link("?a=国é&b=%20#é", encoding_rs::WINDOWS_1252),
        "http://a.test/?a=%26%2322269%3B%E9&b=%20"
    );
    for encoding in [UTF_8, encoding_rs::UTF_16LE, encoding_rs::REPLACEMENT] {
        assert_eq!(link("?é", encoding), "http://a.test/?%C3%A9");
    }
}

#[test]
fn links_of_shadow_roots_count_and_those_of_other_templates_do_not() {
    assert_eq!(
        urls(
            "<base href=/d/><x-a><template shadowrootmode=open><title>no</title><base href=/no/><a href=1>s</a>\
            <x-b><template shadowrootmode=closed><a href=2></a></template></x-b></template></x-a>\
            <template><a href='{{no}}'></a><div><template shadowrootmode=open><a href=no></a></template></div></template><a href=3>"
        ),
        ["http://a.test/d/1", "http://a.test/d/2", "http://a.test/d/3"]
    );
    let text = "<x-a><template shadowrootmode=open><title>no</title></template></x-a>";
    assert_eq!(title(&page(text)), None);
}

#[test]
fn links_of_frames_drawings_and_neighbours_count() {
    assert_eq!(
        urls(
            "<link rel='nofollow Next' href=n><link rel=alternate href=no><a name=no>\
            <iframe src=no srcdoc='<a href=s></a><iframe srcdoc=\"<base href=/b/><a href=t></a>\"></iframe>'></iframe>\
            <svg><a xlink:href=x></a><a href=y></a></svg>"
        ),
        [
            "http://a.test/dir/n",
            "http://a.test/dir/s",
            "http://a.test/b/t",
            "http://a.test/dir/x",
            "http://a.test/dir/y"
        ]
    );
}

#[test]
fn frame_with_its_document_is_a_link_to_its_address_too() {
    let page = "<iframe data-archivist-src=f srcdoc='<base href=http://b.test/><a href=g></a>'>";
    assert_eq!(urls(page), ["http://b.test/g", "http://a.test/dir/f"]);
}

#[test]
fn deep_frames_are_read_in_bounded_time() {
    let deep = format!("<a href=x></a><iframe srcdoc='{}'></iframe>", "<div>".repeat(50_000));
    let begun = Instant::now();
    assert_eq!(urls(&deep.repeat(3)).len(), 3);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

#[test]
fn routes_are_named() {
    let address = Url::parse("http://a.test/app?x#/home").unwrap();
    let page = page(
        "<a href='#/a'><a href='#!b'><a href='#c'><a href='#!'><a href='/o#/d'><a href='/p#e'>",
    );
    let links = links(&page, &Resolver::new(&page, &address, UTF_8));
    let routes: Vec<_> =
        links.iter().map(|link| (link.url.as_str(), link.route.as_deref())).collect();
    assert_eq!(
        routes,
        [
            ("http://a.test/app?x", Some("/a")),
            ("http://a.test/app?x", Some("!b")),
            ("http://a.test/o", Some("/d")),
            ("http://a.test/p", None)
        ]
    );
}

#[test]
fn icons_for_browsers_precede_those_for_home_screens() {
    let text = "<link rel=apple-touch-icon href=/t.png><link rel='SHORTCUT Icon' href=f.ico><link rel=mask href=m>";
    let (page, address) = (page(text), Url::parse("http://a.test/d/").unwrap());
    let found = icons(&page, &Resolver::new(&page, &address, UTF_8));
    assert_eq!(
        found.iter().map(Url::as_str).collect::<Vec<_>>(),
        ["http://a.test/d/f.ico", "http://a.test/t.png"]
    );
}

#[test]
fn icons_within_the_page_are_decoded() {
    let icon = |href: &str| own_icon(&page(&format!("<link rel='shortcut icon' href=\"{href}\">")));
    assert_eq!(icon("data:image/svg+xml,<svg>%20</svg>").as_deref(), Some(&b"<svg> </svg>"[..]));
    for base64 in ["aGk=", "aGk", " aG\nk= "] {
        let url = format!("DATA:image/png ;charset=x;BASE64,{base64}");
        assert_eq!(icon(&url).as_deref(), Some(&b"hi"[..]), "{base64}");
    }
    for other in ["/icon.png", "data:image/png;base64", "data:;base64,?"] {
        assert_eq!(icon(other), None, "{other}");
    }
}
