//! What the orchestrator keeps between turns: settings, plugins, and what is derived from them.
//! Everything else is in the database.

use crate::database::CrawlWork;
use crate::database::rows::lease::NodeOrders;
use crate::engine::commands::Commands;
use crate::engine::crawl_plan::{CrawlPlan, PlannedHook};
use crate::engine::facts::{Facts, StartFacts};
use crate::engine::input_files;
use crate::engine::persona;
use crate::engine::way_out::WayOut;
use crate::machine::library::{Library, installed_names};
use crate::runner::locks::RunnerLocks;
use archivist_config::{Scope, Settings};
use archivist_core::model::web::filter::UrlFilter;
use archivist_core::model::{Backoff, CrawlId, Owner, ProcessLocation, RunId, SnapshotId};
use archivist_core::plan::{Lack, Limits, Load, LoadLimits, Network, Shortage};
use archivist_core::unit::Names;
use archivist_plugin::programs::binary;
use archivist_plugin::programs::install::{awaited, uses_daemon};
use archivist_plugin::select;
use archivist_plugin::settings::derived;
use archivist_plugin::settings::general::SAME_HOST;
use archivist_plugin::settings::needs::needs;
use archivist_plugin::settings::parse::boolean;
use archivist_plugin::{
    Catalogue, Hook, HookDirectories, HookFamily, Layers, Mode, Selected, Selection,
};
use archivist_plugin::{CrawlLimits, Skip, Values, hooks_of, resolve, timeout};
use archivist_shared::bus::documents::work::{HookMode, HookTask};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

/// Delay after the first visit that a server refuses without naming a time. It doubles with each.
const VISIT_DELAY: Duration = Duration::from_secs(10);

static NO_SETTINGS: Values = Values::new();

pub struct OwnRunner {
    pub rank: i64,
    pub place: ProcessLocation,
    pub locks: RunnerLocks,
    /// Working directory of this process; empty if unknown.
    pub directory: String,
}

#[derive(Default)]
pub struct Programs {
    /// The orchestrator's own program, which is also the worker.
    pub worker: String,
    /// `archivist`, for checks and for servers that hooks request.
    pub archivist: String,
    pub store: String,
    pub search: String,
    /// For hooks and alerts. None under a user's service manager: only that user can read its
    /// units, and its environment block would override settings.
    pub launcher: Option<String>,
}

/// A crawl, and the page of it whose own settings the plan has.
type PlanKey = (CrawlId, Option<SnapshotId>);

pub struct Engine {
    pub scope: Scope,
    pub settings: Settings,
    pub names: Names,
    pub catalogue: Catalogue,
    pub boot: String,
    /// Whether a time server has set the clock.
    pub is_clock_synchronized: bool,
    pub programs: Programs,
    pub systemd: String,
    /// Owners by the token of their worker.
    pub tokens: HashMap<String, Owner>,
    /// Programs that providers installed.
    pub library: Library,
    pub versions: HashMap<PathBuf, String>,
    /// Crawls that commands hold in the foreground, and how many of them.
    pub held: HashMap<CrawlId, u32>,
    /// Commands in the foreground that registered themselves.
    pub commands: Commands,
    /// Which runner this is; none in tests.
    pub me: Option<OwnRunner>,
    /// The load before this turn.
    pub load: Load,
    pub shortage: Shortage,
    pub network: RefCell<Network>,
    /// The ids of the archive have been compared with those of the database.
    pub are_ids_known: Cell<bool>,
    /// Identity of the installation, which workers leave in the archive.
    pub installation: RefCell<Option<String>>,
    /// What was short when a hook was ended; none once enough is free again.
    pub disk_lack: Option<Lack>,
    /// What the fleet ordered of this node since the fleet service connected.
    pub node_orders: Cell<Option<NodeOrders>>,
    /// Plans of crawls, and of pages with settings of their own.
    plans: RefCell<HashMap<PlanKey, Rc<CrawlPlan>>>,
    /// The networks that hooks of crawls reach.
    pub ways: RefCell<HashMap<CrawlId, Rc<WayOut>>>,
    /// Problems of declarations that the journal has already, by the name of what is declared.
    pub logged_problems: RefCell<HashMap<String, Vec<String>>>,
    /// Whether the address filter of units works, if that was tested.
    pub filter_holds: Option<bool>,
    pub start_facts: StartFacts,
    pub facts: Facts,
}

