//! Personas: what browsers and programs keep between visits. They are in the data directory, which
//! hooks cannot see; the housekeeping hook of a crawl copies the persona in use for the other
//! hooks.

use crate::engine::crawl_plan::{CrawlPlan, PlannedHook};
use archivist_plugin::HookFamily;
use std::path::Path;

impl CrawlPlan {
    /// Name of its persona, empty if it has none.
    pub fn persona_name(&self) -> String {
        let name = self.persona.as_deref().and_then(Path::file_name);
        name.unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// Whether this hook has work: a hook that copies the persona requires one, and on a page a browser
/// of the page's own.
pub fn is_wanted(hook: &PlannedHook, has_persona: bool) -> bool {
    let isolation = hook.values.get("CHROME_ISOLATION");
    let own_browser = isolation.and_then(|value| value.as_str()) == Some("snapshot");
    let of_page = hook.hook.name.family == HookFamily::Snapshot;
    !copies(hook) || (has_persona && (own_browser || !of_page))
}

fn copies(hook: &PlannedHook) -> bool {
    !hook.plugin.schema.accompanies.is_empty() && hook.hook.name.name.ends_with("_persona")
}

/// The persona, for a hook that copies it.
pub fn for_hook<'a>(plan: &'a CrawlPlan, planned: &PlannedHook) -> Option<&'a Path> {
    plan.persona.as_deref().filter(|_| copies(planned))
}

/// The variable with the persona's directory.
pub fn told(persona: &Path) -> (String, String) {
    ("PERSONA_TEMPLATE".to_owned(), persona.display().to_string())
}
