//! The text that a page shows: blocks as lines, without scripts, and without menus if markup tells
//! them.

use crate::chromium::consent::consent_managers;
use crate::page::html::{self, PARSING_TIMEOUT};
use scraper::node::Element;
use scraper::{ElementRef, Html, Node, Selector};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Elements that show no text of the page.
const SILENT: [&str; 16] = [
    "audio", "canvas", "datalist", "head", "iframe", "math", "noframes", "noscript", "object",
    "option", "rp", "script", "style", "svg", "template", "video",
];
/// Elements that continue the line.
const INLINE: [&str; 36] = [
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em",
    "font", "i", "img", "ins", "kbd", "label", "mark", "q", "rb", "rt", "rtc", "ruby", "s", "samp",
    "small", "span", "strong", "sub", "sup", "time", "tt", "u", "wbr",
];
/// Roles of what surrounds the content (WAI-ARIA 1.2, "Landmark Roles" and menus). A `tablist` is none: in
/// the accordions of jQuery UI and Bootstrap 3 it has the panels, too.
const MENU_ROLES: [&str; 7] =
    ["banner", "contentinfo", "menu", "menubar", "navigation", "search", "toolbar"];
/// Roles of what a click shows, such as the answers of a list of questions.
const PANEL_ROLES: [&str; 2] = ["tabpanel", "region"];
/// Depth of frames whose documents are in `srcdoc`.
const FRAMES_DEPTH: usize = 3;

/// Words outside links and menus with which the header of a site is one of the page, such as a large picture
/// with a sentence.
const HEADER_WORDS: usize = 6;
/// Nodes of a header in which its headline is looked for.
const HEADER_NODES: usize = 4000;

/// Returns the text of a page, a little more than `most` bytes of it if it is longer. Menus, the header and
/// footer of the site, and walls that ask for consent are left out unless that leaves nothing. A header with
/// a headline is content, without its links in lists, its buttons and its forms.
pub fn text(page: &Html, most: usize) -> String {
    let walls = consent_managers();
    // The second time with everything.
    for walls in [walls.as_ref(), None] {
        let mut lines = Lines { most, ..Lines::default() };
        let until = Instant::now() + PARSING_TIMEOUT;
        let _ = read(page, &mut lines, walls, FRAMES_DEPTH, until);
        lines.end();
        if walls.is_none() || !lines.text.is_empty() {
            return lines.text;
        }
    }
    String::new()
}

#[derive(Default)]
struct Lines {
    text: String,
    /// How the words of the line are read, which stands between their letters (ruby, HTML 4.5.10).
    readings: String,
    /// How many of the open elements are readings.
    reading: usize,
    /// Whether the last line has a word.
    is_line: bool,
    /// Whether a blank precedes the next word.
    is_blank: bool,
    most: usize,
}

impl Lines {
    fn add(&mut self, text: &str) {
        if self.reading > 0 {
            self.readings.push_str(text.trim());
            return;
        }
        let is_space = |c: char| c.is_whitespace() || c.is_control();
        self.is_blank |= text.starts_with(is_space);
        for word in text.split(is_space).filter(|word| !word.is_empty()) {
            if self.is_blank && self.is_line {
                self.text.push(' ');
            }
            self.text.push_str(word);
            (self.is_line, self.is_blank) = (true, true);
        }
        self.is_blank = text.ends_with(is_space) || text.is_empty() && self.is_blank;
    }

    /// Adds text whose lines are those of the page, such as source code.
    fn add_preformatted(&mut self, text: &str) {
        for (at, line) in text.split('\n').enumerate() {
            if at > 0 {
                self.end();
            }
            self.add(line);
        }
    }

    fn end(&mut self) {
        if self.reading == 0 && !self.readings.trim().is_empty() {
            let readings = std::mem::take(&mut self.readings);
            self.is_blank = true;
            self.add(&format!("({})", readings.trim()));
        }
        if self.is_line {
            self.text.push('\n');
        }
        (self.is_line, self.is_blank) = (false, false);
    }
}

