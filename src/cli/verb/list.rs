//! `archivist list`: crawls, snapshots, results, runs, web hosts or tags, newest first.

use crate::client::exit::{Exit, Failure};
use crate::client::fleet::{Fleet, Local};
use crate::client::paging::{Paging, Row, Source};
use crate::client::server::{Server, decode};
use crate::display::listing::ROWS_MAX;
use crate::display::rows;
use crate::display::style::{self, Style};
use crate::display::table::Table;
use crate::display::text;
use archivist_config::Scope;
use archivist_core::model::web::pattern::UrlPattern;
use archivist_core::model::{HttpRange, Owner};
use archivist_shared::bus::documents::report::{Filter, HookResult};
use clap::{Args, ValueEnum};

/// State of snapshots that ended before their work was done, in addition to those of the lifecycle.
const INCOMPLETE: &str = "incomplete";
/// State of saved pages whose files lack parts of them, in addition to their own.
const PARTIAL: &str = "partial";
/// State of pages that were not saved, in addition to their own.
const UNSAVED: &str = "unsaved";

/// List the newest crawls, snapshots, results, runs, web hosts or tags
///
/// On a terminal, long texts are shortened in the middle and times are relative, and a narrow one has no
/// room for the columns that say least. To a file or pipe, texts are complete and times are in RFC 3339
/// format.
#[derive(Args)]
pub struct ListArgs {
    /// What to list
    #[arg(value_enum, default_value = "crawls")]
    what: What,
    /// List only what belongs to this crawl (c12) or snapshot (s345)
    #[arg(value_name = "ID")]
    owner: Option<Owner>,
    /// List only entries in this state, see STATES in archivist(1)
    ///
    /// Runs are starting, running or ended; snapshots can also be incomplete: their work ended
    /// before it was done, and the REASON says why; unsaved: incomplete, an error of the server, or
    /// nothing was saved; or partial: saved, but requests, the end of a picture or characters are missing
    /// in the files that the REASON names. Hosts and tags have no states.
    #[arg(long, value_name = "S")]
    status: Option<String>,
    /// List only snapshots whose document has this HTTP status: 404, 4xx or 400-499
    ///
    /// It is a single status, a class, or a range. The status is that of the final response, after
    /// all redirects, as the browser or otherwise another hook got it. A fleet does not know it, so
    /// this is about this machine alone.
    #[arg(long, value_name = "STATUS")]
    http: Option<HttpRange>,
    /// List only snapshots with this tag, or of crawls with it
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
    /// List only snapshots of a URL, of all URLs that begin with PREFIX, or of HOST and its subdomains
    ///
    /// Scheme, www., fragment and the arguments of campaigns do not count, as for versions. A fleet does
    /// not know it, so this is about this machine alone.
    #[arg(long, value_name = "URL|PREFIX*|*.HOST")]
    url: Option<UrlPattern>,
    /// List at most N entries; 0 lists all
    #[arg(short = 'n', long, value_name = "N", default_value_t = ROWS_MAX)]
    limit: u32,
    #[command(flatten)]
    local: Local,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    Crawls,
    Snapshots,
    Results,
    Runs,
    Hosts,
    Tags,
}

impl What {
    fn as_str(self) -> &'static str {
        match self {
            What::Crawls => "crawls",
            What::Snapshots => "snapshots",
            What::Results => "results",
            What::Runs => "runs",
            What::Hosts => "hosts",
            What::Tags => "tags",
        }
    }

    fn states(self) -> Vec<&'static str> {
        match self {
            What::Crawls => text::lifecycles().to_vec(),
            What::Snapshots => [&text::lifecycles()[..], &[INCOMPLETE, PARTIAL, UNSAVED]].concat(),
            What::Results => text::result_states().to_vec(),
            What::Runs => vec!["starting", "running", "ended"],
            What::Hosts | What::Tags => Vec::new(),
        }
    }
}

