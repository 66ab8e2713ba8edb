//! The borders of rooms: ARCHITECTURE.md has the table of rooms, Cargo keeps packages apart, and this test keeps
//! the rooms within a package apart.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

struct Room {
    /// Directory or file below src.
    place: &'static str,
    /// What of its own package it may import.
    may: &'static [&'static str],
    /// Words that its code never has.
    never: &'static [&'static str],
}

const PURE: &[&str] = &["std::fs", "std::env", "std::net", "std::process", "now()", "getrandom"];

/// Files and nothing else of the world: it runs when the machine has just begun to boot.
const CARRIES_FILES: &[&str] = &["std::net", "std::process::Command"];

/// Reads and writes open files, and looks for none.
const FORMATS: &[&str] = &[
    "std::env",
    "std::process",
    "std::path",
    "std::thread",
    "File::open",
    "File::create",
    "now()",
];

/// Those of [`CARRIES_FILES`], and threads.
const NO_THREAD: &[&str] = &["std::net", "std::process::Command", "std::thread"];

/// What a room may use beyond that, Cargo says: each has its own Cargo.toml. The first room that fits a file is its room.
const ROOMS: &[Room] = &[
    // Judgement and nouns: functions of their arguments.
    room("core/fleet", &["fleet", "model"], PURE),
    room("core/model", &["model", "text"], PURE),
    room("core/plan", &["model", "plan", "store", "text"], PURE),
    room("core/store", &["model", "store", "text"], PURE),
    room("core/text", &[], PURE),
    room("core/unit", &["model", "store", "text", "unit"], PURE),
    room("core", &[], PURE),
    // The edges: each knows one thing of the world outside.
    room("config/alert.rs", &[], PURE),
    room("config/declare/watch", &["alert", "declare", "ini"], PURE),
    room("config/declare/files.rs", &["declare", "fragments", "ini", "scope"], CARRIES_FILES),
    room("config/declare/url_file.rs", &[], CARRIES_FILES),
    room("config/declare", &["declare", "ini"], PURE),
    room("config", &["alert"], CARRIES_FILES),
    room("shared/archive.rs", &["installation"], &["zbus", "tokio"]),
    // Lines and names that several programs write and read.
    room("shared/archivebox.rs", &[], PURE),
    room("shared/staged.rs", &[], PURE),
    room("shared/bus/documents", &["bus::documents"], PURE),
    room("shared/bus/client.rs", &["bus", "connection", "database", "systemd"], &[]),
    room("shared/bus", &["bus", "connection"], &["org.freedesktop.systemd1.Manager"]),
    room("shared/connection.rs", &[], &["systemd1"]),
    room("shared/systemd", &["connection", "systemd"], &[]),
    room("shared/database.rs", &[], &["zbus", "tokio"]),
    room("shared/deleted.rs", &["id_marks"], &["zbus", "tokio"]),
    room("shared/disk.rs", &[], &["tokio", "std::fs"]),
    room("shared/id_marks.rs", &[], &["zbus", "tokio"]),
    room("shared/installation.rs", &["id_marks"], &["zbus", "tokio"]),
    room("shared/journal.rs", &[], &["tokio"]),
    room("shared/lib.rs", &[], PURE),
    room("shared/reader.rs", &[], &["zbus", "tokio", "std::fs"]),
    room("shared/outage.rs", &["disk"], &["zbus", "tokio"]),
    room("plugin", &["catalogue", "contract", "files", "programs", "settings"], &[]),
    room("pools/fault.rs", &[], PURE),
    room("pools/health.rs", &[], &["zbus", "tokio"]),
    room("pools", &["fault", "health"], NO_SQL_OR_BUS),
    // The only room that knows PostgreSQL.
    room("fleet/connect", &["connect"], &["archivist."]),
    room("fleet/ledger", &["connect", "ledger"], &["std::fs", "zbus"]),
    room(
        "fleet/node",
        &["connect", "ledger", "members", "node", "schema", "serve"],
        &["archivist.", "std::fs", "rustls"],
    ),
    room("fleet/serve.rs", &["connect", "schema", "view"], &["archivist.", "std::fs", "rustls"]),
    room("fleet/view", &["connect", "view"], &["std::fs", "rustls", "zbus"]),
    room(
        "fleet",
        &["connect", "ledger", "members", "node", "own_ids", "program", "schema", "serve", "view"],
        &["std::fs", "rustls", "zbus"],
    ),
    room("store", ALL, &["tokio", "zbus", "rusqlite"]),
    // It has the index and the texts, and no way out.
    room("search", ALL, &["tokio", "zbus", "rusqlite", "std::net", "std::process::Command"]),
    // Formats: open files and times come from the caller.
    room("warc", ALL, FORMATS),
    room("generator/systemd_version.rs", &[], &["std::net", "std::fs"]),
    room("generator", ALL, NO_THREAD),
    // Those that carry.
    // Rows, and the documents of lists, which are data.
    room("orchestrator/database", &["database"], ROWS),
    room("orchestrator/alert/rows.rs", &["database"], ROWS),
    room("orchestrator/alert/retention.rs", &["database"], ROWS),
    room("orchestrator/expiry/rows.rs", &["database"], ROWS),
    room("orchestrator/indexing/rows.rs", &["database"], ROWS),
    room("orchestrator/quota/rows.rs", &["database"], ROWS),
    room("orchestrator/transfer/rows.rs", &["database"], ROWS),
    room("orchestrator/verification/rows.rs", &["database"], ROWS),
    room("orchestrator/watch/rows.rs", &["alert", "database"], ROWS),
    // From the top to the ground: a room imports only what is below it. The loop knows no room above it: the
    // house is the table of all of them, and the program hands it over.
    room("orchestrator/program.rs", &["archivebox", "backup", "house", "process"], NO_SQL_OR_BUS),
    room(
        "orchestrator/process",
        &[
            "bus",
            "calls",
            "engine",
            "machine",
            "main_loop",
            "process",
            "runner",
            "service",
            "database",
            "work",
        ],
        NO_SQL_OR_BUS,
    ),
    room(
        "orchestrator/house.rs",
        &[
            "alert",
            "calls",
            "clock",
            "deletion",
            "expiry",
            "indexing",
            "kinds",
            "main_loop",
            "notices",
            "orders",
            "quota",
            "transfer",
            "units",
            "verification",
            "watch",
            "work",
        ],
        NO_SQL_BUS_OR_TOKIO,
    ),
    room(
        "orchestrator/service/connection.rs",
        &["bus", "expiry", "main_loop", "search", "transfer", "watch"],
        &["rusqlite", "org.freedesktop", "SELECT ", "crate::database"],
    ),
    room(
        "orchestrator/service",
        &[
            "bus",
            "calls",
            "deletion",
            "main_loop",
            "notices",
            "orders",
            "programs",
            "query",
            "service",
            "work",
        ],
        &["rusqlite", "org.freedesktop", "SELECT ", "crate::database"],
    ),
    room("orchestrator/bus", &["bus"], &["rusqlite", "SELECT "]),
    room(
        "orchestrator/kinds.rs",
        &[
            "alert",
            "deletion",
            "indexing",
            "search",
            "transfer",
            "units",
            "verification",
            "watch",
            "work",
        ],
        NO_SQL_BUS_OR_TOKIO,
    ),
    room(
        "orchestrator/calls",
        &[
            "bus",
            "calls",
            "database",
            "engine",
            "fleet",
            "machine",
            "main_loop",
            "notices",
            "programs",
            "query",
            "work",
        ],
        NO_SQL_BUS_OR_TOKIO,
    ),
    room(
        "orchestrator/query",
        &[
            "bus",
            "database",
            "engine",
            "machine",
            "main_loop",
            "notices",
            "programs",
            "query",
            "runner",
            "work",
        ],
        NO_SQL_BUS_OR_TOKIO,
    ),
    room(
        "orchestrator/orders",
        &["bus", "fleet", "main_loop", "notices", "orders", "database", "work"],
        NO_SQL_BUS_OR_TOKIO,
    ),
    room(
        "orchestrator/work",
        &[
            "alert",
            "bus",
            "database",
            "engine",
            "fleet",
            "machine",
            "main_loop",
            "notices",
            "programs",
            "units",
            "work",
        ],
        NO_SQL_BUS_OR_TOKIO,
    ),
    room(
        "orchestrator/watch",
        &[
            "alert",
            "bus",
            "calls",
            "database",
            "engine",
            "fleet",
            "main_loop",
            "notices",
            "units",
            "watch",
        ],
        NO_SQL_BUS_OR_TOKIO,
    ),
    room(
        "orchestrator/alert",
        &["alert", "database", "main_loop", "notices", "units"],
        NO_SQL_BUS_OR_TOKIO,
    ),
    room(
        "orchestrator/deletion.rs",
        &["bus", "main_loop", "database", "units"],
        NO_SQL_BUS_OR_TOKIO,
    ),
    room("orchestrator/clock.rs", &["main_loop"], NO_SQL_BUS_OR_TOKIO),
    room(
        "orchestrator/expiry",
        &["alert", "bus", "clock", "database", "deletion", "expiry", "main_loop"],
        NO_SQL_BUS_OR_TOKIO,
    ),
    room("orchestrator/quota", &["deletion", "main_loop", "quota"], NO_SQL_BUS_OR_TOKIO),
    room(
        "orchestrator/indexing",
        &["bus", "engine", "main_loop", "database", "units"],
        NO_SQL_BUS_OR_TOKIO,
    ),
    room(
        "orchestrator/search",
        &["bus", "engine", "indexing", "main_loop", "search", "database", "units"],
        NO_SQL_BUS_OR_TOKIO,
    ),
    room(
        "orchestrator/transfer",
        &["bus", "deletion", "main_loop", "notices", "database", "transfer", "units"],
        NO_SQL_BUS_OR_TOKIO,
    ),
    room(
        "orchestrator/verification",
        &["main_loop", "database", "notices", "units", "verification"],
        NO_SQL_BUS_OR_TOKIO,
    ),
    room(
        "orchestrator/programs",
        &["bus", "engine", "machine", "main_loop", "notices", "programs", "database"],
        NO_SQL_BUS_OR_TOKIO,
    ),
    room(
        "orchestrator/units",
        &["main_loop", "database", "units"],
        &["rusqlite", "org.freedesktop", "SELECT ", "tokio", "CrawlWorker", "SnapshotWorker"],
    ),
    room("orchestrator/fleet", &["fleet", "main_loop", "database"], NO_SQL_BUS_OR_TOKIO),
    room("orchestrator/notices", &["bus", "main_loop", "notices", "database"], NO_SQL_BUS_OR_TOKIO),
    room(
        "orchestrator/main_loop",
        &["bus", "engine", "machine", "main_loop", "database"],
        NO_SQL_OR_BUS,
    ),
    room("orchestrator/engine", &["engine", "machine", "runner", "database"], NO_SQL_OR_BUS),
    room("orchestrator/runner", &["machine", "runner"], NO_SQL_OR_BUS),
    room("orchestrator/machine", &["bus", "machine", "database"], NO_SQL_OR_BUS),
    // A database of another program, and none of ours.
    room("orchestrator/archivebox.rs", &[], &["org.freedesktop", "tokio", "zbus", "std::net"]),
    room(
        "orchestrator/backup",
        &["backup", "machine", "runner", "database"],
        &["rusqlite", "org.freedesktop", "SELECT ", "io::copy", "fs::copy"],
    ),
    room("orchestrator/main.rs", &[], NO_SQL_OR_BUS),
    room("orchestrator/lib.rs", &["process"], NO_SQL_OR_BUS),
    room("worker/sequence.rs", &[], PURE),
    room("worker", ALL, &["org.freedesktop.systemd1", "io::copy", "fs::copy"]),
    // From the ground to the top: what hooks are, documents, what a visit leaves, the browser, and the programs.
    room("hooks/process", &["process"], NO_BROWSER),
    room("hooks/certificates", &["process"], NO_BROWSER),
    room("hooks/causes.rs", &["certificates", "process"], NO_BROWSER),
    room("hooks/bodies.rs", &[], NO_BROWSER),
    room("hooks/persona.rs", &[], NO_BROWSER),
    room("hooks/picture.rs", &[], NO_BROWSER),
    room("hooks/page", &["page", "process"], NO_BROWSER),
    room("hooks/visit", &["page", "process", "visit"], NO_BROWSER),
    room("hooks/chromium/mod.rs", &[], &[]),
    room("hooks/chromium/arrival", &["chromium::arrival", "page", "process"], DECIDES),
    room("hooks/chromium/cdp", &["chromium::cdp", "process"], &[]),
    room(
        "hooks/chromium/browser",
        &[
            "certificates",
            "chromium::browser",
            "chromium::cdp",
            "page",
            "persona",
            "process",
            "visit",
        ],
        &[],
    ),
    room("hooks/chromium/consent", &["chromium::cdp", "chromium::consent", "process"], &[]),
    room(
        "hooks/chromium/reveal",
        &["chromium::cdp", "chromium::consent", "chromium::reveal", "process"],
        &[],
    ),
    room(
        "hooks/chromium/view",
        &[
            "chromium::browser",
            "chromium::cdp",
            "chromium::reveal",
            "chromium::view",
            "page",
            "picture",
            "process",
            "visit",
        ],
        &[],
    ),
    room(
        "hooks/chromium/recorder",
        &[
            "chromium::browser",
            "chromium::cdp",
            "chromium::recorder",
            "chromium::view",
            "page",
            "picture",
            "process",
            "visit",
        ],
        &[],
    ),
    room("hooks/chromium/tab", &["causes", "chromium", "page", "process", "visit"], &[]),
    room(
        "hooks/source",
        &["certificates", "chromium::view", "page", "process", "source", "visit"],
        &[],
    ),
    room("hooks/crawl", &["crawl", "page", "persona", "process", "source"], NO_BROWSER),
    room("hooks/standalone", &["page", "standalone"], NO_BROWSER),
    room("hooks/replay", &["chromium", "picture", "process", "replay", "visit"], &[]),
    room(
        "hooks/programs",
        &[
            "bodies",
            "certificates",
            "chromium",
            "crawl",
            "page",
            "picture",
            "process",
            "programs",
            "replay",
            "source",
            "standalone",
            "visit",
        ],
        &[],
    ),
    room("hooks/trial", &["trial"], NO_BROWSER),
    room("hooks/trial.rs", &["chromium::recorder", "process", "visit"], &[]),
    room("hooks/lib.rs", ALL, &[]),
    // A pipe in memory for h2, and no runtime.
    room(
        "checks/http/http2.rs",
        ALL,
        &["tokio::net", "tokio::runtime", "tokio::spawn", "tokio::time"],
    ),
    room("checks", ALL, &["tokio"]),
    // From the top to the ground: the verbs, what they share, what they print with, and how they reach the orchestrator.
    room("cli/main.rs", &[], &[]),
    room("cli/lib.rs", &["client", "hint", "verb"], &[]),
    room("cli/verb/mod.rs", &["client::exit"], &[]),
    room("cli/verb/import", OF_VERBS, COPIES_FILES),
    room("cli/verb/run", OF_VERBS, COPIES_FILES),
    room("cli/verb", OF_VERBS, &[]),
    room("cli/hint.rs", &[], PURE),
    room("cli/manual", &["manual"], &["tokio", "zbus"]),
    room(
        "cli/staging",
        &["client", "display", "machine", "progress", "queue", "staging", "survey"],
        COPIES_FILES,
    ),
    room("cli/replay", &["client", "display", "machine", "recording", "replay", "survey"], &[]),
    room("cli/survey", &["client", "display", "queue", "recording", "survey"], &[]),
    room("cli/programs", &["client", "display", "programs", "progress"], &[]),
    room("cli/recording", &["client", "recording"], &[]),
    room("cli/machine", &["client", "display", "machine"], &[]),
    room("cli/progress", &["client", "display", "progress"], &[]),
    room("cli/queue", &["client", "display", "queue"], &[]),
    room("cli/display", &["client::exit", "client::hint", "client::server", "display"], &["zbus"]),
    room("cli/client", &["client"], &[]),
    // Every hook pays for its start.
    room("hook-exec", &[], &["archivist_", "serde"]),
];

