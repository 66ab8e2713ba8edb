//! What a crawl with given options would do, without adding it.

use crate::database::Users;
use crate::engine::crawl_plan::PlannedHook;
use crate::main_loop::turn::{Turn, TurnResult, failed};
use archivist_shared::bus::documents::report::{AddOptions, Draft, DraftHook, DraftSkip};
use archivist_shared::bus::documents::work::HookMode;

pub(crate) fn draft(turn: &Turn<'_>, options: &AddOptions, users: &Users) -> TurnResult<Draft> {
    let (plugins, config) = (&options.plugins, &options.config);
    let tmp = turn.engine.archive();
    let persona = turn.engine.persona(config, users).map_err(failed)?;
    let selected = turn.engine.select(plugins, config, persona.as_deref()).map_err(failed)?;
    let plan = turn.engine.page_plan(plugins, config, persona, &tmp).map_err(failed)?;
    let hooks = |hooks: &mut dyn Iterator<Item = &PlannedHook>| {
        let shown = hooks.map(|hook| DraftHook {
            plugin: hook.task.plugin.clone(),
            hook: hook.task.hook.clone(),
            mode: match hook.task.mode {
                HookMode::Foreground => "foreground",
                HookMode::Finite => "finite",
                HookMode::Daemon => "daemon",
            }
            .to_owned(),
            limit: hook.task.limit.as_secs(),
        });
        shown.collect()
    };
    let skipped = selected.skipped.iter().map(|(plugin, why)| DraftSkip {
        plugin: plugin.name.clone(),
        why: why.to_string(),
        program: why.program().map(str::to_owned),
    });
    Ok(Draft {
        setup: hooks(&mut plan.setup.iter()),
        page: hooks(&mut plan.snapshot.iter().chain(&plan.snapshot_end)),
        end: hooks(&mut plan.end.iter()),
        skipped: skipped.collect(),
    })
}
