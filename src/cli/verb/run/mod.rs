//! `archivist run`: archives in the foreground. Units do the work as for every crawl; this process
//! shows them, can interrupt them, and cancels them when it ends.

mod binary;
mod board;
mod copy;
mod crawl_record;
mod debug;
mod dry_run;
mod export;
mod input;
mod interrupt;
mod options;
mod printed;
mod programs;
mod registration;
mod scope;
mod takeover_notice;
mod work;

use crate::client::background::BackgroundArgs;
use crate::client::exit::{Exit, Failure};
use crate::client::server::{Server, decode};
use crate::client::stream::CrawlJob;
use crate::display::text;
use crate::display::{listing, style};
use crate::programs::install;
use crate::queue::urls::Urls;
use crate::queue::{encode, setting, summary, update_all};
use archivist_config::Scope;
use archivist_core::model::{CrawlId, Owner, PersonaName, SnapshotId, Task, Time};
use archivist_core::text::clean;
use archivist_shared::bus::documents::report::{AddOptions, Added, Command, Crawl, Details};
use archivist_shared::bus::documents::report::{Snapshot, Status};
use clap::Args;
use copy::{Layout, Target};
use crawl_record::Options;
use debug::JournalFeed;
use export::Pages;
use input::{Input, Redo};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{IsTerminal, Read};
use std::os::fd::AsFd;
use std::path::PathBuf;
use tokio::signal::unix::{Signal, SignalKind, signal};
use work::Work;

