//! Loads a page in a tab, once, for all hooks that save it: carries out what [`Arrival`] decides.

use super::answers::{self, Answers, Next};
use super::events::{self, AUTH_REQUIRED, DIALOG, FETCH_PAUSED, HEADERS, SUBSCRIBED};
use crate::chromium::arrival::{
    Arrival, ArrivalLimits, Ending, Meter, Policy, ReadyPage, Response, Step, TICK, TabEvent,
};
use crate::chromium::browser::viewport::resize;
use crate::chromium::cdp::{CdpError, CdpEvent, Events, Ignored, Session};
use crate::chromium::recorder::FileSink;
use crate::chromium::reveal::{self, Behaviors, Revealer, Revealing};
use crate::process::credentials::Credentials;
use crate::process::finding::Finding;
use crate::visit::Navigation;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

/// Time that is reserved for the steps after loading.
const CLOSING_RESERVE: Duration = Duration::from_millis(500);

pub struct LoadRequest<'a> {
    pub url: &'a str,
    /// User name and password for the server of `url`.
    pub credentials: Option<&'a Credentials>,
    /// Target id of the tab, which is also the id of its main frame.
    pub target: &'a str,
    /// Width and height of the viewport in pixels.
    pub window: (u32, u32),
    /// Those of the screen, if it is not that of the browser.
    pub screen: Option<(u32, u32)>,
    /// Script that must run before those of the page, if no recorder runs it.
    pub preload: Option<String>,
    /// Parameters of `Emulation.setUserAgentOverride`, if the tab has another identity than its
    /// browser.
    pub identity: Option<Value>,
    /// Time limit until the page's load event.
    pub load_timeout: Duration,
    /// Virtual time for the page's scripts after its load event.
    pub settle: Duration,
    /// What is done to the page before it is saved.
    pub behaviors: Behaviors,
    /// Bytes of a file in place of a page that hooks read. `None`: neither that nor the icon of the
    /// page is written to the working directory.
    pub file_max: Option<u64>,
    /// The recording, which gets any such file.
    pub files: Option<FileSink>,
    /// Deadline of all steps.
    pub until: Instant,
}

/// Time limit of a page's load: three fifths of the remaining time, at most `answer`. The page's
/// scripts get the rest.
pub fn load_timeout(left: Duration, answer: Duration) -> Duration {
    (left * 3 / 5).min(answer)
}

/// A tab whose page is on its way, and then is ready.
pub struct LoadingTab {
    session: Session,
    events: Events,
    main_frame: String,
    /// Whether the page has a clock of its own, which only goes on by grants.
    has_own_clock: bool,
    /// Whether all further navigation is refused.
    is_held: bool,
    credentials: Option<Credentials>,
    saves_files: bool,
    answers: Answers,
    files: Option<FileSink>,
    /// Deadline of files.
    until: Instant,
    /// Saves a file in place of a page.
    saving: Option<JoinHandle<()>>,
}