/// What a verb may import: what verbs share, and of verbs itself, see `no_verb_names_another`.
const OF_VERBS: &[&str] = &[
    "client",
    "display",
    "machine",
    "manual",
    "programs",
    "progress",
    "queue",
    "recording",
    "replay",
    "staging",
    "survey",
    "verb",
];

/// Copies of files share blocks with these, which is up to one function of `plugin/files`.
const COPIES_FILES: &[&str] = &["io::copy", "fs::copy"];

/// Those of [`PURE`]; it has a clock of its own, whose time comes with events.
const DECIDES: &[&str] =
    &["std::fs", "std::env", "std::net", "std::process", "Instant::now()", "getrandom", "tokio"];

/// The client of the browser, which those below it never name.
const NO_BROWSER: &[&str] = &["chromium::", "Page.enable"];

/// Everything of its own package.
const ALL: &[&str] = &[""];

/// What rows are read and written without.
const ROWS: &[&str] = &["zbus", "tokio", "archivist_config", "archivist_shared::systemd"];

/// Words of the database and of the names of systemd on the bus, which a room reaches through
/// others.
const NO_SQL_OR_BUS: &[&str] = &["rusqlite", "org.freedesktop", "SELECT "];

/// Those of [`NO_SQL_OR_BUS`], and tasks of the runtime.
const NO_SQL_BUS_OR_TOKIO: &[&str] = &["rusqlite", "org.freedesktop", "SELECT ", "tokio"];

