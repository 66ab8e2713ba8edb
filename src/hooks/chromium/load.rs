//! Loading a page in a tab, once, for all hooks that save it.

use super::super::page;
use super::cdp::{CdpError, Client, Nothing};
use super::session::Navigation;
use crate::page::html::one_line;
use crate::process::record::Finding;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// What is left of the time for what comes after the page.
const LAST: Duration = Duration::from_millis(500);

/// What is to be loaded, and how long that may take.
pub struct Order<'a> {
    pub url: &'a str,
    /// The tab, whose main frame has the same id.
    pub target: &'a str,
    /// Width and height of the window in pixels.
    pub window: (u32, u32),
    /// Until the page has loaded.
    pub patience: Duration,
    /// Page time for its scripts after that.
    pub settle: Duration,
    /// When everything has to be over.
    pub until: Instant,
}

/// How long a page may take to load: three fifths of the time, at most half a minute. The rest
/// is for its scripts.
pub fn patience(left: Duration) -> Duration {
    (left * 3 / 5).min(Duration::from_secs(30))
}

/// The window size `WIDTH,HEIGHT`, made sane.
pub fn window(text: &str) -> (u32, u32) {
    let side = |part: Option<&str>, default: u32| {
        part.and_then(|text| text.trim().parse().ok())
            .unwrap_or(default)
            .clamp(100, 16_384)
    };
    let mut parts = text.split([',', 'x']);
    (side(parts.next(), 1440), side(parts.next(), 2000))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Navigated {
    error_text: Option<String>,
    #[serde(default)]
    is_download: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Response {
    frame_id: Option<String>,
    #[serde(rename = "type")]
    kind: String,
    response: Answer,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    status: u64,
    mime_type: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tree {
    frame_tree: Frame,
}

#[derive(Deserialize)]
struct Frame {
    frame: Main,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Main {
    url: String,
    mime_type: String,
}

/// Loads the page in the tab that the client is attached to, and gives its scripts their time.
/// Fails unless a page has come; a page that never finishes has a note.
pub async fn load(client: &mut Client, order: &Order<'_>) -> Result<Navigation, Finding> {
    let begin = Instant::now();
    let deadline = begin + order.patience;
    let seconds = order.patience.as_secs();
    let late = |_| Finding::failed(format!("the page did not answer within {seconds} s"));
    prepare(client, order.window).await?;
    let to = json!({"url": order.url});
    let navigated = timeout_at(deadline, client.call("Page.navigate", to)).await;
    let navigated: Navigated = navigated.map_err(late)??;
    let mut response = Answer::default();
    let mut has_loaded = take_events(client, order.target, &mut response);
    judge(&navigated, &response)?;
    let mut note = None;
    while !has_loaded && note.is_none() {
        match timeout_at(deadline, client.event()).await {
            Ok(Ok(event)) if event.method == "Page.loadEventFired" => has_loaded = true,
            Ok(Ok(event)) => take_response(event.params, order.target, &mut response),
            Ok(Err(error)) => return Err(error.into()),
            Err(_) => note = Some(format!("still loading after {seconds} s")),
        }
    }
    // A page may keep its process so busy that even this has no answer.
    let rest = Instant::now() + order.settle * 2 + Duration::from_secs(5);
    let rest = rest.min(order.until - LAST);
    let settled = match note {
        Some(_) => stop(client, rest).await,
        None => settle(client, order, rest, &mut response).await,
    };
    let main = match settled {
        Ok(Some(main)) => main,
        Ok(None) => {
            note.get_or_insert_with(|| "its scripts never rest".to_owned());
            Main {
                url: order.url.to_owned(),
                mime_type: response.mime_type.clone(),
            }
        }
        Err(error) => return Err(error.into()),
    };
    unless_viewable(&main.mime_type)?;
    Ok(Navigation {
        wait_until: "load".to_owned(),
        elapsed: u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX),
        url: order.url.to_owned(),
        final_url: main.url,
        status: Some(response.status).filter(|status| *status > 0),
        mime_type: main.mime_type,
        timestamp: jiff::Timestamp::now().to_string(),
        note,
        ..Navigation::default()
    })
}

async fn prepare(client: &mut Client, (width, height): (u32, u32)) -> Result<(), CdpError> {
    let _: Nothing = client.call("Page.enable", json!({})).await?;
    // Bodies are not asked for: none is to be kept.
    let none = json!({"maxTotalBufferSize": 1, "maxResourceBufferSize": 1});
    let _: Nothing = client.call("Network.enable", none).await?;
    let focus = json!({"enabled": true});
    let _: Nothing = client
        .call("Emulation.setFocusEmulationEnabled", focus)
        .await?;
    resize(client, (width, height)).await
}

/// Gives the tab a size in pixels, whatever its window has.
pub async fn resize(client: &mut Client, (width, height): (u32, u32)) -> Result<(), CdpError> {
    let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
    let _: Nothing = client
        .call("Emulation.setDeviceMetricsOverride", size)
        .await?;
    Ok(())
}

/// Whether the page has loaded already, by the events that came with the answer.
fn take_events(client: &mut Client, target: &str, response: &mut Answer) -> bool {
    let mut has_loaded = false;
    for event in client.events_so_far() {
        match event.method.as_str() {
            "Page.loadEventFired" => has_loaded = true,
            _ => take_response(event.params, target, response),
        }
    }
    has_loaded
}

/// The last answer for the main frame counts: pages lead elsewhere by script.
fn take_response(params: Value, target: &str, last: &mut Answer) {
    if let Ok(response) = serde_json::from_value::<Response>(params)
        && response.kind == "Document"
        && response.frame_id.as_deref() == Some(target)
    {
        *last = response.response;
    }
}

fn judge(navigated: &Navigated, response: &Answer) -> Result<(), Finding> {
    let error = navigated.error_text.as_deref().unwrap_or_default();
    if navigated.is_download || error == "net::ERR_ABORTED" {
        return Err(Finding::noresults(match response.mime_type.as_str() {
            "" => "not a page: the server offers a download".to_owned(),
            kind => format!("not a page: {}", one_line(kind, 100)),
        }));
    }
    if !error.is_empty() {
        let error = one_line(error, 100);
        return Err(Finding::failed(format!(
            "chromium could not load the page: {error}"
        )));
    }
    unless_viewable(&response.mime_type)
}

fn unless_viewable(kind: &str) -> Result<(), Finding> {
    if page::is_viewable(kind) {
        Ok(())
    } else {
        Err(Finding::noresults(format!(
            "not a page: {}",
            one_line(kind, 100)
        )))
    }
}

/// Ends the loading; what has come is the page. `None` if the page's process does not answer.
async fn stop(client: &mut Client, deadline: Instant) -> Result<Option<Main>, CdpError> {
    let stopping = async {
        let _: Nothing = client.call("Page.stopLoading", json!({})).await?;
        main_frame(client).await
    };
    timeout_at(deadline, stopping)
        .await
        .map_or(Ok(None), |main| main.map(Some))
}

/// Gives the scripts their time, which runs faster than ours when they only wait, and then stands
/// still: all hooks see the same page. `None` if that does not come to an end.
async fn settle(
    client: &mut Client,
    order: &Order<'_>,
    deadline: Instant,
    response: &mut Answer,
) -> Result<Option<Main>, CdpError> {
    let settling = async {
        if !order.settle.is_zero() {
            let budget = json!({"policy": "pauseIfNetworkFetchesPending",
                "budget": order.settle.as_millis() as u64, "maxVirtualTimeTaskStarvationCount": 9999});
            let _: Nothing = client
                .call("Emulation.setVirtualTimePolicy", budget)
                .await?;
            loop {
                let event = client.event().await?;
                if event.method == "Emulation.virtualTimeBudgetExpired" {
                    break;
                }
                take_response(event.params, order.target, response);
            }
        }
        main_frame(client).await
    };
    timeout_at(deadline, settling)
        .await
        .map_or(Ok(None), |main| main.map(Some))
}

async fn main_frame(client: &mut Client) -> Result<Main, CdpError> {
    let tree: Tree = client.call("Page.getFrameTree", json!({})).await?;
    let _: Nothing = client.call("Network.disable", json!({})).await?;
    Ok(tree.frame_tree.frame)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn window_sizes_are_made_sane() {
        assert_eq!(window("1440,2000"), (1440, 2000));
        assert_eq!(window(" 800x600 "), (800, 600));
        assert_eq!(window("0,99999999"), (100, 16384));
        assert_eq!(window("$(reboot)"), (1440, 2000));
    }

    #[test]
    fn what_came_is_judged() {
        let judged = |error: Option<&str>, is_download, kind: &str| {
            let navigated = Navigated {
                error_text: error.map(str::to_owned),
                is_download,
            };
            let response = Answer {
                status: 200,
                mime_type: kind.to_owned(),
            };
            let finding = judge(&navigated, &response).err()?;
            Some((finding.exit_code(), finding.output_str))
        };
        assert_eq!(judged(None, false, "text/html"), None);
        let zip = Some((0, "not a page: application/zip".to_owned()));
        assert_eq!(
            judged(Some("net::ERR_ABORTED"), true, "application/zip"),
            zip
        );
        assert_eq!(judged(None, false, "application/pdf").unwrap().0, 0);
        let (code, words) = judged(Some("net::ERR_NAME_NOT_RESOLVED"), false, "").unwrap();
        assert_eq!(code, 1);
        assert_eq!(
            words,
            "chromium could not load the page: net::ERR_NAME_NOT_RESOLVED"
        );
    }

    #[test]
    fn the_main_frame_s_last_answer_counts() {
        let mut last = Answer::default();
        let answer = |frame: &str, kind: &str, status: u64| json!({"frameId": frame, "type": kind, "response": {"status": status, "mimeType": "text/html"}});
        take_response(answer("T", "Document", 302), "T", &mut last);
        take_response(answer("T", "Document", 404), "T", &mut last);
        take_response(answer("OTHER", "Document", 500), "T", &mut last);
        take_response(answer("T", "Image", 200), "T", &mut last);
        take_response(json!({}), "T", &mut last);
        assert_eq!(last.status, 404);
    }
}
