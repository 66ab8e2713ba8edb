//! Errors of scripts, as the console of the browser shows them.

use super::{CdpError, CdpEvent, Ignored, Session};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::timeout;

/// Errors of a page that are kept.
const ERRORS_MAX: usize = 1000;
/// Characters of an error that are kept.
const ERROR_MAX_CHARS: usize = 500;

/// What a script wrote to the console.
pub const WRITTEN: &str = "Runtime.consoleAPICalled";
/// What no script caught.
pub const UNCAUGHT: &str = "Runtime.exceptionThrown";

/// Errors in the order in which they occurred.
#[derive(Debug, Default)]
pub struct Errors(Vec<String>);

impl Errors {
    /// Notes the error of an event, if it is one.
    pub fn add(&mut self, event: &CdpEvent) {
        let params = &event.params;
        let error = match event.method.as_str() {
            WRITTEN if params["type"] == "error" => {
                let parts = params["args"].as_array().into_iter().flatten();
                parts.map(described).collect::<Vec<_>>().join(" ")
            }
            UNCAUGHT => {
                let details = &params["exceptionDetails"];
                let text = details["text"].as_str().unwrap_or_default();
                format!("{text} {}", described(&details["exception"]))
            }
            _ => return,
        };
        if self.0.len() < ERRORS_MAX {
            self.0.push(error.trim().chars().take(ERROR_MAX_CHARS).collect());
        }
    }

    pub fn list(&self) -> &[String] {
        &self.0
    }
}

/// The errors of a page until now, without those of frames that another process shows. The browser
/// keeps the last 1,000 messages of a page, and reports them to a session that asks for the first
/// time, so that nothing has to be switched on while the page loads. Fails if these are too many to be
/// read, or the session ends.
pub async fn errors(session: &Session) -> Result<Vec<String>, CdpError> {
    let mut events = session.events(&[WRITTEN, UNCAUGHT]);
    let _: Ignored = session.call("Runtime.enable", json!({})).await?;
    let _: Ignored = session.call("Runtime.disable", json!({})).await?;
    let mut errors = Errors::default();
    // The messages came before the answers.
    while let Ok(event) = timeout(Duration::ZERO, events.next()).await {
        errors.add(&event?);
    }
    Ok(errors.0)
}

fn described(value: &Value) -> String {
    let text =
        ["description", "value", "unserializableValue"].iter().find_map(|key| value.get(key));
    match text {
        Some(Value::String(text)) => text.lines().next().unwrap_or_default().to_owned(),
        Some(other) => other.to_string(),
        None => String::new(),
    }
}
