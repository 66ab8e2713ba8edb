//! Stops every request of a browser and answers it from a recording.
//!
//! Chromium attaches to each page, and recursively to the frames and workers of each, before their
//! first request. A service worker answers calls only while it runs, so nothing is waited for before
//! it may.

use super::answer::{self, Origin, Paused, Reply, Request};
use super::tally::{Fate, Requests, Tally};
use super::{Answer, Answers, Replay, World};
use crate::chromium::browser::viewport::DEVICE_SCALE;
use crate::chromium::browser::world::Numbers;
use crate::chromium::cdp::console::{Errors, UNCAUGHT, WRITTEN};
use crate::chromium::cdp::posted::Posted;
use crate::chromium::cdp::{ATTACHED, CdpError, CdpEvent, Connection, Events, Ignored, Session};
use crate::chromium::recorder::COOKIES;
use archivist_core::lock;
use archivist_warc::lookup::{Match, Wanted};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, timeout};

/// Answers that are read and sent at the same time.
const CONCURRENT_ANSWERS: usize = 4;
/// Largest record of cookies in bytes.
const COOKIES_MAX_BYTES: u64 = 1 << 20;
/// Time for what only the page knows. One that waits for its own request does not answer meanwhile.
const PAGE_TIMEOUT: Duration = Duration::from_secs(2);
/// Time without a request after which a page that has loaded is quiet.
const QUIET: Duration = Duration::from_millis(500);
/// Time limit of a page that never is.
const QUIET_MAX: Duration = Duration::from_secs(5);
/// Makes scripts believe that there is a network, and that it is the time of the recorded visit.
const PRELOAD: &str = include_str!("preload.js");

const NAMED_ICONS: &str = r#"Array.from(document.querySelectorAll(
    "link[rel~=icon i], link[rel~=manifest i], link[rel~=apple-touch-icon i]"), (link) => link.href)"#;

const PAUSED: &str = "Fetch.requestPaused";
const DIALOG: &str = "Page.javascriptDialogOpening";
const SOCKET: &str = "Network.webSocketCreated";

/// Method, URL and posted body of a request.
type Made = (String, String, Option<Vec<u8>>);

pub struct Interception {
    connection: Connection,
    answers: Arc<dyn Answers>,
    near: Timestamp,
    /// The script that runs before those of a page or worker.
    preload: String,
    /// The random numbers of documents and workers, if the browser has a seed.
    numbers: Option<Mutex<Numbers>>,
    world: World,
    /// Parameters of `Emulation.setUserAgentOverride` for frames and workers; the caller sets those of
    /// pages.
    identity: Option<Value>,
    /// Whether the browser has no window, so that dialogs are closed.
    is_headless: bool,
    /// Whether a page was answered.
    has_page: AtomicBool,
    tally: Mutex<Tally>,
    used: Mutex<BTreeSet<String>>,
    /// Times of the redirects that answered requests, by their network ids.
    redirects: Mutex<BTreeMap<String, Timestamp>>,
    /// How often each request was made.
    made: Mutex<BTreeMap<Made, usize>>,
    /// URLs of the documents whose cookies the browser has.
    begun: Mutex<BTreeSet<String>>,
    errors: Mutex<Errors>,
    room: Semaphore,
    /// Counts requests, once when they are stopped and once when they are answered.
    activity: watch::Sender<u64>,
    /// Ids of the pages whose requests are stopped.
    pages: watch::Sender<BTreeSet<String>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Target {
    target_id: String,
    #[serde(rename = "type")]
    kind: String,
    url: String,
}

impl Interception {
    /// Begins to answer the requests of all pages of a browser that are opened from now on.
    ///
    /// # Errors
    /// If chromium refuses to attach to pages.
    pub async fn begin(
        connection: &Connection,
        answers: Arc<dyn Answers>,
        replay: &Replay,
        identity: Option<Value>,
        is_headless: bool,
    ) -> Result<Arc<Interception>, CdpError> {
        let near = replay.time;
        let offset = Timestamp::now().as_millisecond() - near.as_millisecond();
        let interception = Arc::new(Interception {
            connection: connection.clone(),
            answers,
            near,
            preload: format!("{PRELOAD}({offset});"),
            numbers: replay.world.seed.map(|_| Mutex::new(Numbers::new(&replay.url))),
            world: replay.world.clone(),
            identity,
            is_headless,
            has_page: AtomicBool::new(false),
            tally: Mutex::default(),
            used: Mutex::default(),
            redirects: Mutex::default(),
            made: Mutex::default(),
            begun: Mutex::default(),
            errors: Mutex::default(),
            room: Semaphore::new(CONCURRENT_ANSWERS),
            activity: watch::Sender::default(),
            pages: watch::Sender::default(),
        });
        let browser = connection.browser();
        let events = browser.events(&[ATTACHED, PAUSED]);
        tokio::spawn(interception.clone().watch(browser.clone(), events));
        // Chromium stops the script of a worker that a worker begins for the browser alone. What a page
        // or worker has got an answer for does not come to this.
        let _: Ignored = browser.call("Fetch.enable", requests_of("http*")).await?;
        let _: Ignored = browser.call("Target.setAutoAttach", attach_all()).await?;
        Ok(interception)
    }

