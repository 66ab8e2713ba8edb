//! What a user looks for: words, "phrases", prefixes*, #tags, title:words and other conditions with a
//! name, -exclusions, and OR between them. Every other character separates words; none means anything to the
//! engine.

use crate::words::{Word, WordKind, fold, words};
use archivist_core::model::search::SearchState;

/// Longest question that is read, in bytes.
const BYTES_MAX: usize = 16 << 10;
/// Most words of a question; the rest is left out.
pub const WORDS_MAX: usize = 256;

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Parsed {
    /// Conditions in order. A page meets one of each list, which is never empty.
    pub wanted: Vec<Vec<Condition>>,
    /// Conditions that no page meets.
    pub without: Vec<Condition>,
    /// A URL that was pasted.
    pub url: Option<String>,
    /// Whether something was left out.
    pub is_cut: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    Words(Part),
    /// A folded tag.
    Tag(String),
    /// A host, or a domain with all its hosts.
    Site(String),
    State(SearchState),
}

/// Words that follow each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The words; never empty.
    pub words: Vec<Word>,
    /// Whether the last word is the beginning of words.
    pub is_prefix: bool,
    pub place: Place,
    /// Whether other forms of the words count: not within quotes.
    pub has_forms: bool,
    /// What the user wrote.
    pub written: String,
}

/// Where words are looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Place {
    #[default]
    Anywhere,
    Title,
    Url,
}

/// What a name and a colon in front of a word make of it.
#[derive(Clone, Copy)]
enum Sign {
    Place(Place),
    Tag,
    Site,
    State,
}

/// The names are also those of other search engines.
const SIGNS: [(&str, Sign); 8] = [
    ("title:", Sign::Place(Place::Title)),
    ("intitle:", Sign::Place(Place::Title)),
    ("url:", Sign::Place(Place::Url)),
    ("inurl:", Sign::Place(Place::Url)),
    ("tag:", Sign::Tag),
    ("#", Sign::Tag),
    ("site:", Sign::Site),
    ("is:", Sign::State),
];

impl Parsed {
    /// Returns the words and phrases that pages have.
    pub fn parts(&self) -> impl Iterator<Item = &Part> {
        self.wanted.iter().flatten().filter_map(Condition::part)
    }

    /// Returns whether there is nothing to look for: signs alone.
    pub fn is_empty(&self) -> bool {
        self.wanted.is_empty() && self.without.is_empty() && self.url.is_none()
    }
}

impl Condition {
    pub fn part(&self) -> Option<&Part> {
        match self {
            Condition::Words(part) => Some(part),
            _ => None,
        }
    }

    /// Number of its words.
    fn size(&self) -> usize {
        self.part().map_or(1, |part| part.words.len())
    }
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
    let mut is_alternative = false;
    loop {
        rest = rest.trim_start_matches(is_space);
        if rest.is_empty() {
            return parsed;
        }
        let (is_without, after) = match sign_of(rest, "-") {
            Some(after) => (true, after),
            None => (false, rest),
        };
        let signed = SIGNS.iter().find_map(|(sign, it)| Some((*it, sign_of(after, sign)?)));
        let (sign, after) = signed.unwrap_or((Sign::Place(Place::Anywhere), after));
        let quoted = after.strip_prefix('"');
        let end = match quoted {
            Some(quoted) => quoted.find('"').unwrap_or(quoted.len()),
            None => after.find(is_space).unwrap_or(after.len()),
        };
        let written = &quoted.unwrap_or(after)[..end];
        let from = rest;
        rest = &quoted.unwrap_or(after)[end..];
        if quoted.is_some() {
            rest = rest.strip_prefix('"').unwrap_or(rest);
        }
        let token = &from[..from.len() - rest.len()];
        if matches!(token, "OR" | "|") && !parsed.wanted.is_empty() {
            is_alternative = true;
            continue;
        }
        let most = WORDS_MAX - count;
        // What a name cannot be said of is words, as if the colon were a comma.
        let condition = condition(sign, written, quoted.is_some(), most)
            .or_else(|| condition(Sign::Place(Place::Anywhere), token, quoted.is_some(), most));
        if let Some(condition) = condition {
            count += condition.size();
            match parsed.wanted.last_mut() {
                _ if is_without => parsed.without.push(condition),
                Some(last) if is_alternative => last.push(condition),
                _ => parsed.wanted.push(vec![condition]),
            }
            is_alternative = false;
        }
        if count >= WORDS_MAX {
            parsed.is_cut |= !rest.trim_matches(is_space).is_empty();
            return parsed;
        }
    }
}

