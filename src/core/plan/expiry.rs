//! `Retention=`: how long pages that have ended are kept.

use crate::model::Time;
use crate::text::parse_span;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// Highest number of versions that a rule can keep: so many rows are read for each page.
const VERSIONS_MAX: u32 = 1_000;

/// What is allowed, for error messages.
pub const RETENTION_ALLOWED: &str = "age=SPAN, versions=N (1 to 1000) and newest=no, or forever, after tag:NAME for a tag, like: tag:news age=30d versions=5";

/// A rule for all pages, or for those with a tag.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RetentionRule {
    /// The rule as written, with single blanks.
    pub text: String,
    /// Tag of the pages; `None` for all pages.
    pub tag: Option<String>,
    /// Pages that ended longer ago go.
    pub age: Option<Duration>,
    /// Pages go that have at least so many newer versions.
    pub versions: Option<u32>,
    /// Whether the newest version of a page goes by its age, too.
    pub takes_newest: bool,
}

impl RetentionRule {
    /// Reads a rule such as `tag:news age=30d versions=5`.
    ///
    /// # Errors
    /// What is allowed.
    pub fn parse(text: &str) -> Result<RetentionRule, &'static str> {
        let mut words = text.split_whitespace().peekable();
        let mut rule = RetentionRule {
            text: text.split_whitespace().collect::<Vec<_>>().join(" "),
            ..RetentionRule::default()
        };
        if let Some(tag) = words.peek().and_then(|word| word.strip_prefix("tag:")) {
            rule.tag = Some(tag.to_owned());
            words.next();
        }
        if rule.tag.as_deref() == Some("") {
            return Err(RETENTION_ALLOWED);
        }
        let words: Vec<&str> = words.collect();
        if words == ["forever"] {
            return Ok(rule);
        }
        for word in words {
            rule.set(word).ok_or(RETENTION_ALLOWED)?;
        }
        if rule.age.is_none() && rule.versions.is_none() {
            return Err(RETENTION_ALLOWED);
        }
        Ok(rule)
    }

    fn set(&mut self, word: &str) -> Option<()> {
        match word.split_once('=')? {
            ("age", span) if self.age.is_none() => {
                self.age = Some(parse_span(span).filter(|span| !span.is_zero())?);
            }
            ("versions", count) if self.versions.is_none() => {
                let count = count.parse().ok();
                self.versions = Some(count.filter(|n| (1..=VERSIONS_MAX).contains(n))?);
            }
            ("newest", "no") => self.takes_newest = true,
            ("newest", "yes") => self.takes_newest = false,
            _ => return None,
        }
        Some(())
    }

    /// Adds a rule to those that there are. It replaces the one for the same pages.
    pub fn add_to(self, rules: &mut Vec<RetentionRule>) {
        rules.retain(|rule| rule.tag != self.tag);
        rules.push(self);
    }

    /// Returns when the rule deletes a page, `None` for never. `newer` is the number of newer versions
    /// among the pages of the rule, which need not be counted beyond the number of versions.
    fn end(&self, page: &AgingPage, newer: u32) -> Option<Time> {
        let is_over = self.versions.is_some_and(|kept| newer >= kept);
        if is_over && !page.is_newest {
            return Some(page.ended_at);
        }
        let age = self.age.filter(|_| page.is_dated)?;
        (self.takes_newest || !page.is_newest).then(|| page.ended_at.after(age))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgingPage {
    /// When it was sealed or cancelled.
    pub ended_at: Time,
    /// Whether the clock was believed when it ended.
    pub is_dated: bool,
    /// Whether it is the newest version of its page that was saved, or, if none was, the newest one.
    pub is_newest: bool,
    pub tags: Vec<String>,
}

/// A count of the pages that the rules delete at once, before any of them is deleted: after a change of
/// the rules, or when time passed unobserved. A rule that would delete more than a tenth waits for an
/// administrator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetentionReview {
    /// The page up to which all are counted.
    pub after: i64,
    /// Pages of each rule, and how many of them it deletes.
    pub shares: BTreeMap<String, (u64, u64)>,
    /// All pages, and how many of them are deleted.
    pub all: (u64, u64),
    /// Which rule waits, once all are counted.
    pub held: Option<String>,
}

impl RetentionReview {
    /// Counts a page. `rules`: those for it. `deletes`: the one that deletes it now.
    pub fn count(&mut self, rules: &[&RetentionRule], deletes: Option<&RetentionRule>) {
        for rule in rules {
            let share = self.shares.entry(rule.text.clone()).or_default();
            share.0 += 1;
            share.1 += u64::from(deletes.is_some_and(|deletes| deletes.text == rule.text));
        }
        self.all.0 += 1;
        self.all.1 += u64::from(deletes.is_some());
    }

    /// Returns the rule that would delete too much, once all pages are counted.
    pub fn excess(&self) -> Option<String> {
        let exceeds = |(of, deleted): &(u64, u64)| *deleted > of / 10;
        let text = |what: &str, (of, deleted): &(u64, u64)| {
            format!("{what} would delete {deleted} of {of} pages at once")
        };
        let mut shares = self.shares.iter();
        let rule = shares.find(|(_, share)| exceeds(share));
        let rule = rule.map(|(rule, share)| text(&format!("Retention={rule}"), share));
        rule.or_else(|| exceeds(&self.all).then(|| text("Retention=", &self.all)))
    }
}

