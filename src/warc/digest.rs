//! Digests of bodies and files, as WARC and WACZ write them: `sha256:` and hex digits.

use sha2::{Digest, Sha256};
use std::io::{self, Read};

/// Bytes of a digest as text.
pub(crate) const TEXT_BYTES: usize = "sha256:".len() + 64;

pub(crate) fn text(hash: Sha256) -> String {
    let hex: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

/// The 64 hex digits of a digest in the notation of this program.
pub(crate) fn hex(digest: &str) -> Option<&str> {
    let hex = digest.strip_prefix("sha256:")?;
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    (hex.len() == 64 && hex.bytes().all(is_digit)).then_some(hex)
}

/// The digest of some bytes.
#[must_use]
pub fn of(bytes: &[u8]) -> String {
    text(Sha256::new_with_prefix(bytes))
}

pub(crate) fn read(mut source: impl Read) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut chunk = vec![0; 64 << 10];
    loop {
        match source.read(&mut chunk) {
            Ok(0) => return Ok(text(hash)),
            Ok(count) => hash.update(&chunk[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Whether a digest of this program and one in a file are the same. `None` if that of the file has
/// another algorithm. Other programs write SHA-256 in hex or base32 (RFC 4648).
pub(crate) fn agree(ours: &str, theirs: &str) -> Option<bool> {
    let (algorithm, value) = theirs.trim().split_once(':')?;
    if !matches!(algorithm.to_ascii_lowercase().as_str(), "sha256" | "sha-256") {
        return None;
    }
    let hex = &ours["sha256:".len()..];
    Some(value.eq_ignore_ascii_case(hex) || base32(value).is_some_and(|value| value == hex))
}

/// The hex digits of a value in base32 with 256 bits.
fn base32(value: &str) -> Option<String> {
    let value = value.trim_end_matches('=');
    if value.len() != 52 {
        return None;
    }
    let mut bits: u32 = 0;
    let mut count = 0;
    let mut bytes = Vec::with_capacity(33);
    for letter in value.bytes() {
        let digit = match letter.to_ascii_uppercase() {
            letter @ b'A'..=b'Z' => letter - b'A',
            digit @ b'2'..=b'7' => digit - b'2' + 26,
            _ => return None,
        };
        bits = bits << 5 | u32::from(digit);
        count += 5;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_agree_in_all_notations() {
        let ours = of(b"hello");
        assert_eq!(ours.len(), TEXT_BYTES);
        let hex = "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
        assert_eq!(ours, hex);
        let base32 = "sha256:FTZE3OS7WCRQ4JXIHMVMLOPCTYNRMHS4D6TUEXTTAQZWFE4LTASA====";
        for theirs in [hex, &hex.to_uppercase(), &hex.replace("256", "-256"), base32] {
            assert_eq!(agree(&ours, theirs), Some(true), "{theirs}");
        }
        for theirs in ["sha256:00", &hex.replace("2c", "2d"), "sha256:"] {
            assert_eq!(agree(&ours, theirs), Some(false), "{theirs}");
        }
        for theirs in ["sha1:VL2MMHO4YXUKFWV63YHTWSBM3GXKSQ2N", "", "md5:x"] {
            assert_eq!(agree(&ours, theirs), None, "{theirs}");
        }
    }
}
