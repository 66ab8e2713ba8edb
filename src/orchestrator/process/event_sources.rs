//! Sources of events, apart from the loop itself.

use crate::main_loop::event::Event;
use crate::runner::locks::News;
use archivist_shared::systemd::HintQueue;
use futures_util::StreamExt;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

pub async fn runner_changes(mut news: News, events: mpsc::UnboundedSender<Event>) {
    while let Some(Ok(_)) = news.next().await {
        if events.send(Event::RunnersChanged).is_err() {
            return;
        }
    }
}

pub async fn hung_up(connection: zbus::Connection, events: mpsc::UnboundedSender<Event>) {
    crate::service::hung_up(connection).await;
    let _ = events.send(Event::HungUp);
}

/// Sends one event for all hints until they are taken.
pub async fn hints(hints: HintQueue, events: mpsc::UnboundedSender<Event>) {
    loop {
        hints.filled().await;
        if events.send(Event::Hinted(hints.clone())).is_err() {
            return;
        }
        hints.emptied().await;
    }
}

/// Forwards values as events.
pub async fn forward<T>(
    mut arriving: mpsc::UnboundedReceiver<T>,
    events: mpsc::UnboundedSender<Event>,
) where
    Event: From<T>,
{
    while let Some(thing) = arriving.recv().await {
        let _ = events.send(thing.into());
    }
}

/// SIGTERM and SIGINT end the orchestrator, SIGHUP makes it read its configuration again.
pub fn signals(events: &mpsc::UnboundedSender<Event>) -> std::io::Result<()> {
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
