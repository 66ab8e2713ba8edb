//! Programs that plugins require: installing them on request, and the variables for hooks that use
//! them. An installation is a crawl without pages: its worker runs provider hooks.

use crate::bus::call::{Answer, Reply};
use crate::database::{BinaryRow, CrawlWork, NewCrawl};
use crate::engine::crawl_plan::{CrawlPlan, PlannedHook};
use crate::engine::state::Engine;
use crate::machine::library::{Brought, HERE, installed_names};
use crate::main_loop;
use crate::main_loop::order::{Order, UserCall};
use crate::main_loop::rooms::Which;
use crate::main_loop::turn::{Turn, TurnResult, invalid};
use crate::notices;
use crate::programs::inspected::inspection;
use archivist_core::model::{CrawlId, Owner, ResultState, Time, Verdict};
use archivist_core::plan::Notice;
use archivist_plugin::programs::binary;
use archivist_plugin::programs::binary::Source;
use archivist_plugin::programs::install;
use archivist_plugin::programs::install::InstallStep;
use archivist_plugin::programs::version::reaches;
use archivist_plugin::{BinaryRequest, Catalogue, Hook, Layers, Plugin, Programs, Values, resolve};
use archivist_shared::bus::documents::report::{Added, Binary};
use archivist_shared::bus::documents::work::{Found, HookMode, HookTask, Report};
use archivist_shared::journal::message;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time limit of a provider hook whose plugin sets none.
const PROVIDER_LIMIT: Duration = Duration::from_secs(300);
/// Most variables that a provider may set for the hooks that use its program, and their length in
/// bytes.
const VARIABLES_MAX: usize = 64;
const VARIABLE_MAX: usize = 4096;
const NAMES_MAX: usize = 100;

impl Engine {
    fn is_there(&self, request: &BinaryRequest) -> bool {
        let shelved = |name: &str| {
            let known = self.library.get(name)?;
            Some(known.path.clone()).filter(|path| self.facts.has_file(path))
        };
        self.with_programs(|known| install::is_installed(&request.requirement, known, &shelved))
    }

    /// Calls `ask` with the known programs of the machine.
    pub(crate) fn with_programs<T>(&self, ask: impl FnOnce(Programs<'_>) -> T) -> T {
        ask(Programs {
            find: &|name| self.find(name),
            version: &|path| self.versions.get(path).cloned(),
        })
    }

    /// The hooks of an installation. Programs that it installed itself stay in the plan, so that a
    /// restarted worker gets the same list.
    pub fn install_plan(&self, crawl: &CrawlWork, names: &[String]) -> Result<CrawlPlan, String> {
        // Whatever the row says: settings of users would decide what is written to the library.
        let (base, none) = (self.directories(), Values::new());
        let layers = self.layers(&none, &base);
        let own = |request: &BinaryRequest| {
            let brought = self.library.get(&request.requirement.name);
            brought.is_some_and(|brought| brought.at >= crawl.created_at)
        };
        let mut plan = CrawlPlan {
            setup: Vec::new(),
            snapshot: Vec::new(),
            snapshot_end: Vec::new(),
            end: Vec::new(),
            skipped: Vec::new(),
            filter: self.url_filter(&none, &none)?,
            limits: self.crawl_limits(&none, &none)?,
            shares_tmp: false,
            persona: None,
            hides_settings: false,
            programs: Vec::new(),
        };
        for request in install::requests(&self.catalogue, names, &layers)? {
            // The user chose this path: no provider can install there.
            let named = !request.requirement.name.contains('/');
            if !named || (self.is_there(&request) && !own(&request)) {
                continue;
            }
            for step in install::steps(&self.catalogue, &request.requirement) {
                match step {
                    InstallStep::Run(plugin, hook) => {
                        plan.setup.push(self.provider(plugin, hook, &request, &layers));
                    }
                    InstallStep::Manual(plugin, hook) => {
                        let id = format!("{}@{}", hook.id, request.requirement.name);
                        let distribution = self.catalogue.distribution;
                        let source = Source::of(&request.requirement, distribution);
                        let why = format!("requires root: {source}");
                        plan.skipped.push((plugin.name.clone(), id, why));
                    }
                }
            }
        }
        Ok(plan)
    }

    /// Values for overrides of providers, such as `{LIB_DIR}/pip/packages/x`.
    fn directories(&self) -> Values {
        let data = self.scope.data_dir();
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let named = [("LIB_DIR", "lib"), ("PERSONAS_DIR", "personas")];
        let mut values: Values =
            named.iter().map(|(key, name)| ((*key).to_owned(), text(&data.join(name)))).collect();
        values.insert("DATA_DIR".to_owned(), text(&data));
        values
    }

    fn provider(
        &self,
        plugin: &Plugin,
        hook: &Hook,
        request: &BinaryRequest,
        layers: &Layers,
    ) -> PlannedHook {
        let mut values = resolve(&self.catalogue, plugin, layers);
        binary::locate(&mut values, &|name| self.find(name));
        let own = values
            .get(&plugin.key("TIMEOUT"))
            .and_then(|value| value.as_f64())
            .filter(|s| *s > 0.0);
        let limit = own.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let name = &request.requirement.name;
        let id = format!("{}@{name}", hook.id);
        let mut request = request.clone();
        request.hook_name.clone_from(&hook.id);
        PlannedHook {
            task: HookTask {
                key: format!("{}/{id}", hook.plugin),
                plugin: hook.plugin.clone(),
                hook: id,
                mode: HookMode::Foreground,
                limit: limit.unwrap_or(PROVIDER_LIMIT),
                patience: Duration::ZERO,
                alongside: Vec::new(),
                after_background: false,
                uses_daemon: false,
                awaits: Vec::new(),
                needs: None,
            },
            hook: Hook { unit_part: format!("{}@{name}", hook.unit_part), ..hook.clone() },
            plugin: plugin.clone(),
            values,
            request: Some(request),
            command: None,
        }
    }

    /// The installed programs of these plugins, by requested name.
    pub fn programs<'a>(
        &self,
        plugins: impl Iterator<Item = &'a Plugin>,
        layers: &Layers,
    ) -> Vec<(String, PathBuf)> {
        let needs = plugins.flat_map(|plugin| {
            let resolved = resolve(&self.catalogue, plugin, layers);
            binary::requirements(plugin, &resolved)
        });
        let found = needs.filter_map(|need| {
            let path = binary::find_any(&need.name, &|name| self.find(name))?;
            Some((need.name, path))
        });
        found.collect::<BTreeMap<_, _>>().into_iter().collect()
    }