    /// Waits until the requests of this page are stopped. The caller sets the deadline.
    pub async fn until_stopped(&self, page: &str) {
        // The sender lives as long as this.
        let _ = (self.pages.subscribe()).wait_for(|pages| pages.contains(page)).await;
    }

    /// Waits until no page is left.
    pub async fn until_closed(&self) {
        let _ = self.pages.subscribe().wait_for(BTreeSet::is_empty).await;
    }

    /// Waits until no request was made or answered for a while, at most [`QUIET_MAX`]. Workers of a
    /// page go on when its own scripts are done.
    pub async fn until_quiet(&self) {
        let mut activity = self.activity.subscribe();
        let end = Instant::now() + QUIET_MAX;
        while Instant::now() < end && timeout(QUIET, activity.changed()).await.is_ok() {}
    }

    pub fn requests(&self) -> Requests {
        lock(&self.tally).requests()
    }

    /// URLs of the records that answered so far.
    pub fn used(&self) -> BTreeSet<String> {
        lock(&self.used).clone()
    }

    /// Errors of scripts and in the consoles of all pages so far.
    pub fn errors(&self) -> Vec<String> {
        lock(&self.errors).list().to_vec()
    }

    /// Receives the events of a session until it ends.
    async fn watch(self: Arc<Self>, session: Session, mut events: Events) {
        while let Ok(event) = events.next().await {
            // The session has ended if it refuses a call.
            let _ = self.receive(&session, event);
        }
    }

    fn receive(self: &Arc<Self>, session: &Session, event: CdpEvent) -> Result<(), CdpError> {
        lock(&self.errors).add(&event);
        let params = event.params;
        match event.method.as_str() {
            ATTACHED => self.attend(params)?,
            PAUSED => {
                if let Ok(paused) = serde_json::from_value::<Paused>(params) {
                    let (this, session) = (self.clone(), session.clone());
                    let given = self.count(&paused.request);
                    tokio::spawn(async move {
                        this.activity.send_modify(|count| *count += 1);
                        this.clone().answer(session, paused, given).await;
                        this.activity.send_modify(|count| *count += 1);
                    });
                }
            }
            DIALOG if self.is_headless => {
                session.post("Page.handleJavaScriptDialog", json!({"accept": false}))?;
            }
            SOCKET => {
                let url = params["url"].as_str().unwrap_or_default();
                let fate = Fate::Missing("WebSockets are not recorded".to_owned());
                lock(&self.tally).add("GET", url, "WebSocket", fate);
            }
            _ => {}
        }
        Ok(())
    }