/// Archive in the foreground: show the hooks, interrupt them, cancel the work on exit
///
/// The work is done by the same units as always; this command shows the work, can interrupt it, and
/// holds the crawls that it queued. If the command ends early, for example because of kill(1) or
/// because its terminal closes, the orchestrator cancels these crawls. They continue only if the
/// orchestrator is not running at that moment. A crawl that existed before the command continues in
/// any case. When the command returns, nothing that it queued is running.
#[derive(Args)]
pub struct RunArgs {
    /// Follow links up to N steps from the given pages, also to other hosts, as with archivist add
    #[arg(long, value_name = "N", default_value_t = 0)]
    depth: u32,
    /// Follow links only to pages on the host of the page that has them, as with archivist add
    #[arg(long)]
    same_host: bool,
    /// Tag the given pages, as with archivist add; may be given more than once
    #[arg(long = "tag", value_name = "T")]
    tags: Vec<String>,
    /// Run only these plugins, separated by commas, as with archivist add
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    plugins: Vec<String>,
    /// Do not run these plugins, separated by commas
    ///
    /// Equivalent to --set A_ENABLED=false.
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    disable: Vec<String>,
    /// Set a setting of a plugin for this crawl, as with archivist add; may be given more than once
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = setting)]
    settings: Vec<(String, String)>,
    /// Use the cookies and the browser profile of this persona, see archivist persona
    ///
    /// Equivalent to --set ACTIVE_PERSONA=NAME.
    #[arg(long, value_name = "NAME")]
    persona: Option<PersonaName>,
    /// Time limit of a hook in seconds; same as --set TIMEOUT=S
    #[arg(long, value_name = "S")]
    timeout: Option<u32>,
    /// Archive at most N pages; same as --set CRAWL_MAX_URLS=N
    #[arg(long, value_name = "N")]
    max_urls: Option<u32>,
    /// Start no page after S bytes were archived, such as 500M; same as --set CRAWL_MAX_SIZE=S
    #[arg(long, value_name = "S")]
    crawl_max_size: Option<String>,
    /// Start no page after T seconds; same as --set CRAWL_TIMEOUT=T
    #[arg(long, value_name = "T")]
    crawl_timeout: Option<u32>,
    /// Start no hook when a page has S bytes; same as --set SNAPSHOT_MAX_SIZE=S
    #[arg(long, value_name = "S")]
    snapshot_max_size: Option<String>,
    /// Before the pages, install the programs that the plugins of the crawl lack, and those of Binary
    /// records
    ///
    /// They are installed as with archivist plugins install: what only root can install is not. The exit
    /// status is 3 if an installation fails, or a program of a record is missing after that.
    #[arg(long, conflicts_with = "dry_run", overrides_with = "no_install")]
    install: bool,
    /// Install nothing
    ///
    /// This is the default: hooks whose programs are missing are skipped. Of --install and
    /// --no-install, the last one applies.
    #[arg(long, overrides_with = "install")]
    no_install: bool,
    /// Queue nothing, and print which hooks would run, in which order, and why the others would not
    #[arg(long)]
    dry_run: bool,
    /// Copy the files of the page to DIR when it has ended
    ///
    /// These are index.jsonl, index.html and a directory for each plugin. For a single page; not
    /// with --depth.
    #[arg(short, long, value_name = "DIR", conflicts_with = "crawl_id")]
    dir: Option<PathBuf>,
    /// Copy the files of each page to DIR/ID when all have ended
    ///
    /// --dir and --output create DIR if necessary, before they queue anything, and fail if they
    /// cannot create files there, if DIR is in the data directory of archivist, or if another
    /// command copies to it. The copies belong to the caller; the archive keeps its own. Existing
    /// files of the same name are replaced, others are left alone. DIR may be a symbolic link and
    /// on another file system; symbolic links below it are not followed. Links of the page to files of
    /// the page are copied as links. A file appears under its name when it is complete. If the command is killed, a file
    /// '.archivist-partial' may remain; to continue, repeat the command with --snapshot-id instead
    /// of the URL, which also copies a page that is complete.
    ///
    /// The caller must be able to read the archive: root and users of --user are. To select plugins
    /// by the type of their output, as 'abx-dl --output' does, use --plugins.
    #[arg(long, value_name = "DIR", conflicts_with = "dir")]
    output: Option<PathBuf>,
    /// Also print the journal of the crawls while they run, to standard error
    ///
    /// The journal has what hooks write to standard error, and the messages of workers, of the
    /// orchestrator and, except with version 252, of systemd, of every priority. The same as
    /// archivist logs --follow next to the command; the caller must be able to read the journal.
    #[arg(long, conflicts_with = "dry_run")]
    debug: bool,
    /// Write records, one JSON object per line, even to a terminal
    ///
    /// With --dry-run, print JSON.
    #[arg(long)]
    json: bool,
    /// Instead of queueing new pages, follow this crawl; retry its failed and skipped results if it
    /// has ended
    #[arg(long, value_name = "ID", conflicts_with_all = ["snapshot_id", "urls", "dry_run"])]
    crawl_id: Option<CrawlId>,
    /// Instead of queueing new pages, follow this snapshot; retry its failed and skipped results if
    /// it has ended
    #[arg(long, value_name = "ID", conflicts_with_all = ["urls", "dry_run"])]
    snapshot_id: Option<SnapshotId>,
    /// Instead of archiving, have provider plugins install the program of this name
    ///
    /// The name is one of archivist plugins --binaries, and the program is installed as with
    /// archivist plugins install. The installation is a crawl without pages, which the command
    /// shows, holds and cancels like any other. The exit status is 0 if the program is installed,
    /// also if it was before, and 1 if it is missing afterwards.
    #[arg(long, value_name = "ID", conflicts_with_all =
        ["crawl_id", "snapshot_id", "urls", "dry_run", "dir", "output"])]
    binary_id: Option<String>,
    #[command(flatten)]
    background: BackgroundArgs,
    /// Pages to archive; - or none reads URLs and records from standard input, one per line
    #[arg(value_name = "URL")]
    urls: Vec<OsString>,
}

impl RunArgs {
    /// Returns the task of ArchiveBox that the only URL names, such as `archivebox://update`.
    fn task(&self) -> Option<Task> {
        match &self.urls[..] {
            [url] => url.to_str().and_then(Task::parse),
            _ => None,
        }
    }

    /// Returns whether records are printed instead of a summary.
    fn wants_records(&self) -> bool {
        self.json || !std::io::stdout().is_terminal()
    }

    /// The directory to copy to, if any.
    fn target(&self, input: &Input, scope: &Scope) -> Result<Option<Target>, Failure> {
        let (directory, layout) = match (&self.dir, &self.output) {
            (Some(directory), _) => (directory, Layout::OnePage),
            (None, Some(directory)) => (directory, Layout::ById),
            (None, None) => return Ok(None),
        };
        if layout == Layout::OnePage && (self.depth > 0 || !export::is_one_page(input)) {
            return Err(Failure::usage("--dir has room for one page; use --output for several"));
        }
        copy::can_copy(scope)?;
        Target::open(directory, layout, scope).map(Some)
    }
}

