//! The man pages know every state, exit status and field of documents that the program knows. Verbs,
//! options, keys and members of the bus are in them by construction (`archivist manual`).

use archivist::{self as cli, Exit};
use archivist_core::model::{CrawlId, Lifecycle, ResultState, SnapshotId, Time};
use archivist_shared::bus::documents::notice::{CrawlNotice, PagesNotice, SnapshotNotice};
use archivist_shared::bus::documents::report::{AddOptions, Added, Filter, Status};
use archivist_shared::bus::documents::watches::HistoryFilter;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Names of all pages.
fn names() -> Vec<String> {
    let entries = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("man")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name != "pictures").collect()
}

/// A page, or the configuration, as the build of the package makes it.
fn made(path: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_archivist"))
        .arg("manual")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(path))
        .output()
        .unwrap();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaints}");
    String::from_utf8(output.stdout).unwrap()
}

/// The text of a page as man(1) prints it: without requests, fonts and escapes.
fn page(name: &str) -> String {
    let text = made(&format!("man/{name}"));
    let plain =
        ["\\fB", "\\fI", "\\fR", "\\fP"].iter().fold(text, |text, font| text.replace(font, ""));
    plain.replace("\\-", "-").replace('"', "").replace("\\ ", " ")
}

/// From the line that begins with `start` to the next one that begins with `end`.
fn section<'a>(page: &'a str, start: &str, end: &str) -> Option<&'a str> {
    let from = page.find(&format!("\n{start}"))? + 1;
    let rest = &page[from..];
    let to = rest[1..].find(&format!("\n{end}")).map_or(rest.len(), |at| at + 1);
    Some(&rest[..to])
}

fn has_word(text: &str, word: &str) -> bool {
    text.split(|c: char| c.is_whitespace() || ",.;()[]|".contains(c)).any(|found| found == word)
}

/// Everything that a request stands for is in a page; that the page has the request is not certain.
#[test]
fn pages_and_configuration_have_their_requests() {
    let main = page("archivist.1");
    for verb in cli::command().get_subcommands() {
        let kind = if verb.is_hide_set() { "TP\n" } else { "SS " };
        let heading = format!("\n.{kind}archivist {}", verb.get_name());
        assert!(main.contains(&heading), "{heading}");
    }
    assert!(page("archivist-orchestrator.service.8").contains("\n--exit-on-idle\n"));
    for (page_name, key) in [
        ("archivist.conf.5", "WorkersMax"),
        ("archivist.pool.5", "Workers"),
        ("archivist.watch.5", "URL"),
    ] {
        let heading = format!("\n.TP\n{key}=\n");
        assert!(page(page_name).contains(&heading), "{page_name}: {heading}");
    }
    for interface in ["Manager", "Worker", "Node"] {
        let shown = format!("\ninterface org.archivist1.{interface}\n");
        assert!(page("org.archivist1.5").contains(&shown), "{shown}");
    }
    let installed = made("packaging/tree/etc/archivist/archivist.conf");
    assert!(installed.contains("\n#WorkersMax=8\n"), "{installed}");
}

#[test]
fn every_state_and_exit_status() {
    let main = page("archivist.1");
    let states = section(&main, ".SH STATES", ".SH").unwrap();
    for state in Lifecycle::ALL {
        assert!(has_word(states, state.as_str()), "{state}");
    }
    for state in ResultState::ALL {
        assert!(has_word(states, state.as_str()), "{state}");
    }
    let statuses = section(&main, ".SH EXIT STATUS", ".SH").unwrap();
    for exit in Exit::ALL {
        assert!(statuses.contains(&format!("\n.B {}\n", exit.code())), "{exit:?}");
    }
}

#[test]
fn every_field_of_small_documents() {
    fn fields(document: impl serde::Serialize) -> Vec<String> {
        let value = serde_json::to_value(document).unwrap();
        value.as_object().unwrap().keys().cloned().collect()
    }
    let (crawl, first, at) = (CrawlId(1), SnapshotId(1), Time(0));
    let (status, url) = (Lifecycle::Queued, String::new());
    let fields = [
        fields(AddOptions::default()),
        fields(Filter::default()),
        fields(HistoryFilter::default()),
        fields(Status::default()),
        fields(Added {
            crawl,
            accepted: 0,
            refused: Vec::new(),
            known: 0,
            completed: 0,
            joined: Some(at),
        }),
        fields(PagesNotice { crawl, count: 1, first, last: first, at }),
        fields(CrawlNotice {
            id: crawl,
            status,
            reason: None,
            url: url.clone(),
            snapshots: Default::default(),
            results: Default::default(),
            at,
        }),
        fields(SnapshotNotice {
            id: first,
            crawl,
            status,
            reason: None,
            url,
            results: Default::default(),
            at,
        }),
    ];
    let text = page("org.archivist1.5");
    for field in fields.concat() {
        assert!(has_word(&text, &field), "{field} is not in org.archivist1(5)");
    }
}

