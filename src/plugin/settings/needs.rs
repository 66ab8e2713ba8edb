//! What the hooks of a plugin need of a page, under the settings of a crawl.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::catalogue::Plugin;
use archivist_core::model::Need;

/// Returns `x-needs` of a plugin, unless the user has set options for its program: these may lead to a
/// site that the browser does not reach.
pub fn needs(plugin: &Plugin, resolved: &BTreeMap<String, Value>) -> Option<Need> {
    let options = resolved.get(&plugin.key("ARGS_EXTRA"));
    let has_options = options.and_then(Value::as_array).is_some_and(|options| !options.is_empty());
    plugin.schema.needs.filter(|_| !has_options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::plugin;
    use serde_json::json;

    #[test]
    fn options_of_the_user_may_lead_another_way() {
        let title = plugin("title", json!({"x-needs": "site"}), &[]);
        let of = |options: Value| {
            needs(&title, &BTreeMap::from([("TITLE_ARGS_EXTRA".to_owned(), options)]))
        };
        assert_eq!(of(json!([])), Some(Need::Site));
        assert_eq!(of(json!(["--proxy", "http://a.test"])), None);
        assert_eq!(needs(&title, &BTreeMap::new()), Some(Need::Site));
    }
}