/// Returns the rules for a page: those for its tags, or else the one for all pages.
pub fn rules_for<'a>(rules: &'a [RetentionRule], tags: &[String]) -> Vec<&'a RetentionRule> {
    let of_tags =
        rules.iter().filter(|rule| rule.tag.as_ref().is_some_and(|tag| tags.contains(tag)));
    let of_tags: Vec<_> = of_tags.collect();
    if of_tags.is_empty() {
        rules.iter().filter(|rule| rule.tag.is_none()).collect()
    } else {
        of_tags
    }
}

/// Returns when a page is deleted, and by which rule; `None` for never. A page with the tags of several
/// rules is kept as long as one of them keeps it. `newer` has the newer versions for each rule.
pub fn expiry<'a>(
    page: &AgingPage,
    rules: &[(&'a RetentionRule, u32)],
) -> Option<(Time, &'a RetentionRule)> {
    let ends = rules.iter().map(|(rule, newer)| {
        let end = rule.end(page, *newer)?;
        Some((end, *rule))
    });
    let ends: Vec<_> = ends.collect::<Option<_>>()?;
    ends.into_iter().max_by_key(|(end, _)| *end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DAY: i64 = 24 * 3600 * 1000;

    fn rule(text: &str) -> RetentionRule {
        RetentionRule::parse(text).unwrap()
    }

    fn page(is_newest: bool, tags: &[&str]) -> AgingPage {
        AgingPage {
            ended_at: Time(DAY),
            is_dated: true,
            is_newest,
            tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
        }
    }

    fn end(rules: &[&str], page: &AgingPage, newer: u32) -> Option<i64> {
        let mut all = Vec::new();
        for text in rules {
            rule(text).add_to(&mut all);
        }
        let rules = rules_for(&all, &page.tags);
        let rules: Vec<_> = rules.into_iter().map(|rule| (rule, newer)).collect();
        expiry(page, &rules).map(|(end, _)| end.0 / DAY)
    }

    #[test]
    fn age_counts_from_the_end_and_keeps_the_newest_version() {
        assert_eq!(end(&["age=30d"], &page(false, &[]), 1), Some(31));
        assert_eq!(end(&["age=30d"], &page(true, &[]), 0), None);
        assert_eq!(end(&["age=30d newest=no"], &page(true, &[]), 0), Some(31));
        assert_eq!(end(&[], &page(false, &[]), 9), None);
    }

    #[test]
    fn page_without_a_date_has_no_age() {
        let undated = AgingPage { is_dated: false, ..page(false, &[]) };
        assert_eq!(end(&["age=30d newest=no"], &undated, 1), None);
        assert_eq!(end(&["versions=1"], &undated, 1), Some(1));
    }

    #[test]
    fn review_holds_a_rule_that_deletes_more_than_a_tenth() {
        let (all, news) = (rule("age=30d"), rule("tag:news age=2d"));
        let mut review = RetentionReview::default();
        for place in 0..100 {
            review.count(&[&all], (place < 10).then_some(&all));
        }
        assert_eq!(review.excess(), None);
        review.count(&[&news], Some(&news));
        assert_eq!(
            review.excess().unwrap(),
            "Retention=tag:news age=2d would delete 1 of 1 pages at once"
        );
        let mut both = RetentionReview::default();
        for place in 0..20 {
            both.count(&[&all], (place < 2).then_some(&all));
            both.count(&[&news], (place < 2).then_some(&news));
        }
        assert_eq!(both.excess(), None);
        assert_eq!(RetentionReview::default().excess(), None);
    }

    #[test]
    fn versions_beyond_the_number_go_at_once() {
        assert_eq!(end(&["versions=2"], &page(false, &[]), 1), None);
        assert_eq!(end(&["versions=2"], &page(false, &[]), 2), Some(1));
        // The newer versions have no files.
        assert_eq!(end(&["versions=2"], &page(true, &[]), 2), None);
        assert_eq!(end(&["versions=9 age=1d"], &page(false, &[]), 2), Some(2));
    }

    #[test]
    fn rules_for_tags_replace_the_one_for_all() {
        let both = ["age=30d", "tag:news age=2d", "tag:law forever"];
        assert_eq!(end(&both, &page(false, &["news"]), 0), Some(3));
        assert_eq!(end(&both, &page(false, &["other"]), 0), Some(31));
        assert_eq!(end(&both, &page(false, &["news", "law"]), 0), None);
        assert_eq!(end(&both, &page(false, &["law"]), 9), None);
        let longest = ["tag:a age=5d", "tag:b age=2d", "tag:a age=7d"];
        assert_eq!(end(&longest, &page(false, &["a", "b"]), 0), Some(8));
    }

    #[test]
    fn bad_rules_are_refused() {
        for bad in [
            "",
            "30d",
            "tag: age=3d",
            "tag:news",
            "age=0",
            "age=soon",
            "versions=0",
            "versions=1001",
            "age=1d forever",
            "newest=no",
            "age=1d age=2d",
            "age=1d tag:news",
        ] {
            assert_eq!(RetentionRule::parse(bad), Err(RETENTION_ALLOWED), "{bad}");
        }
        assert_eq!(rule(" tag:news   age=30d ").text, "tag:news age=30d");
    }

    proptest! {
        /// A rule that is read has the same meaning when its text is read again.
        #[test]
        fn text_of_a_rule_is_the_rule(text in "(tag:[a-z]{0,3} )?(age=[0-9]{1,3}[dh]?|versions=[0-9]{1,4}|newest=(no|yes)|forever| |\\PC){0,3}") {
            if let Ok(rule) = RetentionRule::parse(&text) {
                prop_assert_eq!(RetentionRule::parse(&rule.text), Ok(rule));
            }
        }
    }
}
