//! Writes the worker's files in directories that hooks can change: follows no links, and readers
//! see either the old or the new file, complete.

use crate::WorkerError;
use archivist_plugin::Directory;
use archivist_plugin::files::whole::{Survives, Whole};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;

fn failed(directory: &Directory, name: &str) -> impl Fn(io::Error) -> WorkerError {
    let path = directory.path().join(name);
    move |source| WorkerError::File { verb: "write", path: path.clone(), source }
}

/// Replaces the file `name` of `directory` by one that contains `text`. Only one writer at a time
/// is supported.
pub fn replace(directory: &Directory, name: &str, text: &str) -> Result<(), WorkerError> {
    let write = || Whole::within(directory, name, 0o640)?.write(text.as_bytes(), Survives::Kill);
    let written = match write() {
        Err(error) if error.kind() == ErrorKind::IsADirectory => {
            directory.clear(name).and_then(|()| write())
        }
        other => other,
    };
    written.map_err(failed(directory, name))
}

/// Writes all modified data of the file system of `directory` to its disk. Hooks do not sync their
/// files, and a result that is reported as complete must survive a power cut.
pub fn sync_filesystem(directory: &Directory) -> io::Result<()> {
    Ok(nix::unistd::syncfs(directory)?)
}

/// Opens `name` for reading and appending. Replaces a file that another user created.
pub fn open_to_append(directory: &Directory, name: &str) -> Result<File, WorkerError> {
    let open = || {
        if let Ok(file) = directory.append(name)
            && is_own_user(file.metadata()?.uid())
        {
            return Ok(file);
        }
        directory.clear(name)?;
        directory.create(name, 0o640)
    };
    open().map_err(failed(directory, name))
}

/// Whether this is the worker's user. Hooks have another user, except in the user scope.
pub fn is_own_user(user: u32) -> bool {
    user == nix::unistd::geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::symlink;

    #[test]
    fn planted_links_and_directories_are_replaced_and_not_followed() {
        let outside = tempfile::tempdir().unwrap();
        let victim = outside.path().join("victim");
        let precious = || fs::read_to_string(&victim).unwrap();
        fs::write(&victim, "precious").unwrap();
        let directory = tempfile::tempdir().unwrap();
        let held = Directory::open(directory.path()).unwrap();
        let at = |name: &str| directory.path().join(name);
        let read = || fs::read_to_string(at("index.html")).unwrap();

        symlink(&victim, at(".index.html.part")).unwrap();
        symlink(&victim, at("index.html")).unwrap();
        replace(&held, "index.html", "one").unwrap();
        assert_eq!((read().as_str(), precious().as_str()), ("one", "precious"));

        fs::remove_file(at("index.html")).unwrap();
        fs::create_dir_all(at("index.html/full")).unwrap();
        fs::create_dir_all(at(".index.html.part/full")).unwrap();
        replace(&held, "index.html", "two").unwrap();
        assert_eq!(read(), "two");
        // The two directories were renamed, and no other file is left.
        let names = fs::read_dir(directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let (aside, rest): (Vec<_>, Vec<_>) =
            names.partition(|name| name.starts_with(".replaced-"));
        assert_eq!((aside.len(), rest), (2, vec!["index.html".to_owned()]));

        for plant in [
            symlink(&victim, at("log")),
            nix::unistd::mkfifo(&at("fifo"), nix::sys::stat::Mode::S_IRWXU).map_err(Into::into),
        ] {
            plant.unwrap();
        }
        for name in ["log", "fifo"] {
            open_to_append(&held, name).unwrap().write_all(b"line\n").unwrap();
            assert_eq!(fs::read_to_string(at(name)).unwrap(), "line\n");
        }
        assert_eq!(precious(), "precious");
    }

    #[test]
    fn existing_log_is_appended_to() {
        let directory = tempfile::tempdir().unwrap();
        let held = Directory::open(directory.path()).unwrap();
        let path = directory.path().join("log");
        for line in ["one\n", "two\n"] {
            open_to_append(&held, "log").unwrap().write_all(line.as_bytes()).unwrap();
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntwo\n");
    }
}