impl Engine {
    pub fn new(
        scope: Scope,
        settings: Settings,
        catalogue: Catalogue,
        boot: String,
        programs: Programs,
        systemd: String,
    ) -> Engine {
        let names = Names::new(scope.unit_prefix());
        let (tokens, plans) = (HashMap::new(), RefCell::default());
        Engine {
            scope,
            settings,
            names,
            catalogue,
            boot,
            is_clock_synchronized: false,
            programs,
            systemd,
            tokens,
            library: Library::new(),
            versions: HashMap::new(),
            held: HashMap::new(),
            commands: Commands::default(),
            me: None,
            load: Load::default(),
            shortage: Shortage::default(),
            network: RefCell::default(),
            are_ids_known: Cell::new(false),
            installation: RefCell::default(),
            disk_lack: None,
            node_orders: Cell::new(None),
            plans,
            ways: RefCell::default(),
            logged_problems: RefCell::default(),
            filter_holds: None,
            start_facts: StartFacts::default(),
            facts: Facts::default(),
        }
    }

    /// Applies new settings and plugins; running crawls use them with their next hook.
    pub fn replace(&mut self, settings: Settings, catalogue: Catalogue) {
        self.settings = settings;
        self.catalogue = catalogue;
        self.plans.borrow_mut().clear();
        self.ways.borrow_mut().clear();
    }

    /// Forgets what was derived for a crawl that is over.
    pub fn forget(&self, crawl: CrawlId) {
        self.plans.borrow_mut().retain(|(of, _), _| *of != crawl);
        self.ways.borrow_mut().remove(&crawl);
    }

    pub fn input_path(&self, unit: &str, run: RunId) -> PathBuf {
        input_files::path(&self.scope, unit, run)
    }

    /// One command that held this crawl has ended.
    /// The worker of a crawl or snapshot is one no more.
    pub fn dismiss(&mut self, owner: Owner) {
        self.tokens.retain(|_, other| *other != owner);
    }

    /// The program at this path has this version; none if unknown.
    pub fn set_version(&mut self, path: PathBuf, version: Option<String>) {
        match version {
            Some(version) => self.versions.insert(path, version),
            None => self.versions.remove(&path),
        };
    }

    pub fn unhold(&mut self, crawl: CrawlId) {
        if let Some(count) = self.held.get_mut(&crawl) {
            *count -= 1;
            if *count == 0 {
                self.held.remove(&crawl);
            }
        }
    }

    pub fn limits(&self) -> Limits {
        Limits {
            workers_per_kind: self.settings.workers_per_kind,
            workers_max: self.settings.workers_max,
            snapshots_per_crawl: self.settings.snapshots_per_crawl,
            snapshots_per_host: self.settings.host_workers,
            fast_checks: self.settings.fast_checks,
            slow_checks: self.settings.slow_checks,
        }
    }

    pub fn load_limits(&self) -> LoadLimits {
        LoadLimits {
            min_free: self.settings.min_free_space,
            memory_max: self.settings.memory_pressure_max,
        }
    }

    pub fn backoff(&self) -> Backoff {
        Backoff {
            first: self.settings.retry_first,
            longest: self.settings.retry_longest,
            attempts: self.settings.attempts_max,
        }
    }

    /// Delays between visits that the server of a page refuses without naming a time.
    pub fn visit_backoff(&self) -> Backoff {
        Backoff {
            first: VISIT_DELAY,
            longest: self.settings.http_wait_max,
            attempts: self.settings.http_attempts,
        }
    }

    pub fn archive(&self) -> PathBuf {
        self.scope.data_dir().join("archive")
    }

    /// The directory for temporary files that the hooks of a crawl share. No hook can write above
    /// it, so that mounting it is safe.
    pub fn shared_tmp(&self, crawl: CrawlId) -> PathBuf {
        self.archive().join(".run").join(crawl.to_string())
    }

    /// The path of that directory for the hooks.
    fn seen_tmp(&self, shared: Option<&Path>) -> PathBuf {
        match shared {
            Some(shared) if self.scope.user => shared.to_owned(),
            _ => PathBuf::from("/tmp"),
        }
    }

