//! Client connection to the orchestrator, with errors that say what to do.

use super::wire::{ManagerProxy, WorkerProxy};
use crate::connection::builder;
use crate::database::{self, Finding};
use crate::systemd::{activate, has_failed};
use archivist_config::Scope;
use futures_util::StreamExt;
use std::path::Path;
use std::time::Duration;
use zbus::fdo::DBusProxy;
use zbus::message::Type;
use zbus::names::BusName;
use zbus::{Connection, DBusError, MatchRule, Message, MessageStream};

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No answer (exit status 4).
    #[error("{what}: {why}\n{hint}")]
    Unreachable {
        /// What failed, such as a connection or a call.
        what: String,
        why: String,
        /// Command to try next.
        hint: String,
    },
    /// The orchestrator does not let the caller do this.
    #[error("access denied: {0}")]
    Denied(String),
    /// The policy of the bus does not let the caller call the orchestrator.
    #[error("access denied by the policy of the system bus")]
    NotAdmitted,
    /// The orchestrator answered with an error.
    #[error("{0}")]
    Refused(String),
}

const BUS: &str = "org.freedesktop.DBus";

/// How dbus-daemon and dbus-broker begin to say that their policy refuses a call: an error of the interface
/// for buses is passed on without its sender.
const REFUSALS: [&str; 2] = ["Rejected send message", "Sender is not authorized to send message"];

/// Bus name of the default instance.
const NAME: &str = "org.archivist1";

/// Unit of the session bus, which a package of its own brings.
const SESSION_BUS: [&str; 2] =
    ["/usr/lib/systemd/user/dbus.socket", "/etc/systemd/user/dbus.socket"];

/// Time without an answer after which a call may wait for an orchestrator that does not start.
const START_TIME: Duration = Duration::from_secs(1);
/// Interval in which a command that waits for an orchestrator looks whether its unit has failed.
const FAILURE_INTERVAL: Duration = Duration::from_secs(10);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The session bus of the calling user instead of the system bus.
    pub user: bool,
    /// `org.archivist1`, or `org.archivist1.NAME` for a further instance.
    pub name: String,
}

impl Address {
    /// Returns the bus and the name of an orchestrator: of the machine or of the user (`user`), and
    /// of an instance or the default one.
    pub fn new(user: bool, instance: Option<&str>) -> Address {
        let name = match instance {
            Some(instance) => format!("{NAME}.{instance}"),
            None => NAME.to_owned(),
        };
        Address { user, name }
    }

    /// Returns the name of a further instance; `None` for the default one.
    fn instance(&self) -> Option<&str> {
        self.name.strip_prefix(NAME)?.strip_prefix('.')
    }

    /// Returns the unit that the bus starts.
    fn unit(&self) -> String {
        match self.instance() {
            Some(instance) => format!("archivist-{instance}-orchestrator.service"),
            None => "archivist-orchestrator.service".to_owned(),
        }
    }

    pub async fn connect(&self) -> Result<Connection, ClientError> {
        let bus = if self.user { "session bus" } else { "system bus" };
        let unreachable = |error: zbus::Error| ClientError::Unreachable {
            what: format!("failed to connect to the {bus}"),
            why: error.to_string(),
            hint: if self.user {
                session_hint(SESSION_BUS.iter().any(|unit| Path::new(unit).exists()))
            } else {
                "is the machine running systemd and D-Bus? try: systemctl status dbus.socket"
            }
            .to_owned(),
        };
        let bus = builder(self.user).build().await;
        bus.map_err(unreachable)
    }

    /// Returns whether the orchestrator runs, without starting it.
    pub async fn is_up(&self) -> bool {
        match self.connect().await {
            Ok(connection) => self.has_owner(&connection).await.unwrap_or(false),
            Err(_) => false,
        }
    }

    /// Returns whether a process owns the name, without starting one.
    pub async fn has_owner(&self, connection: &Connection) -> zbus::Result<bool> {
        let bus = DBusProxy::new(connection).await?;
        let name = BusName::try_from(self.name.as_str())?;
        Ok(bus.name_has_owner(name).await?)
    }

