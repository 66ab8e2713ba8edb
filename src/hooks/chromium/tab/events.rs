//! Events of the DevTools protocol as events of the arrival of a page.

use crate::chromium::arrival::{RequestKind, Response, TabEvent};
use crate::chromium::cdp::CdpEvent;
use crate::page::content_type;
use crate::page::retry_after::retry_after;
use serde_json::{Map, Value, json};

pub const SUBSCRIBED: [&str; 16] = [
    "Emulation.virtualTimeBudgetExpired",
    AUTH_REQUIRED,
    FETCH_PAUSED,
    "Network.dataReceived",
    "Network.loadingFailed",
    "Network.loadingFinished",
    "Network.requestWillBeSent",
    "Network.responseReceived",
    HEADERS,
    "Page.domContentEventFired",
    "Page.frameNavigated",
    "Page.frameRequestedNavigation",
    DIALOG,
    "Page.loadEventFired",
    "Page.navigatedWithinDocument",
    "Page.frameDetached",
];
/// A dialog opens: the page stops until it is closed.
pub const DIALOG: &str = "Page.javascriptDialogOpening";
/// A server asks for user name and password: the request stops until it gets them or a refusal.
pub const AUTH_REQUIRED: &str = "Fetch.authRequired";
/// The headers of a response as the server sent them.
pub const HEADERS: &str = "Network.responseReceivedExtraInfo";
/// A request or response stops until it is refused or continued.
pub const FETCH_PAUSED: &str = "Fetch.requestPaused";

/// Translates an event. `main` is the id of the main frame. `None` for events of other frames.
pub fn translate(event: &CdpEvent, main: &str) -> Option<TabEvent> {
    let params = &event.params;
    match event.method.as_str() {
        "Emulation.virtualTimeBudgetExpired" => Some(TabEvent::BudgetExpired),
        "Network.requestWillBeSent" => Some(request(params, main)),
        "Network.responseReceived" => Some(TabEvent::Responded {
            request: text(params, "requestId"),
            response: response(&params["response"]),
        }),
        HEADERS => unreported_response(params),
        "Network.dataReceived" => Some(TabEvent::Received {
            request: text(params, "requestId"),
            bytes: params["dataLength"].as_u64().unwrap_or_default(),
        }),
        "Network.loadingFinished" => Some(TabEvent::Ended { request: text(params, "requestId") }),
        "Network.loadingFailed" => Some(TabEvent::Failed {
            request: text(params, "requestId"),
            error: text(params, "errorText"),
        }),
        "Page.frameDetached" => Some(TabEvent::FrameGone { frame: text(params, "frameId") }),
        "Page.domContentEventFired" => Some(TabEvent::Parsed),
        "Page.loadEventFired" => Some(TabEvent::Loaded),
        "Page.frameNavigated" => committed(&params["frame"], main),
        "Page.frameRequestedNavigation" => {
            let is_own = params["frameId"] == main && params["disposition"] == "currentTab";
            is_own.then_some(TabEvent::NavigationRequested)
        }
        "Page.navigatedWithinDocument" => (params["frameId"] == main)
            .then(|| TabEvent::Renamed { url: without_fragment(&text(params, "url")) }),
        FETCH_PAUSED => (params["frameId"] == main)
            .then(|| TabEvent::Held { url: text(&params["request"], "url") }),
        DIALOG => Some(TabEvent::Dialog),
        _ => None,
    }
}

fn request(params: &Value, main: &str) -> TabEvent {
    let (request, loader) = (text(params, "requestId"), text(params, "loaderId"));
    let url = text(&params["request"], "url");
    let kind = params["type"].as_str().unwrap_or_default();
    if kind == "Document" && request == loader && params["frameId"] == main {
        return TabEvent::Navigating { loader, url };
    }
    let frame = (kind == "Document").then(|| text(params, "frameId"));
    let kind = match kind {
        "EventSource" => RequestKind::Stream,
        "Ping" | "CSPViolationReport" => RequestKind::Beacon,
        // The script of a worker, whose end is reported to the worker's own session.
        _ if loader.is_empty() => RequestKind::Uncounted,
        "Media" | "Other" | "Manifest" | "Prefetch" | "SignedExchange" => RequestKind::Uncounted,
        _ if !url.starts_with("http") => RequestKind::Uncounted,
        _ => RequestKind::Ordinary,
    };
    TabEvent::Began { request, url, kind, frame }
}

fn response(response: &Value) -> Response {
    let named = |name: &str| header(&response["headers"], name);
    let length = named("content-length");
    let status = response["status"].as_u64().unwrap_or_default();
    let retry_after = retry_after(
        u16::try_from(status).unwrap_or_default(),
        named("retry-after"),
        named("date"),
        jiff::Timestamp::now(),
    );
    let from_worker = response["fromServiceWorker"] == true;
    Response {
        status,
        retry_after,
        mime_type: text(response, "mimeType"),
        may_be_empty: !from_worker && length.is_none_or(|length| length.trim() == "0"),
    }
}

