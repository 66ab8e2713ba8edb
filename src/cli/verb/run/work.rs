//! The foreground: shows events of the streams, and passes on what the user types.

use super::board::Board;
use super::debug::JournalFeed;
use super::interrupt::{Input, Interrupts, State, Step};
use super::named;
use super::printed::Printed;
use super::takeover_notice::TakeoverNotice;
use crate::client::exit::{Exit, Failure};
use crate::client::hint::here;
use crate::client::paging::Paging;
use crate::client::server::{Server, decode};
use crate::client::stream::{CrawlJob, News, follow};
use crate::display::screen::Screen;
use crate::display::style::{self, Style};
use crate::display::text;
use crate::progress::follow::Follow;
use crate::verb::run::printed;
use archivist_core::model::{CrawlId, Lifecycle, Owner, SnapshotId, Time};
use archivist_core::text::clean;
use archivist_shared::bus::documents::report::{
    CrawlEvent, Details, Filter, Interrupted, Run, Snapshot, Status,
};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, IsTerminal};
use std::pin::pin;
use std::time::Duration;
use tokio::signal::unix::Signal;
use tokio::sync::mpsc;

/// Interval between two updates of the table.
const REDRAW: Duration = Duration::from_millis(250);
const QUESTION: &str = "skip (Enter), retry (r), abort (a)? ";

struct Shown {
    follow: Follow,
    only: BTreeSet<SnapshotId>,
    owned: bool,
    targets: Vec<Owner>,
    ended: BTreeMap<SnapshotId, Snapshot>,
}

impl Shown {
    fn has(&self, owner: Owner) -> bool {
        match owner {
            Owner::Snapshot(id) => self.only.is_empty() || self.only.contains(&id),
            Owner::Crawl(_) => self.only.is_empty() || self.owned,
        }
    }

    fn exit(&self) -> Exit {
        if self.only.is_empty() {
            return self.follow.exit();
        }
        let well = |page: &Snapshot| {
            let failed = page.results.get("failed").copied().unwrap_or(0);
            page.status == Lifecycle::Sealed && page.reason.is_none() && failed == 0
        };
        let ended = self.only.iter().map(|id| self.ended.get(id));
        if ended.into_iter().all(|page| page.is_some_and(well)) { Exit::Done } else { Exit::Partly }
    }
}

pub struct Work<'a> {
    server: &'a Server,
    shown: BTreeMap<CrawlId, Shown>,
    records: Option<Printed>,
    board: Board,
    screen: Option<Screen>,
    interrupts: Interrupts,
    takeover_notice: TakeoverNotice,
    /// Printed with `--debug`.
    pub journal: Option<JournalFeed>,
    /// Reads lines from the terminal, not from standard input; `None` at its end.
    typed: Option<mpsc::UnboundedReceiver<Option<String>>>,
}