pub async fn run(args: RunArgs, scope: &Scope) -> Result<Exit, Failure> {
    args.background.refuse(scope)?;
    if args.dry_run {
        return dry_run::run(&args, scope).await;
    }
    if let Some(id) = &args.binary_id {
        return binary::run(id, &args, scope).await;
    }
    if let Some(task) = args.task() {
        return match task {
            Task::Update => update_all(scope).await,
            Task::Install => install::run(&[], false, scope).await,
        };
    }
    let mut input = collect(&args)?;
    for rejected in &input.urls.rejected {
        eprintln!("{rejected}");
    }
    let mut partly = !input.urls.rejected.is_empty();
    if input.is_empty() {
        return Err(Failure::usage(
            "nothing to work on: no URL that can be archived, and no record of a crawl",
        ));
    }
    let target = args.target(&input, scope)?;
    // From here on the command waits: it does not leave queued pages behind.
    let mut interrupts = interrupts()?;
    let server = Server::reach(scope).await?;
    let since = style::now();
    let is_new = !input.urls.is_empty() || !input.crawls.is_empty();
    let options = is_new.then(|| args.options());
    let (names, crawl) = (&input.programs, options.as_ref());
    match programs::settle(&server, names, args.install, crawl, &mut interrupts).await? {
        Exit::Interrupted => return Ok(Exit::Interrupted),
        exit => partly |= exit != Exit::Done,
    }
    let mut submission = Submission {
        server: &server,
        jobs: Vec::new(),
        complete: Vec::new(),
        joined: None,
        partly: false,
    };
    submission.settle(&mut input).await?;
    submission.submit(&args, &input).await?;
    partly |= submission.partly;
    let pages = submission.pages();
    let mut exit = Exit::Done;
    if !submission.jobs.is_empty() {
        // Records of a crawl that this command joined are printed from its start.
        let since = submission.joined.map_or(since, |joined| joined.min(since));
        let jobs = submission.jobs;
        let ended = until_the_end(jobs, since, &args, &server, scope, &mut interrupts).await?;
        match ended {
            Some(ended) => exit = ended,
            // Units may still write.
            None => return Ok(Exit::Interrupted),
        }
    }
    if let Some(target) = target {
        match export::copy(&server, target, &pages, &mut interrupts).await? {
            Exit::Interrupted => return Ok(Exit::Interrupted),
            copied => partly |= copied != Exit::Done,
        }
    }
    Ok(match exit {
        Exit::Done if partly => Exit::Partly,
        exit => exit,
    })
}

fn interrupts() -> Result<Signal, Failure> {
    signal(SignalKind::interrupt())
        .map_err(|error| Failure::failed(format!("failed to wait for signals: {error}")))
}

/// Shows the work on crawls until its end. Returns `None` if units may still write.
async fn until_the_end(
    jobs: Vec<CrawlJob>,
    since: Time,
    args: &RunArgs,
    server: &Server,
    scope: &Scope,
    interrupts: &mut Signal,
) -> Result<Option<Exit>, Failure> {
    scope::enter(scope).await;
    let mut work = Work::new(server, since, args.wants_records(), &jobs);
    if args.debug {
        let crawls: Vec<CrawlId> = jobs.iter().map(|job| job.crawl).collect();
        work.journal = Some(JournalFeed::follow(&crawls, since, scope)?);
    }
    let registered = registration::keep(server, registration::of(&jobs, since));
    tokio::select! {
        ended = work.until_the_end(jobs, interrupts) => ended,
        never = registered => match never {},
    }
}

fn collect(args: &RunArgs) -> Result<Input, Failure> {
    let mut input = Input::default();
    if let Some(id) = args.crawl_id {
        input.requeues.push((Owner::Crawl(id), Redo::Open));
    }
    if let Some(id) = args.snapshot_id {
        input.requeues.push((Owner::Snapshot(id), Redo::Open));
    }
    let stdin = std::io::stdin();
    if !input.is_empty() {
        return Ok(input);
    }
    let records = args.wants_records();
    let mut echo = |line: &str| {
        if records { style::print(&format!("{line}\n")) } else { Ok(()) }
    };
    let mut read = |input: &mut Input, source: &mut dyn Read| input.read(source, &mut echo);
    if args.urls.is_empty() && !stdin.is_terminal() {
        read(&mut input, &mut stdin.lock())?;
    }
    for (number, argument) in (1..).zip(&args.urls) {
        if argument == "-" {
            read(&mut input, &mut stdin.lock())?
        } else {
            input.urls.add_argument(number, argument)
        }
    }
    Ok(input)
}

/// Submits the requests to the orchestrator, which queues them.
struct Submission<'a> {
    server: &'a Server,
    jobs: Vec<CrawlJob>,
    /// Pages that are complete: there is nothing to do but to copy them.
    complete: Vec<Pages>,
    /// When another command began what this one joined.
    joined: Option<Time>,
    /// At least one request was refused.
    partly: bool,
}

