//! `archivist delete`: deletes pages and crawls with their files.

use crate::client::exit::{Exit, Failure};
use crate::client::page;
use crate::client::paging::Paging;
use crate::client::server::{Server, decode};
use crate::display::{listing, style};
use archivist_config::Scope;
use archivist_core::model::web::pattern::UrlPattern;
use archivist_core::model::web::surt::page_key;
use archivist_core::model::{Lifecycle, Owner, SnapshotId, Time};
use archivist_core::plan::{RetentionRule, newest};
use archivist_core::text::{clean, human_size, parse_span};
use archivist_shared::bus::documents::report::{Deleted, Expired, Filter, Snapshot};
use archivist_shared::bus::wire::RetentionProxy;
use clap::Args;
use serde_json::json;
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::io::{IsTerminal, Write};
use std::iter::repeat;
use std::time::Duration;

/// Ids of one call: the orchestrator deletes their rows in one transaction.
const IDS_PER_CALL: usize = 100;
/// Pages that are named before the question.
const SHOWN: usize = 5;

/// Delete pages and crawls that have ended, with their files
///
/// Prints how many pages and bytes that are, and asks. Without a terminal, --yes is required.
/// Deleted pages disappear at once from all lists. Then units named archivist-delete-N.service remove their
/// files and their entries in the HTML pages of the archive, and transfers remove their copies in the
/// store. An interrupted removal continues, also after a reboot. A crawl disappears with its last page.
/// The file of the database becomes smaller afterwards, and the journal says which size it has.
///
/// Without ids, all pages are deleted that fit all of the options given, except for pinned ones (see
/// archivist pin). Backups keep the files until they are removed themselves; a restoration lists the
/// deleted pages of the backup, and asks whether to delete them again.
///
/// On the system bus, a member of the group archivist deletes pages of crawls that this member has added, and
/// with MembersDelete=yes in archivist.conf(5) those of all users. Root deletes all.
#[derive(Args)]
pub struct DeleteArgs {
    /// Crawls (c12) and snapshots (s345)
    #[arg(value_name = "ID", required_unless_present_any = ["tag", "url", "older_than", "status", "keep_newest", "by_retention"])]
    ids: Vec<Owner>,
    #[command(flatten)]
    which: WhichArgs,
    /// Delete the pages that Retention= deletes, see archivist.conf(5), or that RULE would
    ///
    /// The orchestrator deletes pages by the configured rules itself, but waits for this command if they would
    /// delete more than a tenth of the archive or of the pages of a rule at once, or if the clock of the
    /// machine is not believed. With --dry-run, this says which ones are due now, or what another rule would
    /// delete before it is configured. The option may be given more than once.
    #[arg(
        long,
        value_name = "RULE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
        value_parser = rule,
        conflicts_with_all = ["ids", "which"]
    )]
    by_retention: Option<Vec<String>>,
    /// Print what would be deleted, with the name of each page, and delete nothing
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// Print what was deleted, or would be, as JSON
    #[arg(long)]
    json: bool,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

#[derive(Args)]
#[group(id = "which", multiple = true, conflicts_with = "ids")]
struct WhichArgs {
    /// Delete pages with this tag, or of crawls with it
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
    /// Delete pages of a URL, of all URLs that begin with PREFIX, or of HOST and its subdomains
    #[arg(long, value_name = "URL|PREFIX*|*.HOST")]
    url: Option<UrlPattern>,
    /// Delete pages that were visited or imported longer ago than this, such as 2weeks or 1year (see
    /// systemd.time(7))
    #[arg(long, value_name = "SPAN", value_parser = span)]
    older_than: Option<Duration>,
    /// Delete pages in this state: sealed or cancelled
    #[arg(long, value_name = "S", value_parser = state)]
    status: Option<Lifecycle>,
    /// Of the pages that fit, keep the newest N of each page that were saved
    ///
    /// A snapshot that shows an error, or of which no file is in the archive, is kept only if none of the page
    /// was saved.
    #[arg(long, value_name = "N")]
    keep_newest: Option<usize>,
}

impl WhichArgs {
    /// Whether a page is one of those that --keep-newest counts. The orchestrator compares tag and URL.
    fn fits(&self, page: &Snapshot, now: Time) -> bool {
        // A retry of a hook is no visit, and an import is no older than the archive.
        let archived = page.visited_at.max(page.created_at);
        page.status.is_final()
            && self.older_than.is_none_or(|span| archived.after(span) < now)
            && self.status.is_none_or(|status| page.status == status)
    }
}

fn span(text: &str) -> Result<Duration, String> {
    parse_span(text).ok_or_else(|| "expected a time span, such as 2weeks or 1year".to_owned())
}

