//! Loads a page in a tab, once, for all hooks that save it.

use super::super::page;
use super::cdp::{CdpError, Client, Ignored};
use super::session::Navigation;
use crate::page::html::one_line;
use crate::process::finding::Finding;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Time that is reserved for the steps after loading.
const CLOSING_RESERVE: Duration = Duration::from_millis(500);

/// What to load, and how long each step may take.
pub struct LoadRequest<'a> {
    pub url: &'a str,
    /// Target id of the tab, which is also the id of its main frame.
    pub target: &'a str,
    /// Width and height of the viewport in pixels.
    pub window: (u32, u32),
    /// Time limit until the page's load event.
    pub load_timeout: Duration,
    /// Virtual time for the page's scripts after its load event.
    pub settle: Duration,
    /// Deadline of all steps.
    pub until: Instant,
}

/// Time limit of a page's load: three fifths of the remaining time, at most 30 seconds. The page's
/// scripts get the rest.
pub fn load_timeout(left: Duration) -> Duration {
    (left * 3 / 5).min(Duration::from_secs(30))
}

/// Parses a window size `WIDTH,HEIGHT` in pixels. A missing side gets its default; each is clamped
/// to 100..=16384.
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
    response: MainResponse,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct MainResponse {
    status: u64,
    mime_type: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FrameTree {
    frame_tree: FrameNode,
}

#[derive(Deserialize)]
struct FrameNode {
    frame: MainFrame,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MainFrame {
    url: String,
    mime_type: String,
}

/// Loads the page in the attached tab, and lets its scripts run. Returns how the page loaded; a
/// page that never finishes has a note. Fails when no page arrived.
pub async fn load(client: &mut Client, request: &LoadRequest<'_>) -> Result<Navigation, Finding> {
    let begin = Instant::now();
    let deadline = begin + request.load_timeout;
    let seconds = request.load_timeout.as_secs();
    let late = |_| Finding::failed(format!("the page did not answer within {seconds} s"));
    prepare(client, request.window).await?;
    let to = json!({"url": request.url});
    let answered = timeout_at(deadline, client.call("Page.navigate", to)).await;
    let navigated: Navigated = answered.map_err(late)??;
    let mut response = MainResponse::default();
    let mut has_loaded = take_events(client, request.target, &mut response);
    judge(&navigated, &response)?;
    let mut note = None;
    while !has_loaded && note.is_none() {
        match timeout_at(deadline, client.event()).await {
            Ok(Ok(event)) if event.method == "Page.loadEventFired" => has_loaded = true,
            Ok(Ok(event)) => take_response(event.params, request.target, &mut response),
            Ok(Err(error)) => return Err(error.into()),
            Err(_) => note = Some(format!("still loading after {seconds} s")),
        }
    }
    // A page may keep its renderer process so busy that this call gets no answer either.
    let longest = Instant::now() + request.settle * 2 + Duration::from_secs(5);
    let rest = longest.min(request.until - CLOSING_RESERVE);
    let settled = match note {
        Some(_) => stop(client, rest).await,
        None => settle(client, request, rest, &mut response).await,
    };
    let main = match settled {
        Ok(Some(main)) => main,
        Ok(None) => {
            note.get_or_insert_with(|| "its scripts did not finish".to_owned());
            MainFrame {
                url: request.url.to_owned(),
                mime_type: response.mime_type.clone(),
            }
        }
        Err(error) => return Err(error.into()),
    };
    require_viewable(&main.mime_type)?;
    Ok(Navigation {
        wait_until: "load".to_owned(),
        elapsed: u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX),
        url: request.url.to_owned(),
        final_url: main.url,
        status: Some(response.status).filter(|status| *status > 0),
        mime_type: main.mime_type,
        timestamp: jiff::Timestamp::now().to_string(),
        note,
        ..Navigation::default()
    })
}

async fn prepare(client: &mut Client, (width, height): (u32, u32)) -> Result<(), CdpError> {
    let _: Ignored = client.call("Page.enable", json!({})).await?;
    // Response bodies are not needed: keep the browser from buffering them.
    let none = json!({"maxTotalBufferSize": 1, "maxResourceBufferSize": 1});
    let _: Ignored = client.call("Network.enable", none).await?;
    let focus = json!({"enabled": true});
    let _: Ignored = client
        .call("Emulation.setFocusEmulationEnabled", focus)
        .await?;
    resize(client, (width, height)).await
}

/// Sets the size of the tab's viewport in pixels, independent of its window.
pub async fn resize(client: &mut Client, (width, height): (u32, u32)) -> Result<(), CdpError> {
    let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
    let _: Ignored = client
        .call("Emulation.setDeviceMetricsOverride", size)
        .await?;
    Ok(())
}

/// Processes the events that arrived during the call. Returns whether the page has loaded.
fn take_events(client: &mut Client, target: &str, response: &mut MainResponse) -> bool {
    let mut has_loaded = false;
    for event in client.events_so_far() {
        match event.method.as_str() {
            "Page.loadEventFired" => has_loaded = true,
            _ => take_response(event.params, target, response),
        }
    }
    has_loaded
}

/// Stores the response if it is the main frame's document. The last one counts, because scripts may
/// navigate elsewhere.
fn take_response(params: Value, target: &str, last: &mut MainResponse) {
    if let Ok(response) = serde_json::from_value::<Response>(params)
        && response.kind == "Document"
        && response.frame_id.as_deref() == Some(target)
    {
        *last = response.response;
    }
}

fn judge(navigated: &Navigated, response: &MainResponse) -> Result<(), Finding> {
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
            "failed to load the page in chromium: {error}"
        )));
    }
    require_viewable(&response.mime_type)
}

