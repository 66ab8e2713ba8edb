//! Where the files of a snapshot of ArchiveBox belong in the directory of a snapshot of ours.

use crate::staging::copy::REST;
use archivist_core::model::{ResultState, Verdict};
use std::collections::BTreeSet;

/// Plugins of ours whose files have another meaning than those of ArchiveBox with the same name.
const OWN: [&str; 6] = [REST, "chromium", "hashes", "text", "verify", "wacz"];
const PLUGIN_MAX: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Up to 0.8: `archive/TIMESTAMP`, in which each extractor has files of fixed names. 0.9 moves such a
    /// directory as it is, and may add directories of plugins.
    Flat,
    /// Since 0.9: one directory for each plugin.
    Plugins,
}

/// Files and directories of extractors up to 0.8. wget's others are named after hosts.
const FLAT: [(&str, &str, &str); 13] = [
    ("favicon.ico", "favicon", "favicon.ico"),
    ("headers.json", "headers", "headers.json"),
    ("singlefile.html", "singlefile", "singlefile.html"),
    ("output.pdf", "pdf", "output.pdf"),
    ("screenshot.png", "screenshot", "screenshot.png"),
    ("output.html", "dom", "output.html"),
    ("htmltotext.txt", "htmltotext", "htmltotext.txt"),
    ("archive.org.txt", "archive_org", "archive.org.txt"),
    ("readability", "readability", ""),
    ("mercury", "mercury", ""),
    ("media", "media", ""),
    ("git", "git", ""),
    ("warc", "wget", "warc"),
];

/// Extractors and plugins whose success is a file. Others have a text, such as the title.
const WITH_FILES: [&str; 12] = [
    "favicon",
    "headers",
    "singlefile",
    "pdf",
    "screenshot",
    "dom",
    "wget",
    "readability",
    "mercury",
    "htmltotext",
    "media",
    "git",
];

/// Returns the plugin that gets the results of an extractor; `None` if no plugin may have such a name.
pub fn plugin(extractor: &str) -> Option<String> {
    let is_name = !extractor.is_empty()
        && extractor.len() <= PLUGIN_MAX
        && extractor.bytes().all(|byte| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte)
        });
    if !is_name {
        return None;
    }
    Some(if OWN.contains(&extractor) {
        format!("archivebox_{extractor}")
    } else {
        extractor.to_owned()
    })
}

/// Returns the plugin of an entry of a snapshot's directory, and its path in the directory of that plugin;
/// an empty path is the directory itself. `extractors` are the plugins with results: what belongs to
/// another one has no result, and is kept with the rest.
pub fn plugin_path(
    layout: Layout,
    name: &str,
    is_directory: bool,
    extractors: &BTreeSet<String>,
) -> (String, String) {
    let claimed = match layout {
        Layout::Flat => flat(name, is_directory, extractors),
        Layout::Plugins if is_directory => plugin(name).map(|plugin| (plugin, String::new())),
        Layout::Plugins => None,
    };
    claimed
        .filter(|(plugin, _)| extractors.contains(plugin))
        .unwrap_or_else(|| (REST.to_owned(), name.to_owned()))
}

fn flat(name: &str, is_directory: bool, extractors: &BTreeSet<String>) -> Option<(String, String)> {
    let known = FLAT.iter().find(|(entry, ..)| *entry == name);
    if let Some((_, plugin, path)) = known {
        return Some(((*plugin).to_owned(), (*path).to_owned()));
    }
    if !is_directory {
        return None;
    }
    // Test versions of 0.8 name directories after extractors.
    if let Some(plugin) = plugin(name).filter(|plugin| extractors.contains(plugin)) {
        return Some((plugin, String::new()));
    }
    Some(("wget".to_owned(), name.to_owned()))
}

/// Whether a success of the plugin without a file is none.
pub fn requires_files(plugin: &str) -> bool {
    WITH_FILES.contains(&plugin)
}

/// Returns the path, within the directory of the extractor's plugin, of a file that a result names as its
/// output. `None` if that is a text, or a file of another plugin.
pub fn output_path(
    layout: Layout,
    extractor: &str,
    output: &str,
    extractors: &BTreeSet<String>,
) -> Option<String> {
    let parts: Vec<&str> = output.trim_end_matches('/').split('/').collect();
    let is_path = parts.iter().all(|part| !matches!(*part, "" | "." | ".."));
    if !is_path || output.contains('\0') {
        return None;
    }
    let (first, rest) = (parts[0], &parts[1..]);
    let path = match layout {
        Layout::Plugins if first == extractor => rest.join("/"),
        Layout::Plugins => parts.join("/"),
        Layout::Flat => {
            let (owner, path) =
                plugin_path(layout, first, !rest.is_empty() || output.ends_with('/'), extractors);
            if Some(owner) != plugin(extractor) {
                return None;
            }
            let path = [path.as_str()].into_iter().filter(|path| !path.is_empty());
            path.chain(rest.iter().copied()).collect::<Vec<_>>().join("/")
        }
    };
    Some(path)
}