    /// The directories that hooks get in their environment. They may write only to those of their
    /// crawl: profiles are among its temporary files, and a database that some of them create is in
    /// its directory.
    pub fn places(
        &self,
        crawl: &Path,
        snapshot: Option<&Path>,
        shared: Option<&Path>,
    ) -> HookDirectories {
        let tmp = self.seen_tmp(shared);
        HookDirectories {
            lib_dir: self.scope.data_dir().join("lib"),
            personas_dir: tmp.join("personas"),
            data_dir: crawl.to_owned(),
            crawl_dir: crawl.to_owned(),
            snap_dir: snapshot.map(Path::to_owned),
            home: tmp.clone(),
            tmp_dir: tmp,
            path: binary::HOOK_PATH.to_owned(),
        }
    }

    /// Finds a program: where the provider that installed it says, else as hooks do.
    pub fn find(&self, name: &str) -> Option<PathBuf> {
        let brought = self.library.get(name).and_then(|known| known.path.to_str());
        brought.and_then(|path| self.facts.program(path)).or_else(|| self.facts.program(name))
    }

    /// The layers of settings without a persona.
    pub fn layers<'a>(&'a self, config: &'a Values, base: &'a Values) -> Layers<'a> {
        Layers { crawl: config, persona: &NO_SETTINGS, config: &self.settings.values, base }
    }

    /// The plugins that a crawl with this selection, these settings and the persona in this
    /// directory would use.
    pub fn select(
        &self,
        plugins: &[String],
        config: &Values,
        persona: Option<&Path>,
    ) -> Result<Selected<'_>, String> {
        let (base, own) = (Values::new(), self.persona_settings(persona)?);
        let layers = Layers { persona: &own, ..self.layers(config, &base) };
        let plugins = if plugins.is_empty() { &self.settings.plugins } else { plugins };
        let selection = Selection { plugins: plugins.to_vec(), companions: persona.is_some() };
        self.with_programs(|known| select(&self.catalogue, &selection, &layers, known))
            .map_err(|error| error.to_string())
    }

    /// The plan of a crawl, or of a page with settings of its own, derived once and kept while the
    /// crawl runs.
    pub fn plan(&self, crawl: &CrawlWork) -> Result<Rc<CrawlPlan>, String> {
        let key = (crawl.id, crawl.page);
        if let Some(plan) = self.plans.borrow().get(&key) {
            return Ok(plan.clone());
        }
        let plan = Rc::new(self.make_plan(crawl)?);
        if self.facts.are_complete() {
            self.plans.borrow_mut().insert(key, plan.clone());
        }
        Ok(plan)
    }

    pub fn check_network(&self) -> Result<(), String> {
        let lack = self.start_facts.network_lack.as_ref();
        match self.settings.network.obstacle(lack) {
            Some((what, fix)) => Err(format!("{what}; {fix}")),
            None => Ok(()),
        }
    }

    fn make_plan(&self, crawl: &CrawlWork) -> Result<CrawlPlan, String> {
        self.check_network()?;
        match installed_names(crawl) {
            Some(names) => self.install_plan(crawl, &names),
            None => {
                let tmp = self.shared_tmp(crawl.id);
                let persona = self.persona_of(crawl)?;
                self.page_plan(&crawl.plugins, &crawl.config, persona, &tmp)
            }
        }
    }

    /// The plan of a crawl of pages with these plugins, settings and persona, whose hooks share
    /// `tmp`.
    pub fn page_plan(
        &self,
        plugins: &[String],
        config: &Values,
        persona: Option<PathBuf>,
        tmp: &Path,
    ) -> Result<CrawlPlan, String> {
        let personas = self.seen_tmp(Some(tmp)).join("personas");
        let base = self.persona_values(persona.as_deref(), &personas);
        let all = derived::with_machine(config);
        let own = self.persona_settings(persona.as_deref())?;
        let layers = Layers { persona: &own, ..self.layers(&all, &base) };
        // The hooks of the crawl itself do not change while they run.
        let first = self.select(plugins, config, persona.as_deref())?;
        let selected = self.select(plugins, &all, persona.as_deref())?;
        let planned = |selected: &Selected<'_>, family: HookFamily| -> Vec<PlannedHook> {
            let hooks = hooks_of(selected, family).into_iter();
            let planned = hooks
                .filter_map(|hook| self.planned(hook, &layers))
                .filter(|hook| persona::is_wanted(hook, persona.is_some()));
            planned.map(|hook| told(hook, config)).collect()
        };
        let both = |modern: HookFamily, older: HookFamily| {
            let mut hooks = planned(&first, modern);
            hooks.extend(planned(&first, older));
            hooks
        };
        let mut setup = both(HookFamily::CrawlSetup, HookFamily::Crawl);
        setup.extend(self.sonics(config, &selected, &layers));
        let snapshot = planned(&selected, HookFamily::Snapshot);
        let shares_tmp =
            selected.plugins.iter().any(|plugin| !plugin.schema.accompanies.is_empty());
        Ok(CrawlPlan {
            shares_tmp,
            setup,
            snapshot,
            snapshot_end: planned(&selected, HookFamily::SnapshotCleanup),
            end: both(HookFamily::CrawlCleanup, HookFamily::CrawlEnd),
            skipped: skipped_hooks(&selected),
            filter: self.url_filter(config, &own)?,
            limits: self.crawl_limits(config, &own)?,
            persona,
            hides_settings: !own.is_empty(),
            programs: self.programs(selected.plugins.iter().copied(), &layers),
        })
    }

    fn planned(&self, hook: &Hook, layers: &Layers<'_>) -> Option<PlannedHook> {
        let plugin = self.catalogue.plugin(&hook.plugin)?;
        let mut values = resolve(&self.catalogue, plugin, layers);
        binary::locate(&mut values, &|name| self.find(name));
        let own = timeout(plugin, &values, self.settings.hook_timeout);
        let (mode, limit) = match hook.name.mode {
            Mode::Foreground => (HookMode::Foreground, own),
            Mode::Finite => (HookMode::Finite, own),
            Mode::Daemon => (HookMode::Daemon, self.settings.daemon_limit),
        };
        let needs = needs(plugin, &values);
        let task = HookTask {
            key: hook.key(),
            plugin: hook.plugin.clone(),
            hook: hook.id.clone(),
            mode,
            limit,
            patience: own.min(limit),
            alongside: plugin.schema.alongside.clone(),
            after_background: plugin.schema.wait_for_background_cleanup,
            uses_daemon: uses_daemon(&self.catalogue, plugin),
            awaits: awaited(&self.catalogue, plugin, needs),
            needs,
        };
        Some(PlannedHook {
            task,
            hook: hook.clone(),
            plugin: plugin.clone(),
            values,
            request: None,
            command: None,
        })
    }

    /// The limits of a crawl: its own settings, or those of its persona, or of the configuration.
    pub fn crawl_limits(&self, config: &Values, persona: &Values) -> Result<CrawlLimits, String> {
        CrawlLimits::read(&[config, persona, &self.settings.values])
    }

    /// The filter for pages: a crawl's own setting, or that of its persona, or of the
    /// configuration.
    pub fn url_filter(&self, config: &Values, persona: &Values) -> Result<UrlFilter, String> {
        let setting = |names: &[&str], default: &str| {
            let layers = [config, persona, &self.settings.values];
            let mut found =
                layers.iter().flat_map(|layer| names.iter().map(|name| layer.get(*name)));
            found.find_map(|value| value.cloned()).unwrap_or_else(|| default.to_owned())
        };
        let allow = setting(&["URL_ALLOWLIST", "URL_WHITELIST"], &self.settings.url_allow);
        let deny = setting(&["URL_DENYLIST", "URL_BLACKLIST"], &self.settings.url_deny);
        let same_host = setting(&[SAME_HOST], "");
        let same_host = boolean(&same_host).ok_or_else(|| {
            format!("bad value '{same_host}' of {SAME_HOST}, expected true or false")
        })?;
        let filter = UrlFilter::new(&allow, &deny).map_err(|error| error.to_string())?;
        Ok(filter.on_host(same_host))
    }
}

/// Adds what earlier hooks derived, including keys that are missing in the hook's own schema.
fn told(mut hook: PlannedHook, config: &Values) -> PlannedHook {
    for (key, value) in derived::machine(config) {
        let value = || serde_json::Value::from(value);
        hook.values.entry(key.to_owned()).or_insert_with(value);
    }
    hook
}

/// Hooks that are skipped because a program is missing or too old.
fn skipped_hooks(selected: &Selected<'_>) -> Vec<(String, String, String)> {
    let mut skipped = Vec::new();
    for (plugin, skip) in &selected.skipped {
        if !matches!(
            skip,
            Skip::MissingBinary { .. } | Skip::OldBinary { .. } | Skip::RequiredMissing { .. }
        ) {
            continue;
        }
        for hook in plugin.hooks.iter().filter(|hook| hook.name.family == HookFamily::Snapshot) {
            skipped.push((plugin.name.clone(), hook.id.clone(), skip.to_string()));
        }
    }
    skipped
}
