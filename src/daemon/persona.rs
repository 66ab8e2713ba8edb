//! Personas: what browsers and programs keep between visits. They lie in the data directory, where
//! hooks see nothing of them; the hook that looks after what a crawl's hooks share copies the one
//! in use for them.

use super::engine::{CrawlPlan, Engine, PlannedHook};
use crate::model::{COOKIES, PersonaName};
use crate::plugin::{Event, Values};
use std::path::{Path, PathBuf};

/// The setting that names the persona in use.
const ACTIVE: &str = "ACTIVE_PERSONA";

impl Engine {
    /// The directory of the persona that a crawl with these settings uses.
    ///
    /// # Errors
    /// When somebody chose one that is not there. Nobody chose `Default`, which need not be.
    pub fn persona(&self, config: &Values) -> Result<Option<PathBuf>, String> {
        let chosen = config
            .get(ACTIVE)
            .or_else(|| self.settings.values.get(ACTIVE));
        let name = match chosen.filter(|name| !name.is_empty()) {
            Some(name) => name.parse().map_err(|error| format!("{ACTIVE}: {error}"))?,
            None => PersonaName::usual(),
        };
        let path = self.scope.data_dir().join("personas").join(name.as_str());
        // Not by way of a link: it is mounted for a hook.
        let there = path.symlink_metadata().is_ok_and(|kind| kind.is_dir());
        match there {
            true => Ok(Some(path)),
            false if name == PersonaName::usual() => Ok(None),
            false => Err(format!(
                "there is no persona '{name}'; see: archivist persona list"
            )),
        }
    }
}

/// The settings that follow from a persona, a copy of which is in `personas`. Those of the user
/// outrank them.
pub fn values(persona: Option<&Path>, personas: &Path) -> Values {
    let Some(persona) = persona else {
        return Values::new();
    };
    let has_cookies = persona
        .join(COOKIES)
        .symlink_metadata()
        .is_ok_and(|kind| kind.is_file());
    let name = persona.file_name().unwrap_or_default();
    let cookies = personas.join(name).join(COOKIES);
    has_cookies
        .then(|| ("COOKIES_FILE".to_owned(), cookies.display().to_string()))
        .into_iter()
        .collect()
}

/// Whether there is work for this hook: one that copies the persona needs one, and on a page a
/// browser that is the page's own.
pub fn is_wanted(hook: &PlannedHook, has_persona: bool) -> bool {
    let isolation = hook.values.get("CHROME_ISOLATION");
    let own_browser = isolation.and_then(|value| value.as_str()) == Some("snapshot");
    let of_page = hook.hook.name.event == Event::Snapshot;
    !copies(hook) || (has_persona && (own_browser || !of_page))
}

fn copies(hook: &PlannedHook) -> bool {
    !hook.plugin.schema.accompanies.is_empty() && hook.hook.name.name.ends_with("_persona")
}

/// The persona, for a hook that copies it.
pub fn for_hook<'a>(plan: &'a CrawlPlan, planned: &PlannedHook) -> Option<&'a Path> {
    plan.persona.as_deref().filter(|_| copies(planned))
}

/// How that hook is told of it.
pub fn told(persona: &Path) -> (String, String) {
    ("PERSONA_TEMPLATE".to_owned(), persona.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::super::engine::Programs;
    use super::*;
    use crate::config::{Scope, Settings};
    use crate::plugin::sample::{catalogue, plugin};
    use serde_json::json;

    fn engine(top: &Path) -> Engine {
        let isolation = json!({"type": "string", "default": "crawl"});
        let keeper =
            json!({"x-accompanies": ["chrome"], "properties": {"CHROME_ISOLATION": isolation}});
        let hooks = [
            "on_CrawlSetup__00_keeper.daemon.bg.sh",
            "on_CrawlSetup__01_keeper_persona.sh",
            "on_Snapshot__00_keeper_persona.sh",
        ];
        let plugins = [
            plugin("keeper", keeper, &hooks),
            plugin("wget", json!({}), &["on_Snapshot__06_wget.sh"]),
        ];
        let text = String::new;
        let settings = Settings::default();
        let scope = Scope::system(top);
        Engine::new(
            scope,
            settings,
            catalogue(plugins),
            text(),
            Programs::default(),
            text(),
        )
    }

    #[test]
    fn a_persona_brings_its_keeper_and_cookies() {
        let top = tempfile::tempdir().unwrap();
        let engine = engine(top.path());
        let personas = engine.scope.data_dir().join("personas");
        let plan = |config: &[(&str, &str)]| {
            let pairs = config.iter();
            let config = pairs.map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
            engine.page_plan(&[], &config.collect(), Path::new("/run/c1"))
        };
        let keys = |plan: &CrawlPlan| -> Vec<String> {
            let hooks = plan.setup.iter().chain(&plan.snapshot);
            hooks.map(|hook| hook.task.plugin.clone()).collect()
        };
        assert_eq!(keys(&plan(&[]).unwrap()), ["wget"]);
        for bad in ["work", "../personas", "a/b"] {
            assert!(plan(&[(ACTIVE, bad)]).is_err(), "{bad}");
        }
        std::fs::create_dir_all(personas.join("work")).unwrap();
        std::os::unix::fs::symlink("/etc", personas.join("link")).unwrap();
        assert!(plan(&[(ACTIVE, "link")]).is_err());

        let with = plan(&[(ACTIVE, "work")]).unwrap();
        assert_eq!(keys(&with), ["keeper", "keeper", "wget"]);
        assert_eq!(with.persona, Some(personas.join("work")));
        assert!(with.shares_tmp);
        assert_eq!(for_hook(&with, &with.snapshot[0]), None);
        assert_eq!(for_hook(&with, &with.setup[0]), None);
        assert_eq!(
            for_hook(&with, &with.setup[1]),
            Some(&*personas.join("work"))
        );
        assert!(!with.snapshot[0].values.contains_key("COOKIES_FILE"));
        assert_eq!(keys(&plan(&[]).unwrap()), ["wget"], "nobody asked for it");
        let each = plan(&[(ACTIVE, "work"), ("CHROME_ISOLATION", "snapshot")]);
        assert_eq!(keys(&each.unwrap()), ["keeper", "keeper", "keeper", "wget"]);

        std::fs::create_dir_all(personas.join("Default")).unwrap();
        std::fs::write(personas.join("Default").join(COOKIES), "").unwrap();
        let usual = plan(&[]).unwrap();
        let cookies = "/tmp/personas/Default/cookies.txt";
        assert_eq!(usual.snapshot[0].values["COOKIES_FILE"], cookies);
        let own = plan(&[("COOKIES_FILE", "/mine")]).unwrap();
        assert_eq!(own.snapshot[0].values["COOKIES_FILE"], "/mine");
    }
}
