//! Inspecting programs: digest, and the version of the Debian package. Reading a browser takes half
//! a second, so that this happens on a thread, and only for changed files.

use archivist_plugin::files::digest::sha256;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Largest file that is read, in bytes.
const READ_MAX: u64 = 1 << 30;
/// The database of dpkg(1).
pub const DPKG: &str = "/var/lib/dpkg";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InspectedProgram {
    pub name: String,
    pub path: PathBuf,
    pub stamp: String,
    pub sha256: Option<String>,
    /// Version of its Debian package.
    pub version: Option<String>,
}

/// Size, time and inode, to recognize a changed file without reading it; empty if the file is
/// missing.
pub fn stamp(path: &Path) -> String {
    match fs::metadata(path) {
        Ok(found) => format!("{} {} {}", found.size(), found.mtime(), found.ino()),
        Err(_) => String::new(),
    }
}

/// Inspects programs, by name and path. `dpkg` is the database of dpkg(1), see [`DPKG`].
pub fn look(programs: &[(String, PathBuf)], dpkg: &Path) -> Vec<InspectedProgram> {
    let versions = versions(programs, dpkg);
    let seen = programs.iter().map(|(name, path)| InspectedProgram {
        name: name.clone(),
        path: path.clone(),
        stamp: stamp(path),
        sha256: digest(path).ok(),
        version: versions.get(path).cloned(),
    });
    seen.collect()
}

/// SHA-256 of a regular file. Hooks may write to its directory: opening a pipe must not block.
fn digest(path: &Path) -> io::Result<String> {
    let file = File::options().read(true).custom_flags(nix::libc::O_NONBLOCK).open(path)?;
    let found = file.metadata()?;
    if !found.is_file() || found.len() > READ_MAX {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    sha256(file.take(READ_MAX)).map(|(sum, _)| sum)
}

/// Versions of the packages that own these files, as dpkg(1) knows them.
fn versions(programs: &[(String, PathBuf)], dpkg: &Path) -> HashMap<PathBuf, String> {
    // A package may name the path before the merge of /usr, or the target of a link.
    let mut wanted: HashMap<Vec<u8>, Vec<&PathBuf>> = HashMap::new();
    for (_, path) in programs {
        for real in [Some(path.clone()), path.canonicalize().ok()].into_iter().flatten() {
            let text = real.to_string_lossy().into_owned();
            if let Some(old) = text
                .strip_prefix("/usr")
                .filter(|old| old.starts_with("/bin/") || old.starts_with("/sbin/"))
            {
                wanted.entry(old.into()).or_default().push(path);
            }
            wanted.entry(text.into()).or_default().push(path);
        }
    }
    let mut owners: HashMap<String, Vec<&PathBuf>> = HashMap::new();
    for entry in fs::read_dir(dpkg.join("info")).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(package) = name.strip_suffix(".list") else {
            continue;
        };
        let Ok(text) = fs::read(entry.path()) else {
            continue;
        };
        for paths in text.split(|byte| *byte == b'\n').filter_map(|line| wanted.get(line)) {
            owners.entry(package.to_owned()).or_default().extend(paths);
        }
    }
    let mut versions = HashMap::new();
    let Ok(status) = File::open(dpkg.join("status")) else {
        return versions;
    };
    let (mut name, mut arch, mut version) = (String::new(), String::new(), String::new());
    for line in BufReader::new(status).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        match line.split_once(": ") {
            Some(("Package", value)) => name = value.to_owned(),
            Some(("Architecture", value)) => arch = value.to_owned(),
            Some(("Version", value)) => version = value.to_owned(),
            _ if line.is_empty() => {
                for key in [name.clone(), format!("{name}:{arch}")] {
                    for path in owners.remove(&key).unwrap_or_default() {
                        versions.insert(path.clone(), version.clone());
                    }
                }
            }
            _ => {}
        }
    }
    versions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inspection_finds_digest_and_package() {
        let top = tempfile::tempdir().unwrap();
        let dpkg = top.path().join("dpkg");
        fs::create_dir_all(dpkg.join("info")).unwrap();
        let program = top.path().join("tool-2");
        fs::write(&program, "abc").unwrap();
        let link = top.path().join("tool");
        std::os::unix::fs::symlink(&program, &link).unwrap();
        let list = format!("/.\n/usr\n{}\n", program.display());
        fs::write(dpkg.join("info/tools:amd64.list"), list).unwrap();
        let status = "Package: other\nVersion: 1\nArchitecture: amd64\n\n\
                      Package: tools\nArchitecture: amd64\nVersion: 2.5-1\nDescription: x\n y\n\n";
        fs::write(dpkg.join("status"), status).unwrap();

        let programs = [("tool".to_owned(), link), ("none".to_owned(), top.path().join("x"))];
        let seen = look(&programs, &dpkg);
        assert_eq!(seen[0].version.as_deref(), Some("2.5-1"));
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(seen[0].sha256.as_deref(), Some(abc));
        assert!(seen[0].stamp.starts_with("3 "));
        let nothing = (&seen[1].version, &seen[1].sha256, seen[1].stamp.as_str());
        assert_eq!(nothing, (&None, &None, ""));
    }

    #[test]
    fn only_regular_files_are_read() {
        let top = tempfile::tempdir().unwrap();
        let pipe = top.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(digest(&pipe).is_err());
        assert!(digest(top.path()).is_err());
    }
}