pub async fn run(args: ListArgs, scope: &Scope) -> Result<Exit, Failure> {
    if let Some(status) = &args.status {
        check_status(args.what, status)?;
    }
    if args.http.is_some() && args.what != What::Snapshots {
        let what = args.what.as_str();
        return Err(Failure::usage(format!(
            "{what} have no HTTP status; see: archivist list snapshots --http 404"
        )));
    }
    if (args.tag.is_some() || args.url.is_some()) && args.what != What::Snapshots {
        let what = args.what.as_str();
        return Err(Failure::usage(format!(
            "{what} are not listed by tag or URL; see: archivist list snapshots --url 'https://example.com/*'"
        )));
    }
    if let (What::Tags, Some(id)) = (args.what, args.owner) {
        return Err(Failure::usage(format!("the tags of {id} are in: archivist show {id}")));
    }
    let filter = Filter {
        status: args.status.clone(),
        owner: args.owner,
        http: args.http,
        tag: args.tag.clone(),
        url: args.url.clone(),
        limit: args.limit,
        ..Filter::default()
    };
    // Runs are units, which only their machine knows. The fleet lists no tags, knows neither HTTP statuses nor
    // which pages are incomplete, partial or were not saved, and searches no tags and URLs.
    let asks_for_incomplete =
        matches!(args.status.as_deref(), Some(INCOMPLETE | PARTIAL | UNSAVED));
    let asks_for_pages = args.http.is_some() || args.tag.is_some() || args.url.is_some();
    let is_local = args.local.local
        || matches!(args.what, What::Runs | What::Tags)
        || asks_for_pages
        || asks_for_incomplete;
    match Fleet::reach(scope, Local { local: is_local }).await? {
        Some(fleet) => print(&args, Paging::of(Source::Fleet(&fleet), filter)).await,
        None => {
            let server = Server::reach(scope).await?;
            print(&args, Paging::new(&server, filter)).await
        }
    }
}

async fn print(args: &ListArgs, paging: Paging<'_>) -> Result<Exit, Failure> {
    let style = Style::of_stdout();
    match args.what {
        What::Crawls => list(args, paging, &style, rows::crawls).await,
        What::Snapshots => list(args, paging, &style, rows::snapshots).await,
        What::Results => {
            let table = |results: &[HookResult], style: &Style| rows::results(results, style, true);
            list(args, paging, &style, table).await
        }
        What::Runs => list(args, paging, &style, rows::runs).await,
        What::Hosts => list(args, paging, &style, rows::hosts).await,
        What::Tags => list(args, paging, &style, rows::tags).await,
    }
}

async fn list<T: Row>(
    args: &ListArgs,
    paging: Paging<'_>,
    style: &Style,
    table: impl Fn(&[T], &Style) -> Table,
) -> Result<Exit, Failure> {
    if args.json {
        return print_documents::<T>(paging).await;
    }
    let table = table(&paging.collect().await?, style);
    if table.is_empty() {
        eprintln!("no {}", args.what.as_str());
        return Ok(Exit::Done);
    }
    style::print(&table.render(style))?;
    if args.limit > 0 && table.len() >= args.limit as usize {
        eprintln!("the newest {}; --limit 0 shows all", args.limit);
    }
    Ok(Exit::Done)
}

/// Prints one JSON array, batch by batch.
async fn print_documents<T: Row>(mut paging: Paging<'_>) -> Result<Exit, Failure> {
    let mut before = "[\n";
    loop {
        let batch = paging.next::<T>().await?;
        if batch.documents.is_empty() {
            break;
        }
        let mut text = String::new();
        for document in batch.documents {
            let value: serde_json::Value = decode(document.get())?;
            text += before;
            text += &indent(&format!("{value:#}"));
            before = ",\n";
        }
        style::print_document(&text)?;
    }
    style::print(match before {
        "[\n" => "[]\n",
        _ => "\n]\n",
    })?;
    Ok(Exit::Done)
}

fn indent(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| format!("  {line}")).collect();
    lines.join("\n")
}

fn check_status(what: What, status: &str) -> Result<(), Failure> {
    let states = what.states();
    if states.is_empty() {
        let what = what.as_str();
        return Err(Failure::usage(format!("{what} have no states")));
    }
    if states.contains(&status) {
        Ok(())
    } else {
        Err(Failure::usage(format!(
            "'{status}' is not a state of {}; there are {}",
            what.as_str(),
            states.join(", ")
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_in_an_array_are_indented_like_one_document() {
        let rows = serde_json::json!([{"id": "c1", "tags": ["a"]}, {"id": "c2", "tags": []}]);
        let one = |row: &serde_json::Value| indent(&format!("{row:#}"));
        let array = format!("[\n{},\n{}\n]", one(&rows[0]), one(&rows[1]));
        assert_eq!(array, format!("{rows:#}"));
    }

    #[test]
    fn states_are_validated_before_the_call() {
        let error = check_status(What::Crawls, "failed").unwrap_err();
        assert_eq!(error.exit(), Exit::Usage);
        assert_eq!(
            error.message(),
            "'failed' is not a state of crawls; there are queued, started, sealed, paused, cancelled"
        );
        let error = check_status(What::Hosts, "failed").unwrap_err();
        assert_eq!(error.message(), "hosts have no states");
        assert!(check_status(What::Results, "failed").is_ok());
        assert!(check_status(What::Runs, "running").is_ok());
    }
}
