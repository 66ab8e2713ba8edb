//! Routing of messages between many clients and one browser, without I/O.
//!
//! Every request gets an id that is unique in the browser; its answer is returned with the client's
//! own id. Events go to the client that is attached to their tab. Sessions that chromium attaches to
//! frames and workers of a tab belong to the client of the session that reports them. When a client
//! disconnects, for whatever reason, its sessions and browser contexts are closed.

use crate::chromium::cdp::{ATTACHED, DETACHED, Head, id_in_start};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

pub type ClientId = u64;

#[derive(Debug, PartialEq, Eq)]
pub enum Outgoing {
    Browser(Vec<u8>),
    Client(ClientId, Vec<u8>),
}

/// Routing tables: pending requests, and the owner of each session and browser context.
#[derive(Default)]
pub struct Routes {
    last: u64,
    clients: BTreeSet<ClientId>,
    pending: BTreeMap<u64, Pending>,
    /// Session id of a tab, or of what belongs to it → the client that attached.
    sessions: BTreeMap<String, ClientId>,
    /// Browser context id → the client that created the context.
    contexts: BTreeMap<String, ClientId>,
}

/// A request without an answer yet.
struct Pending {
    client: ClientId,
    id: u64,
}

#[derive(Deserialize)]
struct ClientRequest<'a> {
    id: u64,
    method: String,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(rename = "sessionId")]
    session: Option<String>,
}

/// An answer. Only its id is rewritten; the rest passes unparsed.
#[derive(Deserialize, Serialize)]
struct BrowserAnswer<'a> {
    id: u64,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    result: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    error: Option<&'a RawValue>,
    #[serde(borrow, rename = "sessionId", skip_serializing_if = "Option::is_none")]
    session: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct SessionEvent {
    params: OpenedIds,
}

/// Ids that an answer returns for what it opened, and that an event names.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OpenedIds {
    session_id: Option<String>,
    browser_context_id: Option<String>,
}

/// Answers of this many bytes or more are not searched for ids: those that open something contain
/// only ids.
const OPENING_ANSWER_MAX_BYTES: usize = 4096;

impl Routes {
    pub fn add_client(&mut self, client: ClientId) {
        self.clients.insert(client);
    }

    /// Routes a client's request to the browser. Invalid requests get an error answer.
    pub fn take_request(&mut self, client: ClientId, message: &[u8]) -> Outgoing {
        let request: ClientRequest = match serde_json::from_slice(message) {
            Ok(request) => request,
            Err(error) => return refusal(client, 0, &format!("invalid request: {error}")),
        };
        if let Some(session) = &request.session
            && self.sessions.get(session) != Some(&client)
        {
            return refusal(client, request.id, "the session belongs to another client");
        }
        self.last += 1;
        let id = request.id;
        self.pending.insert(self.last, Pending { client, id });
        let mut own = json!({"id": self.last, "method": request.method});
        if let Some(session) = request.session {
            own["sessionId"] = session.into();
        }
        // Parameters of requests are small, so parsing them is cheap.
        if let Some(params) = request.params {
            own["params"] = serde_json::from_str(params.get()).unwrap_or(Value::Null);
        }
        Outgoing::Browser(own.to_string().into_bytes())
    }

    /// Routes a message of the browser: an answer, or an event.
    pub fn take_message(&mut self, message: &[u8]) -> Vec<Outgoing> {
        let Ok(head) = serde_json::from_slice::<Head>(message) else {
            return Vec::new();
        };
        let to = match (head.id, head.session) {
            (Some(_), _) => self.answer(message),
            (None, Some(session)) => {
                self.tab_event(&session, head.method.as_deref().unwrap_or_default(), message)
            }
            (None, None) if head.method.as_deref() == Some(DETACHED) => self.browser_event(message),
            (None, None) => None,
        };
        match to {
            // The client left before the answer: close what the request opened.
            Some((client, _)) if !self.clients.contains(&client) => self.remove_client(client),
            Some((client, message)) => vec![Outgoing::Client(client, message)],
            None => Vec::new(),
        }
    }

    /// Answers a request whose answer exceeds the limit. `start` is the start of that answer.
    pub fn too_large(&mut self, start: &[u8]) -> Option<Outgoing> {
        let pending = self.pending.remove(&id_in_start(start)?)?;
        Some(refusal(pending.client, pending.id, "the answer is too large"))
    }

    /// Unregisters a client and returns the requests that close what it opened.
    pub fn remove_client(&mut self, client: ClientId) -> Vec<Outgoing> {
        self.clients.remove(&client);
        let remove_owned = |map: &mut BTreeMap<String, ClientId>| -> Vec<String> {
            let owned = map.iter().filter(|(_, owner)| **owner == client);
            let names = owned.map(|(name, _)| name.clone()).collect();
            map.retain(|_, owner| *owner != client);
            names
        };
        let sessions = remove_owned(&mut self.sessions);
        let contexts = remove_owned(&mut self.contexts);
        let detach = sessions
            .into_iter()
            .map(|session| ("Target.detachFromTarget", json!({"sessionId": session})));
        let dispose = contexts.into_iter().map(|context| {
            let params = json!({"browserContextId": context});
            ("Target.disposeBrowserContext", params)
        });
        let calls: Vec<_> = detach.chain(dispose).collect();
        calls.into_iter().map(|(method, params)| self.own_request(method, params)).collect()
    }

