//! First step: finds and reads the files. The main file is that of the strongest directory that has
//! one. Drop-ins of all directories follow, sorted by name; a name in a stronger directory hides
//! the same name in weaker ones, and a link to /dev/null masks it (the rules of
//! systemd-system.conf(5)).

use super::{ConfigError, Scope};
use archivist_core::text::{Location, Problem};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment {
    pub path: PathBuf,
    pub text: String,
}

/// Reads the files of `scope`, weakest first. Missing files are fine; an unreadable file is an
/// error, except for a user other than root: files with secrets are for root alone, and what such a
/// user needs to know is in others (see [`private`]).
pub fn read(scope: &Scope) -> Result<Vec<Fragment>, ConfigError> {
    let mut fragments = Vec::new();
    for path in paths(scope) {
        fragments.extend(read_file(&path)?);
    }
    Ok(fragments)
}

/// Returns the files that this process may not read.
pub fn private(scope: &Scope) -> Vec<PathBuf> {
    let mut paths = paths(scope);
    paths.retain(|path| std::fs::File::open(path).is_err_and(|error| is_private(&error)));
    paths
}

fn is_private(error: &std::io::Error) -> bool {
    error.kind() == ErrorKind::PermissionDenied && !nix::unistd::geteuid().is_root()
}

/// The paths of the files, weakest first.
fn paths(scope: &Scope) -> Vec<PathBuf> {
    let dirs = scope.config_dirs();
    let name = scope.config_name();
    let mains = dirs.iter().rev().map(|dir| dir.join(&name));
    // A broken link is no file; a file that cannot be examined is named when it is read.
    let mut mains = mains.filter(|path| !path.metadata().is_err_and(is_missing));
    let drop_ins = liboverdrop::scan(&dirs, format!("{name}.d"), &["conf"], true);
    mains.next().into_iter().chain(drop_ins.into_values()).collect()
}

fn is_missing(error: std::io::Error) -> bool {
    error.kind() == ErrorKind::NotFound
}

fn read_file(path: &Path) -> Result<Option<Fragment>, ConfigError> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound || is_private(&error) => {
            return Ok(None);
        }
        Err(error) => {
            let problem = Problem::of(path, format!("failed to read the file: {error}"));
            return Err(ConfigError::one(problem));
        }
    };
    let text = text(bytes, path).map_err(ConfigError::one)?;
    Ok(Some(Fragment { path: path.to_owned(), text }))
}

/// Returns the content of the file `path` as text, or the first line that is not UTF-8. A byte
/// order mark is skipped, as systemd does.
pub fn text(mut bytes: Vec<u8>, path: &Path) -> Result<String, Problem> {
    if bytes.starts_with("\u{feff}".as_bytes()) {
        bytes.drain(.."\u{feff}".len());
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + good.iter().filter(|b| **b == b'\n').count();
        let location =
            Location { file: path.to_owned(), line: u32::try_from(line).unwrap_or(u32::MAX) };
        Problem::at(&location, "not UTF-8 text; save the file as UTF-8")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn write(root: &Path, path: &str, text: &[u8]) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn a_byte_order_mark_is_skipped() {
        let path = Path::new("x");
        assert_eq!(text(b"\xef\xbb\xbf[Watch]".to_vec(), path).unwrap(), "[Watch]");
        assert!(text(b"a\n\xff".to_vec(), path).unwrap_err().text().starts_with("x:2: "));
    }

    #[test]
    fn strongest_main_file_then_drop_ins_by_name() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), "usr/lib/archivist/archivist.conf", b"vendor");
        write(root.path(), "etc/archivist/archivist.conf", b"admin");
        write(root.path(), "usr/lib/archivist/archivist.conf.d/50-b.conf", b"hidden");
        write(root.path(), "etc/archivist/archivist.conf.d/50-b.conf", b"b");
        write(root.path(), "run/archivist/archivist.conf.d/10-a.conf", b"a");
        write(root.path(), "run/archivist/archivist.conf.d/60-c.conf", b"masked");
        write(root.path(), "run/archivist/archivist.conf.d/README", b"no");
        std::os::unix::fs::symlink(
            "/dev/null",
            root.path().join("etc/archivist/archivist.conf.d/60-c.conf"),
        )
        .unwrap();
        let texts: Vec<_> =
            read(&Scope::system(root.path())).unwrap().into_iter().map(|f| f.text).collect();
        assert_eq!(texts, ["admin", "a", "b"]);
    }

    #[test]
    fn an_instance_has_files_of_its_own() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), "etc/archivist/archivist.conf", b"first");
        write(root.path(), "etc/archivist/archivist-news.conf", b"news");
        let scope = Scope { instance: Some("news".into()), ..Scope::system(root.path()) };
        let fragments = read(&scope).unwrap();
        assert_eq!(fragments.len(), 1);
        assert_eq!(fragments[0].text, "news");
    }

    #[test]
    fn invalid_utf8_is_located() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), "etc/archivist/archivist.conf", b"[Hooks]\n\xff\n");
        let error = read(&Scope::system(root.path())).unwrap_err().to_string();
        assert!(error.contains("archivist.conf:2: not UTF-8"), "{error}");
    }
}
