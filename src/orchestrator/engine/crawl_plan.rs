//! The hooks that one crawl runs.

use archivist_core::model::Owner;
use archivist_core::model::web::filter::UrlFilter;
use archivist_plugin::{BinaryRequest, CrawlLimits, Hook, Plugin};
use archivist_shared::bus::documents::work::HookTask;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A hook of a crawl's selection with everything that its start needs.
pub struct PlannedHook {
    pub task: HookTask,
    pub hook: Hook,
    pub plugin: Plugin,
    pub values: BTreeMap<String, serde_json::Value>,
    pub request: Option<BinaryRequest>,
    /// A command line of archivist instead of the hook's.
    pub command: Option<Vec<String>>,
}

/// The hooks that one crawl runs, derived from plugins and configuration.
pub struct CrawlPlan {
    pub setup: Vec<PlannedHook>,
    pub snapshot: Vec<PlannedHook>,
    /// Hooks that run for a page after its daemons have ended.
    pub snapshot_end: Vec<PlannedHook>,
    pub end: Vec<PlannedHook>,
    /// Snapshot hooks of selected plugins that cannot run: plugin, hook, reason.
    pub skipped: Vec<(String, String, String)>,
    pub filter: UrlFilter,
    pub limits: CrawlLimits,
    /// Its hooks share a directory for temporary files: the housekeeping plugin is among them.
    pub shares_tmp: bool,
    /// What its browser and its programs take up from visits before, if it exists.
    pub persona: Option<PathBuf>,
    /// The persona has settings, which only its users may read: records have no settings of hooks.
    pub hides_settings: bool,
    /// Programs that its plugins use: name and path.
    pub programs: Vec<(String, PathBuf)>,
}

impl CrawlPlan {
    pub fn hook(&self, owner: Owner, key: &str) -> Option<&PlannedHook> {
        let mut hooks: Box<dyn Iterator<Item = &PlannedHook>> = match owner {
            Owner::Crawl(_) => Box::new(self.setup.iter().chain(&self.end)),
            Owner::Snapshot(_) => Box::new(self.snapshot.iter().chain(&self.snapshot_end)),
        };
        hooks.find(|hook| hook.task.key == key)
    }
}
