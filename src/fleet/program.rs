//! `archivist-fleet [{create | check} URL CRAWL PAGE [FILE]]`: without arguments the fleet service,
//! which archivist-fleet.service starts. `archivist fleet` starts the others as the user of the
//! service, with the password on standard input, and with the highest ids of a crawl and page of the
//! machine. With the name of a file of authorities, its content follows the line of the password.
//! Users do not call it.

use crate::connect::{Link, Problem, Secrets, Target, TargetError};
use crate::node::{Node, NodeError, show_failure};
use crate::own_ids::{self, Overlap, OwnIds};
use crate::schema;
use archivist_config::{ConfigError, Scope, load};
use archivist_core::fleet::NODE_NAME_ALLOWED;
use archivist_shared::journal;
use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

/// Exit status for wrong usage, as of `archivist`.
const USAGE: u8 = 2;
/// Exit status if the configuration must be corrected first (sysexits(3)): systemd does not restart
/// the service.
const CONFIGURATION: u8 = 78;
/// Name of this client in the server's list of connections while it creates or checks a fleet.
const SETUP: &str = "archivist fleet";

/// What `create` prints.
const CREATED: &str = "created";
const MIGRATED: &str = "migrated";
const EXISTED: &str = "existed";

#[derive(Debug, PartialEq, Eq)]
enum Asked {
    Serve,
    /// Creates the schema of a fleet, or migrates it.
    Create(Setup),
    /// Checks the connection, the schema, and whether the ids of the machine allow it to join.
    Check(Setup),
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Setup {
    url: String,
    own: OwnIds,
    /// Name of the file whose content is on standard input after the password.
    authorities: Option<String>,
}

#[derive(Debug, thiserror::Error)]
enum ProgramError {
    #[error("unexpected arguments; use archivist(1)")]
    Usage,
    #[error(transparent)]
    Settings(#[from] ConfigError),
    #[error("{0}")]
    Configuration(String),
    #[error(transparent)]
    Target(#[from] TargetError),
    #[error(transparent)]
    Database(#[from] Problem),
    #[error("{0}")]
    Overlap(Overlap),
    #[error(transparent)]
    Node(#[from] NodeError),
    /// The message names the file.
    #[error("{0}")]
    Secrets(io::Error),
    #[error("failed to create the event loop: {0}")]
    Runtime(io::Error),
}

impl ProgramError {
    fn exit(&self, asked: Option<&Asked>) -> ExitCode {
        use ProgramError::*;
        match self {
            Usage => ExitCode::from(USAGE),
            Settings(_) | Configuration(_) => ExitCode::from(CONFIGURATION),
            Target(_) if asked == Some(&Asked::Serve) => ExitCode::from(CONFIGURATION),
            Target(_) => ExitCode::from(USAGE),
            Database(_) | Overlap(_) | Node(_) | Secrets(_) | Runtime(_) => ExitCode::FAILURE,
        }
    }
}

pub fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let asked = asked(arguments);
    let serves = asked == Some(Asked::Serve);
    if serves {
        journal::init(None);
    }
    let done = match &asked {
        Some(asked) => run(asked),
        None => Err(ProgramError::Usage),
    };
    let Err(error) = done else {
        return ExitCode::SUCCESS;
    };
    if serves {
        show_failure(&error.to_string());
        tracing::error!("{error}");
    } else {
        eprintln!("archivist-fleet: {error}");
    }
    error.exit(asked.as_ref())
}

/// Returns what the arguments ask for; `None` if they are wrong.
fn asked(arguments: impl Iterator<Item = OsString>) -> Option<Asked> {
    let words: Option<Vec<String>> = arguments.map(|word| word.into_string().ok()).collect();
    let words = words?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        [] => Some(Asked::Serve),
        ["create", ref setup @ ..] => Some(Asked::Create(setup_of(setup)?)),
        ["check", ref setup @ ..] => Some(Asked::Check(setup_of(setup)?)),
        _ => None,
    }
}

fn setup_of(words: &[&str]) -> Option<Setup> {
    let (url, crawl, page, authorities) = match *words {
        [url, crawl, page] => (url, crawl, page, None),
        [url, crawl, page, file] => (url, crawl, page, Some(file.to_owned())),
        _ => return None,
    };
    Some(Setup { url: url.to_owned(), own: own(crawl, page)?, authorities })
}

fn own(crawl: &str, page: &str) -> Option<OwnIds> {
    let number = |text: &str| text.parse().ok().filter(|number| *number >= 0);
    Some(OwnIds { crawl: number(crawl)?, page: number(page)? })
}

fn run(asked: &Asked) -> Result<(), ProgramError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(ProgramError::Runtime)?;
    runtime.block_on(async {
        match asked {
            Asked::Serve => Ok(configured()?.serve().await?),
            Asked::Create(setup) => {
                let mut link = open(setup).await?;
                let found = schema::migrate(&mut link, schema::MIGRATIONS).await?;
                if found == 0 {
                    own_ids::begin_after(&mut link, setup.own).await?;
                }
                println!("{}", created(found));
                Ok(())
            }
            Asked::Check(setup) => {
                let link = open(setup).await?;
                schema::check(&link).await?;
                match own_ids::overlap(&link, setup.own).await? {
                    None => Ok(()),
                    Some(overlap) => Err(ProgramError::Overlap(overlap)),
                }
            }
        }
    })
}

/// Returns what became of a database with this version of the schema.
fn created(found: i32) -> &'static str {
    match found {
        0 => CREATED,
        found if found < schema::VERSION => MIGRATED,
        _ => EXISTED,
    }
}

/// Connects with the password and the authorities on standard input.
async fn open(setup: &Setup) -> Result<Link, ProgramError> {
    let target = Target::parse(&setup.url)?;
    let secrets = Secrets::from_input(io::stdin(), setup.authorities.as_deref());
    let secrets = secrets.map_err(ProgramError::Secrets)?;
    Ok(Link::open(&target, &secrets, SETUP).await?)
}

fn configured() -> Result<Node, ProgramError> {
    let (settings, _) = load(&Scope::system("/"))?;
    if !settings.is_in_fleet() {
        let why = "this machine is in no fleet: Database= in [Fleet] is not set; use 'archivist fleet init' or 'archivist fleet join'";
        return Err(ProgramError::Configuration(why.to_owned()));
    }
    let name = settings.node_name().ok_or_else(|| {
        ProgramError::Configuration(format!(
            "the host name cannot be the name of a node: set Name= in [Fleet] to {NODE_NAME_ALLOWED}"
        ))
    })?;
    Ok(Node {
        name,
        target: Target::parse(&settings.fleet_database)?,
        secrets: Secrets::of_service().map_err(ProgramError::Secrets)?,
        lease: settings.lease,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Option<Asked> {
        asked(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn arguments_select_service_or_setup() {
        assert_eq!(of(""), Some(Asked::Serve));
        let url = "postgresql://db.example/archive".to_owned();
        let own = OwnIds { crawl: 12, page: 345 };
        let create = of(&format!("create {url} 12 345"));
        let mut setup = Setup { url: url.clone(), own, authorities: None };
        assert_eq!(create, Some(Asked::Create(setup)));
        let check = of(&format!("check {url} 0 0 ca.pem"));
        setup = Setup { url, authorities: Some("ca.pem".to_owned()), ..Setup::default() };
        assert_eq!(check, Some(Asked::Check(setup)));
        for bad in [
            "create",
            "serve",
            "check a",
            "check a -1 0",
            "check a b c",
            "check a 0 0 b c",
            "--help",
        ] {
            assert_eq!(of(bad), None, "{bad}");
        }
    }

    #[test]
    fn bad_url_is_the_fault_of_the_caller_or_of_the_configuration() {
        let error = || ProgramError::from(Target::parse("mysql://x").unwrap_err());
        let text = |exit: ExitCode| format!("{exit:?}");
        let of_setup = error().exit(Some(&Asked::Check(Setup::default())));
        assert_eq!(text(of_setup), text(ExitCode::from(USAGE)));
        let of_service = error().exit(Some(&Asked::Serve));
        assert_eq!(text(of_service), text(ExitCode::from(CONFIGURATION)));
    }
}
