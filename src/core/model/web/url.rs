//! URLs of pages: which can be archived.

use std::fmt;
use url::Url;

/// Longest URL, in bytes.
pub const URL_MAX: usize = 8192;

/// Whether a text begins as an http or https URL, also for a browser that reads it. Foreign files name any.
pub fn is_web(text: &str) -> bool {
    let begins = |scheme: &str| {
        let head = text.as_bytes().get(..scheme.len());
        head.is_some_and(|head| head.eq_ignore_ascii_case(scheme.as_bytes()))
    };
    begins("http://") || begins("https://")
}

/// An http or https URL, normalised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageUrl(Url);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// Not a URL, with the reason of the parser.
    #[error("it is not a URL ({0}); write it as https://example.com/page")]
    Malformed(String),
    /// A scheme other than http and https.
    #[error("{0}: URLs cannot be archived, only http: and https:")]
    Scheme(String),
    /// A task that ArchiveBox has as a URL.
    #[error("it names a task, not a page; for it, run: archivist {}", .0.verb())]
    Task(Task),
    /// Longer than `URL_MAX`; its length in bytes.
    #[error("it has {0} bytes, the limit is {URL_MAX}")]
    TooLong(usize),
    /// A control character, or invalid UTF-8.
    #[error("it contains a control character or is not UTF-8")]
    ControlCharacter,
    /// A line of a list with more than an address, with the reason against it.
    #[error("{0}")]
    Around(&'static str),
    #[error("it is not a JSON object of a page: {0}")]
    Object(String),
}

const TASK_SCHEME: &str = "archivebox";

/// A task that ArchiveBox queues as a URL, `archivebox://update`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// Runs the hooks that archived pages have no result of.
    Update,
    /// Installs the programs that enabled plugins lack.
    Install,
}

impl Task {
    pub fn parse(text: &str) -> Option<Task> {
        let url = Url::parse(text.trim()).ok()?;
        match (url.scheme(), url.host_str()?) {
            (TASK_SCHEME, "update") => Some(Task::Update),
            (TASK_SCHEME, "install") => Some(Task::Install),
            _ => None,
        }
    }

    pub fn url(self) -> String {
        format!("{TASK_SCHEME}://{}", self.verb())
    }

    /// Returns the verb of the command line that does this.
    pub fn verb(self) -> &'static str {
        match self {
            Task::Update => "update",
            Task::Install => "install",
        }
    }
}

impl PageUrl {
    /// Parses a URL, after removing blanks at both ends.
    pub fn parse(text: &str) -> Result<PageUrl, UrlError> {
        let text = text.trim();
        if text.len() > URL_MAX {
            return Err(UrlError::TooLong(text.len()));
        }
        if text.chars().any(|c| c.is_control() || c == char::REPLACEMENT_CHARACTER) {
            return Err(UrlError::ControlCharacter);
        }
        let url = Url::parse(text).map_err(|error| UrlError::Malformed(error.to_string()))?;
        match url.scheme() {
            "http" | "https" if url.as_str().len() > URL_MAX => {
                Err(UrlError::TooLong(url.as_str().len()))
            }
            "http" | "https" => Ok(PageUrl(url)),
            other => Err(match Task::parse(text) {
                Some(task) => UrlError::Task(task),
                None => UrlError::Scheme(other.to_owned()),
            }),
        }
    }

    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Returns the host, without the port.
    pub fn host(&self) -> &str {
        self.0.host_str().unwrap_or_default()
    }

    /// Returns the host with an explicit port, as one segment of a path: `example.com`,
    /// `example.com_8080`.
    pub fn domain(&self) -> String {
        let segment: String = self
            .0
            .host_str()
            .unwrap_or("unknown")
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || c == '.' || c == '-' { c } else { '_' })
            .take(200)
            .collect();
        // The segment must not be `.` or `..`.
        let host = if segment.starts_with('.') { format!("_{segment}") } else { segment };
        match self.0.port() {
            Some(port) => format!("{host}_{port}"),
            None => host,
        }
    }
}