    /// The directories of the library to bind, writable and read-only: only an installation writes.
    pub fn library_binds(&self, planned: &PlannedHook) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let library = self.library_directory().into_iter().collect();
        match planned.request {
            Some(_) => (library, Vec::new()),
            None => (Vec::new(), library),
        }
    }

    /// The directory of the library, if it exists.
    pub fn library_directory(&self) -> Option<PathBuf> {
        let there = self.start_facts.has_library;
        there.then(|| self.scope.data_dir().join("lib"))
    }
}

/// Queues the failed results of a final installation again. Other crawls have none of this
/// kind.
pub(crate) fn retry_install(turn: &mut Turn<'_>, id: CrawlId, which: &Which) -> TurnResult<u32> {
    let crawl = main_loop::crawl_of(turn, id)?;
    if installed_names(&crawl).is_none() || !crawl.status.is_final() {
        return Ok(0);
    }
    let owner = Owner::Crawl(id);
    let count = match which {
        Which::Failed => turn.tx.requeue_results(owner, None)?,
        Which::Hook(hook) => turn.tx.requeue_results(owner, Some(hook))?,
        Which::All => turn.tx.requeue_all_results(owner)?,
        Which::Missing | Which::Waiting(_) => 0,
    };
    Ok(u32::try_from(count).unwrap_or(u32::MAX))
}

/// Queues the installation of the missing programs of these plugins or programs.
/// Gets the JSON of [`Added`].
pub(crate) struct Install {
    /// Names of plugins or programs.
    pub names: Vec<String>,
    pub user: u32,
}

impl Order for Install {
    fn carry_out(&self, turn: &mut Turn<'_>, _reply: &Reply) -> TurnResult<Option<Answer>> {
        Ok(Some(Answer::json(&install(turn, &self.names, self.user)?)?))
    }

    fn user_call(&self) -> Option<UserCall<'_>> {
        UserCall::of("Install", self.user)
    }

    fn names_unknown(&self, catalogue: &Catalogue) -> bool {
        self.names.iter().any(|name| !knows_program(catalogue, name))
    }
}

/// Whether `name` is a plugin, or a program by its literal name.
fn knows_program(catalogue: &Catalogue, name: &str) -> bool {
    catalogue.plugins.iter().any(|plugin| {
        let mut programs = plugin.schema.required_binaries.iter();
        plugin.name.eq_ignore_ascii_case(name) || programs.any(|program| program.name == name)
    })
}