const fn room(
    place: &'static str,
    may: &'static [&'static str],
    never: &'static [&'static str],
) -> Room {
    Room { place, may, never }
}

fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            found.push(path);
        }
    }
}

/// All files of src, by their path below it, in order.
fn sources() -> Vec<(String, String)> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    files(&src, &mut found);
    found.sort();
    let name = |path: &Path| path.strip_prefix(&src).unwrap().to_str().unwrap().to_owned();
    let read = |path: PathBuf| (name(&path), std::fs::read_to_string(&path).unwrap());
    found.into_iter().map(read).collect()
}

/// Tests may reach further than what they test.
fn is_test(file: &str) -> bool {
    let names = ["tests.rs", "sample.rs", "bed.rs", "hostile.rs"];
    file.contains("/tests/") || names.iter().any(|name| file.ends_with(name))
}

/// The code of a file: without comments, and without its tests, which are its end.
fn code(text: &str) -> String {
    let text = match text.find("#[cfg(test)]\nmod tests {") {
        Some(end) => &text[..end],
        None => text,
    };
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// The modules of its own package that the code of a file names, as `room::module`.
fn imports(file: &str, code: &str) -> BTreeSet<String> {
    let word = |c: char| c.is_ascii_lowercase() || c == '_';
    let head = |text: &str| -> String { text.chars().take_while(|c| word(*c)).collect() };
    let mut found = BTreeSet::new();
    let mut add = |base: &[&str], rest: &str| {
        let room = head(rest);
        let module = rest[room.len()..].strip_prefix("::").map(head).unwrap_or_default();
        let names = base.iter().copied().chain([&*room, &*module]);
        let names: Vec<&str> = names.filter(|name| !name.is_empty()).take(2).collect();
        found.insert(names.join("::"));
    };
    for (at, _) in code.match_indices("crate::") {
        add(&[], &code[at + "crate::".len()..]);
    }
    // `super` of a file is its directory, which is in its room.
    let own: Vec<&str> = file.split('/').collect();
    let directory = &own[1..own.len() - 1];
    let is_root = own.last().is_some_and(|name| *name == "mod.rs");
    for (at, _) in code.match_indices("super::") {
        let mut rest = &code[at + "super::".len()..];
        let mut base = if is_root { &directory[..directory.len() - 1] } else { directory };
        while let Some(further) = rest.strip_prefix("super::") {
            rest = further;
            base = &base[..base.len().saturating_sub(1)];
        }
        // Of `super::super`, the second is part of the first.
        if base.len() < directory.len() && !code[..at].ends_with("super::") {
            add(base, rest);
        }
    }
    found
}

fn is_allowed(room: &Room, import: &str) -> bool {
    let within = |allowed: &str| {
        import
            .strip_prefix(allowed)
            .is_some_and(|rest| allowed.is_empty() || rest.is_empty() || rest.starts_with("::"))
    };
    room.may.iter().any(|allowed| within(allowed))
}

fn breaches(file: &str, text: &str) -> Vec<String> {
    let fits = |room: &&Room| {
        file == room.place
            || file.strip_prefix(room.place).is_some_and(|rest| rest.starts_with('/'))
    };
    let Some(room) = ROOMS.iter().find(fits) else {
        return vec![format!("src/{file} is in no room: add it to the table")];
    };
    let code = code(text);
    let foreign = imports(file, &code).into_iter().filter(|import| !is_allowed(room, import));
    let mut found: Vec<String> =
        foreign.map(|import| format!("src/{file} imports crate::{import}")).collect();
    let named = room.never.iter().filter(|word| code.contains(**word));
    found.extend(named.map(|word| format!("src/{file} mentions '{word}'")));
    found
}

/// The packages that a member of the workspace is linked from, itself included.
fn linked(package: &str) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--offline", "--edges", "normal"])
        .args(["--prefix", "none", "--format", "{p}", "--package", package])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo tree: {errors}");
    let text = String::from_utf8(output.stdout).unwrap();
    let names = text.lines().filter_map(|line| line.split(' ').next());
    names.map(str::to_owned).collect()
}

