//! Reading the files of personas, and the accounts of the users that may use them.

use crate::engine::facts::{PersonaFiles, UserAccount};
use archivist_core::model::{COOKIES, PersonaName};
use nix::unistd::{Uid, User, getgrouplist};
use std::ffi::CString;
use std::io;
use std::path::Path;
use std::str::FromStr;

/// Reads the files of a persona in the directory of all personas.
pub fn read(personas: &Path, name: &PersonaName) -> PersonaFiles {
    let directory = personas.join(name.as_str());
    // Not through a link: the directory is mounted for a hook.
    let is_directory = directory.symlink_metadata().is_ok_and(|kind| kind.is_dir());
    let has_cookies = directory.join(COOKIES).symlink_metadata().is_ok_and(|kind| kind.is_file());
    PersonaFiles {
        is_directory,
        has_cookies,
        audience: list(&personas.join(name.list())),
        settings: list(&personas.join(name.settings())),
    }
}

/// The users or the settings of a persona; a missing file is an empty list.
fn list<T>(path: &Path) -> Result<T, String>
where
    T: Default + FromStr<Err: std::fmt::Display>,
{
    match std::fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(T::default()),
        Err(error) => Err(format!("failed to read '{}': {error}", path.display())),
        Ok(text) => text.parse().map_err(|error| format!("'{}': {error}", path.display())),
    }
}

/// The account of a user, see passwd(5) and nsswitch.conf(5).
pub fn account(uid: u32) -> UserAccount {
    let Ok(Some(user)) = User::from_uid(Uid::from_raw(uid)) else {
        return UserAccount { name: uid.to_string(), groups: Vec::new() };
    };
    let name = CString::new(user.name.clone()).unwrap_or_default();
    let groups = getgrouplist(&name, user.gid).unwrap_or_default();
    UserAccount { name: user.name, groups: groups.into_iter().map(|gid| gid.as_raw()).collect() }
}
