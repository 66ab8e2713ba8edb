//! What a process gives up before it parses files whose content is foreign. The wall around the process is
//! a unit with the user of such readers (`units/system/archivist-import-.service.d`); this holds without
//! one, too.

use nix::sys::prctl::set_no_new_privs;
use nix::sys::resource::{Resource, setrlimit};
use nix::unistd::setsid;
use std::io;

/// Name of the units of readers, up to the number of each.
pub const READER_UNITS: &str = "archivist-import-";
/// User and group of readers that root starts. They own no file.
pub const READER_USER: &str = "archivist-import";
/// Memory of a reader of one file, which the kernel limits, in bytes.
pub const READER_MEMORY_MAX_BYTES: u64 = 256 << 20;
/// Memory of a reader that compares texts, pictures or recordings, in bytes.
pub const COMPARER_MEMORY_MAX_BYTES: u64 = 1 << 30;
/// Time of the processor that a reader may use, in seconds.
const CPU_MAX_SECS: u64 = 3600;

/// Gives up the terminal, later privileges, memory above `memory` bytes, and time without a limit.
///
/// # Errors
/// If the kernel refuses a limit.
pub fn confine(memory: u64) -> io::Result<()> {
    // Fails for the leader of a session, as the process of a unit is, which has no terminal.
    let _ = setsid();
    set_no_new_privs()?;
    for (resource, most) in [
        (Resource::RLIMIT_AS, memory),
        (Resource::RLIMIT_CPU, CPU_MAX_SECS),
        (Resource::RLIMIT_CORE, 0),
    ] {
        setrlimit(resource, most, most)?;
    }
    Ok(())
}
