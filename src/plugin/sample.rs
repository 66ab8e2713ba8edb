//! Plugins for tests, created without a directory.

use std::path::Path;

use serde_json::Value;

use crate::catalogue::name::HookName;
use crate::catalogue::schema::Schema;
use crate::catalogue::{Catalogue, Hook, Plugin};

/// Returns a hook with this file name. Panics if it is not the name of a hook.
pub fn hook(plugin: &str, file: &str) -> Hook {
    let name = HookName::parse(file).unwrap_or_else(|| panic!("{file} is not a hook"));
    Hook {
        plugin: plugin.to_owned(),
        id: file.rsplit_once('.').map_or(file, |(id, _)| id).to_owned(),
        file: Path::new("/plugins").join(plugin).join(file),
        unit_part: name.name.clone(),
        name,
        interpreter: None,
    }
}

/// Creates a plugin with this `config.json` and these hook files.
pub fn plugin(name: &str, config: Value, files: &[&str]) -> Plugin {
    Plugin {
        name: name.to_owned(),
        dir: Path::new("/plugins").join(name),
        schema: Schema::parse(Path::new("config.json"), &config.to_string()).unwrap(),
        hooks: files.iter().map(|file| hook(name, file)).collect(),
        loose: false,
    }
}

/// Returns a catalogue of these plugins, without problems.
pub fn catalogue(plugins: impl Into<Vec<Plugin>>) -> Catalogue {
    let mut plugins = plugins.into();
    plugins.sort_by(|a: &Plugin, b| a.name.cmp(&b.name));
    Catalogue {
        plugins,
        ..Catalogue::default()
    }
}