    /// Creates a request of the relay itself. Its answer goes to no client.
    pub fn own_request(&mut self, method: &str, params: Value) -> Outgoing {
        self.last += 1;
        let request = json!({"id": self.last, "method": method, "params": params});
        Outgoing::Browser(request.to_string().into_bytes())
    }

    fn answer(&mut self, message: &[u8]) -> Option<(ClientId, Vec<u8>)> {
        let mut answer: BrowserAnswer = serde_json::from_slice(message).ok()?;
        let pending = self.pending.remove(&answer.id)?;
        let opened = answer
            .result
            .filter(|result| result.get().len() < OPENING_ANSWER_MAX_BYTES)
            .and_then(|result| serde_json::from_str(result.get()).ok());
        if let Some(OpenedIds { session_id, browser_context_id }) = opened {
            self.sessions.extend(session_id.map(|id| (id, pending.client)));
            self.contexts.extend(browser_context_id.map(|id| (id, pending.client)));
        }
        answer.id = pending.id;
        let bytes = serde_json::to_vec(&answer).ok()?;
        Some((pending.client, bytes))
    }

    /// Processes an event of a session, which may begin or end other sessions of its client.
    fn tab_event(
        &mut self,
        session: &str,
        method: &str,
        message: &[u8],
    ) -> Option<(ClientId, Vec<u8>)> {
        let client = *self.sessions.get(session)?;
        match method {
            ATTACHED => self.sessions.extend(named_session(message).map(|child| (child, client))),
            DETACHED => {
                named_session(message).and_then(|child| self.sessions.remove(&child));
            }
            _ => {}
        }
        Some((client, message.to_vec()))
    }

    /// Processes the end of a session, which the browser itself reports.
    fn browser_event(&mut self, message: &[u8]) -> Option<(ClientId, Vec<u8>)> {
        let client = self.sessions.remove(&named_session(message)?)?;
        Some((client, message.to_vec()))
    }
}

fn named_session(event: &[u8]) -> Option<String> {
    let event: SessionEvent = serde_json::from_slice(event).ok()?;
    event.params.session_id
}

