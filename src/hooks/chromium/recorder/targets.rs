//! The page, frames and workers that are recorded, each with a session of its own.

use super::calls::{Calls, Expected};
use super::events::Attached;
use super::rules::Rules;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Largest body in bytes that the browser holds until it is read.
pub const HELD_MAX_BYTES: u64 = 16 << 20;

/// Bytes of bodies that the browser holds for one process of a page.
const HELD_TOTAL_BYTES: u64 = 64 << 20;

/// Largest posted body in bytes that is in the event of its request.
const POSTED_MAX_BYTES: u64 = 1 << 20;

#[derive(Debug)]
pub struct Targets {
    /// Session of the browser that reports shared workers.
    root: String,
    context: String,
    known: BTreeSet<String>,
    /// Sessions that stop responses.
    sessions: BTreeSet<String>,
    workers: BTreeSet<String>,
    /// Number of workers, and of their requests that began or ended, so far.
    pub worker_activity: u64,
    pub can_stream: bool,
}

impl Targets {
    pub fn new(root: &str, context: &str) -> Targets {
        Targets {
            root: root.to_owned(),
            context: context.to_owned(),
            known: BTreeSet::new(),
            sessions: BTreeSet::new(),
            workers: BTreeSet::new(),
            worker_activity: 0,
            can_stream: true,
        }
    }

    pub fn attached(
        &mut self,
        parent: &str,
        event: &Attached,
        rules: &mut Rules,
        calls: &mut Calls,
    ) {
        let (session, target) = (&event.session_id, &event.target_info);
        if parent == self.root && target.browser_context_id != self.context {
            // A worker of another page waits, too. Its recorder, if it has one, gets time.
            let expected = Expected::ForeignWorker { session: session.clone(), is_running: false };
            calls.ask(session, "Runtime.getIsolateId", json!({}), expected);
        } else {
            self.prepare(session, [&target.target_id, &target.r#type, &target.url], rules, calls);
        }
    }

    pub fn detached(&mut self, session: &str) {
        self.sessions.remove(session);
    }

    /// Lets a worker of another page run, and then leaves it.
    pub fn leave(&self, session: String, is_running: bool, calls: &mut Calls) {
        if is_running {
            let params = json!({"sessionId": session});
            calls.post(&self.root, "Target.detachFromTarget", params);
        } else {
            // A session that ends sooner would leave the worker waiting.
            let expected = Expected::ForeignWorker { session: session.clone(), is_running: true };
            calls.ask(&session, "Runtime.runIfWaitingForDebugger", json!({}), expected);
        }
    }

    /// Sends all that a session needs, without waiting: the target may wait for the last call.
    pub fn prepare(
        &mut self,
        session: &str,
        [target, kind, url]: [&str; 3],
        rules: &mut Rules,
        calls: &mut Calls,
    ) {
        if self.known.insert(target.to_owned()) {
            // Durable bodies are held where they come from the network, whatever a page does with them.
            let buffers = json!({"maxTotalBufferSize": HELD_TOTAL_BYTES,
                "maxResourceBufferSize": HELD_MAX_BYTES, "maxPostDataSize": POSTED_MAX_BYTES,
                "enableDurableMessages": true});
            calls.post(session, "Network.enable", buffers);
            if let Some(identity) = rules.identity.clone().filter(|_| kind != "page") {
                calls.post(session, "Emulation.setUserAgentOverride", identity);
            }
            if let Some(numbers) = &mut rules.numbers {
                let is_document = ["page", "iframe"].contains(&kind);
                if is_document {
                    let script = json!({"source": numbers.of_document(), "runImmediately": true});
                    calls.post(session, "Page.enable", json!({}));
                    calls.post(session, "Page.addScriptToEvaluateOnNewDocument", script);
                } else {
                    let script = json!({"expression": numbers.of_worker(url)});
                    calls.post(session, "Runtime.evaluate", script);
                }
            }
            let stops_all = kind == "service_worker" || !self.can_stream;
            // Workers other than those of services have no such method.
            calls.post(session, "Fetch.enable", stopped(stops_all));
            self.sessions.insert(session.to_owned());
            if kind.ends_with("worker") {
                self.workers.insert(session.to_owned());
                self.note_activity(session);
            }
            calls.post(session, "Target.setAutoAttach", auto_attach());
        }
        calls.post(session, "Runtime.runIfWaitingForDebugger", json!({}));
    }

    pub fn note_activity(&mut self, session: &str) {
        self.worker_activity += u64::from(self.workers.contains(session));
    }

    /// The browser cannot stream: all responses are stopped from now on.
    pub fn stop_all(&mut self, calls: &mut Calls) {
        if std::mem::replace(&mut self.can_stream, false) {
            for session in &self.sessions {
                calls.post(session, "Fetch.enable", stopped(true));
            }
        }
    }
}

/// Responses that stop. Those of chromium's own pages, such as the viewer of PDFs, do not.
fn stopped(stops_all: bool) -> Value {
    let pattern = |scheme: &str, kind: &str| json!({"urlPattern": format!("{scheme}://*"), "resourceType": kind, "requestStage": "Response"});
    let all =
        |scheme: &str| json!({"urlPattern": format!("{scheme}://*"), "requestStage": "Response"});
    let patterns: Vec<Value> = ["http", "https"]
        .iter()
        .flat_map(|scheme| {
            if stops_all {
                vec![all(scheme)]
            } else {
                vec![pattern(scheme, "Document"), pattern(scheme, "Other")]
            }
        })
        .collect();
    json!({"patterns": patterns})
}

/// Parameters of `Target.setAutoAttach` for frames and workers, which wait until they are recorded.
fn auto_attach() -> Value {
    json!({"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true})
}
