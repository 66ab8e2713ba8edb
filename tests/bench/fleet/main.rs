//! What the database of a fleet costs: clients that only claim, record and release work through a
//! long queue, next to a transaction that is held open. The floor is a plain queue with SKIP LOCKED,
//! which pgbench works through on the same server.
//!
//! In the middle of the queue, the clients work for a while as nodes do, which wait for pages, and claims
//! are measured: at full speed, they measure the length of the server's own queue.
//!
//! usage: fleet [--pages N] [--hosts N] [--clients N] [--hold SECONDS] [--paced SECONDS] [--floor SECONDS]

#[path = "../../../src/fleet/tests/server.rs"]
mod server;

use archivist_core::fleet::{
    Claim, Grant, Hello, HookResult, LeasedPage, NodeReply, NodeRequest, Pace, PageEnd, PageTimes,
    Record, Release, SCHEMA, Session,
};
use archivist_core::model::ResultState;
use archivist_fleet::connect::{Link, Secrets, Target};
use archivist_fleet::ledger::Ledger;
use archivist_fleet::schema::{MIGRATIONS, migrate};
use server::Server;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const PORT: u16 = 5433;
/// Parts of the run whose rates are compared.
const PARTS: u64 = 10;
/// Time from page to page of a client while claims are measured.
const PACE: Duration = Duration::from_millis(250);
/// Time between the change of pace and the first or after the last measured claim: until each client has
/// its new pace.
const SETTLE: Duration = Duration::from_secs(1);
/// Hosts of a claim, and pages of each, at full speed.
const CLAIM: Claim = Claim { hosts: 10, pages_per_host: 20, delay: Duration::ZERO };
/// The same while claims are measured: a node with enough hosts claims a new one for each that has no
/// more pages.
const CLAIM_OF_NODE: Claim = Claim { hosts: 2, pages_per_host: 16, delay: Duration::ZERO };

#[derive(Clone, Copy)]
struct Options {
    pages: u64,
    hosts: u64,
    clients: u64,
    hold: u64,
    paced: u64,
    floor: u64,
}

fn options() -> Options {
    let mut options =
        Options { pages: 1_000_000, hosts: 10_000, clients: 50, hold: 600, paced: 180, floor: 60 };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let number = words.next().and_then(|number| number.parse().ok());
        let number: u64 = number.unwrap_or_else(|| panic!("{word} requires a number"));
        match &*word {
            "--pages" => options.pages = number,
            "--hosts" => options.hosts = number,
            "--clients" => options.clients = number,
            "--hold" => options.hold = number,
            "--paced" => options.paced = number,
            "--floor" => options.floor = number,
            _ => panic!("unknown option '{word}'"),
        }
    }
    options
}

async fn open(server: &Server) -> Link {
    let target = Target::parse(&server.url("postgres")).unwrap();
    Link::open(&target, &Secrets::default(), "bench").await.unwrap()
}

async fn fill(server: &Server, options: &Options) {
    let mut link = open(server).await;
    migrate(&mut link, MIGRATIONS).await.unwrap();
    let Options { pages, hosts, .. } = options;
    let fill = format!(
        "SET statement_timeout = 0;
        CREATE EXTENSION pg_stat_statements;
        INSERT INTO archivist.crawl VALUES (1, 'run', 5, NULL, '{{}}', now());
        INSERT INTO archivist.host (key, ready_at, due_at)
            SELECT 'h' || g || '.example', now(), now() FROM generate_series(0, {hosts} - 1) g;
        INSERT INTO archivist.page (crawl, depth, host, url, url_key)
            SELECT 1, 0, 'h' || g % {hosts} || '.example', 'https://h' || g % {hosts} || '.example/articles/' || g,
                substr(sha256(g::text::bytea), 1, 16) FROM generate_series(1, {pages}) g;
        INSERT INTO archivist.tally VALUES (1, {pages}, {pages}, 0);
        CREATE TABLE job (id bigint PRIMARY KEY, payload text NOT NULL, state text NOT NULL DEFAULT 'queued');
        INSERT INTO job SELECT g, 'https://h.example/articles/' || g FROM generate_series(1, {pages}) g;
        CREATE INDEX job_queued ON job (id) WHERE state = 'queued';"
    );
    link.client.batch_execute(&fill).await.unwrap();
    for table in ["archivist.page", "archivist.host", "job"] {
        let analyze = format!("VACUUM ANALYZE {table}");
        link.client.batch_execute(&analyze).await.unwrap();
    }
    link.client.batch_execute("CHECKPOINT").await.unwrap();
}

fn record(page: &LeasedPage, grant: &Grant) -> NodeRequest {
    let result = |plugin: &str| HookResult {
        plugin: plugin.to_owned(),
        hook: plugin.to_owned(),
        state: ResultState::Succeeded,
        output: Some("index.html".to_owned()),
        error: None,
        size: 4096,
        attempts: 1,
        took: Some(Duration::from_millis(700)),
    };
    NodeRequest::Record(Record {
        page: page.id,
        epoch: grant.epoch,
        end: PageEnd::Sealed,
        reason: None,
        directory: None,
        results: ["wget", "title", "favicon"].map(result).into(),
        children: Vec::new(),
        times: PageTimes::default(),
    })
}

