//! Users who may use a persona.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// Users and groups, by their ids, that may have a persona in their crawls. Root always may.
///
/// As text it has one entry per line: `everyone`, `user UID` or `group GID`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Audience {
    /// Whether crawls that come from the fleet's database may.
    pub fleet: bool,
    /// Whether every user of the machine may.
    pub everyone: bool,
    /// User ids (uid).
    pub users: BTreeSet<u32>,
    /// Group ids (gid); every member may.
    pub groups: BTreeSet<u32>,
}

/// A line that is not an entry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is neither 'everyone' nor 'fleet' nor 'user UID' nor 'group GID'")]
pub struct BadAudience(String);

/// Id that stands for a user in crawls that come from the fleet's database, which cannot prove who added
/// them. It is (uid_t) -1, which is the id of no user, see setreuid(2).
pub const FLEET: u32 = u32::MAX;

impl Audience {
    /// Returns whether the user `uid` may use the persona. `groups` returns all group ids of a
    /// user, and is called only if the answer depends on them.
    pub fn admits(&self, uid: u32, groups: impl FnOnce(u32) -> Vec<u32>) -> bool {
        if uid == FLEET {
            return self.fleet;
        }
        let named = uid == 0 || self.everyone || self.users.contains(&uid);
        let by_group = || groups(uid).iter().any(|gid| self.groups.contains(gid));
        named || (!self.groups.is_empty() && by_group())
    }
}

impl FromStr for Audience {
    type Err = BadAudience;

    fn from_str(text: &str) -> Result<Audience, BadAudience> {
        let mut audience = Audience::default();
        for line in text.lines().filter(|line| !line.is_empty()) {
            let bad = || BadAudience(line.to_owned());
            let id = |text: &str| text.parse::<u32>().map_err(|_| bad());
            match line.split_once(' ') {
                None if line == "everyone" => audience.everyone = true,
                None if line == "fleet" => audience.fleet = true,
                Some(("user", uid)) => drop(audience.users.insert(id(uid)?)),
                Some(("group", gid)) => drop(audience.groups.insert(id(gid)?)),
                _ => return Err(bad()),
            }
        }
        Ok(audience)
    }
}

impl fmt::Display for Audience {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.everyone {
            writeln!(f, "everyone")?;
        }
        if self.fleet {
            writeln!(f, "fleet")?;
        }
        for uid in &self.users {
            writeln!(f, "user {uid}")?;
        }
        for gid in &self.groups {
            writeln!(f, "group {gid}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn root_is_always_admitted_and_others_by_name_or_group() {
        let groups = |uid: u32| vec![uid, 50];
        let audience: Audience = "user 1000\n\ngroup 50\n".parse().unwrap();
        assert!(audience.admits(0, groups) && audience.admits(1000, |_| unreachable!()));
        assert!(audience.admits(1001, groups) && !audience.admits(1001, |_| vec![51]));
        let nobody = Audience::default();
        assert!(nobody.admits(0, groups) && !nobody.admits(1000, |_| unreachable!()));
        let all: Audience = "everyone".parse().unwrap();
        assert!(all.admits(1001, |_| unreachable!()));
        assert!(!all.admits(FLEET, groups) && !nobody.admits(FLEET, groups));
        let fleet: Audience = "fleet".parse().unwrap();
        assert!(fleet.admits(FLEET, groups) && !fleet.admits(1001, groups));
    }

    proptest! {
        #[test]
        fn a_damaged_list_admits_no_further_user(text in "((user|group|everyone|)[ ]?(-?[0-9]{0,11}|\\PC{0,4})\n?){0,4}") {
            match text.parse::<Audience>() {
                Ok(audience) => prop_assert_eq!(audience.to_string().parse(), Ok(audience)),
                Err(BadAudience(line)) => prop_assert!(text.contains(&line)),
            }
        }

        #[test]
        fn what_is_written_is_read(fleet: bool, everyone: bool, users: BTreeSet<u32>, groups: BTreeSet<u32>) {
            let audience = Audience { fleet, everyone, users, groups };
            prop_assert_eq!(audience.to_string().parse(), Ok(audience));
        }
    }
}
