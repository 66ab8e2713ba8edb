//! Starting workers and hooks: the record first, then the action.

use crate::database::{CrawlWork, NewRun, SnapshotWork};
use crate::engine::crawl_plan::{CrawlPlan, PlannedHook};
use crate::engine::persona;
use crate::fleet;
use crate::machine::library::installed_names;
use crate::machine::token::token;
use crate::main_loop;
use crate::main_loop::saved::{judge_page, page_roles};
use crate::main_loop::starts::Output;
use crate::main_loop::turn::{Change, Turn, TurnResult, failed};
use crate::notices;
use crate::programs;
use crate::units::life;
use crate::work::certificate;
use crate::work::ends;
use crate::work::host_delay;
use crate::work::limits;
use crate::work::network;
use crate::work::reach;
use crate::work::visit;
use archivist_config::HOOK_USERS;
use archivist_core::model::{CrawlId, IdMarks, Owner, RECORDER, RunId, SnapshotId, Step};
use archivist_core::plan::{Notice, VisitRules};
use archivist_core::unit::{HookSpec, UnitKind, UnitSpec, WorkerSpec};
use archivist_plugin::contract::environment::for_request;
use archivist_plugin::environment;
use archivist_plugin::{BinaryRequest, HookContext, HookFamily, HookTarget, argv, request_argv};
use archivist_shared::bus::documents::report::{Filter, Snapshot};
use archivist_shared::bus::documents::work::{About, Assignment, OtherVersion, Sharing, Skipped};
use archivist_shared::staged;
use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Setting of the recorder whether recordings share bodies.
const SHARES: &str = "WACZ_DEDUPE";
/// Most URLs for a hook of a crawl; its arguments have fewer if they are long.
const URLS_MAX: u32 = 10_000;
/// Most other snapshots of a page that its worker gets to know. It needs them only if the page has no list
/// yet, because it has one other snapshot, or older versions of this program archived it.
const VERSIONS_MAX: u32 = 100;

pub(crate) fn begin_crawl(turn: &mut Turn<'_>, id: CrawlId) -> TurnResult<()> {
    let mut crawl = main_loop::crawl_of(turn, id)?;
    // Whether its users may use their persona is checked again.
    turn.engine.forget(id);
    let plan = turn.engine.plan(&crawl);
    turn.require_facts()?;
    let plan = match plan {
        Ok(plan) => plan,
        Err(why) => return ends::give_up_crawl(turn, id, &why),
    };
    turn.tx.set_crawl_persona(id, &plan.persona_name())?;
    programs::note_by_hand(turn, &plan, &crawl)?;
    programs::inspect(turn, &plan.programs, None)?;
    // A page was retried while the worker was ending: the browser that its setup started is gone.
    if turn.tx.is_released(id)? {
        turn.tx.requeue_all_results(Owner::Crawl(id))?;
    }
    let directory = main_loop::crawl_directory(turn, &crawl);
    if crawl.directory.is_none() {
        crawl.identity = Some(identify(turn, Owner::Crawl(id))?);
    }
    let assignment = Assignment {
        last_hooks: plan.end.iter().map(|hook| hook.task.clone()).collect(),
        ..assignment(turn, &crawl, Owner::Crawl(id), &crawl.url, 0, &directory, &plan.setup)?
    };
    turn.tx.step_crawl(id, Step::Start, None, None, turn.now)?;
    turn.tx.equip_crawl(id, &assignment.token, &directory.to_string_lossy())?;
    // An installation runs as the owner of the library, which is the user of no crawl.
    if crawl.directory.is_none() && installed_names(&crawl).is_none() {
        turn.tx.choose_hook_user(id, HOOK_USERS)?;
    }
    turn.changes.insert(Change::Crawl(id));
    notices::announce_crawl(turn, id, Notice::Started)?;
    start_worker(turn, &crawl, assignment, crawl.attempts + 1)
}

