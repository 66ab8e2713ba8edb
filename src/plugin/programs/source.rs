//! Where a program can be had that is not there.

use std::fmt;

use serde_json::Value;

use crate::catalogue::schema::RequiredBinary;

/// Where a missing program can be had. Its text is the command, where there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    Debian(Vec<String>),
    Pip(Vec<String>),
    Npm(Vec<String>),
    Cargo(Vec<String>),
    /// Only this provider plugin knows, and it is not there.
    Provider(String),
    /// A provider plugin that is there brings it: the name to ask for.
    Archivist(String),
    Unknown,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Debian(names) => write!(f, "apt install {}", quoted(names)),
            Source::Pip(words) => write!(f, "pip install {}", quoted(words)),
            Source::Npm(words) => write!(f, "npm install -g {}", quoted(words)),
            Source::Cargo(words) => write!(f, "cargo install {}", quoted(words)),
            Source::Provider(name) => write!(f, "the provider plugin {name} can install it"),
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
    /// Whether the text is a command to be typed.
    pub fn is_command(&self) -> bool {
        !matches!(self, Source::Provider(_) | Source::Unknown)
    }
}

/// The words as they must be typed: `lxml>=5` unquoted would write a file.
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

/// What Debian calls the package when it is not the program's name.
const PACKAGES: [(&str, &str); 10] = [
    ("chrome", "chromium"),
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

/// Programs whose name is another package's in Debian (there, sonic speeds up speech).
const NOT_IN_DEBIAN: [&str; 1] = ["sonic"];

impl Source {
    /// Where to get the program: Debian's package first, then the providers in the entry's order.
    pub fn of(entry: &RequiredBinary, name: &str) -> Source {
        let name = name.rsplit('/').next().unwrap_or(name).to_owned();
        let known = PACKAGES.iter().find(|(program, _)| *program == name);
        let arguments = |provider: &str| -> Option<Vec<String>> {
            let list = entry
                .overrides
                .get(provider)?
                .get("install_args")?
                .as_array()?;
            Some(
                list.iter()
                    .filter_map(Value::as_str)
                    .map(str::to_owned)
                    .collect(),
            )
        };
        let apt = entry.providers.iter().any(|provider| provider == "apt");
        if (apt || known.is_some()) && !NOT_IN_DEBIAN.contains(&name.as_str()) {
            let package = known.map_or_else(|| name.clone(), |(_, package)| (*package).to_owned());
            return Source::Debian(arguments("apt").unwrap_or_else(|| vec![package]));
        }
        // brew is nothing to send a user of Debian to
        let passed_over = ["env", "*", "apt", "brew"];
        let mut providers = entry.providers.iter().map(String::as_str);
        let provider = providers.find(|provider| !passed_over.contains(provider));
        match provider {
            Some("pip") => Source::Pip(arguments("pip").unwrap_or_else(|| vec![name])),
            Some("npm") => Source::Npm(arguments("npm").unwrap_or_else(|| vec![name])),
            Some("cargo") => Source::Cargo(arguments("cargo").unwrap_or_else(|| vec![name])),
            Some(other) => Source::Provider(other.to_owned()),
            None => Source::Unknown,
        }
    }
}
