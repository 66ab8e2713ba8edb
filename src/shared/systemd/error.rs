//! Errors of calls to systemd.

use zbus::DBusError;

/// A call that systemd refused, or that did not reach it.
#[derive(Clone, Debug, thiserror::Error)]
#[error("failed to {verb} '{object}': {why}")]
pub struct ManagerError {
    /// What the call was to do, such as `start unit`.
    pub verb: &'static str,
    /// Name of the unit or other object.
    pub object: String,
    /// The text of the error.
    pub why: String,
    pub kind: ErrorKind,
}

/// Kinds of errors that callers handle differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// A unit of that name is still loaded.
    UnitExists,
    NoSuchUnit,
    /// A job of the unit is running, or the unit is in the wrong state.
    Busy,
    /// The connection or the bus failed. The call may have had an effect.
    Unreachable,
    /// Something that the unit requires is being stopped, such as the whole system.
    GoingDown,
    /// The machine lacks what every start requires: space or inodes in `/run`, descriptors, memory.
    Machine,
    Refused,
}

/// Answers of systemd for the errors ENOMEM, ENOSPC, EDQUOT, EROFS, EMFILE and ENFILE (sd-bus-errors(3)).
const LACKS: [&str; 6] = [
    "org.freedesktop.DBus.Error.NoMemory",
    "System.Error.ENOSPC",
    "System.Error.EDQUOT",
    "System.Error.EROFS",
    "System.Error.EMFILE",
    "System.Error.ENFILE",
];

/// What the bus answers for a service that left with a call unanswered, or that is not there.
const AWAY: [&str; 4] = [
    "org.freedesktop.DBus.Error.NoReply",
    "org.freedesktop.DBus.Error.Disconnected",
    "org.freedesktop.DBus.Error.ServiceUnknown",
    "org.freedesktop.DBus.Error.NameHasNoOwner",
];

/// Returns name and text of an error that came as an answer; without an answer the name is empty.
pub(super) fn name_and_text(error: &zbus::Error) -> (String, Option<String>) {
    match error {
        zbus::Error::MethodError(name, text, _) => (name.to_string(), text.clone()),
        zbus::Error::FDO(error) => (error.name().to_string(), error.description().map(Into::into)),
        other => (String::new(), Some(other.to_string())),
    }
}

/// Whether systemd left the bus before it answered, and the bus is still there.
pub(super) fn is_away(error: &zbus::Error) -> bool {
    AWAY.contains(&name_and_text(error).0.as_str())
}

/// Makes an error of a call that was to `verb` an `object`.
pub(super) fn explain(verb: &'static str, object: &str, error: &zbus::Error) -> ManagerError {
    let (name, text) = name_and_text(error);
    let kind = match name.as_str() {
        "org.freedesktop.systemd1.UnitExists" => ErrorKind::UnitExists,
        "org.freedesktop.systemd1.NoSuchUnit" => ErrorKind::NoSuchUnit,
        "org.freedesktop.systemd1.UnitBusy" | "org.freedesktop.systemd1.UnitInactive" => {
            ErrorKind::Busy
        }
        "org.freedesktop.systemd1.TransactionIsDestructive"
        | "org.freedesktop.systemd1.ShuttingDown" => ErrorKind::GoingDown,
        name if name.is_empty() || AWAY.contains(&name) => ErrorKind::Unreachable,
        name if LACKS.contains(&name) => ErrorKind::Machine,
        _ => ErrorKind::Refused,
    };
    let why = text.filter(|text| !text.is_empty()).unwrap_or(name);
    ManagerError { verb, object: object.to_owned(), why, kind }
}
