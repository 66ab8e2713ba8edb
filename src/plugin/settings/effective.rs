//! Determines the settings that a plugin's hooks see.

use std::collections::{BTreeMap, BTreeSet};

use crate::catalogue::schema::Property;
use crate::catalogue::{Catalogue, Plugin};

/// The settings of a plugin's hooks: those of the plugin `base`, of required plugins, and its own.
/// Of settings with the same name, the last one in this order wins.
pub fn effective<'a>(
    catalogue: &'a Catalogue,
    plugin: &'a Plugin,
) -> BTreeMap<&'a str, &'a Property> {
    let mut order = Vec::new();
    let mut seen = BTreeSet::new();
    if let Some(base) = catalogue.plugin("base") {
        catalogue.append_required(base, &mut seen, &mut order);
    }
    catalogue.append_required(plugin, &mut seen, &mut order);
    let properties = order.into_iter().flat_map(|plugin| &plugin.schema.properties);
    properties.map(|(key, property)| (key.as_str(), property)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use crate::sample::plugin;
    use serde_json::{Value, json};

    #[test]
    fn own_settings_override_required_and_base() {
        let with = |value: u32, required: &[&str]| {
            json!({"required_plugins": required, "properties": {
                "SHARED": {"type": "integer", "default": value}}})
        };
        let catalogue = sample::catalogue([
            plugin("base", with(1, &[]), &[]),
            plugin("puppeteer", with(2, &["title"]), &[]),
            plugin("chrome", json!({"required_plugins": ["puppeteer", "missing"]}), &[]),
            plugin("title", with(3, &["chrome"]), &[]),
        ]);
        let shared = |name: &str| {
            effective(&catalogue, catalogue.plugin(name).unwrap())["SHARED"].default.clone()
        };
        assert_eq!(shared("base"), Some(json!(1)));
        assert_eq!(
            shared("chrome").unwrap(),
            Value::from(2),
            "required plugins may have requirements too"
        );
        assert_eq!(shared("title"), Some(json!(3)));
    }
}
