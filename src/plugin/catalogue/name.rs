//! Parses hook file names: `on_<Event>__[<NN>_]<name>[.finite|.daemon][.bg].<ext>`.

use serde::{Deserialize, Serialize};

pub use crate::catalogue::family::{HookFamily, Owner};

/// How a hook runs relative to later hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// The next hook starts when this one has ended.
    Foreground,
    /// Runs concurrently and ends by itself, within its time limit.
    Finite,
    /// Runs concurrently until it is stopped. This is the mode of a plain `.bg.` name.
    Daemon,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookName {
    /// When the hook runs.
    pub family: HookFamily,
    /// Number in the order of its family; 0 if the name has no number.
    pub order: u32,
    /// The short name, such as `wget` or `chrome_launch`.
    pub name: String,
    /// Whether and how long the next hook waits for it.
    pub mode: Mode,
}

/// Endings of backup files of editors and packaging tools, which often have execute permission.
const LEFTOVERS: [&str; 9] =
    ["~", ".bak", ".orig", ".rej", ".swp", ".tmp", ".pyc", ".rpmsave", ".rpmnew"];

impl HookName {
    /// Parses a file name. `None` for files that are not hooks, including backup copies.
    pub fn parse(file_name: &str) -> Option<HookName> {
        if is_leftover(file_name) {
            return None;
        }
        let (family, rest) = file_name.strip_prefix("on_")?.split_once("__")?;
        let family = HookFamily::parse(family)?;
        let (order, rest) = split_order(rest);

        let mut words: Vec<&str> = rest.split('.').collect();
        if words.len() > 1 {
            words.pop(); // the extension
        }
        let background = rest.contains(".bg.") || words[0].contains("__background");
        let finite = words[1..].contains(&"finite");
        let short: Vec<&str> = std::iter::once(words[0])
            .chain(words[1..].iter().copied())
            .enumerate()
            .filter(|(at, word)| *at == 0 || !["bg", "finite", "daemon"].contains(word))
            .map(|(_, word)| word)
            .collect();
        let name = short.join(".").replace("__background", "");

        let plain = |c: char| c.is_ascii_alphanumeric() || "_-.+".contains(c);
        if name.is_empty() || name.starts_with('.') || !name.chars().all(plain) {
            return None;
        }
        let mode = match (background, finite) {
            (false, _) => Mode::Foreground,
            (true, true) => Mode::Finite,
            (true, false) => Mode::Daemon,
        };
        Some(HookName { family, order, name, mode })
    }
}

fn is_leftover(file_name: &str) -> bool {
    LEFTOVERS.iter().any(|end| file_name.ends_with(end))
        || [".dpkg-", ".ucf-"].iter().any(|end| {
            file_name
                .rsplit_once('.')
                .is_some_and(|(head, _)| file_name[head.len()..].starts_with(end))
        })
}

/// Splits off the number: digits followed by `_`. Digits alone are a name.
fn split_order(rest: &str) -> (u32, &str) {
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    match rest[digits..].strip_prefix('_') {
        Some(name) if digits > 0 && !name.starts_with('_') => {
            (rest[..digits].parse().unwrap_or(u32::MAX), name)
        }
        _ => (0, rest),
    }
}

