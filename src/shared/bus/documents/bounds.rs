//! Limits of one report. The worker applies them while it reads the output of a hook, and the
//! orchestrator applies them again, because it does not trust workers.

use crate::bus::documents::report::File;
use crate::bus::documents::work::{Child, Derived, Found, Report};
use archivist_core::model::{TAG_MAX, TEXT_MAX, TIME_MAX, Tags, URL_MAX, cut};
use serde::Serialize;
use std::collections::{BTreeMap, HashSet};

/// Child pages that one hook may name: the links of a large page or sitemap.
pub const CHILDREN_MAX: usize = 20_000;
/// Size of all child pages as JSON, in bytes.
const CHILDREN_BYTES: usize = 4 << 20;
/// Files in one report; of further files only the sizes are added up.
pub const FILES_MAX: usize = 1000;
/// Size of these files as JSON, in bytes.
const FILES_BYTES: usize = 1 << 20;
/// Settings, programs and requests that one hook may pass to later hooks: most of each kind.
pub const DERIVED_MAX: usize = 100;
/// Size of all of these as JSON, in bytes.
const DERIVED_BYTES: usize = 1 << 20;
/// Longest report as JSON, in bytes. A report within the other limits is shorter.
pub const REPORT_MAX: usize = 8 << 20;

/// Largest list of URLs in a call, in bytes: a million of 60 bytes.
pub const LIST_MAX: usize = 64 << 20;

/// Longest reply of the fleet's database as JSON, in bytes.
pub const DELIVERY_MAX: usize = 16 << 20;

/// Remaining space for documents, in bytes of JSON.
#[derive(Debug)]
struct Room(usize);

impl Room {
    /// Takes the space for `document`; returns false if there is too little.
    fn take(&mut self, document: &impl Serialize) -> bool {
        let size = serde_json::to_string(document).map_or(usize::MAX, |text| text.len());
        let fits = size < self.0;
        if fits {
            self.0 -= size + 1;
        }
        fits
    }
}

/// Child pages, each URL once.
#[derive(Debug)]
pub struct Children {
    list: Vec<Child>,
    known: HashSet<String>,
    room: Room,
    /// Pages left out.
    pub dropped: u64,
    /// Tags of pages left out.
    pub dropped_tags: u64,
}

impl Default for Children {
    fn default() -> Self {
        Children {
            list: Vec::new(),
            known: HashSet::new(),
            room: Room(CHILDREN_BYTES),
            dropped: 0,
            dropped_tags: 0,
        }
    }
}

impl Children {
    /// Adds a page unless it is a duplicate; counts the page as left out beyond a limit.
    pub fn push(&mut self, child: Child) {
        if self.known.contains(&child.url) {
            return;
        }
        if child.url.len() > URL_MAX || self.list.len() == CHILDREN_MAX {
            self.dropped += 1;
            return;
        }
        let mut tags = Tags::default();
        tags.extend(child.tags);
        self.dropped_tags += tags.dropped;
        let child = Child {
            url: child.url,
            title: child.title.map(cut),
            bookmarked_at: child.bookmarked_at.filter(|text| text.len() <= TIME_MAX),
            tags: tags.into_names(),
        };
        if self.room.take(&child) {
            self.known.insert(child.url.clone());
            self.list.push(child);
        } else {
            self.dropped += 1;
        }
    }

    /// Returns the pages in the order in which they were added.
    pub fn into_list(self) -> Vec<Child> {
        self.list
    }
}

/// What was left out of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Number of pages.
    pub pages: u64,
    /// Number of tags.
    pub tags: u64,
    /// Settings, programs and requests.
    pub others: u64,
    /// Bytes of output that were not read.
    pub bytes: u64,
}

impl LeftOut {
    /// Returns a remark for the result of the hook; `None` if nothing was left out.
    pub fn remark(&self) -> Option<String> {
        let counts: Vec<String> = [
            (self.pages, "pages"),
            (self.tags, "tags"),
            (self.others, "settings or programs"),
            (self.bytes, "bytes of output"),
        ]
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
        let words = counts.join(", ");
        (!words.is_empty()).then(|| format!("too much for one report, left out: {words}"))
    }
}

/// Returns the first files that fit.
pub fn files(found: impl IntoIterator<Item = File>) -> Vec<File> {
    let mut room = Room(FILES_BYTES);
    let found = found.into_iter().take(FILES_MAX);
    found.take_while(|file| room.take(file)).collect()
}

/// Shortens the texts of a program, and drops variables that are too many or too long.
pub fn program(found: Found) -> Found {
    let mut room = Room(TEXT_MAX);
    let env: BTreeMap<String, String> =
        found.env.into_iter().take(DERIVED_MAX).filter(|entry| room.take(entry)).collect();
    Found {
        name: found.name,
        abspath: cut(found.abspath),
        version: found.version.map(cut),
        provider: found.provider.map(cut),
        env,
    }
}

/// Returns what a hook passes on within the limits, and how much was left out.
pub fn derived(derived: Derived) -> (Derived, u64) {
    let mut room = Room(DERIVED_BYTES);
    let all = derived.settings.len() + derived.programs.len() + derived.wanted.len();
    let settings: BTreeMap<String, String> = derived
        .settings
        .into_iter()
        .take(DERIVED_MAX)
        .filter(|(key, value)| key.len() + value.len() <= TEXT_MAX)
        .filter(|entry| room.take(entry))
        .collect();
    let programs: Vec<Found> = derived
        .programs
        .into_iter()
        .take(DERIVED_MAX)
        .filter(|found| found.name.len() <= TEXT_MAX)
        .map(program)
        .filter(|found| room.take(found))
        .collect();
    let wanted: BTreeMap<String, String> = derived
        .wanted
        .into_iter()
        .take(DERIVED_MAX)
        .filter(|(name, from)| name.len() <= TAG_MAX && from.len() <= TAG_MAX)
        .filter(|entry| room.take(entry))
        .collect();
    let sonic = derived.sonic.filter(|wish| {
        let host = wish.host.as_ref().map_or(0, String::len);
        wish.config_path.len() + host <= TEXT_MAX
    });
    let kept = settings.len() + programs.len() + wanted.len();
    let derived = Derived { settings, programs, wanted, sonic };
    (derived, (all - kept) as u64)
}

