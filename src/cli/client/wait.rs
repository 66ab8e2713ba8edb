//! Follows a crawl to its end. If the stream ends with the orchestrator, it is requested again, and
//! the bus starts the orchestrator if necessary. If the bus itself is restarted, the command
//! connects again.

use crate::client::exit::{Exit, Failure};
use crate::client::fleet::Fleet;
use crate::client::follow::{Follow, Note};
use crate::client::paging::{Paging, Source};
use crate::client::server::{Server, decode};
use crate::display::progress::Bars;
use crate::display::style;
use crate::display::style::Style;
use archivist_core::model::{CrawlId, Lifecycle, Owner};
use archivist_shared::bus::documents::report::{Crawl, CrawlEvent, Filter, HookResult, Snapshot};
use std::io::{BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::time::Duration;
use tokio::sync::mpsc;

/// Form of the progress output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Bars on a terminal.
    Bars,
    /// A line for each page and hook that ends.
    Lines,
    /// Every event as JSON.
    Json,
}

/// Interval between two updates of the bars.
const REDRAW: Duration = Duration::from_millis(250);

/// Deadline for a stream that does not end with its crawl.
const AFTER_THE_END: Duration = Duration::from_secs(5);

/// Delay between two attempts to reach the fleet.
const FLEET_DELAY_MIN: Duration = Duration::from_millis(500);
const FLEET_DELAY_MAX: Duration = Duration::from_secs(5);

/// Most streams in a row that end without news.
const EMPTY_STREAMS: u32 = 5;

/// Shows the progress of `crawl`, in its whole fleet if there is one, until it ends or the user
/// presses Ctrl-C.
pub async fn wait(
    server: &Server,
    fleet: Option<&Fleet>,
    crawl: CrawlId,
    form: Form,
) -> Result<Exit, Failure> {
    let mut view = View::new(crawl, form);
    let to_the_end = async {
        match fleet {
            Some(fleet) => fleet_to_the_end(fleet, crawl, &mut view).await,
            None => to_the_end(server, crawl, &mut view).await,
        }
    };
    let done = tokio::select! {
        done = to_the_end => done,
        _ = tokio::signal::ctrl_c() => {
            view.close();
            eprintln!(
                "detached: the crawl continues; see 'archivist status {crawl}', stop it with 'archivist cancel {crawl}'"
            );
            return Ok(Exit::Interrupted);
        }
    };
    view.close();
    done?;
    if form != Form::Json {
        style::print(&view.follow.summary(style::now()))?;
    }
    Ok(view.follow.exit())
}

async fn to_the_end(server: &Server, crawl: CrawlId, view: &mut View) -> Result<(), Failure> {
    let id = crawl.to_string();
    let mut without_news = 0;
    let mut reconnected: Option<Server> = None;
    while !view.follow.is_final() {
        let server = reconnected.as_ref().unwrap_or(server);
        let stream = match server.call(|| server.proxy().watch(&id)).await {
            Err(failure) if failure.is_unreachable() && server.is_cut_off() => {
                reconnected = Some(server.reconnected().await?);
                continue;
            }
            stream => stream?,
        };
        view.follow.stream_begins();
        if one_stream(read_lines(stream.into()), view).await? {
            without_news = 0
        } else {
            without_news += 1
        }
        if without_news == EMPTY_STREAMS && !view.follow.is_final() {
            return Err(Failure::failed(format!(
                "the orchestrator stopped reporting {crawl}; the crawl may continue, see: archivist status {crawl}"
            )));
        }
    }
    let server = reconnected.as_ref().unwrap_or(server);
    if view.follow.has_gaps() {
        fill_gaps(Source::Machine(server), crawl, view).await?;
    }
    Ok(())
}

/// The fleet reports a crawl as a whole; its pages are listed at the end. The crawl continues while
/// the database is away: the command waits for it.
async fn fleet_to_the_end(fleet: &Fleet, crawl: CrawlId, view: &mut View) -> Result<(), Failure> {
    let mut known = String::new();
    let mut delay = FLEET_DELAY_MIN;
    let mut redraw = tokio::time::interval(REDRAW);
    while !view.follow.is_final() {
        let answer = {
            let mut wait = pin!(fleet.wait(crawl, &known));
            loop {
                tokio::select! {
                    answer = &mut wait => break answer,
                    _ = redraw.tick(), if view.bars.is_some() => view.draw(),
                }
            }
        };
        match answer {
            Ok(document) => {
                delay = FLEET_DELAY_MIN;
                let is_new = document != known;
                known = document;
                if known.is_empty() {
                    continue;
                }
                let mut crawl: Crawl = decode(&known)?;
                let is_done = are_done(&crawl);
                let is_sealed = is_done && fleet.has_sent_all().await?;
                if is_sealed {
                    // Nodes run its last hooks when they had no page of it for a while.
                    crawl.status = Lifecycle::Sealed;
                }
                if is_sealed || is_new {
                    view.take_event(CrawlEvent::Crawl { crawl })?;
                }
                if is_done && !is_sealed {
                    // The rest of a long list has not been sent yet. It may be of pages that the
                    // crawl has, and change nothing.
                    tokio::time::sleep(FLEET_DELAY_MIN).await;
                    known.clear();
                }
            }
            Err(failure) if failure.is_unreachable() => {
                if delay == FLEET_DELAY_MIN {
                    eprintln!("archivist: {}; waiting for it", failure.first_line());
                }
                tokio::time::sleep(delay).await;
                delay = (delay * 2).min(FLEET_DELAY_MAX);
            }
            Err(failure) => return Err(failure),
        }
    }
    if view.follow.has_gaps() {
        fill_gaps(Source::Fleet(fleet), crawl, view).await?;
    }
    Ok(())
}