impl Submission<'_> {
    /// The pages that the input names, of crawls in progress and of complete ones.
    fn pages(&self) -> Vec<Pages> {
        let of_job = |job: &CrawlJob| Pages { crawl: job.crawl, only: job.only.clone() };
        let running = self.jobs.iter().map(of_job);
        running.chain(self.complete.iter().cloned()).collect()
    }

    /// Checks which records belong to this archive: by id and by the URL that it has here.
    async fn settle(&mut self, input: &mut Input) -> Result<(), Failure> {
        for (place, claim) in std::mem::take(&mut input.claims) {
            let id = claim.id.to_string();
            let details = self.server.ask(|| self.server.proxy().show(&id)).await;
            let holds = match details {
                Ok(Details::Crawl { crawl, .. }) => crawl.url == claim.url,
                Ok(Details::Snapshot { snapshot, .. }) => snapshot.url == claim.url,
                Ok(Details::Run { .. }) => false,
                Err(failure) if failure.is_about_input() => false,
                Err(failure) => return Err(failure),
            };
            input.settle(place, claim, holds);
        }
        Ok(())
    }

    async fn submit(&mut self, args: &RunArgs, input: &Input) -> Result<(), Failure> {
        let options = args.options();
        if !input.urls.is_empty() {
            self.add(&input.urls, &options).await?;
        }
        let records = input.requeues.len() + input.crawls.len();
        let several = records > 1 || !input.urls.is_empty();
        for (urls, own) in &input.crawls {
            for rejected in &urls.rejected {
                eprintln!("{rejected}");
                self.partly = true;
            }
            let own = self.without_unknown(own).await?;
            match self.add(urls, &own.over(&options)).await {
                // A bad record does not stop the others.
                Err(failure) if several && failure.is_about_input() => {
                    failure.report();
                    self.partly = true;
                }
                other => other?,
            }
        }
        for (id, what) in &input.requeues {
            match self.requeue(*id, what).await {
                Err(failure) if several && failure.is_about_input() => {
                    failure.report();
                    self.partly = true;
                }
                other => other?,
            }
        }
        Ok(())
    }

    /// The options of a record without settings that no plugin has here: another archive may have
    /// other plugins.
    async fn without_unknown(&self, own: &Options) -> Result<Options, Failure> {
        let names = own.settings();
        if names.is_empty() {
            return Ok(own.clone());
        }
        let proxy = self.server.proxy();
        let unknown: Vec<String> = self.server.ask(|| proxy.unknown_settings(&names)).await?;
        if !unknown.is_empty() {
            let list = clean(&unknown.join(", "));
            eprintln!("ignored settings of a crawl that no plugin has: {list}");
        }
        Ok(own.without(&unknown))
    }

    async fn add(&mut self, urls: &Urls, options: &AddOptions) -> Result<(), Failure> {
        let options = encode(options)?;
        let memfd = urls.to_memfd()?;
        let call = self.server.proxy().run(memfd.as_fd().into(), &options);
        let (answer, hold) = self.server.call_with_urls(urls.len(), call).await?;
        let added: Added = decode(&answer)?;
        listing::report(&added.refused, |refused| urls.located(refused.clone()).to_string());
        self.partly |= !added.refused.is_empty();
        if self.jobs.iter().any(|job| job.crawl == added.crawl) {
            // Two records of the input are the same crawl.
            return Ok(());
        }
        if let Some(since) = added.joined {
            self.joined = Some(self.joined.map_or(since, |other| other.min(since)));
            eprintln!("{}", self.joined_line(added.crawl).await);
        }
        if added.accepted == 0 && added.known > 0 {
            eprintln!("{}", summary(&added));
            return Ok(());
        }
        self.jobs.push(CrawlJob {
            crawl: added.crawl,
            only: BTreeSet::new(),
            owned: true,
            hold: Some(hold.into()),
        });
        Ok(())
    }

    /// Returns the line about a crawl that another command works on. Nothing depends on the answer.
    async fn joined_line(&self, crawl: CrawlId) -> String {
        let status = || self.server.proxy().status();
        let commands = match self.server.ask::<Status, _>(status).await {
            Ok(status) => status.commands,
            Err(_) => Vec::new(),
        };
        let works = |command: &&Command| {
            let mut targets = command.targets.iter();
            targets.any(|target| target.id == Owner::Crawl(crawl))
        };
        let pid = commands.iter().find(works).and_then(|command| command.pid);
        let other = match pid {
            Some(pid) => format!("another command (pid={pid})"),
            None => "another command".to_owned(),
        };
        format!("{other} archives the same as {crawl}; following it")
    }

    /// Works on a crawl or snapshot: joins it if it runs, retries it if it has ended.
    async fn requeue(&mut self, id: Owner, what: &Redo) -> Result<(), Failure> {
        let hook = what.hook();
        let (text, proxy) = (id.to_string(), self.server.proxy());
        let details: Details = self.server.ask(|| proxy.show(&text)).await?;
        let (crawl, only, open, complete) = match &details {
            Details::Crawl { crawl, .. } => {
                (crawl.id, None, !crawl.status.is_final(), is_complete(crawl))
            }
            Details::Snapshot { snapshot, .. } => (
                snapshot.crawl,
                Some(snapshot.id),
                // Another hook of a page that already waits is fine.
                !snapshot.status.is_final() && hook.is_none(),
                page_is_complete(snapshot),
            ),
            Details::Run { run, .. } => {
                let id = run.id;
                let what = format!("{id} is a run, not a crawl or snapshot");
                return Err(Failure::failed(what));
            }
        };
        let all = !open && complete && redoes_complete(id, what);
        if !open && complete && hook.is_none() && !all {
            eprintln!("{id} is complete: none of its results failed or was skipped");
            let only = only.into_iter().collect();
            self.complete.push(Pages { crawl, only });
            return Ok(());
        }
        let known = self.jobs.iter().position(|job| job.crawl == crawl);
        let owned = match known {
            Some(place) => self.jobs[place].owned,
            None => self.is_over(crawl).await?,
        };
        if all {
            let call = proxy.retry_all(&text);
            self.server.call_once_in_pieces(call).await?;
        } else if !open {
            let call = proxy.retry(&text, hook.unwrap_or_default());
            self.server.call_once(call).await?;
        }
        match known {
            // All its pages are followed already, or this is another of them.
            Some(place) => {
                let job = &mut self.jobs[place];
                match only {
                    Some(page) if !job.only.is_empty() => drop(job.only.insert(page)),
                    Some(_) => {}
                    None => job.only.clear(),
                }
            }
            None => {
                let crawl_id = crawl.to_string();
                let hold = self.server.call(|| proxy.hold(&crawl_id, owned)).await?;
                self.jobs.push(CrawlJob {
                    crawl,
                    only: only.into_iter().collect(),
                    owned,
                    hold: Some(hold.into()),
                });
            }
        }
        Ok(())
    }

    async fn is_over(&self, crawl: CrawlId) -> Result<bool, Failure> {
        let id = crawl.to_string();
        match self.server.ask(|| self.server.proxy().show(&id)).await? {
            Details::Crawl { crawl, .. } => Ok(crawl.status.is_final()),
            Details::Snapshot { .. } | Details::Run { .. } => Ok(false),
        }
    }
}

