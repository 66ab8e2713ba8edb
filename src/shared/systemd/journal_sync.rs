//! Has journald process what units have logged so far.

use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

/// Where journald takes calls of root (systemd-journald.service(8)).
const SOCKET: &str = "/run/systemd/journal/io.systemd.journal";
/// A Varlink call. Its answer has no content that matters.
const SYNCHRONIZE: &[u8] = b"{\"method\":\"io.systemd.Journal.Synchronize\",\"parameters\":{}}\0";
const REPLY_TIMEOUT: Duration = Duration::from_secs(15);

/// Returns when journald has written everything that units logged before the call, or after 15 s.
/// Only root may make the call; for other users it fails, and the journal may lack the latest
/// lines.
pub async fn synchronize_journal() {
    match tokio::time::timeout(REPLY_TIMEOUT, synchronize()).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!("failed to call '{SOCKET}': {error}, ignoring"),
        Err(_) => {
            let limit = REPLY_TIMEOUT.as_secs();
            tracing::debug!("failed to call '{SOCKET}': no answer in {limit} s, ignoring");
        }
    }
}

async fn synchronize() -> std::io::Result<()> {
    let mut socket = UnixStream::connect(SOCKET).await?;
    socket.write_all(SYNCHRONIZE).await?;
    let mut answer = [0; 256];
    socket.read(&mut answer).await.map(drop)
}
