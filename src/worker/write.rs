//! Files of ours in directories that hooks may write: nothing that a hook puts in their place is
//! followed, and who reads them sees the old file or the new one, whole.

use super::WorkerError;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

const FLAGS: i32 = nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK;

fn failed(path: &Path) -> impl Fn(io::Error) -> WorkerError {
    move |source| WorkerError::File {
        verb: "write",
        path: path.to_owned(),
        source,
    }
}

/// Puts `text` into `directory` as the file `name`. One writer at a time.
pub fn replace(directory: &Path, name: &str, text: &str) -> Result<(), WorkerError> {
    let path = directory.join(name);
    let new = directory.join(format!(".{name}.new"));
    let write = || {
        // What is left of a writer that was killed, or what a hook put there.
        remove(&new)?;
        let mut options = File::options();
        options.write(true).create_new(true).mode(0o640);
        let mut file = options.custom_flags(FLAGS).open(&new)?;
        file.write_all(text.as_bytes())?;
        if fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir()) {
            remove(&path)?;
        }
        fs::rename(&new, &path)
    };
    write().map_err(failed(&path))
}

/// Returns when everything that was written to the file system of `directory` is on its disk, by
/// whomever: hooks do not see to that, and what is called done is there after a power cut.
pub fn settle(directory: &Path) -> io::Result<()> {
    Ok(nix::unistd::syncfs(File::open(directory)?)?)
}

/// Opens `path` for reading and appending, as an empty file when it is not one.
pub fn open_to_append(path: &Path) -> Result<File, WorkerError> {
    let mut options = File::options();
    options.read(true).append(true).mode(0o640);
    options.custom_flags(FLAGS);
    let open = || {
        if let Ok(file) = options.clone().create(true).open(path)
            && file.metadata()?.is_file()
        {
            return Ok(file);
        }
        remove(path)?;
        options.clone().create_new(true).open(path)
    };
    open().map_err(failed(path))
}

/// Removes whatever is there; a link and not what it leads to.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == ErrorKind::IsADirectory => fs::remove_dir_all(path),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_a_hook_planted_is_replaced_and_not_followed() {
        let outside = tempfile::tempdir().unwrap();
        let victim = outside.path().join("victim");
        let precious = || fs::read_to_string(&victim).unwrap();
        fs::write(&victim, "precious").unwrap();
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let read = || fs::read_to_string(at("index.html")).unwrap();

        symlink(&victim, at(".index.html.new")).unwrap();
        symlink(&victim, at("index.html")).unwrap();
        replace(directory.path(), "index.html", "one").unwrap();
        assert_eq!((read().as_str(), precious().as_str()), ("one", "precious"));

        fs::remove_file(at("index.html")).unwrap();
        fs::create_dir_all(at("index.html/full")).unwrap();
        fs::create_dir_all(at(".index.html.new/full")).unwrap();
        replace(directory.path(), "index.html", "two").unwrap();
        assert_eq!(read(), "two");
        assert_eq!(
            fs::read_dir(directory.path()).unwrap().count(),
            1,
            "nothing else is left"
        );

        for plant in [
            symlink(&victim, at("log")),
            nix::unistd::mkfifo(&at("fifo"), nix::sys::stat::Mode::S_IRWXU).map_err(Into::into),
        ] {
            plant.unwrap();
        }
        for name in ["log", "fifo"] {
            open_to_append(&at(name))
                .unwrap()
                .write_all(b"line\n")
                .unwrap();
            assert_eq!(fs::read_to_string(at(name)).unwrap(), "line\n");
        }
        assert_eq!(precious(), "precious");
    }

    #[test]
    fn an_earlier_log_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        for line in ["one\n", "two\n"] {
            open_to_append(&path)
                .unwrap()
                .write_all(line.as_bytes())
                .unwrap();
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntwo\n");
    }
}