fn assert_links_none_of(package: &str, forbidden: &[&str]) {
    let linked = linked(package);
    assert!(linked.contains(package), "{package}: {linked:?}");
    let found: Vec<_> = forbidden.iter().filter(|name| linked.contains(**name)).collect();
    assert!(found.is_empty(), "{package} links {found:?}");
}

/// No TLS, HTTP, HTML, XML or command-line crate: uid 0 runs no code that it does not need.
#[test]
fn the_orchestrator_links_only_what_it_needs() {
    let forbidden =
        ["clap", "flate2", "html5ever", "quick-xml", "ring", "rustls", "scraper", "x509-cert"];
    assert_links_none_of("archivist-orchestrator", &forbidden);
}

#[test]
fn core_links_nothing_that_does_io() {
    assert_links_none_of("archivist-core", &["nix", "rusqlite", "tokio", "zbus"]);
}

#[test]
fn only_the_orchestrator_links_the_database() {
    for package in ["archivist", "archivist-generator", "archivist-worker"] {
        assert_links_none_of(package, &["rusqlite"]);
    }
}

/// Processes that are uid 0, and those that read hostile pages, never speak to the database of a fleet.
#[test]
fn only_the_fleet_links_the_client_of_postgresql() {
    for package in ["archivist", "archivist-orchestrator", "archivist-worker"] {
        assert_links_none_of(package, &["tokio-postgres"]);
    }
    assert_links_none_of("archivist-fleet", &["clap", "rusqlite", "scraper"]);
}

/// The code of the engine is in its own program alone.
#[test]
fn only_the_search_links_the_engine() {
    for package in ["archivist", "archivist-orchestrator", "archivist-worker", "archivist-store"] {
        assert_links_none_of(package, &["archivist-search", "tantivy"]);
    }
    assert_links_none_of("archivist-search", &["rusqlite", "tokio", "zbus"]);
}

/// Programs that read hostile pages or are uid 0 have no code of transfers, which have the keys of the store.
#[test]
fn only_transfers_link_archives() {
    for package in ["archivist", "archivist-orchestrator", "archivist-worker"] {
        assert_links_none_of(package, &["archivist-store", "tar"]);
    }
    assert_links_none_of("archivist-store", &["rusqlite", "tokio", "zbus"]);
}

/// PID 1 runs it as root at boot and at each reload, and waits for it.
#[test]
fn the_generator_links_neither_bus_nor_runtime() {
    let forbidden = ["archivist-shared", "clap", "rustls", "tokio", "tracing", "zbus"];
    assert_links_none_of("archivist-generator", &forbidden);
}

#[test]
fn the_launcher_links_almost_nothing() {
    assert_links_none_of("archivist-hook-exec", &["serde", "tokio", "zbus"]);
}

/// The lines of a file that format a value in Rust's own notation.
fn debug_output(file: &str, text: &str) -> Vec<String> {
    let code = code(text);
    let lines = code.lines().filter(|line| line.contains(":?}") || line.contains(":#?}"));
    lines.map(|line| format!("{file}: {line}")).collect()
}

/// No person should have to read Rust's notation, and names of types and fields are no text.
#[test]
fn no_message_is_debug_output() {
    let sources = sources();
    let files = sources.iter().filter(|(file, _)| !is_test(file));
    let found: Vec<String> = files.flat_map(|(file, text)| debug_output(file, text)).collect();
    assert!(found.is_empty(), "\n{}", found.join("\n"));
    for line in ["{what:?}", "{:?}", "{:#?}"] {
        let line = format!("    tracing::warn!(\"{line}\", x);");
        assert_eq!(debug_output("x.rs", &line).len(), 1, "{line}");
    }
}

/// What is renamed here is a directory, a link, a file that another program wrote, or for the reason that the
/// file gives. Whole files are written by `plugin/files/whole.rs` alone.
const RENAMES: [&str; 15] = [
    "cli/staging/recording.rs",
    "cli/verb/export.rs",
    "cli/verb/persona/import.rs",
    "cli/verb/plugins/abx.rs",
    "hooks/crawl/housekeeping.rs",
    "hooks/programs/wget/copy.rs",
    "hooks/programs/wget/names.rs",
    "hooks/visit/mod.rs",
    "orchestrator/backup/place.rs",
    "orchestrator/backup/take.rs",
    "orchestrator/engine/directories.rs",
    "search/index.rs",
    "worker/delete.rs",
    "worker/files/identity.rs",
    "worker/visit.rs",
];

#[test]
fn whole_files_are_written_in_one_place() {
    let of_programs = sources().into_iter().filter(|(file, _)| !is_test(file));
    let renaming = of_programs.filter(|(_, text)| code(text).contains("fs::rename("));
    let renaming = Vec::from_iter(renaming.map(|(file, _)| file));
    assert_eq!(renaming, RENAMES);
}

