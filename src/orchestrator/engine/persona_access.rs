//! Which persona a crawl uses, and whether its users may use it.

use crate::database::{CrawlWork, Users};
use crate::engine::state::Engine;
use archivist_core::model::{COOKIES, FLEET, Lifecycle, PersonaName};
use archivist_plugin::Values;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const ACTIVE: &str = "ACTIVE_PERSONA";

impl Engine {
    /// Directory of the persona for a crawl with these settings. A persona that was not chosen for
    /// the crawl, `Default` or that of the configuration, is left out if not all of `users` may use
    /// it.
    ///
    /// # Errors
    /// If the persona was chosen, and is not there or not for all of `users`. `Default` need not be
    /// there.
    pub fn persona(&self, config: &Values, users: &Users) -> Result<Option<PathBuf>, String> {
        let chosen = config.get(ACTIVE);
        let named = chosen.or_else(|| self.settings.values.get(ACTIVE));
        let name = match named.filter(|name| !name.is_empty()) {
            Some(name) => name.parse().map_err(|error| format!("{ACTIVE}: {error}"))?,
            None => PersonaName::usual(),
        };
        let path = self.personas().join(name.as_str());
        if !self.facts.persona(&name).is_directory {
            return if name == PersonaName::usual() {
                Ok(None)
            } else {
                Err(format!("there is no persona '{name}'; see: archivist persona list"))
            };
        }
        match self.refusal(&name, users) {
            None => Ok(Some(path)),
            Some(why) if chosen.is_some_and(|name| !name.is_empty()) => Err(why),
            Some(_) => Ok(None),
        }
    }

    /// Directory of the persona of a crawl: while it runs, the one that it was started with.
    ///
    /// # Errors
    /// As for [`Engine::persona`], if the crawl starts now.
    pub fn persona_of(&self, crawl: &CrawlWork) -> Result<Option<PathBuf>, String> {
        match &crawl.persona {
            Some(name) if crawl.status != Lifecycle::Queued => {
                let name = Some(name).filter(|name| !name.is_empty());
                Ok(name.map(|name| self.personas().join(name)))
            }
            _ => self.persona(&crawl.config, &crawl.users),
        }
    }

    /// Checks that the user of this id may change the settings of a crawl.
    ///
    /// # Errors
    /// If a persona is in the crawl that is not for this user.
    pub fn check_change(&self, crawl: &CrawlWork, user: u32) -> Result<(), String> {
        // A persona with which it cannot be begun is out of reach of any settings.
        let Ok(Some(path)) = self.persona_of(crawl) else {
            return Ok(());
        };
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .parse()
            .map_err(|error| format!("{error}"))?;
        let refusal = self.refusal(&name, &BTreeSet::from([user]));
        refusal.map_or(Ok(()), Err)
    }

    /// The settings that follow from the persona in a directory, a copy of which is in `personas`.
    /// Settings of the user override them.
    pub fn persona_values(&self, persona: Option<&Path>, personas: &Path) -> Values {
        let Some(name) = persona.and_then(Path::file_name) else {
            return Values::new();
        };
        let known: Result<PersonaName, _> = name.to_string_lossy().parse();
        let has_cookies = known.is_ok_and(|name| self.facts.persona(&name).has_cookies);
        let cookies = personas.join(name).join(COOKIES);
        has_cookies
            .then(|| ("COOKIES_FILE".to_owned(), cookies.display().to_string()))
            .into_iter()
            .collect()
    }

    /// The settings of the persona in a directory; none without a persona.
    ///
    /// # Errors
    /// If the file with the settings cannot be read.
    pub fn persona_settings(&self, persona: Option<&Path>) -> Result<Values, String> {
        let name = persona.and_then(Path::file_name);
        let Some(Ok(name)) = name.map(|name| name.to_string_lossy().parse::<PersonaName>()) else {
            return Ok(Values::new());
        };
        Ok(self.facts.persona(&name).settings?.0)
    }

    pub(crate) fn personas(&self) -> PathBuf {
        self.scope.data_dir().join("personas")
    }

