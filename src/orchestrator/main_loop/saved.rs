//! Judges whether a page was saved: from its rows, when it is sealed, and from its files, before something
//! is deleted or left out because of it.
//!
//! A newer version replaces another one only if its files are there. Its row does not say so after its
//! directory was removed by hand, so `orchestrator/main_loop/saved.rs` looks for the files of the
//! versions for which a page would be deleted, left out of a list of new pages or not opened, and marks
//! the page as not saved if none is there. Nothing looks for all pages: that is what `archivist fsck`
//! does. A saved page is partial if a result of it states that its files lack parts (the figure
//! `lacks`, which built-in hooks count with their remarks in `Finding::lacking`);
//! `database/rows/complete.rs` has that rule. In a fleet, a page is archived if the record of its end has
//! no reason, and a page that was not saved has one.

use crate::main_loop;
use crate::main_loop::turn::{Change, Turn, TurnResult};
use archivist_core::model::{CrawlId, Owner, ResultState, SnapshotId, Unsaved};
use archivist_core::plan::{
    Judgement, PageRole, PageRoles, files_of_saved, is_saved, judge, opens_pages,
};
use archivist_plugin::{Catalogue, HookFamily, Mode, Plugin};
use archivist_shared::bus::documents::report::HookResult;
use std::path::Path;

/// Files of a page that are looked for: one is enough.
const FILES_READ: usize = 64;

/// The roles of the installed plugins. Files of others are of the page.
pub(crate) fn page_roles(turn: &Turn<'_>) -> PageRoles {
    let catalogue = &turn.engine.catalogue;
    let role = |plugin: &Plugin| {
        let role = PageRole {
            opens_page: has_daemon(plugin) && is_required(catalogue, plugin),
            page_files: plugin.schema.page_files.clone(),
        };
        (plugin.name.clone(), role)
    };
    let roles = catalogue.plugins.iter().map(role);
    roles.filter(|(_, role)| *role != PageRole::default()).collect()
}

/// Whether a plugin has a daemon for each page, such as the tab of a browser.
fn has_daemon(plugin: &Plugin) -> bool {
    let mut hooks = plugin.hooks.iter();
    hooks.any(|hook| hook.name.family == HookFamily::Snapshot && hook.name.mode == Mode::Daemon)
}

/// Whether other plugins need a plugin. A daemon that none needs watches the page that another one opens.
fn is_required(catalogue: &Catalogue, plugin: &Plugin) -> bool {
    let mut others = catalogue.plugins.iter();
    others.any(|other| other.schema.required_plugins.contains(&plugin.name))
}

/// Judges a page that is being sealed for `reason`.
pub(crate) fn judge_page(
    turn: &Turn<'_>,
    id: SnapshotId,
    reason: Option<&str>,
) -> TurnResult<Judgement> {
    let results = turn.tx.results(Owner::Snapshot(id))?;
    let results: Vec<_> = results.iter().map(HookResult::of_page).collect();
    let answer = turn.tx.visit(id)?.answer;
    let status = answer.map(|answer| answer.status);
    Ok(judge(status, reason, &results, &page_roles(turn)))
}

/// Whether the browser did not open a page.
pub(crate) fn has_failed_to_open(turn: &Turn<'_>, id: SnapshotId) -> TurnResult<bool> {
    let (results, roles) = (turn.tx.results(Owner::Snapshot(id))?, page_roles(turn));
    Ok(results
        .iter()
        .any(|result| result.status == ResultState::Failed && opens_pages(&roles, &result.plugin)))
}

/// Whether a page is saved, and still is: one of its files is there, or the store has a copy. A page whose
/// files were removed by hand counts as unsaved from now on.
pub(crate) fn is_still_saved(turn: &mut Turn<'_>, id: SnapshotId) -> TurnResult<bool> {
    let page = main_loop::snapshot_of(turn, id)?;
    if !is_saved(page.status, page.unsaved) {
        return Ok(false);
    }
    let has_copy = turn.tx.copy(id)?.is_some_and(|copy| copy.object.is_some());
    let Some(directory) = page.directory.filter(|_| !has_copy) else {
        return Ok(true);
    };
    let results = turn.tx.results(Owner::Snapshot(id))?;
    let results: Vec<_> = results.iter().map(HookResult::of_page).collect();
    let directory = Path::new(&directory);
    let files = files_of_saved(&results, &page_roles(turn), FILES_READ);
    let mut files: Vec<_> = files.iter().map(|file| directory.join(file)).collect();
    if files.is_empty() {
        files.push(directory.to_owned());
    }
    if !main_loop::has_lost(turn, files) {
        return Ok(true);
    }
    turn.tx.set_unsaved(id, Some(Unsaved::Files))?;
    turn.changes.insert(Change::Snapshot { crawl: page.crawl, id });
    turn.log(move || {
        tracing::warn!(
            archivist_snapshot = id.0,
            "the files of {id} were removed: it does not count as saved any more; to archive it again: archivist retry {id}"
        )
    });
    Ok(false)
}

/// Whether another crawl than `except` has a page, or is going to.
pub(crate) fn is_archived(turn: &mut Turn<'_>, url: &str, except: CrawlId) -> TurnResult<bool> {
    while let Some(id) = turn.tx.archived_versions(url, except, 1)?.first().copied() {
        let is_open = !main_loop::snapshot_of(turn, id)?.status.is_final();
        if is_open || is_still_saved(turn, id)? {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_plugin::sample;
    use serde_json::json;

    #[test]
    fn daemon_that_no_plugin_requires_opens_no_page() {
        let plugins = [
            sample::plugin("tab", json!({}), &["on_Snapshot__10_tab.daemon.bg.sh"]),
            sample::plugin("console", json!({}), &["on_Snapshot__21_console.daemon.bg.sh"]),
            sample::plugin(
                "dom",
                json!({"required_plugins": ["tab"]}),
                &["on_Snapshot__53_dom.sh"],
            ),
        ];
        let catalogue = sample::catalogue(plugins);
        let opens = |plugin: &&Plugin| has_daemon(plugin) && is_required(&catalogue, plugin);
        let opening: Vec<_> = catalogue.plugins.iter().filter(opens).collect();
        assert_eq!(opening.iter().map(|plugin| plugin.name.as_str()).collect::<Vec<_>>(), ["tab"]);
    }
}