impl fmt::Display for PageUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_schemes_are_not_of_the_web() {
        for text in ["http://a.test/", "HTTPS://a.test/b#c", "https://a.test\u{1b}"] {
            assert!(is_web(text), "{text}");
        }
        for text in [
            "file:///etc/passwd",
            "chrome://version",
            "view-source:http://a.test/",
            "data:text/html,x",
            "javascript:alert(1)//http://",
            " file:///etc/passwd",
            "http:",
            "",
        ] {
            assert!(!is_web(text), "{text}");
        }
    }

    #[test]
    fn valid_urls_are_normalized_and_others_refused() {
        assert_eq!(PageUrl::parse(" http://Example.com ").unwrap().as_str(), "http://example.com/");
        let odd = "http://example.com/$(reboot)?a=`id`&b=${HOME}&c=%n&d='\"";
        assert!(PageUrl::parse(odd).unwrap().as_str().contains("$(reboot)"));
        for bad in ["", "example.com", "http://", "//x", "not a url"] {
            assert!(matches!(PageUrl::parse(bad), Err(UrlError::Malformed(_))), "{bad}");
        }
        for bad in ["file:///etc/passwd", "javascript:alert(1)", "ftp://x/", "data:text/html,x"] {
            let error = PageUrl::parse(bad).unwrap_err();
            assert!(matches!(error, UrlError::Scheme(_)), "{bad}");
            assert!(error.to_string().ends_with("only http: and https:"), "{error}");
        }
        assert_eq!(PageUrl::parse("http://x/a\nb"), Err(UrlError::ControlCharacter));
        let long = format!("http://x/{}", "a".repeat(10_000));
        let error = PageUrl::parse(&long).unwrap_err();
        assert_eq!(error.to_string(), "it has 10009 bytes, the limit is 8192");
    }

    #[test]
    fn tasks_are_refused_with_their_verb() {
        for (text, verb) in [
            ("archivebox://update", "archivist update"),
            (" ArchiveBox://install/ ", "archivist install"),
        ] {
            let said = PageUrl::parse(text).unwrap_err().to_string();
            assert!(said.ends_with(verb), "{said}");
        }
        let other = PageUrl::parse("archivebox://other");
        assert_eq!(other, Err(UrlError::Scheme("archivebox".to_owned())));
    }

    /// UTS #46, as browsers apply it: the Unicode tables are a choice in Cargo.lock.
    #[test]
    fn international_hosts_are_those_of_browsers() {
        let host = |name: &str| PageUrl::parse(&format!("https://{name}/")).map(|url| url.domain());
        for (name, ascii) in [
            ("MÜNCHEN.de", "xn--mnchen-3ya.de"),
            ("faß.de", "xn--fa-hia.de"),
            ("ＥＸＡＭＰＬＥ。com", "example.com"),
            ("例え.jp", "xn--r8jz45g.jp"),
            ("президент.рф", "xn--d1abbgf6aiiy.xn--p1ai"),
            ("مثال.إختبار", "xn--mgbh0fb.xn--kgbechtv"),
            ("उदाहरण.परीक्षा", "xn--p1b6ci4b4b3a.xn--11b5bs3a9aj6g"),
        ] {
            assert_eq!(host(name).as_deref(), Ok(ascii), "{name}");
        }
        // A joiner without its context, a leading mark, and directions that are mixed.
        for name in ["a\u{200d}b.example", "\u{301}a.example", "א1a.example"] {
            assert!(host(name).is_err(), "{}", name.escape_unicode());
        }
    }

    #[test]
    fn domains_are_one_harmless_segment() {
        let domain = |url: &str| PageUrl::parse(url).unwrap().domain();
        assert_eq!(domain("https://example.com/x"), "example.com");
        assert_eq!(domain("http://127.0.0.1:8080/"), "127.0.0.1_8080");
        assert_eq!(domain("http://[::1]:80/"), "___1_");
    }
}
