//! Judges whether a page was saved, from its rows, when it is sealed.

use crate::main_loop::turn::{Turn, TurnResult};
use archivist_core::model::{Owner, ResultState, SnapshotId};
use archivist_core::plan::{Judgement, PageRole, PageRoles, judge, opens_pages};
use archivist_plugin::{HookFamily, Mode, Plugin};
use archivist_shared::bus::documents::report::HookResult;

/// The roles of the installed plugins. Files of others are of the page.
pub(crate) fn page_roles(turn: &Turn<'_>) -> PageRoles {
    let role = |plugin: &Plugin| {
        let role = PageRole {
            opens_page: has_daemon(plugin),
            page_files: plugin.schema.page_files.clone(),
        };
        (plugin.name.clone(), role)
    };
    let plugins = turn.engine.catalogue.plugins.iter();
    let roles = plugins.map(role);
    roles.filter(|(_, role)| *role != PageRole::default()).collect()
}

/// Whether a plugin has a daemon for each page, such as the tab of a browser.
fn has_daemon(plugin: &Plugin) -> bool {
    let mut hooks = plugin.hooks.iter();
    hooks.any(|hook| hook.name.family == HookFamily::Snapshot && hook.name.mode == Mode::Daemon)
}

/// Judges a page that is being sealed for `reason`.
pub(super) fn judge_page(
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
