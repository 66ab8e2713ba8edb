//! `[Fleet]`: the database that several machines share, and the name of this one.

use super::Settings;
use archivist_core::fleet::{LEASE_MIN, NODE_NAME_ALLOWED, is_node_name};
use archivist_core::text::parse_span;
use std::time::Duration;

/// Longest duration of a lease: other nodes wait that long for the hosts of one that fails.
const LEASE_MAX: Duration = Duration::from_secs(24 * 3600);

/// Accepts the URL of a database without a password. The fleet service reads the rest of it.
pub(super) fn database(text: &str) -> Result<String, &'static str> {
    let allowed = "a URL like postgresql://archivist@db.example/archivist, without a password: that is the credential archivist-fleet.password";
    let schemes = ["postgresql://", "postgres://"];
    let rest = schemes.iter().find_map(|scheme| text.strip_prefix(scheme));
    let rest = rest.ok_or(allowed)?;
    let login = rest.rsplit_once('@').map_or("", |(login, _)| login);
    if login.contains(':') || rest.contains("password=") || rest.contains(char::is_whitespace) {
        return Err(allowed);
    }
    Ok(text.to_owned())
}

pub(super) fn name(text: &str) -> Result<String, &'static str> {
    let name = is_node_name(text).then(|| text.to_owned());
    name.ok_or(NODE_NAME_ALLOWED)
}

pub(super) fn lease(text: &str) -> Result<Option<Duration>, &'static str> {
    let span = parse_span(text).filter(|span| (LEASE_MIN..=LEASE_MAX).contains(span));
    span.map(Some).ok_or("a time span from 30s to 1d, like 5min")
}

/// Returns the host name of this machine if it can be the name of a node.
pub fn host_name() -> Option<String> {
    let machine = nix::sys::utsname::uname().ok()?;
    let name = machine.nodename().to_str()?;
    is_node_name(name).then(|| name.to_owned())
}

impl Settings {
    pub fn is_in_fleet(&self) -> bool {
        !self.fleet_database.is_empty()
    }

    /// Returns the name of this node: the configured one, or the host name. `None` if that cannot
    /// be the name of a node.
    pub fn node_name(&self) -> Option<String> {
        if self.fleet_name.is_empty() { host_name() } else { Some(self.fleet_name.clone()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leases_leave_time_to_work() {
        let read = |text: &str| lease(text).map(|span| span.map(|span| span.as_secs()));
        assert_eq!(read("1min"), Ok(Some(60)));
        assert_eq!(read("30"), Ok(Some(30)));
        for bad in ["29s", "0", "25h", "long"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn database_is_a_url_without_password() {
        for good in [
            "postgresql://db.example",
            "postgres://me@db.example:6432/archive?sslmode=verify-full",
            "postgresql://%2Frun%2Fpostgresql/archive",
        ] {
            assert_eq!(database(good).as_deref(), Ok(good));
        }
        for bad in [
            "db.example",
            "mysql://db.example/",
            "postgresql://me:secret@db.example/",
            "postgresql://db.example/x?password=secret",
            "postgresql://db.example/x y",
        ] {
            assert!(database(bad).is_err(), "{bad}");
        }
    }
}
