//! `chromium_tab`: the snapshot's page in a tab, which other hooks then save.

use super::super::Outcome;
use super::cdp::{CdpError, Client, Nothing};
use super::load::Order;
use super::relay::Served;
use super::session::{BROWSER, CDP_URL, NAVIGATION, Navigation, SOCKET, TARGET_ID, URL};
use super::{Isolation, here};
use crate::chromium::load;
use crate::chromium::session;
use crate::process::invocation::Invocation;
use crate::process::program::{Runner, Told};
use crate::process::record::{Finding, progress};
use serde::Deserialize;
use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Events and small answers; what is larger is for others.
const MOST_ANSWER: usize = 4 << 20;

/// Loads the page in a tab of its own and keeps that open until told to end.
pub fn run(it: &Invocation) -> Outcome {
    session::withdraw(&[CDP_URL, TARGET_ID, URL, NAVIGATION]);
    let outcome = Runner::new(it.budget()).and_then(|mut runner| {
        let deadline = Instant::now() + it.budget();
        runner.carry_out(async |told| attend(it, deadline, told).await)
    });
    session::withdraw(&[CDP_URL, TARGET_ID, SOCKET]);
    outcome
}

/// Where the snapshot's tab is.
struct Tab {
    client: Client,
    target: String,
    socket: PathBuf,
}

async fn attend(it: &Invocation, deadline: Instant, told: &mut Told) -> Outcome {
    let mut own = None;
    let arriving = timeout_at(deadline, arrive(it, deadline, &mut own));
    let arrived = tokio::select! {
        arrived = arriving => arrived.unwrap_or_else(|_| {
            let seconds = it.budget().as_secs();
            Err(Finding::failed(format!("chromium did not open a tab within {seconds} s")))
        }),
        () = told.wait() => Err(Finding::failed("told to end before the page had come")),
    };
    let outcome = match arrived {
        Ok((mut tab, navigation)) => {
            session::write(NAVIGATION, &navigation)?;
            progress(&story(&navigation));
            let outcome = watch(&mut tab, &mut own, told).await;
            outcome.map(|()| {
                let finding = Finding::succeeded(story(&navigation));
                finding.with("final_url", navigation.final_url)
            })
        }
        Err(finding) => {
            session::write(NAVIGATION, &Navigation::failed(&it.url, &finding))?;
            Err(finding)
        }
    };
    if let Some(served) = own {
        served.close().await;
    }
    outcome
}

/// Opens the tab and loads the page. A browser that is started for that is put into `own`.
async fn arrive(
    it: &Invocation,
    deadline: Instant,
    own: &mut Option<Served>,
) -> Result<(Tab, Navigation), Finding> {
    let url = it.web_url()?;
    let socket = match Isolation::of(it) {
        Isolation::Crawl => crawl_socket(it).await?,
        Isolation::Snapshot => {
            let served = own.insert(Served::start(it, &here()?).await?);
            session::write(BROWSER, &served.browser)?;
            served.socket.clone()
        }
    };
    let window = load::window(&it.settings.text("RESOLUTION"));
    let mut tab = open(socket, window).await?;
    session::announce(&tab.socket)?;
    super::super::page::write(URL, format!("{}\n", it.url).as_bytes())?;
    super::super::page::write(TARGET_ID, format!("{}\n", tab.target).as_bytes())?;
    let order = Order {
        url: url.as_str(),
        target: &tab.target,
        window,
        patience: load::patience(deadline - Instant::now()),
        settle: Duration::from_millis(it.settings.number("CHROME_SETTLE_MS")),
        until: deadline,
    };
    let mut navigation = load::load(&mut tab.client, &order).await?;
    navigation.url = it.url.clone();
    Ok((tab, navigation))
}

/// The crawl's browser, when it is ready.
async fn crawl_socket(it: &Invocation) -> Result<PathBuf, Finding> {
    let directory = session::crawl_directory(it);
    if !directory.is_dir() {
        return Err(Finding::failed(
            "the crawl has no browser: its hook chromium_launch did not run",
        ));
    }
    let browser: session::Browser = session::awaited(&directory.join(BROWSER)).await?;
    match browser.error {
        Some(reason) => Err(Finding::failed(format!("the crawl's browser: {reason}"))),
        None => session::socket_in(&directory),
    }
}

/// Opens a tab in a context of its own: no snapshot sees the cookies of another.
async fn open(socket: PathBuf, (width, height): (u32, u32)) -> Result<Tab, CdpError> {
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
    let mut client = Client::connect(&socket, MOST_ANSWER).await?;
    let context: Context = client
        .call("Target.createBrowserContext", json!({}))
        .await?;
    let context = context.browser_context_id;
    let deny = json!({"behavior": "deny", "browserContextId": context});
    let _: Nothing = client.call("Browser.setDownloadBehavior", deny).await?;
    let wanted = json!({"url": "about:blank", "browserContextId": context, "newWindow": true,
        "width": width, "height": height});
    let target: Target = client.call("Target.createTarget", wanted).await?;
    client.attach(&target.target_id).await?;
    Ok(Tab {
        client,
        target: target.target_id,
        socket,
    })
}

/// Keeps the page company until the hook is told to end: its dialogs are closed, its crash and
/// the browser's end are noticed. The tab is closed with the connection.
async fn watch(tab: &mut Tab, own: &mut Option<Served>, told: &mut Told) -> Result<(), Finding> {
    loop {
        let browser_ended = async {
            match own {
                Some(served) => served.ended().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = told.wait() => return Ok(()),
            event = tab.client.event() => drop(event?),
            finding = browser_ended => {
                *own = None;
                return Err(finding);
            }
        }
    }
}

fn story(navigation: &Navigation) -> String {
    let status = navigation
        .status
        .map_or_else(String::new, |status| format!(" http={status}"));
    let note = navigation
        .note
        .as_ref()
        .map_or_else(String::new, |note| format!(", {note}"));
    format!("page loaded{status}{note}")
}
