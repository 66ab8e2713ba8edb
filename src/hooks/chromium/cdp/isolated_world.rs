//! Scripts of our own in a page.

use super::{CdpError, Session};
use serde::Deserialize;
use serde_json::{Value, json};

const SHARED: &str = include_str!("boxes.js");

/// A world of our own in the present document of a frame: its objects are not those that the scripts
/// of the page may have changed.
pub struct IsolatedWorld<'a> {
    pub session: &'a Session,
    id: u64,
}

/// Result of an evaluation or call.
#[derive(Deserialize)]
struct Evaluated {
    result: Returned,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Returned {
    value: Value,
    object_id: String,
}

impl IsolatedWorld<'_> {
    /// Enters the document that the frame shows now.
    pub async fn of<'a>(session: &'a Session, frame: &str) -> Result<IsolatedWorld<'a>, CdpError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Created {
            execution_context_id: u64,
        }
        let world = json!({"frameId": frame, "worldName": "archivist"});
        let world: Created = session.call("Page.createIsolatedWorld", world).await?;
        Ok(IsolatedWorld { session, id: world.execution_context_id })
    }

    /// Evaluates a function of our own with these arguments, which may call those of `boxes.js`.
    /// Fails if the frame shows another document by now.
    pub async fn evaluate(&self, function: &str, arguments: &[Value]) -> Result<Value, CdpError> {
        let arguments: Vec<String> = arguments.iter().map(Value::to_string).collect();
        let expression =
            format!("(() => {{ {SHARED}\nreturn ({function})({}); }})()", arguments.join(", "));
        let evaluated: Evaluated = self
            .session
            .call(
                "Runtime.evaluate",
                json!({"expression": expression, "contextId": self.id,
                    "awaitPromise": true, "returnByValue": true}),
            )
            .await?;
        Ok(evaluated.result.value)
    }

    /// Evaluates an expression in the world of the page at the root of the session. Returns the id of
    /// its value if that is an object.
    pub async fn object_in_page(&self, expression: &str) -> Result<Option<String>, CdpError> {
        let call = json!({"expression": expression});
        let evaluated: Evaluated = self.session.call("Runtime.evaluate", call).await?;
        Ok(Some(evaluated.result.object_id).filter(|id| !id.is_empty()))
    }

    /// Returns the id of the document in the world of the page, for [`IsolatedWorld::call_in_page`].
    pub async fn document_of_page(&self) -> Result<String, CdpError> {
        let own = json!({"expression": "document", "contextId": self.id});
        let own: Evaluated = self.session.call("Runtime.evaluate", own).await?;
        let own = json!({"objectId": own.result.object_id});
        let described: Value = self.session.call("DOM.describeNode", own).await?;
        let node = json!({"backendNodeId": described["node"]["backendNodeId"]});
        let resolved: Value = self.session.call("DOM.resolveNode", node).await?;
        let id = resolved["object"]["objectId"].as_str();
        Ok(id.unwrap_or_default().to_owned())
    }

    /// Evaluates an expression in the world of the page at the root of the session, whose objects
    /// may be those of its scripts.
    pub async fn evaluate_in_page(&self, expression: &str) -> Result<Value, CdpError> {
        let call = json!({"expression": expression, "returnByValue": true});
        let evaluated: Evaluated = self.session.call("Runtime.evaluate", call).await?;
        Ok(evaluated.result.value)
    }

    /// Calls a function in the world of the page, whose objects may be those of its scripts.
    pub async fn call_in_page(&self, document: &str, function: &str) -> Result<Value, CdpError> {
        let call =
            json!({"objectId": document, "functionDeclaration": function, "returnByValue": true});
        let called: Evaluated = self.session.call("Runtime.callFunctionOn", call).await?;
        Ok(called.result.value)
    }
}

/// Evaluates a function of our own in the page with these arguments, see [`IsolatedWorld`].
pub async fn evaluate(
    session: &Session,
    frame: &str,
    function: &str,
    arguments: &[Value],
) -> Result<Value, CdpError> {
    let world = IsolatedWorld::of(session, frame).await?;
    world.evaluate(function, arguments).await
}
