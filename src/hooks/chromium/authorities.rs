//! The certificate authorities that an administrator added to the machine. Chromium trusts its own
//! list of authorities, and those of an NSS database in its home directory, but not the list of the
//! machine.

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
}