/// An empty text stands for the configured rules.
fn rule(text: &str) -> Result<String, String> {
    match RetentionRule::parse(text) {
        Err(allowed) if !text.is_empty() => Err(format!("expected {allowed}")),
        _ => Ok(text.to_owned()),
    }
}

fn state(text: &str) -> Result<Lifecycle, String> {
    Lifecycle::parse(text)
        .filter(|state| state.is_final())
        .ok_or_else(|| "only pages that are sealed or cancelled can be deleted".to_owned())
}

pub async fn run(args: DeleteArgs, scope: &Scope) -> Result<Exit, Failure> {
    if !args.yes && !args.dry_run && !std::io::stdin().is_terminal() {
        return Err(Failure::usage(
            "standard input is no terminal: to delete without a question, use --yes",
        ));
    }
    let server = Server::reach(scope).await?;
    let found = match &args.by_retention {
        Some(rules) => expired(rules, &server).await?,
        None if args.ids.is_empty() => fitting(&args.which, &server).await?,
        None => Selection { ids: args.ids.clone(), ..Selection::default() },
    };
    if found.pinned > 0 {
        style::note(&kept(found.pinned));
    }
    let confirms = args.by_retention.as_ref().is_some_and(|rules| are_configured(rules));
    let confirms = confirms && !args.dry_run;
    if found.ids.is_empty() {
        if confirms {
            confirm_retention(&server).await?;
        }
        if args.json {
            print_json(&found, &Deleted::default())?;
        } else {
            style::print("nothing to delete: no page that has ended fits\n")?;
        }
        return Ok(Exit::Done);
    }
    let would = call(&server, &found.ids, true).await?;
    report_left(&would);
    // A crawl may have no page, such as that of an installation.
    if would.left.len() == found.ids.len() {
        return Err(Failure::failed("nothing was deleted"));
    }
    let what = summary(&would);
    if args.dry_run && args.json {
        print_json(&found, &would)?;
        return Ok(Exit::Done);
    }
    if !args.json {
        found.list(if args.dry_run { usize::MAX } else { SHOWN })?;
    }
    if args.dry_run {
        style::print(&format!("would delete {what}\n"))?;
        return Ok(Exit::Done);
    }
    if !args.yes && !confirmed(&what)? {
        return Err(Failure::failed("nothing was deleted"));
    }
    let left: BTreeSet<Owner> = would.left.iter().map(|left| left.id).collect();
    let ids = found.ids.iter().copied().filter(|id| !left.contains(id));
    let ids: Vec<Owner> = ids.collect();
    let done = call(&server, &ids, false).await?;
    if confirms {
        confirm_retention(&server).await?;
    }
    report_left(&done);
    if args.json {
        print_json(&found, &done)?;
    } else {
        style::print(&format!("deleted {}\n", summary(&done)))?;
    }
    if would.left.is_empty() && done.left.is_empty() {
        Ok(Exit::Done)
    } else {
        Err(Failure::failed("some were not deleted"))
    }
}

#[derive(Default)]
struct Selection {
    ids: Vec<Owner>,
    /// Their URLs, unless the user named the ids.
    urls: Vec<String>,
    /// Number of pages that fit and are pinned.
    pinned: u64,
}

impl Selection {
    fn add(&mut self, id: SnapshotId, url: &str) {
        self.ids.push(Owner::Snapshot(id));
        self.urls.push(url.to_owned());
    }

    /// Prints the first of them as the user sees them.
    fn list(&self, most: usize) -> Result<(), Failure> {
        for (id, url) in self.ids.iter().zip(&self.urls).take(most) {
            style::print(&format!("  {id}  {}\n", clean(url)))?;
        }
        match self.urls.len().saturating_sub(most) {
            0 => Ok(()),
            more => style::print(&format!("  and {more} more; --dry-run names all\n")),
        }
    }
}

fn print_json(found: &Selection, deleted: &Deleted) -> Result<(), Failure> {
    let urls = found.urls.iter().map(Some).chain(repeat(None));
    let pages = found.ids.iter().zip(urls);
    let pages: Vec<_> = pages.map(|(id, url)| json!({"id": id, "url": url})).collect();
    let Deleted { pages: count, bytes, left } = deleted;
    let document = json!({"selected": pages, "pages": count, "bytes": bytes, "left": left});
    style::print_document(&format!("{document:#}\n"))
}

