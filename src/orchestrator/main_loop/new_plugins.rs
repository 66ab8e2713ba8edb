//! Plugins that were installed since the plugins were read: a request that names an unknown plugin,
//! or a setting of one, makes the orchestrator read the directories again, before the turn.

use crate::main_loop::event::Event;
use archivist_plugin::{Catalogue, Selection, knows};
use archivist_shared::bus::call::{Request, Which};
use archivist_shared::bus::documents::report::AddOptions;
use std::collections::BTreeSet;

/// Returns whether `options` name only plugins and settings that `catalogue` has.
fn knows_options(catalogue: &Catalogue, options: &AddOptions) -> bool {
    let selection = Selection { plugins: options.plugins.clone(), companions: false };
    if !knows(catalogue, &selection) {
        return false;
    }
    let known = if options.config.is_empty() { BTreeSet::new() } else { catalogue.known_keys() };
    options.config.keys().all(|key| known.contains(key))
}

/// Returns whether `name` is a plugin or a hook.
fn knows_hook(catalogue: &Catalogue, name: &str) -> bool {
    catalogue.plugins.iter().any(|plugin| {
        let mut hooks = plugin.hooks.iter();
        plugin.name == name || hooks.any(|hook| hook.id == name)
    })
}

/// Returns whether `name` is a plugin, or a program by its literal name.
fn knows_program(catalogue: &Catalogue, name: &str) -> bool {
    catalogue.plugins.iter().any(|plugin| {
        let mut programs = plugin.schema.required_binaries.iter();
        plugin.name.eq_ignore_ascii_case(name) || programs.any(|program| program.name == name)
    })
}

/// Returns whether `event` is a request that names a plugin or setting that `catalogue` does not
/// have.
pub fn names_unknown(event: &Event, catalogue: &Catalogue) -> bool {
    let Event::Request(request) = event else {
        return false;
    };
    match request {
        Request::Add { options, so_far: None, .. } | Request::Draft { options, .. } => {
            !knows_options(catalogue, options)
        }
        Request::Retry { which: Which::Hook(hook), so_far: None, .. } => {
            !knows_hook(catalogue, hook)
        }
        Request::Install { names, .. } => names.iter().any(|name| !knows_program(catalogue, name)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_plugin::sample;
    use archivist_shared::bus::call::Reply;
    use serde_json::json;

    fn draft(plugins: &[&str], keys: &[&str]) -> Event {
        let setting = |key: &&str| ((*key).to_owned(), "1".to_owned());
        Event::Request(Request::Draft {
            options: AddOptions {
                plugins: plugins.iter().map(|name| (*name).to_owned()).collect(),
                config: keys.iter().map(setting).collect(),
                ..AddOptions::default()
            },
            user: 0,
            reply: Reply::new().0,
        })
    }

    #[test]
    fn only_requests_with_unknown_names_read_the_plugins_again() {
        let catalogue = sample::catalogue([sample::plugin("wget", json!({}), &[])]);
        for (plugins, keys, unknown) in [
            (&[][..], &[][..], false),
            (&["wget"], &["WGET_ENABLED"], false),
            (&["wget", "newer"], &[], true),
            (&[], &["NEWER_ENABLED"], true),
        ] {
            let event = draft(plugins, keys);
            assert_eq!(names_unknown(&event, &catalogue), unknown, "{plugins:?} {keys:?}");
        }
        assert!(!names_unknown(&Event::Due, &catalogue));
    }
}
