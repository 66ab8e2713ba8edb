//! Tests of the built program `archivist-hook-exec`: its input, and what the executed program gets.

use archivist_core::model::{CrawlId, Owner, SnapshotId};
use archivist_core::unit::{AddressFilter, HookSpec, Names, UnitSpec};
use nix::time::{ClockId, clock_gettime};
use std::io::{Seek, Write};
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

const LAUNCHER: &str = env!("CARGO_BIN_EXE_archivist-hook-exec");

fn spec(argv: &[&str], environment: &[(&str, &str)]) -> UnitSpec {
    let text = |text: &str| text.to_owned();
    let hook = HookSpec {
        owner: Owner::Snapshot(SnapshotId(3)),
        crawl: CrawlId(1),
        snapshot: Some(SnapshotId(3)),
        url: "https://example.org/",
        plugin: "wget",
        hook: "on_Snapshot__06_wget",
        unit_part: "wget",
        argv: argv.iter().copied().map(text).collect(),
        environment: environment.iter().map(|(name, value)| (text(name), text(value))).collect(),
        launcher: Some(LAUNCHER.into()),
        not_after: None,
        working_directory: "/".into(),
        limit: Duration::from_secs(60),
        bind: Vec::new(),
        bind_read_only: Vec::new(),
        tmp: None,
        network: None,
        addresses: AddressFilter::default(),
        user: None,
    };
    UnitSpec::hook(&Names::new("archivist"), hook)
}

/// Starts the program as systemd does. `set` are the variables of the service manager.
fn launch(document: &[u8], set: &[(&str, &str)]) -> Output {
    let mut input = tempfile::tempfile().unwrap();
    input.write_all(document).unwrap();
    input.rewind().unwrap();
    Command::new(LAUNCHER)
        .arg("/shown/program")
        .env_clear()
        .envs(set.iter().copied())
        .stdin(input)
        .output()
        .unwrap()
}

fn launched(argv: &[&str], environment: &[(&str, &str)], set: &[(&str, &str)]) -> Output {
    launch(&spec(argv, environment).launch().unwrap(), set)
}

#[test]
fn arguments_and_variables_arrive_unchanged() {
    let odd = "--url=http://u:p@a.test/?${HOME}&%n $(id) \"'\n\u{2028}";
    let argv = ["/usr/bin/printf", "%s|", odd, "", "a b"];
    let output = launched(&argv, &[], &[]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{odd}||a b|"));

    let variables = [("API_KEY", "a=b c\t\u{e4}"), ("EMPTY", ""), ("SET", "ours")];
    let output = launched(&["/usr/bin/env", "-0"], &variables, &[("SET", "drop-in"), ("X", "1")]);
    let text = String::from_utf8(output.stdout).unwrap();
    let mut pairs: Vec<&str> = text.split_terminator('\0').collect();
    pairs.sort_unstable();
    assert_eq!(pairs, ["API_KEY=a=b c\t\u{e4}", "EMPTY=", "SET=drop-in", "X=1"]);
}

#[test]
fn program_starts_in_the_working_directory() {
    let directory = tempfile::tempdir().unwrap();
    let in_directory = |directory: &Path| {
        let spec =
            UnitSpec { working_directory: Some(directory.into()), ..spec(&["/bin/pwd"], &[]) };
        launch(&spec.launch().unwrap(), &[])
    };
    let output = in_directory(directory.path());
    let shown = String::from_utf8(output.stdout).unwrap();
    assert_eq!(Path::new(shown.trim_end()), directory.path());

    let missing = in_directory(&directory.path().join("missing"));
    assert_eq!(missing.status.code(), Some(200));
    let message = String::from_utf8(missing.stderr).unwrap();
    assert!(message.contains("missing': No such file"), "{message}");
}

#[test]
fn standard_input_is_empty_and_the_document_is_gone() {
    let look = "readlink /proc/self/fd/0; ls -l /proc/$$/fd | grep -c deleted";
    let list = launched(&["/bin/sh", "-c", look], &[], &[]);
    assert_eq!(String::from_utf8(list.stdout).unwrap(), "/dev/null\n0\n");
}

#[test]
fn nothing_is_executed_after_the_end_of_the_lease() {
    let now = clock_gettime(ClockId::CLOCK_BOOTTIME).unwrap();
    let now = now.tv_sec().unsigned_abs() * 1000;
    let at = |not_after| {
        let spec = UnitSpec { not_after: Some(not_after), ..spec(&["/bin/echo", "visited"], &[]) };
        launch(&spec.launch().unwrap(), &[])
    };
    assert_eq!(at(now + 60_000).stdout, b"visited\n");
    for end in [now, 0] {
        let late = at(end);
        assert_eq!(late.status.code(), Some(190));
        assert_eq!(late.stdout, b"");
        let message = String::from_utf8(late.stderr).unwrap();
        assert!(message.contains("lease of the host ended"), "{message}");
    }
}

#[test]
fn failed_execution_has_systemd_s_exit_status() {
    let directory = tempfile::tempdir().unwrap();
    let plain = directory.path().join("plain");
    std::fs::write(&plain, "echo no interpreter").unwrap();
    let not_executable = plain.to_str().unwrap();
    for program in ["/nonexistent/x", not_executable, "relative", ""] {
        let output = launched(&[program, "--url=http://u:p@a.test/"], &[], &[]);
        assert_eq!(output.status.code(), Some(203), "{program}");
        let message = String::from_utf8(output.stderr).unwrap();
        let wanted = format!("archivist-hook-exec: failed to execute '{program}': ");
        assert!(message.starts_with(&wanted), "{message}");
        assert!(!message.contains("u:p"), "{message}");
    }
    // No shell runs a file whose format the kernel does not know.
    let mut mode = std::fs::metadata(&plain).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut mode, 0o755);
    std::fs::set_permissions(&plain, mode).unwrap();
    assert_eq!(launched(&[not_executable], &[], &[]).status.code(), Some(203));
    for broken in [&b""[..], b"\0\x002\0/bin/true\0"] {
        assert_eq!(launch(broken, &[]).status.code(), Some(208));
    }
}

