//! `archivist search`: finds pages by the words of their text. It runs the program that has the code of
//! the index, as the caller.

use crate::client::exit::{Exit, Failure};
use crate::client::page::When;
use crate::client::search_index::{ask, rebuild};
use crate::client::server::Server;
use crate::display::style::{self, Style};
use crate::display::text::{stamp, when};
use archivist_config::Scope;
use archivist_core::model::Time;
use archivist_core::model::search::{
    HITS_MAX, HITS_USUAL, SearchAnswer, SearchHit, SearchQuestion, SearchState, SnippetPart,
};
use archivist_core::model::web::pattern::UrlPattern;
use archivist_core::text::clean;
use clap::Args;
use jiff::tz::TimeZone;

/// Find pages by the words of their text, title and URL
///
/// A page has all of the words. Case, accents and width do not count, and other forms of a word are
/// found after those as written: archive, archives, archiving. "A phrase" in double quotes is words as
/// written that follow each other, -word leaves pages out, and archiv* is the beginning of a word. OR
/// between two conditions asks for one of them. A pasted URL finds its page first. All other characters
/// separate words.
///
/// Conditions with a name: title:word (or intitle:), url:word (or inurl:), #tag (or tag:), site:host with its
/// subdomains, is:failed, is:sealed or is:cancelled (as --status), after:2024-05 and before:2024-05-17.
///
/// Each page is listed once, with its newest snapshot that was found, and the number of its snapshots.
/// If nothing is found, a similar word of the index is proposed. It requires permission to read the
/// archive, so for that of the machine run it with sudo.
#[derive(Args)]
pub struct SearchArgs {
    /// Words, phrases and conditions, in quotes of the shell: 'web "long phrase" -draft'
    ///
    /// A first word with a hyphen stands after --.
    #[arg(value_name = "WORDS", required_unless_present_any = ["tag", "site", "url", "since", "until", "plugin", "status", "rebuild"])]
    words: Vec<String>,
    /// Find only snapshots with this tag, or of crawls with it
    #[arg(long, value_name = "TAG")]
    tag: Vec<String>,
    /// Find only pages of this host and its subdomains
    #[arg(long, value_name = "HOST")]
    site: Option<String>,
    /// Find only snapshots of a URL, of all URLs that begin with PREFIX, or of HOST and its subdomains
    #[arg(long, value_name = "URL|PREFIX*|*.HOST")]
    url: Option<UrlPattern>,
    /// Find only snapshots from this time on: 2024, 2024-05, 2024-05-17 or 2024-05-17T12:00
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Find only snapshots until the end of this time
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Find only snapshots of which this plugin has kept files
    #[arg(long, value_name = "NAME")]
    plugin: Vec<String>,
    /// Find only snapshots in this state: sealed, cancelled or unsaved
    ///
    /// Unsaved ones show an error of their server, or nothing of them was saved. Without this option,
    /// they are left out.
    #[arg(long, value_name = "S", value_parser = state)]
    status: Option<SearchState>,
    /// List every snapshot instead of every page
    #[arg(long)]
    all: bool,
    /// List at most N hits; 0 lists all, up to 10,000
    #[arg(short = 'n', long, value_name = "N", default_value_t = HITS_USUAL)]
    limit: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Build the index again from the texts of all pages, and replace the one that is there
    ///
    /// A unit does that in the background. An index that is missing, damaged or of another version is
    /// built again without it.
    #[arg(long, exclusive = true)]
    rebuild: bool,
}

fn state(text: &str) -> Result<SearchState, String> {
    SearchState::parse(text).ok_or_else(|| {
        let names = SearchState::ALL.map(SearchState::as_str).join(", ");
        format!("the index has pages with these states: {names}")
    })
}

pub async fn run(args: SearchArgs, scope: &Scope) -> Result<Exit, Failure> {
    if args.rebuild {
        rebuild(&Server::reach(scope).await?).await?;
        style::print(
            "the index is built again; until it is complete, the one that is there is searched\n",
        )?;
        return Ok(Exit::Done);
    }
    let question = question(&args)?;
    let answer = match ask(scope, &question).await? {
        Ok(answer) => answer,
        Err(reason) => {
            rebuild(&Server::reach(scope).await?).await?;
            return Err(Failure::failed(format!(
                "{reason}; it is built again: repeat the search when archivist-index-pages.service has ended"
            )));
        }
    };
    if args.json {
        style::print_value(&answer)?;
        return Ok(Exit::Done);
    }
    style::print(&shown(&answer.hits, &Style::of_stdout()))?;
    report(&answer, &question);
    Ok(Exit::Done)
}

fn question(args: &SearchArgs) -> Result<SearchQuestion, Failure> {
    let (words, since, until) = without_times(&args.words.join(" "))?;
    let moment = |text: &Option<String>| text.as_deref().map(time).transpose();
    let from = moment(&args.since)?.map(|(from, _)| from);
    let to = moment(&args.until)?.map(|(_, to)| to);
    Ok(SearchQuestion {
        words,
        tags: args.tag.clone(),
        site: args.site.clone(),
        url: args.url.clone(),
        since: from.max(since),
        until: to.into_iter().chain(until).min(),
        plugins: args.plugin.clone(),
        status: args.status,
        limit: match args.limit {
            0 => HITS_MAX,
            limit => limit.min(HITS_MAX),
        },
        all: args.all,
        without: Vec::new(),
    })
}

