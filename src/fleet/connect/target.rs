//! The URL of the database.

use super::secret::Secrets;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::config::{ChannelBinding, Host, LoadBalanceHosts, SslMode};
use url::form_urlencoded;

/// The database if the URL names none.
pub const DATABASE: &str = "archivist";

/// Limit for connecting to one address.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Unacknowledged data for longer than this ends the connection (tcp(7)).
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(10);
/// Idle time before the first keepalive probe, and time between probes.
const KEEPALIVE: Duration = Duration::from_secs(5);
const KEEPALIVE_PROBES: u32 = 2;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{shown}' is not the URL of a fleet's database: {reason}")]
pub struct TargetError {
    shown: String,
    reason: String,
}

/// Server, database and user to connect to, without secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    config: Config,
    /// Authorities that may have issued the server's certificate; those of the machine if `None`.
    authorities: Option<PathBuf>,
    shown: String,
}

impl Target {
    /// Returns the database that a URL names: `postgresql://USER@HOST:PORT/DATABASE`, with several
    /// `HOST:PORT` separated by commas, or a directory with a Unix socket as host, in percent
    /// encoding. `sslrootcert=FILE` names the authorities. TCP uses TLS with full verification
    /// unless the URL has `sslmode=disable`.
    ///
    /// # Errors
    /// If the URL is malformed, names no host, contains a password, or weakens TLS.
    pub fn parse(text: &str) -> Result<Target, TargetError> {
        let fail = |reason: String| TargetError { shown: shown(text), reason };
        if !text.starts_with("postgresql://") && !text.starts_with("postgres://") {
            return Err(fail("it must begin with postgresql://".to_owned()));
        }
        let (base, query) = text.split_once('?').unwrap_or((text, ""));
        let (mut mode, mut authorities) = (None, None);
        let mut rest = form_urlencoded::Serializer::new(String::new());
        for (key, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*key {
                "sslmode" => mode = Some(value.into_owned()),
                "sslrootcert" => authorities = Some(PathBuf::from(value.into_owned())),
                _ => drop(rest.append_pair(&key, &value)),
            }
        }
        // libpq decodes no plus sign.
        let rest = rest.finish().replace('+', "%20");
        let url = if rest.is_empty() { base.to_owned() } else { format!("{base}?{rest}") };
        let mut config: Config = url.parse().map_err(|error| fail(reason(&error)))?;
        if config.get_password().is_some() {
            return Err(fail(format!(
                "it contains a password; store that as the credential {} instead",
                super::PASSWORD
            )));
        }
        if config.get_hosts().is_empty() {
            return Err(fail("it names no host".to_owned()));
        }
        let is_socket = |host: &Host| matches!(host, Host::Unix(_));
        let sockets = config.get_hosts().iter().filter(|host| is_socket(host));
        let mode = match (sockets.count(), mode.as_deref()) {
            (0, None | Some("verify-full")) => SslMode::Require,
            (_, Some("disable")) => SslMode::Disable,
            (n, None) if n == config.get_hosts().len() => SslMode::Disable,
            (0, Some(mode)) => {
                return Err(fail(format!(
                    "sslmode={mode} does not verify the server; use verify-full, or disable on a \
                     network that only the fleet can reach"
                )));
            }
            _ => {
                return Err(fail(
                    "Unix sockets have no TLS: remove sslmode, or the hosts of the other kind"
                        .to_owned(),
                ));
            }
        };
        if config.get_dbname().is_none() {
            config.dbname(DATABASE);
        }
        config
            .ssl_mode(mode)
            .channel_binding(ChannelBinding::Prefer)
            .load_balance_hosts(LoadBalanceHosts::Disable)
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_user_timeout(TCP_USER_TIMEOUT)
            .keepalives_idle(KEEPALIVE)
            .keepalives_interval(KEEPALIVE)
            .keepalives_retries(KEEPALIVE_PROBES);
        Ok(Target { config, authorities, shown: shown(text) })
    }

