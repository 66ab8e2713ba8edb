//! `Quota=`: how many bytes the archive, the pages with a tag, or those of a user may have.

use crate::text::parse_size;

/// What is allowed, for error messages.
pub const QUOTA_ALLOWED: &str = "a size, after tag:NAME, user or user:NAME, before refuse or delete, like: 500G, or: tag:news 20G delete";

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuotaOf {
    /// The archive.
    All,
    /// Pages with a tag, or of crawls with it.
    Tag(String),
    /// The crawls of each user that has no quota of its own.
    EachUser,
    User {
        /// Name or number, as written.
        name: String,
        /// Number; `None` if the name is not resolved, or there is no such user.
        uid: Option<u32>,
    },
}

/// A limit of the bytes that pages have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quota {
    /// The quota as written, with single blanks.
    pub text: String,
    pub of: QuotaOf,
    /// Most bytes.
    pub bytes: u64,
    /// Whether the oldest pages are deleted when there are more, instead of refusing new ones.
    pub deletes: bool,
}

/// Which pages a quota deletes, in this order; in each round the oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotaRound {
    /// Pages that were not saved.
    Unsaved,
    /// Versions with a newer one that was saved.
    Replaced,
    /// The newest version of a page that was saved.
    Newest,
}

impl QuotaRound {
    /// All rounds.
    pub const ALL: [QuotaRound; 3] =
        [QuotaRound::Unsaved, QuotaRound::Replaced, QuotaRound::Newest];

    /// Returns the round after this one.
    pub fn next(self) -> Option<QuotaRound> {
        QuotaRound::ALL.get(self as usize + 1).copied()
    }
}

impl Quota {
    /// Reads a quota such as `tag:news 20G delete`.
    ///
    /// # Errors
    /// What is allowed.
    pub fn parse(text: &str) -> Result<Quota, &'static str> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let text = words.join(" ");
        let (of, rest) = match words.split_first() {
            Some((&"user", rest)) => (QuotaOf::EachUser, rest),
            Some((word, rest)) => match word.split_once(':') {
                Some((_, "")) => return Err(QUOTA_ALLOWED),
                Some(("tag", tag)) => (QuotaOf::Tag(tag.to_owned()), rest),
                Some(("user", name)) => {
                    let (name, uid) = (name.to_owned(), name.parse().ok());
                    (QuotaOf::User { name, uid }, rest)
                }
                _ => (QuotaOf::All, &words[..]),
            },
            None => return Err(QUOTA_ALLOWED),
        };
        let (size, deletes) = match rest {
            [size] | [size, "refuse"] => (size, false),
            [size, "delete"] => (size, true),
            _ => return Err(QUOTA_ALLOWED),
        };
        let bytes = parse_size(size).filter(|bytes| *bytes > 0);
        Ok(Quota { text, of, bytes: bytes.ok_or(QUOTA_ALLOWED)?, deletes })
    }

    /// Adds a quota to those that there are. It replaces the one for the same pages.
    pub fn add_to(self, quotas: &mut Vec<Quota>) {
        quotas.retain(|quota| quota.of != self.of);
        quotas.push(self);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quotas_are_read() {
        let read = |text: &str| {
            let quota = Quota::parse(text).unwrap();
            (quota.of, quota.bytes, quota.deletes)
        };
        assert_eq!(read("500G"), (QuotaOf::All, 500 << 30, false));
        assert_eq!(read(" 1T  delete "), (QuotaOf::All, 1 << 40, true));
        assert_eq!(read("tag:news 20M refuse"), (QuotaOf::Tag("news".into()), 20 << 20, false));
        assert_eq!(read("user 1G delete"), (QuotaOf::EachUser, 1 << 30, true));
        let user = |name: &str, uid| QuotaOf::User { name: name.to_owned(), uid };
        assert_eq!(read("user:ada 1G"), (user("ada", None), 1 << 30, false));
        assert_eq!(read("user:1000 1G"), (user("1000", Some(1000)), 1 << 30, false));
        for bad in [
            "",
            "0",
            "much",
            "tag: 1G",
            "tag:news",
            "user",
            "user: 1G",
            "user:ada",
            "group:ada 1G",
            "1G keep",
            "delete 1G",
            "1G 2G",
            "1G delete now",
        ] {
            assert_eq!(Quota::parse(bad), Err(QUOTA_ALLOWED), "{bad}");
        }
    }

    #[test]
    fn later_quota_for_the_same_pages_replaces_the_earlier_one() {
        let mut quotas = Vec::new();
        for text in ["1G", "user 2G", "user:ada 4G", "3G delete"] {
            Quota::parse(text).unwrap().add_to(&mut quotas);
        }
        let texts: Vec<_> = quotas.iter().map(|quota| quota.text.as_str()).collect();
        assert_eq!(texts, ["user 2G", "user:ada 4G", "3G delete"]);
    }

    proptest! {
        /// A quota that is read has the same meaning when its text is read again.
        #[test]
        fn text_of_a_quota_is_the_quota(text in "(tag:[a-z]{0,2} |user |user:[a-z0-9]{0,3} )?([0-9]{1,4}[KMGT]?|\\PC{0,3})( refuse| delete)?") {
            if let Ok(quota) = Quota::parse(&text) {
                prop_assert_eq!(Quota::parse(&quota.text), Ok(quota));
            }
        }
    }
}