#[test]
fn every_file_keeps_to_its_room() {
    let sources = sources();
    let files = sources.iter().filter(|(file, _)| !is_test(file));
    let found: Vec<String> = files.flat_map(|(file, text)| breaches(file, text)).collect();
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

/// What verbs share is in rooms below them, so that a change of a verb changes no other verb.
fn named_verbs(file: &str, text: &str) -> Vec<String> {
    let Some(path) = file.strip_prefix("cli/verb/").filter(|path| *path != "mod.rs") else {
        return Vec::new();
    };
    let code = code(text);
    let (own, is_folder) = path.split_once('/').map_or((path, false), |(own, _)| (own, true));
    let own = format!("verb::{}", own.trim_end_matches(".rs"));
    let is_verb = |import: &String| import.split("::").next() == Some("verb") && *import != own;
    let mut found: Vec<String> = imports(file, &code).into_iter().filter(is_verb).collect();
    // The room of all verbs.
    found.extend((!is_folder && code.contains("super::")).then(|| "verb".to_owned()));
    found.into_iter().map(|import| format!("src/{file} imports crate::{import}")).collect()
}

#[test]
fn no_verb_names_another() {
    let sources = sources();
    let files = sources.iter().filter(|(file, _)| !is_test(file));
    let found: Vec<String> = files.flat_map(|(file, text)| named_verbs(file, text)).collect();
    assert!(found.is_empty(), "\n{}", found.join("\n"));
    let seen = |file, text| !named_verbs(file, text).is_empty();
    assert!(seen("cli/verb/status.rs", "use crate::verb::show;"));
    assert!(seen("cli/verb/status.rs", "use super::show;"));
    assert!(seen("cli/verb/doctor/service.rs", "use crate::verb::{fsck, doctor};"));
    assert!(seen("cli/verb/doctor/service.rs", "super::super::fsck::unknown_pages()"));
    assert!(!seen("cli/verb/doctor/service.rs", "use super::Check;"));
    assert!(!seen("cli/verb/doctor/service.rs", "use crate::verb::doctor::Check;"));
}

/// The features of the package of the orchestrator, with the rooms that a build without each lacks.
const OPTIONAL: [(&str, &[&str]); 6] = [
    ("quota", &["quota"]),
    ("retention", &["expiry"]),
    ("search", &["indexing", "search"]),
    ("store", &["transfer"]),
    ("verification", &["verification"]),
    ("watches", &["watch"]),
];

/// The tables that name these rooms.
const TABLES: [&str; 5] =
    ["house.rs", "kinds.rs", "lib.rs", "service/connection.rs", "tests/features.rs"];

/// The optional rooms that a file of the orchestrator names, which is neither in them nor a table. Tests may name all
/// but watches.
fn optional_rooms(file: &str, text: &str) -> Vec<String> {
    let name = file.strip_prefix("orchestrator/").filter(|name| !TABLES.contains(name));
    let room = name.and_then(|name| name.split(['/', '.']).next()).unwrap_or_default();
    let mut found = Vec::new();
    for import in imports(file, text) {
        let named = import.split("::").next().unwrap_or_default();
        let others = OPTIONAL.iter().filter(|(_, rooms)| name.is_some() && !rooms.contains(&room));
        let mut features = others.filter(|(_, rooms)| rooms.contains(&named));
        let feature = features.next().filter(|(of, _)| *of == "watches" || !is_test(file));
        found.extend(feature.map(|(of, _)| format!("src/{file} names crate::{named} ({of})")));
    }
    found
}

#[test]
fn optional_rooms_are_named_in_tables_alone() {
    let sources = sources();
    let found = sources.iter().flat_map(|(file, text)| {
        let text = if is_test(file) { text.clone() } else { code(text) };
        optional_rooms(file, &text)
    });
    let found: Vec<String> = found.collect();
    assert!(found.is_empty(), "\n{}", found.join("\n"));
    let seen = |file, text| !optional_rooms(file, text).is_empty();
    assert!(seen("orchestrator/work/x.rs", "use crate::watch;"));
    assert!(seen("orchestrator/search/x.rs", "crate::transfer::queue_copy(turn)"));
    assert!(seen("orchestrator/tests/x.rs", "use crate::watch::orders::WatchCall;"));
    assert!(!seen("orchestrator/house.rs", "use crate::watch;"));
    assert!(!seen("orchestrator/search/x.rs", "use crate::indexing;"));
    assert!(!seen("orchestrator/tests/x.rs", "use crate::expiry::RetentionCall;"));
}

/// Looking for files, and reading them.
const FILES: &[&str] = &[
    "std::fs",
    "fs::",
    "File::",
    ".exists()",
    ".is_dir()",
    ".is_file()",
    ".metadata()",
    ".symlink_metadata()",
    "metadata(",
    "symlink_metadata(",
    ".read_dir(",
    "read_dir(",
    ".read_link(",
    "read_link(",
    ".canonicalize(",
    "canonicalize(",
    "std::env",
    "/proc/",
    "statvfs",
    "User::from_",
    "getgrouplist",
];

/// Functions that look for files or read them, by the names that callers use.
const FILE_READERS: &[&str] = &[
    "path_lookup(",
    "inspect::",
    "stamp(",
    "id_marks::",
    "directories::",
    "persona_files::",
    "private_file::",
    "input_files::write",
    "input_files::remove",
    "MachineAddresses::read",
    "network::lack",
    "missing_device(",
    "files::read",
    "files::is_removed",
    "WatchRequest::read",
    "config::load",
    "Catalogue::load",
    "me.locks",
    "measured(&hooks",
    "machine.look(",
];

/// The parts of the orchestrator that read and write files, outside transactions. The database opens
/// its database, and its transactions are those of SQLite.
const FILE_ROOMS: [&str; 26] = [
    "bus/list.rs",
    "service/node.rs",
    "archivebox.rs",
    "backup/",
    "main.rs",
    "process/database_check.rs",
    "engine/fact_reader.rs",
    "engine/input_files.rs",
    "main_loop/measure.rs",
    "main_loop/perform.rs",
    "process/setup.rs",
    "program.rs",
    "machine/clock.rs",
    "machine/inspect.rs",
    "search/files.rs",
    "transfer/files.rs",
    "verification/files.rs",
    "runner/",
    "database/",
    "watch/declared.rs",
    "watch/files.rs",
    "machine/private_file.rs",
    "engine/directories.rs",
    "engine/persona_files.rs",
    "machine/pressure.rs",
    "engine/way_out.rs",
];

/// Whether code names this; a name that begins with a letter neither as a method nor as the end of
/// another name.
fn names(code: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "._".contains(c);
    let is_method = name.starts_with(['.', '/']);
    code.match_indices(name).any(|(at, _)| is_method || !code[..at].ends_with(is_part))
}

/// The `impl` blocks of a type in code as rustfmt writes it.
fn blocks<'a>(code: &'a str, of: &str) -> Vec<&'a str> {
    let parts = code.split("\nimpl ").skip(1);
    let parts = parts.filter(|part| part.starts_with(of));
    parts.map(|part| &part[..part.find("\n}").unwrap_or(part.len())]).collect()
}

/// The functions over a turn in code as rustfmt writes it, and the methods of one.
fn functions_of_turns(code: &str) -> Vec<&str> {
    let ends = code.match_indices("\n}").map(|(at, _)| at);
    let mut begin = 0;
    let parts = ends.map(|end| &code[std::mem::replace(&mut begin, end)..end]);
    let of_turn = |part: &&str| {
        let head = part.split('{').next().unwrap_or_default();
        head.contains("Turn<'") && (head.contains("fn ") || head.contains("impl Turn<"))
    };
    parts.filter(of_turn).collect()
}

/// Removes what happens after the commit: the closures of `turn.log(…)`, and jobs of threads.
fn without_later_deeds(code: &str) -> String {
    let code = code.replace("FileAction::Run(Box::new(move |scope|", ".log(move ||");
    let mut parts = code.split(".log(move ||");
    let mut left = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut depth = 1;
        let end = part.find(|c| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            depth == 0
        });
        left.push_str(&part[end.unwrap_or(part.len())..]);
    }
    left
}

/// What a file of the orchestrator does within a transaction and must not do: a turn neither logs nor
/// looks for files, and neither does the engine that it asks. Log entries are actions, and what files
/// say comes in events and in `Facts`.
fn deeds_in_turns(file: &str, text: &str) -> Vec<String> {
    let Some(name) = file.strip_prefix("orchestrator/") else {
        return Vec::new();
    };
    let code = code(text);
    let mut found = Vec::new();
    let mut seek = |part: &str, words: &[&str]| {
        let named = words.iter().filter(|word| names(part, word));
        found.extend(named.map(|word| format!("src/{file} mentions '{word}'")));
    };
    if !FILE_ROOMS.iter().any(|room| name.starts_with(room)) {
        seek(&code, FILES);
    }
    for turn in functions_of_turns(&code) {
        let turn = without_later_deeds(turn);
        seek(&turn, &["tracing::"]);
        seek(&turn, FILES);
        seek(&turn, FILE_READERS);
    }
    if name != "engine/fact_reader.rs" {
        for engine in blocks(&code, "Engine {") {
            seek(engine, FILES);
            seek(engine, FILE_READERS);
        }
    }
    found
}

