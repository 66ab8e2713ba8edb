//! The seed of `Math.random`: a page that was recorded with one gets the same numbers in its replay, and
//! asks for the same URLs.

use crate::process::settings::PluginSettings;
use archivist_warc::wacz::Wacz;
use jiff::Timestamp;
use std::fmt;
use std::io::Read;
use std::str::FromStr;

const SCRIPT: &str = include_str!("seed.js");
/// Digits of the largest seed.
const DIGITS_MAX: u64 = 10;

/// Where the numbers of `Math.random` begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed(u32);

impl Seed {
    /// The seed of a recording by `WACZ_SEED=`. `None` if the page keeps its own numbers.
    pub fn of(settings: &PluginSettings) -> Option<Seed> {
        match settings.text("WACZ_SEED").trim() {
            "off" => None,
            number => number.parse().ok().or_else(Seed::random),
        }
    }

    fn random() -> Option<Seed> {
        let mut bytes = [0; 4];
        getrandom::fill(&mut bytes).ok()?;
        Some(Seed(u32::from_ne_bytes(bytes)))
    }

    /// Name of the record with the seed of a page.
    pub fn record(url: &str) -> String {
        format!("urn:seed:{url}")
    }

    /// The seed with which a page was recorded at this time.
    pub fn recorded(file: &Wacz, url: &str, time: Timestamp) -> Option<Seed> {
        let name = Seed::record(url);
        let of_page = file.of_url(&name).into_iter();
        let away = |at: Timestamp| at.as_millisecond().abs_diff(time.as_millisecond());
        let entry = of_page.min_by_key(|entry| away(entry.time))?;
        let mut text = String::new();
        let body = file.read(&entry).ok()?.body;
        body.take(DIGITS_MAX).read_to_string(&mut text).ok()?;
        text.parse().ok()
    }

    /// The script that must run before those of a page.
    pub fn script(self) -> String {
        format!("{SCRIPT}({self});")
    }
}

impl fmt::Display for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl FromStr for Seed {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Seed, Self::Err> {
        text.parse().map(Seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: &str) -> Option<Seed> {
        let environment = [("WACZ_SEED".to_owned(), value.to_owned())].into();
        let schema = include_str!("../../../plugins/chromium/config.json");
        Seed::of(&PluginSettings::new(schema, environment))
    }

    #[test]
    fn seed_is_random_unless_it_is_off_or_a_number() {
        assert_eq!(of("off"), None);
        assert_eq!(of("17"), Some(Seed(17)));
        // One in four thousand million times, this fails.
        assert_ne!(of("random"), of("random"));
        assert!(Seed(17).script().ends_with("(17);"));
    }
}