/// The pages that fit the options, the newest first.
async fn fitting(which: &WhichArgs, server: &Server) -> Result<Selection, Failure> {
    let now = Time::from(jiff::Timestamp::now());
    let filter = Filter { tag: which.tag.clone(), url: which.url.clone(), ..Filter::default() };
    let mut pages = Paging::new(server, filter);
    let mut fitting = Vec::new();
    loop {
        let batch = pages.next::<Snapshot>().await?;
        if batch.rows.is_empty() {
            break;
        }
        let rows = batch.rows.into_iter();
        fitting.extend(rows.filter(|page| which.fits(page, now)).map(Fitting::of));
    }
    if let Some(count) = which.keep_newest {
        let is_still_saved = async |id| page::is_still_saved(id, server).await;
        fitting = beyond_newest(fitting, count, is_still_saved).await?;
    }
    let mut found = Selection::default();
    for page in fitting {
        if page.pinned {
            found.pinned += 1;
        } else {
            found.add(page.id, &page.url);
        }
    }
    Ok(found)
}

struct Fitting {
    id: SnapshotId,
    url: String,
    time: Time,
    is_saved: bool,
    pinned: bool,
}

impl Fitting {
    fn of(page: Snapshot) -> Fitting {
        Fitting {
            id: page.id,
            time: page.visited_at,
            is_saved: page.is_saved(),
            pinned: page.pinned,
            url: page.url,
        }
    }
}

/// The pages but for the newest versions of each. Those that are kept instead of saved ones must still be
/// saved.
async fn beyond_newest(
    pages: Vec<Fitting>,
    count: usize,
    is_still_saved: impl AsyncFn(SnapshotId) -> Result<bool, Failure>,
) -> Result<Vec<Fitting>, Failure> {
    let mut versions: HashMap<String, Vec<Fitting>> = HashMap::new();
    for page in pages {
        versions.entry(page_key(&page.url)).or_default().push(page);
    }
    let mut beyond = Vec::new();
    for mut versions in versions.into_values() {
        versions.sort_by_key(|page| Reverse((page.time, page.id)));
        let mut looked_at = BTreeSet::new();
        let kept = loop {
            let are_saved: Vec<bool> = versions.iter().map(|page| page.is_saved).collect();
            let kept = newest(&are_saved, count);
            let saved = are_saved.iter().filter(|is_saved| **is_saved).count();
            let mut newest = versions.iter_mut().filter(|page| page.is_saved).take(count);
            match newest.find(|page| !looked_at.contains(&page.id)) {
                Some(page) if saved > count => {
                    looked_at.insert(page.id);
                    page.is_saved = is_still_saved(page.id).await?;
                }
                _ => break kept,
            }
        };
        let versions = versions.into_iter().zip(kept);
        beyond.extend(versions.filter(|(_, keeps)| !keeps).map(|(page, _)| page));
    }
    beyond.sort_by_key(|page| Reverse(page.id));
    Ok(beyond)
}

/// Whether these are the configured rules.
fn are_configured(rules: &[String]) -> bool {
    rules.iter().all(String::is_empty)
}

