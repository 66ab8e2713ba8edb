//! Calls about watches. Files declare what is watched, and systemd's timers make these calls when
//! a check is due.

use crate::alert::NewCheck;
use crate::bus::call::{Answer, Refusal, Reply};
use crate::calls::add::{Progress, add_some};
use crate::fleet;
use crate::main_loop::action::{Awaited, FileAction, LoopAction, ReplyAction};
use crate::main_loop::event::Event;
use crate::main_loop::order::{Call, Order, UserCall};
use crate::main_loop::rooms::Which;
use crate::main_loop::saved;
use crate::main_loop::turn::{Turn, TurnError, TurnResult, invalid};
use crate::watch::answers::without_details;
use crate::watch::declared::{WatchFile, read_all, read_named};
use crate::watch::unit::cancel_checks;
use crate::watch::why::why_watch;
use archivist_config::Scope;
use archivist_config::declare::watch::Watch;
use archivist_core::model::{
    CheckKind, CheckRecord, CrawlId, Outcome, RunId, Task, without_userinfo,
};
use archivist_plugin::settings::limit::ANSWER_TIMEOUT;
use archivist_shared::bus::documents::report::AddOptions;
use archivist_shared::bus::documents::watches;
use archivist_shared::bus::documents::watches::{Check, HistoryFilter, Queued, Site};
use archivist_shared::bus::documents::work::Ended;
use serde_json::json;

/// A call about watches. Its declarations are read on a thread, and a second order has them.
#[derive(Clone)]
pub enum WatchCall {
    Check {
        watch: String,
        /// Empty: all kinds that the watch has.
        kinds: Vec<CheckKind>,
    },
    /// Ends the checks of the watch that wait or run.
    Cancel(String),
    /// Answer when this check has ended.
    Await(RunId),
    /// All watches, or the watch of this name.
    List(Option<String>),
    /// List checks of a watch, the newest first.
    History { watch: String, filter: HistoryFilter },
    /// Why checks of the watch wait or fail.
    Why(String),
}

impl Order for WatchCall {
    fn carry_out(&self, turn: &mut Turn<'_>, reply: &Reply) -> TurnResult<Option<Answer>> {
        let (call, reply) = (self.clone(), reply.clone());
        turn.act(FileAction::Run(Box::new(move |scope| {
            Event::Call(Call::new(WatchRequest::read(scope, call), &reply))
        })));
        Ok(None)
    }

    fn user_call(&self) -> Option<UserCall<'_>> {
        UserCall::of_all(match self {
            WatchCall::Check { .. } => "Watches.Check",
            WatchCall::Cancel(_) => "Watches.Cancel",
            WatchCall::Await(_) => "Watches.Await",
            WatchCall::List(_) => "Watches.List",
            WatchCall::History { .. } => "Watches.History",
            WatchCall::Why(_) => "Watches.Why",
        })
    }
}

/// A call about watches, with the declarations that it is about.
struct WatchRequest {
    call: WatchCall,
    found: Result<Vec<WatchFile>, Refusal>,
}

impl WatchRequest {
    /// Reads the declarations for `call`.
    fn read(scope: &Scope, call: WatchCall) -> WatchRequest {
        let found = match &call {
            WatchCall::Await(_) => Ok(Vec::new()),
            WatchCall::List(None) => Ok(read_all(scope)),
            WatchCall::Check { watch: name, .. }
            | WatchCall::Cancel(name)
            | WatchCall::List(Some(name))
            | WatchCall::History { watch: name, .. }
            | WatchCall::Why(name) => read_named(scope, name).map(|found| vec![found]),
        };
        WatchRequest { call, found }
    }

    /// The watch that the call names.
    ///
    /// # Errors
    /// If no file declares it, or its file cannot be read.
    fn named(&self) -> Result<&WatchFile, Refusal> {
        let found = self.found.as_ref().map_err(Clone::clone)?;
        let missing = || Refusal::Failed("the files of the watch were not read".to_owned());
        found.first().ok_or_else(missing)
    }
}

impl Order for WatchRequest {
    fn carry_out(&self, turn: &mut Turn<'_>, reply: &Reply) -> TurnResult<Option<Answer>> {
        watches(turn, self, reply)
    }

    fn user_call(&self) -> Option<UserCall<'_>> {
        self.call.user_call()
    }
}

