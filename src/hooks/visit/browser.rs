//! The browser of a crawl or snapshot, as hooks find it.

use super::{BROWSER, CDP_URL, PLUGIN};
use crate::process::files::{self, read_start};
use crate::process::finding::Finding;
use crate::process::invocation::Invocation;
use crate::process::settings::PluginSettings;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) const HEADLESS: &str = "HeadlessChrome/";

/// `browser.json`: the browser of a crawl or snapshot.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[serde(default)]
pub struct BrowserInfo {
    pub product: String,
    pub user_agent: String,
    /// Whether the browser was started with the profile of a persona.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub has_profile: bool,
    /// Seed of its random numbers, if its pages are recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<Seed>,
    /// Why the browser is not available.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Where the numbers of `Math.random` begin in all documents and workers of a browser.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u32")]
pub struct Seed(u32);

impl TryFrom<u32> for Seed {
    type Error = &'static str;

    /// V8 reads a signed number, and takes 0 for none.
    fn try_from(number: u32) -> Result<Seed, &'static str> {
        let is_seed = (1..=i32::MAX.cast_unsigned()).contains(&number);
        is_seed.then_some(Seed(number)).ok_or("not a seed of V8")
    }
}

impl Seed {
    /// The seed of a browser whose pages are recorded, by `WACZ_SEED=`. `None` if its numbers are those of
    /// any browser.
    pub fn of(settings: &PluginSettings) -> Option<Seed> {
        match settings.text("WACZ_SEED").trim() {
            _ if !settings.flag("WACZ_ENABLED") => None,
            "off" => None,
            number => number.parse().ok().and_then(|it: u32| it.try_into().ok()).or_else(random),
        }
    }

    /// The flag of V8 for this seed.
    pub fn flag(self) -> String {
        format!("--random-seed={}", self.0)
    }
}

fn random() -> Option<Seed> {
    let mut bytes = [0; 4];
    getrandom::fill(&mut bytes).ok()?;
    (u32::from_ne_bytes(bytes) >> 1).max(1).try_into().ok()
}

/// Output directory of the crawl's browser.
pub fn crawl_directory(invocation: &Invocation) -> PathBuf {
    let crawl = invocation.settings.variable("CRAWL_DIR").unwrap_or("..");
    Path::new(crawl).join(PLUGIN)
}

/// Path of the socket that `cdp_url.txt` names.
pub fn socket_in(directory: &Path) -> Result<PathBuf, Finding> {
    let file = directory.join(CDP_URL);
    let text = fs::read_to_string(&file).map_err(|error| {
        Finding::failed(format!(
            "no browser is running: failed to read '{}': {error}",
            file.display()
        ))
    })?;
    let path = text.trim().strip_prefix("unix:").map(PathBuf::from);
    path.ok_or_else(|| Finding::failed(format!("'{}' has no socket address", file.display())))
}

/// Writes `cdp_url.txt` with the path of the socket into the working directory.
pub fn publish_socket(socket: &Path) -> Result<(), Finding> {
    files::write(CDP_URL, format!("unix:{}\n", socket.display()).as_bytes())
}

/// User agent of the browser as it is with a window.
pub fn windowed_user_agent(browser: &BrowserInfo) -> String {
    browser.user_agent.replace(HEADLESS, "Chrome/")
}

/// User agent of the crawl's or snapshot's browser as it is with a window, if there is one.
pub fn crawl_user_agent(invocation: &Invocation) -> Option<String> {
    let directories = [crawl_directory(invocation), invocation.sibling(PLUGIN, "")];
    let read = |directory: &PathBuf| {
        let bytes = read_start(&directory.join(BROWSER), 1 << 16)?;
        let browser: BrowserInfo = serde_json::from_slice(&bytes).ok()?;
        Some(windowed_user_agent(&browser)).filter(|agent| !agent.is_empty())
    };
    directories.iter().find_map(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(settings: &[(&str, &str)]) -> Option<Seed> {
        let environment = settings.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        let schema = include_str!("../../../plugins/chromium/config.json");
        Seed::of(&PluginSettings::new(schema, environment.collect()))
    }

    #[test]
    fn seed_is_random_unless_it_is_off_or_a_number() {
        assert_eq!(of(&[("WACZ_SEED", "off")]), None);
        assert_eq!(of(&[("WACZ_ENABLED", "false")]), None);
        assert_eq!(of(&[("WACZ_SEED", "17")]), Some(Seed(17)));
        // One in two thousand million times, this fails.
        assert_ne!(of(&[]), of(&[("WACZ_SEED", "random")]));
    }
}
