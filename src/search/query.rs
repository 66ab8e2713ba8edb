//! What a user looks for: words, "phrases", -exclusions, prefixes*, title:words and #tags. Every other
//! character separates words; none means anything to the engine.

use crate::words::{Word, WordKind, fold, words};

/// Longest question that is read, in bytes.
const BYTES_MAX: usize = 16 << 10;
/// Most words of a question; the rest is left out.
pub const WORDS_MAX: usize = 256;

/// A question.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Parsed {
    /// Words and phrases in order.
    pub parts: Vec<Part>,
    /// Folded tags, all of which a page must have.
    pub tags: Vec<String>,
    /// Folded tags that no page has.
    pub without_tags: Vec<String>,
    /// A URL that was pasted.
    pub url: Option<String>,
    /// Whether something was left out.
    pub is_cut: bool,
}

/// Words that follow each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The words; never empty.
    pub words: Vec<Word>,
    /// Whether the last word is the beginning of words.
    pub is_prefix: bool,
    /// Whether pages with it are left out.
    pub is_without: bool,
    /// Whether it is looked for in titles alone.
    pub in_title: bool,
    /// Whether other forms of the words count: not within quotes.
    pub has_forms: bool,
    /// What the user wrote.
    pub written: String,
}

impl Part {
    /// The letter, if the part is the beginning of words and has just one.
    pub fn initial(&self) -> Option<&str> {
        match self.words.as_slice() {
            [word] if self.is_prefix && word.kind == WordKind::Whole => {
                Some(word.text.as_str()).filter(|text| text.chars().count() == 1)
            }
            _ => None,
        }
    }
}

/// Reads a question. Everything that is written has a meaning, so this does not fail.
pub fn parse(question: &str) -> Parsed {
    let mut parsed = Parsed::default();
    let mut rest = &question[..question.floor_char_boundary(BYTES_MAX)];
    parsed.is_cut = rest.len() < question.len();
    parsed.url = pasted_url(rest);
    let mut count = 0;
    loop {
        rest = rest.trim_start_matches(is_space);
        if rest.is_empty() {
            return parsed;
        }
        let (is_without, after) = option(rest, "-");
        let (in_title, after) = option(after, "title:");
        let quoted = after.strip_prefix('"');
        let end = match quoted {
            Some(quoted) => quoted.find('"').unwrap_or(quoted.len()),
            None => after.find(is_space).unwrap_or(after.len()),
        };
        let written = &quoted.unwrap_or(after)[..end];
        rest = &quoted.unwrap_or(after)[end..];
        if quoted.is_some() {
            rest = rest.strip_prefix('"').unwrap_or(rest);
        }
        let tag = written.strip_prefix('#').map(fold);
        if let Some(tag) = tag.filter(|tag| quoted.is_none() && !in_title && !tag.is_empty()) {
            if is_without {
                parsed.without_tags.push(tag);
            } else {
                parsed.tags.push(tag);
            }
            count += 1;
        } else if let Some(mut part) = part(written, WORDS_MAX - count) {
            count += part.words.len();
            part.is_without = is_without;
            part.in_title = in_title;
            part.has_forms = quoted.is_none();
            parsed.parts.push(part);
        }
        if count >= WORDS_MAX {
            parsed.is_cut |= !rest.trim_matches(is_space).is_empty();
            return parsed;
        }
    }
}

fn is_space(c: char) -> bool {
    c.is_whitespace() || c.is_control()
}

/// Whether a text begins with a sign that something follows directly.
fn option<'a>(text: &'a str, sign: &str) -> (bool, &'a str) {
    match text.strip_prefix(sign) {
        Some(rest) if rest.starts_with(|c: char| !is_space(c)) => (true, rest),
        _ => (false, text),
    }
}

/// The words of what has no blanks, or stands in quotes.
fn part(written: &str, most: usize) -> Option<Part> {
    let mut words = words(written, most);
    let last = words.last()?;
    let is_alone = match words.len() {
        1 => true,
        count => words[count - 2].kind != WordKind::Pair,
    };
    let has_star = written.ends_with('*');
    let is_prefix = match last.kind {
        // The text may continue after the last character: it is the beginning of pairs.
        WordKind::Last if is_alone => true,
        // Its pair was found already; a text that continues has no such word.
        WordKind::Last => {
            words.pop();
            false
        }
        WordKind::Whole => has_star,
        WordKind::Pair => false,
    };
    Some(Part {
        words,
        is_prefix,
        is_without: false,
        in_title: false,
        has_forms: true,
        written: written.trim_end_matches('*').to_owned(),
    })
}

