//! Sealed files in memory, for the standard input of units.

use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use std::fs::File;
use std::io::{Seek, Write};
use std::os::fd::OwnedFd;

/// Returns a file without a name that contains `bytes` and cannot be changed (memfd_create(2),
/// F_ADD_SEALS).
pub fn sealed(bytes: &[u8]) -> std::io::Result<OwnedFd> {
    let memory = memfd_create(
        "assignment",
        MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING,
    )?;
    let mut file = File::from(memory);
    file.write_all(bytes)?;
    file.rewind()?;
    let seals = SealFlag::F_SEAL_SEAL
        | SealFlag::F_SEAL_SHRINK
        | SealFlag::F_SEAL_GROW
        | SealFlag::F_SEAL_WRITE;
    fcntl(&file, FcntlArg::F_ADD_SEALS(seals))?;
    Ok(file.into())
}