pub(crate) fn begin_snapshot(turn: &mut Turn<'_>, id: SnapshotId) -> TurnResult<()> {
    let snapshot = main_loop::snapshot_of(turn, id)?;
    let owner = Owner::Snapshot(id);
    let crawl = main_loop::crawl_for(turn, owner)?;
    let plan = match turn.engine.plan(&crawl) {
        Ok(plan) => plan,
        Err(why) => {
            turn.tx.fail_open_results(owner, &why, turn.now)?;
            let judgement = judge_page(turn, id, Some(&why))?;
            turn.tx.seal_snapshot(id, &judgement, turn.now)?;
            turn.changes.insert(Change::Snapshot { crawl: crawl.id, id });
            notices::announce_snapshot(turn, id, Notice::Sealed)?;
            return ends::tidy_crawl(turn, crawl.id);
        }
    };
    if !limits::admit(turn, &crawl, &snapshot)? {
        return Ok(());
    }
    for admit in turn.rooms.parts().admit {
        if !admit(turn, &snapshot)? {
            return Ok(());
        }
    }
    let (directory, identity) = match &snapshot.directory {
        Some(directory) => (PathBuf::from(directory), snapshot.identity.clone()),
        None => (
            main_loop::directory(turn, &snapshot.visited_at.day(), &snapshot.url, owner),
            Some(identify(turn, owner)?),
        ),
    };
    programs::note_skipped(turn, &plan, owner, crawl.id)?;
    // The start dates the visit, which the worker shows.
    turn.tx.step_snapshot(id, Step::Start, None, None, turn.now)?;
    let (url, depth) = (&snapshot.url, snapshot.depth);
    let about = about(turn, &plan, &snapshot)?;
    let last_hooks = plan.snapshot_end.iter().map(|hook| hook.task.clone());
    let assignment = Assignment {
        about,
        identity,
        staged: staged(turn, &crawl, url),
        visit: visit::visit_rules(turn, id)?,
        sharing: sharing(turn, &crawl, &plan),
        last_hooks: last_hooks.collect(),
        ..assignment(turn, &crawl, owner, url, depth, &directory, &plan.snapshot)?
    };
    host_delay::pace(turn, crawl.id, id)?;
    network::starts(turn, &snapshot);
    turn.tx.equip_snapshot(id, &assignment.token, &directory.to_string_lossy())?;
    turn.changes.insert(Change::Snapshot { crawl: crawl.id, id });
    notices::announce_snapshot(turn, id, Notice::Started)?;
    start_worker(turn, &crawl, assignment, snapshot.attempts + 1)
}

/// The directory with the files that a command has imported for the page.
fn staged(turn: &Turn<'_>, crawl: &CrawlWork, url: &str) -> Option<PathBuf> {
    let name = crawl.config.get(staged::STAGED_SETTING)?;
    let directory = turn.engine.archive().join(staged::STAGED).join(name);
    staged::is_name(name).then(|| directory.join(staged::name_of(url)))
}

/// With which recordings those of a crawl share bodies: with those of the same users and persona.
fn sharing(turn: &Turn<'_>, crawl: &CrawlWork, plan: &CrawlPlan) -> Option<Sharing> {
    let mut hooks = plan.snapshot.iter();
    let recorder = hooks.find(|hook| hook.task.plugin == RECORDER)?;
    let is_on = recorder.values.get(SHARES)?.as_bool()?;
    (is_on && !crawl.users.is_empty()).then(|| {
        let users: Vec<String> = crawl.users.iter().map(u32::to_string).collect();
        Sharing {
            program: turn.engine.programs.archivist.clone(),
            directory: format!("{}-{}", users.join("+"), plan.persona_name()),
        }
    })
}

/// What the page about a snapshot shows, in addition to its results.
pub(super) fn about(
    turn: &Turn<'_>,
    plan: &CrawlPlan,
    snapshot: &SnapshotWork,
) -> TurnResult<About> {
    let filter = Filter::of(Owner::Snapshot(snapshot.id));
    let row = turn.tx.list_snapshots(&filter)?.pop();
    let visited_at = row.as_ref().map(|row| row.visited_at);
    let (title, tags) = row.map_or_else(Default::default, |row| (row.title, row.tags));
    let others = turn.tx.other_versions(&snapshot.url, snapshot.id, VERSIONS_MAX)?;
    let skipped = plan.skipped.iter().cloned();
    Ok(About {
        archive: turn.engine.archive(),
        crawl: Some(snapshot.crawl),
        added_at: Some(snapshot.created_at),
        title,
        tags,
        skipped: skipped.map(|(plugin, hook, why)| Skipped { plugin, hook, why }).collect(),
        roles: page_roles(turn),
        visited_at,
        versions: others.into_iter().filter_map(other_version).collect(),
    })
}

fn other_version(row: Snapshot) -> Option<OtherVersion> {
    Some(OtherVersion {
        id: row.id,
        at: row.visited_at,
        http_status: row.http_status,
        ended_at: row.ended_at,
        directory: row.directory?.into(),
    })
}

/// Draws an identity or a token: 128 random bits in hex.
pub(super) fn draw() -> TurnResult<String> {
    token().map_err(|error| failed(error.to_string()))
}

/// Draws the identity that the directory of a crawl or snapshot gets at its first start.
fn identify(turn: &Turn<'_>, owner: Owner) -> TurnResult<String> {
    let identity = draw()?;
    turn.tx.identify(owner, &identity)?;
    Ok(identity)
}

