//! What lighthouse checks require: lighthouse, chromium and a recent node.

use super::Check;
use crate::machine::browser;
use archivist_checks::lighthouse::{INSTALL, NODE_NEEDED, program};
use archivist_config::Scope;
use archivist_config::declare::watch::Schedule;
use archivist_core::model::CheckKind;
use archivist_shared::bus::documents::watches::Watch;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where Debian and npm put node. The library is not searched: hooks own it, so that the caller
/// must not execute its programs.
const NODE: [&str; 2] = ["/usr/local/bin/node", "/usr/bin/node"];

/// Major and minor version.
type Version = (u32, u32);

struct Found {
    lighthouse: bool,
    chromium: bool,
    /// Whether the library has a node of its own, which is found first.
    node_in_library: bool,
    node: Option<String>,
    /// Oldest node that this lighthouse supports.
    needed: Version,
}

/// Returns the check if a watch has a schedule for lighthouse.
pub fn check(watches: &[Watch], scope: &Scope) -> Option<Check> {
    let off = Schedule::off().words;
    let is_scheduled = |watch: &Watch| {
        let words = watch.schedules.get(&CheckKind::Lighthouse);
        words.is_some_and(|words| *words != off)
    };
    if !watches.iter().any(is_scheduled) {
        return None;
    }
    let library = scope.data_dir().join("lib");
    let program = program(Some(&library));
    let needed = program.as_deref().and_then(node_needed);
    let browser = browser::settings(scope, true);
    let browser = browser.ok().and_then(|settings| browser::path(&settings));
    Some(judge(&Found {
        lighthouse: program.is_some(),
        chromium: browser.is_some_and(|path| path.is_file()),
        node_in_library: library.join("bin/node").exists(),
        node: node_version(),
        needed: needed.unwrap_or(NODE_NEEDED),
    }))
}

fn judge(found: &Found) -> Check {
    const NAME: &str = "lighthouse";
    let (major, minor) = found.needed;
    let needs =
        format!("lighthouse checks require lighthouse, chromium and node {major}.{minor} or newer");
    let missing: Vec<_> = [
        (found.lighthouse, "lighthouse"),
        (found.chromium, "chromium"),
        (found.node.is_some() || found.node_in_library, "node"),
    ]
    .into_iter()
    .filter_map(|(is_there, name)| (!is_there).then_some(name))
    .collect();
    if !missing.is_empty() {
        let what = format!("{needs}; not installed: {}", missing.join(", "));
        return Check::warn(NAME, what, INSTALL);
    }
    let node = found.node.as_deref().filter(|_| !found.node_in_library);
    let Some(node) = node else {
        return Check::ok(NAME, "installed, with the node of the library");
    };
    match version(node) {
        Some(version) if version < found.needed => Check::warn(
            NAME,
            format!("{needs}; node is {node}"),
            "install a newer node, or an older lighthouse: npm install --global lighthouse@VERSION",
        ),
        _ => Check::ok(NAME, format!("installed, with node {node}")),
    }
}

/// Returns the oldest node that the package of this program supports, from its package.json.
fn node_needed(lighthouse: &Path) -> Option<Version> {
    let program = lighthouse.canonicalize().ok()?;
    let package: PathBuf = program
        .ancestors()
        .map(|directory| directory.join("package.json"))
        .find(|path| path.is_file())?;
    let package: Value = serde_json::from_slice(&fs::read(package).ok()?).ok()?;
    version(package["engines"]["node"].as_str()?.strip_prefix(">=")?)
}

fn node_version() -> Option<String> {
    let node = NODE.into_iter().find(|path| Path::new(path).is_file())?;
    let output = Command::new(node).arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim().trim_start_matches('v').to_owned())
}

/// Reads the first two numbers of a version.
fn version(text: &str) -> Option<Version> {
    let mut parts = text.trim().trim_start_matches('v').split('.');
    let major = parts.next()?.parse().ok()?;
    let minor = parts.next().map_or(Some(0), |minor| minor.parse().ok())?;
    Some((major, minor))
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;

    #[test]
    fn missing_programs_and_an_old_node_are_named() {
        let found = |lighthouse, node: Option<&str>| Found {
            lighthouse,
            chromium: true,
            node_in_library: false,
            node: node.map(str::to_owned),
            needed: (18, 16),
        };
        let missing = judge(&found(false, None));
        assert!(missing.what.contains("node 18.16 or newer"), "{missing:?}");
        assert!(missing.what.ends_with("not installed: lighthouse, node"), "{missing:?}");
        assert_eq!(missing.fix(), Some(INSTALL));
        let old = judge(&found(true, Some("16.20.1")));
        assert!(old.what.ends_with("node is 16.20.1"), "{old:?}");
        for good in ["18.16.0", "20.19.2", "22"] {
            assert_eq!(judge(&found(true, Some(good))).verdict(), Verdict::Ok, "{good}");
        }
    }

    #[test]
    fn the_package_of_lighthouse_names_its_node() {
        let top = tempfile::tempdir().unwrap();
        let package = top.path().join("lib/node_modules/lighthouse");
        fs::create_dir_all(package.join("cli")).unwrap();
        fs::write(package.join("cli/index.js"), "").unwrap();
        fs::write(
            package.join("package.json"),
            r#"{"name": "lighthouse", "engines": {"node": ">=22.19"}}"#,
        )
        .unwrap();
        let program = top.path().join("lighthouse");
        std::os::unix::fs::symlink(package.join("cli/index.js"), &program).unwrap();
        assert_eq!(node_needed(&program), Some((22, 19)));
    }
}