/// Lets the orchestrator delete what is due from now on.
async fn confirm_retention(server: &Server) -> Result<(), Failure> {
    server.call(|| async { server.feature::<RetentionProxy<'_>>().await?.confirm().await }).await
}

/// The pages that rules delete now, the oldest first.
async fn expired(rules: &[String], server: &Server) -> Result<Selection, Failure> {
    let rules: Vec<String> = rules.iter().filter(|rule| !rule.is_empty()).cloned().collect();
    let mut found = Selection::default();
    let mut after = 0;
    loop {
        let answer = server
            .call(|| async {
                server.feature::<RetentionProxy<'_>>().await?.expired(&rules, after).await
            })
            .await?;
        let expired: Expired = decode(&answer)?;
        for page in &expired.pages {
            found.add(page.id, &page.url);
        }
        match expired.next {
            Some(next) => after = next,
            None => return Ok(found),
        }
    }
}

async fn call(server: &Server, ids: &[Owner], dry_run: bool) -> Result<Deleted, Failure> {
    let mut all = Deleted::default();
    for some in ids.chunks(IDS_PER_CALL) {
        let some: Vec<String> = some.iter().map(Owner::to_string).collect();
        let answer = server.proxy().delete(&some, dry_run);
        let some: Deleted = decode(&server.call_once_in_pieces(answer).await?)?;
        all.pages += some.pages;
        all.bytes += some.bytes;
        all.left.extend(some.left);
    }
    Ok(all)
}

fn report_left(deleted: &Deleted) {
    listing::report(&deleted.left, |left| format!("{}: {}", left.id, left.reason));
}

fn summary(deleted: &Deleted) -> String {
    let bytes = human_size(deleted.bytes);
    match deleted.pages {
        1 => format!("1 page with {bytes} of files"),
        n => format!("{n} pages with {bytes} of files"),
    }
}

/// Returns how many pages fit that are kept.
fn kept(pinned: u64) -> String {
    let pages = match pinned {
        1 => "1 pinned page is kept".to_owned(),
        n => format!("{n} pinned pages are kept"),
    };
    format!("{pages}; to delete pinned pages, first: archivist unpin ID")
}

fn confirmed(what: &str) -> Result<bool, Failure> {
    let failed = |error| Failure::failed(format!("failed to ask: {error}"));
    eprint!("Delete {what}? [y/N] ");
    std::io::stderr().flush().map_err(failed)?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).map_err(failed)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_core::model::Unsaved;
    use serde_json::json;

    fn page(status: &str, visited: i64) -> Snapshot {
        let page = json!({
            "id": "s1", "crawl": "c1", "url": "https://a.test/b", "title": null, "depth": 0,
            "parent": null, "status": status, "reason": null, "tags": ["news"],
            "bookmarked_at": null, "visited_at": Time(visited), "created_at": Time(0), "started_at": null,
            "ended_at": null, "retry_at": null, "attempts": 1, "results": {},
            "directory": null, "current_step": null, "http_status": null,
        });
        serde_json::from_value(page).unwrap()
    }

    #[derive(clap::Parser)]
    struct Words {
        #[command(flatten)]
        args: DeleteArgs,
    }

    fn parsed(words: &str) -> Result<DeleteArgs, clap::Error> {
        let words = ["delete"].into_iter().chain(words.split_whitespace());
        Ok(<Words as clap::Parser>::try_parse_from(words)?.args)
    }

    #[test]
    fn pages_fit_all_options() {
        let fits = |words: &str| {
            let which = parsed(words).unwrap().which;
            which.fits(&page("sealed", 0), Time(10_000))
        };
        assert!(fits("--older-than 9s --status sealed"));
        assert!(!fits("--older-than 11s"));
        assert!(!fits("--status cancelled"));
        let which = parsed("--tag news").unwrap().which;
        assert!(!which.fits(&page("started", 0), Time(10_000)), "not over");
    }

    #[tokio::test]
    async fn newest_saved_versions_are_kept() {
        let version = |id, second: i64, unsaved: Option<Unsaved>| {
            let mut page = page("sealed", 0);
            page.id = SnapshotId(id);
            page.visited_at = Time(second * 1000);
            page.unsaved = unsaved;
            Fitting::of(page)
        };
        let without = async |versions: Vec<Fitting>, count, gone: &[i64]| {
            let pages = beyond_newest(versions, count, async |id| Ok(!gone.contains(&id.0)));
            pages.await.unwrap().into_iter().map(|page| page.id.0).collect::<Vec<_>>()
        };
        let beyond = async |versions: Vec<Fitting>, count| without(versions, count, &[]).await;
        let failures =
            [Unsaved::Document, Unsaved::Error, Unsaved::Files, Unsaved::Work, Unsaved::Visit];
        for unsaved in failures.map(Some) {
            let versions = || {
                vec![
                    version(4, 4, unsaved),
                    version(2, 3, None),
                    version(3, 2, None),
                    version(1, 1, None),
                ]
            };
            assert_eq!(beyond(versions(), 1).await, [4, 3, 1], "{unsaved:?}");
            assert_eq!(beyond(versions(), 2).await, [4, 1]);
            let none = vec![version(2, 2, unsaved), version(1, 1, unsaved)];
            assert_eq!(beyond(none, 1).await, [1]);
            // Files that were removed by hand.
            assert_eq!(without(versions(), 1, &[2]).await, [4, 2, 1]);
            assert_eq!(without(versions(), 1, &[2, 3]).await, [4, 3, 2]);
            assert_eq!(without(versions(), 2, &[2]).await, [4, 2]);
            assert_eq!(without(versions(), 1, &[1, 2, 3]).await, [4, 3, 2]);
        }
    }

    #[test]
    fn pinned_pages_are_counted() {
        assert!(kept(1).starts_with("1 pinned page is kept;"));
        assert!(kept(20).starts_with("20 pinned pages are kept;"));
    }

    #[test]
    fn either_ids_or_options_are_required() {
        assert!(parsed("").is_err());
        assert!(parsed("--yes").is_err());
        assert!(parsed("s1 --tag news").is_err());
        assert!(parsed("s1 --by-retention").is_err());
        assert!(parsed("--tag news --by-retention").is_err());
        assert!(parsed("--by-retention=soon").is_err());
        assert_eq!(parsed("--by-retention").unwrap().by_retention.unwrap(), [""]);
        let both = parsed("--by-retention=age=1y --by-retention=versions=3").unwrap();
        assert_eq!(both.by_retention.unwrap(), ["age=1y", "versions=3"]);
        assert!(parsed("--status started").is_err());
        assert_eq!(parsed("s1 c2 --yes").unwrap().ids.len(), 2);
    }
}
