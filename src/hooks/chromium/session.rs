//! The files through which hooks find the browser and its tab.
//!
//! `CRAWL_DIR/chromium` belongs to the crawl's browser: `browser.json` appears when the browser is
//! ready or has failed; `cdp_url.txt` and the socket that it names exist while the browser runs.
//! `SNAP_DIR/chromium` belongs to the snapshot's tab: `cdp_url.txt`, `target_id.txt`, `url.txt`,
//! `navigation.json`, which appears when the page has loaded or failed, `responses.json` before it,
//! if the server has answered, with `document`, if that was a file that hooks read, and `icon.json`,
//! when the browser has got the page's icon or failed to. Hooks remove the files of a browser or tab
//! that is gone.

use super::super::page;
use super::arrival::Response;
use crate::process::finding::Finding;
use crate::process::invocation::Invocation;
use futures_util::StreamExt;
use inotify::{Inotify, WatchMask};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// Name of the plugin and of its output directories.
pub const PLUGIN: &str = "chromium";
/// Name of the browser's socket.
pub const SOCKET: &str = "cdp.sock";
pub const CDP_URL: &str = "cdp_url.txt";
pub const TARGET_ID: &str = "target_id.txt";
pub const URL: &str = "url.txt";
pub const BROWSER: &str = "browser.json";
pub const NAVIGATION: &str = "navigation.json";
pub const RESPONSES: &str = "responses.json";
pub const ICON: &str = "icon.json";
pub const DOCUMENT: &str = "document";

/// `browser.json`: the browser of a crawl or snapshot.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[serde(default)]
pub struct BrowserInfo {
    /// Product name and version.
    pub product: String,
    pub user_agent: String,
    /// Whether the browser was started with the profile of a persona.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub has_profile: bool,
    /// Why the browser is not available.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// `navigation.json`: how the page loaded.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Navigation {
    pub wait_until: String,
    /// Milliseconds from the request until the page was ready to be saved.
    pub elapsed: u64,
    pub url: String,
    pub final_url: String,
    /// Id of the tab. Each visit of the page has a tab of its own.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub target: String,
    /// HTTP status code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u64>,
    /// Seconds after which an overloaded server wants to be asked again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u64>,
    pub mime_type: String,
    /// Time of the load in RFC 3339 format.
    pub timestamp: String,
    /// Set if the page did not finish loading, so that the saved page shows an intermediate state,
    /// or if walls that covered it were removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Why the page is not available.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Whether the URL leads to a download instead of a page, so that the error is not a failure.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_no_page: bool,
    /// Whether the recording of this visit has what the server sent for the URL.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_recorded: bool,
    /// Whether the site could not be reached.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_unreachable: bool,
}

/// Errors of a site that cannot be reached (net_error_list.h of Chromium).
const UNREACHABLE: [&str; 6] = [
    "net::ERR_ADDRESS_UNREACHABLE",
    "net::ERR_CONNECTION_REFUSED",
    "net::ERR_CONNECTION_TIMED_OUT",
    "net::ERR_INTERNET_DISCONNECTED",
    "net::ERR_NAME_NOT_RESOLVED",
    "net::ERR_NAME_RESOLUTION_FAILED",
];

/// Errors of a certificate that every client refuses, whatever authorities it trusts.
const INVALID_CERTIFICATE: [&str; 2] =
    ["net::ERR_CERT_COMMON_NAME_INVALID", "net::ERR_CERT_DATE_INVALID"];

impl Navigation {
    /// Creates the navigation of a page that ended with this finding.
    pub fn failed(url: &str, finding: &Finding) -> Navigation {
        Navigation {
            url: url.to_owned(),
            error: Some(finding.output_str.clone()),
            is_no_page: finding.exit_code() == 0,
            ..Navigation::default()
        }
    }

    /// Adds the head of the page's response, which may exist without a page.
    pub fn with_response(mut self, response: Option<&Response>) -> Navigation {
        let known = response.filter(|response| response.status > 0);
        self.status = known.map(|response| response.status);
        self.retry_after = known.and_then(|response| response.retry_after);
        self
    }

    /// Whether the error is that of a site that cannot be reached.
    pub fn has_unreachable_site(&self) -> bool {
        self.has_error(&UNREACHABLE)
    }

    /// Whether the error is that of a certificate that any client refuses that checks certificates.
    pub fn has_invalid_certificate(&self) -> bool {
        self.has_error(&INVALID_CERTIFICATE)
    }

    fn has_error(&self, errors: &[&str]) -> bool {
        let has = |reason: &str| errors.iter().any(|error| reason.contains(error));
        self.error.as_deref().is_some_and(has)
    }

    /// The finding of the tab if the page is not available.
    pub fn failure(&self) -> Finding {
        let reason = self.error.as_deref().unwrap_or("the page did not load");
        if self.is_no_page { Finding::noresults(reason) } else { Finding::failed(reason) }
    }

    /// Returns the navigation if the page is available, else the finding of every hook that needs
    /// the page: the failure is reported once, by the tab.
    pub fn into_result(self) -> Result<Navigation, Finding> {
        match &self.error {
            None => Ok(self),
            Some(reason) if self.is_no_page => Err(Finding::noresults(reason)),
            Some(reason) => Err(Finding::skipped(reason)),
        }
    }
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
    page::write(CDP_URL, format!("unix:{}\n", socket.display()).as_bytes())
}

