//! `chromium_tab`: loads the snapshot's page in a tab, which other hooks then save.

pub(crate) mod answers;
mod events;
pub(crate) mod load;
mod login_check;
mod robots_check;

use crate::causes::explained;
use crate::chromium::browser::identity;
use crate::chromium::browser::launch::{Isolation, working_directory};
use crate::chromium::browser::relay::BrowserServer;
use crate::chromium::browser::world::Numbers;
use crate::chromium::browser::{cookies, viewport};
use crate::chromium::cdp::{CdpError, Connection, Ignored, Session};
use crate::chromium::recorder::{RecordRequest, Recorder};
use crate::chromium::reveal::Behaviors;
use crate::process::finding::Outcome;
use crate::process::finding::{Finding, progress};
use crate::process::invocation::Invocation;
use crate::process::program::{ProgramRunner, StopSignals};
use crate::visit::{
    self, BROWSER, CDP_URL, DOCUMENT, ICON, NAVIGATION, Navigation, RESPONSES, SOCKET, TARGET_ID,
    URL,
};
use load::{LoadRequest, LoadingTab};
use serde::Deserialize;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use url::Url;

/// Name of the document of an earlier visit meanwhile.
const EARLIER_DOCUMENT: &str = "document.earlier";
/// Largest answer in bytes: this client only gets events and small answers.
const ANSWER_MAX_BYTES: usize = 4 << 20;

/// Loads the page in a new tab and keeps the tab open until SIGTERM.
pub fn run(invocation: &Invocation) -> Outcome {
    visit::remove_files(&[CDP_URL, TARGET_ID, URL, NAVIGATION, RESPONSES, ICON]);
    // What an earlier visit saved in place of a page stays if this one saves nothing.
    if Path::new(DOCUMENT).exists() {
        visit::remove_all(EARLIER_DOCUMENT);
        visit::rename_file(DOCUMENT, EARLIER_DOCUMENT);
    }
    let outcome = ProgramRunner::new(invocation.budget()).and_then(|mut runner| {
        let deadline = Instant::now() + invocation.budget();
        runner.block_on(async |stop_signals| serve(invocation, deadline, stop_signals).await)
    });
    visit::remove_files(&[CDP_URL, TARGET_ID, SOCKET, ICON]);
    if outcome.is_ok() || visit::document_in(Path::new(".")).is_some() {
        visit::remove_all(EARLIER_DOCUMENT);
    } else {
        visit::rename_file(EARLIER_DOCUMENT, DOCUMENT);
    }
    outcome
}

/// The open tab of a snapshot. It closes with its connection.
struct Tab {
    session: Session,
    target: String,
    context: String,
}

/// What is closed when the tab is.
#[derive(Default)]
struct Opened {
    /// The snapshot's own browser, if it has one.
    browser: Option<BrowserServer>,
    recorder: Option<Recorder>,
}

async fn serve(
    invocation: &Invocation,
    deadline: Instant,
    stop_signals: &mut StopSignals,
) -> Outcome {
    let mut opened = Opened::default();
    let arriving = timeout_at(deadline, open_page(invocation, deadline, &mut opened));
    let arrived = tokio::select! {
        arrived = arriving => arrived.unwrap_or_else(|_| {
            let seconds = invocation.budget().as_secs();
            Err(Finding::failed(format!("chromium did not open a tab within {seconds} s")))
        }),
        () = stop_signals.wait() => Err(Finding::failed("the hook received SIGTERM before the page had loaded")),
    };
    let records = opened.recorder.is_some();
    let outcome = match arrived {
        Ok((tab, mut navigation)) if navigation.error.is_some() => {
            tab.answers().write()?;
            navigation.is_recorded = records && tab.answers().are_kept();
            navigation.is_unreachable =
                tab.answers().is_empty() && navigation.has_unreachable_site();
            let finding = explained(navigation.failure(), invocation);
            navigation.error = Some(finding.output_str.clone());
            visit::write(NAVIGATION, &navigation)?;
            Err(with_status(finding, navigation.status))
        }
        Ok((mut tab, mut navigation)) => {
            tab.answers().write()?;
            navigation.is_recorded = records;
            visit::write(NAVIGATION, &navigation)?;
            progress(&describe(&navigation));
            let outcome = watch(&mut tab, &mut opened.browser, stop_signals).await;
            outcome.map(|()| result(navigation))
        }
        Err(finding) => {
            let finding = explained(finding, invocation);
            visit::write(NAVIGATION, &Navigation::failed(&invocation.url, &finding))?;
            Err(finding)
        }
    };
    if let Some(recorder) = opened.recorder {
        recorder.end().await;
    }
    if let Some(served) = opened.browser {
        served.close().await;
    }
    outcome
}

