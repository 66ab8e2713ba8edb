//! What became of the requests of a replay.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Requests that are listed. A page may ask for new URLs without an end; all are counted.
const LISTED_MAX: usize = 10_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// With the record of the same URL, method and body.
    Exact,
    /// With the record that a rule found.
    Rule(&'static str),
    /// Not at all, and why.
    Missing(String),
}

#[derive(Debug, Default)]
pub struct Tally {
    fates: BTreeMap<(String, String), (Fate, String)>,
    unlisted: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    pub method: String,
    pub url: String,
    /// Type of the resource, in lower case.
    pub kind: String,
    /// Name of the rule, or why there is no answer.
    pub reason: String,
}

/// How many different requests a page made, and which were not answered exactly.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requests {
    /// Answered with the record of the same request.
    pub exact: u64,
    pub fuzzy: u64,
    /// Not answered.
    pub missing: u64,
    /// Not answered, because they failed in the recording, too; not in the list.
    pub failed: u64,
    pub by_rule: Vec<Listed>,
    /// Those that were not answered.
    pub not_answered: Vec<Listed>,
}

impl Tally {
    /// Notes a request. Of several for one URL, a missing answer counts, then that of a rule.
    pub fn add(&mut self, method: &str, url: &str, kind: &str, fate: Fate) {
        let request = (method.to_owned(), url.to_owned());
        if self.fates.len() >= LISTED_MAX && !self.fates.contains_key(&request) {
            self.unlisted += u64::from(matches!(fate, Fate::Missing(_)));
            return;
        }
        let worse = |fate: &Fate| match fate {
            Fate::Exact => 0,
            Fate::Rule(_) => 1,
            Fate::Missing(_) => 2,
        };
        let kind = kind.to_ascii_lowercase();
        let noted = self.fates.entry(request);
        let noted = noted.or_insert_with(|| (fate.clone(), kind));
        if worse(&fate) > worse(&noted.0) {
            noted.0 = fate;
        }
    }

    pub fn requests(&self) -> Requests {
        let mut requests = Requests { missing: self.unlisted, ..Requests::default() };
        for ((method, url), (fate, kind)) in &self.fates {
            let listed = |reason: &str| Listed {
                method: method.clone(),
                url: url.clone(),
                kind: kind.clone(),
                reason: reason.to_owned(),
            };
            match fate {
                Fate::Exact => requests.exact += 1,
                Fate::Rule(rule) => {
                    requests.fuzzy += 1;
                    requests.by_rule.push(listed(rule));
                }
                Fate::Missing(reason) => {
                    requests.missing += 1;
                    requests.not_answered.push(listed(reason));
                }
            }
        }
        requests
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worst_answer_of_a_url_counts() {
        let mut tally = Tally::default();
        let missing = || Fate::Missing("not recorded".to_owned());
        tally.add("GET", "http://a/1", "Image", Fate::Exact);
        tally.add("GET", "http://a/1", "Image", Fate::Exact);
        tally.add("POST", "http://a/1", "Fetch", Fate::Rule("jsonp"));
        tally.add("GET", "http://a/2", "Media", missing());
        tally.add("GET", "http://a/2", "Media", Fate::Exact);
        let requests = tally.requests();
        assert_eq!((requests.exact, requests.fuzzy, requests.missing), (1, 1, 1));
        assert_eq!(requests.by_rule[0].reason, "jsonp");
        assert_eq!(requests.not_answered[0].kind, "media");
    }

    #[test]
    fn endless_requests_are_counted_in_bounded_memory() {
        let mut tally = Tally::default();
        for n in 0..LISTED_MAX + 5 {
            let fate = Fate::Missing("not recorded".to_owned());
            tally.add("GET", &format!("http://a/{n}"), "Fetch", fate);
        }
        let requests = tally.requests();
        assert_eq!(requests.missing, LISTED_MAX as u64 + 5);
        assert_eq!(requests.not_answered.len(), LISTED_MAX);
    }
}
