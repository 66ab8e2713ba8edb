//! Random names.

use std::io;

/// A token for a worker, or the identity of a directory: 128 random bits in hex.
///
/// # Errors
/// If the kernel has no random bytes.
pub fn token() -> io::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| io::Error::other(format!("failed to read random bytes: {error}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
