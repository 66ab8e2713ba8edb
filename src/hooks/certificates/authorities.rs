//! The certificate authorities that an administrator added to the machine. Chromium trusts its own
//! list of authorities, and those of an NSS database in its home directory, but not the list of the
//! machine.

use crate::process::finding::Finding;
use crate::process::program::is_installed;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where `update-ca-certificates(8)` finds local authorities.
pub const DIRECTORY: &str = "/usr/local/share/ca-certificates";
/// Authorities that are added; each takes a run of certutil.
const AUTHORITIES_MAX: usize = 100;
/// Depth of directories that are searched.
const LEVELS_MAX: usize = 3;

/// The files of local authorities below `directory`, in the order of their names.
pub fn local(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    collect(directory, LEVELS_MAX, &mut found);
    found.sort();
    found.truncate(AUTHORITIES_MAX);
    found
}

fn collect(directory: &Path, levels: usize, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()).take(10 * AUTHORITIES_MAX) {
        if path.extension().is_some_and(|suffix| suffix == "crt") && path.is_file() {
            found.push(path);
        } else if levels > 0 && path.is_dir() {
            collect(&path, levels - 1, found);
        }
    }
}

/// Adds the authorities to the NSS database that a browser with this home directory reads.
pub fn add(authorities: &[PathBuf], home: &Path) -> io::Result<()> {
    let name = database(home)?;
    for (number, file) in authorities.iter().enumerate() {
        let path = file.display().to_string();
        let nickname = format!("local {number}");
        // C: trusted to issue certificates of servers.
        certutil(&name, &["-A", "-t", "C,,", "-n", &nickname, "-i", &path])?;
    }
    Ok(())
}

/// The NSS database that a browser with this home directory reads, as NSS names it; creates it.
pub fn database(home: &Path) -> io::Result<String> {
    let database = home.join(".pki/nssdb");
    let name = format!("sql:{}", database.display());
    if !database.join("cert9.db").exists() {
        fs::create_dir_all(&database)?;
        certutil(&name, &["-N", "--empty-password"])?;
    }
    Ok(name)
}

/// Chromium's message about a certificate of an authority that it does not know.
const UNKNOWN_AUTHORITY: &str = "ERR_CERT_AUTHORITY_INVALID";
/// Why chromium does not know an authority of the machine.
const NO_CERTUTIL: &str =
    "chromium trusts no authority of the machine without certutil: apt install libnss3-tools";

/// Appends the reason to the message of a failure, if the machine has authorities that chromium does
/// not know because certutil is not installed.
pub fn with_explanation(finding: Finding) -> Finding {
    explain(finding, Path::new(DIRECTORY), || is_installed("certutil"))
}

fn explain(finding: Finding, directory: &Path, has_certutil: impl Fn() -> bool) -> Finding {
    let is_unknown = finding.output_str.contains(UNKNOWN_AUTHORITY);
    if is_unknown && !local(directory).is_empty() && !has_certutil() {
        return finding.because(NO_CERTUTIL);
    }
    finding
}

fn certutil(database: &str, arguments: &[&str]) -> io::Result<()> {
    let mut command = Command::new("certutil");
    let done = command.args(["-d", database]).args(arguments).output()?;
    if done.status.success() {
        return Ok(());
    }
    let reason = String::from_utf8_lossy(&done.stderr);
    let line = reason.lines().next().unwrap_or("no reason given");
    Err(io::Error::other(format!("certutil: {line}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_authorities_are_files_with_the_suffix_of_debian() {
        let top = tempfile::tempdir().unwrap();
        fs::create_dir_all(top.path().join("company")).unwrap();
        for name in ["b.crt", "company/a.crt", "c.pem", "readme"] {
            fs::write(top.path().join(name), "x").unwrap();
        }
        let names: Vec<_> = local(top.path())
            .iter()
            .map(|path| path.strip_prefix(top.path()).unwrap().to_owned())
            .collect();
        assert_eq!(names, [Path::new("b.crt"), Path::new("company/a.crt")]);
        assert!(local(Path::new("/nonexistent")).is_empty());
    }

    #[test]
    fn an_authority_that_chromium_cannot_know_is_explained() {
        let top = tempfile::tempdir().unwrap();
        let said = |text: &str, has_certutil| {
            explain(Finding::failed(text), top.path(), || has_certutil).output_str
        };
        let unknown = "failed to load the page in chromium: net::ERR_CERT_AUTHORITY_INVALID";
        assert_eq!(said(unknown, false), unknown);
        fs::write(top.path().join("company.crt"), "x").unwrap();
        assert_eq!(said(unknown, false), format!("{unknown}; {NO_CERTUTIL}"));
        assert_eq!(said(unknown, true), unknown);
        assert_eq!(said("net::ERR_TIMED_OUT", false), "net::ERR_TIMED_OUT");
    }
}