/// What clients share.
#[derive(Default)]
struct Run {
    done: AtomicU64,
    is_paced: AtomicBool,
    is_measured: AtomicBool,
}

/// Works until nothing is left; returns how long each claim took that was measured.
async fn client(number: u64, target: Target, run: Arc<Run>) -> Vec<Duration> {
    let link = Link::open(&target, &Secrets::default(), "bench").await.unwrap();
    let mut ledger = Ledger::new(link);
    let hello = Hello {
        name: format!("n{number}"),
        machine: format!("m{number}"),
        boot: "b".to_owned(),
        uptime: Duration::ZERO,
        schema: SCHEMA,
        memory: None,
        lease: None,
    };
    let session: Session = ledger.hello(&hello).await.unwrap().session;
    let mut claims = Vec::new();
    loop {
        let (began, is_measured) = (Instant::now(), run.is_measured.load(Ordering::Relaxed));
        let is_paced = run.is_paced.load(Ordering::Relaxed);
        let claim = if is_paced { CLAIM_OF_NODE } else { CLAIM };
        let reply = ledger.apply(session, &NodeRequest::Claim(claim)).await.unwrap();
        if is_measured {
            claims.push(began.elapsed());
        }
        let NodeReply::Claimed(claimed) = reply else { panic!("{reply:?}") };
        if claimed.hosts.is_empty() {
            return claims;
        }
        // As a node does when it has nothing else to do.
        ledger.sweep().await.unwrap();
        for grant in &claimed.hosts {
            for page in &grant.pages {
                ledger.apply(session, &record(page, grant)).await.unwrap();
                run.done.fetch_add(1, Ordering::Relaxed);
                if run.is_paced.load(Ordering::Relaxed) {
                    tokio::time::sleep(PACE).await;
                }
            }
            let release = Release {
                host: grant.host.clone(),
                epoch: grant.epoch,
                pace: Some(Pace::default()),
            };
            ledger.apply(session, &NodeRequest::Release(release)).await.unwrap();
        }
    }
}

/// A snapshot from before the run, which keeps all versions of rows alive.
async fn hold(server: &Server, seconds: u64) -> tokio::task::JoinHandle<()> {
    let link = open(server).await;
    let begin =
        "SET idle_in_transaction_session_timeout = 0; BEGIN ISOLATION LEVEL REPEATABLE READ;
        SELECT count(*) FROM archivist.node";
    link.client.batch_execute(begin).await.unwrap();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        link.client.batch_execute("COMMIT").await.unwrap();
    })
}

/// Pages per second of each part of the run, without the time in which it is paced.
async fn rates(options: Options, run: Arc<Run>) -> Vec<u64> {
    let mut rates = Vec::new();
    let (mut began, mut before) = (Instant::now(), 0);
    let mut look = tokio::time::interval(Duration::from_millis(100));
    while (rates.len() as u64) < PARTS {
        look.tick().await;
        let now = run.done.load(Ordering::Relaxed);
        if now < options.pages * (rates.len() as u64 + 1) / PARTS {
            continue;
        }
        rates.push(((now - before) as f64 / began.elapsed().as_secs_f64()) as u64);
        if rates.len() as u64 == PARTS / 2 {
            run.is_paced.store(true, Ordering::Relaxed);
            tokio::time::sleep(SETTLE).await;
            run.is_measured.store(true, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_secs(options.paced)).await;
            run.is_measured.store(false, Ordering::Relaxed);
            tokio::time::sleep(SETTLE).await;
            run.is_paced.store(false, Ordering::Relaxed);
        }
        (began, before) = (Instant::now(), run.done.load(Ordering::Relaxed));
    }
    rates
}

/// CPU time of the server and of its processes that ended.
fn cpu(server: &Server) -> Duration {
    let pid = std::fs::read_to_string(server.file("data/postmaster.pid")).unwrap();
    let pid = pid.lines().next().unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let after = stat.rsplit(')').next().unwrap();
    let ticks = after.split_whitespace().skip(11).take(4);
    let ticks: u64 = ticks.map(|ticks| ticks.parse::<u64>().unwrap()).sum();
    Duration::from_millis(ticks * 10)
}

fn percentile(sorted: &[Duration], percent: usize) -> f64 {
    let place = (sorted.len() * percent).div_ceil(100).max(1);
    let took = sorted.get(place - 1);
    took.map_or(0.0, |took| took.as_secs_f64() * 1000.0)
}

