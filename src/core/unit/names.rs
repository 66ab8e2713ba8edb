//! Names of units: `archivist-KIND-[PLUGIN-HOOK-]OWNER.service` and the slices above them. The
//! order of kind, plugin, hook and owner makes drop-ins and globs of systemd work.

use super::Network;
use crate::model::{CheckKind, CrawlId, Owner, Pool, RunId, SnapshotId};
use std::fmt::Write;

/// Defines the kinds of units: for each the word in the names of its units, and a function that says
/// whether the rest of a name is one that [`Names`] makes.
macro_rules! unit_kinds {
    ($($(#[$doc:meta])* $kind:ident, $word:literal, $fits:expr;)+) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum UnitKind {
            $($(#[$doc])* $kind,)+
        }

        impl UnitKind {
            pub const ALL: [UnitKind; [$($word),+].len()] = [$(UnitKind::$kind),+];

            /// Returns the part of the unit name after the prefix.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(UnitKind::$kind => $word,)+
                }
            }

            /// Whether a name of this kind may end with `rest`.
            fn fits(self, rest: &str) -> bool {
                let fits: fn(&str) -> bool = match self {
                    $(UnitKind::$kind => $fits,)+
                };
                fits(rest)
            }
        }
    };
}

unit_kinds! {
    /// Worker of a crawl.
    CrawlWorker, "crawl", is_number;
    /// Worker of a snapshot.
    SnapshotWorker, "snapshot", is_number;
    /// One run of a hook.
    Hook, "hook", |rest| rest.rsplit_once('-').is_some_and(|(_, owner)| is_owner(owner));
    /// Of a watch.
    Check, "check", |rest| {
        rest.split_once('-').is_some_and(|(kind, id)| CheckKind::parse(kind).is_some() && is_number(id))
    };
    /// The alert for a site that went down or recovered.
    Alert, "alert", is_number;
    /// A transfer between the archive and its store.
    Store, "store", |rest| rest == STORE_TEST || matches!(rest.parse(), Ok(Owner::Snapshot(_)));
    /// Removes the files of deleted crawls and snapshots.
    Delete, "delete", is_number;
    /// Adds snapshots to the index of full text search.
    Index, "index", |rest| rest == INDEX_PAGES;
    /// Asks the index of full text search.
    Search, "search", is_number;
    /// Writes the directories of entries of a list, which are kept without a visit.
    Entries, "entries", is_number;
    /// Replays the recording of a page.
    Verify, "verify", is_number;
}

impl UnitKind {
    /// Returns the kind of this name, or `None` if the name is unknown.
    pub fn parse(text: &str) -> Option<UnitKind> {
        UnitKind::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<i64>().is_ok()
}

fn is_owner(text: &str) -> bool {
    text.parse::<Owner>().is_ok()
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// `archivist`, or `archivist-NAME` for a further instance.
    prefix: String,
}

const STORE_TEST: &str = "test";
/// Rest of the name of the unit that changes the index of full text search: there is one at a time.
const INDEX_PAGES: &str = "pages";

/// Longest part of a name from a plugin, in characters: a unit name has at most 255.
const PART_MAX: usize = 80;

/// Escapes the name of a plugin or hook to one dash-free part of a unit name, as in
/// systemd.unit(5): anything but `[A-Za-z0-9_.]` becomes `\xNN`.
fn escape(part: &str) -> String {
    let mut out = String::new();
    for byte in part.bytes() {
        if byte.is_ascii_alphanumeric() || byte == b'_' || (byte == b'.' && !out.is_empty()) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "\\x{byte:02x}");
        }
        if out.len() >= PART_MAX {
            break;
        }
    }
    out
}

impl Names {
    /// Takes the prefix of all units of an instance, such as `archivist`.
    pub fn new(prefix: impl Into<String>) -> Names {
        Names { prefix: prefix.into() }
    }

    /// Returns the name of the instance; `None` for the default one.
    pub fn instance(&self) -> Option<&str> {
        self.prefix.strip_prefix("archivist-")
    }

    pub fn crawl_worker(&self, id: CrawlId) -> String {
        format!("{}-crawl-{}.service", self.prefix, id.0)
    }

    pub fn snapshot_worker(&self, id: SnapshotId) -> String {
        format!("{}-snapshot-{}.service", self.prefix, id.0)
    }