pub(super) fn assignment(
    turn: &Turn<'_>,
    crawl: &CrawlWork,
    owner: Owner,
    url: &str,
    depth: u32,
    directory: &Path,
    hooks: &[PlannedHook],
) -> TurnResult<Assignment> {
    let settings = &turn.engine.settings;
    let plan = turn.engine.plan(crawl).map_err(failed)?;
    Ok(Assignment {
        token: draw()?,
        bus_name: turn.engine.scope.bus_name(),
        user_scope: turn.engine.scope.user,
        owner,
        url: url.to_owned(),
        depth,
        max_depth: crawl.max_depth,
        directory: directory.to_owned(),
        crawl_directory: main_loop::crawl_directory(turn, crawl),
        identity: crawl.identity.clone(),
        crawl_identity: crawl.identity.clone(),
        ids: IdMarks::default(),
        installation: turn.engine.installation.borrow().clone(),
        shared_tmp: plan.shares_tmp.then(|| turn.engine.shared_tmp(crawl.id)),
        hooks: hooks.iter().map(|hook| hook.task.clone()).collect(),
        last_hooks: Vec::new(),
        ready_limit: settings.ready_limit,
        stop_limit: settings.stop_limit,
        output_limit: settings.output_limit,
        staged: None,
        sharing: None,
        visit: VisitRules::default(),
        about: About { archive: turn.engine.archive(), ..About::default() },
    })
}

fn start_worker(
    turn: &mut Turn<'_>,
    crawl: &CrawlWork,
    mut assignment: Assignment,
    attempt: u32,
) -> TurnResult<()> {
    let owner = assignment.owner;
    let worker = WorkerSpec {
        owner,
        crawl: crawl.id,
        url: &assignment.url,
        program: &turn.engine.programs.worker,
        user_scope: turn.engine.scope.user,
        archive: turn.engine.archive(),
        limit: turn.engine.worker_limit(owner),
        network: reach::way_out(turn, crawl.id)?.network(crawl.id, &turn.engine.names),
    };
    let spec = UnitSpec::worker(&turn.engine.names, worker);
    let run = record(turn, &spec, owner, crawl.id, None, attempt, &BTreeSet::new())?;
    assignment.ids = turn.tx.highest_ids()?;
    let stdin = Some(serde_json::to_vec(&assignment)?);
    let token = assignment.token;
    turn.remember(move |engine| {
        engine.tokens.insert(token, owner);
    });
    life::start(turn, run, spec, stdin, Output::OfUnit, None);
    Ok(())
}

/// Starts a hook for the worker of `owner`.
pub(super) fn begin_hook(
    turn: &mut Turn<'_>,
    owner: Owner,
    crawl: &CrawlWork,
    planned: &PlannedHook,
    stdout: Arc<OwnedFd>,
) -> TurnResult<RunId> {
    let (plugin, hook) = (&planned.task.plugin, &planned.task.hook);
    let attempt = turn.tx.start_result(owner, crawl.id, plugin, hook, turn.now)?;
    let spec = hook_spec(turn, owner, crawl, planned)?;
    let plan = turn.engine.plan(crawl).map_err(failed)?;
    let settings = planned.values.keys().map(String::as_str);
    let hidden = settings.filter(|_| plan.hides_settings).collect();
    let name = Some((plugin.as_str(), hook.as_str()));
    let run = record(turn, &spec, owner, crawl.id, name, attempt, &hidden)?;
    turn.changes.insert(Change::Hook {
        crawl: crawl.id,
        owner,
        plugin: plugin.clone(),
        hook: hook.clone(),
    });
    let (stdin, stdout) = (spec.launch(), Output::Descriptor(stdout));
    life::start(turn, run, spec, stdin, stdout, None);
    Ok(run)
}

