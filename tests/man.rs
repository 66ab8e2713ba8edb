//! The man pages know every verb, flag, key, state and exit status that the program knows.

use archivist::{self as cli, Exit};
use archivist_config::{Settings, keys};
use archivist_core::model::{CrawlId, Lifecycle, ResultState, SnapshotId, Time};
use archivist_shared::bus::documents::notice::{CrawlNotice, PagesNotice, SnapshotNotice};
use archivist_shared::bus::documents::report::{AddOptions, Added, Filter, Status};
use archivist_shared::bus::documents::watches::HistoryFilter;
use archivist_shared::bus::service;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("man").join(name)
}

/// The text of a page as man(1) prints it: without requests, fonts and escapes.
fn page(name: &str) -> String {
    let text = std::fs::read_to_string(file(name)).unwrap();
    let plain = ["\\fB", "\\fI", "\\fR", "\\fP"]
        .iter()
        .fold(text, |text, font| text.replace(font, ""));
    plain
        .replace("\\-", "-")
        .replace('"', "")
        .replace("\\ ", " ")
}

/// From the line that begins with `start` to the next one that begins with `end`.
fn section<'a>(page: &'a str, start: &str, end: &str) -> Option<&'a str> {
    let from = page.find(&format!("\n{start}"))? + 1;
    let rest = &page[from..];
    let to = rest[1..]
        .find(&format!("\n{end}"))
        .map_or(rest.len(), |at| at + 1);
    Some(&rest[..to])
}

fn has_word(text: &str, word: &str) -> bool {
    text.split(|c: char| c.is_whitespace() || ",.;()[]|".contains(c))
        .any(|found| found == word)
}

#[test]
fn every_verb_and_flag() {
    let command = cli::command();
    let main = page("archivist.1");
    let service = page("archivist-orchestrator.service.8");
    for flag in command.get_arguments().filter_map(clap::Arg::get_long) {
        assert!(
            has_word(&main, &format!("--{flag}")),
            "--{flag} is not in archivist(1)"
        );
    }
    for verb in command.get_subcommands() {
        let name = verb.get_name();
        let text = if verb.is_hide_set() {
            assert!(
                main.contains(&format!("archivist {name}")),
                "archivist {name}"
            );
            service.as_str()
        } else {
            section(&main, &format!(".SS archivist {name}"), ".S")
                .unwrap_or_else(|| panic!("archivist(1) has no section on {name}"))
        };
        for argument in verb.get_arguments().filter(|a| !a.is_global_set()) {
            if let Some(long) = argument.get_long() {
                assert!(
                    has_word(text, &format!("--{long}")),
                    "{name} --{long} is not in its page"
                );
            }
            if let Some(short) = argument.get_short() {
                assert!(
                    has_word(text, &format!("-{short}")),
                    "{name} -{short} is not in its page"
                );
            }
        }
    }
}

#[test]
fn every_key_with_its_default() {
    let text = page("archivist.conf.5");
    let built_in = Settings::default();
    for key in keys::KEYS {
        let heading = format!(".SH [{}] SECTION", key.section.to_uppercase());
        let section_text = section(&text, &heading, ".SH").expect(&heading);
        let entry = section(section_text, &format!(".I {}=", key.name), ".TP\n.I")
            .unwrap_or_else(|| panic!("{key:?} is not in archivist.conf(5)"));
        let default = (key.show)(&built_in);
        let words = match default.as_str() {
            "" => "Defaults to ".to_owned(),
            value => format!("Defaults to {value}."),
        };
        assert!(
            entry.contains(&words),
            "{key:?}: '{words}' is not in archivist.conf(5)"
        );
    }
    assert!(section(&text, ".SH [CONFIG] SECTION", ".SH").is_some());
}

/// The file that the package installs shows them all, commented out.
#[test]
fn the_installed_configuration_shows_every_default() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/tree/etc/archivist/archivist.conf");
    let text = std::fs::read_to_string(path).unwrap();
    let built_in = Settings::default();
    for key in keys::KEYS {
        let shown = section(&text, &format!("[{}]", key.section), "[").unwrap();
        let line = format!("#{}={}", key.name, (key.show)(&built_in));
        assert!(shown.lines().any(|found| found == line), "{line}");
    }
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
        assert!(
            statuses.contains(&format!("\n.B {}\n", exit.code())),
            "{exit:?}"
        );
    }
}

/// The value of an attribute in a line of XML.
fn attribute<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(&format!(" {name}=\""))?;
    rest.split_once('"').map(|(value, _)| value)
}

/// The methods and signals of the real interfaces, in the notation of the page.
fn real_members() -> Vec<String> {
    let mut members = Vec::new();
    let (mut name, mut arguments) = (String::new(), Vec::new());
    for line in service::description().lines().map(str::trim) {
        if line.starts_with("<method ") || line.starts_with("<signal ") {
            name = attribute(line, "name").unwrap().to_owned();
            arguments.clear();
        }
        if line.starts_with("<arg ") {
            let word = |name| attribute(line, name).map(|value| format!("{value} "));
            let words = [word("direction"), word("type"), word("name")];
            let words = words.into_iter().flatten().collect::<String>();
            arguments.push(words.trim_end().to_owned());
        }
        let is_end = line.starts_with("</method") || line.starts_with("</signal");
        if is_end || (line.ends_with("/>") && !line.starts_with("<arg ")) {
            members.push(format!("{name}({});", arguments.join(", ")));
        }
    }
    members
}

#[test]
fn every_method_and_signal_of_the_bus() {
    let text = page("org.archivist1.5");
    // The fleet service has a test of its own.
    let fleet = section(&text, ".SH THE FLEET INTERFACE", ".SH ").unwrap();
    let text = text.replace(fleet, "");
    let shown = text.lines().filter_map(|line| line.strip_prefix("  "));
    let mut shown: Vec<&str> = shown.filter(|line| line.ends_with(");")).collect();
    let mut real = real_members();
    assert!(real.len() > 45, "{real:#?}");
    for member in &real {
        let (name, _) = member.split_once('(').unwrap();
        let described = text.lines().any(|line| {
            let words = line.strip_prefix(".BR ").unwrap_or_default();
            words.split([' ', ',']).any(|word| word == name)
        });
        assert!(described, "{name} is not described in org.archivist1(5)");
    }
    real.sort_unstable();
    shown.sort_unstable();
    assert_eq!(shown, real, "org.archivist1(5) and the interfaces");
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
            joined: Some(at),
        }),
        fields(PagesNotice {
            crawl,
            count: 1,
            first,
            last: first,
            at,
        }),
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
        assert!(
            has_word(&text, &field),
            "{field} is not in org.archivist1(5)"
        );
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
        let titles: Vec<&str> = cells
            .iter()
            .filter_map(|cell| cell.lines().next())
            .collect();
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

/// Skipped, and said so, where there is no groff.
#[test]
fn groff_has_nothing_to_complain_about() {
    for entry in std::fs::read_dir(file("")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            continue; // pictures
        }
        let output = Command::new("groff")
            .args(["-man", "-Kutf8", "-Tutf8", "-ww", "-z"])
            .arg(&path)
            .stdin(Stdio::null())
            .output();
        let output = match output {
            Ok(output) => output,
            Err(error) => {
                eprintln!("skipped: groff: {error}");
                return;
            }
        };
        let complaints = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && complaints.is_empty(),
            "{complaints}"
        );
    }
}