    /// Why the persona is not for all of `users`, if so. In a user's own archive there is one user.
    fn refusal(&self, name: &PersonaName, users: &Users) -> Option<String> {
        if self.scope.user {
            return None;
        }
        let audience = match self.facts.persona(name).audience {
            Ok(audience) => audience,
            Err(why) => return Some(why),
        };
        let groups = |uid| self.facts.user(uid).groups;
        let mut users = users.iter().copied();
        let stranger = users.find(|uid| !audience.admits(*uid, groups))?;
        if stranger == FLEET {
            return Some(format!(
                "crawls from the fleet may not use persona '{name}' on this machine; to allow it as root: archivist persona allow {name} --fleet"
            ));
        }
        let user = self.facts.user(stranger).name;
        Some(format!(
            "user {user} may not use persona '{name}'; to allow it as root: archivist persona allow {name} {user}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::crawl_plan::CrawlPlan;
    use crate::engine::persona::for_hook;
    use crate::engine::state::Programs;
    use archivist_config::{Scope, Settings};
    use archivist_core::model::COOKIES;
    use archivist_plugin::sample::{catalogue, plugin};
    use serde_json::json;
    use std::cell::RefCell;
    use std::path::Path;

    fn engine(top: &Path) -> Engine {
        let isolation = json!({"type": "string", "default": "crawl"});
        let housekeeping =
            json!({"x-accompanies": ["chrome"], "properties": {"CHROME_ISOLATION": isolation}});
        let hooks = [
            "on_CrawlSetup__00_housekeeping.daemon.bg.sh",
            "on_CrawlSetup__01_housekeeping_persona.sh",
            "on_Snapshot__00_housekeeping_persona.sh",
        ];
        let plugins = [
            plugin("housekeeping", housekeeping, &hooks),
            plugin("wget", json!({}), &["on_Snapshot__06_wget.sh"]),
        ];
        let text = String::new;
        let settings = Settings::default();
        let scope = Scope::system(top);
        Engine::new(scope, settings, catalogue(plugins), text(), Programs::default(), text())
    }

    #[test]
    fn a_persona_selects_housekeeping_and_cookies() {
        let top = tempfile::tempdir().unwrap();
        let mut engine = engine(top.path());
        let personas = engine.scope.data_dir().join("personas");
        let mut plan = |config: &[(&str, &str)]| {
            let pairs = config.iter();
            let config = pairs.map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
            let users = BTreeSet::from([0]);
            let config = config.collect();
            engine.with_facts(|engine| {
                let persona = engine.persona(&config, &users)?;
                engine.page_plan(&[], &config, persona, Path::new("/run/c1"))
            })
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
        assert_eq!(keys(&with), ["housekeeping", "housekeeping", "wget"]);
        assert_eq!(with.persona, Some(personas.join("work")));
        assert!(with.shares_tmp);
        assert_eq!(for_hook(&with, &with.snapshot[0]), None);
        assert_eq!(for_hook(&with, &with.setup[0]), None);
        assert_eq!(for_hook(&with, &with.setup[1]), Some(&*personas.join("work")));
        assert!(!with.snapshot[0].values.contains_key("COOKIES_FILE"));
        assert_eq!(keys(&plan(&[]).unwrap()), ["wget"], "no hook asked for it");
        let each = plan(&[(ACTIVE, "work"), ("CHROME_ISOLATION", "snapshot")]);
        assert_eq!(keys(&each.unwrap()), ["housekeeping", "housekeeping", "housekeeping", "wget"]);

        std::fs::create_dir_all(personas.join("Default")).unwrap();
        std::fs::write(personas.join("Default").join(COOKIES), "").unwrap();
        let usual = plan(&[]).unwrap();
        let cookies = "/tmp/personas/Default/cookies.txt";
        assert_eq!(usual.snapshot[0].values["COOKIES_FILE"], cookies);
        let own = plan(&[("COOKIES_FILE", "/mine")]).unwrap();
        assert_eq!(own.snapshot[0].values["COOKIES_FILE"], "/mine");
    }

    #[test]
    fn settings_of_the_persona_apply_below_those_of_the_crawl() {
        let top = tempfile::tempdir().unwrap();
        let mut engine = engine(top.path());
        let config = [("USER_AGENT", "config"), ("CRAWL_MAX_URLS", "9")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()));
        engine.settings.values.extend(config);
        let personas = engine.scope.data_dir().join("personas");
        std::fs::create_dir_all(personas.join("work")).unwrap();
        let write = |text: &str| std::fs::write(personas.join(".work.settings"), text).unwrap();
        let mut plan = |config: &[(&str, &str)]| {
            let pairs = config.iter();
            let config: Values =
                pairs.map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
            let users = BTreeSet::from([0]);
            engine.with_facts(|engine| {
                let persona = engine.persona(&config, &users)?;
                engine.page_plan(&["wget".to_owned()], &config, persona, Path::new("/run/c1"))
            })
        };
        write("USER_AGENT=persona\nCRAWL_MAX_URLS=3\nURL_DENYLIST=denied.test\n");
        let agent = |plan: &CrawlPlan| plan.snapshot.last().unwrap().values["USER_AGENT"].clone();
        let without = plan(&[]).unwrap();
        assert_eq!((agent(&without), without.limits.urls), ("config".into(), Some(9)));
        let with = plan(&[(ACTIVE, "work")]).unwrap();
        assert_eq!((agent(&with), with.limits.urls), ("persona".into(), Some(3)));
        let denied = "http://denied.test/";
        assert!(without.filter.allows(denied) && !with.filter.allows(denied));
        let own = plan(&[(ACTIVE, "work"), ("USER_AGENT", "own")]).unwrap();
        assert_eq!(agent(&own), "own");

        write("USER_AGENT=persona\ndamaged secret\n");
        let why = plan(&[(ACTIVE, "work")]).err().unwrap();
        assert!(why.ends_with(".work.settings': line 2 is not KEY=VALUE"), "{why}");
    }

    #[test]
    fn persona_is_for_users_on_its_list_only() {
        let top = tempfile::tempdir().unwrap();
        let engine = RefCell::new(engine(top.path()));
        let personas = engine.borrow().personas();
        let persona = |config: &Values, users: &Users| {
            let mut engine = engine.borrow_mut();
            engine.with_facts(|engine| engine.persona(config, users))
        };
        let check_change = |crawl: &CrawlWork, uid| {
            let mut engine = engine.borrow_mut();
            engine.with_facts(|engine| engine.check_change(crawl, uid))
        };
        let persona_of = |crawl: &CrawlWork| {
            let mut engine = engine.borrow_mut();
            engine.with_facts(|engine| engine.persona_of(crawl))
        };
        for name in ["work", "Default"] {
            std::fs::create_dir_all(personas.join(name)).unwrap();
        }
        let work = Values::from([(ACTIVE.to_owned(), "work".to_owned())]);
        let none = Values::new();
        let of = |uids: &[u32]| -> Users { uids.iter().copied().collect() };
        let allow = |name: &str, text: &str| {
            let name: PersonaName = name.parse().unwrap();
            std::fs::write(personas.join(name.list()), text).unwrap();
        };
        assert!(persona(&work, &of(&[0])).unwrap().is_some());
        let why = persona(&work, &of(&[4_000_000])).unwrap_err();
        assert!(why.contains("archivist persona allow work 4000000"), "{why}");
        assert_eq!(persona(&none, &of(&[4_000_000])), Ok(None));

        allow("work", "user 4000000\n");
        let both = of(&[4_000_000, 4_000_001]);
        assert!(persona(&work, &of(&[4_000_000])).is_ok());
        assert!(persona(&work, &both).is_err(), "settings of both");
        let crawl = |config: &Values, uids: &[u32], persona: Option<&str>| CrawlWork {
            page: None,
            id: archivist_core::model::CrawlId(1),
            status: match persona {
                Some(_) => Lifecycle::Started,
                None => Lifecycle::Queued,
            },
            url: String::new(),
            max_depth: 0,
            plugins: Vec::new(),
            config: config.clone(),
            created_at: archivist_core::model::Time(0),
            attempts: 0,
            ready: false,
            token: None,
            directory: None,
            identity: None,
            hook_user: 0,
            users: of(uids),
            persona: persona.map(str::to_owned),
        };
        let change = |uid| check_change(&crawl(&work, &[4_000_000], None), uid);
        assert!(change(4_000_000).is_ok() && change(0).is_ok());
        assert!(change(4_000_001).is_err());

        // Whatever the fleet's database says, its crawls have no user of this machine.
        let of_fleet = [of(&[FLEET]), of(&[0, FLEET])];
        for list in ["", "everyone\n", "user 0\n"] {
            allow("work", list);
            for users in &of_fleet {
                let why = persona(&work, users).unwrap_err();
                assert!(why.contains("persona allow work --fleet"), "{why}");
            }
        }
        allow("work", "fleet\n");
        assert!(persona(&work, &of_fleet[1]).unwrap().is_some());
        assert!(persona(&work, &of(&[4_000_000])).is_err());
        allow("work", "user 4000000\n");

        allow("Default", "user 4000001\n");
        assert_eq!(persona(&none, &both), Ok(None));
        let change = |crawl, uid| check_change(&crawl, uid);
        assert!(change(crawl(&none, &[4_000_000, 4_000_001], None), 4_000_000).is_ok());
        assert!(change(crawl(&none, &[4_000_001], None), 4_000_000).is_err());
        // A started crawl keeps the persona that it started with, or none.
        let begun = crawl(&none, &[4_000_000], Some("Default"));
        assert_eq!(persona_of(&begun), Ok(Some(personas.join("Default"))));
        assert!(change(begun, 4_000_000).is_err());
        let begun = crawl(&none, &[4_000_001], Some(""));
        assert_eq!(persona_of(&begun), Ok(None));
        allow("Default", "everyone\n");
        assert!(persona(&none, &both).unwrap().is_some());
        allow("Default", "everyon\n");
        assert_eq!(persona(&none, &both), Ok(None), "a damaged list");
        let mut scope = engine.borrow().scope.clone();
        (scope.user, scope.dirs.data) = (true, "/var/lib".into());
        engine.borrow_mut().scope = scope;
        assert!(persona(&work, &both).unwrap().is_some(), "one user");
    }
}