/// Opens the tab and loads the page. What has to be closed is stored in `opened`.
async fn open_page(
    invocation: &Invocation,
    deadline: Instant,
    opened: &mut Opened,
) -> Result<(LoadingTab, Navigation), Finding> {
    let url = invocation.web_url()?;
    let (socket, browser) = match Isolation::of(invocation) {
        Isolation::Crawl => crawl_browser(invocation).await?,
        Isolation::Snapshot => {
            let served = BrowserServer::start(invocation, &working_directory()?).await?;
            let served = opened.browser.insert(served);
            visit::write(BROWSER, &served.browser)?;
            (served.socket.clone(), served.browser.clone())
        }
    };
    let window = viewport::window(&invocation.settings.text("RESOLUTION"));
    let tab = open(invocation, &socket, window, browser.has_profile).await?;
    visit::publish_socket(&socket)?;
    crate::process::files::write(URL, format!("{}\n", invocation.url).as_bytes())?;
    crate::process::files::write(TARGET_ID, format!("{}\n", tab.target).as_bytes())?;
    let identity = identity::of_tab(&browser, invocation);
    let numbers = browser.seed.map(|_| Numbers::new(&invocation.url));
    let recorded = RecordRequest {
        socket: &socket,
        target: &tab.target,
        context: &tab.context,
        identity: identity.as_ref(),
        window,
        seed: browser.seed,
    };
    opened.recorder = Recorder::start(invocation, &recorded).await;
    let request = LoadRequest {
        url: url.as_str(),
        credentials: invocation.credentials.as_ref(),
        target: &tab.target,
        window,
        screen: None,
        preload: numbers.filter(|_| opened.recorder.is_none()).map(|it| it.of_document()),
        identity: identity.clone(),
        load_timeout: load::load_timeout(deadline - Instant::now(), invocation.answer_time()),
        settle: Duration::from_millis(invocation.settings.number("CHROME_SETTLE_MS")),
        behaviors: Behaviors::of(invocation),
        file_max: Some(invocation.settings.size("PAGE_MAX_SIZE")),
        files: opened.recorder.as_ref().map(Recorder::files),
        until: deadline,
    };
    let mut loading = LoadingTab::new(tab.session, &request).await?;
    let mut navigation = loading.load(&request).await?;
    if navigation.error.is_none() {
        let session = loading.session().clone();
        let found = tokio::select! {
            error = loading.serve() => return Err(error.into()),
            found = shown_instead(&session, &tab.target, &url) => found,
        };
        navigation.error = found;
    }
    if let Some(recorder) = &mut opened.recorder
        && navigation.error.is_none()
    {
        tokio::select! {
            error = loading.serve() => return Err(error.into()),
            () = recorder.look(&recorded) => {}
        }
    }
    navigation.url = invocation.url.clone();
    navigation.target = tab.target.clone();
    Ok((loading, navigation))
}

/// Returns what a server shows in place of the page, if its document is none.
async fn shown_instead(session: &Session, page: &str, asked: &Url) -> Option<String> {
    match robots_check::found(session, page).await {
        None => login_check::found(session, page, asked).await,
        found => found,
    }
}

/// Waits for the crawl's browser. Returns its socket and its description.
async fn crawl_browser(invocation: &Invocation) -> Result<(PathBuf, visit::BrowserInfo), Finding> {
    let directory = visit::crawl_directory(invocation);
    if !directory.is_dir() {
        return Err(Finding::failed(
            "the crawl has no browser: its hook chromium_launch did not run",
        ));
    }
    let browser: visit::BrowserInfo = visit::wait_for(&directory.join(BROWSER)).await?;
    match browser.error {
        Some(reason) => Err(Finding::failed(format!("the crawl's browser: {reason}"))),
        None => Ok((visit::socket_in(&directory)?, browser)),
    }
}

/// Opens a tab in its own browser context, so that snapshots do not share cookies; each starts with
/// those of the persona.
async fn open(
    invocation: &Invocation,
    socket: &Path,
    (width, height): (u32, u32),
    has_profile: bool,
) -> Result<Tab, CdpError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Context {
        browser_context_id: String,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Target {
        target_id: String,
    }
    let connection = Connection::open(socket, ANSWER_MAX_BYTES).await?;
    let browser = connection.browser();
    let created: Context = browser.call("Target.createBrowserContext", json!({})).await?;
    let context = created.browser_context_id;
    let deny = json!({"behavior": "deny", "browserContextId": context});
    let _: Ignored = browser.call("Browser.setDownloadBehavior", deny).await?;
    cookies::load(&browser, &context, invocation, has_profile).await?;
    let wanted = json!({"url": "about:blank", "browserContextId": context, "newWindow": true,
        "left": 0, "top": 0, "width": width, "height": height + viewport::BARS_HEIGHT});
    let target: Target = browser.call("Target.createTarget", wanted).await?;
    Ok(Tab {
        session: connection.attach(&target.target_id).await?,
        target: target.target_id,
        context,
    })
}

/// Serves the tab until SIGTERM, and detects a crash of the page or the browser. Closing the
/// connection closes the tab.
async fn watch(
    tab: &mut LoadingTab,
    own: &mut Option<BrowserServer>,
    stop_signals: &mut StopSignals,
) -> Result<(), Finding> {
    let browser_ended = async {
        match own {
            Some(served) => served.ended().await,
            None => std::future::pending().await,
        }
    };
    let finding = tokio::select! {
        () = stop_signals.wait() => return Ok(()),
        error = tab.serve() => return Err(error.into()),
        finding = browser_ended => finding,
    };
    *own = None;
    Err(finding)
}

fn result(navigation: Navigation) -> Finding {
    let finding = Finding::succeeded(loaded(&navigation))
        .with("final_url", navigation.final_url)
        .with_note(navigation.note);
    with_status(finding, navigation.status)
}

fn with_status(finding: Finding, status: Option<u64>) -> Finding {
    match status {
        Some(status) => finding.with("http_status", status),
        None => finding,
    }
}

fn loaded(navigation: &Navigation) -> String {
    let status = navigation.status;
    let status = status.map_or_else(String::new, |status| format!(" http={status}"));
    format!("page loaded{status}")
}

fn describe(navigation: &Navigation) -> String {
    let note = navigation.note.iter().map(|note| format!(", {note}"));
    loaded(navigation) + &note.collect::<String>()
}
