//! Shows a crawl to its end: one of this machine, or of its whole fleet.

use crate::client::exit::{Exit, Failure};
use crate::client::fleet::Fleet;
use crate::client::paging::{Paging, Source};
use crate::client::server::{Server, decode};
use crate::client::stream::{CrawlJob, News, Silence, follow};
use crate::display::screen::Screen;
use crate::display::style::{self, Style, Tone};
use crate::progress::bar;
use crate::progress::follow::{Follow, Note};
use archivist_core::model::{CrawlId, Lifecycle, Owner, Time};
use archivist_shared::bus::documents::report::{
    Crawl, CrawlEvent, Filter, HookResult, Snapshot, Why,
};
use std::io::IsTerminal;
use std::pin::pin;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The running pages and a bar, on a terminal.
    Screen,
    /// A line for each page and hook that ends.
    Lines,
    /// Every event as JSON.
    Json,
}

impl Form {
    /// Returns the form for people.
    pub fn of_terminal() -> Form {
        let is_terminal = std::io::stdout().is_terminal() && std::io::stderr().is_terminal();
        if is_terminal { Form::Screen } else { Form::Lines }
    }
}

/// Interval between two updates of the screen.
const REDRAW: Duration = Duration::from_millis(250);

const FLEET_DELAY_MIN: Duration = Duration::from_millis(500);
const FLEET_DELAY_MAX: Duration = Duration::from_secs(5);

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
            style::note(&format!(
                "detached: the crawl continues; see 'archivist status {crawl}', stop it with 'archivist cancel {crawl}'"
            ));
            return Ok(Exit::Interrupted);
        }
    };
    view.close();
    done?;
    if form != Form::Json {
        style::say(&view.follow.summary(style::now()))?;
    }
    Ok(view.follow.exit())
}

async fn to_the_end(server: &Server, crawl: CrawlId, view: &mut View) -> Result<(), Failure> {
    let job = CrawlJob::of(crawl);
    let (sender, mut news) = mpsc::unbounded_channel();
    let mut following = pin!(follow(server, &job, None, sender));
    let mut redraw = tokio::time::interval(REDRAW);
    let ended = loop {
        tokio::select! {
            biased;
            Some((_, event)) = news.recv() => view.take(event)?,
            ended = &mut following => break ended,
            _ = redraw.tick(), if view.screen.is_some() => view.draw(),
        }
    };
    while let Ok((_, event)) = news.try_recv() {
        view.take(event)?;
    }
    ended?;
    if view.follow.has_gaps() {
        let again = if server.is_cut_off() { Some(server.reconnected().await?) } else { None };
        let server = again.as_ref().unwrap_or(server);
        fill_gaps(Source::Machine(server), crawl, view).await?;
    }
    Ok(())
}

/// Asks at this time what a crawl waits for.
async fn why_at(time: Instant, fleet: &Fleet, crawl: CrawlId) -> Option<Why> {
    tokio::time::sleep_until(time).await;
    let why = fleet.why(Owner::Crawl(crawl)).await;
    why.ok().and_then(|answer| decode(&answer).ok())
}

/// The fleet reports a crawl as a whole; its pages are listed at the end. The crawl continues while
/// the database is away: the command waits for it.
async fn fleet_to_the_end(fleet: &Fleet, crawl: CrawlId, view: &mut View) -> Result<(), Failure> {
    let mut known = String::new();
    let mut delay = FLEET_DELAY_MIN;
    let mut redraw = tokio::time::interval(REDRAW);
    let mut silence = Silence::default();
    let mut silent = Instant::now() + silence.next;
    while !view.follow.is_final() {
        let answer = {
            // Both at the same time: either may hold a lock of the connection while it waits for an answer.
            let mut wait = pin!(fleet.wait(crawl, &known));
            let mut why = pin!(why_at(silent, fleet, crawl));
            loop {
                tokio::select! {
                    answer = &mut wait => break answer,
                    _ = redraw.tick(), if view.screen.is_some() => view.draw(),
                    answer = &mut why => {
                        if let Some(line) = answer.and_then(|why| silence.line(&why)) {
                            view.take(News::Waits(line))?;
                        }
                        silent = Instant::now() + silence.next;
                        why.set(why_at(silent, fleet, crawl));
                    }
                }
            }
        };
        match answer {
            Ok(document) => {
                delay = FLEET_DELAY_MIN;
                let is_new = document != known;
                if is_new {
                    silence.ends();
                    silent = Instant::now() + silence.next;
                }
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
                    view.take(News::Event(Box::new(CrawlEvent::Crawl { crawl })))?;
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
        view.take(News::Event(Box::new(event)))?;
    }
    Ok(())
}

struct View {
    follow: Follow,
    form: Form,
    screen: Option<Screen>,
    began: Time,
}

impl View {
    fn new(crawl: CrawlId, form: Form) -> View {
        View {
            follow: Follow::new(crawl),
            form,
            screen: (form == Form::Screen).then(Screen::default),
            began: style::now(),
        }
    }

    fn take(&mut self, news: News) -> Result<(), Failure> {
        let event = match news {
            News::Event(event) => *event,
            News::Begins => {
                self.follow.stream_begins();
                return Ok(());
            }
            News::Waits(text) if self.form == Form::Json => {
                eprintln!("{text}");
                return Ok(());
            }
            News::Waits(text) => {
                return self.show(&Note { text, tone: Tone::Busy, lasting: true });
            }
        };
        if self.form == Form::Json {
            let text = serde_json::to_string(&event)
                .map_err(|error| Failure::failed(format!("failed to write JSON: {error}")))?;
            style::print_document(&format!("{text}\n"))?;
        }
        let notes = self.follow.apply(event, style::now());
        notes.iter().try_for_each(|note| self.show(note))
    }

    fn show(&mut self, note: &Note) -> Result<(), Failure> {
        match (&mut self.screen, self.form) {
            (Some(screen), _) if note.lasting => {
                screen.print(&Style::of_stdout().paint(&note.text, note.tone));
                Ok(())
            }
            (None, Form::Lines) => style::say(&format!("{}\n", note.text)),
            _ => Ok(()),
        }
    }

    fn draw(&mut self) {
        if let Some(screen) = &mut self.screen {
            screen.draw(bar::lines(&self.follow, self.began, style::now(), Screen::size()));
        }
    }

    fn close(&mut self) {
        if let Some(screen) = &mut self.screen {
            screen.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