fn condition(sign: Sign, written: &str, is_quoted: bool, most: usize) -> Option<Condition> {
    match sign {
        Sign::Place(place) => {
            let part = part(written, most)?;
            Some(Condition::Words(Part { place, has_forms: !is_quoted, ..part }))
        }
        Sign::Tag => Some(fold(written)).filter(|tag| !tag.is_empty()).map(Condition::Tag),
        Sign::Site => {
            let host = written.split_once("://").map_or(written, |(_, after)| after);
            let host = host.split(['/', '?', '#']).next().unwrap_or_default();
            let is_host = host.contains(|c: char| c.is_alphanumeric());
            is_host.then(|| Condition::Site(host.to_lowercase()))
        }
        Sign::State if written == "failed" => Some(Condition::State(SearchState::Unsaved)),
        Sign::State => SearchState::parse(written).map(Condition::State),
    }
}

fn is_space(c: char) -> bool {
    c.is_whitespace() || c.is_control()
}

/// What follows a sign directly.
fn sign_of<'a>(text: &'a str, sign: &str) -> Option<&'a str> {
    text.strip_prefix(sign).filter(|rest| rest.starts_with(|c: char| !is_space(c)))
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
        place: Place::Anywhere,
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

    /// The conditions, as `title:[a b]* / #tag -[c]`.
    fn shown(question: &str) -> String {
        let parsed = parse(question);
        let one = |condition: &Condition| match condition {
            Condition::Words(part) => {
                let words: Vec<_> = part.words.iter().map(|word| word.text.as_str()).collect();
                let place = match part.place {
                    Place::Anywhere => "",
                    Place::Title => "title:",
                    Place::Url => "url:",
                };
                format!("{place}[{}]{}", words.join(" "), if part.is_prefix { "*" } else { "" })
            }
            Condition::Tag(tag) => format!("#{tag}"),
            Condition::Site(host) => format!("site:{host}"),
            Condition::State(state) => format!("is:{}", state.as_str()),
        };
        let list = |list: &Vec<Condition>| list.iter().map(one).collect::<Vec<_>>().join(" / ");
        let mut all: Vec<_> = parsed.wanted.iter().map(list).collect();
        all.extend(parsed.without.iter().map(|condition| format!("-{}", one(condition))));
        all.join(" ")
    }

    #[test]
    fn questions_have_their_parts() {
        for (question, expected) in [
            ("Web archive", "[web] [archive]"),
            ("\"a phrase\" -without archiv*", "[a phrase] [archiv]* -[without]"),
            ("title:Über title:\"two words\"", "title:[uber] title:[two words]"),
            ("#Tag -#other word", "#tag [word] -#other"),
            ("tag:Tag -tag:other tag:\"two words\"", "#tag #two words -#other"),
            ("intitle:x inurl:git* -url:y", "title:[x] url:[git]* -url:[y]"),
            ("site:Books.example apt", "site:books.example [apt]"),
            ("-site:https://a.example:80/x", "-site:a.example:80"),
            ("is:failed is:sealed -is:cancelled", "is:unsaved is:sealed -is:cancelled"),
            ("is:odd site:/ tag: lang:de", "[is odd] [site] [tag] [lang de]"),
            ("a OR b c | #d OR \"e f\" g", "[a] / [b] [c] / #d / [e f] [g]"),
            ("OR a OR OR b OR -c d OR", "[or] [a] / [b] [d] -[c]"),
            ("\"OR\" a or b", "[or] [a] [or] [b]"),
            ("-\"two words\"", "-[two words]"),
            ("\"open", "[open]"),
            ("foo-bar a:b (x) ^~!", "[foo bar] [a b] [x]"),
            ("well +known AND NOT", "[well] [known] [and] [not]"),
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
        assert_eq!((parsed.wanted.len(), parsed.is_cut), (WORDS_MAX, true));
        let huge = parse(&"a".repeat(1 << 20));
        assert_eq!((huge.wanted.len(), huge.is_cut), (1, true));
        let run = parse(&"語".repeat(1 << 20));
        assert!(run.parts().all(|part| part.words.len() <= WORDS_MAX) && run.is_cut);
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
            let all = || parsed.wanted.iter().flatten().chain(&parsed.without);
            proptest::prop_assert!(all().map(Condition::size).sum::<usize>() <= WORDS_MAX);
            proptest::prop_assert!(all().all(|condition| condition.size() > 0));
            proptest::prop_assert!(parsed.wanted.iter().all(|list| !list.is_empty()));
        }
    }
}