impl Report {
    /// Returns the report within the limits, with a remark on what was left out.
    pub fn bounded(self) -> Report {
        let mut children = Children::default();
        self.children.into_iter().for_each(|child| children.push(child));
        let mut tags = Tags::default();
        tags.extend(self.tags);
        let (derived, others) = derived(self.derived);
        let left_out = LeftOut {
            pages: children.dropped,
            tags: tags.dropped + children.dropped_tags,
            others,
            ..LeftOut::default()
        };
        let mut verdict = self.verdict;
        verdict.error = verdict.error.map(cut);
        Report {
            verdict: verdict.with_remark(left_out.remark()),
            output: self.output.map(cut),
            files: files(self.files),
            children: children.into_list(),
            tags: tags.into_names(),
            title: self.title.map(cut),
            http_plugin: self.http_plugin.map(cut),
            network_fault: self.network_fault.map(cut),
            binary: self.binary.map(program),
            derived,
            figures: self.figures.bounded(),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_core::model::{Figures, ResultState, TAGS_MAX, Verdict};
    use proptest::prelude::*;

    fn report() -> Report {
        Report {
            key: "p/h".into(),
            verdict: Verdict { state: ResultState::Succeeded, error: None },
            output: None,
            files: Vec::new(),
            size: 7,
            children: Vec::new(),
            tags: Vec::new(),
            title: None,
            binary: None,
            derived: Derived::default(),
            http_status: None,
            http_plugin: None,
            network_fault: None,
            retry_after: None,
            crawl_delay: None,
            ready_at: None,
            recorded: None,
            figures: Figures::default(),
        }
    }

    fn child(url: String) -> Child {
        Child { url, title: None, bookmarked_at: None, tags: Vec::new() }
    }

    #[test]
    fn the_links_of_a_large_page_fit() {
        let urls = (0..CHILDREN_MAX).map(|n| format!("https://example.org/{n:0>100}"));
        let children = urls.map(child).collect();
        let bounded = Report { children, ..report() }.bounded();
        assert_eq!(bounded.children.len(), CHILDREN_MAX);
        assert_eq!(bounded.verdict.error, None);
    }

    #[test]
    fn excess_is_left_out_with_a_remark() {
        let mut children: Vec<Child> =
            (0..CHILDREN_MAX + 5).map(|n| child(n.to_string())).collect();
        children[0].tags = (0..TAGS_MAX + 2).map(|n| n.to_string()).collect();
        children[1].title = Some("t".repeat(1 << 20));
        let tags = (0..2_000_000).map(|n| n.to_string()).collect();
        let bounded = Report { children, tags, ..report() }.bounded();
        assert_eq!(bounded.children.len(), CHILDREN_MAX);
        assert_eq!(
            bounded.verdict.error.as_deref(),
            Some("too much for one report, left out: 5 pages, 1999938 tags")
        );
        let long =
            |n: usize| Child { title: Some("\u{1}".repeat(TEXT_MAX)), ..child(n.to_string()) };
        let children = (0..CHILDREN_MAX).map(long).collect();
        let bounded = Report { children, ..report() }.bounded();
        assert!(bounded.children.len() < 200, "{}", bounded.children.len());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        /// Whatever a worker sends: what is kept is small, and bounding it again changes nothing.
        #[test]
        fn any_report_becomes_a_small_one(text in "[\u{1}a\u{7f}é\"]{1,8}", times in 1usize..40_000, count in 1usize..3000) {
            let long = text.repeat(times / text.len() + 1);
            let many = |n: usize| format!("{n}{}", &long);
            let some = (0..count.min(1 + (8 << 20) / long.len())).map(many).collect::<Vec<_>>();
            let found = |name: &String| Found {
                name: name.clone(),
                abspath: long.clone(),
                version: Some(long.clone()),
                provider: None,
                env: BTreeMap::from([(long.clone(), long.clone())]),
            };
            let file = |path: &String| File { path: path.clone(), mimetype: String::new(), size: 1 };
            let bounded = Report {
                output: Some(long.clone()),
                title: Some(long.clone()),
                tags: some.clone(),
                files: some.iter().map(file).collect(),
                children: some.iter().cloned().map(child).collect(),
                binary: some.first().map(found),
                derived: Derived {
                    settings: some.iter().map(|key| (key.clone(), long.clone())).collect(),
                    programs: some.iter().take(300).map(found).collect(),
                    wanted: some.iter().map(|key| (key.clone(), long.clone())).collect(),
                    sonic: None,
                },
                ..report()
            }.bounded();
            let text = serde_json::to_string(&bounded).unwrap();
            prop_assert!(text.len() < REPORT_MAX, "{}", text.len());
            prop_assert_eq!(bounded.size, 7);
            let again = Report { verdict: bounded.verdict.clone(), ..bounded.clone() }.bounded();
            prop_assert_eq!(again.children.len(), bounded.children.len());
            prop_assert_eq!(again.tags, bounded.tags);
            prop_assert_eq!(again.files.len(), bounded.files.len());
        }
    }
}