fn require_viewable(kind: &str) -> Result<(), Finding> {
    if page::is_viewable(kind) {
        Ok(())
    } else {
        Err(Finding::noresults(format!(
            "not a page: {}",
            one_line(kind, 100)
        )))
    }
}

/// Stops loading and keeps what has loaded. Returns `None` if the renderer process does not answer.
async fn stop(client: &mut Client, deadline: Instant) -> Result<Option<MainFrame>, CdpError> {
    let stopping = async {
        let _: Ignored = client.call("Page.stopLoading", json!({})).await?;
        main_frame(client).await
    };
    timeout_at(deadline, stopping)
        .await
        .map_or(Ok(None), |main| main.map(Some))
}

/// Lets the page's scripts run in virtual time, which skips idle time, and then freezes the page,
/// so that all hooks see the same state. Returns `None` if that does not finish by `deadline`.
async fn settle(
    client: &mut Client,
    request: &LoadRequest<'_>,
    deadline: Instant,
    response: &mut MainResponse,
) -> Result<Option<MainFrame>, CdpError> {
    let settling = async {
        if !request.settle.is_zero() {
            let budget = json!({"policy": "pauseIfNetworkFetchesPending",
                "budget": request.settle.as_millis() as u64, "maxVirtualTimeTaskStarvationCount": 9999});
            let _: Ignored = client
                .call("Emulation.setVirtualTimePolicy", budget)
                .await?;
            loop {
                let event = client.event().await?;
                if event.method == "Emulation.virtualTimeBudgetExpired" {
                    break;
                }
                take_response(event.params, request.target, response);
            }
        }
        main_frame(client).await
    };
    timeout_at(deadline, settling)
        .await
        .map_or(Ok(None), |main| main.map(Some))
}

async fn main_frame(client: &mut Client) -> Result<MainFrame, CdpError> {
    let tree: FrameTree = client.call("Page.getFrameTree", json!({})).await?;
    let _: Ignored = client.call("Network.disable", json!({})).await?;
    Ok(tree.frame_tree.frame)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn window_sizes_are_parsed_and_clamped() {
        assert_eq!(window("1440,2000"), (1440, 2000));
        assert_eq!(window(" 800x600 "), (800, 600));
        assert_eq!(window("0,99999999"), (100, 16384));
        assert_eq!(window("$(reboot)"), (1440, 2000));
    }

    #[test]
    fn downloads_are_no_results_and_network_errors_are_failures() {
        let judged = |error: Option<&str>, is_download, kind: &str| {
            let navigated = Navigated {
                error_text: error.map(str::to_owned),
                is_download,
            };
            let response = MainResponse {
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
            "failed to load the page in chromium: net::ERR_NAME_NOT_RESOLVED"
        );
    }

    #[test]
    fn last_response_of_the_main_frame_counts() {
        let mut last = MainResponse::default();
        let answer = |frame: &str, kind: &str, status: u64| json!({"frameId": frame, "type": kind, "response": {"status": status, "mimeType": "text/html"}});
        take_response(answer("T", "Document", 302), "T", &mut last);
        take_response(answer("T", "Document", 404), "T", &mut last);
        take_response(answer("OTHER", "Document", 500), "T", &mut last);
        take_response(answer("T", "Image", 200), "T", &mut last);
        take_response(json!({}), "T", &mut last);
        assert_eq!(last.status, 404);
    }
}