impl LoadingTab {
    pub async fn new(session: Session, request: &LoadRequest<'_>) -> Result<LoadingTab, CdpError> {
        let events = session.events(&SUBSCRIBED);
        session.post("Page.enable", json!({}))?;
        // Response bodies are not needed: keep the browser from buffering them.
        let none = json!({"maxTotalBufferSize": 1, "maxResourceBufferSize": 1});
        session.post("Network.enable", none)?;
        session.post("Emulation.setFocusEmulationEnabled", json!({"enabled": true}))?;
        // A page that prints itself would hold the printer.
        let source = json!({"source": "window.print = () => {};"});
        session.post("Page.addScriptToEvaluateOnNewDocument", source)?;
        if let Some(source) = &request.preload {
            let script = json!({"source": source});
            session.post("Page.addScriptToEvaluateOnNewDocument", script)?;
        }
        if let Some(identity) = &request.identity {
            session.post("Emulation.setUserAgentOverride", identity.clone())?;
        }
        // Without an answer to a server that asks for a password, its page is not shown.
        session.post("Fetch.enable", intercepted())?;
        resize(&session, request.window, request.screen).await?;
        Ok(LoadingTab {
            session,
            events,
            main_frame: request.target.to_owned(),
            has_own_clock: false,
            is_held: false,
            credentials: request.credentials.cloned(),
            saves_files: request.file_max.is_some(),
            answers: Answers::new(
                request.file_max.unwrap_or_default(),
                request.files.as_ref().map_or(0, FileSink::file_max),
            ),
            files: request.files.clone(),
            until: request.until - CLOSING_RESERVE,
            saving: None,
        })
    }

    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Loads the page and lets its scripts run. Returns how the page loaded; a page that never
    /// finishes has a note, and one that is not there has an error. Fails if the tab does.
    pub async fn load(&mut self, request: &LoadRequest<'_>) -> Result<Navigation, Finding> {
        let begin = Instant::now();
        let limits = ArrivalLimits {
            load: request.load_timeout,
            settle: request.settle,
            total: (request.until - CLOSING_RESERVE).saturating_duration_since(begin),
        };
        let mut arrival = Arrival::new(limits);
        let answered = navigate(self.session.clone(), request.url.to_owned());
        let mut answered = std::pin::pin!(answered);
        let mut is_answered = false;
        let (probed, mut probes) = mpsc::unbounded_channel();
        let mut revealer = Revealer::default();
        let mut changes = Vec::new();
        while arrival.ending().is_none() {
            let alarm = begin + arrival.next_tick();
            // Events first: an answer follows the events that explain it.
            let event = tokio::select! {
                biased;
                event = self.events.next() => self.receive(&event?)?,
                answer = &mut answered, if !is_answered => {
                    is_answered = true;
                    Some(answer?)
                }
                Some(event) = probes.recv() => Some(event),
                step = revealer.next() => match step {
                    Revealing::Changed(note) => {
                        changes.push(note);
                        None
                    }
                    Revealing::Rest(budget) => Some(TabEvent::Resting { budget }),
                    Revealing::Done => Some(TabEvent::Revealed),
                },
                () = sleep_until(alarm) => None,
            };
            let now = begin.elapsed();
            let mut steps = match event {
                Some(event) => arrival.take(event, now),
                None => arrival.tick(now),
            };
            if self.saving.is_some() && !is_answered {
                // The navigation is refused when the file has arrived.
                is_answered = true;
                steps.extend(arrival.take(TabEvent::download(), now));
            }
            for step in steps {
                if step == Step::Navigate {
                    let again = navigate(self.session.clone(), request.url.to_owned());
                    answered.set(again);
                    is_answered = false;
                } else if step == Step::Probe {
                    probe(&self.session, &probed);
                } else if step == Step::Reveal {
                    let behaviors = request.behaviors.clone();
                    revealer = Revealer::start(&self.session, &self.main_frame, behaviors);
                } else if step == Step::Resume {
                    revealer.resume();
                } else {
                    self.carry_out(&step)?;
                }
            }
        }
        if let Some(saving) = self.saving.take() {
            let _ = saving.await;
        }
        if revealer.give_up() {
            reveal::stop(&self.session, &self.main_frame).await;
        }
        Ok(match arrival.ending() {
            Some(Ending::Page(page)) => navigation(page, &changes, request, begin.elapsed()),
            Some(Ending::NoPage { reason, is_failure, response }) => {
                let finding = if *is_failure {
                    Finding::failed(reason.clone())
                } else {
                    Finding::noresults(reason.clone())
                };
                with_response(Navigation::failed(request.url, &finding), response.as_ref())
            }
            None => return Err(Finding::failed("the page did not load")),
        })
    }

    pub fn answers(&self) -> &Answers {
        &self.answers
    }

