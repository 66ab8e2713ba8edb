//! One page of a recording in a browser: loaded without a window, or shown to a user.

use super::interception::Interception;
use super::tally::{Listed, Requests};
use super::{Answers, Namespace, Replay, Seed};
use crate::chromium::browser::Browser;
use crate::chromium::browser::identity;
use crate::chromium::browser::viewport;
use crate::chromium::browser::viewport::window;
use crate::chromium::cdp::{CdpError, Connection, Ignored};
use crate::chromium::reveal::Behaviors;
use crate::chromium::tab::load::{self, LoadRequest, LoadingTab};
use crate::chromium::view::look::look;
use crate::process::finding::Finding;
use crate::process::invocation::Invocation;
use crate::visit::BrowserInfo;
use serde::Deserialize;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::time::{Instant, timeout_at};

/// Largest answer in bytes: a picture of the largest viewport.
const ANSWER_MAX_BYTES: usize = 256 << 20;
/// Settings of the browser that loads pages for the archive.
const SETTINGS: &str = include_str!("../../../plugins/chromium/config.json");

#[derive(Debug)]
pub struct Loaded {
    /// URL that the page has after redirects.
    pub final_url: String,
    pub requests: Requests,
    pub used: BTreeSet<String>,
    /// Errors of its scripts, in the order in which they occurred.
    pub errors: Vec<String>,
    /// Those until it was ready, without those of frames of other sites.
    pub early_errors: Vec<String>,
    pub text: String,
    /// Picture of the viewport.
    pub picture: Vec<u8>,
    /// Set if the page did not finish loading.
    pub note: Option<String>,
}

/// Loads a page as hooks do that archive it, and returns what it looks like.
///
/// # Errors
/// If the browser does not start, the page is not in the recording, or the time is over.
pub async fn load(replay: &Replay, answers: Arc<dyn Answers>) -> Result<Loaded, Finding> {
    let until = Instant::now() + replay.limit;
    let invocation = invocation(&replay.url, &replay.settings);
    in_browser(replay, &invocation, true, async |connection| {
        load_until(replay, &invocation, &connection, answers, until).await
    })
    .await
}

/// Starts a browser with this seed for [`load_over`] in another process. Returns the ends of the pipe that
/// controls it, for commands and for answers. Call this within a tokio runtime.
///
/// # Errors
/// If the browser does not start.
pub fn begin(
    namespace: &Namespace,
    settings: &BTreeMap<String, String>,
    seed: Option<Seed>,
) -> Result<(Browser, [OwnedFd; 2]), Finding> {
    let failed = |error: io::Error| Finding::failed(format!("failed to pass on a pipe: {error}"));
    let (browser, (input, output)) =
        Browser::start_in(namespace, &invocation("about:blank", settings), seed, true)?;
    let input = input.into_owned_fd().map_err(failed)?;
    Ok((browser, [input, output.into_owned_fd().map_err(failed)?]))
}

/// Connects to a browser of [`begin`], which exits when the connection is dropped. Call this within a tokio
/// runtime.
///
/// # Errors
/// If the descriptors are no pipe.
pub fn connect(input: OwnedFd, output: OwnedFd) -> io::Result<Connection> {
    let (input, output) = (Sender::from_owned_fd(input)?, Receiver::from_owned_fd(output)?);
    Ok(Connection::over(output, input, ANSWER_MAX_BYTES))
}

/// Loads a page as [`load`] does, in a browser that runs.
///
/// # Errors
/// If the page is not in the recording, or the time is over.
pub async fn load_over(
    connection: &Connection,
    replay: &Replay,
    answers: Arc<dyn Answers>,
) -> Result<Loaded, Finding> {
    let until = Instant::now() + replay.limit;
    let invocation = invocation(&replay.url, &replay.settings);
    load_until(replay, &invocation, connection, answers, until).await
}

/// Shows a page in a window until the user closes it. Returns how the requests were answered.
///
/// # Errors
/// If the browser does not start or fails.
pub async fn show(replay: &Replay, answers: Arc<dyn Answers>) -> Result<Requests, Finding> {
    let invocation = invocation(&replay.url, &replay.settings);
    in_browser(replay, &invocation, false, async |connection| {
        let interception = Interception::begin(&connection, answers, replay, None, false).await?;
        let mut wanted = json!({"newWindow": true});
        if let Some((width, height)) = replay.world.viewport {
            (wanted["width"], wanted["height"]) =
                (width.into(), (height + viewport::BARS_HEIGHT).into());
        }
        let page = open(&connection, &interception, wanted).await?;
        let session = connection.attach(&page).await?;
        session.post("Page.navigate", json!({"url": &*replay.url}))?;
        tokio::select! {
            () = interception.until_closed() => {}
            _ = tokio::signal::ctrl_c() => {}
        }
        Ok(interception.requests())
    })
    .await
}