/// Returns the verdict that a state of ArchiveBox means.
pub fn verdict(status: &str, output: &str) -> Verdict {
    let reason = output.trim();
    let error = |text: &str| Some(text.to_owned());
    let (state, error) = match status {
        // Versions before 0.4 spell it with one e.
        "succeeded" | "succeded" => (ResultState::Succeeded, None),
        "failed" if reason.is_empty() => (ResultState::Failed, error("failed in ArchiveBox")),
        "failed" => (ResultState::Failed, error(reason)),
        "skipped" if reason.is_empty() => (ResultState::Skipped, error("skipped in ArchiveBox")),
        "skipped" => (ResultState::Skipped, error(reason)),
        "noresults" | "noresult" => (ResultState::NoResults, None),
        _ => (ResultState::Skipped, Some(format!("ArchiveBox had not ended it: {status}"))),
    };
    Verdict { state, error }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn entries_belong_to_the_plugin_with_a_result() {
        let all = names(&["wget", "dom", "media", "title"]);
        for (name, is_directory, plugin, path) in [
            ("output.html", false, "dom", "output.html"),
            ("warc", true, "wget", "warc"),
            ("127.0.0.1+8080", true, "wget", "127.0.0.1+8080"),
            ("media", true, "media", ""),
            // without a result
            ("output.pdf", false, REST, "output.pdf"),
            ("git", true, REST, "git"),
            ("index.html", false, REST, "index.html"),
            ("index.json", false, REST, "index.json"),
        ] {
            let found = plugin_path(Layout::Flat, name, is_directory, &all);
            assert_eq!(found, (plugin.to_owned(), path.to_owned()), "{name}");
        }
        let moved =
            |name: &str, is_directory| plugin_path(Layout::Flat, name, is_directory, &all).0;
        assert_eq!(moved("output.html", false), "dom");
        assert_eq!(moved("localhost", true), "wget");
        assert_eq!(moved("dom", true), "dom");
        assert_eq!(moved("index.jsonl", false), REST);
        let nine =
            |name: &str, is_directory| plugin_path(Layout::Plugins, name, is_directory, &all);
        assert_eq!(nine("wget", true), ("wget".to_owned(), String::new()));
        assert_eq!(nine("../x", true).0, REST);
        assert_eq!(nine("index.jsonl", false), (REST.to_owned(), "index.jsonl".to_owned()));
    }

    #[test]
    fn names_of_our_own_plugins_are_not_taken() {
        for (extractor, expected) in [
            ("wget", Some("wget")),
            ("hashes", Some("archivebox_hashes")),
            ("import", Some("archivebox_import")),
            ("", None),
            (".earlier", None),
            ("a/b", None),
            ("..", None),
            ("Wget", None),
        ] {
            assert_eq!(plugin(extractor).as_deref(), expected, "{extractor}");
        }
    }

    #[test]
    fn outputs_are_paths_or_texts() {
        let all = names(&["wget", "dom", "title", "readability"]);
        for (plugin, output, expected) in [
            ("dom", "output.html", Some("output.html")),
            ("wget", "a.test/index.html", Some("a.test/index.html")),
            ("wget", "warc/", Some("warc")),
            ("readability", "readability/content.html", Some("content.html")),
            ("title", "A title", None),
            ("title", "output.html", None),
            ("dom", "../../etc/passwd", None),
            ("wget", "/etc/passwd", None),
        ] {
            let found = output_path(Layout::Flat, plugin, output, &all);
            assert_eq!(found.as_deref(), expected, "{output}");
        }
        let nine = |output: &str| output_path(Layout::Plugins, "dom", output, &all);
        assert_eq!(nine("dom/output.html").as_deref(), Some("output.html"));
        assert_eq!(nine("output.html").as_deref(), Some("output.html"));
    }

    #[test]
    fn every_state_has_a_verdict_with_a_reason() {
        let state = |status: &str| verdict(status, "").state;
        assert_eq!(state("succeeded"), ResultState::Succeeded);
        assert_eq!(state("succeded"), ResultState::Succeeded);
        assert_eq!(state("noresults"), ResultState::NoResults);
        for status in ["failed", "skipped", "queued", "backoff", "", "\u{1b}[31m"] {
            let verdict = verdict(status, "");
            assert!(verdict.state.is_final() && verdict.error.is_some(), "{status}");
        }
        assert_eq!(verdict("failed", " Boom ").error.as_deref(), Some("Boom"));
    }
}
