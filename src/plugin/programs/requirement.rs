//! A program that a plugin requires.

use serde_json::{Map, Value};

use crate::programs::version::reaches;

/// Providers whose programs may be on the search path: the path itself, any, and those of browsers.
const ON_PATH: [&str; 4] = ["env", "*", "puppeteer", "playwright"];

/// A program (or anything else that a provider calls a binary) that a plugin requires.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Requirement {
    /// Name of the program, or the absolute path that a user set. In a schema it may be a template
    /// such as `{WGET_BINARY}`.
    pub name: String,
    /// Providers in order of preference; `env` is the search path, `*` any provider.
    pub providers: Vec<String>,
    /// Oldest version that is sufficient.
    pub min_version: Option<String>,
    /// Provider → how to install the program with it.
    pub overrides: Map<String, Value>,
}

impl Requirement {
    /// Whether the program may be on the search path. What only a provider can install (a Python
    /// module, a browser extension) is no reason to skip a plugin: its hooks look for it
    /// themselves. A browser is searched on the path, because no provider may install one.
    pub fn on_path(&self) -> bool {
        let mut providers = self.providers.iter().map(String::as_str);
        self.providers.is_empty() || providers.any(|name| ON_PATH.contains(&name))
    }

    /// Whether this version is known to be too old.
    pub fn is_too_old(&self, version: &str) -> bool {
        let least = self.min_version.as_deref();
        least.is_some_and(|least| reaches(version, least) == Some(false))
    }

    /// Whether this accepts versions that are older than `least`.
    pub fn accepts_older_than(&self, least: &str) -> bool {
        let own = self.min_version.as_deref();
        own.is_none_or(|own| reaches(own, least) == Some(false))
    }
}

/// Splits a list of providers such as `env,apt`.
pub fn split_providers(list: &str) -> Vec<String> {
    list.split(',').map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}