/// The question as a URL, if it is one and nothing else.
fn pasted_url(question: &str) -> Option<String> {
    let text = question.trim_matches(is_space).trim_matches(['"', '<', '>']);
    if text.is_empty() || text.contains(is_space) {
        return None;
    }
    if let Some((scheme, rest)) = text.split_once("://") {
        let is_scheme = !scheme.is_empty() && scheme.bytes().all(|c| c.is_ascii_alphanumeric());
        return (is_scheme && !rest.is_empty()).then(|| text.to_owned());
    }
    let host = text.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
    let (before, top) = host.rsplit_once('.')?;
    let is_host = !before.is_empty()
        && before.chars().all(|c| c.is_alphanumeric() || "-.".contains(c))
        && top.chars().count() >= 2
        && top.chars().all(char::is_alphabetic);
    is_host.then(|| format!("http://{text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parts, as `-title:[a b]*`.
    fn shown(question: &str) -> String {
        let parsed = parse(question);
        let part = |part: &Part| {
            let words: Vec<_> = part.words.iter().map(|word| word.text.as_str()).collect();
            let sign = |is: bool, sign| if is { sign } else { "" };
            format!(
                "{}{}[{}]{}",
                sign(part.is_without, "-"),
                sign(part.in_title, "title:"),
                words.join(" "),
                sign(part.is_prefix, "*")
            )
        };
        let mut all: Vec<_> = parsed.parts.iter().map(part).collect();
        all.extend(parsed.tags.iter().map(|tag| format!("#{tag}")));
        all.extend(parsed.without_tags.iter().map(|tag| format!("-#{tag}")));
        all.join(" ")
    }

    #[test]
    fn questions_have_their_parts() {
        for (question, expected) in [
            ("Web archive", "[web] [archive]"),
            ("\"a phrase\" -without archiv*", "[a phrase] -[without] [archiv]*"),
            ("title:Über title:\"two words\"", "title:[uber] title:[two words]"),
            ("#Tag -#other word", "[word] #tag -#other"),
            ("-\"two words\"", "-[two words]"),
            ("\"open", "[open]"),
            ("foo-bar a:b (x) ^~!", "[foo bar] [a b] [x]"),
            ("well +known AND OR NOT", "[well] [known] [and] [or] [not]"),
            ("日本", "[日本]"),
            ("日本語", "[日本 本語]"),
            ("語", "[語]*"),
            ("日本*", "[日本]"),
            ("第3回", "[第 3 回]*"),
            ("\u{3000}日本\u{3000}語", "[日本] [語]*"),
            ("title: x", "[title] [x]"),
            ("-", ""),
            ("* \" \"\" # title: -- -\" +", "[title]"),
            ("", ""),
        ] {
            assert_eq!(shown(question), expected, "{question}");
        }
    }

    #[test]
    fn questions_are_bounded() {
        let many = "word ".repeat(300);
        let parsed = parse(&many);
        assert_eq!((parsed.parts.len(), parsed.is_cut), (WORDS_MAX, true));
        let huge = parse(&"a".repeat(1 << 20));
        assert_eq!((huge.parts.len(), huge.is_cut), (1, true));
        let run = parse(&"語".repeat(1 << 20));
        assert!(run.parts[0].words.len() <= WORDS_MAX && run.is_cut);
        let exactly = parse(&"word ".repeat(WORDS_MAX));
        assert!(!exactly.is_cut);
    }

    #[test]
    fn pasted_urls_are_seen() {
        for (question, expected) in [
            (" https://example.com/a?b=c#d ", Some("https://example.com/a?b=c#d")),
            ("example.com/a", Some("http://example.com/a")),
            ("www.example.com:8080", Some("http://www.example.com:8080")),
            ("<https://example.com/>", Some("https://example.com/")),
            ("bücher.example", Some("http://bücher.example")),
            ("see https://example.com/", None),
            ("3.14", None),
            ("title:x", None),
            ("a.b", None),
            ("://", None),
        ] {
            assert_eq!(parse(question).url.as_deref(), expected, "{question}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_question_has_few_words(question in ".{0,400}") {
            let parsed = parse(&question);
            let count: usize = parsed.parts.iter().map(|part| part.words.len()).sum();
            proptest::prop_assert!(count <= WORDS_MAX);
            proptest::prop_assert!(parsed.parts.iter().all(|part| !part.words.is_empty()));
        }
    }
}
