//! One page of a recording in a browser: loaded without a window, or shown to a user.

use super::interception::Interception;
use super::tally::{Listed, Requests};
use super::{Answers, Replay};
use crate::chromium::browser::Browser;
use crate::chromium::cdp::{CdpError, Connection, Ignored};
use crate::chromium::identity;
use crate::chromium::load::{self, LoadRequest, LoadingTab, window};
use crate::chromium::look::look;
use crate::chromium::reveal::Behaviors;
use crate::chromium::session::BrowserInfo;
use crate::process::finding::Finding;
use crate::process::invocation::Invocation;
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Largest answer in bytes: a picture of the largest viewport.
const ANSWER_MAX_BYTES: usize = 256 << 20;
/// Settings of the browser that loads pages for the archive.
const SETTINGS: &str = include_str!("../../../plugins/chromium/config.json");

/// A page that was loaded from a recording.
#[derive(Debug)]
pub struct Loaded {
    /// URL that the page has after redirects.
    pub final_url: String,
    /// How its requests were answered.
    pub requests: Requests,
    /// URLs of the records that answered.
    pub used: BTreeSet<String>,
    /// Errors of its scripts, in the order in which they occurred.
    pub errors: Vec<String>,
    /// Those until it was ready, without those of frames of other sites.
    pub early_errors: Vec<String>,
    /// Its visible text.
    pub text: String,
    /// Picture of the viewport, as PNG.
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
    let invocation = invocation(replay);
    in_browser(replay, &invocation, true, async |connection| {
        let loading = load_in(replay, &invocation, &connection, answers, until);
        timeout_at(until, loading).await.unwrap_or_else(|_| {
            let seconds = replay.limit.as_secs();
            Err(Finding::failed(format!("the page did not load within {seconds} s")))
        })
    })
    .await
}

/// Shows a page in a window until the user closes it. Returns how the requests were answered.
///
/// # Errors
/// If the browser does not start or fails.
pub async fn show(replay: &Replay, answers: Arc<dyn Answers>) -> Result<Requests, Finding> {
    let invocation = invocation(replay);
    in_browser(replay, &invocation, false, async |connection| {
        let interception = Interception::begin(&connection, answers, replay, None, false).await?;
        let page = open(&connection, &interception, json!({"newWindow": true})).await?;
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

fn invocation(replay: &Replay) -> Invocation {
    let url = [format!("--url={}", &*replay.url)];
    let settings = replay.settings.iter();
    let settings = settings.map(|(key, value)| (key.into(), value.into()));
    Invocation::read("chromium", SETTINGS, &url, settings)
}

/// Starts a browser, uses it, and ends it.
async fn in_browser<T>(
    replay: &Replay,
    invocation: &Invocation,
    is_headless: bool,
    used: impl AsyncFnOnce(Connection) -> Result<T, Finding>,
) -> Result<T, Finding> {
    let (mut browser, (input, output)) =
        Browser::start_behind(&replay.wall, invocation, is_headless)?;
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
    let identity = identity::of_tab(&version, invocation);
    let beginning = Interception::begin(connection, answers, replay, identity.clone(), true);
    let interception = beginning.await?;
    let recorded = || window(&invocation.settings.text("RESOLUTION"));
    let size = replay.viewport.unwrap_or_else(recorded);
    let wanted = json!({"newWindow": true, "width": size.0, "height": size.1});
    let page = open(connection, &interception, wanted).await?;
    let session = connection.attach(&page).await?;
    let request = LoadRequest {
        url: &replay.url,
        credentials: None,
        target: &page,
        window: size,
        identity,
        load_timeout: load::load_timeout(until - Instant::now()),
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
        look(&view, &page).await
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