fn watches(
    turn: &mut Turn<'_>,
    request: &WatchRequest,
    reply: &Reply,
) -> TurnResult<Option<Answer>> {
    let refused = TurnError::Refused;
    Ok(Some(match &request.call {
        WatchCall::Check { kinds, .. } => {
            let found = request.named().map_err(refused)?;
            Answer::json(&check(turn, found, kinds)?)?
        }
        WatchCall::Cancel(watch) => {
            let count = cancel_checks(turn, watch)?;
            if count == 0 {
                request.named().map_err(refused)?;
            }
            Answer::Number(u32::try_from(count).unwrap_or(u32::MAX))
        }
        WatchCall::Await(id) => return await_check(turn, *id, reply),
        WatchCall::List(_) => {
            let found = request.found.as_ref().map_err(|refusal| refused(refusal.clone()))?;
            let watches = found.iter().map(|found| shown(turn, found));
            Answer::json(&watches.collect::<TurnResult<Vec<_>>>()?)?
        }
        WatchCall::History { watch, filter } => {
            let checks = turn.tx.check_history(watch, filter)?;
            if checks.is_empty() {
                request.named().map_err(refused)?;
            }
            let shown = |check| {
                if filter.full { check } else { without_details(check) }
            };
            let checks: Vec<Check> = checks.into_iter().map(shown).collect();
            Answer::json(&checks)?
        }
        WatchCall::Why(_) => {
            let watch = shown(turn, request.named().map_err(refused)?)?;
            Answer::json(&why_watch(turn, &watch)?)?
        }
    }))
}

/// Queues checks: of each kind one for each URL that has none open.
fn check(turn: &mut Turn<'_>, found: &WatchFile, kinds: &[CheckKind]) -> TurnResult<Queued> {
    let watch = &found.watch;
    log_new_problems(turn, found);
    let urls = found.urls.clone().map_err(invalid)?;
    let kinds = match kinds {
        [] => watch.kinds(),
        some => some.to_vec(),
    };
    let mut queued = Queued { watch: watch.name.clone(), ..Queued::default() };
    if watch.updates() && kinds.iter().any(|kind| *kind != CheckKind::Archive) {
        let what = format!("watch '{}' has no site, only archive checks", watch.name);
        return Err(invalid(what));
    }
    for kind in kinds {
        if kind == CheckKind::Archive && watch.updates() {
            update_archive(turn, watch, &mut queued)?;
            continue;
        }
        if kind == CheckKind::Archive {
            archive(turn, watch, &urls, &mut queued)?;
            continue;
        }
        for url in &urls {
            let library = turn.engine.scope.data_dir().join("lib");
            let mut settings = serde_json::to_value(watch.probe.for_kind(kind))?;
            settings["lib_dir"] = json!(library);
            let answer = [&watch.archiving.settings, &turn.engine.settings.values]
                .iter()
                .find_map(|layer| layer.get(ANSWER_TIMEOUT)?.parse::<u32>().ok());
            if let Some(answer) = answer.filter(|answer| *answer > 0) {
                settings["read_s"] = json!(answer);
            }
            let request = json!({ "url": url, "settings": settings });
            match queue(turn, watch, kind, url, &request.to_string())? {
                Some(id) => queued.queued.push(id),
                None => {
                    queued.open += 1;
                    let open = turn.tx.open_check_of(&watch.name, kind, url)?;
                    queued.open_ids.extend(open);
                }
            }
        }
    }
    // Only now: a turn that needs further facts is undone with its log, and comes again.
    let problems = found.problems.clone();
    let mut logged = turn.engine.logged_problems.borrow_mut();
    logged.insert(watch.name.clone(), problems);
    Ok(queued)
}

/// Logs the problems of the files of a watch, unless the journal has them: checks are frequent.
fn log_new_problems(turn: &mut Turn<'_>, found: &WatchFile) {
    let logged = turn.engine.logged_problems.borrow();
    let is_known = logged.get(&found.watch.name) == Some(&found.problems);
    drop(logged);
    if is_known {
        return;
    }
    for problem in &found.problems {
        let problem = problem.clone();
        turn.log(move || tracing::warn!("{problem}, ignoring"));
    }
}

/// Queues a check. Returns `None` if a check of the same watch, kind and URL is queued or running.
fn queue(
    turn: &Turn<'_>,
    watch: &Watch,
    kind: CheckKind,
    url: &str,
    request: &str,
) -> TurnResult<Option<RunId>> {
    if turn.tx.open_check_of(&watch.name, kind, url)?.is_some() {
        return Ok(None);
    }
    let id = turn.tx.queue_check(&NewCheck {
        watch: &watch.name,
        kind,
        url,
        request,
        keep: watch.retention(kind),
        now: turn.now,
    })?;
    Ok(Some(id))
}

