//! Streams of the browser (`IO` of the DevTools protocol): large results that it hands out in pieces.

use super::{Ignored, Session};
use crate::process::finding::Finding;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::json;

/// Bytes of a piece. Chromium sends one that is text as a string, in which a control character takes
/// six bytes; this is less than the longest answer to the tab.
const PIECE_BYTES: u64 = 512 << 10;

/// Reads a stream to its end and passes each piece to `take`, whose error ends the reading.
pub async fn read(
    session: &Session,
    handle: &str,
    mut take: impl FnMut(&[u8]) -> Result<(), Finding>,
) -> Result<(), Finding> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Piece {
        data: String,
        eof: bool,
        #[serde(default)]
        base64_encoded: bool,
    }
    loop {
        let next = json!({"handle": handle, "size": PIECE_BYTES});
        let piece: Piece = session.call("IO.read", next).await?;
        if piece.base64_encoded {
            take(&decode(&piece.data)?)?;
        } else {
            take(piece.data.as_bytes())?;
        }
        if piece.eof {
            let closing = session.call::<Ignored>("IO.close", json!({"handle": handle}));
            return Ok(closing.await.map(drop)?);
        }
    }
}

/// Decodes binary data in a message of the browser.
pub fn decode(text: &str) -> Result<Vec<u8>, Finding> {
    let decoded = STANDARD.decode(text);
    decoded.map_err(|error| Finding::failed(format!("failed to decode chromium's base64: {error}")))
}
