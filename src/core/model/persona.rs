//! Names of personas. A persona is the state that a browser keeps between visits, and cookies.

use std::fmt;
use std::str::FromStr;

/// A persona name, safe as a file name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PersonaName(String);

/// File with the cookies of a persona in its directory, in Netscape format, which curl and wget
/// read.
pub const COOKIES: &str = "cookies.txt";

/// Longest name in bytes.
const LENGTH_MAX: usize = 64;

/// Error for an invalid persona name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' cannot be the name of a persona: it has 1 to 64 letters, digits, '_', '-' and '.', and begins with none of the last two"
)]
pub struct BadPersonaName(String);

impl PersonaName {
    pub fn usual() -> PersonaName {
        PersonaName("Default".to_owned())
    }

    /// Returns the name, which is also the name of its directory.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name of the file next to the directory that lists its [`super::Audience`]. No
    /// persona can have this name.
    pub fn list(&self) -> String {
        format!(".{}.allow", self.0)
    }

    /// Returns the name of the file next to the directory with its [`super::PersonaSettings`]. The
    /// copies of the directory that hooks read do not have them.
    pub fn settings(&self) -> String {
        format!(".{}.settings", self.0)
    }
}

impl FromStr for PersonaName {
    type Err = BadPersonaName;

    fn from_str(text: &str) -> Result<PersonaName, BadPersonaName> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        let good = (1..=LENGTH_MAX).contains(&text.len())
            && text.chars().all(plain)
            && !text.starts_with(['-', '.']);
        if good { Ok(PersonaName(text.to_owned())) } else { Err(BadPersonaName(text.to_owned())) }
    }
}

impl fmt::Display for PersonaName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_name_is_one_part_of_a_path(text in "[-._a-zA-Z0-9/ \\x00é]{0,8}|\\PC{0,70}") {
            if let Ok(name) = text.parse::<PersonaName>() {
                let mut parts = std::path::Path::new(name.as_str()).components();
                prop_assert!(matches!(parts.next(), Some(std::path::Component::Normal(_))));
                prop_assert!(parts.next().is_none() && !text.contains(['/', '\0', ' ']));
            }
        }
    }

    #[test]
    fn names() {
        for good in ["Default", "work-2", "a.b_c", &"x".repeat(64)] {
            assert_eq!(good.parse::<PersonaName>().unwrap().as_str(), good);
        }
        for bad in ["", ".", "..", ".x", "-x", "a/b", "a b", &"x".repeat(65)] {
            assert!(bad.parse::<PersonaName>().is_err(), "{bad}");
        }
        assert_eq!("Default".parse(), Ok(PersonaName::usual()));
        assert!(PersonaName::usual().list().parse::<PersonaName>().is_err());
        assert!(PersonaName::usual().settings().parse::<PersonaName>().is_err());
    }
}
