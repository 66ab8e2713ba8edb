//! Faults of the connection in words: what failed, why, and what to do.

use super::secret::PASSWORD;
use super::target::Target;
use std::error::Error;
use std::io;
use std::time::Duration;
use tokio_postgres::error::{DbError, SqlState};

/// A fault of the connection, of the server, or of an operation.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    #[error("failed to read the certificates of authorities: {0}")]
    Authorities(String),
    /// No connection, for a reason of the network.
    #[error("failed to connect to {server}: {reason}")]
    Unreachable {
        /// The URL without secrets.
        server: String,
        /// From the network or the resolver.
        reason: String,
    },
    /// TLS failed: certificate or protocol.
    #[error("failed to verify {server}: {reason}")]
    Tls {
        /// The URL without secrets.
        server: String,
        /// What is wrong, and what to do.
        reason: String,
    },
    #[error("failed to log in to {server}: {reason}")]
    Login {
        /// The URL without secrets.
        server: String,
        /// What is wrong, and what to do.
        reason: String,
    },
    #[error(
        "failed to use {server}: the database is read-only (a standby, or default_transaction_read_only); use the URL of the primary"
    )]
    ReadOnly {
        /// The URL without secrets.
        server: String,
    },
    #[error(
        "failed to use {server}: the database is empty, it has no fleet. If it had one, restore a backup of it, see archivist-backup(7); a new fleet: archivist fleet init"
    )]
    NoFleet {
        /// The URL without secrets.
        server: String,
    },
    #[error(
        "failed to use {server}: its schema is version {found}, and this program knows versions up to {known}; upgrade archivist on this machine"
    )]
    Newer {
        /// The URL without secrets.
        server: String,
        found: i32,
        known: i32,
    },
    /// An older schema, which only the setup of a fleet migrates.
    #[error(
        "failed to use {server}: its schema is version {found}, and this program requires version {known}; run 'archivist fleet init' with the URL of the fleet on one upgraded node"
    )]
    Older {
        /// The URL without secrets.
        server: String,
        found: i32,
        /// Version that this program requires.
        known: i32,
    },
    /// The transaction lost a conflict and can be repeated at once.
    #[error("transaction conflict on {server}: {reason}")]
    Conflict {
        /// The URL without secrets.
        server: String,
        /// From the server.
        reason: String,
    },
    /// No reply in time; whether the operation was done is unknown.
    #[error("no reply from {server} within {} s", .after.as_secs())]
    Late {
        /// The URL without secrets.
        server: String,
        /// The limit.
        after: Duration,
    },
    /// Any other error of the server, such as a full disk or a restart.
    #[error("{server}: {reason}")]
    Server {
        /// The URL without secrets.
        server: String,
        /// From the server.
        reason: String,
    },
}

impl Problem {
    /// Returns whether the fault lasts until an administrator acts. Everything else passes by itself.
    pub fn is_lasting(&self) -> bool {
        use Problem::*;
        match self {
            Authorities(_) | Tls { .. } | Login { .. } | ReadOnly { .. } => true,
            NoFleet { .. } | Newer { .. } | Older { .. } => true,
            Unreachable { .. } | Conflict { .. } | Late { .. } | Server { .. } => false,
        }
    }

    /// Returns the fault that an error of the client means.
    pub fn of(error: &tokio_postgres::Error, target: &Target) -> Problem {
        let server = target.to_string();
        if let Some(error) = error.as_db_error() {
            return of_server(error, target);
        }
        if let Some(tls) = cause::<rustls::Error>(error) {
            let reason = of_tls(tls);
            return Problem::Tls { server, reason };
        }
        let source = error.source().map(ToString::to_string);
        let text = source.clone().unwrap_or_else(|| error.to_string());
        if text == "server does not support TLS" {
            let reason = "it has no TLS; set ssl=on in its postgresql.conf".to_owned();
            return Problem::Tls { server, reason };
        }
        if text == "password missing" {
            let reason = format!("it requires a password; store it as the credential {PASSWORD}");
            return Problem::Login { server, reason };
        }
        if let Some(error) = cause::<io::Error>(error) {
            let reason = of_network(error);
            return Problem::Unreachable { server, reason };
        }
        if error.is_closed() {
            let reason = "the server closed the connection".to_owned();
            return Problem::Unreachable { server, reason };
        }
        let reason = match source {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        };
        Problem::Server { server, reason }
    }
}

/// Returns the first cause of this type.
fn cause<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        let inner = error.downcast_ref::<io::Error>();
        // The error that an I/O error wraps is not its source.
        next = match inner.and_then(io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    None
}

fn of_network(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::TimedOut => "no answer; check address, port and firewall".to_owned(),
        io::ErrorKind::ConnectionRefused => {
            "connection refused; start PostgreSQL, and check port and listen_addresses".to_owned()
        }
        io::ErrorKind::NotFound => "the Unix socket does not exist; start PostgreSQL".to_owned(),
        io::ErrorKind::PermissionDenied => "no permission to use the Unix socket".to_owned(),
        io::ErrorKind::UnexpectedEof => "the server closed the connection".to_owned(),
        _ => error.to_string(),
    }
}

fn of_tls(error: &rustls::Error) -> String {
    use rustls::CertificateError as Certificate;
    let rustls::Error::InvalidCertificate(fault) = error else {
        return error.to_string();
    };
    let text = match fault {
        Certificate::Expired | Certificate::ExpiredContext { .. } => {
            "its certificate has expired; renew it on the server"
        }
        Certificate::NotValidYet | Certificate::NotValidYetContext { .. } => {
            "its certificate is not valid yet; check the clock of this machine"
        }
        Certificate::NotValidForName | Certificate::NotValidForNameContext { .. } => {
            "its certificate is for another name; use that name in the URL"
        }
        Certificate::UnknownIssuer => {
            "no trusted authority has issued its certificate; name the authority with 'archivist fleet join --ca FILE URL'"
        }
        Certificate::Revoked => "its certificate was revoked; renew it on the server",
        fault => return format!("its certificate is invalid: {fault}"),
    };
    text.to_owned()
}

fn of_server(error: &DbError, target: &Target) -> Problem {
    let server = target.to_string();
    let said = error.message();
    let code = error.code();
    if *code == SqlState::INVALID_PASSWORD {
        let user = target.user();
        let reason =
            format!("wrong password for {user}; store the right one as the credential {PASSWORD}");
        Problem::Login { server, reason }
    } else if *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION {
        let reason = format!("{said}; check user and pg_hba.conf");
        Problem::Login { server, reason }
    } else if *code == SqlState::INVALID_CATALOG_NAME {
        let database = target.database();
        let reason = format!(
            "the database '{database}' does not exist; create it with 'createdb {database}'"
        );
        Problem::Login { server, reason }
    } else if *code == SqlState::INSUFFICIENT_PRIVILEGE {
        let user = target.user();
        let reason = format!("{said}; {user} must own the database, or its schema 'archivist'");
        Problem::Login { server, reason }
    } else if *code == SqlState::READ_ONLY_SQL_TRANSACTION {
        Problem::ReadOnly { server }
    } else if *code == SqlState::INVALID_SCHEMA_NAME || *code == SqlState::UNDEFINED_TABLE {
        Problem::NoFleet { server }
    } else if *code == SqlState::T_R_SERIALIZATION_FAILURE
        || *code == SqlState::T_R_DEADLOCK_DETECTED
    {
        let reason = said.to_owned();
        Problem::Conflict { server, reason }
    } else {
        let reason = match error.hint() {
            Some(hint) => format!("{said} ({hint})"),
            None => said.to_owned(),
        };
        Problem::Server { server, reason }
    }
}