/// Adds the text of a page to `lines`, until they are long enough or it is late: without its walls and
/// menus, or all of it if nothing selects the walls. Without recursion in the depth of the page, which may be a
/// hundred thousand.
fn read(
    page: &Html,
    lines: &mut Lines,
    walls: Option<&Selector>,
    frames: usize,
    until: Instant,
) -> ControlFlow<()> {
    // How many of the open elements are content, headers or preformatted.
    let (mut content, mut headers, mut preformatted) = (0usize, 0usize, 0usize);
    let mut next = Some(page.tree.root());
    while let Some(node) = next {
        let mut enters = true;
        match node.value() {
            Node::Text(text) if preformatted > 0 => lines.add_preformatted(text),
            Node::Text(text) => lines.add(text),
            Node::Element(element) => {
                let is_left_out = match (walls, content) {
                    (None, _) => false,
                    (Some(walls), _)
                        if ElementRef::wrap(node).is_some_and(|one| walls.matches(&one)) =>
                    {
                        true
                    }
                    (Some(_), 0) if is_header(element) => {
                        !ElementRef::wrap(node).is_some_and(has_headline)
                    }
                    (Some(_), 0) if headers > 0 && is_control(element) => true,
                    (Some(_), _) => is_menu(element, content > 0),
                };
                enters = !is_left_out && !is_silent(element);
                if element.name() == "iframe"
                    && let Some(inner) = element.attr("srcdoc").filter(|_| frames > 0)
                {
                    let left = until.saturating_duration_since(Instant::now());
                    let inner = html::parse(inner, left.min(Duration::from_secs(2)));
                    lines.end();
                    read(&inner, lines, walls, frames - 1, until)?;
                    lines.end();
                }
                if enters {
                    open(element, lines);
                    content += usize::from(is_content(element));
                    headers += usize::from(is_header(element));
                    preformatted += usize::from(is_preformatted(element));
                }
            }
            _ => {}
        }
        if lines.text.len() > lines.most || Instant::now() > until {
            return ControlFlow::Break(());
        }
        next = enters.then(|| node.first_child()).flatten();
        let mut above = Some(node);
        let mut was_entered = enters;
        while let (None, Some(one)) = (next, above) {
            if let Some(element) = ElementRef::wrap(one).filter(|_| was_entered) {
                let element = element.value();
                close(element, lines);
                content -= usize::from(is_content(element));
                headers -= usize::from(is_header(element));
                preformatted -= usize::from(is_preformatted(element));
            }
            was_entered = true;
            next = one.next_sibling();
            above = one.parent();
        }
    }
    ControlFlow::Continue(())
}

fn open(element: &Element, lines: &mut Lines) {
    match element.name() {
        "td" | "th" => lines.add(" "),
        "rt" => lines.reading += 1,
        name if INLINE.contains(&name) => {}
        _ => lines.end(),
    }
}

fn close(element: &Element, lines: &mut Lines) {
    match element.name() {
        "rt" => lines.reading -= 1,
        "ruby" => lines.readings.push(' '),
        _ => open(element, lines),
    }
}

/// Whether an element has the content of the page, within which headers and footers are content, too.
fn is_content(element: &Element) -> bool {
    matches!(element.name(), "article" | "main" | "section") || has_role(element, &["main"])
}

fn is_preformatted(element: &Element) -> bool {
    matches!(element.name(), "pre" | "textarea" | "listing" | "xmp")
}

/// Whether an element has no text, or none that a reader sees. What is hidden and inert is not shown later: the
/// browser leaves so a wall that was closed.
fn is_silent(element: &Element) -> bool {
    let is_shadow = element.name() == "template" && element.attr("shadowrootmode").is_some();
    let is_inert = element.attr("inert").is_some();
    let is_hidden = element
        .attr("hidden")
        .is_some_and(|value| value != "until-found" && (is_inert || !is_shown_later(element)));
    !is_shadow && SILENT.contains(&element.name()) || is_hidden
}

