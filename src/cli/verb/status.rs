//! `archivist status`: the state of the orchestrator, or of one crawl, snapshot or run.

use crate::client::details;
use crate::client::exit::{Exit, Failure};
use crate::client::fleet::{Fleet, Local};
use crate::client::hint::in_scope;
use crate::client::server::{Server, decode, systemctl};
use crate::display::block::Block;
use crate::display::details::{running, short};
use crate::display::style::{self, Style, Tone};
use crate::display::text;
use archivist_config::Scope;
use archivist_config::declare::{Kind, files};
use archivist_core::model::{AnyId, REPLAY_HOLDS};
use archivist_core::plan::incomplete_text;
use archivist_core::text::clean;
use archivist_shared::bus::documents::report::{
    Command, Runner, SEARCH_QUEUED_MAX, SearchStatus, Status, StoreStatus, Unfaithful,
};
use archivist_shared::systemd::SystemdClient;
use clap::Args;
use std::collections::BTreeSet;
use std::time::Duration;

mod fleet;
mod live;

/// How long `status` waits for an answer before it prints what systemd knows.
const ANSWER_EXPECTED: Duration = Duration::from_millis(900);

/// Show the state of the orchestrator, or of one crawl, snapshot or run
///
/// Without an id, show the orchestrator, its counters, the running units, and the time of the next
/// scheduled work. If the orchestrator does not answer within a second, because it is starting or
/// hangs, the command prints what systemd knows about its unit to standard error, and continues to
/// wait.
#[derive(Args)]
pub struct StatusArgs {
    /// A crawl (c12), a snapshot (s345) or a run (r678)
    #[arg(value_name = "ID")]
    id: Option<AnyId>,
    /// Show the state of this machine again whenever it changes, until Ctrl-C, which is no failure
    ///
    /// The state is shown at most four times a second. On a terminal, each state replaces the last
    /// one; to a file or pipe, each is written after the last one, separated by an empty line, or
    /// with --json as one line. The command continues when the orchestrator restarts, and waits
    /// while the orchestrator is stopped.
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    local: Local,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub async fn run(args: StatusArgs, scope: &Scope) -> Result<Exit, Failure> {
    if args.watch {
        return live::watch(&args, scope).await;
    }
    // A fleet that cannot be reached is reported after the state of this machine.
    let mut away = None;
    let answer = match args.id {
        Some(id) => details::fetch(id, args.local, scope).await?,
        None => {
            // Also the start may take long: a large database is checked before work.
            let asked = async {
                let server = Server::reach(scope).await?;
                server.call(|| server.proxy().status()).await
            };
            let answer = answer_or_state(ANSWER_EXPECTED, asked, unit_state(scope)).await?;
            let fleet = async {
                match Fleet::reach(scope, args.local).await? {
                    Some(fleet) => fleet::added(&answer, &fleet.status().await?),
                    None => Ok(answer.clone()),
                }
            };
            fleet.await.unwrap_or_else(|failure| {
                away = Some(failure);
                answer.clone()
            })
        }
    };
    if args.json {
        style::print_json(&answer)?;
    } else {
        style::print(&render(args.id, &answer, scope, &Style::of_stdout())?)?;
    }
    away.map_or(Ok(Exit::Done), Err)
}

/// Waits for an answer. If there is none for the `expected` time, prints what systemd knows to standard error
/// and continues to wait: the orchestrator may be starting, or hang.
async fn answer_or_state<T>(
    expected: Duration,
    call: impl Future<Output = T>,
    state: impl Future<Output = String>,
) -> T {
    tokio::pin!(call);
    let late = async {
        tokio::time::sleep(expected).await;
        state.await
    };
    tokio::select! {
        answer = &mut call => return answer,
        state = late => eprintln!("{state}"),
    }
    call.await
}

/// Returns what systemd knows about the orchestrator.
async fn unit_state(scope: &Scope) -> String {
    let unit = scope.orchestrator_unit();
    let known = async {
        let systemd = SystemdClient::connect(scope.user).await?;
        systemd.service(&unit).await
    };
    match known.await {
        Ok(service) => silent(
            &unit,
            &service.text("ActiveState"),
            &service.text("SubState"),
            &service.text("StatusText"),
            systemctl(scope),
        ),
        Err(error) => error.to_string(),
    }
}

/// `archivist-orchestrator.service is active (running) but does not answer; see: …`. `said`: the line
/// STATUS= of the unit.
fn silent(unit: &str, active: &str, sub: &str, said: &str, systemctl: &str) -> String {
    let but = match (active, said) {
        ("active", _) => " but does not answer".to_owned(),
        (_, "") => String::new(),
        (_, said) => format!(": {}", clean(said)),
    };
    format!("{unit} is {active} ({sub}){but}; still waiting; see: {systemctl} status {unit}")
}

/// Returns the text for an answer about `id`, or about the orchestrator.
fn render(
    id: Option<AnyId>,
    answer: &str,
    scope: &Scope,
    style: &Style,
) -> Result<String, Failure> {
    Ok(match id {
        Some(_) => short(&decode(answer)?, style),
        None => {
            let mut status: Status = decode(answer)?;
            // The orchestrator keeps the results of a watch for a while after it was removed.
            let is_removed = |watch: &str| files::is_removed(scope, Kind::Watch, watch);
            status.certificates.retain(|certificate| !is_removed(&certificate.watch));
            let text = overall(&status, &scope.orchestrator_unit(), style);
            in_scope(&text, scope)
        }
    })
}

fn overall(status: &Status, unit: &str, style: &Style) -> String {
    let mut block = Block::new();
    block.line("Version", format!("{} (systemd {})", status.version, status.systemd));
    block.line("Status", status.line.as_str());
    if let Some(why) = &status.blocked {
        let what = if status.network_outage.as_ref() == Some(why) {
            "pages on the Internet wait"
        } else {
            "nothing is started"
        };
        block.line("Blocked", format!("{what}: {}", clean(why)));
    }
    block.line("Data", status.data.as_str());
    if !status.network.is_empty() {
        block.line("Network", text::network(status));
    }
    match &status.fleet {
        Some(fleet) => fleet::lines(fleet, status, &mut block, style),
        None => {
            let states = text::lifecycles();
            block.line("Crawls", text::counts(&status.crawls, &states));
            block.line("Pages", text::counts(&status.snapshots, &states));
            block.line("Health", text::health(status.uses));
        }
    }
    if let Some(text) = incomplete_text(status.incomplete) {
        let fix = "archivist list snapshots --status incomplete; archivist retry --failed";
        block.line("Incomplete", format!("{text}; see: {fix}"));
    }
    if status.unfaithful.pages > 0 {
        block.line("Replay", unfaithful(&status.unfaithful));
    }
    for certificate in &status.certificates {
        let site = format!("{} of watch {}", clean(&certificate.url), clean(&certificate.watch));
        let expiry = text::expiry(certificate.expires, style);
        block.line("Certificate", format!("{site} {expiry}"));
    }
    if status.deleting > 0 {
        let text = format!("{} deleted, their files are being removed", status.deleting);
        block.line("Removal", text);
    }
    if status.deleting_copies > 0 {
        let text = format!(
            "{} deleted, their copies are being removed from the store",
            status.deleting_copies
        );
        block.line("Removal", text);
    }
    if let Some(why) = &status.retention_held {
        block.line(
            "Retention",
            format!("held: {}; see: archivist delete --by-retention", clean(why)),
        );
    }
    if let Some(text) = status.search.and_then(search) {
        block.line("Search", text);
    }
    if let Some(store) = &status.store {
        block.line("Store", self::store(store, style));
    }
    if let Some(next) = status.next {
        block.line("Next", text::stamp_and_age(next, style));
    }
    for command in &status.commands {
        block.line("Foreground", foreground(command, style));
    }
    // A single runner needs no line if it is the service.
    if status.runners.len() > 1 || status.runners.iter().any(|runner| runner.unit != unit) {
        for runner in &status.runners {
            block.line("Runner", summary(runner, style));
        }
    }
    format!("{} {unit}\n", style.paint("●", Tone::Good))
        + &block.render()
        + &running(&status.running, style)
}

/// Pages whose replay does not hold, the newest by name.
fn unfaithful(unfaithful: &Unfaithful) -> String {
    let Unfaithful { pages, newest } = unfaithful;
    let names: Vec<_> = newest.iter().map(ToString::to_string).collect();
    let more = if *pages > names.len() as u64 { " ..." } else { "" };
    let what = if *pages == 1 { "page does" } else { "pages do" };
    let least = REPLAY_HOLDS;
    format!(
        "{pages} {what} not hold: {}{more}; to record again: archivist retry --unfaithful {least}",
        names.join(" ")
    )
}

/// What the search index lacks; `None` if it lacks nothing.
fn search(search: SearchStatus) -> Option<String> {
    let SearchStatus { queued, is_building, failed } = search;
    let mut text = match (is_building, queued) {
        (true, _) => "the index is being built".to_owned(),
        (false, 0) => return None,
        (false, 1) => "the index lacks the changes of 1 page".to_owned(),
        (false, SEARCH_QUEUED_MAX..) => {
            format!("the index lacks the changes of {SEARCH_QUEUED_MAX} pages or more")
        }
        (false, n) => format!("the index lacks the changes of {n} pages"),
    };
    if failed > 0 {
        text += &format!(
            "; {failed} attempts failed; see: journalctl -u archivist-index-pages.service"
        );
    }
    Some(text)
}

/// `/srv/store, 3 waiting (1 failed), 1 running; s7: failed to …, next attempt …`
fn store(store: &StoreStatus, style: &Style) -> String {
    let mut words = vec![clean(&store.store)];
    match (store.waiting, store.failed) {
        (0, _) => {}
        (waiting, 0) => words.push(format!("{waiting} waiting")),
        (waiting, failed) => words.push(format!("{waiting} waiting ({failed} failed)")),
    }
    if store.running > 0 {
        words.push(format!("{} running", store.running));
    }
    let mut line = words.join(", ");
    if let Some(reason) = &store.reason {
        line += &format!("; {}", clean(reason));
    }
    if let Some(next) = store.next {
        line += &format!("; next attempt {}", text::stamp_and_age(next, style));
    }
    line
}

/// `run of https://…, crawl c12, in /home/me, pid 123, since …`
fn foreground(command: &Command, style: &Style) -> String {
    let mut words = vec![clean(&command.verb)];
    let targets = &command.targets;
    if let Some(first) = targets.first() {
        let more = match targets.len() {
            1 => String::new(),
            n => format!(" and {} more", n - 1),
        };
        words[0] += &format!(" of {}{more}", clean(&first.url));
        let crawls: BTreeSet<_> = targets.iter().map(|target| target.crawl).collect();
        let ids: Vec<String> = crawls.iter().map(ToString::to_string).collect();
        let word = if ids.len() == 1 { "crawl" } else { "crawls" };
        words.push(format!("{word} {}", ids.join(" ")));
    }
    if !command.directory.is_empty() {
        words.push(format!("in {}", clean(&command.directory)));
    }
    words.extend(command.pid.map(|pid| format!("pid {pid}")));
    words.push(format!("since {}", text::stamp_and_age(command.since, style)));
    words.join(", ")
}

/// `active, archivist-orchestrator.service (pid 12) since …`
fn summary(runner: &Runner, style: &Style) -> String {
    let unit = match runner.unit.as_str() {
        "" => "no unit".to_owned(),
        unit => clean(unit),
    };
    let place = match &runner.place {
        Some(place) => format!(" {}", clean(place)),
        None => String::new(),
    };
    // Services work in the root directory.
    let directory = runner
        .directory
        .as_deref()
        .filter(|path| *path != "/")
        .map(|path| format!(" in {}", clean(path)));
    let since = text::stamp_and_age(runner.since, style);
    format!(
        "{}, {unit} (pid {}){place}{} since {since}",
        clean(&runner.state),
        runner.pid,
        directory.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use archivist_core::model::{CrawlId, IdMarks, Time};
    use archivist_shared::bus::documents::report::{Counts, Run, Target, Uses};

    fn runner(state: &str, unit: &str, place: Option<&str>) -> Runner {
        Runner {
            state: state.into(),
            pid: 412,
            unit: unit.into(),
            components: "orchestrator".into(),
            since: Time(sample::NOW.0 - 60_000),
            epoch: 3,
            place: place.map(Into::into),
            directory: None,
        }
    }

    fn target(id: &str, crawl: i64, url: &str) -> Target {
        Target { id: id.parse().unwrap(), crawl: CrawlId(crawl), url: url.into() }
    }

    #[tokio::test]
    async fn silence_is_explained_before_the_answer() {
        const { assert!(ANSWER_EXPECTED.as_secs() < 1) };
        let explained = tokio::sync::Notify::new();
        let state = async {
            explained.notify_one();
            "is silent".to_owned()
        };
        // The answer comes only after the state was asked for.
        let answer = explained.notified();
        answer_or_state(Duration::from_millis(1), answer, state).await;
        let never = std::future::pending();
        let at_once = answer_or_state(ANSWER_EXPECTED, async { 8 }, never).await;
        assert_eq!(at_once, 8);
        let hangs = silent("a.service", "active", "running", "idle", "systemctl");
        assert!(hangs.contains("(running) but does not answer; "), "{hangs}");
        let starts = |said| silent("a.service", "activating", "start", said, "systemctl");
        assert!(starts("").starts_with("a.service is activating (start); still waiting"));
        let checks = starts("checking the database");
        assert!(checks.contains("(start): checking the database; still"), "{checks}");
    }

    #[test]
    fn index_that_is_behind_is_named() {
        let text =
            |queued, is_building, failed| search(SearchStatus { queued, is_building, failed });
        assert_eq!(text(0, false, 0), None);
        assert_eq!(text(3, false, 0).unwrap(), "the index lacks the changes of 3 pages");
        assert_eq!(text(9, true, 0).unwrap(), "the index is being built");
        assert!(text(1, false, 2).unwrap().contains("; 2 attempts failed; "));
    }

    #[test]
    fn commands_in_the_foreground_and_orchestrators_outside_the_service() {
        let mut command = Command {
            verb: "run".into(),
            targets: vec![target("c12", 12, "https://example.com/")],
            directory: "/home/me/x".into(),
            pid: Some(123),
            user: Some(1000),
            since: Time(sample::NOW.0 - 60_000),
        };
        let style = Style::plain(sample::NOW);
        let since = "since Sat 2026-11-21 09:24:05 UTC; 1min 0s ago";
        assert_eq!(
            foreground(&command, &style),
            format!("run of https://example.com/, crawl c12, in /home/me/x, pid 123, {since}")
        );
        command.targets = vec![
            target("s3", 12, "https://example.com/\u{1b}[31m"),
            target("s4", 12, "https://example.com/b"),
            target("c13", 13, "https://example.com/c"),
        ];
        let line = foreground(&command, &style);
        let want = "run of https://example.com/\u{fffd}[31m and 2 more, crawls c12 c13, in";
        assert!(line.starts_with(want), "{line}");

        let unit = "archivist-orchestrator.service";
        let mut status =
            Status { runners: vec![runner("active", unit, None)], ..Status::default() };
        assert!(!overall(&status, unit, &style).contains("Runner"));
        status.runners = vec![Runner {
            directory: Some("/srv".into()),
            ..runner("active", "archivist-run-9-0.scope", None)
        }];
        let text = overall(&status, unit, &style);
        let want = format!("Runner: active, archivist-run-9-0.scope (pid 412) in /srv {since}");
        assert!(text.contains(&want), "{text}");
    }

    #[test]
    fn the_whole_picture() {
        let starting =
            Run { status: "starting".into(), started_at: None, ..sample::run(9, "dom", "x") };
        let running = Run { status: "running".into(), ..sample::run(8, "pdf", "x") };
        let status = Status {
            version: "0.1.0".into(),
            systemd: "257".into(),
            data: "/var/lib/archivist".into(),
            line: "crawl=3q/1w snapshot=20q/8w".into(),
            crawls: Counts::from([("queued".into(), 3), ("started".into(), 1)]),
            snapshots: Counts::from([("queued".into(), 20)]),
            incomplete: 0,
            unfaithful: Unfaithful {
                pages: 7,
                newest: vec![9, 8].into_iter().map(archivist_core::model::SnapshotId).collect(),
            },
            running: vec![running, starting],
            uses: Uses { succeeded: 32, failed: 1 },
            ids: IdMarks::default(),
            blocked: Some("no room".into()),
            network_outage: None,
            network: "one for each crawl (Network=auto), Reach=public".into(),
            address_filter: Some(false),
            fleet: None,
            certificates: Vec::new(),
            deleting: 0,
            deleting_copies: 0,
            failing_removals: None,
            retention_held: None,
            undated: None,
            search: None,
            store: Some(StoreStatus {
                store: "/srv/store".into(),
                keep_local: "always".into(),
                waiting: 3,
                failed: 1,
                running: 1,
                reason: Some("s7: failed to open store '/srv/store'".into()),
                next: None,
            }),
            next: Some(Time(sample::NOW.0 + 60_000)),
            commands: Vec::new(),
            runners: vec![
                runner("active", "archivist-run-412-0badcafe.scope", None),
                runner("waiting", "", Some("in another PID namespace")),
            ],
        };
        let style = Style::plain(sample::NOW);
        let want = "\
● archivist-orchestrator.service
   Version: 0.1.0 (systemd 257)
    Status: crawl=3q/1w snapshot=20q/8w
   Blocked: nothing is started: no room
      Data: /var/lib/archivist
   Network: one for each crawl (Network=auto), Reach=public; address filters have no effect here
    Crawls: 3 queued, 1 started
     Pages: 20 queued
    Health: 96%: 1 of 33 failed
    Replay: 7 pages do not hold: s9 s8 ...; to record again: archivist retry --unfaithful 0.95
     Store: /srv/store, 3 waiting (1 failed), 1 running; s7: failed to open store '/srv/store'
      Next: Sat 2026-11-21 09:26:05 UTC; in 1min 0s
    Runner: active, archivist-run-412-0badcafe.scope (pid 412) since Sat 2026-11-21 09:24:05 UTC; 1min 0s ago
    Runner: waiting, no unit (pid 412) in another PID namespace since Sat 2026-11-21 09:24:05 UTC; 1min 0s ago
   Running: 2
            ├─ archivist-hook-pdf-s3.service 1min 0s
            └─ archivist-hook-dom-s3.service starting
";
        assert_eq!(overall(&status, "archivist-orchestrator.service", &style), want);
    }
}
