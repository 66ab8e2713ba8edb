//! Whether a page that has ended was saved: its document loaded and is no error, and the files of the
//! page are there. The answer is stored with the page when it ends (`snapshot.unsaved`), and everything
//! that keeps, deletes, skips, opens, lists, counts or searches pages reads it.

use crate::model::{Lifecycle, OutputFile, ResultState, Unsaved, is_http_error};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a plugin does for a page. That of a plugin without an entry is the default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageRole {
    /// Whether it opens the page for other plugins, as that of a browser does.
    pub opens_page: bool,
    /// Its files and directories that are of the page; the others are about it, such as digests. `None`: all
    /// are of the page.
    pub page_files: Option<Vec<String>>,
}

/// The roles of plugins by their names.
pub type PageRoles = BTreeMap<String, PageRole>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageResult<'a> {
    pub plugin: &'a str,
    pub state: ResultState,
    pub error: Option<&'a str>,
    /// Bytes of all files.
    pub size: u64,
    /// The files, up to the limit of the list.
    pub files: &'a [OutputFile],
}

impl PageResult<'_> {
    fn has_failed(&self) -> bool {
        self.state == ResultState::Failed
    }

    /// Its files that are of the page.
    fn page_files(&self, role: &PageRole) -> impl Iterator<Item = &OutputFile> {
        let is_kept = move |file: &&OutputFile| {
            let names = role.page_files.as_ref();
            let top = file.path.split('/').next().unwrap_or_default();
            let is_named =
                |names: &Vec<String>| names.iter().any(|name| *name == file.path || name == top);
            file.size > 0 && names.is_none_or(is_named)
        };
        self.files.iter().filter(is_kept)
    }

    /// Whether it has a file of the page.
    fn has_kept(&self, role: &PageRole) -> bool {
        let is_all = role.page_files.is_none();
        self.state == ResultState::Succeeded
            && ((is_all && self.size > 0) || self.page_files(role).next().is_some())
    }
}

/// Returns files, at most `most`, of which a saved page has at least one: paths in its directory. Empty if
/// the results name none, and the directory must be there.
pub fn files_of_saved(results: &[PageResult<'_>], roles: &PageRoles, most: usize) -> Vec<String> {
    let usual = PageRole::default();
    let mut files = Vec::new();
    for result in results {
        let role = roles.get(result.plugin).unwrap_or(&usual);
        if !result.has_kept(role) {
            continue;
        }
        let named = result.page_files(role).map(|file| format!("{}/{}", result.plugin, file.path));
        let before = files.len();
        files.extend(named.take(most - before));
        if files.len() == before {
            files.push(result.plugin.to_owned());
        }
        if files.len() >= most {
            break;
        }
    }
    files
}

pub fn opens_pages(roles: &PageRoles, plugin: &str) -> bool {
    roles.get(plugin).is_some_and(|role| role.opens_page)
}

/// What a sealed page lacks, and the reason to record if it has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// `None` for a saved page.
    pub unsaved: Option<Unsaved>,
    /// Why the work for the page ended without it.
    pub reason: Option<String>,
}