/// Chromium reports the head of a response with status 304 to a request without conditions only here.
fn unreported_response(params: &Value) -> Option<TabEvent> {
    let status = params["statusCode"].as_u64()?;
    (status == 304).then(|| TabEvent::Responded {
        request: text(params, "requestId"),
        response: Response { status, ..Response::default() },
    })
}

/// The head of a response that chromium has stopped and that is refused: chromium does not report it.
pub fn refused_response(paused: &Value) -> TabEvent {
    let headers = paused["responseHeaders"].as_array().into_iter().flatten();
    let headers: Map<String, Value> =
        headers.map(|header| (text(header, "name"), header["value"].clone())).collect();
    let headers = Value::Object(headers);
    let mime_type = content_type::essence(header(&headers, "content-type").unwrap_or_default());
    TabEvent::Responded {
        request: text(paused, "networkId"),
        response: response(
            &json!({"status": paused["responseStatusCode"], "mimeType": mime_type, "headers": headers}),
        ),
    }
}

fn committed(frame: &Value, main: &str) -> Option<TabEvent> {
    (frame["id"] == main).then(|| TabEvent::Committed {
        loader: text(frame, "loaderId"),
        url: text(frame, "url"),
        mime_type: text(frame, "mimeType"),
        is_error_page: frame["unreachableUrl"].is_string(),
    })
}

/// Value of a header, whose name may be in any case.
pub fn header<'a>(headers: &'a Value, name: &str) -> Option<&'a str> {
    let mut headers = headers.as_object()?.iter();
    let (_, value) = headers.find(|(own, _)| own.eq_ignore_ascii_case(name))?;
    value.as_str()
}

fn without_fragment(url: &str) -> String {
    url.split_once('#').map_or(url, |(start, _)| start).to_owned()
}

fn text(params: &Value, name: &str) -> String {
    params[name].as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(method: &str, params: Value) -> Option<TabEvent> {
        let method = method.to_owned();
        translate(&CdpEvent { method, params }, "MAIN")
    }

    #[test]
    fn requests_are_sorted_by_what_the_page_waits_for() {
        let sent = |kind: &str, request: &str, frame: &str| {
            translated(
                "Network.requestWillBeSent",
                json!({"requestId": request, "loaderId": "L", "frameId": frame, "type": kind,
                    "request": {"url": "http://a.test/"}}),
            )
        };
        let url = "http://a.test/".to_owned();
        let loader = "L".to_owned();
        assert_eq!(
            sent("Document", "L", "MAIN"),
            Some(TabEvent::Navigating { loader, url: url.clone() })
        );
        let began = |request: &str, kind| {
            Some(TabEvent::Began {
                request: request.to_owned(),
                url: url.clone(),
                kind,
                frame: (request == "L").then(|| "CHILD".to_owned()),
            })
        };
        assert_eq!(sent("Document", "L", "CHILD"), began("L", RequestKind::Ordinary));
        assert_eq!(sent("Fetch", "1", "MAIN"), began("1", RequestKind::Ordinary));
        assert_eq!(sent("EventSource", "1", "MAIN"), began("1", RequestKind::Stream));
        assert_eq!(sent("Ping", "1", "MAIN"), began("1", RequestKind::Beacon));
        let worker = json!({"requestId": "1", "loaderId": "", "frameId": "MAIN", "type": "Script",
            "request": {"url": "http://a.test/"}});
        assert_eq!(
            translated("Network.requestWillBeSent", worker),
            began("1", RequestKind::Uncounted)
        );
        assert_eq!(sent("Media", "1", "MAIN"), began("1", RequestKind::Uncounted));
    }

    #[test]
    fn events_of_other_frames_are_not_about_the_page() {
        let frame = json!({"id": "CHILD", "loaderId": "L", "url": "http://a.test/"});
        assert_eq!(translated("Page.frameNavigated", json!({"frame": frame})), None);
        let asked = json!({"frameId": "CHILD", "disposition": "currentTab"});
        assert_eq!(translated("Page.frameRequestedNavigation", asked), None);
        let new_tab = json!({"frameId": "MAIN", "disposition": "newTab"});
        assert_eq!(translated("Page.frameRequestedNavigation", new_tab), None);
    }

    #[test]
    fn overloaded_server_says_when_to_come_back() {
        let asked = |status: u64| {
            let headers = json!({"Retry-After": "7"});
            response(&json!({"status": status, "headers": headers})).retry_after
        };
        assert_eq!((asked(429), asked(200)), (Some(7), None));
    }

    #[test]
    fn only_a_response_without_length_may_be_empty() {
        let may_be_empty = |headers: Value| {
            response(&json!({"status": 200, "mimeType": "text/html", "headers": headers}))
                .may_be_empty
        };
        assert!(may_be_empty(json!({})));
        assert!(may_be_empty(json!({"Content-Length": "0"})));
        assert!(!may_be_empty(json!({"content-length": "7"})));
    }
}
