//! Reduces systemd's signals to hints. One task drains the signals and never awaits anything else;
//! the main loop reads the unit of a hint again.
//!
//! Every process on the bus can send signals to a connection by its unique name, which no match
//! rule prevents (Match Rules in the D-Bus specification). Therefore only signals of trusted
//! senders count.

use super::client::SYSTEMD;
use super::hint_queue::{Hint, HintQueue};
use super::property_reader;
use archivist_core::unit::Names;
use futures_util::StreamExt;
use tokio::sync::watch;
use zbus::message::Type;
use zbus::{Message, MessageStream, OwnedObjectPath};

/// The manager's signals that become hints (it sends several times as many others), changes of
/// services, and the arrival of systemd on the bus.
pub const MATCH_RULES: &[&str] = &[
    "type='signal',sender='org.freedesktop.systemd1',path='/org/freedesktop/systemd1',interface='org.freedesktop.systemd1.Manager',member='JobRemoved'",
    "type='signal',sender='org.freedesktop.systemd1',path='/org/freedesktop/systemd1',interface='org.freedesktop.systemd1.Manager',member='UnitRemoved'",
    "type='signal',sender='org.freedesktop.systemd1',path='/org/freedesktop/systemd1',interface='org.freedesktop.systemd1.Manager',member='Reloading'",
    "type='signal',sender='org.freedesktop.systemd1',interface='org.freedesktop.DBus.Properties',member='PropertiesChanged',arg0='org.freedesktop.systemd1.Service'",
    "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',member='NameOwnerChanged',arg0='org.freedesktop.systemd1'",
];

/// The bus itself, as a sender.
const BUS: &str = "org.freedesktop.DBus";

#[derive(Debug)]
pub enum Senders {
    /// The connection is to systemd alone.
    Peer,
    /// On a bus: the bus itself, and the connection that owns systemd's name, if any.
    Bus { systemd: Option<String> },
}

impl Senders {
    fn trusts(&self, message: &Message) -> bool {
        let Senders::Bus { systemd } = self else {
            return true;
        };
        let header = message.header();
        let sender = header.sender().map(|name| name.as_str());
        match header.member().map(|name| name.as_str()) {
            Some("NameOwnerChanged") => sender == Some(BUS),
            _ => sender.is_some() && sender == systemd.as_deref(),
        }
    }

    fn name_moved(&mut self, to: &str) {
        if let Senders::Bus { systemd } = self {
            *systemd = (!to.is_empty()).then(|| to.to_owned());
        }
    }
}

pub struct Listener {
    names: Names,
    senders: Senders,
}

impl Listener {
    pub fn new(names: Names, senders: Senders) -> Listener {
        Listener { names, senders }
    }

    /// Reads `stream` to its end and queues its hints. `came_back` changes when systemd is back.
    pub async fn drain(
        mut self,
        mut stream: MessageStream,
        hints: HintQueue,
        came_back: watch::Sender<()>,
    ) {
        while let Some(message) = stream.next().await {
            if let Ok(message) = message
                && let Some(hint) = self.hint(&message)
            {
                let back = hint == Hint::Reloaded;
                hints.push(hint);
                if back {
                    came_back.send_replace(());
                }
            }
        }
        hints.push(Hint::Disconnected);
    }

    fn hint(&mut self, message: &Message) -> Option<Hint> {
        if message.message_type() != Type::Signal || !self.senders.trusts(message) {
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
                self.names.kind_of(&unit)?;
                Some(Hint::JobRemoved { unit, result })
            }
            "UnitRemoved" => {
                let (unit, _): (String, OwnedObjectPath) = message.body().deserialize().ok()?;
                self.names.kind_of(&unit)?;
                Some(Hint::Removed { unit })
            }
            "Reloading" => {
                let begins: bool = message.body().deserialize().ok()?;
                (!begins).then_some(Hint::Reloaded)
            }
            "NameOwnerChanged" => {
                let (name, _, new): (String, String, String) = message.body().deserialize().ok()?;
                if name != SYSTEMD {
                    return None;
                }
                self.senders.name_moved(&new);
                (!new.is_empty()).then_some(Hint::Reloaded)
            }
            _ => None,
        }
    }
}

/// Returns a hint if a change of a service says that its main process ended.
fn exited(unit: String, message: &Message) -> Option<Hint> {
    let (mut code, mut status, mut result) = (None, None, None);
    // The name of the interface comes first.
    property_reader::each(&message.body(), 1, |name, value| match name {
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
    Some(Hint::Exited { unit, code, status: status.unwrap_or(0), result })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANAGER: &str = "org.freedesktop.systemd1.Manager";

    fn listener(systemd: Option<&str>) -> Listener {
        let systemd = systemd.map(str::to_owned);
        Listener::new(Names::new("archivist"), Senders::Bus { systemd })
    }

    fn reloading(sender: &str) -> Message {
        let signal = Message::signal("/org/freedesktop/systemd1", MANAGER, "Reloading");
        signal.sender(sender).build(&(false,)).unwrap()
    }

    fn moved(sender: &str, name: &str, to: &str) -> Message {
        let signal = Message::signal("/org/freedesktop/DBus", BUS, "NameOwnerChanged");
        let body = (name, ":1.1", to);
        signal.sender(sender).build(&body).unwrap()
    }

    #[test]
    fn signals_of_other_senders_are_ignored() {
        let mut listener = listener(Some(":1.1"));
        assert_eq!(listener.hint(&reloading(":1.1")), Some(Hint::Reloaded));
        for forged in [reloading(":1.66"), reloading(BUS), moved(":1.66", SYSTEMD, ":1.66")] {
            assert_eq!(listener.hint(&forged), None, "{forged:?}");
        }
        // systemd re-executes itself (daemon-reexec), which gives it another unique name.
        assert_eq!(listener.hint(&moved(BUS, SYSTEMD, "")), None);
        assert_eq!(listener.hint(&reloading(":1.1")), None);
        assert_eq!(listener.hint(&moved(BUS, "org.example", ":1.66")), None);
        assert_eq!(listener.hint(&reloading(":1.66")), None);
        assert_eq!(listener.hint(&moved(BUS, SYSTEMD, ":1.9")), Some(Hint::Reloaded));
        assert_eq!(listener.hint(&reloading(":1.9")), Some(Hint::Reloaded));
    }

    #[test]
    fn signals_are_ignored_while_systemd_is_away() {
        assert_eq!(listener(None).hint(&reloading(":1.1")), None);
        let mut peer = Listener::new(Names::new("archivist"), Senders::Peer);
        assert_eq!(peer.hint(&reloading(":1.1")), Some(Hint::Reloaded));
    }
}