/// Returns whether a complete page is done again, as ArchiveBox queues the page of a record again.
fn redoes_complete(id: Owner, what: &Redo) -> bool {
    matches!((id, what), (Owner::Snapshot(_), Redo::OpenOrAll))
}

fn is_complete(crawl: &Crawl) -> bool {
    let none = |counts: &archivist_shared::bus::documents::report::Counts, state: &str| {
        counts.get(state).is_none_or(|n| *n == 0)
    };
    crawl.reason.is_none()
        && none(&crawl.results, "failed")
        && none(&crawl.results, "skipped")
        && none(&crawl.snapshots, "cancelled")
}

fn page_is_complete(snapshot: &Snapshot) -> bool {
    let open = ["failed", "skipped"];
    let count = |state: &&str| snapshot.results.get(*state).copied().unwrap_or(0);
    snapshot.reason.is_none() && open.iter().map(count).sum::<u64>() == 0
}

/// `wget (s3), pdf (s4)`
fn named(hooks: &[archivist_shared::bus::documents::report::HookName]) -> String {
    let names = hooks.iter().map(|hook| {
        let label = clean(&text::hook_label(&hook.plugin, &hook.hook));
        format!("{label} ({})", hook.owner)
    });
    names.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_record_does_a_complete_page_again() {
        let page = Owner::Snapshot(SnapshotId(3));
        assert!(redoes_complete(page, &Redo::OpenOrAll));
        assert!(!redoes_complete(page, &Redo::Open));
        assert!(!redoes_complete(Owner::Crawl(CrawlId(1)), &Redo::OpenOrAll));
    }
}