/// Judges a page that is being sealed. `http_status`: of its document, if a hook reported one.
/// `reason`: why its work ended early, if it did.
pub fn judge(
    http_status: Option<u16>,
    reason: Option<&str>,
    results: &[PageResult<'_>],
    roles: &PageRoles,
) -> Judgement {
    let usual = PageRole::default();
    let role = |result: &PageResult<'_>| roles.get(result.plugin).unwrap_or(&usual);
    let error = |result: &PageResult<'_>| result.error.unwrap_or("a hook failed").to_owned();
    let all = || results.iter();
    let unopened = all().find(|result| result.has_failed() && role(result).opens_page);
    // A crawl may have no plugin but those for files about pages.
    let can_keep = |result: &PageResult<'_>| role(result).page_files.as_deref() != Some(&[]);
    let has_kept = if all().any(can_keep) {
        all().any(|result| result.has_kept(role(result)))
    } else {
        all().any(|result| result.state == ResultState::Succeeded)
    };
    let (unsaved, found) = if http_status.is_some_and(is_http_error) {
        (Some(Unsaved::Error), None)
    } else if unopened.is_some() {
        // It says that the page did not load.
        (Some(Unsaved::Document), unopened.map(error))
    } else if !has_kept {
        let failed = all().find(|result| result.has_failed());
        // Hooks that had nothing to do did not try to load it.
        let were_idle = failed.is_none() && !results.is_empty();
        let has_loaded = http_status.is_some();
        let what = if has_loaded || were_idle { Unsaved::Files } else { Unsaved::Document };
        let reason = failed.map(error);
        let reason = reason.map(|error| format!("nothing of the page was saved: {error}"));
        (Some(what), reason)
    } else {
        (reason.map(|_| Unsaved::Work), None)
    };
    Judgement { unsaved, reason: reason.map(str::to_owned).or(found) }
}

pub fn is_saved(status: Lifecycle, unsaved: Option<Unsaved>) -> bool {
    status == Lifecycle::Sealed && unsaved.is_none()
}

/// Of the versions of a page, the newest first, returns for each whether the newest `count` are kept
/// with it. Versions that were not saved are kept only if none was saved.
pub fn newest(are_saved: &[bool], count: usize) -> Vec<bool> {
    let has_saved = are_saved.contains(&true);
    let mut kept = 0;
    let keep = |is_saved: &bool| {
        let keeps = (*is_saved || !has_saved) && kept < count;
        kept += usize::from(keeps);
        keeps
    };
    are_saved.iter().map(keep).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn roles() -> PageRoles {
        let role = |opens_page, page_files: &[&str]| PageRole {
            opens_page,
            page_files: Some(page_files.iter().map(|name| (*name).to_owned()).collect()),
        };
        BTreeMap::from([
            ("browser".to_owned(), role(true, &["document"])),
            ("digests".to_owned(), role(false, &[])),
        ])
    }

    fn result(plugin: &str, state: ResultState, size: u64) -> PageResult<'_> {
        PageResult {
            plugin,
            state,
            error: (state == ResultState::Failed).then_some("net::ERR_CONNECTION_REFUSED"),
            size,
            files: &[],
        }
    }

    fn judged(
        http_status: Option<u16>,
        reason: Option<&str>,
        results: &[PageResult<'_>],
    ) -> (Option<Unsaved>, Option<String>) {
        let judgement = judge(http_status, reason, results, &roles());
        (judgement.unsaved, judgement.reason)
    }

    use ResultState::{Failed, NoResults, Skipped, Succeeded};

    #[test]
    fn page_with_its_files_is_saved() {
        let page = result("dom", Succeeded, 9);
        let all = [result("browser", Succeeded, 9), page.clone(), result("digests", Succeeded, 9)];
        for status in [None, Some(200), Some(304)] {
            assert_eq!(judged(status, None, &all), (None, None));
        }
        assert_eq!(judged(None, None, &[page]), (None, None), "imported");
        let named =
            |name: &str| [OutputFile { path: name.to_owned(), mimetype: String::new(), size: 9 }];
        for (name, lack) in [
            ("document", None),
            ("document/paper.pdf", None),
            ("documents/paper.pdf", Some(Unsaved::Files)),
            ("navigation.json", Some(Unsaved::Files)),
        ] {
            let files = named(name);
            let browser = PageResult { files: &files, ..result("browser", Succeeded, 9) };
            assert_eq!(judged(Some(200), None, &[browser]).0, lack, "{name}");
        }
    }

    #[test]
    fn files_about_a_page_that_did_not_load_do_not_save_it() {
        let failed = result("browser", Failed, 9);
        let digests = result("digests", Succeeded, 9);
        let found =
            judged(None, None, &[failed.clone(), result("dom", Skipped, 0), digests.clone()]);
        let reason = "net::ERR_CONNECTION_REFUSED".to_owned();
        assert_eq!(found, (Some(Unsaved::Document), Some(reason)));
        // What another program got is not what the browser shows.
        let found = judged(Some(200), None, &[failed, result("wget", Succeeded, 9)]);
        assert_eq!(found.0, Some(Unsaved::Document));
        let found = judged(None, None, &[result("wget", Failed, 0), digests]);
        let reason = "nothing of the page was saved: net::ERR_CONNECTION_REFUSED".to_owned();
        assert_eq!(found, (Some(Unsaved::Document), Some(reason)));
    }

    #[test]
    fn errors_of_servers_and_missing_files_are_lacks() {
        let all = [result("browser", Succeeded, 9), result("dom", Succeeded, 9)];
        for status in [400, 401, 403, 404, 410, 429, 500, 503] {
            // The status says why.
            assert_eq!(judged(Some(status), None, &all), (Some(Unsaved::Error), None));
        }
        let nothing = [result("wget", NoResults, 0), result("digests", Succeeded, 9)];
        assert_eq!(judged(Some(204), None, &nothing), (Some(Unsaved::Files), None));
        assert_eq!(judged(None, None, &nothing), (Some(Unsaved::Files), None));
        let ended = Some("time limit reached");
        assert_eq!(judged(Some(200), ended, &all), (Some(Unsaved::Work), ended.map(str::to_owned)));
        assert_eq!(judged(None, None, &[]).0, Some(Unsaved::Document));
    }

    #[test]
    fn plugins_for_files_about_pages_are_enough_if_there_are_no_others() {
        assert_eq!(judged(Some(200), None, &[result("digests", Succeeded, 9)]), (None, None));
    }

    proptest! {
        /// If a version was saved, the newest that was is kept, and no other is that was not.
        #[test]
        fn newest_saved_version_is_kept(versions: Vec<bool>, count in 1..9usize) {
            let kept = newest(&versions, count);
            prop_assert_eq!(kept.len(), versions.len());
            match versions.iter().position(|is_saved| *is_saved) {
                Some(first) => {
                    prop_assert!(kept[first]);
                    let saved = versions.iter().filter(|is_saved| **is_saved).count();
                    prop_assert_eq!(kept.iter().filter(|keeps| **keeps).count(), saved.min(count));
                    prop_assert!(kept.iter().zip(&versions).all(|(keeps, is_saved)| *is_saved || !keeps));
                }
                None => prop_assert!(kept.iter().take(count).all(|keeps| *keeps)),
            }
        }
    }
}
