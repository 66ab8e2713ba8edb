//! Starting workers and hooks: the record first, then the action.

use crate::main_loop::action::EngineAction;
use crate::main_loop::crawl_plan::{CrawlPlan, PlannedHook};
use crate::main_loop::starts::Output;
use crate::main_loop::turn::{Change, Turn, TurnResult, failed};
use crate::programs::library::installed_names;
use crate::store::{CrawlWork, NewRun, SnapshotWork};
use crate::units::life;
use crate::work::persona;
use archivist_core::model::{
    CrawlId, IdMarks, Owner, ResultState, RunId, SnapshotId, Step, Verdict,
};
use archivist_core::plan::{Notice, VisitRules};
use archivist_core::unit::{HookSpec, UnitKind, UnitSpec, WorkerSpec};
use archivist_plugin::contract::environment::for_request;
use archivist_plugin::environment;
use archivist_plugin::{BinaryRequest, HookContext, HookFamily, HookTarget, argv, request_argv};
use archivist_shared::bus::documents::report::Filter;
use archivist_shared::bus::documents::work::{About, Assignment, Skipped};
use archivist_shared::config::HOOK_USERS;
use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Most URLs for a hook of a crawl; its arguments have fewer if they are long.
const URLS_MAX: u32 = 10_000;

/// A token for a worker: 128 random bits in hex.
pub(crate) fn token() -> TurnResult<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| failed(format!("failed to read random bytes: {error}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

impl Turn<'_> {
    pub(crate) fn begin_crawl(&mut self, id: CrawlId) -> TurnResult<()> {
        let mut crawl = self.crawl_of(id)?;
        // Whether its users may use their persona is checked again.
        self.engine.forget(id);
        let plan = self.engine.plan(&crawl);
        self.require_facts()?;
        let plan = match plan {
            Ok(plan) => plan,
            Err(why) => return self.give_up_crawl(id, &why),
        };
        self.tx.set_crawl_persona(id, &plan.persona_name())?;
        self.note_by_hand(&plan, &crawl)?;
        self.inspect(&plan.programs, None)?;
        // A page was retried while the worker was ending: the browser that its setup started is gone.
        if self.tx.is_released(id)? {
            self.tx.requeue_all_results(Owner::Crawl(id))?;
        }
        let directory = self.crawl_directory(&crawl);
        if crawl.directory.is_none() {
            crawl.identity = Some(self.identify(Owner::Crawl(id))?);
        }
        let assignment = Assignment {
            last_hooks: plan.end.iter().map(|hook| hook.task.clone()).collect(),
            ..self.assignment(
                &crawl,
                Owner::Crawl(id),
                &crawl.url,
                0,
                &directory,
                &plan.setup,
            )?
        };
        self.tx.step_crawl(id, Step::Start, None, None, self.now)?;
        self.tx
            .equip_crawl(id, &assignment.token, &directory.to_string_lossy())?;
        // An installation runs as the owner of the library, which is the user of no crawl.
        if crawl.directory.is_none() && installed_names(&crawl).is_none() {
            self.tx.choose_hook_user(id, HOOK_USERS)?;
        }
        self.changes.insert(Change::Crawl(id));
        self.announce_crawl(id, Notice::Started)?;
        self.start_worker(&crawl, assignment, crawl.attempts + 1)
    }

    pub(crate) fn begin_snapshot(&mut self, id: SnapshotId) -> TurnResult<()> {
        let snapshot = self.snapshot_of(id)?;
        let owner = Owner::Snapshot(id);
        let crawl = self.crawl_for(owner)?;
        let plan = match self.engine.plan(&crawl) {
            Ok(plan) => plan,
            Err(why) => {
                self.tx
                    .step_snapshot(id, Step::Seal, None, Some(&why), self.now)?;
                self.tx.fail_open_results(owner, &why, self.now)?;
                self.changes.insert(Change::Snapshot {
                    crawl: crawl.id,
                    id,
                });
                self.announce_snapshot(id, Notice::Sealed)?;
                return self.tidy_crawl(crawl.id);
            }
        };
        if !self.admit(&crawl, &snapshot)? || !self.has_local_files(&snapshot)? {
            return Ok(());
        }
        let (directory, identity) = match &snapshot.directory {
            Some(directory) => (PathBuf::from(directory), snapshot.identity.clone()),
            None => (
                self.directory(&snapshot.created_at.day(), &snapshot.url, owner),
                Some(self.identify(owner)?),
            ),
        };
        self.note_skipped(&plan, owner, crawl.id)?;
        let (url, depth) = (&snapshot.url, snapshot.depth);
        let about = self.about(&plan, &snapshot)?;
        let last_hooks = plan.snapshot_end.iter().map(|hook| hook.task.clone());
        let assignment = Assignment {
            about,
            identity,
            visit: self.visit_rules(id)?,
            last_hooks: last_hooks.collect(),
            ..self.assignment(&crawl, owner, url, depth, &directory, &plan.snapshot)?
        };
        self.tx
            .step_snapshot(id, Step::Start, None, None, self.now)?;
        self.pace(crawl.id, id)?;
        self.tx
            .equip_snapshot(id, &assignment.token, &directory.to_string_lossy())?;
        self.changes.insert(Change::Snapshot {
            crawl: crawl.id,
            id,
        });
        self.announce_snapshot(id, Notice::Started)?;
        self.start_worker(&crawl, assignment, snapshot.attempts + 1)
    }

    /// Records the hooks of plugins with a missing program as skipped results.
    pub(crate) fn note_skipped(
        &self,
        plan: &CrawlPlan,
        owner: Owner,
        crawl: CrawlId,
    ) -> TurnResult<()> {
        for (plugin, hook, why) in &plan.skipped {
            let verdict = Verdict {
                state: ResultState::Skipped,
                error: Some(why.clone()),
            };
            self.tx
                .note_result(owner, crawl, plugin, hook, &verdict, self.now)?;
        }
        Ok(())
    }

    /// What the page about a snapshot shows, in addition to its results.
    fn about(&self, plan: &CrawlPlan, snapshot: &SnapshotWork) -> TurnResult<About> {
        let filter = Filter {
            owner: Some(Owner::Snapshot(snapshot.id)),
            ..Filter::default()
        };
        let row = self.tx.list_snapshots(&filter)?.pop();
        let (title, tags) = row.map_or_else(Default::default, |row| (row.title, row.tags));
        let skipped = plan.skipped.iter().cloned();
        Ok(About {
            archive: self.engine.archive(),
            crawl: Some(snapshot.crawl),
            added_at: Some(snapshot.created_at),
            title,
            tags,
            skipped: skipped
                .map(|(plugin, hook, why)| Skipped { plugin, hook, why })
                .collect(),
        })
    }

    /// Draws the identity that the directory of a crawl or snapshot gets at its first start.
    fn identify(&self, owner: Owner) -> TurnResult<String> {
        let identity = token()?;
        self.tx.identify(owner, &identity)?;
        Ok(identity)
    }

    fn assignment(
        &self,
        crawl: &CrawlWork,
        owner: Owner,
        url: &str,
        depth: u32,
        directory: &Path,
        hooks: &[PlannedHook],
    ) -> TurnResult<Assignment> {
        let settings = &self.engine.settings;
        let plan = self.engine.plan(crawl).map_err(failed)?;
        Ok(Assignment {
            token: token()?,
            bus_name: self.engine.scope.bus_name(),
            user_scope: self.engine.scope.user,
            owner,
            url: url.to_owned(),
            depth,
            max_depth: crawl.max_depth,
            directory: directory.to_owned(),
            crawl_directory: self.crawl_directory(crawl),
            identity: crawl.identity.clone(),
            crawl_identity: crawl.identity.clone(),
            ids: IdMarks::default(),
            installation: self.engine.installation.borrow().clone(),
            shared_tmp: plan.shares_tmp.then(|| self.engine.shared_tmp(crawl.id)),
            hooks: hooks.iter().map(|hook| hook.task.clone()).collect(),
            last_hooks: Vec::new(),
            ready_limit: settings.ready_limit,
            stop_limit: settings.stop_limit,
            output_limit: settings.output_limit,
            visit: VisitRules::default(),
            about: About {
                archive: self.engine.archive(),
                ..About::default()
            },
        })
    }

    fn start_worker(
        &mut self,
        crawl: &CrawlWork,
        mut assignment: Assignment,
        attempt: u32,
    ) -> TurnResult<()> {
        let owner = assignment.owner;
        let worker = WorkerSpec {
            owner,
            crawl: crawl.id,
            url: &assignment.url,
            program: &self.engine.programs.worker,
            user_scope: self.engine.scope.user,
            archive: self.engine.archive(),
            limit: self.engine.worker_limit(owner),
            network: self
                .way_out(crawl.id)?
                .network(crawl.id, &self.engine.names),
        };
        let spec = UnitSpec::worker(&self.engine.names, worker);
        let run = self.record(&spec, owner, crawl.id, None, attempt, &BTreeSet::new())?;
        assignment.ids = self.tx.highest_ids()?;
        let stdin = Some(serde_json::to_vec(&assignment)?);
        self.act(EngineAction::Admit {
            token: assignment.token,
            owner,
        });
        life::start(self, run, spec, stdin, Output::OfUnit, None);
        Ok(())
    }

    /// Starts a hook for the worker of `owner`.
    pub(crate) fn begin_hook(
        &mut self,
        owner: Owner,
        crawl: &CrawlWork,
        planned: &PlannedHook,
        stdout: Arc<OwnedFd>,
    ) -> TurnResult<RunId> {
        let (plugin, hook) = (&planned.task.plugin, &planned.task.hook);
        let attempt = self
            .tx
            .start_result(owner, crawl.id, plugin, hook, self.now)?;
        let spec = self.hook_spec(owner, crawl, planned)?;
        let plan = self.engine.plan(crawl).map_err(failed)?;
        let settings = planned.values.keys().map(String::as_str);
        let hidden = settings.filter(|_| plan.hides_settings).collect();
        let name = Some((plugin.as_str(), hook.as_str()));
        let run = self.record(&spec, owner, crawl.id, name, attempt, &hidden)?;
        self.changes.insert(Change::Hook {
            crawl: crawl.id,
            owner,
            plugin: plugin.clone(),
            hook: hook.clone(),
        });
        let (stdin, stdout) = (spec.launch(), Output::Descriptor(stdout));
        life::start(self, run, spec, stdin, stdout, None);
        Ok(run)
    }

    fn hook_spec(
        &self,
        owner: Owner,
        crawl: &CrawlWork,
        planned: &PlannedHook,
    ) -> TurnResult<UnitSpec> {
        let snapshot = match owner {
            Owner::Snapshot(id) => Some(self.snapshot_of(id)?),
            Owner::Crawl(_) => None,
        };
        let crawl_directory = self.crawl_directory(crawl);
        let own = snapshot
            .as_ref()
            .and_then(|snapshot| snapshot.directory.clone());
        let own = own.map_or_else(|| crawl_directory.clone(), PathBuf::from);
        let url = snapshot
            .as_ref()
            .map_or(crawl.url.as_str(), |snapshot| snapshot.url.as_str());
        let depth = snapshot.as_ref().map_or(0, |snapshot| snapshot.depth);

        let plan = self.engine.plan(crawl).map_err(failed)?;
        let shared = plan.shares_tmp.then(|| self.engine.shared_tmp(crawl.id));
        let snap_dir = snapshot.as_ref().map(|_| own.as_path());
        let mut places = self
            .engine
            .places(&crawl_directory, snap_dir, shared.as_deref());
        let index = match &planned.request {
            None => self.engine.index_of(&planned.plugin),
            Some(_) => None,
        };
        if let Some(index) = &index {
            places.data_dir.clone_from(index);
        }
        let crawl_id = crawl.id.to_string();
        let first = match planned.hook.name.family {
            HookFamily::CrawlSetup | HookFamily::CrawlCleanup => {
                self.tx.first_snapshot(crawl.id)?
            }
            _ => None,
        };
        let snapshot_id = first.map_or_else(|| owner.to_string(), |id| id.to_string());
        let context = HookContext {
            snapshot_id: snapshot_id.clone(),
            snapshot_depth: depth,
            crawl_id: crawl_id.clone(),
            plugin: &planned.task.plugin,
            hook_name: &planned.task.hook,
        };
        let mut environment = environment(&planned.plugin, &planned.values, &places, &context);
        let urls = match planned.hook.name.family {
            HookFamily::Crawl | HookFamily::CrawlEnd => self.tx.crawl_urls(crawl.id, URLS_MAX)?,
            _ => Vec::new(),
        };
        let target = HookTarget {
            url,
            urls: &urls,
            snapshot_id: &snapshot_id,
            crawl_id: &crawl_id,
            depth,
        };

        let mut bind = vec![own.clone()];
        if crawl_directory != own {
            bind.push(crawl_directory);
        }
        // A user's hooks see this directory at its real path.
        bind.extend(shared.clone().filter(|_| self.engine.scope.user));
        let (library, mut bind_read_only) = self.engine.library_binds(planned);
        bind.extend(library);
        let user = match &index {
            Some(_) => self.engine.scope.index_user(),
            None => self.engine.scope.hook_user(crawl.hook_user),
        };
        bind.extend(index);
        bind_read_only.extend(self.hidden_plugin_directory(&planned.plugin.dir));
        if let Some(persona) = persona::for_hook(&plan, planned) {
            environment.push(persona::told(persona));
            bind_read_only.push(persona.to_owned());
        }
        let working_directory = own.join(&planned.task.plugin);
        let argv = match &planned.request {
            Some(request) => {
                let request = BinaryRequest {
                    output_dir: working_directory.to_string_lossy().into_owned(),
                    ..request.clone()
                };
                for_request(&mut environment, &request);
                request_argv(&planned.hook, &request)
            }
            None => {
                self.layer_program_env(planned, &mut environment)?;
                let own = planned.command.clone();
                own.unwrap_or_else(|| argv(&planned.hook, &target))
            }
        };
        let way_out = self.way_out(crawl.id)?;
        if !way_out.is_own && !self.engine.scope.user {
            bind_read_only.extend(
                self.engine
                    .start_facts
                    .addresses
                    .resolver_paths
                    .iter()
                    .cloned(),
            );
        }
        Ok(UnitSpec::hook(
            &self.engine.names,
            HookSpec {
                owner,
                crawl: crawl.id,
                snapshot: snapshot.as_ref().map(|snapshot| snapshot.id),
                url,
                plugin: &planned.task.plugin,
                hook: &planned.task.hook,
                unit_part: &planned.hook.unit_part,
                argv,
                environment,
                launcher: self.engine.programs.launcher.clone(),
                not_after: self.not_after(snapshot.as_ref().map(|snapshot| snapshot.id))?,
                working_directory,
                limit: planned.task.limit.max(Duration::from_secs(1)),
                bind,
                bind_read_only,
                tmp: shared.filter(|_| !self.engine.scope.user),
                network: way_out.network(crawl.id, &self.engine.names),
                addresses: self.engine.filter_of(&way_out),
                user,
            },
        ))
    }

    /// The directory of a plugin that hooks could not see otherwise, with its siblings: homes, the
    /// data directory and the configuration are hidden.
    fn hidden_plugin_directory(&self, plugin: &Path) -> Vec<PathBuf> {
        const HIDDEN: [&str; 7] = [
            "/etc/archivist",
            "/home",
            "/root",
            "/run",
            "/tmp",
            "/var/tmp",
            "/var/lib",
        ];
        let hidden = HIDDEN.iter().any(|top| plugin.starts_with(top));
        plugin
            .parent()
            .filter(|_| hidden)
            .map(Path::to_owned)
            .into_iter()
            .collect()
    }

    fn record(
        &self,
        spec: &UnitSpec,
        owner: Owner,
        crawl: CrawlId,
        hook: Option<(&str, &str)>,
        attempt: u32,
        hidden: &BTreeSet<&str>,
    ) -> TurnResult<RunId> {
        debug_assert_eq!(hook.is_some(), spec.kind == UnitKind::Hook);
        if self.tx.open_run(&spec.name)?.is_some() {
            let text = format!("unit '{}' is still running", spec.name);
            return Err(failed(text));
        }
        let names = &self.engine.names;
        let parent = match (spec.kind, owner) {
            (UnitKind::Hook, Owner::Snapshot(id)) => Some(names.snapshot_worker(id)),
            (UnitKind::CrawlWorker, _) => None,
            _ => Some(names.crawl_worker(crawl)),
        };
        Ok(self.tx.record_run(&NewRun {
            kind: spec.kind,
            owner,
            crawl,
            plugin: hook.map(|(plugin, _)| plugin),
            hook: hook.map(|(_, hook)| hook),
            attempt,
            unit: &spec.name,
            boot: &self.engine.boot,
            argv: &spec.argv,
            parent: parent.as_deref(),
            directory: spec.working_directory.as_deref(),
            limit: spec.limit,
            environment: self.engine.recorded(&spec.environment, hidden),
            not_after: spec.not_after,
            now: self.now,
        })?)
    }
}