    /// Returns the unit of one hook for one owner; the name of the plugin is not repeated for a
    /// hook of the same name.
    pub fn hook(&self, plugin: &str, hook: &str, owner: Owner) -> String {
        let (plugin, hook) = (escape(plugin), escape(hook));
        if plugin == hook {
            format!("{}-hook-{plugin}-{owner}.service", self.prefix)
        } else {
            format!("{}-hook-{plugin}-{hook}-{owner}.service", self.prefix)
        }
    }

    /// Returns the unit of a kind of which a crawl or snapshot has at most one at a time.
    pub fn unit(&self, kind: UnitKind, owner: Owner) -> String {
        format!("{}-{}-{owner}.service", self.prefix, kind.as_str())
    }

    /// Returns the unit of one check or alert of a watch.
    pub fn check(&self, kind: CheckKind, id: RunId) -> String {
        match kind {
            CheckKind::Alert => format!("{}-alert-{}.service", self.prefix, id.0),
            kind => format!("{}-check-{kind}-{}.service", self.prefix, id.0),
        }
    }

    /// Returns the unit of a transfer between the archive and its store: of a snapshot, or of the test
    /// of the store.
    pub fn store(&self, snapshot: Option<SnapshotId>) -> String {
        match snapshot {
            Some(id) => self.unit(UnitKind::Store, Owner::Snapshot(id)),
            None => format!("{}-store-{STORE_TEST}.service", self.prefix),
        }
    }

    /// Returns the unit that changes the index of full text search.
    pub fn index_pages(&self) -> String {
        format!("{}-{}-{INDEX_PAGES}.service", self.prefix, UnitKind::Index.as_str())
    }

    /// Returns the unit of one of many runs in a row. Its name has the number of the run: the next one starts
    /// while systemd still forgets the one before.
    pub(super) fn of_run(&self, kind: UnitKind, id: RunId) -> String {
        format!("{}-{}-{}.service", self.prefix, kind.as_str(), id.0)
    }

    pub fn store_slice(&self) -> String {
        format!("{}-store.slice", self.prefix)
    }

    pub fn check_slice(&self, pool: Pool) -> String {
        format!("{}-check-{}.slice", self.prefix, pool.as_str())
    }

    /// Returns the scope of a command in the foreground; the second number distinguishes it from an
    /// earlier process with the same pid.
    pub fn run_scope(&self, pid: u32, other: u32) -> String {
        format!("{}-run-{pid}-{other:08x}.scope", self.prefix)
    }

    /// Returns the slice above all units.
    pub fn top_slice(&self) -> String {
        format!("{}.slice", self.prefix)
    }

    pub fn crawl_slice(&self, id: CrawlId) -> String {
        format!("{}-crawl-{}.slice", self.prefix, id.0)
    }

    /// Returns the unit of the private network of one crawl. It is named like the crawl's slice,
    /// which contains it. With `neighbours`, hooks also reach private networks next to the machine.
    pub fn network(&self, id: CrawlId, neighbours: bool) -> Network {
        self.network_of(self.crawl_slice(id), neighbours)
    }

    /// The network that checks with a browser have to themselves, all that run at one time: the
    /// browser listens on the loopback.
    pub fn check_network(&self, neighbours: bool) -> Network {
        self.network_of(self.check_slice(Pool::Slow), neighbours)
    }

    fn network_of(&self, slice: String, neighbours: bool) -> Network {
        let name = slice.strip_suffix(".slice").unwrap_or(&slice);
        let instance = name.strip_prefix("archivist-").unwrap_or(name);
        let kind = if neighbours { "-local" } else { "" };
        Network {
            unit: format!("archivist-network{kind}@{instance}.service"),
            path: format!("/run/netns/archivist{kind}-{instance}").into(),
        }
    }

    /// Returns patterns for ListUnitsByPatterns that match all workers, hooks and checks.
    pub fn patterns(&self) -> Vec<String> {
        let pattern = |kind: UnitKind| format!("{}-{}-*.service", self.prefix, kind.as_str());
        UnitKind::ALL.into_iter().map(pattern).collect()
    }

    pub fn slice_pattern(&self) -> String {
        format!("{}-crawl-*.slice", self.prefix)
    }

    pub fn crawl_of_slice(&self, unit: &str) -> Option<CrawlId> {
        let rest = unit.strip_prefix(self.prefix.as_str())?;
        let number = rest.strip_prefix("-crawl-")?.strip_suffix(".slice")?;
        let id = CrawlId(number.parse().ok()?);
        (self.crawl_slice(id) == unit).then_some(id)
    }

