//! Compares versions of programs as far as needed to detect one that is too old.

/// Whether `version` is at least `least`. `None` if one of them has no leading number, in which
/// case the program should be accepted.
///
/// Ignores Debian's epoch (`2:1.0`), a leading `v`, and everything after the dotted numbers.
/// Missing numbers are zero, so 5 equals 5.0.0.
pub fn reaches(version: &str, least: &str) -> Option<bool> {
    let (mut version, mut least) = (numbers(version)?, numbers(least)?);
    let length = version.len().max(least.len());
    version.resize(length, 0);
    least.resize(length, 0);
    Some(version >= least)
}

fn numbers(text: &str) -> Option<Vec<u64>> {
    let trimmed = text.trim();
    let without_epoch = match trimmed.split_once(':') {
        Some((epoch, rest)) if epoch.bytes().all(|byte| byte.is_ascii_digit()) => rest,
        _ => trimmed,
    };
    let version = without_epoch.strip_prefix(['v', 'V']).unwrap_or(without_epoch);
    let end = version.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(version.len());
    let parts = version[..end].split('.').take_while(|part| !part.is_empty());
    let numbers: Vec<u64> = parts.map(|part| part.parse().unwrap_or(u64::MAX)).collect();
    (!numbers.is_empty()).then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn versions_of_debian_and_npm_are_compared() {
        let table = [
            ("2:5.3.0-1+b1", "5.0.0", Some(true)),
            ("21.0.9+10-1~deb13u1", "11.0.0", Some(true)),
            ("8u432-b06-2", "11.0.0", Some(false)),
            ("1.9.9", "2.0.0", Some(false)),
            ("v2", "2.0.0", Some(true)),
            ("2.0", "2.0.1", Some(false)),
            ("10.0", "9.9", Some(true)),
            ("99999999999999999999999", "3", Some(true)),
            ("", "1", None),
            ("git-abc", "1", None),
            ("1.0", "latest", None),
        ];
        for (version, least, want) in table {
            assert_eq!(reaches(version, least), want, "{version} for {least}");
        }
    }

    proptest! {
        #[test]
        fn version_reaches_itself_but_not_the_next(parts in prop::collection::vec(0u32..1000, 1..5), tail in "[-+~][a-z0-9.]{0,8}") {
            let text = |parts: &[u32]| parts.iter().map(u32::to_string).collect::<Vec<_>>().join(".");
            let (version, mut next) = (text(&parts), parts.clone());
            *next.last_mut().unwrap() += 1;
            let shown = format!("{version}{tail}");
            prop_assert_eq!(reaches(&shown, &version), Some(true));
            prop_assert_eq!(reaches(&shown, &text(&next)), Some(false));
        }

        #[test]
        fn any_text_is_compared(version in ".{0,30}", least in ".{0,30}") {
            let _ = reaches(&version, &least);
        }
    }
}
