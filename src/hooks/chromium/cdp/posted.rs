//! Posted bodies in messages of the browser. Recorder and replay read them alike, because a replay finds
//! the answer to a POST by its body.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

/// A part of a posted body in an event; without bytes, it is a file of the user.
#[derive(Debug, Default, Deserialize)]
pub struct PostedPart {
    bytes: Option<String>,
}

/// The posted body of an event, if the event has all of it.
pub fn in_event(parts: &[PostedPart]) -> Option<Vec<u8>> {
    let decoded = parts.iter().map(|part| STANDARD.decode(part.bytes.as_ref()?).ok());
    let decoded = decoded.collect::<Option<Vec<_>>>()?;
    (!decoded.is_empty()).then(|| decoded.concat())
}

/// Answer to `Network.getRequestPostData`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Posted {
    post_data: String,
    #[serde(default)]
    base64_encoded: bool,
}

impl Posted {
    pub fn bytes(self) -> Option<Vec<u8>> {
        if self.base64_encoded {
            STANDARD.decode(self.post_data).ok()
        } else {
            Some(self.post_data.into_bytes())
        }
    }
}
