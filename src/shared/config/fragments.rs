//! Step one: which files say something, and their text. The main file is the one of the strongest
//! directory that has it; drop-ins of all directories are read after it, sorted by name, where a
//! name in a stronger directory hides the same name in weaker ones and a link to /dev/null hides
//! it altogether (systemd-system.conf(5) has the same rules).

use super::{ConfigError, Scope};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A file with its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment {
    pub path: PathBuf,
    pub text: String,
}

/// Reads the files of `scope`, the weakest first. No file at all is fine; one that is there and
/// cannot be read is an error.
pub fn read(scope: &Scope) -> Result<Vec<Fragment>, ConfigError> {
    let dirs = scope.config_dirs();
    let name = scope.config_name();
    let mut fragments = Vec::new();
    for dir in dirs.iter().rev() {
        if let Some(fragment) = read_file(&dir.join(&name))? {
            fragments.push(fragment);
            break;
        }
    }
    let drop_ins = liboverdrop::scan(&dirs, format!("{name}.d"), &["conf"], true);
    for path in drop_ins.into_values() {
        fragments.extend(read_file(&path)?);
    }
    Ok(fragments)
}

fn read_file(path: &Path) -> Result<Option<Fragment>, ConfigError> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            return Err(ConfigError::one(format!(
                "failed to read '{}': {error}",
                path.display()
            )));
        }
    };
    let text = text(bytes, path)?;
    Ok(Some(Fragment {
        path: path.to_owned(),
        text,
    }))
}

/// The content of the file `path` as text, or where it is none.
pub fn text(bytes: Vec<u8>, path: &Path) -> Result<String, ConfigError> {
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + good.iter().filter(|b| **b == b'\n').count();
        ConfigError::one(format!(
            "{}:{line}: not UTF-8 text; save the file as UTF-8",
            path.display()
        ))
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
    fn strongest_main_file_then_drop_ins_by_name() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), "usr/lib/archivist/archivist.conf", b"vendor");
        write(root.path(), "etc/archivist/archivist.conf", b"admin");
        write(
            root.path(),
            "usr/lib/archivist/archivist.conf.d/50-b.conf",
            b"hidden",
        );
        write(
            root.path(),
            "etc/archivist/archivist.conf.d/50-b.conf",
            b"b",
        );
        write(
            root.path(),
            "run/archivist/archivist.conf.d/10-a.conf",
            b"a",
        );
        write(
            root.path(),
            "run/archivist/archivist.conf.d/60-c.conf",
            b"masked",
        );
        write(root.path(), "run/archivist/archivist.conf.d/README", b"no");
        std::os::unix::fs::symlink(
            "/dev/null",
            root.path().join("etc/archivist/archivist.conf.d/60-c.conf"),
        )
        .unwrap();
        let texts: Vec<_> = read(&Scope::system(root.path()))
            .unwrap()
            .into_iter()
            .map(|f| f.text)
            .collect();
        assert_eq!(texts, ["admin", "a", "b"]);
    }

    #[test]
    fn an_instance_has_files_of_its_own() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), "etc/archivist/archivist.conf", b"first");
        write(root.path(), "etc/archivist/archivist-news.conf", b"news");
        let scope = Scope {
            instance: Some("news".into()),
            ..Scope::system(root.path())
        };
        let fragments = read(&scope).unwrap();
        assert_eq!(fragments.len(), 1);
        assert_eq!(fragments[0].text, "news");
    }

    #[test]
    fn bytes_that_are_no_text_are_located() {
        let root = tempfile::tempdir().unwrap();
        write(
            root.path(),
            "etc/archivist/archivist.conf",
            b"[Hooks]\n\xff\n",
        );
        let error = read(&Scope::system(root.path())).unwrap_err().to_string();
        assert!(error.contains("archivist.conf:2: not UTF-8"), "{error}");
    }
}