/// Whether an element has content of the page even while it is hidden: the panel of a tab, or a slide of a
/// presentation, which a script hides until its turn.
fn is_shown_later(element: &Element) -> bool {
    is_content(element) || has_role(element, &PANEL_ROLES)
}

/// Whether an element is a header, of the site or of a part of the page.
fn is_header(element: &Element) -> bool {
    element.name() == "header" || has_role(element, &["banner"])
}

/// Whether an element of a header is there to go elsewhere.
fn is_control(element: &Element) -> bool {
    matches!(element.name(), "ul" | "ol" | "form" | "button")
}

/// Whether a header has the headline of the page or a sentence, and not only the name of the site, which is
/// a link, and menus.
fn has_headline(header: ElementRef<'_>) -> bool {
    let is_left_out = |element: &Element| {
        element.name() == "a"
            || is_control(element)
            || is_silent(element)
            || is_menu(element, false) && !is_header(element)
    };
    let is_heading = |element: &Element| matches!(element.name(), "h1" | "h2");
    let (mut headings, mut words) = (0usize, 0usize);
    let mut next = header.first_child();
    for _ in 0..HEADER_NODES {
        let Some(node) = next else {
            return false;
        };
        let mut was_entered = true;
        match node.value() {
            Node::Text(text) => {
                let count = text.split_whitespace().count();
                words += count;
                if words >= HEADER_WORDS || count > 0 && headings > 0 {
                    return true;
                }
            }
            Node::Element(element) => {
                was_entered = !is_left_out(element);
                headings += usize::from(was_entered && is_heading(element));
            }
            _ => {}
        }
        next = was_entered.then(|| node.first_child()).flatten();
        let mut above = node;
        while next.is_none() && above.id() != header.id() {
            let element = above.value().as_element();
            headings -= usize::from(was_entered && element.is_some_and(is_heading));
            was_entered = true;
            next = above.next_sibling();
            let Some(parent) = above.parent() else {
                return false;
            };
            above = parent;
        }
    }
    false
}

/// Whether an element surrounds the content: a menu, or the header or footer of the site.
fn is_menu(element: &Element, is_in_content: bool) -> bool {
    match element.name() {
        "nav" | "menu" => true,
        "header" | "footer" => !is_in_content,
        "html" | "body" => false,
        _ => has_role(element, &MENU_ROLES),
    }
}

