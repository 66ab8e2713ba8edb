//! The one way to write a whole file: readers see the old content or the new one, complete. Until then the
//! content is in `.NAME.part` of the same directory, which a later writer replaces if this one is killed.
//!
//! A symbolic link with the name of the file is replaced, not followed.

use super::beneath::Directory;
use nix::sys::stat::fstat;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::Path;

/// What a file must survive as soon as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survives {
    /// The end of the process alone. For files that a later run or boot writes again, or that syncfs(2) covers.
    Kill,
    /// A power cut, too: content and name are on the disk.
    PowerCut,
}

/// A file that gets its name when it is complete. Without that it is removed on drop.
pub struct Whole {
    directory: Directory,
    name: OsString,
    part: OsString,
    file: File,
}

/// Writes a file with these permissions, less the umask.
///
/// # Errors
/// If the file cannot be written. The old one stays.
pub fn replace(path: &Path, content: &[u8], mode: u32, survives: Survives) -> io::Result<()> {
    Whole::at(path, mode)?.write(content, survives)
}

impl Whole {
    /// Begins to write the file `path`, whose directory must exist.
    pub fn at(path: &Path, mode: u32) -> io::Result<Whole> {
        let name = path.file_name().ok_or(ErrorKind::InvalidInput)?;
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        Whole::within(&Directory::open(parent.unwrap_or(Path::new(".")))?, name, mode)
    }

    /// Begins to write the file `name` of a directory that hooks may be able to write to.
    pub fn within(directory: &Directory, name: impl AsRef<OsStr>, mode: u32) -> io::Result<Whole> {
        let name = name.as_ref().to_owned();
        let mut part = OsString::from(".");
        part.push(&name);
        part.push(".part");
        // The file of a writer that was killed, or anything that a hook put there.
        directory.clear(&part)?;
        let file = step(|| directory.create_for_writing(&part, mode))?;
        Ok(Whole { directory: directory.here()?, name, part, file })
    }

    /// The file, which is open for reading and writing.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Writes the content, and gives the file its name.
    pub fn write(self, content: &[u8], survives: Survives) -> io::Result<()> {
        step(|| self.file().write_all(content))?;
        self.place(survives)
    }

    /// Gives the file its name, in place of another file.
    pub fn place(self, survives: Survives) -> io::Result<()> {
        self.give_name(survives, |directory, part, name| directory.rename(part, name))
    }

    /// Gives the file its name. Fails with EEXIST if another file has it.
    pub fn place_new(self, survives: Survives) -> io::Result<()> {
        self.give_name(survives, |directory, part, name| directory.link(part, name))
    }

    fn give_name(
        self,
        survives: Survives,
        name: impl FnOnce(&Directory, &OsStr, &OsStr) -> io::Result<()>,
    ) -> io::Result<()> {
        if survives == Survives::PowerCut {
            step(|| self.file.sync_all())?;
        }
        if !self.has_part() {
            return Err(io::Error::new(ErrorKind::ResourceBusy, "another process writes it, too"));
        }
        step(|| name(&self.directory, &self.part, &self.name))?;
        match survives {
            Survives::Kill => Ok(()),
            Survives::PowerCut => match step(|| self.directory.sync()) {
                // The file system has no such thing (fsync(2)).
                Err(error) if error.kind() == ErrorKind::InvalidInput => Ok(()),
                synced => synced,
            },
        }
    }

    /// Whether the temporary name is still that of this file.
    fn has_part(&self) -> bool {
        let own = fstat(&self.file).map(|own| (own.st_dev, own.st_ino));
        let found = self.directory.stat(&self.part);
        found.is_ok_and(|found| own == Ok((found.st_dev, found.st_ino)))
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        if self.has_part() {
            let _ = self.directory.unlink(&self.part);
        }
    }
}

/// Carries out a step, which fails if a test wants that.
fn step<T>(carry_out: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    #[cfg(test)]
    tests::fail()?;
    carry_out()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cell::Cell;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    thread_local! {
        /// Steps until one fails.
        static LEFT: Cell<usize> = const { Cell::new(usize::MAX) };
    }

    pub fn fail() -> io::Result<()> {
        let left = LEFT.get();
        LEFT.set(left.wrapping_sub(1));
        if left == 0 { Err(ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn survives() -> impl Strategy<Value = Survives> {
        prop_oneof![Just(Survives::Kill), Just(Survives::PowerCut)]
    }

    fn names(directory: &Path) -> Vec<OsString> {
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    }

    proptest! {
        #[test]
        fn content_is_the_old_or_the_new_one(
            old: Option<Vec<u8>>, new: Vec<u8>, survives in survives(), failing in 0..6usize, is_added: bool,
        ) {
            let top = tempfile::tempdir().unwrap();
            let path = top.path().join("file");
            if let Some(old) = &old {
                fs::write(&path, old).unwrap();
            }
            LEFT.set(failing);
            let written = Whole::at(&path, 0o640).and_then(|whole| {
                step(|| whole.file().write_all(&new))?;
                if is_added { whole.place_new(survives) } else { whole.place(survives) }
            });
            let steps = LEFT.replace(usize::MAX);
            let found = fs::read(&path).ok();
            let is_last = survives == Survives::PowerCut && failing == 4;
            let takes = !(is_added && old.is_some());
            if written.is_ok() || (is_last && takes) {
                prop_assert!(takes && (is_last || steps < 6), "{} {}", failing, steps);
                prop_assert_eq!(found.as_ref(), Some(&new));
                let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
                prop_assert_eq!(mode & !0o640, 0);
            } else {
                prop_assert_eq!(&found, &old);
            }
            prop_assert_eq!(names(top.path()).len(), usize::from(found.is_some()));
        }

        #[test]
        fn a_killed_writer_changes_nothing_and_stands_in_no_way(
            old: Vec<u8>, half: Vec<u8>, new: Vec<u8>, survives in survives(),
        ) {
            let top = tempfile::tempdir().unwrap();
            let path = top.path().join("file");
            replace(&path, &old, 0o600, survives).unwrap();
            let killed = Whole::at(&path, 0o600).unwrap();
            killed.file().write_all(&half).unwrap();
            std::mem::forget(killed);
            prop_assert_eq!(fs::read(&path).unwrap(), old);
            replace(&path, &new, 0o600, survives).unwrap();
            prop_assert_eq!(fs::read(&path).unwrap(), new);
            prop_assert_eq!(names(top.path()).len(), 1);
        }
    }

    #[test]
    fn only_the_newest_of_two_writers_succeeds() {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("file");
        let [first, second] = [(); 2].map(|()| Whole::at(&path, 0o600).unwrap());
        let refused = first.write(b"first", Survives::PowerCut).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ResourceBusy);
        second.write(b"second", Survives::PowerCut).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert_eq!(names(top.path()), ["file"]);
    }

    #[test]
    fn links_are_replaced_and_not_followed() {
        let top = tempfile::tempdir().unwrap();
        let at = |name: &str| top.path().join(name);
        fs::write(at("victim"), "precious").unwrap();
        for name in ["file", ".file.part"] {
            symlink("victim", at(name)).unwrap();
        }
        replace(&at("file"), b"secret", 0o600, Survives::Kill).unwrap();
        assert_eq!(fs::read(at("victim")).unwrap(), b"precious");
        let found = fs::symlink_metadata(at("file")).unwrap();
        assert!(found.is_file());
        assert_eq!(found.permissions().mode() & 0o777, 0o600);
    }
}
