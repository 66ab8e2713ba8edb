use super::*;
use proptest::prelude::*;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A root directory with these files in /etc/archivist.
fn root(files: &[(&str, &str)]) -> (tempfile::TempDir, Scope) {
    let root = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = root.path().join("etc/archivist").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let scope = Scope::system(root.path());
    (root, scope)
}

/// Messages without the directory, which differs from run to run.
fn short(root: &tempfile::TempDir, message: &str) -> String {
    message.replace(&format!("{}/etc/archivist/", root.path().display()), "")
}

#[test]
fn no_file_means_defaults() {
    let (_root, scope) = root(&[]);
    assert_eq!(load(&scope), Ok((Settings::built_in(), Vec::new())));
}

#[test]
fn drop_ins_outrank_the_main_file_and_empty_resets() {
    let (_root, scope) = root(&[
        (
            "archivist.conf",
            "[Orchestrator]\nWorkersMax=20\nRetrySec=5min 3s\n[Archive]\nPlugins=wget,title\nPluginPath=/opt/a\n[Hooks]\nStdoutMax=1G\n",
        ),
        (
            "archivist.conf.d/10-x.conf",
            "[Orchestrator]\nWorkersMax=\n[Archive]\nPlugins=\nPlugins=dom pdf\nPluginPath=/opt/b\n[Config]\nWGET_TIMEOUT=30\nCHROME_ARGS=[\"--a\"]\nUSER_AGENT=x=y\n",
        ),
        ("archivist.conf.d/20-y.conf", "[Config]\nCHROME_ARGS=\n"),
    ]);
    let (settings, warnings) = load(&scope).unwrap();
    assert_eq!(warnings, []);
    assert_eq!(settings.workers_max, Settings::built_in().workers_max);
    assert_eq!(settings.retry_first, Duration::from_secs(303));
    assert_eq!(settings.plugins, ["dom", "pdf"]);
    assert_eq!(settings.plugin_path, [PathBuf::from("/opt/a"), PathBuf::from("/opt/b")]);
    assert_eq!(settings.output_limit, 1 << 30);
    let values: Vec<_> = settings.values.iter().map(|(k, v)| (&**k, &**v)).collect();
    assert_eq!(values, [("USER_AGENT", "x=y"), ("WGET_TIMEOUT", "30")]);
}

#[test]
fn a_typo_is_a_located_warning_with_a_correction() {
    let (root, scope) = root(&[(
        "archivist.conf",
        "[Orchestrator]\nWorkerMax=3\nTimeoutSec=3\n[Archives]\nPlugins=x\n[Hooks]\nWGET_TIMEOUT=3\nnonsense\n[Config]\nwget=3\n[X-Mine]\na=b\n",
    )]);
    let (settings, warnings) = load(&scope).unwrap();
    assert_eq!(settings, Settings::built_in());
    let message: Vec<_> = warnings.iter().map(|w| short(&root, &w.text())).collect();
    assert_eq!(
        message,
        [
            "archivist.conf:2: unknown key WorkerMax= in section [Orchestrator]; did you mean WorkersMax= in [Orchestrator]?",
            "archivist.conf:3: TimeoutSec= belongs in section [Hooks]",
            "archivist.conf:5: unknown section [Archives]; there are [Orchestrator], [Archive], [Hooks], [Fleet] and [Config]",
            "archivist.conf:7: unknown key WGET_TIMEOUT= in section [Hooks]; settings of plugins belong in [Config]",
            "archivist.conf:8: 'nonsense' has no '=' (Key=Value is expected)",
            "archivist.conf:10: 'wget' cannot be the name of a plugin's setting: upper-case letters, digits and '_' are allowed",
        ]
    );
}

#[test]
fn all_bad_values_are_reported_at_once() {
    let (root, scope) = root(&[(
        "archivist.conf",
        "[Orchestrator]\nWorkersMax=0\n[Hooks]\nTimeoutSec=soon\nStopTimeoutSec=0\nStdoutMax=2X\n[Archive]\nPluginPath=plugins\nUrlDenyList=(\nPlugins=a/b\n",
    )]);
    let error = load(&scope).unwrap_err();
    let message: Vec<_> = error.problems.iter().map(|p| short(&root, &p.text())).collect();
    assert_eq!(
        message,
        [
            "archivist.conf:2: bad value '0' of WorkersMax= in [Orchestrator], expected a whole number from 1 to 10000",
            "archivist.conf:4: bad value 'soon' of TimeoutSec= in [Hooks], expected a time span like 90, 30s, 5min 3s or 1.5h",
            "archivist.conf:5: bad value '0' of StopTimeoutSec= in [Hooks], expected a time span longer than 0, like 30s or 5min",
            "archivist.conf:6: bad value '2X' of StdoutMax= in [Hooks], expected a size in bytes, or with K, M, G or T (1024-based) like 64M",
            "archivist.conf:8: bad value 'plugins' of PluginPath= in [Archive], expected the absolute path of a directory, without '..'",
            "archivist.conf:9: bad value '(' of UrlDenyList= in [Archive], expected domains (example.com, *.example.com) and regular expressions, separated by commas",
            "archivist.conf:10: bad value 'a/b' of Plugins= in [Archive], expected names of plugins, separated by blanks or commas, like: wget title screenshot",
        ]
    );
}

