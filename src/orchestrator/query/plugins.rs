//! The plugins and what is wrong with them.

use crate::main_loop::turn::{Turn, TurnResult, invalid};
use archivist_plugin::Skip;
use archivist_shared::bus::documents::report;

pub(crate) fn plugins(turn: &Turn<'_>) -> TurnResult<report::Plugins> {
    let selected = turn.engine.select(&[], &Default::default(), None).map_err(invalid)?;
    let uses = turn.tx.uses()?;
    let skip = |name: &str| {
        let mut pairs = selected.skipped.iter();
        let (_, skip) = pairs.find(|(plugin, _)| plugin.name == name)?;
        Some(skip)
    };
    let plugin = |plugin: &archivist_plugin::Plugin| report::Plugin {
        name: plugin.name.clone(),
        directory: plugin.dir.to_string_lossy().into_owned(),
        description: plugin.schema.description.clone(),
        hooks: plugin.hooks.iter().map(|hook| hook.id.clone()).collect(),
        skipped: skip(&plugin.name).map(ToString::to_string),
        by_choice: skip(&plugin.name).is_some_and(Skip::is_by_choice),
        fix: skip(&plugin.name).and_then(|skip| skip.fix().map(str::to_owned)),
        uses: uses.get(&plugin.name).copied().unwrap_or_default(),
    };
    let problem = |problem: &archivist_plugin::PathProblem| report::PluginProblem {
        path: problem.path.to_string_lossy().into_owned(),
        what: problem.what.clone(),
    };
    let catalogue = &turn.engine.catalogue;
    Ok(report::Plugins {
        plugins: catalogue.plugins.iter().map(plugin).collect(),
        problems: catalogue.problems.iter().map(problem).collect(),
    })
}