#[test]
fn flood_of_standard_error_is_bounded_and_ends_with_the_reason() {
    let flood = "line=$(printf '%047000d' 0); i=0
        while [ $i -lt 400 ]; do echo $line >&2; i=$((i+1)); done
        echo 'error: the reason' >&2; exit 3";
    let output = launched(&["/bin/sh", "-c", flood], &[], &[]);
    assert_eq!(output.status.code(), Some(3));
    let length = output.stderr.len();
    assert!((4_000_000..4_400_000).contains(&length), "{length}");
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("the log reached its limit of 4M"));
    assert!(text.ends_with("0\nerror: the reason\n"));
}

#[test]
fn relay_is_no_child_of_the_program_and_ends_with_it() {
    let children = launched(&["/bin/cat", "/proc/thread-self/children"], &[], &[]);
    assert_eq!(children.stdout, b"", "{children:?}");
    // The output of this command ends when the last writer has ended.
    let last = "(sleep 0.3; echo last >&2) & echo first >&2";
    let output = launched(&["/bin/sh", "-c", last], &[], &[]);
    assert_eq!(output.stderr, b"first\nlast\n");
}

/// The calls that libseccomp may not know. Without the filter, newer kernels have some of them.
#[test]
fn system_calls_newer_than_the_lists_are_unknown_to_hooks() {
    let tries = "for (467 .. 1100, 0x40000000 + 467) {
            my $result = syscall($_, -1, 0, 0, 0, 0, 0);
            print \"$_: $result $!\\n\" unless $result == -1 && $!{ENOSYS};
        }
        open(my $status, '<', '/proc/self/status');
        print grep(/^Seccomp_filters/, <$status>);";
    let document = spec(&["/usr/bin/perl", "-MErrno", "-e", tries], &[]).launch();
    let with_privileges = launch(document.as_ref().unwrap(), &[]);
    let filters = |output: &Output| {
        let text = String::from_utf8(output.stdout.clone()).unwrap();
        let (rest, count) = text.rsplit_once("Seccomp_filters:").unwrap();
        (rest.to_owned(), count.trim().parse::<u32>().unwrap())
    };
    let (_, before) = filters(&with_privileges);
    let mut input = tempfile::tempfile().unwrap();
    input.write_all(&document.unwrap()).unwrap();
    input.rewind().unwrap();
    let hook = Command::new("/usr/bin/setpriv")
        .args(["--no-new-privs", LAUNCHER, "/shown/program"])
        .env_clear()
        .stdin(input)
        .output()
        .unwrap();
    assert!(hook.status.success(), "{hook:?}");
    assert_eq!(filters(&hook), (String::new(), before + 1));
}

/// The program starts with every hook: each start would map unneeded libraries.
#[test]
fn program_contains_no_unneeded_library() {
    let program = std::fs::read(LAUNCHER).unwrap();
    let has = |text: &str| program.windows(text.len()).any(|part| part == text.as_bytes());
    assert!(has("failed to execute"));
    for foreign in ["org.freedesktop.systemd1", "sqlite3_", "tokio-runtime"] {
        assert!(!has(foreign), "{foreign}");
    }
    assert!(Path::new(LAUNCHER).ends_with("archivist-hook-exec"));
}
