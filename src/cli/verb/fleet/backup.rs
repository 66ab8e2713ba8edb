//! `archivist fleet backup`: pg_dump(1) of the schema of the fleet, with the secrets of the fleet service.

use super::files::Files;
use super::password::is_socket;
use crate::client::exit::{Exit, Failure};
use crate::client::fleet_service;
use crate::display::style;
use archivist_config::{Scope, load};
use archivist_plugin::files::whole::{Survives, Whole};
use clap::Args;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Authorities of the machine (package ca-certificates).
const AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";
/// PATH for pg_dump(1).
const SEARCH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Back up the database of the fleet, with pg_dump(1)
#[derive(Args)]
pub struct BackupArgs {
    /// The file to write, replaced when the backup is complete
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

pub(super) fn run(args: &BackupArgs, scope: &Scope) -> Result<Exit, Failure> {
    if !nix::unistd::geteuid().is_root() {
        return Err(Failure::failed("only root can back up the database of the fleet: use sudo"));
    }
    let (settings, _) = load(scope)?;
    let url = settings.fleet_database;
    let files = Files::of(scope);
    let mut command = Command::new("pg_dump");
    command
        .args(["--format=custom", "--schema=archivist", "--no-owner"])
        .arg(format!("--dbname={url}"))
        .env_clear()
        .env("PATH", SEARCH)
        .current_dir("/");
    for (name, value) in variables(&url, &files)? {
        command.env(name, value);
    }
    if is_socket(&url) {
        // The server knows the user by the process.
        let user = fleet_service::user()?;
        command.uid(user.uid.as_raw()).gid(user.gid.as_raw());
    }
    dump(&mut command, &args.file)?;
    style::print(&format!("backed up the database of the fleet to '{}'\n", args.file.display()))?;
    Ok(Exit::Done)
}

/// Returns the variables for libpq: the password, and the same verification of the server as that of the
/// fleet service.
fn variables(url: &str, files: &Files) -> Result<Vec<(&'static str, String)>, Failure> {
    let contents = files.read()?;
    let mut variables = Vec::new();
    if let Some(password) = contents.password() {
        variables.push(("PGPASSWORD", password));
    }
    if !is_socket(url) {
        // Parameters of the URL have precedence.
        let file = match contents.authorities() {
            Some(_) => files.authorities(),
            None => Path::new(AUTHORITIES),
        };
        variables.push(("PGSSLMODE", "verify-full".to_owned()));
        variables.push(("PGSSLROOTCERT", file.display().to_string()));
    }
    Ok(variables)
}

/// Writes the output of a command into a file that only its owner can read. The file has its name when it
/// is complete and on the disk.
fn dump(command: &mut Command, file: &Path) -> Result<(), Failure> {
    let failed = |verb: &str, path: &Path, error: &io::Error| {
        Failure::failed(format!("failed to {verb} '{}': {error}", path.display()))
    };
    let whole = Whole::at(file, 0o600).map_err(|error| failed("create", file, &error))?;
    let output = whole.file().try_clone().map_err(|error| failed("write", file, &error))?;
    let program = command.get_program().to_string_lossy().into_owned();
    let done = command.stdin(Stdio::null()).stdout(output).stderr(Stdio::piped()).output();
    let why = match done {
        Ok(done) if done.status.success() => {
            let placed = whole.place(Survives::PowerCut);
            return placed.map_err(|error| failed("write", file, &error));
        }
        Ok(done) => format!("{program}: {}", String::from_utf8_lossy(&done.stderr).trim()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            format!("failed to run {program}: {error}; try: apt install postgresql-client")
        }
        Err(error) => format!("failed to run {program}: {error}"),
    };
    Err(Failure::failed(why))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn file_is_replaced_by_a_complete_backup_alone() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("fleet.dump");
        dump(&mut shell("echo first"), &file).unwrap();
        let failure = dump(&mut shell("echo half; echo broken >&2; exit 1"), &file).unwrap_err();
        assert_eq!(failure.message(), "sh: broken");
        assert_eq!(fs::read_to_string(&file).unwrap(), "first\n");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let missing = dump(&mut Command::new("/nonexistent/pg_dump"), &file).unwrap_err();
        assert!(missing.message().contains("postgresql-client"), "{missing:?}");
    }

    #[test]
    fn server_is_verified_as_by_the_fleet_service() {
        let root = tempfile::tempdir().unwrap();
        let files = Files::of(&Scope::system(root.path()));
        let url = "postgresql://archivist@db.example/archive";
        files.write(url, "web2", Some("hunter 2"), None).unwrap();
        let of = |url: &str| variables(url, &files).unwrap();
        let tcp = [
            ("PGPASSWORD", "hunter 2".to_owned()),
            ("PGSSLMODE", "verify-full".to_owned()),
            ("PGSSLROOTCERT", AUTHORITIES.to_owned()),
        ];
        assert_eq!(of(url), tcp);
        assert_eq!(of("postgresql://%2Frun%2Fpostgresql/archive"), tcp[..1]);
    }
}