fn invocation(url: &str, settings: &BTreeMap<String, String>) -> Invocation {
    let url = [format!("--url={url}")];
    let settings = settings.iter().map(|(key, value)| (key.into(), value.into()));
    Invocation::read("chromium", SETTINGS, &url, settings)
}

async fn in_browser<T>(
    replay: &Replay,
    invocation: &Invocation,
    is_headless: bool,
    used: impl AsyncFnOnce(Connection) -> Result<T, Finding>,
) -> Result<T, Finding> {
    let (mut browser, (input, output)) =
        Browser::start_in(&replay.namespace, invocation, replay.world.seed, is_headless)?;
    let connection = Connection::over(output, input, ANSWER_MAX_BYTES);
    let done = tokio::select! {
        done = used(connection.clone()) => done,
        reason = browser.ended() => return Err(Finding::failed(reason)),
    };
    let closing = connection.browser();
    if closing.post("Browser.close", json!({})).is_err() && done.is_err() {
        // The exit of the browser explains the failure.
        return Err(Finding::failed(browser.ended().await));
    }
    browser.end().await;
    done
}

async fn load_until(
    replay: &Replay,
    invocation: &Invocation,
    connection: &Connection,
    answers: Arc<dyn Answers>,
    until: Instant,
) -> Result<Loaded, Finding> {
    let loading = load_in(replay, invocation, connection, answers, until);
    timeout_at(until, loading).await.unwrap_or_else(|_| {
        let seconds = replay.limit.as_secs();
        Err(Finding::failed(format!("the page did not load within {seconds} s")))
    })
}

async fn load_in(
    replay: &Replay,
    invocation: &Invocation,
    connection: &Connection,
    answers: Arc<dyn Answers>,
    until: Instant,
) -> Result<Loaded, Finding> {
    let browser = connection.browser();
    let version: BrowserInfo = browser.call("Browser.getVersion", json!({})).await?;
    let deny = json!({"behavior": "deny"});
    let _: Ignored = browser.call("Browser.setDownloadBehavior", deny).await?;
    let world = &replay.world;
    let identity = match world.languages.as_slice() {
        [] => identity::of_tab(&version, invocation),
        languages => identity::with_languages(&version, languages.join(",")),
    };
    let beginning = Interception::begin(connection, answers, replay, identity.clone(), true);
    let interception = beginning.await?;
    let recorded = || window(&invocation.settings.text("RESOLUTION"));
    let size = replay.viewport.or(world.viewport).unwrap_or_else(recorded);
    let wanted =
        json!({"newWindow": true, "width": size.0, "height": size.1 + viewport::BARS_HEIGHT});
    let page = open(connection, &interception, wanted).await?;
    let session = connection.attach(&page).await?;
    let request = LoadRequest {
        url: &replay.url,
        credentials: None,
        target: &page,
        window: size,
        screen: world.screen,
        preload: None,
        identity,
        load_timeout: load::load_timeout(until - Instant::now(), invocation.answer_time()),
        settle: Duration::from_millis(invocation.settings.number("CHROME_SETTLE_MS")),
        behaviors: Behaviors::of(invocation),
        file_max: None,
        files: None,
        until,
    };
    let mut tab = LoadingTab::new(session, &request).await?;
    let navigation = tab.load(&request).await?;
    let navigation =
        navigation.into_result().map_err(|finding| unanswered(&interception).unwrap_or(finding))?;
    let view = connection.attach(&page).await?;
    let looking = async {
        interception.until_quiet().await;
        look(&view, &page, Some(replay.picture)).await
    };
    let seen = tokio::select! {
        error = tab.serve() => return Err(error.into()),
        seen = looking => seen?,
    };
    Ok(Loaded {
        final_url: navigation.final_url,
        requests: interception.requests(),
        used: interception.used(),
        errors: interception.errors(),
        early_errors: seen.errors.unwrap_or_default(),
        text: seen.text,
        picture: seen.picture,
        note: navigation.note,
    })
}

/// Why the page itself has no answer; chromium only says that there is no network.
fn unanswered(interception: &Interception) -> Option<Finding> {
    let requests = interception.requests();
    let document = |one: &&Listed| one.kind == "document";
    let page = requests.not_answered.iter().find(document)?;
    let (url, reason) = (&page.url, &page.reason);
    Some(Finding::failed(format!("the recording has no answer for the page '{url}': {reason}")))
}

/// Opens an empty page, whose requests are stopped when this returns.
async fn open(
    connection: &Connection,
    interception: &Interception,
    mut wanted: serde_json::Value,
) -> Result<String, CdpError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Created {
        target_id: String,
    }
    wanted["url"] = "about:blank".into();
    let browser = connection.browser();
    let created: Created = browser.call("Target.createTarget", wanted).await?;
    interception.until_stopped(&created.target_id).await;
    Ok(created.target_id)
}