/// The function of this name in a file of Rust, if it is a test.
fn is_test_of_rust(text: &str, name: &str) -> bool {
    let head = format!("fn {name}(");
    text.match_indices(&head).any(|(at, _)| {
        let before = &text[..at];
        let attributes = before.rsplit("\n\n").next().unwrap_or_default();
        attributes.contains("test]")
    })
}

/// The case of this name in a script, if the script runs it.
fn is_case_of_script(text: &str, name: &str) -> bool {
    let runs = text.split("\ncases ").nth(1).unwrap_or_default();
    text.contains(&format!("\n{name}() {{")) && runs.split_whitespace().any(|case| case == name)
}

/// Each party of archivist-security(7) has what it can read, change, stop and forge, and for each
/// a test that is in the tree, or the word "documented".
#[test]
fn every_cell_of_the_security_table_names_its_tests() {
    let text = page("archivist-security.7");
    let table = section(&text, ".SH WHO CAN DO WHAT", ".SH ").unwrap();
    let parties: Vec<&str> = table.split("\n.SS ").skip(1).collect();
    assert!(parties.len() >= 10, "{}", parties.len());
    let mut tests = 0;
    for party in parties {
        let name = party.lines().next().unwrap_or_default();
        let cells: Vec<&str> = party.split("\n.TP\n.B ").skip(1).collect();
        let titles: Vec<&str> = cells.iter().filter_map(|cell| cell.lines().next()).collect();
        assert_eq!(titles, ["read", "change", "stop", "forge"], "{name}");
        for cell in cells {
            let held = cell.lines().filter_map(|line| line.strip_prefix(".I "));
            let held: Vec<&str> = held.collect();
            assert!(!held.is_empty(), "{name}: {cell}");
            for test in held.into_iter().filter(|held| *held != "documented") {
                let (file, case) = test.split_once(": ").unwrap_or_else(|| panic!("{test}"));
                let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
                let code = std::fs::read_to_string(&path)
                    .unwrap_or_else(|error| panic!("{name}: {file}: {error}"));
                let is_there = match file.strip_suffix(".sh") {
                    Some(_) => is_case_of_script(&code, case),
                    None => is_test_of_rust(&code, case),
                };
                assert!(is_there, "{name}: {file} has no test {case}");
                tests += 1;
            }
        }
    }
    assert!(tests >= 40, "{tests}");
}

/// Each page is in one of the packages.
#[test]
fn every_page_is_in_a_package() {
    let debian = Path::new(env!("CARGO_MANIFEST_DIR")).join("debian");
    let listed = ["archivist.manpages", "archivist-pools.manpages", "archivist-fleet.manpages"]
        .map(|list| std::fs::read_to_string(debian.join(list)).unwrap())
        .concat();
    let mut listed: Vec<&str> = listed.lines().collect();
    listed.sort_unstable();
    let pages = names().into_iter();
    let mut pages: Vec<String> = pages.map(|name| format!("debian/man/{name}")).collect();
    pages.sort_unstable();
    assert_eq!(listed, pages);
}

/// Texts of options and keys are plain: an escape of roff in them would be printed.
#[test]
fn no_text_has_escapes_of_roff() {
    for name in names() {
        let text = made(&format!("man/{name}"));
        for escape in ["\\e\\-", "\\e(", "\\efB", "\\efI", "\\efR"] {
            let line = text.lines().find(|line| line.contains(escape));
            assert!(line.is_none(), "{name}: {}", line.unwrap_or_default());
        }
    }
}

/// Skipped, and said so, where there is no groff.
#[test]
fn groff_has_nothing_to_complain_about() {
    for name in names() {
        let mut groff = Command::new("groff");
        groff.args(["-man", "-Kutf8", "-Tutf8", "-ww", "-z"]);
        groff.stdin(Stdio::piped()).stderr(Stdio::piped());
        let mut groff = match groff.spawn() {
            Ok(groff) => groff,
            Err(error) => {
                eprintln!("skipped: groff: {error}");
                return;
            }
        };
        let text = made(&format!("man/{name}"));
        groff.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let output = groff.wait_with_output().unwrap();
        let complaints = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && complaints.is_empty(), "{name}: {complaints}");
    }
}