/// Writes a JSON document into the working directory.
pub fn write(name: &str, document: &impl Serialize) -> Result<(), Finding> {
    let text = serde_json::to_string_pretty(document)
        .map_err(|error| Finding::failed(format!("failed to write {name}: {error}")))?;
    page::write(name, format!("{text}\n").as_bytes())
}

/// Writes a JSON document into the directory of another plugin.
pub fn write_in(directory: &Path, name: &str, document: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_string_pretty(document)?;
    let part = directory.join(format!(".{name}.part"));
    fs::write(&part, format!("{text}\n"))?;
    fs::rename(&part, directory.join(name))
}

/// Removes files of the working directory that describe a browser or tab which is gone.
pub fn remove_files(names: &[&str]) {
    for name in names {
        match fs::remove_file(name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                eprintln!("failed to remove {name}: {error}, ignoring");
            }
            _ => {}
        }
    }
}

/// Waits until a file exists and parses it as JSON. The caller sets the deadline.
pub async fn wait_for<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<T, Finding> {
    let fail = |error: &dyn std::fmt::Display| {
        Finding::failed(format!("failed to read '{}': {error}", path.display()))
    };
    appears(path).await.map_err(|error| fail(&error))?;
    let bytes =
        page::read_start(path, 1 << 20).ok_or_else(|| fail(&"not a regular file, or empty"))?;
    serde_json::from_slice(&bytes).map_err(|error| fail(&error))
}

/// Waits until a file or directory exists, whose directory must exist. The caller sets the deadline.
pub async fn appears(path: &Path) -> io::Result<()> {
    changes(path, || path.exists().then_some(())).await
}

/// Waits until a JSON document, whose directory must exist, is as `is_wanted` says. The caller sets
/// the deadline.
pub async fn becomes<T: for<'a> Deserialize<'a>>(
    path: &Path,
    is_wanted: impl Fn(&T) -> bool,
) -> io::Result<T> {
    changes(path, || read(path).filter(&is_wanted)).await
}

/// Reads a JSON document. `None` if it does not exist, or is none.
pub fn read<T: for<'a> Deserialize<'a>>(path: &Path) -> Option<T> {
    serde_json::from_slice(&page::read_start(path, 1 << 20)?).ok()
}

/// Waits until `look` finds something, after each change in the directory of a file.
async fn changes<T>(path: &Path, look: impl Fn() -> Option<T>) -> io::Result<T> {
    let directory = path.parent().filter(|parent| *parent != Path::new(""));
    let directory = directory.unwrap_or(Path::new("."));
    let inotify = Inotify::init()?;
    // Watch first and look afterwards, so that no file is missed in between.
    inotify.watches().add(directory, WatchMask::MOVED_TO | WatchMask::CREATE)?;
    let mut events = inotify.into_event_stream([0; 4096])?;
    loop {
        if let Some(found) = look() {
            return Ok(found);
        }
        events.next().await.ok_or(io::ErrorKind::UnexpectedEof)??;
    }
}

/// Calls `act` with a short path to the socket: addresses are limited to 107 bytes (unix(7)), and
/// paths of archive directories may be longer.
pub fn through_directory<T>(
    socket: &Path,
    act: impl FnOnce(&Path) -> io::Result<T>,
) -> io::Result<T> {
    let (Some(directory), Some(name)) = (socket.parent(), socket.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let directory = File::open(directory)?;
    let short = format!("/proc/self/fd/{}", directory.as_raw_fd());
    act(&Path::new(&short).join(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::finding::EXIT_SKIPPED;
    use std::time::Duration;

    #[test]
    fn failed_navigation_skips_every_hook_that_needs_the_page() {
        let failed = Navigation::failed("http://a.test/", &Finding::failed("net::ERR_X"));
        let text = serde_json::to_string(&failed).unwrap();
        let back: Navigation = serde_json::from_str(&text).unwrap();
        let finding = back.into_result().unwrap_err();
        assert_eq!(finding.exit_code(), EXIT_SKIPPED);
        assert_eq!(finding.output_str, "net::ERR_X");
        let none = Navigation::failed("http://a.test/", &Finding::noresults("a download"));
        assert_eq!(none.into_result().unwrap_err().exit_code(), 0);
        assert!(
            serde_json::from_str::<Navigation>("{\"url\":\"x\"}").unwrap().into_result().is_ok()
        );
    }

    #[test]
    fn sockets_in_directories_with_long_paths_are_reachable() {
        let top = tempfile::tempdir().unwrap();
        let long = top.path().join("d".repeat(200));
        fs::create_dir(&long).unwrap();
        let socket = long.join(SOCKET);
        let listener =
            through_directory(&socket, |path| std::os::unix::net::UnixListener::bind(path));
        let _listener = listener.unwrap();
        assert!(
            through_directory(&socket, |path| std::os::unix::net::UnixStream::connect(path))
                .is_ok()
        );
    }

    #[tokio::test]
    async fn file_that_appears_later_is_read() {
        let top = tempfile::tempdir().unwrap();
        let file = top.path().join(NAVIGATION);
        let wait = wait_for::<Navigation>(&file);
        let write = async {
            fs::write(top.path().join("other"), "x").unwrap();
            tokio::task::yield_now().await;
            let part = top.path().join("part");
            fs::write(&part, "{\"finalUrl\": \"http://b.test/\"}").unwrap();
            fs::rename(part, &file).unwrap();
        };
        let both = async { tokio::join!(wait, write).0 };
        let seen = tokio::time::timeout(Duration::from_secs(5), both).await.unwrap();
        assert_eq!(seen.unwrap().final_url, "http://b.test/");
    }
}
