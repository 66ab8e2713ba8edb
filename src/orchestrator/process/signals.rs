//! Signals of the process, as events.

use crate::main_loop::event::Event;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// SIGTERM and SIGINT end the orchestrator, SIGHUP makes it read its configuration again.
pub fn listen(events: &mpsc::UnboundedSender<Event>) -> std::io::Result<()> {
    let pairs = [
        (SignalKind::terminate(), Event::Terminate),
        (SignalKind::interrupt(), Event::Terminate),
        (SignalKind::hangup(), Event::Reload),
    ];
    for (kind, event) in pairs {
        let mut stream = signal(kind)?;
        let events = events.clone();
        tokio::spawn(async move {
            while stream.recv().await.is_some() {
                if events.send(event.clone()).is_err() {
                    return;
                }
            }
        });
    }
    Ok(())
}