#[test]
fn the_location_of_each_value_is_known() {
    let (root, scope) = root(&[
        ("archivist.conf", "[Hooks]\nTimeoutSec=5\nStdoutMax=1M\n"),
        ("archivist.conf.d/a.conf", "[Hooks]\nStdoutMax=\n[Config]\nA=1\n"),
    ]);
    let inputs = inputs::collect(&fragments::read(&scope).unwrap());
    let place = |section, key| {
        inputs.location_of(section, key).map(|place| short(&root, &place.to_string()))
    };
    assert_eq!(place("Hooks", "TimeoutSec").as_deref(), Some("archivist.conf:2"));
    assert_eq!(place("Hooks", "StdoutMax"), None);
    assert_eq!(place("Config", "A").as_deref(), Some("archivist.conf.d/a.conf:4"));
}

#[test]
fn a_comma_within_a_pattern_belongs_to_it() {
    let (_root, scope) = root(&[(
        "archivist.conf",
        "[Archive]\nUrlDenyList=a{1,3}\\.example, *.b.example\nUrlDenyList=c.example\n",
    )]);
    let (settings, _) = load(&scope).unwrap();
    let lines: Vec<_> = settings.url_deny.lines().collect();
    assert_eq!(lines, [r"a{1,3}\.example", "*.b.example", "c.example"]);
}

#[test]
fn default_limits_agree_and_grow_with_the_processors() {
    for (processors, workers) in [(1, 4), (2, 4), (3, 6), (8, 16), (u32::MAX, 16)] {
        let limits = Settings::for_processors(processors);
        assert_eq!(limits.workers_per_kind, workers, "{processors} processors");
        assert_eq!(limits.snapshots_per_crawl, limits.workers_per_kind);
        assert_eq!(limits.workers_max, 2 * limits.workers_per_kind);
        assert!(limits.host_workers <= limits.workers_per_kind);
    }
}

/// What `show` prints can be put into a file again.
#[test]
fn every_key_reads_back_what_it_shows() {
    let built_in = Settings::default();
    for key in keys::KEYS {
        let shown = (key.show)(&built_in);
        let mut settings = Settings::default();
        for line in shown.lines() {
            assert_eq!((key.set)(&mut settings, line), Ok(()), "{key:?} {line}");
        }
        assert_eq!(settings, built_in, "{key:?}");
    }
}

#[test]
fn an_unreadable_file_is_an_error() {
    let (root, scope) = root(&[]);
    let path = root.path().join("etc/archivist/archivist.conf");
    std::fs::create_dir_all(&path).unwrap();
    let error = load(&scope).unwrap_err().to_string();
    assert!(error.contains(": failed to read the file: "), "{error}");
    assert!(error.contains(&Path::new("archivist.conf").display().to_string()));
}

/// Files that look like ours, and some that do not.
fn file() -> impl Strategy<Value = String> {
    let key = (0..keys::KEYS.len()).prop_map(|n| (keys::KEYS[n].section, keys::KEYS[n].name));
    let value = prop_oneof!["[0-9]{1,20}[a-zA-Z]{0,3}", ".{0,30}", "(yes|no|0|\\\\)?"];
    let assignment =
        (key, value).prop_map(|((section, key), value)| format!("[{section}]\n{key}={value}"));
    let line = prop_oneof![4 => assignment, 1 => ".{0,40}", 1 => "[#;\\[].{0,10}", 1 => "\\[Config\\]\n[A-Z_]{1,9}=.{0,9}"];
    prop::collection::vec(line, 0..12).prop_map(|lines| lines.join("\n"))
}

proptest! {
    /// Everything in a file counts, is warned of or is refused, at a line that it has.
    #[test]
    fn any_file_is_read_or_has_located_problems(text in file()) {
        let path = std::path::PathBuf::from("/etc/archivist/archivist.conf");
        let lines = text.lines().count();
        let inputs = inputs::collect(&[fragments::Fragment { path: path.clone(), text }]);
        let numbers = inputs.warnings.iter().flat_map(|warning| warning.line);
        for line in numbers.chain(inputs.inputs.iter().map(|input| input.location.line)) {
            prop_assert!((1..=lines).contains(&(line as usize)), "{line}");
        }
        if let Err(error) = Settings::from_inputs(&inputs, &Settings::default()) {
            let error = error.to_string();
            prop_assert!(error.contains("archivist.conf:"), "{error}");
        }
    }

    #[test]
    fn assignments_read_back(entries in prop::collection::vec(("[A-Z][a-z]{0,8}", "[A-Z][A-Za-z]{0,8}", r"([!-~ µ]{0,20}[!-\[\]-~])?"), 0..8)) {
        let text: String = entries.iter().map(|(section, key, value)| format!("[{section}]\n{key} = {value}\n")).collect();
        let parsed = ini::parse(&text, Path::new("x"));
        prop_assert!(parsed.malformed.is_empty(), "{:?}", parsed.malformed);
        let read: Vec<_> = parsed.entries.into_iter().map(|e| (e.section, e.key, e.value)).collect();
        let written: Vec<_> = entries.into_iter().map(|(s, k, v)| (s, k, v.trim().to_owned())).collect();
        prop_assert_eq!(read, written);
    }
}