/// Adds a crawl, unless the earlier one is still open or nothing is new.
fn archive(
    turn: &mut Turn<'_>,
    watch: &Watch,
    urls: &[String],
    queued: &mut Queued,
) -> TurnResult<()> {
    if let Some(before) = turn.tx.open_archive(&watch.name)? {
        queued.open += 1;
        queued.crawl = Some(before);
        return Ok(());
    }
    let how = &watch.archiving;
    let mut wanted = Vec::new();
    for url in urls {
        let known = how.only_new && how.depth == 0;
        if !known || !saved::is_archived(turn, url, CrawlId(0))? {
            wanted.push(url.as_str());
        }
    }
    let crawl = if wanted.is_empty() {
        None
    } else {
        let options = AddOptions {
            depth: how.depth,
            tags: how.tags.clone(),
            plugins: how.plugins.clone(),
            config: how.settings.clone(),
            only_new: false,
        };
        Some(add(turn, wanted.join("\n").as_bytes(), &options)?)
    };
    if let Some(crawl) = crawl.filter(|_| how.only_new) {
        turn.tx.set_only_new(crawl)?;
    }
    let first = urls.first().map_or("", String::as_str);
    record_archive(turn, watch, first, crawl, queued)
}

/// Queues all pages of a short list. Returns their crawl.
fn add(turn: &mut Turn<'_>, lines: &[u8], options: &AddOptions) -> TurnResult<CrawlId> {
    // Root declares watches.
    const ROOT: u32 = 0;
    let mut so_far = None;
    loop {
        match add_some(turn, lines, options, ROOT, false, so_far.as_deref())? {
            Progress::Done(added) => return Ok(added.crawl),
            Progress::More(adding) => so_far = Some(adding),
        }
    }
}

/// Records an archive check, which ends with the turn that queues its work.
fn record_archive(
    turn: &mut Turn<'_>,
    watch: &Watch,
    url: &str,
    crawl: Option<CrawlId>,
    queued: &mut Queued,
) -> TurnResult<()> {
    let Some(id) = queue(turn, watch, CheckKind::Archive, url, "")? else {
        return Ok(());
    };
    let record = CheckRecord { ok: true, crawl, ..CheckRecord::default() };
    let found = (Some(true), &record);
    turn.tx.end_check_at_once(id, found, turn.now)?;
    queued.queued.push(id);
    queued.crawl = crawl;
    Ok(())
}

/// Queues the results that the pages of the archive lack, as `archivist update` does.
///
/// # Errors
/// On a node of a fleet, which updates no page by itself.
fn update_archive(turn: &mut Turn<'_>, watch: &Watch, queued: &mut Queued) -> TurnResult<()> {
    fleet::retry_in_fleet(turn, None, &Which::Missing)?;
    turn.act(LoopAction::Again(Event::Call(turn.rooms.retry(None, Which::Missing))));
    record_archive(turn, watch, &Task::Update.url(), None, queued)
}

fn await_check(turn: &mut Turn<'_>, id: RunId, reply: &Reply) -> TurnResult<Option<Answer>> {
    if turn.tx.open_check(id)?.is_some() {
        let reply = reply.clone();
        turn.act(ReplyAction::Await(Awaited::end_of(id), reply));
        return Ok(None);
    }
    let ended = Ended { run: Some(id), ..Ended::without_run(Outcome::Exit(0)) };
    Ok(Some(Answer::json(&ended)?))
}

fn shown(turn: &Turn<'_>, found: &WatchFile) -> TurnResult<watches::Watch> {
    let watch = &found.watch;
    let mut problems = found.problems.clone();
    problems.extend(found.urls.as_ref().err().cloned());
    let urls = found.urls.as_deref().unwrap_or_default();
    let sites = urls.iter().map(|url| site(turn, &watch.name, url));
    let kinds = CheckKind::SCHEDULED.into_iter();
    Ok(watches::Watch {
        file: found.path.to_string_lossy().into_owned(),
        problems,
        headers: watch.probe.shown_headers(),
        left_out: watch.left_out(),
        schedules: kinds.map(|kind| (kind, watch.schedule(kind).words)).collect(),
        retention_s: CheckKind::SCHEDULED
            .into_iter()
            .map(|kind| (kind, watch.retention(kind).as_secs()))
            .collect(),
        sites: sites.collect::<TurnResult<_>>()?,
        name: watch.name.clone(),
        label: watch.label.clone(),
        notes: watch.notes.clone(),
    })
}

fn site(turn: &Turn<'_>, watch: &str, url: &str) -> TurnResult<Site> {
    let health = turn.tx.health(watch, url)?;
    let (all, good) = turn.tx.uptime(watch, url)?;
    let mut last = Vec::new();
    for kind in CheckKind::SCHEDULED {
        let check = turn.tx.last_check(watch, kind, url)?;
        last.extend(check.map(without_details));
    }
    Ok(Site {
        url: without_userinfo(url),
        down_since: health.down_since,
        failures: health.failures,
        uptime: (all > 0).then(|| good as f64 * 100.0 / all as f64),
        status_checks: all,
        last,
        open: turn.tx.open_checks_of(watch, url)?,
    })
}