fn has_role(element: &Element, roles: &[&str]) -> bool {
    let role = element.attr("role").unwrap_or_default();
    roles.contains(&role)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(page: &str) -> String {
        text(&html::parse(page, PARSING_TIMEOUT), 1 << 20)
    }

    #[test]
    fn blocks_are_lines_and_words_stay_whole() {
        let page = "<title>T</title><p>One <b>t</b>wo\n three<br>four</p><ul><li>a<li>b</ul>\
            <table><tr><td>c<td>d</table><pre>  x\n    y z\n</pre>end<p></p>\u{a0}<div>1<div>2</div>3</div>";
        assert_eq!(of(page), "One two three\nfour\na\nb\nc d\nx\ny z\nend\n1\n2\n3\n");
    }

    #[test]
    fn readings_split_no_word() {
        let page = "<p><ruby>漢<rp>(</rp><rt>かん</rt><rp>)</rp>字<rt>じ</rt></ruby>を<ruby><rb>読<rt>よ</ruby>む。<p>end";
        assert_eq!(of(page), "漢字を読む。 (かんじ よ)\nend\n");
        assert_eq!(of("<ruby><rt>a<div>b</div></rt></ruby>c"), "c (ab)\n");
    }

    #[test]
    fn scripts_and_hidden_parts_are_no_text() {
        let page = "<style>a{}</style><script>b</script><noscript>c</noscript><p hidden>d</p>\
            <template>e</template><svg><text>f</text></svg><select><option>g</select><p>Text";
        assert_eq!(of(page), "Text\n");
    }

    #[test]
    fn walls_are_left_out_unless_they_are_all() {
        let settings = "<section id=onetrust-pc-sdk style='display: none'>Your privacy</section>";
        let closed = "<section role=region hidden inert>Do you agree?</section>";
        assert_eq!(of(&format!("{settings}<p>Text{closed}")), "Text\n");
        assert_eq!(of(settings), "Your privacy\n");
        assert_eq!(of("<section hidden>Slide</section>"), "Slide\n");
    }

    #[test]
    fn menus_are_left_out_unless_they_are_all() {
        let page = "<header>Site</header><nav>Menu</nav><div role=search>Find</div>\
            <main><header>Head</header><p>Text<footer>Foot</footer></main><footer>Legal</footer>";
        assert_eq!(of(page), "Head\nText\nFoot\n");
        assert_eq!(of("<header>Site</header><nav>Menu</nav>"), "Site\nMenu\n");
    }

    #[test]
    fn headlines_above_the_content_are_text() {
        let page = |header: &str| of(&format!("<header>{header}</header><main><p>Text</main>"));
        let site = "<a href=/>Site</a><nav>Menu</nav><ul><li>Item</ul><form>Find</form>";
        assert_eq!(page(&format!("{site}<h1>Head</h1>")), "Site\nHead\nText\n");
        assert_eq!(
            page(&format!("{site}<div>It is nice to meet you</div>")),
            "Site\nIt is nice to meet you\nText\n"
        );
        assert_eq!(of("<div role=banner><h1>Head</h1></div><p>Text"), "Head\nText\n");
        for other in ["<h1><a href=/>Name</a></h1>", "A short motto", "<nav><h2>Menu</h2></nav>"] {
            assert_eq!(page(&format!("{site}{other}")), "Text\n", "{other}");
        }
    }

    #[test]
    fn panels_and_slides_are_content_while_they_are_hidden() {
        let page = "<div role=tablist><h3 role=tab>Q1</h3><div role=tabpanel>A1</div>\
            <h3 role=tab>Q2</h3><div role=tabpanel style='display: none' aria-hidden=true>A2</div></div>\
            <div role=tabpanel hidden>T</div><div role=region hidden>R</div><div role=dialog hidden>D</div>\
            <section hidden aria-hidden=true class=future>S</section>";
        assert_eq!(of(page), "Q1\nA1\nQ2\nA2\nT\nR\nS\n");
    }

    #[test]
    fn shadow_roots_and_documents_of_frames_are_read() {
        let page = "<p>a</p><div><template shadowrootmode=open><b>b</b></template></div>\
            <iframe srcdoc='<p>c<nav>menu</nav>'></iframe>d";
        assert_eq!(of(page), "a\nb\nc\nd\n");
    }

    #[test]
    fn hostile_pages_end() {
        let deep = "<div>x".repeat(2_000);
        assert_eq!(of(&deep).lines().count(), 2_000);
        let long = "word ".repeat(1 << 20);
        let cut = text(&html::parse(&long, PARSING_TIMEOUT), 1 << 10);
        assert!(cut.len() > 1 << 10);
        assert_eq!(of(""), "");
        assert_eq!(of("<p>\u{0}a\u{202e}b"), "a\u{202e}b\n");
    }

    proptest::proptest! {
        #[test]
        fn any_page_has_lines_without_blank_ones(page in "(</?(p|nav|pre|main|a|td|ruby|rt|iframe srcdoc='x'|template)>|[a\u{4e00}\\n ]){0,60}") {
            let text = of(&page);
            proptest::prop_assert!(text.lines().all(|line| !line.trim().is_empty()), "{}", text);
            proptest::prop_assert!(text.is_empty() || text.ends_with('\n'));
        }
    }
}
