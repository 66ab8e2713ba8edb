//! Directories that belong to the archive and not to one crawl, such as the one with the index of
//! all pages. Only the hooks of one plugin see such a directory, and all of them run as one user:
//! programs such as sqlite create files that only their owner can write.

use crate::engine::state::Engine;
use archivist_plugin::Plugin;
use std::path::PathBuf;

/// Name of the directory of full text search, next to those of plugins.
pub(crate) const SEARCH: &str = "search";

impl Engine {
    /// The directory of a plugin that shares its data among crawls, if it exists.
    pub fn index_of(&self, plugin: &Plugin) -> Option<PathBuf> {
        let indexes = &self.start_facts.indexes;
        let there = self.settings.shared_index && indexes.contains(&plugin.name);
        there.then(|| self.indexes().join(&plugin.name))
    }

    /// Names of the plugins that share their data among crawls.
    pub(crate) fn sharing_plugins(&self) -> Vec<String> {
        let plugins = self.catalogue.plugins.iter();
        let sharing = plugins.filter(|plugin| self.settings.shared_index && plugin.shares_data());
        sharing.map(|plugin| plugin.name.clone()).collect()
    }

    /// The directory above those of the plugins.
    pub(crate) fn indexes(&self) -> PathBuf {
        self.scope.data_dir().join("index")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::state::Programs;
    use archivist_config::{Scope, Settings};
    use archivist_plugin::sample::{catalogue, plugin};
    use serde_json::json;

    #[test]
    fn shared_data_has_a_directory_of_the_archive() {
        let top = tempfile::tempdir().unwrap();
        let plugins = [
            plugin("own", json!({"x-shared-data": true}), &[]),
            plugin("search_backend_sqlite", json!({}), &[]),
            plugin("wget", json!({}), &[]),
        ];
        let text = String::new;
        let mut engine = Engine::new(
            Scope::system(top.path()),
            Settings::default(),
            catalogue(plugins),
            text(),
            Programs::default(),
            text(),
        );
        let mut of = |name: &str, shared: bool| {
            engine.settings.shared_index = shared;
            engine.read_start_facts();
            engine.index_of(engine.catalogue.plugin(name).unwrap())
        };
        assert_eq!(of("own", true), None, "the file system is not mounted");
        let data = top.path().join("var/lib/archivist");
        std::fs::create_dir_all(data.join("personas")).unwrap();
        let indexes = data.join("index");
        for name in ["own", "search_backend_sqlite"] {
            assert_eq!(of(name, true), Some(indexes.join(name)));
        }
        assert_eq!(of("wget", true), None);
        assert_eq!(of("own", false), None);
    }
}
