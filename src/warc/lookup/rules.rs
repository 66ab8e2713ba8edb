//! The rules of the look-up, which are data: `rules.json`.

use serde::Deserialize;
use std::sync::LazyLock;

/// Fewest digits of a number that breaks caches; fewer may be the number of a page.
const DIGITS_MIN: usize = 5;

/// All rules, in the order in which they apply.
pub(super) static RULES: LazyLock<Rules> = LazyLock::new(|| {
    let text = include_str!("rules.json");
    serde_json::from_str(text).expect("rules.json is checked by a test")
});

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rules {
    pub(super) rules: Vec<Rule>,
    /// Suffixes of files whose query usually is the number of a version.
    #[serde(rename = "static")]
    pub(super) suffixes: Vec<String>,
    /// Names of arguments whose value is an id, in lower case without dashes.
    ids: Vec<String>,
}

impl Rules {
    /// Whether an argument of this name has an id.
    pub(super) fn names_id(&self, name: &str) -> bool {
        let name = name.to_ascii_lowercase().replace(['-', '_'], "");
        self.ids.contains(&name)
    }
}

/// Arguments that do not change the answer.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rule {
    pub(super) name: String,
    /// Names in lower case; one that ends with `*` stands for all with that beginning.
    arguments: Vec<String>,
    values: Values,
}

/// Values with which an argument is left out.
#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Values {
    Any,
    /// Digits, or a fraction.
    Number,
    Name,
}

impl Rule {
    /// Whether the rule leaves out an argument.
    pub(super) fn covers(&self, name: &str, value: &str) -> bool {
        let name = name.to_ascii_lowercase();
        let is_named = self.arguments.iter().any(|known| match known.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => name == *known,
        });
        is_named
            && match self.values {
                Values::Any => true,
                Values::Number => is_number(value),
                Values::Name => is_function(value),
            }
    }
}

fn is_number(value: &str) -> bool {
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    digits >= DIGITS_MIN && value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

fn is_function(value: &str) -> bool {
    value.starts_with(|first: char| first.is_ascii_alphabetic() || "_$".contains(first))
        && value.chars().all(|c| c.is_ascii_alphanumeric() || "_$.[]".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_cover_names_with_their_values() {
        let covering = |name, value| {
            let rules = RULES.rules.iter();
            let rules = rules.filter(|rule| rule.covers(name, value));
            rules.map(|rule| rule.name.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(covering("utm_source", "x"), ["tracking"]);
        assert_eq!(covering("UTM_x", ""), ["tracking"]);
        assert_eq!(covering("_", "1732614821123"), ["cache-breaking"]);
        assert_eq!(covering("rnd", "0.5512345"), ["cache-breaking"]);
        assert_eq!(covering("cb", "12345678"), ["cache-breaking"]);
        assert_eq!(covering("cb", "jQuery1_2"), ["callback"]);
        for (name, value) in [("page", "12345678"), ("t", "12"), ("_", "x"), ("callback", "1")] {
            assert!(covering(name, value).is_empty(), "{name}={value}");
        }
    }
}