    /// Returns when a process owns the name, without starting one, or when the bus has closed the
    /// connection.
    pub async fn until_up(&self, connection: &Connection) -> zbus::Result<()> {
        let mut changes = self.owner_changes(connection).await?;
        if self.has_owner(connection).await? {
            return Ok(());
        }
        while let Some(change) = changes.next().await {
            if owners(&change?).is_some_and(|(_, new)| !new.is_empty()) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Connects to the orchestrator, and starts it if it does not run.
    pub async fn manager(&self) -> Result<ManagerProxy<'static>, ClientError> {
        let connection = self.connect().await?;
        self.refuse_damage(&connection).await?;
        activate(&connection, &self.name, &self.unit()).await.map_err(|e| self.explain(e))?;
        ManagerProxy::builder(&connection)
            .destination(self.name.clone())
            .cache_properties(zbus::proxy::CacheProperties::No)
            .build()
            .await
            .map_err(|e| self.explain(e))
    }

    /// Starts the orchestrator if it does not run, for a call whose answer was lost.
    ///
    /// # Errors
    /// If it ended with a failure after which systemd does not restart it. The bus does not notice
    /// that, and holds a call for 25 s. Other failures are left to the call.
    pub async fn start_again(&self, connection: &Connection) -> Result<(), ClientError> {
        self.refuse_damage(connection).await?;
        let unit = self.unit();
        match activate(connection, &self.name, &unit).await {
            Err(error) if has_failed(connection, &unit).await => Err(self.explain(error)),
            _ => Ok(()),
        }
    }

    /// Checks that the orchestrator runs, or can be started.
    ///
    /// # Errors
    /// If the last one found that its database is damaged, and the file has not changed since: another
    /// would find the same.
    async fn refuse_damage(&self, connection: &Connection) -> Result<(), ClientError> {
        let instance = self.instance().map(str::to_owned);
        let scope = Scope::from_env(self.user, instance, |name| std::env::var_os(name));
        match database::known(&scope) {
            Some(Finding::Damaged(why)) if !self.has_owner(connection).await.unwrap_or(false) => {
                Err(damaged(&self.unit(), &why))
            }
            _ => Ok(()),
        }
    }

    /// Resolves with the error of [`Address::start_again`] while a call waits for the start of the
    /// orchestrator.
    pub async fn refused(&self, connection: &Connection) -> ClientError {
        tokio::time::sleep(START_TIME).await;
        if !self.has_owner(connection).await.unwrap_or(true)
            && let Err(error) = self.start_again(connection).await
        {
            return error;
        }
        std::future::pending().await
    }

    /// Returns when a process owns the name. An administrator may have stopped the orchestrator, so this
    /// starts none, unless the last one has failed and systemd does not restart it. `stopped` is called if
    /// none runs for a while. Also returns when the bus has closed the connection.
    ///
    /// # Errors
    /// Those of [`Address::start_again`] after a failure.
    pub async fn until_back(
        &self,
        connection: &Connection,
        stopped: impl FnOnce(&str),
    ) -> Result<(), ClientError> {
        let absent = async {
            tokio::time::sleep(START_TIME).await;
            let unit = self.unit();
            if !self.has_owner(connection).await.unwrap_or(true) {
                stopped(&unit);
            }
            // The service manager announces states only while a client subscribes to all of them.
            while !has_failed(connection, &unit).await {
                tokio::time::sleep(FAILURE_INTERVAL).await;
            }
            self.start_again(connection).await
        };
        tokio::select! {
            up = self.until_up(connection) => up.map_err(|error| self.explain(error)),
            started = absent => started,
        }
    }

    pub async fn worker(&self) -> Result<WorkerProxy<'static>, ClientError> {
        let connection = self.connect().await?;
        WorkerProxy::builder(&connection)
            .destination(self.name.clone())
            .cache_properties(zbus::proxy::CacheProperties::No)
            .build()
            .await
            .map_err(|e| self.explain(e))
    }

    /// Resolves when the bus name changes from one process to another, as at a takeover. If the
    /// process ends without a successor, its calls fail instead.
    pub async fn replaced(
        &self,
        connection: &Connection,
    ) -> zbus::Result<impl Future<Output = ()> + use<>> {
        let mut changes = self.owner_changes(connection).await?;
        Ok(async move {
            while let Some(change) = changes.next().await {
                let owners = change.ok().as_ref().and_then(owners);
                if owners.is_some_and(|(old, new)| !old.is_empty() && !new.is_empty()) {
                    return;
                }
            }
            std::future::pending().await
        })
    }

    async fn owner_changes(&self, connection: &Connection) -> zbus::Result<MessageStream> {
        let rule = MatchRule::builder()
            .msg_type(Type::Signal)
            .sender(BUS)
            .interface(BUS)
            .member("NameOwnerChanged")
            .add_arg(self.name.as_str())
            .build()?;
        MessageStream::for_match_rule(rule, connection, None).await
    }

