//! Digests of files.

use sha2::{Digest, Sha256};
use std::io::{self, BufReader, Read};

/// Bytes that are read at once.
const CHUNK: usize = 256 << 10;

/// Returns the SHA-256, in hex, and the length of the rest of a stream.
///
/// # Errors
/// If the stream cannot be read.
pub fn sha256(from: impl Read) -> io::Result<(String, u64)> {
    let mut hash = Sha256::new();
    let length = io::copy(&mut BufReader::with_capacity(CHUNK, from), &mut hash)?;
    Ok((format!("{:x}", hash.finalize()), length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_is_that_of_sha256sum() {
        let (sum, length) = sha256(&b"abc"[..]).unwrap();
        assert_eq!(sum, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(length, 3);
        let long = vec![7; 3 * CHUNK + 1];
        assert_eq!(sha256(&long[..]).unwrap().1, long.len() as u64);
    }
}