    /// Stops the requests of a target, and lets it run. Waits for no answer.
    fn attend(self: &Arc<Self>, attached: Value) -> Result<(), CdpError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Attached {
            session_id: String,
            target_info: Target,
            waiting_for_debugger: bool,
        }
        let Ok(attached) = serde_json::from_value::<Attached>(attached) else {
            return Ok(());
        };
        // A session that this program has asked for waits for nothing.
        if !attached.waiting_for_debugger {
            return Ok(());
        }
        let session = self.connection.session(attached.session_id);
        let methods = [ATTACHED, PAUSED, DIALOG, WRITTEN, UNCAUGHT, SOCKET];
        let mut events = session.events(&methods);
        let stops = session.begin::<Ignored>("Fetch.enable", requests_of("*"))?;
        session.post("Target.setAutoAttach", attach_all())?;
        session.post("Runtime.enable", json!({}))?;
        let none = json!({"maxTotalBufferSize": 1, "maxResourceBufferSize": 1});
        session.post("Network.enable", none)?;
        let target = attached.target_info;
        if let Some(identity) = self.identity.clone().filter(|_| target.kind != "page") {
            session.post("Emulation.setUserAgentOverride", identity)?;
        }
        let mut prepares = None;
        if ["page", "iframe"].contains(&target.kind.as_str()) {
            session.post("Page.enable", json!({}))?;
            self.world.emulate(&session)?;
            if !self.is_headless && target.kind == "page" {
                // A picture for another screen was not requested. The size is that of the window.
                let scale = self.world.device_scale.unwrap_or(DEVICE_SCALE);
                let screen =
                    json!({"width": 0, "height": 0, "deviceScaleFactor": scale, "mobile": false});
                session.post("Emulation.setDeviceMetricsOverride", screen)?;
            }
            let numbers = self.numbers.as_ref().map(|it| lock(it).of_document());
            let source = format!("{}\n{}", self.preload, numbers.unwrap_or_default());
            let script = json!({"source": source, "runImmediately": true});
            let method = "Page.addScriptToEvaluateOnNewDocument";
            prepares = Some(session.begin::<Ignored>(method, script)?);
        } else {
            session.post("Runtime.evaluate", json!({"expression": self.preload}))?;
            if let Some(numbers) = &self.numbers {
                let script = lock(numbers).of_worker(&target.url);
                session.post("Runtime.evaluate", json!({"expression": script}))?;
            }
        }
        session.post("Runtime.runIfWaitingForDebugger", json!({}))?;
        let this = self.clone();
        tokio::spawn(async move {
            let is_page = target.kind == "page";
            let stopped = async {
                // A navigation to another process before the answer would lose the script.
                let is_prepared = match prepares {
                    Some(answer) => answer.await.is_ok(),
                    None => true,
                };
                if stops.await.is_ok() && is_prepared && is_page {
                    this.pages.send_modify(|pages| {
                        pages.insert(target.target_id.clone());
                    });
                }
                std::future::pending::<()>().await
            };
            let ends = async {
                while let Ok(event) = events.next().await {
                    let _ = this.receive(&session, event);
                }
            };
            tokio::select! {
                () = stopped => {}
                () = ends => {}
            }
            this.pages.send_modify(|pages| {
                pages.remove(&target.target_id);
            });
        });
        Ok(())
    }

    /// Counts a request. Returns how often it was made before.
    fn count(&self, request: &Request) -> usize {
        let own = (request.method.clone(), request.url.clone(), request.posted());
        let mut made = lock(&self.made);
        let count = made.entry(own).or_default();
        *count += 1;
        *count - 1
    }