fn refusal(client: ClientId, id: u64, reason: &str) -> Outgoing {
    let answer = json!({"id": id, "error": {"code": -32600, "message": reason}});
    Outgoing::Client(client, answer.to_string().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(outgoing: Outgoing) -> Value {
        match outgoing {
            Outgoing::Browser(bytes) | Outgoing::Client(_, bytes) => {
                serde_json::from_slice(&bytes).unwrap()
            }
        }
    }

    fn ask(routes: &mut Routes, client: ClientId, request: Value) -> Value {
        sent(routes.take_request(client, request.to_string().as_bytes()))
    }

    fn say(routes: &mut Routes, message: Value) -> Option<(ClientId, Value)> {
        match routes.take_message(message.to_string().as_bytes()).pop()? {
            Outgoing::Client(client, bytes) => {
                Some((client, serde_json::from_slice(&bytes).unwrap()))
            }
            Outgoing::Browser(_) => panic!("an answer goes to a client"),
        }
    }

    /// Attaches `client` to a tab as session `name`.
    fn attach(routes: &mut Routes, client: ClientId, name: &str) {
        routes.add_client(client);
        let request =
            json!({"id": 1, "method": "Target.attachToTarget", "params": {"flatten": true}});
        let id = ask(routes, client, request)["id"].clone();
        say(routes, json!({"id": id, "result": {"sessionId": name}})).unwrap();
    }

    #[test]
    fn clients_with_equal_request_ids_get_their_own_answers() {
        let mut routes = Routes::default();
        routes.add_client(1);
        routes.add_client(2);
        let first = ask(&mut routes, 1, json!({"id": 7, "method": "A", "params": {"x": 1}}));
        let second = ask(&mut routes, 2, json!({"id": 7, "method": "B"}));
        assert_ne!(first["id"], second["id"]);
        assert_eq!(first["params"], json!({"x": 1}));
        let answer = say(&mut routes, json!({"id": second["id"], "result": {"y": 2}}));
        assert_eq!(answer, Some((2, json!({"id": 7, "result": {"y": 2}}))));
        let answer = say(&mut routes, json!({"id": first["id"], "error": {"message": "no"}}));
        assert_eq!(answer, Some((1, json!({"id": 7, "error": {"message": "no"}}))));
        assert_eq!(say(&mut routes, json!({"id": first["id"], "result": {}})), None);
    }

    #[test]
    fn events_and_sessions_belong_to_the_attached_client() {
        let mut routes = Routes::default();
        attach(&mut routes, 1, "S1");
        attach(&mut routes, 2, "S2");
        let event = json!({"method": "Page.loadEventFired", "params": {}, "sessionId": "S2"});
        assert_eq!(say(&mut routes, event.clone()), Some((2, event)));
        let foreign = json!({"id": 3, "method": "Page.navigate", "sessionId": "S2"});
        let refused = ask(&mut routes, 1, foreign);
        assert_eq!(
            (&refused["id"], refused["error"]["message"].as_str()),
            (&json!(3), Some("the session belongs to another client"))
        );
        let unknown = json!({"method": "Target.targetCreated", "params": {}});
        assert_eq!(say(&mut routes, unknown), None);
        let end = json!({"method": "Target.detachedFromTarget", "params": {"sessionId": "S1", "targetId": "T"}});
        assert_eq!(say(&mut routes, end.clone()), Some((1, end.clone())));
        assert_eq!(say(&mut routes, end), None);
    }

    #[test]
    fn sessions_of_frames_and_workers_belong_to_the_client_of_their_tab() {
        let mut routes = Routes::default();
        attach(&mut routes, 1, "S1");
        attach(&mut routes, 2, "S2");
        let about = |method: &str, parent: &str, child: &str| json!({"method": method, "sessionId": parent, "params": {"sessionId": child}});
        let enable = |child: &str| json!({"id": 3, "method": "Network.enable", "sessionId": child});
        for (parent, child) in [("S1", "FRAME"), ("FRAME", "WORKER")] {
            let begin = about("Target.attachedToTarget", parent, child);
            assert_eq!(say(&mut routes, begin.clone()), Some((1, begin)));
        }
        let sent = ask(&mut routes, 1, enable("WORKER"));
        assert_eq!(sent["sessionId"], "WORKER");
        assert!(ask(&mut routes, 2, enable("WORKER"))["error"].is_object());
        let event = json!({"method": "Network.dataReceived", "params": {}, "sessionId": "WORKER"});
        assert_eq!(say(&mut routes, event.clone()), Some((1, event.clone())));
        // A client cannot get the sessions of another by the name of a session that it does not own.
        let foreign = about("Target.attachedToTarget", "S3", "S2");
        assert_eq!(say(&mut routes, foreign), None);
        let end = about("Target.detachedFromTarget", "FRAME", "WORKER");
        assert_eq!(say(&mut routes, end.clone()), Some((1, end)));
        assert_eq!(say(&mut routes, event), None);
        assert!(ask(&mut routes, 1, enable("WORKER"))["error"].is_object());
    }

    #[test]
    fn leaving_client_closes_its_sessions_and_contexts() {
        let mut routes = Routes::default();
        attach(&mut routes, 1, "S1");
        attach(&mut routes, 2, "S2");
        let id =
            ask(&mut routes, 1, json!({"id": 2, "method": "Target.createBrowserContext"}))["id"]
                .clone();
        say(&mut routes, json!({"id": id, "result": {"browserContextId": "C1"}})).unwrap();
        let closing: Vec<_> = routes.remove_client(1).into_iter().map(sent).collect();
        let of = |n: usize| (closing[n]["method"].as_str().unwrap(), &closing[n]["params"]);
        assert_eq!(of(0), ("Target.detachFromTarget", &json!({"sessionId": "S1"})));
        assert_eq!(of(1), ("Target.disposeBrowserContext", &json!({"browserContextId": "C1"})));
        assert_eq!(closing.len(), 2);
        assert!(routes.remove_client(1).is_empty());
    }

    #[test]
    fn context_that_opens_after_its_client_left_is_closed() {
        let mut routes = Routes::default();
        routes.add_client(1);
        let request = json!({"id": 1, "method": "Target.createBrowserContext"});
        let id = ask(&mut routes, 1, request)["id"].clone();
        assert!(routes.remove_client(1).is_empty());
        let late = json!({"id": id, "result": {"browserContextId": "C1"}}).to_string();
        let closing: Vec<_> = routes.take_message(late.as_bytes()).into_iter().map(sent).collect();
        assert_eq!(closing[0]["method"], "Target.disposeBrowserContext");
        assert_eq!(closing.len(), 1);
    }

    #[test]
    fn malformed_messages_are_refused_or_dropped() {
        let mut routes = Routes::default();
        routes.add_client(1);
        for text in ["", "{", "[]", "{\"id\":\"x\"}", "\u{fffd}"] {
            let refused = sent(routes.take_request(1, text.as_bytes()));
            assert!(refused["error"]["message"].as_str().unwrap().starts_with("invalid request"));
            assert!(routes.take_message(text.as_bytes()).is_empty());
        }
        let id = ask(&mut routes, 1, json!({"id": 9, "method": "DOM.getOuterHTML"}))["id"].clone();
        let start = format!("{{\"id\":{id},\"result\":{{\"outerHTML\":\"<html");
        let refused = sent(routes.too_large(start.as_bytes()).unwrap());
        assert_eq!(
            (refused["id"].as_u64(), refused["error"]["message"].as_str()),
            (Some(9), Some("the answer is too large"))
        );
        assert_eq!(routes.too_large(start.as_bytes()), None);
        assert_eq!(routes.too_large(b"{\"method\":\"x\""), None);
    }
}