    /// Serves a ready page: lets its clock follow real time, dismisses dialogs, refuses navigation.
    /// Returns when the tab has closed.
    pub async fn serve(&mut self) -> CdpError {
        let begin = Instant::now();
        let mut meter = Meter::start(TICK, Duration::ZERO);
        loop {
            let tick = async {
                if self.has_own_clock {
                    sleep_until(begin + meter.due()).await;
                } else {
                    std::future::pending().await
                }
            };
            let done = tokio::select! {
                event = self.events.next() => event.and_then(|event| self.receive(&event)),
                () = tick => {
                    let budget = meter.grant(begin.elapsed());
                    let granted = budget.map(|budget| self.grant(Policy::Advance, budget));
                    granted.unwrap_or(Ok(())).map(|()| None)
                }
            };
            match done {
                Ok(Some(TabEvent::BudgetExpired)) => meter.expired(),
                Ok(_) => {}
                Err(error) => return error,
            }
        }
    }

    /// Answers events that stop the page until they are answered.
    fn receive(&mut self, event: &CdpEvent) -> Result<Option<TabEvent>, CdpError> {
        match event.method.as_str() {
            DIALOG => {
                let refuse = json!({"accept": false});
                self.session.post("Page.handleJavaScriptDialog", refuse)?;
            }
            AUTH_REQUIRED => {
                let answer = self.authorize(&event.params["authChallenge"]);
                let answer = json!({"requestId": event.params["requestId"], "authChallengeResponse": answer});
                self.session.post("Fetch.continueWithAuth", answer)?;
            }
            HEADERS => self.answers.take_cookies(&event.params),
            FETCH_PAUSED if has_answer(&event.params) => {
                let next = self.answers.take(&event.params, &self.main_frame);
                let next = if self.saves_files { next } else { Next::Continue };
                let files = self.files.clone();
                let saving =
                    answers::carry_out(next, &event.params, &self.session, files, self.until)?;
                let refused = |_: &_| events::refused_response(&event.params);
                let event = saving.as_ref().map(refused);
                self.saving = saving.or(self.saving.take());
                return Ok(event);
            }
            FETCH_PAUSED if !self.is_held => {
                let request = json!({"requestId": event.params["requestId"]});
                self.session.post("Fetch.continueRequest", request)?;
                return Ok(None);
            }
            FETCH_PAUSED => {
                let id = &event.params["requestId"];
                if event.params["frameId"] == self.main_frame.as_str() {
                    let refuse = json!({"requestId": id, "errorReason": "Aborted"});
                    self.session.post("Fetch.failRequest", refuse)?;
                } else {
                    self.session.post("Fetch.continueRequest", json!({"requestId": id}))?;
                }
            }
            _ => {}
        }
        Ok(events::translate(event, &self.main_frame))
    }

    fn carry_out(&mut self, step: &Step) -> Result<(), CdpError> {
        match step {
            Step::Grant { policy, budget } => self.grant(*policy, *budget),
            Step::StopLoading => self.session.post("Page.stopLoading", json!({})),
            Step::StopScripts => {
                self.session.post("Runtime.terminateExecution", json!({}))?;
                let off = json!({"value": true});
                self.session.post("Emulation.setScriptExecutionDisabled", off)
            }
            Step::HoldNavigation if self.is_held => Ok(()),
            Step::HoldNavigation => {
                self.is_held = true;
                // A service worker would answer the navigation before it could be refused.
                let bypass = json!({"bypass": true});
                self.session.post("Network.setBypassServiceWorker", bypass)?;
                self.session.post("Fetch.enable", intercepted())
            }
            Step::Navigate | Step::Probe | Step::Reveal | Step::Resume => Ok(()),
        }
    }

