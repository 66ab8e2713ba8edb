//! Reads the title, links and icons of a page's HTML. All of it is untrusted text.

use scraper::{ElementRef, Html, Selector};
use url::Url;

const XHTML: &str = "http://www.w3.org/1999/xhtml";
/// Longest URL in bytes that is taken from a page.
const URL_MAX_BYTES: usize = 8192;

/// Converts text to one line of at most `most` characters: runs of white space and control
/// characters become one blank.
pub fn one_line(text: &str, most: usize) -> String {
    let plain = text.replace(|c: char| c.is_control(), " ");
    let words: Vec<_> = plain.split_whitespace().collect();
    words.join(" ").chars().take(most).collect()
}

/// The page's title, else its `og:title`. `None` if both are empty.
pub fn title(page: &Html) -> Option<String> {
    let element = select(page, "title").find(|element| &*element.value().name.ns == XHTML);
    let own = element.map(|element| one_line(&element.text().collect::<String>(), 1024));
    let open_graph =
        || select(page, "meta[property='og:title']").find_map(|element| element.attr("content"));
    own.filter(|text| !text.is_empty()).or_else(|| {
        open_graph()
            .map(|text| one_line(text, 1024))
            .filter(|text| !text.is_empty())
    })
}

/// A link of a page.
#[derive(Debug, PartialEq, Eq)]
pub struct Link {
    /// Target: an absolute http or https URL without fragment.
    pub url: Url,
    /// Text of the link on one line, often empty.
    pub text: String,
}

/// All links of the page in their order, including duplicates.
pub fn links(page: &Html, address: &Url) -> Vec<Link> {
    let base = base(page, address);
    let mut links = Vec::new();
    for element in select(
        page,
        "a[href], area[href], iframe[src], frame[src], meta[http-equiv][content]",
    ) {
        let target = match element.value().name() {
            "a" | "area" => element.attr("href"),
            "meta" => refresh_target(&element),
            _ => element.attr("src"),
        };
        if let Some(url) = target.and_then(|target| web_url(&base, target)) {
            links.push(Link {
                url,
                text: one_line(&element.text().collect::<String>(), 300),
            });
        }
    }
    links
}

/// The icons that the page names: those for browsers before those for home screens.
pub fn icons(page: &Html, address: &Url) -> Vec<Url> {
    let base = base(page, address);
    let named = |wanted: &str| {
        let elements = select(page, "link[rel][href]").filter(|element| {
            let mut words = element
                .attr("rel")
                .unwrap_or_default()
                .split_ascii_whitespace();
            words.any(|word| word.eq_ignore_ascii_case(wanted))
        });
        elements
            .filter_map(|element| web_url(&base, element.attr("href")?))
            .collect::<Vec<_>>()
    };
    [named("icon"), named("apple-touch-icon")].concat()
}

/// The base URL for links: the page's URL, resolved against its first `base` element.
pub fn base(page: &Html, address: &Url) -> Url {
    let href = select(page, "base[href]").find_map(|element| element.attr("href"));
    let joined = href.and_then(|href| address.join(href.trim()).ok());
    joined
        .filter(|url| matches!(url.scheme(), "http" | "https"))
        .unwrap_or_else(|| address.clone())
}

/// Resolves the value of an attribute to an http or https URL without fragment. `None` for other
/// schemes, fragments, and URLs above the length limit.
pub fn web_url(base: &Url, target: &str) -> Option<Url> {
    let target = target.trim();
    if target.is_empty() || target.starts_with('#') || target.len() > URL_MAX_BYTES {
        return None;
    }
    let mut url = base.join(target).ok()?;
    url.set_fragment(None);
    let fits = matches!(url.scheme(), "http" | "https") && url.as_str().len() <= URL_MAX_BYTES;
    fits.then_some(url)
}

/// The target of `<meta http-equiv=refresh content="5; url=…">`.
fn refresh_target<'a>(element: &ElementRef<'a>) -> Option<&'a str> {
    if !element.attr("http-equiv")?.eq_ignore_ascii_case("refresh") {
        return None;
    }
    let (_, rest) = element.attr("content")?.split_once([';', ','])?;
    let rest = rest.trim_start();
    let (key, target) = rest.split_once('=')?;
    let target = target.trim().trim_matches(['"', '\'']);
    key.trim().eq_ignore_ascii_case("url").then_some(target)
}

/// The elements that match a selector in the page's order. None if the selector is invalid.
pub fn select<'a>(page: &'a Html, selector: &str) -> impl Iterator<Item = ElementRef<'a>> {
    let selector = Selector::parse(selector).ok();
    page.root_element()
        .descendent_elements()
        .filter(move |element| selector.as_ref().is_some_and(|s| s.matches(element)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str) -> Html {
        Html::parse_document(text)
    }

    fn urls(text: &str) -> Vec<String> {
        let address = Url::parse("http://a.test/dir/page?x=1#top").unwrap();
        links(&page(text), &address)
            .into_iter()
            .map(|link| link.url.to_string())
            .collect()
    }

    #[test]
    fn titles_are_text_on_one_line() {
        let read = |text: &str| title(&page(text));
        assert_eq!(
            read("<title> a\n\t b\u{7}c </title>").as_deref(),
            Some("a b c")
        );
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
            read(&format!("<title>{}</title>", "é".repeat(5000)))
                .unwrap()
                .chars()
                .count(),
            1024
        );
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
        assert_eq!(
            urls("<base href='/deep/'><a href=x>"),
            ["http://a.test/deep/x"]
        );
        assert_eq!(
            urls("<base href='file:///etc/'><a href=x>"),
            ["http://a.test/dir/x"]
        );
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
            [
                "http://a.test/?q=$(reboot)&n=%n&h=${HOME}&t=`id`",
                "http://a.test/ab'"
            ]
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
    fn icons_for_browsers_precede_those_for_home_screens() {
        let text = "<link rel=apple-touch-icon href=/t.png><link rel='SHORTCUT Icon' href=f.ico><link rel=mask href=m>";
        let found = icons(&page(text), &Url::parse("http://a.test/d/").unwrap());
        assert_eq!(
            found.iter().map(Url::as_str).collect::<Vec<_>>(),
            ["http://a.test/d/f.ico", "http://a.test/t.png"]
        );
    }
}