#[test]
fn a_turn_neither_logs_nor_reads_files() {
    let sources = sources();
    let files = sources.iter().filter(|(file, _)| !is_test(file));
    let found: Vec<String> = files.flat_map(|(file, text)| deeds_in_turns(file, text)).collect();
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn file_access_of_a_turn_is_seen() {
    let seen = |file: &str, code: &str| !deeds_in_turns(file, code).is_empty();
    for deed in [
        "path.exists()",
        "tracing::info!(\"done\")",
        "binary::path_lookup(\"\", name)",
        "std::fs::read(path)",
    ] {
        let method = format!("use x;\n\nimpl Turn<'_> {{\n    {deed};\n}}\n");
        let function = format!("use x;\n\nfn f(turn: &mut Turn<'_>) {{\n    {deed};\n}}\n");
        for turn in [method, function] {
            assert!(seen("orchestrator/work/x.rs", &turn), "{deed}");
            assert!(seen("orchestrator/runner/x.rs", &turn), "{deed}");
        }
    }
    let engine = "use x;\n\nimpl Engine {\n    stamp.is_some_and(|_| stamp(path));\n}\n";
    assert!(seen("orchestrator/programs/x.rs", engine));
    assert!(!seen("orchestrator/engine/fact_reader.rs", engine));
    assert!(seen("orchestrator/work/x.rs", "fn f() { path.is_dir() }"));
    assert!(!seen("orchestrator/database/x.rs", "fn f() { path.is_dir() }"));
    let entry = "turn.log(move || tracing::info!(\"done (now)\"));";
    let turn = |lines: &str| format!("use x;\n\nfn f(turn: &mut Turn<'_>) {{\n    {lines}\n}}\n");
    assert!(!seen("orchestrator/work/x.rs", &turn(entry)));
    assert!(seen("orchestrator/work/x.rs", &turn(&format!("{entry} tracing::info!(\"done\");"))));
    let after = "use x;\n\nfn g(turn: &Turn<'_>) {\n    run()\n}\n\nfn f() { stamp(path) }\n";
    assert!(!seen("orchestrator/work/x.rs", after));
}

/// In these packages, a name is that of one type; in the others, some names are those of two.
#[test]
fn no_two_types_of_a_package_have_one_name() {
    let of_one_name = ["config/", "generator/", "hook-exec/", "orchestrator/", "store/", "worker/"];
    let mut found: BTreeMap<(&str, String), Vec<String>> = BTreeMap::new();
    let sources = sources();
    for (file, text) in sources.iter().filter(|(file, _)| !is_test(file)) {
        let Some(package) = of_one_name.iter().find(|package| file.starts_with(**package)) else {
            continue;
        };
        for line in code(text).lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let kind = words.iter().position(|word| matches!(*word, "struct" | "enum" | "trait"));
            let Some(name) = kind.filter(|at| *at < 2).and_then(|at| words.get(at + 1)) else {
                continue;
            };
            let name: String = name.chars().take_while(|c| c.is_alphanumeric()).collect();
            found.entry((package, name)).or_default().push(file.clone());
        }
    }
    found.retain(|_, files| files.len() > 1);
    assert!(found.is_empty(), "{found:#?}");
}

/// What the map shows is there: `name()`, `Type::name` and the files of its table.
#[test]
fn the_map_is_true() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let map = std::fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let code: String = sources().into_iter().map(|(_, text)| text).collect();
    let plain = |c: char| c.is_ascii_alphanumeric() || "_:".contains(c);
    let mut missing = Vec::new();
    for quoted in map.split('`').skip(1).step_by(2) {
        let name = quoted.trim_end_matches("()");
        let last = name.rsplit("::").next().unwrap();
        if !name.chars().all(plain) || !(quoted.ends_with("()") || name.contains("::")) {
            continue;
        }
        let words = code.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        if !words.into_iter().any(|word| word == last) {
            missing.push(quoted);
        }
    }
    assert!(missing.is_empty(), "ARCHITECTURE.md: {missing:?}");
}

/// The folders of src whose packages the manifest names under `[dependencies]`, in order.
fn uses(manifest: &str) -> Vec<&str> {
    let after = |text| str::split_once(text, "\n[dependencies]\n");
    let section = after(manifest).map_or("", |(_, rest)| rest);
    let section = section.split("\n[").next().unwrap();
    let names = section.lines().filter_map(|line| line.strip_prefix("archivist-"));
    names.filter_map(|name| name.split(['.', ' ']).next()).collect()
}

/// A part of ARCHITECTURE.md, up to the next heading.
fn part_of_the_map(heading: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let map = std::fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let (_, part) = map.split_once(&format!("\n## {heading}\n")).unwrap();
    part.split("\n## ").next().unwrap().to_owned()
}

/// The cells of each row of the tables in a part of a document.
fn rows(part: &str) -> Vec<Vec<&str>> {
    let rows = part.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| row.split(" | ").collect()).collect()
}

/// The words in backquotes.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// Directories in which root runs what it finds: systemd.generator(7), systemd.environment-generator(7),
/// systemd-suspend.service(8), systemd-shutdown(8), cron(8), udev(7), apt.conf(5) and others.
const ROOT_RUNS: [&str; 12] = [
    "system-generators/",
    "system-environment-generators/",
    "system-shutdown/",
    "system-sleep/",
    "etc/cron",
    "etc/init.d/",
    "udev/rules.d/",
    "apt.conf.d/",
    "dispatcher.d/",
    "if-up.d/",
    "logrotate.d/",
    "sudoers.d/",
];

/// The units and files of the packages that run programs as root, with these programs. `units` are the names
/// and texts of unit files and drop-ins, `installed` the paths of other files.
fn roots(units: &[(String, String)], installed: &[String]) -> BTreeSet<(String, String)> {
    let values = |text: &str, key: &str| -> Vec<String> {
        let values = text.lines().filter_map(|line| line.split_once('='));
        let values = values.filter(|(name, _)| name.starts_with(key));
        values.map(|(_, value)| value.to_owned()).collect()
    };
    let mut found = BTreeSet::new();
    for (name, text) in units {
        let has_user =
            values(text, "User").iter().any(|user| !["", "root", "0"].contains(&user.as_str()))
                || text.contains("\nDynamicUser=yes\n");
        for line in values(text, "Exec") {
            let program = line.trim_start_matches(|c| "@-:+!|".contains(c));
            let prefix = &line[..line.len() - program.len()];
            let program = program.split_whitespace().next().unwrap_or_default();
            // What is never started: systemd starts the service of the bus, and runs the units of hooks.
            if program != "/bin/false" && (!has_user || prefix.contains(['+', '!'])) {
                found.insert((name.clone(), program.to_owned()));
            }
        }
    }
    for path in installed {
        if ROOT_RUNS.iter().any(|directory| path.contains(directory)) {
            let name = path.rsplit('/').next().unwrap_or_default();
            found.insert((name.to_owned(), format!("/{path}")));
        }
    }
    found
}

/// The files of the packages archivist and archivist-fleet, laid out as on the disk.
const TREES: [&str; 2] = ["packaging/tree", "packaging/tree-fleet"];

/// The units of the system manager, the drop-ins of transient units, and the services of the system bus,
/// each with its name and text.
fn system_units() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let services = TREES.map(|tree| root.join(tree).join("usr/share/dbus-1/system-services"));
    let services = services.into_iter().filter(|dir| dir.is_dir());
    let directories = services.chain([root.join("units/system")]);
    let mut found = Vec::new();
    for entry in directories.flat_map(|dir| std::fs::read_dir(dir).unwrap()) {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let text = if path.is_dir() {
            let parts = std::fs::read_dir(&path).unwrap();
            let parts = parts.map(|part| std::fs::read_to_string(part.unwrap().path()).unwrap());
            parts.collect()
        } else {
            std::fs::read_to_string(&path).unwrap()
        };
        found.push((name, text));
    }
    found
}