/// The words without after:TIME and before:TIME, and the moment from which, and before which, pages are
/// wanted.
fn without_times(words: &str) -> Result<(String, Option<Time>, Option<Time>), Failure> {
    let (mut since, mut until) = (None, None);
    let mut kept = Vec::new();
    let mut is_phrase = false;
    for word in words.split(' ') {
        let is_within = is_phrase;
        is_phrase ^= word.matches('"').count() % 2 == 1;
        let named = |name| word.strip_prefix(name).filter(|time| !is_within && !time.is_empty());
        if let Some(text) = named("after:") {
            since = since.max(Some(time(text)?.0));
        } else if let Some(text) = named("before:") {
            let begin = time(text)?.0;
            until = Some(until.map_or(begin, |until: Time| until.min(begin)));
        } else {
            kept.push(word);
        }
    }
    Ok((kept.join(" "), since, until))
}

/// The beginning and the end of a year, month, day or moment.
fn time(text: &str) -> Result<(Time, Time), Failure> {
    match When::parse(text, &TimeZone::system()) {
        Some(When::Within(from, to)) => Ok((from, to)),
        Some(When::Newest) => Ok((style::now(), style::now())),
        None => Err(Failure::usage(format!(
            "'{}' is no time, such as 2024, 2024-05, 2024-05-17 or 2024-05-17T12:00",
            clean(text)
        ))),
    }
}

/// The hits, with marked words in colour, or between asterisks without colours.
fn shown(hits: &[SearchHit], style: &Style) -> String {
    let mut text = String::new();
    for hit in hits {
        if !text.is_empty() {
            text.push('\n');
        }
        let title = hit.title.as_deref().map(clean).filter(|title| !title.is_empty());
        let url = clean(&hit.url);
        text += &format!("{}  {}\n", hit.id, title.as_deref().unwrap_or(&url));
        let mut facts = vec![url];
        facts.push(match style.width {
            Some(_) => stamp(hit.time, style),
            None => when(Some(hit.time), style),
        });
        if hit.versions > 1 {
            facts.push(format!("{} snapshots", hit.versions));
        }
        facts.extend(hit.tags.iter().map(|tag| format!("#{}", clean(tag))));
        text += &format!("    {}\n", style.paint(&facts.join("  "), style::Tone::Dim));
        let snippet: String = hit.snippet.iter().map(|part| marked(part, style)).collect();
        if !snippet.is_empty() {
            text += &format!("    {snippet}\n");
        }
    }
    text
}

fn marked(part: &SnippetPart, style: &Style) -> String {
    let text = clean(&part.text);
    match (part.marked, style.color) {
        (false, _) => text,
        (true, true) => console::style(text).bold().force_styling(true).to_string(),
        (true, false) => format!("*{text}*"),
    }
}

/// What else a user should know, on standard error.
fn report(answer: &SearchAnswer, question: &SearchQuestion) {
    if answer.is_cut {
        eprintln!("there are too many words; only the first are looked for");
    }
    let shown = answer.hits.len() as u64;
    if answer.total > shown {
        eprintln!("the best {shown} of {}; -n 0 lists all", answer.total);
    }
    if answer.hits.is_empty() {
        match &answer.meant {
            Some(meant) => eprintln!("nothing found; did you mean: {}", clean(meant)),
            None if question.words.trim().is_empty() => eprintln!("nothing found"),
            None => eprintln!("nothing found for: {}", short(&question.words)),
        }
    }
}

fn short(words: &str) -> String {
    const SHOWN: usize = 100;
    let end = words.char_indices().nth(SHOWN);
    match end {
        Some((end, _)) => format!("{} …", clean(&words[..end])),
        None => clean(words),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_core::model::SnapshotId;

    #[test]
    fn times_are_no_words() {
        let times = |words: &str| {
            let (words, since, until) = without_times(words).unwrap();
            let year = |time: Option<Time>| time.map(|time| time.0 / 31_557_600_000 + 1970);
            (words, year(since), year(until))
        };
        let text = |text: &str| text.to_owned();
        let both = times("web after:2015-07 before:2020-07 after:2014-07 before:2022-07");
        assert_eq!(both, (text("web"), Some(2015), Some(2020)));
        let phrase = "\"web before:2020-07 \" after: -x";
        assert_eq!(times(phrase), (text(phrase), None, None));
        assert!(without_times("before:noon").is_err());
    }

    #[test]
    fn words_are_marked_without_colours() {
        let part = |text: &str, marked| SnippetPart { text: text.to_owned(), marked };
        let hit = SearchHit {
            id: SnapshotId(7),
            title: Some("A \u{1b}title".to_owned()),
            url: "https://a.test/".to_owned(),
            time: Time(0),
            tags: vec!["reading".to_owned()],
            versions: 2,
            snippet: vec![part("about ", false), part("archives", true), part(" …", false)],
        };
        let untitled = SearchHit {
            title: None,
            versions: 1,
            snippet: Vec::new(),
            tags: Vec::new(),
            ..hit.clone()
        };
        let text = shown(&[hit, untitled], &Style::plain(Time(0)));
        assert_eq!(
            text,
            "s7  A \u{fffd}title\n    https://a.test/  1970-01-01T00:00:00.000Z  2 snapshots  #reading\n    \
             about *archives* …\n\ns7  https://a.test/\n    https://a.test/  1970-01-01T00:00:00.000Z\n"
        );
    }

    #[test]
    fn periods_begin_and_end() {
        let (from, to) = time("2024-05").unwrap();
        assert_eq!((to.0 - from.0) / 86_400_000, 31);
        let (from, to) = time("2024-05-17T12:00:00Z").unwrap();
        assert_eq!(from, to);
        assert!(time("yesterday").is_err());
    }
}