fn hook_spec(
    turn: &Turn<'_>,
    owner: Owner,
    crawl: &CrawlWork,
    planned: &PlannedHook,
) -> TurnResult<UnitSpec> {
    let snapshot = match owner {
        Owner::Snapshot(id) => Some(main_loop::snapshot_of(turn, id)?),
        Owner::Crawl(_) => None,
    };
    let crawl_directory = main_loop::crawl_directory(turn, crawl);
    let own = snapshot.as_ref().and_then(|snapshot| snapshot.directory.clone());
    let own = own.map_or_else(|| crawl_directory.clone(), PathBuf::from);
    let url = snapshot.as_ref().map_or(crawl.url.as_str(), |snapshot| snapshot.url.as_str());
    let depth = snapshot.as_ref().map_or(0, |snapshot| snapshot.depth);

    let plan = turn.engine.plan(crawl).map_err(failed)?;
    let shared = plan.shares_tmp.then(|| turn.engine.shared_tmp(crawl.id));
    let snap_dir = snapshot.as_ref().map(|_| own.as_path());
    let mut places = turn.engine.places(&crawl_directory, snap_dir, shared.as_deref());
    let index = match &planned.request {
        None => turn.engine.index_of(&planned.plugin),
        Some(_) => None,
    };
    if let Some(index) = &index {
        places.data_dir.clone_from(index);
    }
    let crawl_id = crawl.id.to_string();
    let first = match planned.hook.name.family {
        HookFamily::CrawlSetup | HookFamily::CrawlCleanup => turn.tx.first_snapshot(crawl.id)?,
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
    certificate::name_hosts(turn, crawl, &mut environment)?;
    let urls = match planned.hook.name.family {
        HookFamily::Crawl | HookFamily::CrawlEnd => turn.tx.crawl_urls(crawl.id, URLS_MAX)?,
        _ => Vec::new(),
    };
    let target =
        HookTarget { url, urls: &urls, snapshot_id: &snapshot_id, crawl_id: &crawl_id, depth };

    let mut bind = vec![own.clone()];
    if crawl_directory != own {
        bind.push(crawl_directory);
    }
    // A user's hooks see this directory at its real path.
    bind.extend(shared.clone().filter(|_| turn.engine.scope.user));
    let (library, mut bind_read_only) = turn.engine.library_binds(planned);
    bind.extend(library);
    let user = match &index {
        Some(_) => turn.engine.scope.index_user(),
        None => turn.engine.scope.hook_user(crawl.hook_user),
    };
    bind.extend(index);
    bind_read_only.extend(hidden_plugin_directory(&planned.plugin.dir));
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
            programs::layer_program_env(turn, planned, &mut environment)?;
            let own = planned.command.clone();
            own.unwrap_or_else(|| argv(&planned.hook, &target))
        }
    };
    let way_out = reach::way_out(turn, crawl.id)?;
    if !way_out.is_own && !turn.engine.scope.user {
        bind_read_only.extend(turn.engine.start_facts.addresses.resolver_paths.iter().cloned());
    }
    Ok(UnitSpec::hook(
        &turn.engine.names,
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
            launcher: turn.engine.programs.launcher.clone(),
            not_after: fleet::not_after(turn, snapshot.as_ref().map(|snapshot| snapshot.id))?,
            working_directory,
            limit: planned.task.limit.max(Duration::from_secs(1)),
            bind,
            bind_read_only,
            tmp: shared.filter(|_| !turn.engine.scope.user),
            network: way_out.network(crawl.id, &turn.engine.names),
            addresses: turn.engine.filter_of(&way_out),
            user,
        },
    ))
}

/// The directory of a plugin that hooks could not see otherwise, with its siblings: homes, the
/// data directory and the configuration are hidden.
fn hidden_plugin_directory(plugin: &Path) -> Vec<PathBuf> {
    const HIDDEN: [&str; 7] =
        ["/etc/archivist", "/home", "/root", "/run", "/tmp", "/var/tmp", "/var/lib"];
    let hidden = HIDDEN.iter().any(|top| plugin.starts_with(top));
    plugin.parent().filter(|_| hidden).map(Path::to_owned).into_iter().collect()
}

fn record(
    turn: &Turn<'_>,
    spec: &UnitSpec,
    owner: Owner,
    crawl: CrawlId,
    hook: Option<(&str, &str)>,
    attempt: u32,
    hidden: &BTreeSet<&str>,
) -> TurnResult<RunId> {
    debug_assert_eq!(hook.is_some(), spec.kind == UnitKind::Hook);
    if turn.tx.open_run(&spec.name)?.is_some() {
        let text = format!("unit '{}' is still running", spec.name);
        return Err(failed(text));
    }
    let names = &turn.engine.names;
    let parent = match (spec.kind, owner) {
        (UnitKind::Hook, Owner::Snapshot(id)) => Some(names.snapshot_worker(id)),
        (UnitKind::CrawlWorker, _) => None,
        _ => Some(names.crawl_worker(crawl)),
    };
    Ok(turn.tx.record_run(&NewRun {
        kind: spec.kind,
        owner,
        crawl,
        plugin: hook.map(|(plugin, _)| plugin),
        hook: hook.map(|(_, hook)| hook),
        attempt,
        unit: &spec.name,
        boot: &turn.engine.boot,
        argv: &spec.argv,
        parent: parent.as_deref(),
        directory: spec.working_directory.as_deref(),
        limit: spec.limit,
        environment: turn.engine.recorded(&spec.environment, hidden),
        not_after: spec.not_after,
        now: turn.now,
    })?)
}