/// What the Debian packages install by name, and the files of their trees.
fn installed_files() -> Vec<String> {
    fn walk(directory: &Path, root: &Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, root, found);
            } else {
                let path = path.strip_prefix(root).unwrap();
                found.push(path.to_str().unwrap().to_owned());
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for tree in TREES.map(|tree| root.join(tree)) {
        walk(&tree, &tree, &mut found);
    }
    for entry in std::fs::read_dir(root.join("debian")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if name == "rules" || name.ends_with(".install") || name.ends_with(".links") {
            let text = std::fs::read_to_string(&path).unwrap();
            let words = text.split_whitespace();
            let words = words.map(|word| word.trim_start_matches("$(STAGE)/"));
            found.extend(words.map(|word| word.trim_start_matches("debian/$(FLEET)/").to_owned()));
        }
    }
    found
}

/// No unit, link or script of the packages runs as root unless ARCHITECTURE.md says why.
#[test]
fn the_table_of_root_processes_is_complete() {
    let part = part_of_the_map("What runs as root");
    let listed: BTreeSet<(String, String)> = rows(&part)
        .iter()
        .filter(|row| row.len() == 4)
        .flat_map(|row| {
            let programs = quoted(row[1]);
            quoted(row[0]).into_iter().flat_map(move |process| {
                let of_process = |program: &&str| (process.to_owned(), (*program).to_owned());
                programs.iter().map(of_process).collect::<Vec<_>>()
            })
        })
        .collect();
    let found = roots(&system_units(), &installed_files());
    let unlisted: Vec<_> = found.difference(&listed).collect();
    assert!(unlisted.is_empty(), "not in ARCHITECTURE.md: {unlisted:?}");
    let gone: Vec<_> = listed.difference(&found).collect();
    assert!(gone.is_empty(), "in ARCHITECTURE.md alone: {gone:?}");
}

/// The orchestrator sets User= of hooks of crawls; all other transient units get it from a drop-in here.
#[test]
fn transient_units_have_a_user() {
    let units = system_units();
    let drop_ins = |name: &str| name.ends_with("-.service.d");
    let prefix = |name: &str| name.trim_end_matches(".service.d").to_owned();
    let with_user: Vec<String> = units
        .iter()
        .filter(|(name, text)| drop_ins(name) && text.contains("\nUser="))
        .map(|(name, _)| prefix(name))
        .collect();
    let without = units.iter().map(|(name, _)| name).filter(|name| {
        drop_ins(name) && !with_user.iter().any(|user| prefix(name).starts_with(user))
    });
    let without: Vec<_> = without.filter(|name| !name.starts_with("archivist-hook-")).collect();
    assert!(without.is_empty(), "{without:?}");
}

/// The numbers of crates are those of Cargo.
#[test]
fn programs_of_root_link_what_the_map_says() {
    let part = part_of_the_map("What runs as root");
    let programs: Vec<_> = rows(&part).into_iter().filter(|row| row.len() == 3).collect();
    assert!(!programs.is_empty());
    for row in programs {
        let program = quoted(row[0])[0];
        let count = linked(program).len();
        assert_eq!(row[1], count.to_string(), "crates of {program}");
    }
}

const FOREIGN: &str = "Who reads foreign bytes";

/// Names of parsers of foreign bytes, as verbs call them.
const PARSERS: &[&str] = &[
    "Wacz::",
    "Merge::",
    "PackedFiles::",
    "saved::read",
    "listing::read",
    "List::read",
    "Picture::decode",
    "Evidence::read",
    "check_with",
    "bodies::open",
    "TextDiff",
];

/// The cells of the table in a part of the map with so many columns.
fn rows_of(part: &str, columns: usize) -> impl Iterator<Item = Vec<&str>> {
    let rows = rows(part).into_iter();
    rows.filter(move |row| row.len() == columns)
}

/// Each unit that may read foreign bytes is in the table, with the user and the network that its files say.
#[test]
fn the_table_of_readers_of_foreign_bytes_is_complete() {
    let part = part_of_the_map(FOREIGN);
    let units = system_units();
    // "archivist-x-" is the drop-ins of all units with this start.
    let file_of = |name: &str| {
        if name.ends_with(".service") { name.to_owned() } else { format!("{name}.service.d") }
    };
    let mut listed = BTreeSet::new();
    for row in rows_of(&part, 6) {
        for name in quoted(row[0]) {
            let file = file_of(name);
            let found = units.iter().find(|(known, _)| *known == file);
            let (_, text) = found.unwrap_or_else(|| panic!("there is no {file}"));
            let sets = |line: &str| text.lines().any(|known| known == line);
            match quoted(row[2])[..] {
                [user] => assert!(sets(&format!("User={user}")), "user of {name}"),
                _ => assert!(!text.contains("\nUser="), "user of {name}"),
            }
            assert_eq!(row[3] == "none", sets("PrivateNetwork=yes"), "network of {name}");
            let may_gain = row[4].contains("may gain");
            assert_eq!(!may_gain, sets("NoNewPrivileges=yes"), "rights of {name}");
            if row[4] == "none" {
                assert!(sets("TemporaryFileSystem=/var/lib:ro"), "files of {name}");
            }
            listed.insert(file);
        }
        let test = quoted(row[5])[0];
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(test);
        assert!(path.is_file(), "{test}");
    }
    let others = part.split("\nThe other units ").nth(1).unwrap_or_default();
    let others = others.split("\n\n").next().unwrap_or_default();
    listed.extend(quoted(others).into_iter().map(str::to_owned));
    let is_service = |name: &str| name.ends_with(".service") || name.ends_with(".service.d");
    let unlisted: Vec<&String> = units
        .iter()
        .map(|(name, _)| name)
        .filter(|name| is_service(name) && name.starts_with("archivist-"))
        // Drop-ins of one plugin or check add to those of all.
        .filter(|name| {
            let start = name.trim_end_matches(".service.d");
            !listed.contains(*name)
                && !["archivist-hook-", "archivist-check-"]
                    .iter()
                    .any(|of_all| start.len() > of_all.len() && start.starts_with(of_all))
        })
        .collect();
    assert!(unlisted.is_empty(), "not in ARCHITECTURE.md: {unlisted:?}");
}

/// Each verb reads foreign bytes in the sandbox that the table names, or calls no parser.
#[test]
fn each_verb_says_what_foreign_bytes_it_reads() {
    let part = part_of_the_map(FOREIGN);
    let reading: Vec<&str> = rows_of(&part, 3).flat_map(|row| quoted(row[0])).collect();
    let others = part.split("\nThe other verbs ").nth(1).unwrap_or_default();
    let not_reading: Vec<&str> = quoted(others);
    let mut listed: Vec<String> =
        [&reading[..], &not_reading].concat().into_iter().map(str::to_owned).collect();
    let text =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cli/verb/mod.rs"));
    let text = code(&text.unwrap());
    let variants = text.split("pub enum Verb {").nth(1).unwrap();
    let variants = variants.split("\n}").next().unwrap().lines();
    let mut verbs: Vec<String> = variants
        .filter_map(|line| {
            let name = line.trim().split(['(', ',']).next()?;
            name.starts_with(char::is_uppercase).then(|| kebab(name))
        })
        .collect();
    listed.sort();
    verbs.sort();
    assert!(verbs.len() > 30, "{verbs:?}");
    assert_eq!(verbs, listed, "verbs, and those in ARCHITECTURE.md");
    // Their parsers are in the reader, which is `survey`.
    let behind = |row: &Vec<&str>| row[2].starts_with("`archivist-import-`");
    let behind: Vec<&str> =
        rows_of(&part, 3).filter(behind).flat_map(|row| quoted(row[0])).collect();
    assert!(behind.contains(&"verify"), "{behind:?}");
    let parsing: Vec<&str> = reading.into_iter().filter(|verb| !behind.contains(verb)).collect();
    let found: Vec<String> = sources()
        .iter()
        .filter(|(file, _)| !is_test(file))
        .flat_map(|(file, text)| parsers_without_sandbox(file, text, &parsing))
        .collect();
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

/// `ShareBodies` as users write it.
fn kebab(name: &str) -> String {
    let mut out = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !out.is_empty() {
            out.push('-');
        }
        out.extend(letter.to_lowercase());
    }
    out
}