    async fn answer(self: Arc<Self>, session: Session, paused: Paused, given: usize) {
        match paused.origin() {
            Origin::Web => {}
            Origin::Inside => {
                let go_on = json!({"requestId": paused.request_id});
                let _ = session.post("Fetch.continueRequest", go_on);
                return;
            }
            Origin::Machine => {
                let Request { method, url, .. } = &paused.request;
                let fate = Fate::Missing("neither http nor https: refused".to_owned());
                lock(&self.tally).add(method, url, &paused.resource_type, fate);
                let fail =
                    json!({"requestId": paused.request_id, "errorReason": "BlockedByClient"});
                let _ = session.post("Fetch.failRequest", fail);
                return;
            }
        }
        let Ok(_permit) = self.room.acquire().await else {
            return;
        };
        let posted = self.posted(&session, &paused).await;
        if paused.resource_type == "Document" {
            self.give_cookies(&paused.request.url).await;
        }
        let redirect = paused.network_id.as_ref();
        let redirected = redirect.and_then(|id| lock(&self.redirects).remove(id));
        let (answers, near) = (self.answers.clone(), self.near);
        let reading = tokio::task::spawn_blocking(move || {
            let found = find(&*answers, &paused, posted.as_deref(), near, (redirected, given));
            (paused, found)
        });
        let Ok((paused, found)) = reading.await else {
            return;
        };
        let request = &paused.request;
        let (reply, fate) = match found {
            Ok(Fitting { reply, fit, url, time }) => {
                lock(&self.used).insert(url);
                let fate = match fit {
                    Match::Exact => Fate::Exact,
                    Match::Fuzzy(rule) => Fate::Rule(rule),
                };
                if let Some(id) = paused.network_id.clone().filter(|_| reply.is_redirect()) {
                    lock(&self.redirects)
                        .insert(id, redirected.map_or(time, |last| last.max(time)));
                }
                (Some(reply), fate)
            }
            Err(_) if paused.is_icon() || is_named_icon(&session, &paused).await => {
                let absent = json!({"requestId": paused.request_id, "responseCode": 404});
                let _ = session.post("Fetch.fulfillRequest", absent);
                return;
            }
            Err(reason) => (None, Fate::Missing(reason)),
        };
        let sent = match &reply {
            Some(reply) => self.send(&session, &paused, reply).await,
            None => Err(CdpError::Closed("")),
        };
        let fate = match sent {
            Err(CdpError::Refused { message, .. }) if !is_gone(&message) => {
                Fate::Missing(format!("chromium does not take its answer: {message}"))
            }
            _ => fate,
        };
        let is_missing = matches!(fate, Fate::Missing(_));
        let kind = &paused.resource_type;
        lock(&self.tally).add(&request.method, &request.url, kind, fate);
        let is_document = kind == "Document";
        if is_missing {
            // Without a user, the page stays that goes elsewhere. A user sees that there is nothing.
            let stays = is_document && self.is_headless && self.has_page.load(Ordering::Relaxed);
            let reason = if stays { "Aborted" } else { "InternetDisconnected" };
            let fail = json!({"requestId": paused.request_id, "errorReason": reason});
            let _ = session.post("Fetch.failRequest", fail);
        } else if is_document && reply.is_some_and(|reply| !reply.is_redirect()) {
            self.has_page.store(true, Ordering::Relaxed);
        }
    }

    async fn send(
        &self,
        session: &Session,
        paused: &Paused,
        reply: &Reply,
    ) -> Result<(), CdpError> {
        let now = Timestamp::now().as_second();
        let cookies = reply.redirect_cookies(&paused.request.url, now);
        self.set_cookies(cookies).await;
        let params = reply.params(&paused.request_id);
        let sent = session.call::<Ignored>("Fetch.fulfillRequest", params);
        sent.await.map(drop)
    }

    /// Gives the browser the cookies with which the visit of a page began, once.
    async fn give_cookies(&self, url: &str) {
        if !lock(&self.begun).insert(url.to_owned()) {
            return;
        }
        let (answers, near, url) = (self.answers.clone(), self.near, format!("{COOKIES}{url}"));
        let reading = move || begun_with(&*answers, &url, near);
        if let Ok(Some(cookies)) = tokio::task::spawn_blocking(reading).await {
            self.set_cookies(cookies).await;
        }
    }

