//! Expands a selection: the named plugins, the plugins that make the named output types, and all
//! plugins that these require.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::catalogue::name::HookFamily;
use crate::catalogue::{Catalogue, Plugin};
use archivist_core::text::{did_you_mean, similar};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selection {
    /// Plugin names in any case, or MIME types of output such as `image/`. Required plugins are
    /// added. Empty selects all plugins.
    pub plugins: Vec<String>,
    /// Whether plugins that accompany others run in any case.
    pub companions: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct UnknownPlugin {
    pub name: String,
    pub similar: Vec<String>,
}

impl fmt::Display for UnknownPlugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hint = did_you_mean(&self.similar);
        write!(f, "no plugin is named '{}'{hint}", self.name)
    }
}

/// Whether a plugin declares output of this MIME type, or of a type with this prefix (`image/`).
fn has_output_type(plugin: &Plugin, mimetype: &str) -> bool {
    let mimetype = mimetype.to_ascii_lowercase();
    let mut own = plugin.schema.output_mimetypes.iter();
    own.any(|own| {
        let whole = own.ends_with('/') && mimetype.starts_with(own.as_str());
        own.starts_with(&mimetype) || whole
    })
}

/// Returns whether a plugin exists for each name and output type of the selection.
pub fn knows(catalogue: &Catalogue, selection: &Selection) -> bool {
    expand(catalogue, selection).is_ok()
}

/// The names of selected plugins, of the plugins that they require, and of those that can install
/// their programs. `None` selects all plugins.
pub(crate) fn expand<'a>(
    catalogue: &'a Catalogue,
    selection: &Selection,
) -> Result<Option<BTreeSet<&'a str>>, UnknownPlugin> {
    let unknown = |name: &str| {
        let similar = similar(name, catalogue.plugins.iter().map(|p| p.name.as_str()));
        UnknownPlugin {
            name: name.to_owned(),
            similar: similar.into_iter().map(str::to_owned).collect(),
        }
    };
    let mut names = BTreeSet::new();
    let mut open = Vec::new();
    let asked = selection.plugins.iter().map(|name| name.trim()).filter(|name| !name.is_empty());
    for name in asked {
        if name.contains('/') {
            let plugins_with_output = catalogue.plugins.iter().filter(|p| has_output_type(p, name));
            let known = open.len();
            open.extend(plugins_with_output);
            if open.len() > known {
                continue;
            } else {
                return Err(unknown(name));
            }
        }
        let found = catalogue.plugins.iter().find(|p| p.name.eq_ignore_ascii_case(name));
        open.push(found.ok_or_else(|| unknown(name))?);
    }
    if open.is_empty() {
        return Ok(None);
    }
    let installs = |plugin: &&Plugin| {
        plugin.hooks.iter().any(|hook| hook.name.family == HookFamily::BinaryRequest)
    };
    while let Some(plugin) = open.pop() {
        if !names.insert(plugin.name.as_str()) {
            continue;
        }
        let required = plugin.schema.required_plugins.iter();
        open.extend(required.filter_map(|name| catalogue.plugin(name)));
        let providers = plugin.schema.required_binaries.iter().flat_map(|entry| &entry.providers);
        open.extend(providers.filter_map(|name| catalogue.plugin(name)).filter(installs));
    }
    Ok(Some(names))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use crate::sample::plugin;
    use serde_json::json;

    #[test]
    fn output_type_selects_the_plugins_that_make_it() {
        let of = |types: &[&str]| plugin("x", json!({"output_mimetypes": types}), &[]);
        for (types, asked, wanted) in [
            (&["image/png"][..], "image/png", true),
            (&["image/png"], "Image/", true),
            (&["image/"], "image/png", true),
            (&["text/html", "image/jpeg"], "image/png", false),
            (&["image"], "image/png", false),
            (&[], "image/", false),
        ] {
            assert_eq!(has_output_type(&of(types), asked), wanted, "{types:?} {asked}");
        }
        let picture = json!({"required_plugins": ["chrome"], "output_mimetypes": ["image/png"]});
        let chrome = plugin("chrome", json!({}), &[]);
        let wget = plugin("wget", json!({}), &[]);
        let catalogue = sample::catalogue([plugin("picture", picture, &[]), chrome, wget]);
        let selection =
            |name: &str| Selection { plugins: vec![name.to_owned()], companions: false };
        let names = expand(&catalogue, &selection("image/")).unwrap().unwrap();
        assert_eq!(names.into_iter().collect::<Vec<_>>(), ["chrome", "picture"]);
        assert!(expand(&catalogue, &selection("video/")).is_err());
    }
}
