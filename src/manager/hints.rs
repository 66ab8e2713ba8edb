//! systemd's signals, reduced to hints. One task drains them and never awaits anything else; what
//! a hint is about is read anew by whoever gets it.

use super::dict;
use crate::unit::Names;
use futures_util::StreamExt;
use tokio::sync::{mpsc, watch};
use zbus::message::Type;
use zbus::{Message, MessageStream, OwnedObjectPath};

/// Of the manager's own signals those that we make hints of, as there are several times as many of
/// others; changes of services; and that systemd came to the bus.
pub const MATCH_RULES: &[&str] = &[
    "type='signal',sender='org.freedesktop.systemd1',path='/org/freedesktop/systemd1',interface='org.freedesktop.systemd1.Manager',member='JobRemoved'",
    "type='signal',sender='org.freedesktop.systemd1',path='/org/freedesktop/systemd1',interface='org.freedesktop.systemd1.Manager',member='UnitRemoved'",
    "type='signal',sender='org.freedesktop.systemd1',path='/org/freedesktop/systemd1',interface='org.freedesktop.systemd1.Manager',member='Reloading'",
    "type='signal',sender='org.freedesktop.systemd1',interface='org.freedesktop.DBus.Properties',member='PropertiesChanged',arg0='org.freedesktop.systemd1.Service'",
    "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',member='NameOwnerChanged',arg0='org.freedesktop.systemd1'",
];

/// Something may have happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hint {
    /// The main process of a unit of ours has ended. The fields are evidence for the case that
    /// the unit is gone by the time that it is read.
    Exited {
        unit: String,
        code: i32,
        status: i32,
        result: String,
    },
    /// A unit's job ended with this result (`done`, `failed`, `canceled` …).
    JobRemoved { unit: String, result: String },
    /// A unit of ours is not loaded any more.
    Removed { unit: String },
    /// The manager came back from a reload, or from its own execution anew: nothing that was
    /// known is certain.
    Reloaded,
    /// The connection is gone.
    Disconnected,
}

pub struct Hints {
    names: Names,
}

impl Hints {
    pub fn new(names: Names) -> Hints {
        Hints { names }
    }

    /// Reads `stream` to its end. That systemd came back is told to `came_back` as well.
    pub async fn drain(
        self,
        mut stream: MessageStream,
        hints: mpsc::UnboundedSender<Hint>,
        came_back: watch::Sender<()>,
    ) {
        while let Some(message) = stream.next().await {
            if let Ok(message) = message
                && let Some(hint) = self.hint(&message)
            {
                let back = hint == Hint::Reloaded;
                if hints.send(hint).is_err() {
                    return;
                }
                if back {
                    came_back.send_replace(());
                }
            }
        }
        let _ = hints.send(Hint::Disconnected);
    }

    fn hint(&self, message: &Message) -> Option<Hint> {
        if message.message_type() != Type::Signal {
            return None;
        }
        let header = message.header();
        match header.member()?.as_str() {
            "PropertiesChanged" => {
                let unit = self.names.unit_of_path(header.path()?.as_str())?;
                exited(unit, message)
            }
            "JobRemoved" => {
                let (_, _, unit, result): (u32, OwnedObjectPath, String, String) =
                    message.body().deserialize().ok()?;
                self.names.parse(&unit)?;
                Some(Hint::JobRemoved { unit, result })
            }
            "UnitRemoved" => {
                let (unit, _): (String, OwnedObjectPath) = message.body().deserialize().ok()?;
                self.names.parse(&unit)?;
                Some(Hint::Removed { unit })
            }
            "Reloading" => {
                let begins: bool = message.body().deserialize().ok()?;
                (!begins).then_some(Hint::Reloaded)
            }
            "NameOwnerChanged" => {
                let (_, _, new): (String, String, String) = message.body().deserialize().ok()?;
                (!new.is_empty()).then_some(Hint::Reloaded)
            }
            _ => None,
        }
    }
}

/// What a change of a service says of the end of its main process.
fn exited(unit: String, message: &Message) -> Option<Hint> {
    let (mut code, mut status, mut result) = (None, None, None);
    // The name of the interface comes first.
    dict::each(&message.body(), 1, |name, value| match name {
        "ExecMainCode" => code = value.signed(),
        "ExecMainStatus" => status = value.signed(),
        "Result" => result = value.text(),
        _ => {}
    })?;
    let code = code?;
    let result = result.unwrap_or_default();
    if code == 0 && (result == "success" || result.is_empty()) {
        return None;
    }
    Some(Hint::Exited {
        unit,
        code,
        status: status.unwrap_or(0),
        result,
    })
}