    /// Answers a server that asks for user name and password. They are for the page's own server,
    /// and are sent once: a server that asks again has refused them.
    fn authorize(&mut self, challenge: &Value) -> Value {
        let own = |credentials: &Credentials| {
            challenge["source"] == "Server" && challenge["origin"] == credentials.origin().as_str()
        };
        match self.credentials.take_if(|credentials| own(credentials)) {
            Some(Credentials { user, password, .. }) => {
                json!({"response": "ProvideCredentials", "username": user, "password": password})
            }
            None => json!({"response": "CancelAuth"}),
        }
    }

    fn grant(&mut self, policy: Policy, budget: Duration) -> Result<(), CdpError> {
        self.has_own_clock = true;
        let policy = match policy {
            Policy::PauseForNetwork => "pauseIfNetworkFetchesPending",
            Policy::Advance => "advance",
        };
        // Rounded up: a clock that is ahead does no harm.
        let budget = budget.as_micros().div_ceil(1000);
        let budget = u64::try_from(budget).unwrap_or(u64::MAX);
        let grant =
            json!({"policy": policy, "budget": budget, "maxVirtualTimeTaskStarvationCount": 9999});
        self.session.post("Emulation.setVirtualTimePolicy", grant)
    }
}

/// Carries out [`Step::Probe`].
fn probe(session: &Session, probed: &mpsc::UnboundedSender<TabEvent>) {
    let browser = session.connection().browser();
    let script = json!({"expression": "0"});
    for (session, method, params, event) in [
        (browser, "Browser.getVersion", json!({}), TabEvent::Reached),
        // A document that goes has no script to stop: it need not succeed.
        (session.clone(), "Runtime.evaluate", script, TabEvent::Probed),
    ] {
        let probed = probed.clone();
        tokio::spawn(async move {
            let _ = session.call::<Ignored>(method, params).await;
            let _ = probed.send(event);
        });
    }
}

/// Requests for documents stop for an answer, also when their server asks for a password. Responses
/// that [`Answers`] notes stop, too; those of chromium's own pages, such as the viewer of PDFs, do
/// not.
fn intercepted() -> Value {
    let response = |scheme: &str, kind: &str| json!({"urlPattern": format!("{scheme}://*"), "resourceType": kind, "requestStage": "Response"});
    json!({"patterns": [
            {"urlPattern": "*", "resourceType": "Document", "requestStage": "Request"},
            response("http", "Document"),
            response("https", "Document"),
            response("http", "Other"),
            response("https", "Other"),
        ],
        "handleAuthRequests": true})
}

/// Whether chromium has stopped a response, not a request.
fn has_answer(paused: &Value) -> bool {
    paused["responseStatusCode"].is_number() || paused["responseErrorReason"].is_string()
}

async fn navigate(session: Session, url: String) -> Result<TabEvent, CdpError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Navigated {
        #[serde(default)]
        error_text: String,
        #[serde(default)]
        is_download: bool,
    }
    let answer: Navigated = session.call("Page.navigate", json!({"url": url})).await?;
    Ok(TabEvent::NavigationAnswered { error: answer.error_text, is_download: answer.is_download })
}

/// Describes a page that is ready. `changes` are remarks about what was done to it.
fn navigation(
    page: &ReadyPage,
    changes: &[String],
    request: &LoadRequest<'_>,
    elapsed: Duration,
) -> Navigation {
    let notes = [page.notes.as_slice(), changes].concat();
    let navigation = Navigation {
        wait_until: "load".to_owned(),
        elapsed: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
        url: request.url.to_owned(),
        final_url: page.url.clone(),
        mime_type: page.mime_type.clone(),
        timestamp: jiff::Timestamp::now().to_string(),
        note: (!notes.is_empty()).then(|| notes.join("; ")),
        ..Navigation::default()
    };
    with_response(navigation, page.response.as_ref())
}

/// Adds the head of the page's response, which may exist without a page.
fn with_response(navigation: Navigation, response: Option<&Response>) -> Navigation {
    let known = response.filter(|response| response.status > 0);
    Navigation {
        status: known.map(|response| response.status),
        retry_after: known.and_then(|response| response.retry_after),
        ..navigation
    }
}