/// Step in the older generation: the tens digit of a two-digit number, or 9 without one.
pub fn step(file_name: &str) -> u32 {
    let bytes = file_name.as_bytes();
    bytes
        .windows(5)
        .find(|w| {
            w[0] == b'_'
                && w[1] == b'_'
                && w[2].is_ascii_digit()
                && w[3].is_ascii_digit()
                && w[4] == b'_'
        })
        .map_or(9, |w| u32::from(w[2] - b'0'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(file: &str) -> (HookFamily, u32, String, Mode) {
        let n = HookName::parse(file).unwrap_or_else(|| panic!("{file} should be a hook"));
        (n.family, n.order, n.name, n.mode)
    }

    #[test]
    fn names_of_the_package_are_parsed() {
        use HookFamily::*;
        use Mode::*;
        let cases = [
            ("on_Snapshot__06_wget.finite.bg.py", Snapshot, 6, "wget", Finite),
            (
                "on_CrawlSetup__90_chrome_launch.daemon.bg.js",
                CrawlSetup,
                90,
                "chrome_launch",
                Daemon,
            ),
            (
                "on_CrawlSetup__89_chrome_kill_zombies.js",
                CrawlSetup,
                89,
                "chrome_kill_zombies",
                Foreground,
            ),
            ("on_BinaryRequest__00_env.py", BinaryRequest, 0, "env", Foreground),
            ("on_Snapshot__54_title.js", Snapshot, 54, "title", Foreground),
        ];
        for (file, event, order, name, mode) in cases {
            assert_eq!(parsed(file), (event, order, name.to_owned(), mode), "{file}");
        }
    }

    #[test]
    fn names_of_the_older_generation_are_parsed() {
        use HookFamily::*;
        use Mode::*;
        let cases = [
            ("on_Crawl__20_chrome_launch.bg.js", Crawl, 20, "chrome_launch", Daemon),
            ("on_Crawl__20_chrome_launch__background.js", Crawl, 20, "chrome_launch", Daemon),
            ("on_CrawlEnd__99_report.sh", CrawlEnd, 99, "report", Foreground),
            ("on_Binary__10_pip_install.py", Binary, 10, "pip_install", Foreground),
            ("on_Snapshot__noorder.py", Snapshot, 0, "noorder", Foreground),
            ("on_Snapshot__7_one_digit.py", Snapshot, 7, "one_digit", Foreground),
            ("on_Snapshot__120_three.py", Snapshot, 120, "three", Foreground),
            ("on_Snapshot__06.py", Snapshot, 0, "06", Foreground),
            ("on_Snapshot__10_tool.v2.bg.sh", Snapshot, 10, "tool.v2", Daemon),
            ("on_Snapshot__10_no_extension", Snapshot, 10, "no_extension", Foreground),
            ("on_Snapshot__99999999999_x.py", Snapshot, u32::MAX, "x", Foreground),
        ];
        for (file, event, order, name, mode) in cases {
            assert_eq!(parsed(file), (event, order, name.to_owned(), mode), "{file}");
        }
    }

    #[test]
    fn other_files_are_not_hooks() {
        for file in [
            "config.json",
            "on_Snapshot_06_wget.py",
            "on_snapshot__06_wget.py",
            "on_Snapshots__06_wget.py",
            "on_Snapshot__",
            "on_Snapshot__06_.py",
            "on_Snapshot__06_wget.py~",
            "on_Snapshot__06_wget.py.bak",
            "on_Snapshot__06_wget.py.dpkg-new",
            "on_Snapshot__06_we get.py",
            "on_Snapshot__06_a\nb.py",
            "",
        ] {
            assert_eq!(HookName::parse(file), None, "{file:?}");
        }
    }

    #[test]
    fn step_is_the_tens_digit() {
        assert_eq!(step("on_Snapshot__06_wget.py"), 0);
        assert_eq!(step("on_Snapshot__54_title.js"), 5);
        assert_eq!(step("on_Snapshot__90_index.py"), 9);
        assert_eq!(step("on_Snapshot__title.js"), 9);
        assert_eq!(step("on_Snapshot__120_three.py"), 9);
        assert_eq!(step(""), 9);
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text in "\\PC{0,60}", tail in "on_(Snapshot|Crawl)__\\PC{0,30}") {
            let _ = (HookName::parse(&text), step(&text), HookName::parse(&tail), step(&tail));
        }

        #[test]
        fn valid_name_round_trips(order in 0u32..100, name in "[a-z][a-z0-9_]{0,12}[a-z0-9]",
                                   event in 0usize..8, end in prop::sample::select(vec!["", ".bg", ".finite.bg", ".daemon.bg"])) {
            prop_assume!(!name.contains("__"));
            let event = HookFamily::ALL[event];
            let got = HookName::parse(&format!("on_{event}__{order:02}_{name}{end}.py")).unwrap();
            prop_assert_eq!(got.family, event);
            prop_assert_eq!(got.order, order);
            prop_assert_eq!(got.name, name);
            prop_assert_eq!(got.mode != Mode::Foreground, !end.is_empty());
        }
    }
}