impl<'a> Work<'a> {
    pub fn new(server: &'a Server, since: Time, records: bool, jobs: &[CrawlJob]) -> Work<'a> {
        let screen = std::io::stderr().is_terminal() && console::user_attended_stderr();
        let shown = jobs.iter().map(|job| {
            let shown = Shown {
                follow: Follow::new(job.crawl),
                only: job.only.clone(),
                owned: job.owned,
                targets: job.targets(),
                ended: BTreeMap::new(),
            };
            (job.crawl, shown)
        });
        Work {
            server,
            shown: shown.collect(),
            records: records.then(|| Printed::new(since)),
            board: Board::default(),
            screen: screen.then(Screen::default),
            interrupts: Interrupts::new(screen && std::fs::File::open("/dev/tty").is_ok()),
            takeover_notice: TakeoverNotice::default(),
            journal: None,
            typed: None,
        }
    }

    /// Works on the jobs until all have ended. None if the user leaves without waiting for that.
    pub async fn until_the_end(
        &mut self,
        jobs: Vec<CrawlJob>,
        signals: &mut Signal,
    ) -> Result<Option<Exit>, Failure> {
        let (sender, news) = mpsc::unbounded_channel();
        let mut jobs = jobs;
        let holds: Vec<_> = jobs.iter_mut().map(|job| job.hold.take()).collect();
        let server = self.server;
        let following = async {
            let all = jobs.iter().zip(holds);
            let all = all.map(|(job, hold)| follow(server, job, hold, sender.clone()));
            let done = futures_util::future::try_join_all(all).await;
            drop(sender);
            done
        };
        // Both at the same time: while one waits for an answer, the other may hold a lock of the connection.
        {
            let (mut following, mut showing) =
                (pin!(following), pin!(self.show_all(news, signals)));
            let mut followed = None;
            loop {
                tokio::select! {
                    left = &mut showing => {
                        if left? {
                            return Ok(None);
                        }
                        followed.transpose()?;
                        break;
                    }
                    done = &mut following, if followed.is_none() => followed = Some(done),
                }
            }
        }
        self.fill_gaps().await?;
        if let Some(journal) = self.journal.take() {
            for message in journal.rest().await {
                self.say(&message);
            }
        }
        self.close().map(Some)
    }

    /// Shows the news until none can come any more, and passes on what the user types. Returns whether the user
    /// leaves before that.
    async fn show_all(
        &mut self,
        mut news: mpsc::UnboundedReceiver<(CrawlId, News)>,
        signals: &mut Signal,
    ) -> Result<bool, Failure> {
        let mut redraw = tokio::time::interval(REDRAW);
        loop {
            tokio::select! {
                biased;
                what = news.recv() => match what {
                    Some((crawl, what)) => self.take(crawl, what).await?,
                    None => return Ok(false),
                },
                _ = signals.recv() => {
                    if self.input(Input::Signal).await? {
                        return Ok(true);
                    }
                }
                line = next_line(&mut self.typed) => {
                    let left = match &line {
                        Some(line) => self.input(Input::Line(line)).await?,
                        None => {
                            self.typed = None;
                            self.input(Input::NoTerminal).await?
                        }
                    };
                    if left {
                        return Ok(true);
                    }
                }
                message = next_message(&mut self.journal) => self.say(&message),
                _ = redraw.tick(), if self.screen.is_some() => self.draw(),
            }
        }
    }

    fn draw(&mut self) {
        if let Some(screen) = &mut self.screen {
            screen.draw(self.board.lines(&Screen::style(style::now())).join("\n"));
        }
    }

    async fn take(&mut self, crawl: CrawlId, news: News) -> Result<(), Failure> {
        let event = match news {
            News::Event(event) => *event,
            News::Begins => {
                if let Some(shown) = self.shown.get_mut(&crawl) {
                    shown.follow.stream_begins();
                }
                self.look_for_newer().await;
                return Ok(());
            }
            News::Waits(line) => {
                self.say(&line);
                return Ok(());
            }
        };
        let owner = match &event {
            CrawlEvent::Crawl { crawl } => Owner::Crawl(crawl.id),
            CrawlEvent::Snapshot { snapshot } => Owner::Snapshot(snapshot.id),
            CrawlEvent::Hook { result } => result.owner,
        };
        if !self.shown.get(&crawl).is_some_and(|shown| shown.has(owner)) {
            return Ok(());
        }
        if let CrawlEvent::Snapshot { snapshot } = &event
            && snapshot.status.is_final()
        {
            self.complete(crawl, snapshot.id).await?;
        }
        self.tell_records(&event).await?;
        self.show(crawl, event)
    }

    /// Prints one line for each orchestrator that takes over. The work continues there, and this
    /// command follows it. Nothing depends on the answer.
    async fn look_for_newer(&mut self) {
        let status = || self.server.proxy().status();
        if let Ok(status) = self.server.ask::<Status, _>(status).await
            && let Some(line) = self.takeover_notice.newer(&status.runners)
        {
            self.say(&line);
        }
    }

    fn show(&mut self, crawl: CrawlId, event: CrawlEvent) -> Result<(), Failure> {
        let Some(shown) = self.shown.get_mut(&crawl) else {
            return Ok(());
        };
        if let CrawlEvent::Snapshot { snapshot } = &event
            && snapshot.status.is_final()
        {
            shown.ended.insert(snapshot.id, snapshot.clone());
        }
        if let Some(screen) = &mut self.screen {
            let stays = self.board.apply(&event, &Screen::style(style::now()));
            stays.iter().for_each(|line| screen.print(line));
            shown.follow.apply(event, style::now());
            return Ok(());
        }
        let notes = shown.follow.apply(event, style::now());
        let style = Style::of_stdout();
        notes
            .iter()
            .filter(|_| self.records.is_none())
            .try_for_each(|note| style::print(&format!("{}\n", style.paint(&note.text, note.tone))))
    }

    async fn tell_records(&mut self, event: &CrawlEvent) -> Result<(), Failure> {
        let Some(records) = &mut self.records else {
            return Ok(());
        };
        match event {
            CrawlEvent::Snapshot { snapshot } => {
                if let Some(record) = records.page(snapshot) {
                    printed::print(&record)?;
                }
            }
            CrawlEvent::Hook { result } if result.status.is_final() => {
                let filter = Filter::of(result.owner);
                let paging = Paging::new(self.server, filter);
                let runs: Vec<Run> = paging.collect().await?;
                for record in records.result(result, &runs) {
                    printed::print(&record)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Queries what the stream does not report of a page that has ended, such as skipped results.
    async fn complete(&mut self, crawl: CrawlId, page: SnapshotId) -> Result<(), Failure> {
        let id = page.to_string();
        let call = || self.server.proxy().show(&id);
        let Details::Snapshot { snapshot, results, runs, .. } = self.server.ask(call).await? else {
            return Ok(());
        };
        if let Some(records) = &mut self.records {
            if let Some(record) = records.page(&snapshot) {
                printed::print(&record)?;
            }
            for result in &results {
                for record in records.result(result, &runs) {
                    printed::print(&record)?;
                }
            }
        }
        for result in results {
            self.show(crawl, CrawlEvent::Hook { result })?;
        }
        Ok(())
    }

    /// Reports pages that ended before the stream started.
    async fn fill_gaps(&mut self) -> Result<(), Failure> {
        let gaps = |(id, shown): (&CrawlId, &Shown)| {
            (shown.only.is_empty() && shown.follow.has_gaps()).then_some(*id)
        };
        let crawls: Vec<CrawlId> = self.shown.iter().filter_map(gaps).collect();
        for crawl in crawls {
            for snapshot in self.snapshots(crawl).await? {
                let known = self.shown[&crawl].ended.contains_key(&snapshot.id);
                if snapshot.status.is_final() && !known {
                    let event = CrawlEvent::Snapshot { snapshot };
                    self.take(crawl, News::Event(Box::new(event))).await?;
                }
            }
        }
        Ok(())
    }

    async fn snapshots(&self, crawl: CrawlId) -> Result<Vec<Snapshot>, Failure> {
        let filter = Filter::of(Owner::Crawl(crawl));
        let paging = Paging::new(self.server, filter);
        let mut snapshots: Vec<Snapshot> = paging.collect().await?;
        snapshots.reverse();
        Ok(snapshots)
    }

    fn close(&mut self) -> Result<Exit, Failure> {
        if let Some(screen) = &mut self.screen {
            screen.resume();
            screen.clear();
        }
        let now = style::now();
        let mut exit = Exit::Done;
        for shown in self.shown.values() {
            if shown.exit() != Exit::Done {
                exit = Exit::Partly;
            }
            let summary = if shown.only.is_empty() {
                shown.follow.summary(now)
            } else {
                shown.ended.values().map(line).collect()
            };
            match (self.records.is_some(), &self.screen) {
                (false, _) => style::say(&summary)?,
                (true, Some(_)) => eprint!("{}", here(&summary)),
                (true, None) => {}
            }
        }
        Ok(match self.interrupts.state() {
            State::Aborting => Exit::Interrupted,
            _ => exit,
        })
    }

    /// Handles a key or signal; returns whether to leave at once.
    async fn input(&mut self, input: Input<'_>) -> Result<bool, Failure> {
        let Some(step) = self.interrupts.handle(input) else {
            return Ok(false);
        };
        match step {
            Step::Interrupt => self.interrupt().await,
            Step::AskAgain => eprint!("{QUESTION}"),
            Step::Skip => self.proceed(false).await,
            Step::Retry => self.proceed(true).await,
            Step::Abort => self.abort().await?,
            Step::Leave => {
                if let Some(screen) = &mut self.screen {
                    screen.clear();
                }
                eprintln!("exiting; cancelled units may need some time to end");
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn targets(&self) -> Vec<Owner> {
        let is_open = |shown: &&Shown| !shown.follow.is_final();
        let open = self.shown.values().filter(is_open);
        open.flat_map(|shown| shown.targets.clone()).collect()
    }

    async fn interrupt(&mut self) {
        let mut hooks = Vec::new();
        for target in self.targets() {
            let id = target.to_string();
            let call = self.server.proxy().interrupt(&id);
            let answer = self.server.call_once(call).await;
            match answer.and_then(|answer| decode::<Interrupted>(&answer)) {
                Ok(answer) => hooks.extend(answer.hooks),
                Err(failure) => {
                    self.interrupts.handle(Input::Failed);
                    return self.say(failure.message());
                }
            }
        }
        let what = if hooks.is_empty() {
            "no hook is running now".to_owned()
        } else {
            format!("interrupted {}", named(&hooks))
        };
        let question = format!("{what}: {QUESTION}");
        match &mut self.screen {
            Some(screen) => screen.ask(&question),
            None => eprint!("{question}"),
        }
        if self.typed.is_none() {
            self.typed = Some(read_terminal());
        }
    }

    /// Prints a line above the table.
    fn say(&mut self, line: &str) {
        match &mut self.screen {
            Some(screen) => screen.print(line),
            None => style::note(line),
        }
    }

    async fn proceed(&mut self, again: bool) {
        if let Some(screen) = &mut self.screen {
            screen.resume();
        }
        let crawls: Vec<CrawlId> = self.shown.keys().copied().collect();
        for crawl in crawls {
            let id = crawl.to_string();
            let call = self.server.proxy().proceed(&id, again);
            if let Err(failure) = self.server.call_once(call).await {
                self.say(failure.message());
            }
        }
    }

    /// Cancels everything; the streams report when it has ended.
    async fn abort(&mut self) -> Result<(), Failure> {
        if let Some(screen) = &mut self.screen {
            eprintln!();
            screen.resume();
        }
        self.say("aborting: waiting for running units to end; Ctrl-C exits at once");
        for target in self.targets() {
            let id = target.to_string();
            let proxy = self.server.proxy();
            let called = match target {
                Owner::Crawl(_) => self.server.call(|| proxy.abort(&id)).await,
                Owner::Snapshot(_) => self.server.call(|| proxy.cancel(&id)).await,
            };
            match called {
                // It may have ended in the meantime.
                Err(failure) if failure.is_about_input() => {}
                other => other?,
            }
        }
        Ok(())
    }
}

/// `s3 https://… sealed`
fn line(snapshot: &Snapshot) -> String {
    let reason = match &snapshot.reason {
        Some(reason) => format!(": {}", clean(reason)),
        None => String::new(),
    };
    let url = clean(&snapshot.url);
    let results = text::counts(&snapshot.results, &text::result_states());
    format!("{} {url} {}{reason}, results: {results}\n", snapshot.id, snapshot.status)
}

/// Lines from the terminal, whatever standard input is; `None` when there are no more.
fn read_terminal() -> mpsc::UnboundedReceiver<Option<String>> {
    let (sender, receiver) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        let Ok(terminal) = std::fs::File::open("/dev/tty") else {
            return drop(sender.send(None));
        };
        for line in BufReader::new(terminal).lines() {
            let end = line.is_err();
            if sender.send(line.ok()).is_err() || end {
                return;
            }
        }
        let _ = sender.send(None);
    });
    receiver
}

async fn next_line(typed: &mut Option<mpsc::UnboundedReceiver<Option<String>>>) -> Option<String> {
    match typed {
        Some(typed) => typed.recv().await.flatten(),
        None => std::future::pending().await,
    }
}

async fn next_message(journal: &mut Option<JournalFeed>) -> String {
    match journal {
        Some(journal) => journal.next().await,
        None => std::future::pending().await,
    }
}