    async fn set_cookies(&self, cookies: Vec<Value>) {
        if cookies.is_empty() {
            return;
        }
        let cookies = json!({"cookies": cookies});
        let set = self.connection.browser().call::<Ignored>("Storage.setCookies", cookies).await;
        if let Err(error) = set {
            eprintln!("failed to set cookies of the recording: {error}, ignoring");
        }
    }

    /// The body of a request, if it has one that can be read.
    async fn posted(&self, session: &Session, paused: &Paused) -> Option<Vec<u8>> {
        let in_event = paused.request.posted();
        let network_id = paused.network_id.as_ref();
        let (None, true, Some(id)) = (&in_event, paused.request.has_post_data, network_id) else {
            return in_event;
        };
        let asked = session.call::<Posted>("Network.getRequestPostData", json!({"requestId": id}));
        let posted = timeout(PAGE_TIMEOUT, asked).await.ok()?.ok()?;
        posted.bytes()
    }
}

/// Whether chromium asks for an icon or the manifest of an application that the page names. It asks for an
/// icon once for all pages of a crawl, and for the manifest only in a window of its own.
async fn is_named_icon(session: &Session, paused: &Paused) -> bool {
    #[derive(Deserialize)]
    struct Evaluated {
        result: Value,
    }
    if paused.resource_type != "Other" {
        return false;
    }
    let asked = json!({"expression": NAMED_ICONS, "returnByValue": true});
    let asked = session.call::<Evaluated>("Runtime.evaluate", asked);
    let Ok(Ok(Evaluated { result })) = timeout(PAGE_TIMEOUT, asked).await else {
        return false;
    };
    let mut named = result["value"].as_array().into_iter().flatten();
    named.any(|url| url.as_str().and_then(|url| url.split('#').next()) == Some(&paused.request.url))
}

/// The cookies that a recording has of the begin of a visit.
fn begun_with(answers: &dyn Answers, url: &str, near: Timestamp) -> Option<Vec<Value>> {
    let wanted =
        Wanted { url, method: "GET", posted: None, range: None, near, redirected: None, given: 0 };
    let answer = answers.find(&wanted).filter(|answer| answer.fit == Match::Exact)?;
    serde_json::from_reader(answer.stored.ok()?.body.take(COOKIES_MAX_BYTES)).ok()
}

/// What answers a request, and the URL and time of its record.
struct Fitting {
    reply: Reply,
    fit: Match,
    url: String,
    time: Timestamp,
}

/// Looks a request up and reads its answer.
fn find(
    answers: &dyn Answers,
    paused: &Paused,
    posted: Option<&[u8]>,
    near: Timestamp,
    (redirected, given): (Option<Timestamp>, usize),
) -> Result<Fitting, String> {
    let request = &paused.request;
    let (url, method, range) = (&request.url, &request.method, request.header("range"));
    let found = answers.find(&Wanted { url, method, posted, range, near, redirected, given });
    let Answer { url, time, fit, stored } = found.ok_or_else(|| "not recorded".to_owned())?;
    let stored = stored.map_err(|error| error.to_string())?;
    let mut reply = answer::compose(stored, paused).map_err(|error| error.to_string())?;
    reply.keep_cookies(near);
    if fit != Match::Exact {
        reply.call(&url, &request.url);
    }
    Ok(Fitting { reply, fit, url, time })
}

/// Whether chromium refuses an answer because nothing waits for it any more.
fn is_gone(message: &str) -> bool {
    message.contains("Invalid InterceptionId")
}

/// Parameters of `Fetch.enable`.
fn requests_of(urls: &str) -> Value {
    json!({"patterns": [{"urlPattern": urls, "requestStage": "Request"}]})
}

/// Parameters of `Target.setAutoAttach`.
fn attach_all() -> Value {
    json!({"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true})
}