fn install(turn: &mut Turn<'_>, names: &[String], user: u32) -> TurnResult<Added> {
    if names.is_empty() || names.len() > NAMES_MAX {
        return Err(invalid(format!("expected 1 to {NAMES_MAX} names")));
    }
    let none = Values::new();
    let layers = turn.engine.layers(&none, &none);
    if let Some(name) = names.iter().find(|name| name.contains(',')) {
        return Err(invalid(format!("'{name}' is more than one name")));
    }
    let requests = install::requests(&turn.engine.catalogue, names, &layers).map_err(invalid)?;
    let missing = requests.iter().filter(|request| !turn.engine.is_there(request));
    let missing = missing.count() as u64;
    let url = format!("{}{}", install::URL, names.join(","));
    let crawl = turn.tx.add_crawl(&NewCrawl {
        url: &url,
        max_depth: 0,
        plugins: &[],
        config: &none,
        user,
        now: turn.now,
    })?;
    turn.log(move || {
        tracing::info!(
            message_id = message::CRAWL_ADDED,
            archivist_crawl_id = crawl.0,
            archivist_url = url.as_str(),
            archivist_urls = 0,
            "crawl {crawl} is added: it installs {missing} programs"
        )
    });
    notices::announce_crawl(turn, crawl, Notice::Added)?;
    Ok(Added {
        crawl,
        accepted: missing,
        refused: Vec::new(),
        known: 0,
        completed: 0,
        joined: None,
    })
}

/// Whether the program of this provider hook was installed by this crawl.
pub(crate) fn is_brought(
    turn: &Turn<'_>,
    crawl: &CrawlWork,
    planned: &PlannedHook,
) -> TurnResult<bool> {
    let Some(request) = &planned.request else {
        return Ok(false);
    };
    let row = turn.tx.binary(&request.requirement.name)?;
    Ok(row.is_some_and(|row| {
        // A program that was found on the search path was not installed.
        row.found_at >= crawl.created_at
            && row.provider != HERE
            && turn.engine.facts.has_file(Path::new(&row.abspath))
    }))
}

/// Records the program that a provider hook reports. Returns a verdict if the report is false.
pub(crate) fn take_binary(
    turn: &mut Turn<'_>,
    crawl: &CrawlWork,
    provider: &str,
    report: &Report,
) -> TurnResult<Option<Verdict>> {
    let Some(found) = &report.binary else {
        return Ok(None);
    };
    let ours = report.key.split_once('@').map(|(_, name)| name) == Some(&found.name);
    if !ours || installed_names(crawl).is_none() || report.verdict.state != ResultState::Succeeded {
        return Ok(None);
    }
    let path = PathBuf::from(&found.abspath);
    let failed =
        |error: String| Ok(Some(Verdict { state: ResultState::Failed, error: Some(error) }));
    if !path.is_absolute() || !turn.engine.facts.has_file(&path) {
        let says = &found.abspath;
        return failed(format!("the hook reported '{says}', which does not exist"));
    }
    let plan = turn.engine.plan(crawl).map_err(invalid)?;
    let planned = plan.hook(Owner::Crawl(crawl.id), &report.key);
    let least = planned.and_then(|hook| hook.request.as_ref()?.requirement.min_version.as_deref());
    if let (Some(version), Some(least)) = (&found.version, least)
        && reaches(version, least) == Some(false)
    {
        let error =
            format!("the hook installed version {version}, but {least} or newer is required");
        return failed(error);
    }
    turn.tx.record_binary(&row(found, provider, turn.now))?;
    let (name, at) = (found.name.clone(), turn.now);
    let (file, version) = (path.clone(), found.version.clone());
    turn.remember(move |engine| engine.set_version(file, version));
    turn.act(inspection(vec![(name.clone(), path.clone())], None));
    if found.provider.as_deref() != Some(HERE) {
        let brought = Brought { path, at };
        turn.remember(move |engine| {
            engine.library.insert(name, brought);
        });
    }
    Ok(None)
}

/// Adds the variables of the programs that a hook uses to its environment.
pub(crate) fn layer_program_env(
    turn: &Turn<'_>,
    planned: &PlannedHook,
    variables: &mut Vec<(String, String)>,
) -> TurnResult<()> {
    let rows = turn.tx.binaries()?;
    if rows.iter().all(|row| row.env.is_empty()) {
        return Ok(());
    }
    let catalogue = &turn.engine.catalogue;
    let plugins = install::with_required(catalogue, &planned.plugin);
    let needs = plugins.iter().flat_map(|plugin| binary::requirements(plugin, &planned.values));
    for need in needs {
        // The name is a path by now, where the program is the value of a setting.
        let mut rows = rows.iter();
        let row = rows.find(|row| row.name == need.name || row.abspath == need.name);
        let facts = &turn.engine.facts;
        if let Some(row) = row
            && !row.env.is_empty()
            && facts.has_file(Path::new(&row.abspath))
        {
            archivist_plugin::contract::environment::layer(variables, &row.env);
        }
    }
    Ok(())
}

