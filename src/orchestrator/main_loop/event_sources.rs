//! Where events come from besides signals and what the loop itself asked for.

use crate::main_loop::event::Event;
use crate::runner::locks::News;
use archivist_shared::systemd::HintQueue;
use futures_util::StreamExt;
use tokio::sync::mpsc;

/// Somebody changed something in the table of runners.
pub async fn rivals(mut news: News, events: mpsc::UnboundedSender<Event>) {
    while let Some(Ok(_)) = news.next().await {
        if events.send(Event::RunnersChanged).is_err() {
            return;
        }
    }
}

/// Nobody reaches us without it.
pub async fn hung_up(connection: zbus::Connection, events: mpsc::UnboundedSender<Event>) {
    archivist_shared::bus::service::hung_up(connection).await;
    let _ = events.send(Event::HungUp);
}

/// Says that there are hints, once until they are taken.
pub async fn hints(hints: HintQueue, events: mpsc::UnboundedSender<Event>) {
    loop {
        hints.filled().await;
        if events.send(Event::Hinted(hints.clone())).is_err() {
            return;
        }
        hints.emptied().await;
    }
}

/// Makes events of what arrives.
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