async fn print_counts(server: &Server, pages: u64) {
    let link = open(server).await;
    let statements = "
        SELECT coalesce(sum(calls), 0)::bigint,
            coalesce(sum(calls) FILTER (WHERE query !~ '^(BEGIN|COMMIT|START|ROLLBACK)'), 0)::bigint
        FROM pg_stat_statements WHERE query !~ '^(SET|LISTEN|SELECT pg_stat)'";
    let row = link.client.query_one(statements, &[]).await.unwrap();
    let per_page = |n: i64| n as f64 / pages as f64;
    println!(
        "statements per page: {:.2} ({:.2} without BEGIN and COMMIT)",
        per_page(row.get(0)),
        per_page(row.get(1))
    );
    let tables = "
        SELECT relname::text, n_tup_ins, n_tup_upd, n_tup_hot_upd, n_tup_del, n_dead_tup
        FROM pg_stat_user_tables WHERE schemaname = 'archivist' AND n_tup_ins + n_tup_upd > 0 ORDER BY 1";
    let mut updated = 0;
    for row in link.client.query(tables, &[]).await.unwrap() {
        let name: &str = row.get(0);
        let [inserted, changed, hot, deleted, dead] =
            [1_usize, 2, 3, 4, 5].map(|column| row.get::<_, i64>(column));
        updated += changed;
        println!(
            "  {name}: {inserted} inserted, {changed} updated ({hot} in place), {deleted} deleted, {dead} dead"
        );
    }
    println!("rows updated per page: {:.2}", per_page(updated));
}

/// Jobs per second of the plain queue.
fn floor(server: &Server, clients: u64, seconds: u64) -> f64 {
    let script = server.file("floor.sql");
    let text = "
        UPDATE job SET state = 'running' WHERE id = (
            SELECT id FROM job WHERE state = 'queued' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED
        ) RETURNING id \\gset
        UPDATE job SET state = 'done' WHERE id = :id;\n";
    std::fs::write(&script, text).unwrap();
    let bin = server::programs().unwrap().join("pgbench");
    let socket = script.parent().unwrap();
    let output = Command::new(bin)
        .args(["-n", "-M", "prepared", "-U", "postgres", "-j", "2"])
        .args(["-c", &clients.to_string(), "-T", &seconds.to_string(), "-p", &PORT.to_string()])
        .arg("-h")
        .arg(socket)
        .arg("-f")
        .arg(&script)
        .arg("postgres")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let tps =
        text.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse().ok());
    tps.unwrap_or_else(|| panic!("{text}{}", String::from_utf8_lossy(&output.stderr)))
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let options = options();
    let settings = [
        "fsync=on",
        "full_page_writes=on",
        "shared_buffers=1GB",
        "max_wal_size=4GB",
        "max_connections=200",
        "shared_preload_libraries=pg_stat_statements",
        "pg_stat_statements.track=all",
    ];
    let server = Server::alone(PORT, &settings);
    fill(&server, &options).await;
    println!("{} pages on {} hosts, {} clients", options.pages, options.hosts, options.clients);
    let reset = open(&server).await;
    reset.client.batch_execute("SELECT pg_stat_statements_reset(), pg_stat_reset()").await.unwrap();
    drop(reset);
    let holder = hold(&server, options.hold).await;
    let run = Arc::new(Run::default());
    let target = Target::parse(&server.url("postgres")).unwrap();
    let before = cpu(&server);
    let watcher = tokio::spawn(rates(options, Arc::clone(&run)));
    let clients: Vec<_> = (0..options.clients)
        .map(|number| tokio::spawn(client(number, target.clone(), Arc::clone(&run))))
        .collect();
    let mut claims = Vec::new();
    for client in clients {
        claims.extend(client.await.unwrap());
    }
    let done = run.done.load(Ordering::Relaxed);
    assert_eq!(done, options.pages, "pages that were recorded once");
    let rates = watcher.await.unwrap();
    let time: f64 = rates.iter().map(|rate| 1.0 / *rate as f64).sum();
    let rate = PARTS as f64 / time;
    println!("{rate:.0} pages per second, in tenths of the run: {rates:?}");
    claims.sort();
    println!(
        "claim of {} hosts with {} pages: median {:.1} ms, p99 {:.1} ms, {} claims",
        CLAIM_OF_NODE.hosts,
        CLAIM_OF_NODE.hosts * CLAIM_OF_NODE.pages_per_host,
        percentile(&claims, 50),
        percentile(&claims, 99),
        claims.len()
    );
    let spent = cpu(&server).saturating_sub(before);
    println!(
        "CPU time of PostgreSQL per page: {:.3} ms",
        spent.as_secs_f64() * 1000.0 / options.pages as f64
    );
    print_counts(&server, options.pages).await;
    holder.abort();
    if options.floor > 0 {
        let before = cpu(&server);
        let floor = floor(&server, options.clients, options.floor);
        let spent = cpu(&server).saturating_sub(before).as_secs_f64() * 1000.0
            / (floor * options.floor as f64);
        println!(
            "floor: {floor:.0} jobs per second, {spent:.3} ms of CPU time per job; ratio {:.2}",
            rate / floor
        );
    }
}