/// Returns whether no page of a crawl of the fleet is open.
fn are_done(crawl: &Crawl) -> bool {
    let pages = &crawl.snapshots;
    let ended = ["sealed", "cancelled"].iter();
    let ended: u64 = ended.filter_map(|state| pages.get(*state)).sum();
    let all: u64 = pages.values().sum();
    crawl.status == Lifecycle::Started && ended > 0 && ended == all
}

/// Queries what happened between two streams, or before the first one.
async fn fill_gaps(source: Source<'_>, crawl: CrawlId, view: &mut View) -> Result<(), Failure> {
    let filter = |status: Option<&str>| Filter {
        status: status.map(str::to_owned),
        ..Filter::of(Owner::Crawl(crawl))
    };
    let snapshots: Vec<Snapshot> = Paging::of(source, filter(None)).collect().await?;
    let failed = Paging::of(source, filter(Some("failed")));
    let results: Vec<HookResult> = failed.collect().await?;
    let snapshots = snapshots.into_iter().rev().map(|snapshot| CrawlEvent::Snapshot { snapshot });
    let results = results.into_iter().rev().map(|result| CrawlEvent::Hook { result });
    for event in snapshots.chain(results) {
        view.take_event(event)?;
    }
    Ok(())
}

/// Shows one stream to its end; returns whether it brought news.
async fn one_stream(mut lines: mpsc::Receiver<String>, view: &mut View) -> Result<bool, Failure> {
    let mut news = false;
    let mut redraw = tokio::time::interval(REDRAW);
    loop {
        let over = view.follow.is_final();
        tokio::select! {
            line = lines.recv() => match line {
                Some(line) => news |= view.take(&line)?,
                None => return Ok(news),
            },
            _ = redraw.tick(), if view.bars.is_some() => view.draw(),
            () = tokio::time::sleep(AFTER_THE_END), if over => return Ok(news),
        }
    }
}

/// Reads a stream, pipe or socket on its own thread. An incomplete last line is dropped: the next
/// stream repeats it.
pub(crate) fn read_lines(stream: OwnedFd) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel(256);
    std::thread::spawn(move || {
        let mut reader = BufReader::new(std::fs::File::from(stream));
        let mut line = String::new();
        while reader.read_line(&mut line).is_ok_and(|n| n > 0) && line.ends_with('\n') {
            let line = std::mem::take(&mut line);
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

struct View {
    follow: Follow,
    form: Form,
    bars: Option<Bars>,
    style: Style,
}

impl View {
    fn new(crawl: CrawlId, form: Form) -> View {
        View {
            follow: Follow::new(crawl),
            form,
            bars: (form == Form::Bars).then(Bars::new),
            style: Style::of_stdout(),
        }
    }

    /// Applies one line of the stream; returns whether it was news.
    fn take(&mut self, line: &str) -> Result<bool, Failure> {
        if self.form == Form::Json {
            style::print_document(line)?;
        }
        self.tell(decode(line)?)
    }

    /// The same with an event of the command itself.
    fn take_event(&mut self, event: CrawlEvent) -> Result<bool, Failure> {
        if self.form == Form::Json {
            let text = serde_json::to_string(&event)
                .map_err(|error| Failure::failed(format!("failed to write JSON: {error}")))?;
            style::print_document(&format!("{text}\n"))?;
        }
        self.tell(event)
    }

    fn tell(&mut self, event: CrawlEvent) -> Result<bool, Failure> {
        let note = self.follow.apply(event);
        if let Some(note) = &note {
            self.show(note)?;
        }
        Ok(note.is_some())
    }

    fn show(&self, note: &Note) -> Result<(), Failure> {
        match (&self.bars, self.form) {
            (Some(bars), _) if note.lasting => {
                bars.print(&self.style.paint(&note.text, note.tone));
                Ok(())
            }
            (None, Form::Lines) => style::print(&format!("{}\n", note.text)),
            _ => Ok(()),
        }
    }

    fn draw(&mut self) {
        if let Some(bars) = &mut self.bars {
            bars.draw(&self.follow, style::now());
        }
    }

    fn close(&mut self) {
        if let Some(bars) = self.bars.take() {
            bars.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_crawl_of_the_fleet_is_done_when_all_its_pages_are() {
        let crawl = |status, pages: &[(&str, u64)]| Crawl {
            status,
            snapshots: pages.iter().map(|(state, n)| ((*state).to_owned(), *n)).collect(),
            ..crate::sample::crawl(1)
        };
        let started = Lifecycle::Started;
        assert!(are_done(&crawl(started, &[("sealed", 2), ("cancelled", 1)])));
        assert!(!are_done(&crawl(started, &[("sealed", 2), ("queued", 1)])));
        assert!(!are_done(&crawl(started, &[])));
        assert!(!are_done(&crawl(Lifecycle::Paused, &[("sealed", 2)])));
    }

    #[tokio::test]
    async fn an_incomplete_last_line_is_dropped() {
        let (ours, mut theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        theirs.write_all(b"one\ntwo\nthr").unwrap();
        drop(theirs);
        let mut lines = read_lines(ours.into());
        assert_eq!(lines.recv().await.as_deref(), Some("one\n"));
        assert_eq!(lines.recv().await.as_deref(), Some("two\n"));
        assert_eq!(lines.recv().await, None);
    }
}