    /// Returns the kind of the unit with this name; `None` for units that are not of this instance, or
    /// that the orchestrator does not start.
    pub fn kind_of(&self, unit: &str) -> Option<UnitKind> {
        let rest =
            unit.strip_prefix(self.prefix.as_str())?.strip_prefix('-')?.strip_suffix(".service")?;
        let (kind, rest) = rest.split_once('-')?;
        UnitKind::parse(kind).filter(|kind| kind.fits(rest))
    }

    /// Returns the crawl or snapshot that the unit of this name works on.
    pub fn owner_of(&self, unit: &str) -> Option<Owner> {
        let kind = self.kind_of(unit)?;
        let (_, last) = unit.strip_suffix(".service")?.rsplit_once('-')?;
        let number = || last.parse().ok();
        match kind {
            UnitKind::CrawlWorker => number().map(|id| Owner::Crawl(CrawlId(id))),
            UnitKind::SnapshotWorker => number().map(|id| Owner::Snapshot(SnapshotId(id))),
            _ => last.parse().ok(),
        }
    }

    /// Returns the unit of this object path, if it is one of this instance.
    pub fn unit_of_path(&self, path: &str) -> Option<String> {
        let encoded = path.strip_prefix("/org/freedesktop/systemd1/unit/")?;
        let mut bytes = Vec::with_capacity(encoded.len());
        let mut rest = encoded.as_bytes();
        while let Some((&first, tail)) = rest.split_first() {
            if first == b'_' && tail.len() >= 2 {
                let hex = std::str::from_utf8(&tail[..2]).ok()?;
                bytes.push(u8::from_str_radix(hex, 16).ok()?);
                rest = &tail[2..];
            } else {
                bytes.push(first);
                rest = tail;
            }
        }
        let unit = String::from_utf8(bytes).ok()?;
        self.kind_of(&unit).is_some().then_some(unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_tree() {
        let names = Names::new("archivist");
        let (crawl, snapshot) = (Owner::Crawl(CrawlId(12)), Owner::Snapshot(SnapshotId(345)));
        assert_eq!(names.hook("wget", "wget", snapshot), "archivist-hook-wget-s345.service");
        assert_eq!(
            names.hook("chrome", "chrome_launch", crawl),
            "archivist-hook-chrome-chrome_launch-c12.service"
        );
        assert_eq!(names.crawl_slice(CrawlId(12)), "archivist-crawl-12.slice");
        let network = names.network(CrawlId(12), false);
        assert_eq!(network.unit, "archivist-network@crawl-12.service");
        assert_eq!(network.path.to_str(), Some("/run/netns/archivist-crawl-12"));
        let network = names.network(CrawlId(12), true);
        assert_eq!(network.unit, "archivist-network-local@crawl-12.service");
        let path = "/run/netns/archivist-local-crawl-12";
        assert_eq!(network.path.to_str(), Some(path));
        assert_eq!(names.crawl_of_slice("archivist-crawl-12.slice"), Some(CrawlId(12)));
        assert_eq!(names.crawl_of_slice("archivist-crawl.slice"), None);
        assert_eq!(names.crawl_of_slice("archivist-crawl-+1.slice"), None);
        assert_eq!(names.hook("a-b", "c d", crawl), "archivist-hook-a\\x2db-c\\x20d-c12.service");
    }

    #[test]
    fn names_round_trip_and_strangers_do_not() {
        let names = Names::new("archivist-second");
        let owner = Owner::Snapshot(SnapshotId(7));
        let hook = names.hook("a-b", "x", owner);
        assert_eq!(names.kind_of(&hook), Some(UnitKind::Hook));
        let worker = names.snapshot_worker(SnapshotId(7));
        assert_eq!(names.kind_of(&worker), Some(UnitKind::SnapshotWorker));
        let worker = names.crawl_worker(CrawlId(7));
        assert_eq!(names.kind_of(&worker), Some(UnitKind::CrawlWorker));
        for (neighbours, unit) in [
            (false, "archivist-network@second-crawl-7.service"),
            (true, "archivist-network-local@second-crawl-7.service"),
        ] {
            assert_eq!(names.network(CrawlId(7), neighbours).unit, unit);
            assert_eq!(names.kind_of(unit), None);
        }
        for (unit, owner) in [
            (names.hook("a-b", "x", owner), Some(owner)),
            (names.snapshot_worker(SnapshotId(7)), Some(owner)),
            (names.crawl_worker(CrawlId(7)), Some(Owner::Crawl(CrawlId(7)))),
            (names.store(Some(SnapshotId(7))), Some(owner)),
            (names.store(None), None),
            (names.check(CheckKind::Status, RunId(7)), None),
        ] {
            assert_eq!(names.owner_of(&unit), owner, "{unit}");
        }
        let check = names.check(CheckKind::Status, RunId(12));
        assert_eq!(check, "archivist-second-check-status-12.service");
        assert_eq!(names.kind_of(&check), Some(UnitKind::Check));
        let alert = names.check(CheckKind::Alert, RunId(13));
        assert_eq!(alert, "archivist-second-alert-13.service");
        assert_eq!(names.kind_of(&alert), Some(UnitKind::Alert));
        let transfer = names.store(Some(SnapshotId(345)));
        assert_eq!(transfer, "archivist-second-store-s345.service");
        assert_eq!(names.kind_of(&transfer), Some(UnitKind::Store));
        let test = names.store(None);
        assert_eq!(names.kind_of(&test), Some(UnitKind::Store));
        for stranger in [
            "archivist-second-store-c7.service",
            "archivist-second-store.slice",
            "archivist-second-check-fast.slice",
            "archivist-second-check-other-12.service",
            "archivist-second-orchestrator.service",
            "archivist-second-crawl-7.slice",
            "archivist-crawl-7.service",
            "archivist-second-crawl-x.service",
            "archivist-second-hook-wget-.service",
            "ssh.service",
        ] {
            assert_eq!(names.kind_of(stranger), None, "{stranger}");
        }
    }

    #[test]
    fn bus_paths_are_decoded() {
        let names = Names::new("archivist");
        let path = "/org/freedesktop/systemd1/unit/archivist_2dhook_2dwget_2ds3_2eservice";
        assert_eq!(names.unit_of_path(path).as_deref(), Some("archivist-hook-wget-s3.service"));
        assert_eq!(names.unit_of_path("/org/freedesktop/systemd1/unit/ssh_2eservice"), None);
        assert_eq!(names.unit_of_path("/org/freedesktop/systemd1/unit/_"), None);
    }

    #[test]
    fn the_longest_names_fit() {
        let names = Names::new("archivist");
        let long = "\u{1F980}".repeat(200);
        assert!(names.hook(&long, &long, Owner::Crawl(CrawlId(i64::MAX))).len() < 255);
    }

    /// As systemd names objects on the bus: sd_bus_path_encode(3).
    fn path_of(unit: &str) -> String {
        let encode = |(place, byte): (usize, u8)| {
            let plain = byte.is_ascii_alphabetic() || (byte.is_ascii_digit() && place > 0);
            if plain { char::from(byte).to_string() } else { format!("_{byte:02x}") }
        };
        let encoded: String = unit.bytes().enumerate().map(encode).collect();
        format!("/org/freedesktop/systemd1/unit/{encoded}")
    }

    proptest::proptest! {
        /// For any names of plugins and hooks.
        #[test]
        fn every_hook_has_a_name_that_systemd_takes(plugin in ".{1,200}", hook in ".{1,200}", id in 1i64..) {
            let names = Names::new("archivist-second");
            let owner = Owner::Snapshot(SnapshotId(id));
            let unit = names.hook(&plugin, &hook, owner);
            assert!(unit.len() < 256, "{unit}");
            let allowed = |b: u8| b.is_ascii_alphanumeric() || br"-_.\".contains(&b);
            assert!(unit.bytes().all(allowed), "{unit}");
            assert_eq!(names.kind_of(&unit), Some(UnitKind::Hook));
            assert_eq!(names.unit_of_path(&path_of(&unit)), Some(unit));
        }

        #[test]
        fn no_name_or_path_panics(text in ".{0,60}", rest in "[-_.a-z0-9\\\\]{0,40}") {
            let names = Names::new("archivist");
            let near = [format!("archivist-{rest}"), format!("archivist-crawl-{rest}.slice"),
                format!("/org/freedesktop/systemd1/unit/archivist_2d{rest}{text}")];
            for text in near.iter().chain([&text]) {
                let _ = (names.kind_of(text), names.unit_of_path(text));
                if let Some(id) = names.crawl_of_slice(text) {
                    assert_eq!(&names.crawl_slice(id), text);
                }
            }
        }
    }
}
