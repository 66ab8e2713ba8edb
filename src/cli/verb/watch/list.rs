//! `archivist watch list` and `show`: results from the orchestrator, next runs from systemd's
//! timers.

use super::history::result;
use crate::client::exit::{Exit, Failure};
use crate::client::server::{Server, decode};
use crate::client::timers::{self, Next, Timers};
use crate::display::style::{self, Style, Tone};
use crate::display::table::{Cell, Table};
use crate::display::text;
use archivist_config::Scope;
use archivist_core::model::{CheckKind, Pool, Time};
use archivist_core::text::{clean, human_span};
use archivist_shared::bus::documents::watches::{Site, Watch};
use archivist_shared::bus::wire::WatchesProxy;
use clap::Args;
use std::collections::BTreeMap;

/// List the watches: state, uptime, last result, next run
///
/// The uptime is over the stored results, and the next run is that of the timer. If timers are not
/// started, as those of a file that was written by hand, the command prints how to start them, as
/// archivist why and archivist doctor do.
#[derive(Args)]
pub struct ListArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Show everything about a watch
///
/// This is what archivist watch list shows, and the last results.
#[derive(Args)]
pub struct ShowArgs {
    /// Name of the watch
    #[arg(value_name = "NAME", value_parser = super::name)]
    name: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Returns the document with the next runs that systemd reports.
async fn fetch(scope: &Scope, name: &str) -> Result<(Vec<Watch>, Option<Timers>, String), Failure> {
    let server = Server::reach(scope).await?;
    let answer = server
        .call(|| async { server.feature::<WatchesProxy<'_>>().await?.list(name).await })
        .await?;
    let watches: Vec<Watch> = decode(&answer)?;
    let timers = timers::all(scope).await;
    let next = timers.as_ref().map(|timers| &timers.next);
    let mut document: serde_json::Value = decode(&answer)?;
    let shown = document.as_array_mut().into_iter().flatten();
    for (shown, watch) in shown.zip(&watches) {
        let times: BTreeMap<_, _> = next
            .into_iter()
            .flatten()
            .filter(|((name, _), _)| *name == watch.name)
            .map(|((_, kind), time)| (kind.as_str(), time))
            .collect();
        shown["next"] = serde_json::to_value(times).unwrap_or_default();
        let not_started = timers.as_ref().map(|timers| timers.not_started(watch));
        shown["not_started"] = serde_json::to_value(not_started).unwrap_or_default();
    }
    Ok((watches, timers, document.to_string()))
}

pub async fn list(args: ListArgs, scope: &Scope) -> Result<Exit, Failure> {
    let (watches, timers, document) = fetch(scope, "").await?;
    if args.json {
        style::print_json(&document)?;
        return Ok(Exit::Done);
    }
    complain(&watches, timers.as_ref(), scope);
    if watches.is_empty() {
        style::note("no watches; see: archivist watch add --help");
        return Ok(Exit::Done);
    }
    let style = Style::of_stdout();
    style::print(&table(&watches, timers.as_ref(), &style).render(&style))?;
    Ok(Exit::Done)
}

/// Prints problems of files, and timers that are not started.
fn complain(watches: &[Watch], timers: Option<&Timers>, scope: &Scope) {
    for watch in watches {
        let idle = timers.and_then(|timers| timers.problem(watch, scope));
        for problem in watch.problems.iter().chain(&idle) {
            eprintln!("{}", clean(problem));
        }
    }
}

fn state(site: &Site, now: Time) -> Cell {
    let asked = site.last.iter().any(|check| check.kind == CheckKind::Status);
    match site.down_since {
        Some(since) => Cell::toned(format!("down {}", human_span(now.until(since))), Tone::Bad),
        None if site.failures > 0 => Cell::toned("failing", Tone::Busy),
        None if asked => Cell::toned("up", Tone::Good),
        None => Cell::default(),
    }
}

fn uptime(site: &Site) -> String {
    site.uptime.map_or_else(String::new, |share| format!("{share:.2}%"))
}

fn table(watches: &[Watch], timers: Option<&Timers>, style: &Style) -> Table {
    let mut table = Table::new("NAME  STATE  UPTIME?  LAST?  WHEN  NEXT  KIND  URL…");
    for watch in watches {
        let next = timers.into_iter().flat_map(|timers| &timers.next);
        let soonest =
            next.filter(|((name, _), _)| *name == watch.name).min_by_key(|(_, time)| **time);
        let is_idle = timers.is_some_and(|timers| !timers.not_started(watch).is_empty());
        let next = if is_idle {
            Cell::toned("not started", Tone::Bad)
        } else {
            text::when(soonest.map(|(_, time)| *time), style).into()
        };
        for site in &watch.sites {
            let last = site.last.iter().max_by_key(|check| check.ended_at);
            table.row([
                watch.name.as_str().into(),
                state(site, style.now),
                uptime(site).into(),
                last.map_or_else(Cell::default, result),
                text::when(last.and_then(|check| check.ended_at), style).into(),
                next.clone(),
                soonest.map_or("", |((_, kind), _)| kind.as_str()).into(),
                site.url.as_str().into(),
            ]);
        }
    }
    table
}

pub async fn show(args: ShowArgs, scope: &Scope) -> Result<Exit, Failure> {
    let (watches, timers, document) = fetch(scope, &args.name).await?;
    if args.json {
        style::print_json(&document)?;
        return Ok(Exit::Done);
    }
    let idle = watches.iter().filter_map(|watch| timers.as_ref()?.problem(watch, scope));
    idle.for_each(|problem| eprintln!("{}", clean(&problem)));
    let timers = timers.unwrap_or_default();
    let style = Style::of_stdout();
    for watch in &watches {
        style::print(&summary(watch, &timers.next, &style))?;
    }
    Ok(Exit::Done)
}

/// Returns why a check is still queued.
fn waits(kind: CheckKind) -> String {
    let (pool, key) = match kind.pool() {
        Pool::Fast => ("fast", "FastChecks="),
        _ => ("slow", "SlowChecks="),
    };
    format!("waits for a free slot in the {pool} pool ({key})")
}

fn summary(watch: &Watch, next: &Next, style: &Style) -> String {
    let mut out = watch.name.clone();
    if !watch.label.is_empty() {
        out.push_str(&format!(" - {}", clean(&watch.label)));
    }
    out.push_str(&format!(" ({})\n", clean(&watch.file)));
    for line in &watch.headers {
        out.push_str(&format!("     header: {}\n", clean(line)));
    }
    for sentence in &watch.left_out {
        out.push_str(&format!("       note: {}\n", clean(sentence)));
    }
    for line in &watch.notes {
        out.push_str(&format!("      notes: {}\n", clean(line)));
    }
    for problem in &watch.problems {
        out.push_str(&format!("    problem: {}\n", clean(problem)));
    }
    for (kind, words) in &watch.schedules {
        let time = next.get(&(watch.name.clone(), *kind));
        let shown = time.map(|time| format!("; next {}", text::stamp_and_age(*time, style)));
        out.push_str(&format!("{kind:>12}: {}{}\n", clean(words), shown.unwrap_or_default()));
    }
    for site in &watch.sites {
        out.push_str(&format!("\n{}\n", clean(&site.url)));
        let mut table = Table::new("KIND  STATE  RESULT…  WHEN");
        for check in site.open.iter().chain(&site.last) {
            table.row([
                check.kind.as_str().into(),
                check.state.as_str().into(),
                match check.state.as_str() {
                    "queued" => waits(check.kind).into(),
                    _ => result(check),
                },
                text::when(check.ended_at.or(Some(check.queued_at)), style).into(),
            ]);
        }
        if let Some(since) = site.down_since {
            out.push_str(&format!("down since {}\n", text::stamp_and_age(since, style)));
        }
        if site.uptime.is_some() {
            let of = site.status_checks;
            out.push_str(&format!("uptime {} of {of} status checks\n", uptime(site)));
        }
        let expires = site.last.iter().find_map(|it| it.record.certificate_expires);
        if let Some(end) = expires {
            out.push_str(&format!("certificate {}\n", text::expiry(end, style)));
        }
        if !table.is_empty() {
            out.push_str(&table.render(style));
        }
    }
    out
}