pub(crate) fn binaries(turn: &Turn<'_>) -> TurnResult<Vec<Binary>> {
    let none = Values::new();
    let layers = turn.engine.layers(&none, &none);
    let catalogue = &turn.engine.catalogue;
    let uses = turn.tx.uses()?;
    let mut listed: BTreeMap<String, Binary> = BTreeMap::new();
    for plugin in &catalogue.plugins {
        for request in install::requests_of(catalogue, plugin, &layers) {
            let name = request.requirement.name.clone();
            // If plugins require different versions, the one that is not satisfied counts.
            let entry = match listed.remove(&name) {
                Some(entry) if entry.least.is_some() => entry,
                Some(Binary { plugins, .. }) => {
                    Binary { plugins, ..binary(turn, plugin, &request)? }
                }
                None => binary(turn, plugin, &request)?,
            };
            let plugins = [entry.plugins, vec![plugin.name.clone()]].concat();
            listed.insert(name, Binary { plugins, ..entry });
        }
    }
    for binary in listed.values_mut() {
        let uses = binary.plugins.iter().filter_map(|name| uses.get(name));
        binary.uses = uses.copied().sum();
    }
    Ok(listed.into_values().collect())
}

fn binary(turn: &Turn<'_>, plugin: &Plugin, request: &BinaryRequest) -> TurnResult<Binary> {
    let name = &request.requirement.name;
    let found = binary::find_any(name, &|name| turn.engine.find(name));
    let shelved = || turn.engine.library.get(name).map(|known| known.path.clone());
    let path = found.or_else(|| shelved().filter(|path| turn.engine.facts.has_file(path)));
    let catalogue = &turn.engine.catalogue;
    let Some(path) = path else {
        let source = install::advice(catalogue, plugin, &request.requirement);
        return Ok(Binary {
            name: name.clone(),
            missing: Some(source.to_string()),
            ..Binary::default()
        });
    };
    let abspath = path.to_string_lossy().into_owned();
    let mut binary = match turn.tx.binary(name)? {
        Some(row) if row.abspath == abspath => row.into(),
        _ => Binary {
            name: name.clone(),
            abspath: Some(abspath),
            provider: Some(HERE.to_owned()),
            ..Binary::default()
        },
    };
    let version = binary.version.as_deref();
    if version.is_some_and(|version| request.requirement.is_too_old(version)) {
        let source = install::advice(catalogue, plugin, &request.requirement);
        binary.missing = Some(source.to_string());
        binary.least.clone_from(&request.requirement.min_version);
    }
    Ok(binary)
}

/// Records hooks of an installation that require root as skipped results.
pub(crate) fn note_by_hand(turn: &Turn<'_>, plan: &CrawlPlan, crawl: &CrawlWork) -> TurnResult<()> {
    match installed_names(crawl) {
        Some(_) => note_skipped(turn, plan, Owner::Crawl(crawl.id), crawl.id),
        None => Ok(()),
    }
}

/// The row of a reported program, with bounded texts. The digest is missing: the file is inspected
/// later, and hooks are not trusted about it.
fn row(found: &Found, provider: &str, now: Time) -> BinaryRow {
    let short = |text: &String| text.len() <= VARIABLE_MAX;
    let env = found.env.iter().filter(|(key, value)| short(key) && short(value));
    let provider = found.provider.as_deref().unwrap_or(provider);
    BinaryRow {
        name: found.name.clone(),
        abspath: found.abspath.clone(),
        version: found.version.as_ref().map(|text| text.chars().take(100).collect()),
        sha256: None,
        provider: provider.chars().take(100).collect(),
        env: env.take(VARIABLES_MAX).map(|(key, value)| (key.clone(), value.clone())).collect(),
        stamp: None,
        found_at: now,
    }
}

/// Records the hooks of plugins with a missing program as skipped results.
pub(crate) fn note_skipped(
    turn: &Turn<'_>,
    plan: &CrawlPlan,
    owner: Owner,
    crawl: CrawlId,
) -> TurnResult<()> {
    for (plugin, hook, why) in &plan.skipped {
        let verdict = Verdict { state: ResultState::Skipped, error: Some(why.clone()) };
        turn.tx.note_result(owner, crawl, plugin, hook, &verdict, turn.now)?;
    }
    Ok(())
}