    /// Returns the settings with the password, if there is one, and the name that the server's lists
    /// of connections show.
    pub(super) fn config(&self, secrets: &Secrets, name: &str) -> Config {
        let mut config = self.config.clone();
        config.application_name(name);
        if let Some(password) = secrets.password() {
            config.password(password);
        }
        config
    }

    pub fn uses_tls(&self) -> bool {
        self.config.get_ssl_mode() == SslMode::Require
    }

    /// Returns the file with the authorities that the URL names.
    pub(super) fn authorities(&self) -> Option<&PathBuf> {
        self.authorities.as_ref()
    }

    pub fn database(&self) -> &str {
        self.config.get_dbname().unwrap_or(DATABASE)
    }

    pub(super) fn user(&self) -> &str {
        self.config.get_user().unwrap_or("the user of this process")
    }
}

/// The URL without a password.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Target").field(&self.shown).finish()
    }
}

fn reason(error: &tokio_postgres::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

/// Returns the URL without its query, and with `***` for a password.
fn shown(text: &str) -> String {
    let base = text.split('?').next().unwrap_or_default();
    let Some((scheme, rest)) = base.split_once("://") else {
        return base.to_owned();
    };
    let Some((login, place)) = rest.rsplit_once('@') else {
        return base.to_owned();
    };
    match login.split_once(':') {
        Some((user, _)) => format!("{scheme}://{user}:***@{place}"),
        None => base.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(url: &str) -> String {
        Target::parse(url).unwrap_err().to_string()
    }

    #[test]
    fn tcp_verifies_the_server_unless_the_url_disables_tls() {
        let tls = |url: &str| Target::parse(url).unwrap().uses_tls();
        assert!(tls("postgresql://archivist@db.example/archive"));
        assert!(tls("postgres://db.example:6432?sslmode=verify-full"));
        assert!(tls("postgresql://a.example,b.example:5433/archive"));
        assert!(!tls("postgresql://10.0.0.1/archive?sslmode=disable"));
        for mode in ["require", "prefer", "verify-ca", "nonsense"] {
            let text = error(&format!("postgresql://db.example/?sslmode={mode}"));
            assert!(text.contains("does not verify"), "{text}");
        }
    }

    #[test]
    fn a_unix_socket_has_no_tls() {
        let url = "postgresql://%2Frun%2Fpostgresql/archive";
        let target = Target::parse(url).unwrap();
        assert!(!target.uses_tls());
        assert_eq!(target.database(), "archive");
        assert!(error(&format!("{url}?sslmode=verify-full")).contains("Unix sockets"));
        assert!(error("postgresql://%2Frun%2Fpostgresql,db.example/x").contains("Unix sockets"));
        let by_query = Target::parse("postgresql:///archive?host=/run/postgresql").unwrap();
        assert!(!by_query.uses_tls());
    }

    #[test]
    fn a_password_is_refused_and_not_shown() {
        let text = error("postgresql://me:secret@db.example/archive");
        assert!(text.contains("fleet.password"), "{text}");
        assert!(!text.contains("secret"), "{text}");
        let text = error("postgresql://me@db.example/archive?password=secret");
        assert!(text.contains("password") && !text.contains("secret"), "{text}");
    }

    #[test]
    fn errors_say_what_is_wrong() {
        assert!(error("mysql://db.example").contains("postgresql://"));
        assert!(error("postgresql:///archive").contains("no host"));
        assert!(error("postgresql://db.example/x?colour=blue").contains("colour"));
        assert!(error("postgresql://db.example:port/x").contains("port"));
    }

    #[test]
    fn the_database_has_a_default() {
        let target = Target::parse("postgresql://db.example").unwrap();
        assert_eq!(target.database(), DATABASE);
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics_or_shows_a_password(text in ".{0,60}", secret in "[a-z]{12}") {
            drop(Target::parse(&text));
            let url = format!("postgresql://u:{secret}@{text}");
            if let Err(error) = Target::parse(&url) {
                let shown = error.to_string();
                proptest::prop_assert!(!shown.contains(&secret) || text.contains(&secret), "{}", shown);
            }
        }
    }
}
