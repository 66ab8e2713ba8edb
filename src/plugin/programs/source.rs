//! Sources of a missing program.

use std::fmt;

use serde_json::Value;

use crate::programs::distribution::Distribution;
use crate::programs::requirement::Requirement;

/// Source of a missing program. Its text is a command, if one exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    Debian(Vec<String>),
    /// A browser for hooks, where the distribution has chromium only as a snap.
    Browser,
    Pip(Vec<String>),
    Npm(Vec<String>),
    /// Crates for `cargo install`.
    Cargo(Vec<String>),
    /// Only this provider plugin can install the program, and it is not installed.
    Provider(String),
    /// Installing the plugins of abx-plugins again brings the program.
    PluginSet,
    /// An installed provider plugin can install the program. Contains the argument of the command.
    Archivist(String),
    Unknown,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Debian(names) => write!(f, "apt install {}", quoted(names)),
            Source::Browser => f.write_str(
                "the chromium of Ubuntu is a snap, which hooks cannot run: install the .deb of Google Chrome, \
                 or set CHROME_BINARY= to the path of a Chrome for Testing",
            ),
            Source::Pip(words) => write!(f, "pip install {}", quoted(words)),
            Source::Npm(words) => write!(f, "npm install -g {}", quoted(words)),
            Source::Cargo(words) => {
                // Hooks cannot see the home directory of root, where cargo installs by default.
                write!(f, "cargo install --root /usr/local {}", quoted(words))
            },
            Source::Provider(name) => write!(f, "the provider plugin {name} can install it"),
            Source::PluginSet => f.write_str("archivist plugins add abx"),
            Source::Archivist(name) => write!(
                f,
                "archivist plugins install {}",
                quoted(std::slice::from_ref(name))
            ),
            Source::Unknown => f.write_str("install it, or set the path of the program"),
        }
    }
}

impl Source {
    pub fn is_command(&self) -> bool {
        !matches!(self, Source::Browser | Source::Provider(_) | Source::Unknown)
    }
}

/// The words quoted for a shell: `lxml>=5` without quotes would write to a file.
fn quoted(words: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "@%+=:,./_-^".contains(c);
    let quote = |word: &String| {
        if word.chars().all(plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    words.iter().map(quote).collect::<Vec<_>>().join(" ")
}

/// Names of Debian packages that differ from the program's name.
const PACKAGES: [(&str, &str); 11] = [
    ("chrome", "chromium"),
    ("chromium-browser", "chromium"),
    ("google-chrome", "chromium"),
    ("java", "default-jre"),
    ("node", "nodejs"),
    ("python", "python3"),
    ("python3", "python3"),
    ("rg", "ripgrep"),
    ("tesseract", "tesseract-ocr"),
    ("ps", "procps"),
    ("chromium", "chromium"),
];

/// Debian's package of the browser.
const BROWSER_PACKAGE: &str = "chromium";

/// Programs whose name belongs to another package in Debian (sonic is an audio tool there).
const NOT_IN_DEBIAN: [&str; 1] = ["sonic"];

impl Source {
    /// Source of a program: the package of the distribution first, then the providers in their
    /// order.
    pub fn of(requirement: &Requirement, distribution: Distribution) -> Source {
        let file_name = requirement.name.rsplit('/').next();
        let name = file_name.unwrap_or_default().to_owned();
        let known = PACKAGES.iter().find(|(program, _)| *program == name);
        let is_browser = known.is_some_and(|(_, package)| *package == BROWSER_PACKAGE);
        let is_snap = requirement.name.starts_with("/snap/");
        if is_browser && (distribution == Distribution::Ubuntu || is_snap) {
            return Source::Browser;
        }
        let arguments = |provider: &str| -> Option<Vec<String>> {
            let list = requirement.overrides.get(provider)?.get("install_args")?.as_array()?;
            Some(
                list.iter()
                    .filter_map(Value::as_str)
                    .filter(|word| {
                        !(provider == "uv" || provider == "pnpm") || !word.starts_with('-')
                    })
                    .map(str::to_owned)
                    .collect(),
            )
        };
        let apt = requirement.providers.iter().any(|provider| provider == "apt");
        if (apt || known.is_some()) && !NOT_IN_DEBIAN.contains(&name.as_str()) {
            let package = known.map_or_else(|| name.clone(), |(_, package)| (*package).to_owned());
            return Source::Debian(arguments("apt").unwrap_or_else(|| vec![package]));
        }
        // Debian users do not have brew, and bash is a script of the plugin.
        let passed_over = ["env", "*", "apt", "bash", "brew"];
        let mut providers = requirement.providers.iter().map(String::as_str);
        let provider = providers.find(|provider| !passed_over.contains(provider));
        match provider {
            Some(pip @ ("pip" | "uv")) => Source::Pip(arguments(pip).unwrap_or_else(|| vec![name])),
            Some(npm @ ("npm" | "pnpm")) => {
                Source::Npm(arguments(npm).unwrap_or_else(|| vec![name]))
            }
            Some("cargo") => Source::Cargo(arguments("cargo").unwrap_or_else(|| vec![name])),
            Some(other) => Source::Provider(other.to_owned()),
            None => Source::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::requirement::split_providers;

    #[test]
    fn browser_of_ubuntu_is_not_a_package() {
        let source = |name: &str, distribution| {
            let requirement = Requirement {
                name: name.to_owned(),
                providers: split_providers("env,apt"),
                ..Requirement::default()
            };
            Source::of(&requirement, distribution)
        };
        for name in ["chromium", "/usr/bin/chromium-browser", "google-chrome"] {
            assert_eq!(source(name, Distribution::Ubuntu), Source::Browser, "{name}");
            let package = Source::Debian(vec!["chromium".to_owned()]);
            assert_eq!(source(name, Distribution::Debian), package, "{name}");
        }
        let snap = source("/snap/bin/chromium", Distribution::Debian);
        assert_eq!(snap, Source::Browser);
        assert!(!snap.is_command() && snap.to_string().contains("CHROME_BINARY="));
        let wget = Source::Debian(vec!["wget".to_owned()]);
        assert_eq!(source("wget", Distribution::Ubuntu), wget);
    }
}
