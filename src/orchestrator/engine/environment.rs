//! The environment of a run as its record has it.

use crate::database::Variables;
use crate::engine::state::Engine;
use archivist_core::model::{HIDDEN, shown_setting};
use archivist_plugin::contract::environment::is_of_run;
use std::collections::BTreeSet;

impl Engine {
    /// Returns the variables of a unit without secrets: those that it has in common with other runs
    /// of its hook, and its own. All members may read them, also those who may not use the persona of
    /// the crawl, so the values of `hidden` settings are left out. Directories and ids of the run are
    /// shown even if `hidden` names them.
    pub fn recorded(
        &self,
        variables: &[(String, String)],
        hidden: &BTreeSet<&str>,
    ) -> (Variables, Variables) {
        let sensitive = self.catalogue.sensitive_names();
        let shown = |(name, value): &(String, String)| {
            let is_of_persona = hidden.contains(name.as_str()) && !is_of_run(name);
            let is_hidden = sensitive.contains(name.as_str()) || is_of_persona;
            let value = if is_hidden && !value.is_empty() {
                HIDDEN.to_owned()
            } else {
                shown_setting(name, value)
            };
            (name.clone(), value)
        };
        let shown = variables.iter().map(shown);
        shown.partition(|(name, _)| !is_of_run(name))
    }
}