    /// Returns an error of a call as a message for the user.
    pub fn explain(&self, error: zbus::Error) -> ClientError {
        let mut is_of_bus = false;
        let (name, text) = match &error {
            zbus::Error::MethodError(name, text, message) => {
                let header = message.header();
                is_of_bus = header.sender().is_some_and(|sender| *sender == BUS);
                (name.to_string(), text.clone())
            }
            zbus::Error::FDO(error) => {
                (error.name().to_string(), error.description().map(Into::into))
            }
            // The answer arrived but is invalid: repeating the call would not help.
            zbus::Error::SignatureMismatch(..) | zbus::Error::IncorrectType => {
                return ClientError::Refused(format!("failed to parse the answer: {error}"));
            }
            _ => return self.unreachable(error.to_string()),
        };
        let text = text.unwrap_or_else(|| name.clone());
        is_of_bus |= REFUSALS.iter().any(|begin| text.starts_with(begin));
        match name.as_str() {
            "org.freedesktop.DBus.Error.AccessDenied" if is_of_bus => ClientError::NotAdmitted,
            "org.freedesktop.DBus.Error.AccessDenied" => ClientError::Denied(text),
            "org.freedesktop.DBus.Error.ServiceUnknown"
            | "org.freedesktop.DBus.Error.NameHasNoOwner"
            | "org.freedesktop.DBus.Error.NoReply"
            | "org.freedesktop.DBus.Error.TimedOut"
            | "org.freedesktop.DBus.Error.Disconnected" => self.unreachable(text),
            other
                if other.starts_with("org.freedesktop.DBus.Error.Spawn")
                    || other.starts_with("org.freedesktop.systemd1.") =>
            {
                self.unreachable(text)
            }
            _ => ClientError::Refused(text),
        }
    }

    fn unreachable(&self, why: String) -> ClientError {
        let (user, unit) = (if self.user { "--user " } else { "" }, self.unit());
        ClientError::Unreachable {
            what: format!("the orchestrator ({}) cannot be reached", self.name),
            why,
            hint: format!("see: systemctl {user}status {unit}; journalctl {user}-u {unit}"),
        }
    }
}

/// Returns what a user without a session bus lacks. `is_installed`: the service manager of the user can start
/// one.
fn session_hint(is_installed: bool) -> &'static str {
    if is_installed {
        "is there a session of the user? log in, or as root: loginctl enable-linger NAME; then: systemctl --user start dbus.socket"
    } else {
        "the session bus requires a package: sudo apt install dbus-user-session libpam-systemd; then log in again"
    }
}

/// Returns the error for a unit that is not started, as its database is damaged. `why`: what the last
/// process of it printed.
fn damaged(unit: &str, why: &str) -> ClientError {
    let (what, fix) = why.split_once('\n').unwrap_or((why, ""));
    ClientError::Unreachable {
        what: format!("{unit} is not started"),
        why: what.to_owned(),
        hint: format!("{fix}\nit starts again when the file has changed"),
    }
}

/// Returns the old and the new owner in a NameOwnerChanged signal; a missing one is empty.
fn owners(change: &Message) -> Option<(String, String)> {
    let body = change.body();
    let (_, old, new): (&str, &str, &str) = body.deserialize().ok()?;
    Some((old.to_owned(), new.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_reported_without_a_start() {
        let unit = "archivist-orchestrator.service";
        let said = damaged(unit, "the database '/d' is damaged: x\nrestore '/d'").to_string();
        assert_eq!(
            said,
            format!(
                "{unit} is not started: the database '/d' is damaged: x\nrestore '/d'\nit starts again when the file has changed"
            )
        );
    }

    #[test]
    fn refusal_by_the_policy_of_the_bus_is_not_one_of_the_orchestrator() {
        let denied = |text: &str| {
            let error = zbus::fdo::Error::AccessDenied(text.to_owned());
            Address::new(false, None).explain(error.into())
        };
        let of_bus = denied("Rejected send message, 2 matched rules; type=\"method_call\"");
        assert!(matches!(of_bus, ClientError::NotAdmitted), "{of_bus}");
        let ours = denied("c1 is a crawl of another user");
        assert!(matches!(ours, ClientError::Denied(_)), "{ours}");
    }

    #[test]
    fn package_of_the_session_bus_is_named_where_it_is_missing() {
        assert!(session_hint(false).contains("apt install dbus-user-session"));
        assert!(!session_hint(true).contains("dbus-user-session"));
    }

    #[test]
    fn each_instance_has_its_own_unit() {
        let unit = |instance| Address::new(false, instance).unit();
        assert_eq!(unit(None), "archivist-orchestrator.service");
        assert_eq!(unit(Some("news")), "archivist-news-orchestrator.service");
    }
}
