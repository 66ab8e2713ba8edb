//! `archivist pool list` and `archivist pool status`.

use super::find;
use crate::client::exit::{Exit, Failure};
use crate::display::style::{self, Style, Tone};
use crate::display::table::{Cell, Table};
use crate::display::text;
use crate::machine::pools::{self, PoolReport, State, Worker, connect, declared};
use archivist_config::Scope;
use archivist_core::text::clean;
use clap::Args;

/// List the pools: running and declared workers, restarts, and workers with a problem
#[derive(Args)]
pub struct ListArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// List the workers of a pool: state, process, uptime, restarts, last heartbeat, problems
///
/// Restarts are those since the worker was last started manually.
#[derive(Args)]
pub struct StatusArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Name of the pool
    name: String,
}

pub async fn list(args: ListArgs, scope: &Scope) -> Result<Exit, Failure> {
    let (pools, problems) = declared(scope);
    let systemd = connect(scope).await?;
    let style = Style::of_stdout();
    let mut reports = Vec::new();
    for pool in &pools {
        reports.push(pools::of(pool, &systemd, scope, style.now).await?);
    }
    let pools_of = |problem: &str| problem.contains(".pool");
    for problem in problems.iter().map(ToString::to_string).filter(|p| pools_of(p)) {
        eprintln!("archivist: {problem}");
    }
    if args.json {
        style::print_value(&reports)?;
        return Ok(Exit::Done);
    }
    for problem in reports.iter().flat_map(|report| &report.problems) {
        eprintln!("archivist: {}", clean(problem));
    }
    if reports.is_empty() {
        eprintln!("no pools")
    } else {
        style::say(&table(&reports, &style))?
    }
    Ok(Exit::Done)
}

fn table(reports: &[PoolReport], style: &Style) -> String {
    let mut table = Table::new("POOL  WORKERS  RESTARTS  PROBLEMS  FILE…");
    for report in reports {
        let is_whole = report.running == report.declared as usize;
        let tone = match (is_whole, report.running) {
            (true, _) => Tone::Good,
            (false, 0) => Tone::Dim,
            (false, _) => Tone::Busy,
        };
        let troubled = report.workers.iter().filter(|w| w.problem.is_some()).count();
        let troubles = troubled + report.problems.len();
        table.row([
            report.name.as_str().into(),
            Cell::toned(format!("{}/{}", report.running, report.declared), tone),
            report.restarts.to_string().into(),
            match troubles {
                0 => "".into(),
                count => Cell::toned(count.to_string(), Tone::Bad),
            },
            report.file.as_str().into(),
        ]);
    }
    table.render(style)
}

pub async fn status(args: StatusArgs, scope: &Scope) -> Result<Exit, Failure> {
    let pool = find(&args.name, scope)?;
    let systemd = connect(scope).await?;
    let style = Style::of_stdout();
    let report = pools::of(&pool, &systemd, scope, style.now).await?;
    if args.json {
        style::print_value(&report)?;
        return Ok(Exit::Done);
    }
    style::say(&summary(&report, &style))?;
    Ok(Exit::Done)
}

fn tone(state: State) -> Tone {
    match state {
        State::Running => Tone::Good,
        State::Starting | State::Restarting | State::Stopping => Tone::Busy,
        State::Stopped => Tone::Dim,
        State::Failed => Tone::Bad,
    }
}

pub fn summary(report: &PoolReport, style: &Style) -> String {
    let dot = match report.running {
        0 => Tone::Dim,
        running if running < report.declared as usize => Tone::Busy,
        _ => Tone::Good,
    };
    let mut head = format!("{} {}", style.paint("●", dot), report.name);
    if !report.description.is_empty() {
        head.push_str(&format!(" - {}", clean(&report.description)));
    }
    let mut out = format!(
        "{head}\n      File: {}\n   Workers: {} of {} running\n",
        clean(&report.file),
        report.running,
        report.declared
    );
    let mut table = Table::new("WORKER  NAME  STATE  PID  UPTIME  RESTARTS  LAST BEAT");
    for worker in &report.workers {
        table.row(cells(worker, style));
    }
    if !table.is_empty() {
        out.push('\n');
        out.push_str(&table.render(style));
    }
    let is_stopped = report.workers.iter().all(|w| w.state == State::Stopped);
    if is_stopped && report.declared > 0 && report.problems.is_empty() {
        out.push_str(&format!("not started; run: archivist pool start {}\n", report.name));
    }
    for worker in &report.workers {
        if let Some(why) = &worker.restart_reason {
            out.push_str(&format!("{}: last restart: {}\n", worker.name, clean(why)));
        }
    }
    let of_workers = report.workers.iter().filter_map(|worker| {
        let problem = worker.problem.as_ref()?;
        Some(format!("{}: {problem}", worker.name))
    });
    for problem in report.problems.iter().cloned().chain(of_workers) {
        out.push_str(&style.paint(&clean(&problem), Tone::Bad));
        out.push('\n');
    }
    out
}

fn cells(worker: &Worker, style: &Style) -> [Cell; 7] {
    // The heartbeat may be newer than the clock that was read before.
    let beat = worker.last_beat.map(|beat| text::relative(beat.min(style.now), style.now));
    [
        worker.index.to_string().into(),
        worker.name.as_str().into(),
        Cell::toned(worker.state.as_str(), tone(worker.state)),
        worker.pid.map_or_else(String::new, |pid| pid.to_string()).into(),
        text::elapsed(worker.since, None, style.now).into(),
        worker.restarts.to_string().into(),
        beat.unwrap_or_default().into(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_core::model::Time;

    #[test]
    fn problems_are_printed_below_the_workers() {
        let now = Time(1_800_000_000_000);
        let worker = |index: u32, state, problem: Option<&str>| Worker {
            index,
            name: format!("worker-{index}"),
            unit: format!("archivist-pool-web@{index}.service"),
            state,
            alive: state == State::Running,
            pid: (state == State::Running).then_some(41),
            since: (state == State::Running).then_some(Time(now.0 - 60_000)),
            uptime_sec: None,
            restarts: 2,
            restart_reason: (index == 0).then(|| "its health check found it unhealthy".into()),
            last_beat: (index == 0).then_some(Time(now.0 - 3_000)),
            problem: problem.map(Into::into),
        };
        let report = PoolReport {
            name: "web".into(),
            description: "of the shop\u{1b}".into(),
            file: "/etc/archivist/web.pool".into(),
            declared: 2,
            running: 1,
            restarts: 4,
            pids: vec![41],
            workers: vec![
                worker(0, State::Running, None),
                worker(1, State::Failed, Some("given up")),
            ],
            problems: Vec::new(),
        };
        let want = "\
● web - of the shop\u{fffd}
      File: /etc/archivist/web.pool
   Workers: 1 of 2 running

WORKER  NAME      STATE    PID  UPTIME   RESTARTS  LAST BEAT
0       worker-0  running  41   1min 0s  2         3.0s ago
1       worker-1  failed                 2
worker-0: last restart: its health check found it unhealthy
worker-1: given up
";
        assert_eq!(summary(&report, &Style::plain(now)), want);
    }
}