/// The parsers that a file of the command line names, although its verb is none of those that call parsers.
fn parsers_without_sandbox(file: &str, text: &str, reading: &[&str]) -> Vec<String> {
    let Some(path) = file.strip_prefix("cli/") else {
        return Vec::new();
    };
    let verb = path.strip_prefix("verb/").unwrap_or_default();
    let verb = verb.split(['/', '.']).next().unwrap_or_default();
    // What verbs share: the reader of lists of URLs, recordings, and what runs in the unit of readers.
    let shared = ["queue/urls.rs", "recording/", "survey/"];
    if reading.contains(&verb.replace('_', "-").as_str())
        || shared.iter().any(|room| path.starts_with(room))
    {
        return Vec::new();
    }
    let code = code(text);
    let named = PARSERS.iter().filter(|parser| names(&code, parser));
    named
        .map(|parser| format!("src/{file} calls '{parser}': see {FOREIGN} in ARCHITECTURE.md"))
        .collect()
}

#[test]
fn a_new_reader_of_foreign_bytes_is_seen() {
    let parses = "fn f() { let file = Wacz::open(file); }";
    let seen = |file: &str| !parsers_without_sandbox(file, parses, &["export"]).is_empty();
    assert!(seen("cli/verb/status.rs"));
    assert!(seen("cli/verb/show/page.rs"));
    assert!(seen("cli/display/table.rs"));
    assert!(!seen("cli/verb/export.rs"));
    assert!(!seen("hooks/page/html.rs"));
    let harmless = "fn f() { read(file) }";
    assert!(parsers_without_sandbox("cli/verb/status.rs", harmless, &[]).is_empty());
}

#[test]
fn a_new_root_process_is_seen() {
    let seen = |name: &str, text: &str| {
        let unit = (name.to_owned(), format!("[Service]\n{text}\n"));
        !roots(&[unit], &[]).is_empty()
    };
    assert!(seen("a.service", "ExecStart=/usr/bin/a"));
    assert!(seen("a.service", "User=root\nExecStart=/usr/bin/a"));
    assert!(seen("a.service", "User=a\nExecStart=/usr/bin/a\nExecStopPost=-+/usr/bin/b"));
    assert!(seen("a-.service.d", "User=a\nExecStartPre=!/usr/bin/b"));
    assert!(!seen("a.service", "User=a\nExecStart=-/usr/bin/a"));
    assert!(!seen("a.service", "DynamicUser=yes\nExecStart=/usr/bin/a"));
    let installed = |path: &str| !roots(&[], &[path.to_owned()]).is_empty();
    assert!(installed("usr/lib/systemd/system-generators/a"));
    assert!(installed("etc/cron.daily/a"));
    assert!(!installed("usr/lib/systemd/user-generators/a"));
}

/// The table of rooms says of each folder what its Cargo.toml says. The command line is the root package.
#[test]
fn the_table_of_rooms_is_what_cargo_knows() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let map = std::fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    for member in std::fs::read_dir(root.join("src")).unwrap() {
        let name = member.unwrap().file_name().into_string().unwrap();
        let own = root.join("src").join(&name).join("Cargo.toml");
        let manifest = if own.exists() { own } else { root.join("Cargo.toml") };
        let manifest = std::fs::read_to_string(manifest).unwrap();
        let used = uses(&manifest);
        let used = if used.is_empty() { "–".to_owned() } else { used.join(", ") };
        let head = format!("| `src/{name}/` |");
        let row = map.lines().find(|line| line.starts_with(&head));
        let row = row.unwrap_or_else(|| panic!("ARCHITECTURE.md has no row for src/{name}/"));
        assert!(row.ends_with(&format!("| {used} |")), "{row}\nCargo.toml: {used}");
    }
}

/// A file in tests/ that all.rs does not name is in no program, and its tests run in none.
#[test]
fn every_file_of_tests_is_in_the_program_for_all() {
    let all = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all.rs"));
    let all = all.unwrap();
    let files = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let modules: Vec<String> =
        names.filter_map(|name| name.strip_suffix(".rs").map(str::to_owned)).collect();
    assert!(modules.len() > 5, "{modules:?}");
    for module in modules.iter().filter(|module| *module != "all") {
        assert!(all.contains(&format!("\nmod {module};\n")), "tests/all.rs lacks mod {module};");
    }
}

/// Paths of this repository that README.md and CONTRIBUTING.md name, in code spans and links.
#[test]
fn the_guides_name_only_paths_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let tops = ["src/", "tests/", "packaging/", "units/", "man/", "debian/"];
    let is_placeholder = |c: char| "*…$<>".contains(c);
    for guide in ["README.md", "CONTRIBUTING.md"] {
        let text = std::fs::read_to_string(root.join(guide)).unwrap();
        let words = text.split(|c: char| c.is_whitespace() || "`()[],;".contains(c));
        let mut missing = Vec::new();
        for word in words {
            let path = word.trim_end_matches([':', '.']);
            let is_pattern = path.contains(is_placeholder)
                || ["NN-", "FNN", "VERB"].iter().any(|name| path.contains(name));
            let is_ours = tops.iter().any(|top| path.starts_with(top));
            if is_ours && !is_pattern && !root.join(path).exists() {
                missing.push(path);
            }
        }
        assert!(missing.is_empty(), "{guide}: {missing:?}");
    }
}

#[test]
fn a_breach_is_seen() {
    let seen = |file, text| !breaches(file, text).is_empty();
    assert!(seen("core/model/x.rs", "let t = jiff::Timestamp::now();"));
    assert!(seen("core/plan/x.rs", "std::fs::read(path)"));
    assert!(seen("core/model/x.rs", "use crate::plan::View;"));
    assert!(seen("orchestrator/database/x.rs", "use crate::main_loop::Turn;"));
    assert!(seen("orchestrator/work/x.rs", "use rusqlite::Connection;"));
    assert!(seen("shared/bus/documents/x.rs", "use crate::systemd::Hint;"));
    assert!(seen("elsewhere/x.rs", ""));
    assert!(seen("hooks/chromium/cdp/x.rs", "use super::super::tab::load;"));
    assert!(!seen("hooks/chromium/cdp/x.rs", "use super::{CdpError, frames::Frame};"));
    assert!(!seen("core/plan/x.rs", "use crate::model::Time;\n// std::fs"));
}
